"""Run folders that regard finds by name; this package holds nothing else."""

from pathlib import Path

PATH = Path(__file__).parent
