"""What the queries and keys of an attention are, and the looks that follow from it.

A model file says once for each attention what looks at what: `sides=("target", "source")`. Whoever
runs the model knows what each side is this time, a `Side` with its labels. Labels, kind and texts
of every look follow from the two, here and nowhere else.

| queries, keys | kind |
|---|---|
| `words × words`, any side with itself, or with what is `earlier` on it | self |
| `… × image`, `… × memory`, `… × senses` | image, memory, senses |
| `… × senses of words`: a head for each sense of a word | senses |
| `text × words`, `document × sentences`: one vector reads all | pool |
| any other pair, as `target × source` | cross |
| not declared | other |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from regard.attention.attended import Attended
from regard.attention.looks import Labels, Look
from regard.attention.watching import attentions

Sides = tuple[str, str]
POOLING = ("text", "sentence", "document", "class")
"""Queries that stand for a whole: one vector that reads everything."""
EARLIER = "earlier "
"""Before a side: it has only what stands before the query, as a tape that a word is added to once
it has looked. `words × earlier words`: the last key is the word before."""
SENSES = "senses of "
"""Before a side: its positions are read by their senses, with a head for each of those."""
KINDS_BY_KEYS = {"image": "image", "memory": "memory", "senses": "senses"}


@dataclass(frozen=True)
class Side:
    """What one side of an attention is: a label for each position, and the text they stand in."""

    labels: Labels
    text: str | None = None
    read: Labels | None = None
    """The same positions as keys, where a position that says one word has read another: a decoder
    says «dog» where it has read «the»."""
    grid: tuple[int, int] | None = None  # (rows, columns) of an image, whose cells the labels are
    image: Tensor | None = None  # (row, column, 3) bytes, the image itself

    @property
    def keys(self) -> Labels:
        return self.labels if self.read is None else self.read


def sides_of(model: nn.Module) -> dict[str, Sides | None]:
    """What each attention of a model looks from and at, by its path; None where none is declared.

    sides_of(translator)  # {"decoder.attention": ("target", "source")}
    """
    return {path: part.sides for path, part in attentions(model).items()}


def kind_of(sides: Sides | None) -> str:
    """The kind of a look between these sides."""
    if sides is None:
        return "other"
    queries, keys = sides
    if keys in KINDS_BY_KEYS:
        return KINDS_BY_KEYS[keys]
    if keys.startswith(SENSES):
        return "senses"
    if queries in POOLING:
        return "pool"
    return "self" if queries == keys.removeprefix(EARLIER) else "cross"


def make_looks(
    model: nn.Module, seen: Mapping[str, Sequence[Attended]], given: Mapping[str, Side]
) -> list[Look]:
    """The looks at all that `watch` saw of one text, labelled by the sides that are given.

    The steps of a decoder become one look, several calls over all queries a look each. An attention
    without sides, or with a side that is not given, has numbers for labels. One whose size does not
    fit its sides is a ValueError: wrong labels would be believed.
    """
    declared = sides_of(model)
    return [
        look
        for path, calls in seen.items()
        for look in make_looks_of_one(path, calls, declared.get(path), given)
    ]


def make_looks_of_one(
    path: str, calls: Sequence[Attended], sides: Sides | None, given: Mapping[str, Side]
) -> list[Look]:
    """The looks at the calls of one attention."""
    if not calls:
        return []
    queries, keys = _find_sides(sides, given)
    common: dict[str, Any] = {"path": path, "kind": kind_of(sides)}
    common |= {"query_text": queries and queries.text, "key_text": keys and keys.text}
    if sides is not None and sides[1].startswith(SENSES):
        common["heads"] = [f"sense {number}" for number in range(calls[0].context.shape[-3])]
    if keys is not None and keys.grid is not None:
        common |= {"grid": keys.grid, "image": keys.image}
    groups = _group_calls(calls, None if queries is None else len(queries.labels))
    return [_make_look(group, sides, queries, keys, common) for group in groups]


def _make_look(
    calls: Sequence[Attended],
    sides: Sides | None,
    queries: Side | None,
    keys: Side | None,
    common: Mapping[str, Any],
) -> Look:
    sizes = [call.comparison.sizes for call in calls]
    asked, reach = sum(size[0] for size in sizes), max(size[1] for size in sizes)
    rows = _numbers(asked) if queries is None else queries.labels
    columns = _numbers(reach) if keys is None else keys.keys
    one_sequence = queries is not None and queries is keys
    fits = (
        asked <= len(rows) and reach <= len(columns)
        if one_sequence
        else ((asked, reach) == (len(rows), len(columns)))
    )
    gap = int(sides is not None and sides[1].startswith(EARLIER))
    first_keys = _first_keys(sizes, len(rows) - asked, gap) if one_sequence else None
    if not fits or (first_keys is not None and min(first_keys) < 0):
        raise _misfit(common["path"], sides, (asked, reach), (len(rows), len(columns)))
    if sizes == [(len(rows), len(columns))]:
        return Look.of(calls[0], queries=rows, keys=columns, **common)
    # A model that reads a prompt without looking looks from the last positions alone.
    rows = rows[len(rows) - asked :]
    return Look.of_calls(calls, queries=rows, keys=columns, first_keys=first_keys, **common)


def _group_calls(calls: Sequence[Attended], queries: int | None) -> list[Sequence[Attended]]:
    """The calls that make up one look: each for itself if it has all queries, else all of them."""
    if len(calls) > 1 and all(call.comparison.sizes[0] == queries for call in calls):
        return [[call] for call in calls]
    return [calls]


def _find_sides(sides: Sides | None, given: Mapping[str, Side]) -> tuple[Side | None, Side | None]:
    """What queries and keys are this time; None where nobody says."""
    if sides is None:
        return None, None
    return given.get(sides[0]), given.get(sides[1].removeprefix(EARLIER).removeprefix(SENSES))


def _first_keys(sizes: Sequence[tuple[int, int]], before: int, gap: int) -> list[int]:
    """Of each call the position of its first key, when the last key stands beside the last query,
    or `gap` before it: a cache holds all positions so far, a window the last ones; `before` stand
    before all queries.
    """
    first_keys, end = [], before
    for queries, keys in sizes:
        end += queries
        first_keys.append(end - gap - keys)
    return first_keys


def _numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def _misfit(
    path: str, sides: Sides | None, found: tuple[int, int], labels: tuple[int, int]
) -> ValueError:
    named = "no sides" if sides is None else " × ".join(sides)
    return ValueError(
        f"{path}: {found[0]} queries × {found[1]} keys do not fit its sides ({named}), "
        f"which have {labels[0]} × {labels[1]} labels"
    )
