"""Weights in files: run folders and checkpoints that are whole or not there, never pickled."""

from regard.checkpoints.folders import check_folder, new_folder

__all__ = ["check_folder", "new_folder"]
