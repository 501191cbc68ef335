"""Where a translator looks while it says given translations: many pairs at once, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from regard.attention import sides_of, watch
from regard.data.batches import Pairs
from regard.data.buckets import LengthBuckets, Translations
from regard.tasks.answering import TOKENS, in_order
from regard.text import Encoded, Tokenizer


def word_weights(
    model: nn.Module, words: Tokenizer, pairs: Sequence[tuple[str, str]], path: str | None = None
) -> Iterator[Tensor]:
    """How much each word of a target looks at each word of its source, (target, source), pair by
    pair; words are what blanks separate.

    Pieces of a source word add up; of a target word, the mean is taken. `path` names one attention;
    else all that look from target to source are averaged, with all their heads.
    """
    paths = [path] if path in cross_paths(model) else cross_paths(model)
    if not paths or path not in (None, *paths):
        raise ValueError(
            f"path ({path!r}) is no attention from target to source; there are: "
            f"{', '.join(paths) or 'none'}"
        )
    sides = (words.encode_all([pair[side] for pair in pairs]) for side in (0, 1))
    encoded = list(zip(*sides, strict=True))
    full = [pair for pair in encoded if all(map(has_words, pair))]

    def weigh(places: Sequence[int]) -> list[Tensor]:
        chosen = [full[place] for place in places]
        batch = collate([(source.ids, target.ids) for source, target in chosen], words)
        tables = cross_weights(model, batch, paths)
        return [join_pieces(table, *pair) for table, pair in zip(tables, chosen, strict=True)]

    lengths = [max(len(source), len(target) + 1) for source, target in full]
    found = in_order(LengthBuckets(lengths, TOKENS, None).plan(0) if full else (), weigh)
    for source, target in encoded:
        if has_words(source) and has_words(target):
            yield next(found)
        else:
            yield torch.zeros(len(target.text.split()), len(source.text.split()))


def has_words(encoded: Encoded) -> bool:
    """Whether there is a word, and a piece of one; blanks may be pieces, too."""
    return bool(encoded.ids) and not encoded.text.isspace()


def cross_paths(model: nn.Module) -> list[str]:
    """The attentions that look from the target to the source."""
    return [path for path, each in sides_of(model).items() if each == ("target", "source")]


@torch.no_grad()
def cross_weights(model: nn.Module, batch: Pairs, paths: Sequence[str]) -> Tensor:
    """How much each target token looks at each source token, (batch, target, source): the mean of
    these attentions, and of their heads."""
    with watch(model) as seen:
        model(batch)
    found = []
    for path in paths:
        weights = torch.cat([call.weights for call in seen[path]], dim=-2)
        found.append(weights if weights.dim() == 3 else weights.flatten(1, -3).mean(dim=1))
    return torch.stack(found).mean(dim=0)


def join_pieces(weights: Tensor, source: Encoded, target: Encoded) -> Tensor:
    """Weights (target, source) word by word instead of piece by piece; behind the pieces there may
    stand an end, and padding."""
    rows, columns = membership(target), membership(source)  # (word, piece)
    means = rows / rows.sum(dim=1, keepdim=True).clamp(min=1)
    return means @ weights[: len(target), : len(source)] @ columns.T


def membership(encoded: Encoded) -> Tensor:
    """1 where a piece belongs to a word, (word, piece); words are what blanks separate."""
    spans = [match.span() for match in re.finditer(r"\S+", encoded.text)]
    first, last = torch.tensor(spans).unsqueeze(-1).unbind(dim=1)  # (word, 1) each
    start, end = torch.tensor(encoded.offsets).unbind(dim=1)  # (piece,) each
    return (torch.maximum(first, start) < torch.minimum(last, end)).float()


def collate(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], words: Tokenizer) -> Pairs:
    """Pairs of ids as one batch."""
    start, end, pad = (words.id_of_role(role) for role in ("start", "end", "pad"))
    return Translations(pairs, start, end, pad, tokens=1).collate(pairs)
