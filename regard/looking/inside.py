"""A look into any model: run it once, and label what its attentions saw."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention import Attended, Label, Look, watch
from regard.data.batches import Words
from regard.looking.looks import Looks

Ids = Sequence[int] | Tensor


@dataclass(frozen=True)
class Side:
    """A sequence that a model reads: its ids, what they are called, and the text they are of."""

    ids: list[int]
    labels: list[Label]
    text: str | None = None
    others: dict[str, Tensor] = field(default_factory=dict)
    """What a tokenizer gives besides, such as the segments of BERT."""


def look(
    model: nn.Module,
    tokenizer: Any = None,
    text: str | None = None,
    *,
    target: str | None = None,
    ids: Ids | None = None,
    target_ids: Ids | None = None,
    image: Tensor | None = None,
) -> Looks:
    """Where a model looks while it reads a text, some ids or an image.

    regard.look(model, tokenizer, "The animal didn't cross the street").save("look.html")
    regard.look(translator, tokenizer, "a cat", target="eine Katze")
    regard.look(model, ids=[5, 2, 9])
    regard.look(vit, image=pixels)  # (channel, height, width), as the model wants them

    The tokenizer is one of Hugging Face's or of ours. Models that read one sequence and write
    another need what they write, as text or ids. The model runs once, as it is: call `model.eval()`
    before, if dropout should be off.
    """
    if (text is not None) + (ids is not None) + (image is not None) != 1:
        raise ValueError("look needs one of text (with its tokenizer), ids and image")
    if image is not None:
        return _look_at_image(model, image)
    source = _make_side(tokenizer, text, ids)
    written = None
    if target is not None or target_ids is not None:
        written = _make_side(tokenizer, target, target_ids, is_target=True)
    for side in (source, *([] if written is None else [written])):
        _check_vocabulary(model, tokenizer, side)
    inputs, written = _make_inputs(model, source, written)
    return _label(model, _watch(model, inputs), source, written)


def _make_side(tokenizer: Any, text: str | None, ids: Ids | None, is_target: bool = False) -> Side:
    if ids is not None:
        numbers = torch.as_tensor(ids).reshape(-1).tolist()
        names = [str(number) for number in numbers]
        if hasattr(tokenizer, "convert_ids_to_tokens"):
            names = tokenizer.convert_ids_to_tokens(numbers)
        side = Side(numbers, [Label(name) for name in names])
    elif tokenizer is None or text is None:
        raise ValueError(f"text ({text!r}) needs a tokenizer; without one, give ids=")
    elif hasattr(tokenizer, "convert_ids_to_tokens"):
        side = _encode_for_transformers(tokenizer, text, is_target)
    else:
        encoded = tokenizer.encode(text)
        names = getattr(encoded, "pieces", encoded.tokens)  # the library's own has tokens alone
        places = zip(names, encoded.offsets, strict=True)
        side = Side(list(encoded.ids), [Label(name, *place) for name, place in places], text)
    if not side.ids:
        raise ValueError(f"text ({text!r}) has no tokens to look at")
    return side


def _encode_for_transformers(tokenizer: Any, text: str, is_target: bool) -> Side:
    """With a tokenizer of transformers; only the fast ones know where a token stands."""
    encoded = tokenizer(
        **{"text_target" if is_target else "text": text},
        return_offsets_mapping=tokenizer.is_fast,
    )
    numbers = encoded.pop("input_ids")
    places = encoded.pop("offset_mapping", None)
    names = tokenizer.convert_ids_to_tokens(numbers)
    labels = [Label(name) for name in names]
    if places is not None:
        labels = [
            Label(text[start:end], start, end) if end > start else Label(name)
            for name, (start, end) in zip(names, places, strict=True)
        ]
    others = {name: torch.tensor([numbers]) for name, numbers in encoded.items()}
    return Side(numbers, labels, text, others)


def _check_vocabulary(model: nn.Module, tokenizer: Any, side: Side) -> None:
    """Raise a ValueError if the model has no vector for an id."""
    rows = _embedding_rows(model)
    highest, lowest = max(side.ids), min(side.ids)
    if rows is None or (highest < rows and lowest >= 0):
        return
    wrong = highest if highest >= rows else lowest
    label = side.labels[side.ids.index(wrong)].text
    origin = "ids" if tokenizer is None else f"tokenizer ({type(tokenizer).__name__})"
    raise ValueError(
        f"{origin} gives id {wrong} ({label!r}), but the embedding of {type(model).__name__} has "
        f"{rows} rows: ids must lie within 0 … {rows - 1}"
    )


def _embedding_rows(model: nn.Module) -> int | None:
    """How many ids a model knows: rows of its input embedding, or of its first one."""
    named = getattr(model, "get_input_embeddings", None)
    found = named() if named is not None else None
    if found is None:
        found = next((each for each in model.modules() if isinstance(each, nn.Embedding)), None)
    weight = getattr(found, "weight", None)
    return weight.shape[0] if isinstance(weight, Tensor) and weight.dim() == 2 else None


def _make_inputs(
    model: nn.Module, source: Side, written: Side | None
) -> tuple[Callable[[], Any], Side | None]:
    """How to call the model, and the sequence it writes as its decoder reads it."""
    device = next((each.device for each in model.parameters()), torch.device("cpu"))
    ids = torch.tensor([source.ids], device=device)
    others = {name: numbers.to(device) for name, numbers in source.others.items()}
    config = getattr(model, "config", None)
    if getattr(config, "is_encoder_decoder", False):
        if written is None:
            raise ValueError(
                f"{type(model).__name__} writes while it reads: give target= or target_ids="
            )
        written = _shift_right(written, config)
        said = torch.tensor([written.ids], device=device)
        return lambda: model(input_ids=ids, decoder_input_ids=said, **others), written
    if written is not None:
        raise ValueError(f"{type(model).__name__} reads one sequence, and a target was given")
    parameters = inspect.signature(model.forward).parameters
    if "input_ids" in parameters:
        known = {name: each for name, each in others.items() if name in parameters}
        return lambda: model(input_ids=ids, **known), None
    first = next(iter(parameters.values()), None)
    if first is not None and first.annotation in ("Words", Words):
        return lambda: model(Words.of_ids(ids)), None
    return lambda: model(ids), None


def _shift_right(written: Side, config: Any) -> Side:
    """What the decoder reads for each word it writes: the one before, and first its start."""
    start = getattr(config, "decoder_start_token_id", None)
    if start is None:
        raise ValueError("decoder_start_token_id (None) of the config must be an id")
    if written.ids[0] == start:
        return written
    return Side([start, *written.ids[:-1]], [Label("⟨start⟩"), *written.labels[:-1]], written.text)


@torch.no_grad()
def _watch(model: nn.Module, call: Callable[[], Any]) -> list[tuple[str, Attended]]:
    """Every attention call with its path, one that has two paths under the first."""
    with watch(model) as seen:
        call()
    calls: dict[int, tuple[str, Attended]] = {}
    for path, reads in seen.items():
        for read in reads:
            calls.setdefault(id(read), (path, read))
    if not calls:
        raise ValueError(
            f"{type(model).__name__} made no attention call that can be seen: it does not attend, "
            "or does so in its own code. Models of transformers take "
            'attn_implementation="sdpa"; others call F.scaled_dot_product_attention'
        )
    return list(calls.values())


def _label(
    model: nn.Module, calls: list[tuple[str, Attended]], source: Side, written: Side | None
) -> Looks:
    decoder = _decoder_path(model)
    looks = []
    for path, read in calls:
        inside = written is not None and (f"{path}.".startswith(f"{decoder}.") or decoder == "")
        queries = written if inside and written is not None else source
        keys = queries if read.one_sequence else source
        counts = read.comparison.sizes
        looks.append(
            Look.of(
                read,
                queries=_labels(queries, counts[0], read.first_row),
                keys=_labels(keys, counts[1], 0),
                path=path,
                kind="self" if read.one_sequence else "cross",
                query_text=queries.text if len(queries.ids) == counts[0] else None,
                key_text=keys.text if len(keys.ids) == counts[1] else None,
            )
        )
    return Looks(looks)


def _decoder_path(model: nn.Module) -> str:
    """Where the part that writes is; its paths begin so."""
    named: Any = getattr(model, "get_decoder", None)
    found = None if named is None else named()
    return next((path for path, part in model.named_modules() if part is found), "decoder")


def _labels(side: Side, count: int, first: int) -> list[Label]:
    """The side's own labels; numbers, if these are not its positions."""
    if count == len(side.labels):
        return side.labels
    return [Label(str(number)) for number in range(first, first + count)]


