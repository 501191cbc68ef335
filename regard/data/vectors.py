"""Word vectors from a text file: a word and its numbers on each line, blanks between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.data import corpora


@torch.no_grad()
def read_vectors(path: str | Path, words: Sequence[str], table: Tensor) -> int:
    """Fill the rows of `table` (word, size) whose words the file knows; return how many it did.

    The files of GloVe are such; those of word2vec and fastText begin with a line of two numbers,
    which is passed over.
    """
    rows, size, filled = {word: row for row, word in enumerate(words)}, table.shape[1], 0
    for number, line in enumerate(corpora.read_lines(path), start=1):
        parts = line.rstrip().split(" ")
        if number == 1 and len(parts) == 2 and size != 1:
            continue
        if len(parts) != size + 1:
            raise ValueError(
                f"{path}, line {number}: a word and {size} numbers were expected "
                f"(model.embedding_size), not {len(parts) - 1} numbers"
            )
        if parts[0] in rows:
            table[rows[parts[0]]] = _numbers(parts[1:], f"{path}, line {number}").to(table)
            filled += 1
    if not filled:
        raise ValueError(f"{path} knows none of the {len(words):,} words of the vocabulary")
    return filled


def _numbers(parts: list[str], where: str) -> Tensor:
    try:
        vector = torch.tensor([float(part) for part in parts])
    except ValueError as reason:
        raise ValueError(f"{where}: {reason}") from None
    if not bool(vector.isfinite().all()):
        raise ValueError(f"{where}: a number is infinite or none")
    return vector
