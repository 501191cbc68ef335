"""Weights in files: run folders and checkpoints that are whole or not there, never pickled."""

from regard.checkpoints.folders import new_folder
from regard.checkpoints.reading import Folder, check_folder

__all__ = ["Folder", "check_folder", "new_folder"]
