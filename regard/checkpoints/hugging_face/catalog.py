"""The architectures that can be read and written."""

from __future__ import annotations

from regard.checkpoints.hugging_face.bert import BERT
from regard.checkpoints.hugging_face.gpt2 import GPT2
from regard.checkpoints.hugging_face.table import Table

TABLES: tuple[Table, ...] = (GPT2, BERT)


def architecture_names() -> list[str]:
    """What Hugging Face calls them."""
    return [each.name for table in TABLES for each in table.architectures]


def table_of(model: str) -> Table:
    """The table of a model of ours."""
    for table in TABLES:
        if table.model == model:
            return table
    known = ", ".join(table.model for table in TABLES)
    raise ValueError(f"{model} has no counterpart at Hugging Face; these models have: {known}")
