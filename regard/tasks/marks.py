"""Texts between marks, [CLS] first [SEP] second [SEP], and marks that stand in a text.

A tokenizer reads no special out of a text and adds none; what a user writes as [MASK], and what a
corpus writes as <unk>, is found here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor

from regard.attention import Label, Side
from regard.data.batches import MaskedTexts
from regard.data.masked import Marks
from regard.tasks.labels import mark_second, token_labels
from regard.text import Tokenizer
from regard.text.roles import SPELLINGS


def find_marks(words: Tokenizer) -> Marks:
    """The ids of [PAD], [CLS], [SEP] and [MASK], however they are spelled."""
    return Marks(
        pad=words.id_of_role("pad"),
        first=words.id_of_role("class"),
        separator=words.id_of_role("separator"),
        hidden=words.id_of_role("mask"),
    )


def ordinary_ids(words: Tokenizer) -> Tensor:
    """The ids that are no specials, (word,)."""
    specials = {words.id_of(name) for name in words.specials}
    return torch.tensor([number for number in range(words.size) if number not in specials])


def encode_around(
    texts: Iterable[str], words: Tokenizer, marked: Mapping[str, int]
) -> Iterator[list[int]]:
    """The ids of texts in which some spellings stand for an id."""
    if not marked:
        yield from (encoded.ids for encoded in words.encode_all(texts))
        return
    for text in texts:
        ids: list[int] = []
        for piece in _cut_around(marked, text):
            ids += [marked[piece]] if piece in marked else words.encode(piece).ids
        yield ids


def read_marked(text: str, second: str | None, words: Tokenizer) -> tuple[MaskedTexts, Side]:
    """[CLS] text [SEP], or [CLS] text [SEP] second [SEP], with [MASK] where a text has it; and what
    is shown beside it. Tokens of the second text have a ₂."""
    marks = find_marks(words)
    [first_name, separator_name] = words.tokens_of([marks.first, marks.separator])
    ids, labels, segments, begin = [marks.first], [Label(first_name)], [0], 0
    for number, part in enumerate([text] if second is None else [text, second]):
        found = _label_around(part, words, marks.hidden, begin)
        shown = [mark_second(each) if number else each for _, each in found]
        ids += [*(id for id, _ in found), marks.separator]
        labels += [*shown, Label(separator_name)]
        segments += [number] * (len(found) + 1)
        begin += len(part) + 1
    row = torch.tensor([ids])
    batch = MaskedTexts(row, torch.ones_like(row, dtype=torch.bool), torch.tensor([segments]))
    return batch, Side(labels, text if second is None else f"{text}\n{second}")


def _label_around(text: str, words: Tokenizer, mask: int, begin: int) -> list[tuple[int, Label]]:
    """The ids of a text and their labels, any known spelling of a mask being one."""
    spellings = {*SPELLINGS["mask"], *words.tokens_of([mask])}
    found: list[tuple[int, Label]] = []
    for piece in _cut_around(spellings, text):
        if piece in spellings:
            found.append((mask, Label(piece, begin, begin + len(piece))))
        else:
            encoded = words.encode(piece)
            found += zip(encoded.ids, token_labels(encoded, begin), strict=True)
        begin += len(piece)
    return found


def _cut_around(spellings: Iterable[str], text: str) -> list[str]:
    """A text in pieces, these spellings being pieces of their own."""
    return re.split("(" + "|".join(map(re.escape, spellings)) + ")", text)
