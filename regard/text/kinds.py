"""Each kind of tokenizer, put together from the parts of `tokenizers` and recognised in its file.

A file holds nothing beside what the library itself reads. The kind follows from the parts; the
specials are named by the post-processor, which declares them and adds none.
"""

from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from .specials import cuts

MARK = "▁"  # where a word begins; a blank could not be told from the one between two tokens
CONTINUED = "##"  # where a word goes on

Spelling = pre_tokenizers.PreTokenizer | None
State = dict[str, Any]


def assembled(
    kind: str, model: models.Model, *, lowercase: bool, specials: tuple[str, ...]
) -> tokenizers.Tokenizer:
    """A model of pieces with what goes before and after it."""
    inner = tokenizers.Tokenizer(model)
    if lowercase:
        inner.normalizer = normalizers.Lowercase()
    before = pre_tokenizer(kind, specials)
    if before is not None:
        inner.pre_tokenizer = before
    after = decoder(kind)
    if after is not None:
        inner.decoder = after
    declared = [(special, inner.token_to_id(special)) for special in specials]
    inner.post_processor = processors.TemplateProcessing(
        single="$A", pair="$A $B:1", special_tokens=declared
    )
    return inner


def pre_tokenizer(kind: str, specials: tuple[str, ...]) -> Spelling:
    """The cuts no piece may cross. Characters need none; words are cut at blanks only, so that a
    corpus that writes `<unk>` for a word means the unknown word by it."""
    if kind == "character":
        return None
    if kind == "word":
        return pre_tokenizers.WhitespaceSplit()
    steps = _spelling(kind)
    if specials:
        steps.append(pre_tokenizers.Split(cuts(specials), "merged_with_previous"))
    return pre_tokenizers.Sequence(steps)


def _spelling(kind: str) -> list[Any]:
    if kind == "byte-bpe":
        return [pre_tokenizers.ByteLevel(add_prefix_space=False)]
    if kind == "wordpiece":
        return [pre_tokenizers.WhitespaceSplit()]
    return [
        pre_tokenizers.WhitespaceSplit(),
        pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always", split=False),
    ]


def decoder(kind: str) -> decoders.Decoder | None:
    """Tokens back to text. Words are joined by blanks, which needs no decoder."""
    marks = decoders.Metaspace(replacement=MARK, prepend_scheme="always")
    known: dict[str, decoders.Decoder] = {
        "character": decoders.Fuse(),
        "bpe": marks,
        "byte-bpe": decoders.ByteLevel(),
        "wordpiece": decoders.WordPiece(prefix=CONTINUED, cleanup=False),
        "unigram": marks,
    }
    return known.get(kind)


def kind_of(state: State) -> str:
    """The kind a tokenizer file is of, be it ours or somebody else's."""
    model = state["model"]
    named = {"WordLevel": "word", "WordPiece": "wordpiece", "Unigram": "unigram"}
    if model["type"] in named:
        return named[model["type"]]
    if state["pre_tokenizer"] is None and not model["merges"]:
        return "character"
    levels = _named("type", [state["pre_tokenizer"], state["normalizer"]])
    return "byte-bpe" if "ByteLevel" in levels else "bpe"


def specials_of(state: State) -> set[str]:
    """The declared specials: named by the post-processor, or added as the library's own are."""
    added = {token["content"] for token in state["added_tokens"] if token["special"]}
    for tokens in _named("special_tokens", state["post_processor"]):
        added.update(tokens)
    return added


def unknown_of(state: State) -> str | None:
    """The token a file maps the unknown to, if there is one."""
    model = state["model"]
    if model["type"] == "Unigram":
        place = model["unk_id"]
        return None if place is None else str(model["vocab"][place][0])
    token = model["unk_token"]
    return token if token in model["vocab"] else None


def _named(name: str, part: Any) -> list[Any]:
    """The values under a name, wherever in a nested part."""
    if isinstance(part, list):
        return [found for item in part for found in _named(name, item)]
    if not isinstance(part, dict):
        return []
    here = [part[name]] if name in part else []
    return here + [found for item in part.values() for found in _named(name, item)]
