"""The architectures that can be read and written."""

from __future__ import annotations

from regard.checkpoints.hugging_face.gpt2 import GPT2
from regard.checkpoints.hugging_face.table import Table

TABLES: tuple[Table, ...] = (GPT2,)


def architecture_names() -> list[str]:
    """What Hugging Face calls them."""
    return [name for table in TABLES for name in table.architectures]