def _look_at_image(model: nn.Module, image: Tensor) -> Looks:
    """Each row is a patch, or a token of the model's own; the keys are the image's patches."""
    pixels = image if image.dim() == 4 else image.unsqueeze(0)
    if pixels.dim() != 4 or pixels.shape[0] != 1:
        raise ValueError(f"image {tuple(image.shape)} must be (channel, height, width)")
    by_name = "pixel_values" in inspect.signature(model.forward).parameters
    calls = _watch(model, lambda: model(pixel_values=pixels) if by_name else model(pixels))
    looks = []
    for path, read in calls:
        grid = _find_grid(model, pixels, read.comparison.sizes[1])
        count = grid[0] * grid[1]
        patches = [Label(f"{row},{column}") for row in range(grid[0]) for column in range(grid[1])]
        own = read.comparison.sizes[1] - count
        names = ["[CLS]", *(f"[{number}]" for number in range(1, own))][:own]
        looks.append(
            Look.of_weights(
                read.weights[0][..., own:],  # (head, query, patch)
                queries=[*map(Label, names), *patches][: read.comparison.sizes[0]],
                keys=patches,
                path=path,
                kind="image",
                grid=grid,
            )
        )
    return Looks(looks)


def _find_grid(model: nn.Module, pixels: Tensor, keys: int) -> tuple[int, int]:
    """Rows and columns of patches, by the config's patch size or as a square."""
    size = getattr(getattr(model, "config", None), "patch_size", None)
    if isinstance(size, int):
        rows, columns = (side // size for side in pixels.shape[-2:])
    else:
        rows = columns = int(keys**0.5)
    if not 0 < rows * columns <= keys:
        raise ValueError(f"{keys} keys do not hold {rows} × {columns} patches of the image")
    return rows, columns
