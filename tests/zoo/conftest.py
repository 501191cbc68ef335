"""The data sets that the models of the zoo were trained on, where they are at hand."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture(autouse=True)
def corpora(monkeypatch):
    """Recipes name their files below $REGARD_DATA, or beside the checkout."""
    if "REGARD_DATA" not in os.environ and BESIDE.is_dir():
        monkeypatch.setenv("REGARD_DATA", str(BESIDE))
