"""Hugging Face folders, read and written by tables of names."""

from regard.checkpoints.hugging_face.folder import HuggingFaceFolder

__all__ = ["HuggingFaceFolder"]
