"""Each kind of tokenizer, put together from the parts of `tokenizers` and recognised in its file.

A file holds nothing beside what the library itself reads. The kind follows from the parts; the
specials are named by the post-processor, which declares them and adds none.
"""

from collections.abc import Iterator
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from regard.text.specials import first_character_pattern

WORD_MARK = "▁"  # where a word begins; a blank could not be told from the one between two tokens
CONTINUATION_PREFIX = "##"  # where a word goes on
ROLE_PREFIX = "role:"  # begins the name under which a file declares what a special is for

State = dict[str, Any]


def assemble(
    kind: str,
    model: models.Model,
    *,
    lowercase: bool,
    specials: tuple[str, ...],
    pre_tokenizer: pre_tokenizers.PreTokenizer | None = None,
) -> tokenizers.Tokenizer:
    """Put a model together with the decoder and specials of its kind, and its pre-tokenizer unless
    another is given."""
    inner = tokenizers.Tokenizer(model)
    if lowercase:
        inner.normalizer = normalizers.Lowercase()
    pre_tokenizer = pre_tokenizer or make_pre_tokenizer(kind, specials)
    decoder = make_decoder(kind)
    if pre_tokenizer is not None:
        inner.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        inner.decoder = decoder
    ids = [(special, inner.token_to_id(special)) for special in specials]
    inner.post_processor = processors.TemplateProcessing(
        single="$A", pair="$A $B:1", special_tokens=ids
    )
    return inner


def make_pre_tokenizer(
    kind: str, specials: tuple[str, ...], prefix_space: bool = False
) -> pre_tokenizers.PreTokenizer | None:
    """Cuts a text before pieces are looked for, which no piece may cross.

    Characters need none; words are cut at blanks only, so that each is one token, if an unknown.
    With `prefix_space` byte-level pieces read a text as if a space stood before it.
    """
    if kind == "character":
        return None
    if kind == "word":
        return make_word_splitter(split_punctuation=False)
    steps = _pre_tokenizer_steps(kind, prefix_space)
    if specials:
        steps.append(
            pre_tokenizers.Split(first_character_pattern(specials), "merged_with_previous")
        )
    return pre_tokenizers.Sequence(steps)


def make_word_splitter(split_punctuation: bool) -> pre_tokenizers.PreTokenizer:
    """Cuts a text into words: at blanks, and around marks if they are to be words, too.

    What is neither letter nor digit is a mark; apostrophes and hyphens only at the edge of a word,
    so that don't and well-made stay whole, and 'so' is three.
    """
    if not split_punctuation:
        return pre_tokenizers.WhitespaceSplit()
    marks = (tokenizers.Regex("[^[:alnum:]'’-]"), "--", tokenizers.Regex("^['’-]|['’-]$"))
    splits = [pre_tokenizers.Split(mark, "isolated") for mark in marks]
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), *splits])


def _pre_tokenizer_steps(kind: str, prefix_space: bool) -> list[Any]:
    """The cuts of a kind of pieces, before those around specials."""
    if kind == "byte-bpe":
        return [pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)]
    if kind == "wordpiece":
        return [pre_tokenizers.WhitespaceSplit()]
    return [
        pre_tokenizers.WhitespaceSplit(),
        pre_tokenizers.Metaspace(replacement=WORD_MARK, prepend_scheme="always", split=False),
    ]


def make_decoder(kind: str) -> decoders.Decoder | None:
    """What turns tokens back to text. Words are joined by blanks, which needs no decoder."""
    marks = decoders.Metaspace(replacement=WORD_MARK, prepend_scheme="always")
    by_kind: dict[str, decoders.Decoder] = {
        "character": decoders.Fuse(),
        "bpe": marks,
        "byte-bpe": decoders.ByteLevel(),
        "wordpiece": decoders.WordPiece(prefix=CONTINUATION_PREFIX, cleanup=False),
        "unigram": marks,
    }
    return by_kind.get(kind)


def kind_of(state: State) -> str:
    """The kind a tokenizer file is of, be it ours or somebody else's."""
    model = state["model"]
    by_model = {"WordLevel": "word", "WordPiece": "wordpiece", "Unigram": "unigram"}
    if model["type"] in by_model:
        return by_model[model["type"]]
    if state["pre_tokenizer"] is None and not model["merges"]:
        return "character"
    spelling = nested_parts([state["pre_tokenizer"], state["normalizer"]])
    return "byte-bpe" if any(part.get("type") == "ByteLevel" for part in spelling) else "bpe"


def specials_of(state: State) -> set[str]:
    """The declared specials: named by the post-processor, or added as the library's own are."""
    added = {token["content"] for token in state["added_tokens"] if token["special"]}
    return added.union(token for _, token in declared_specials(state))


def declared_specials(state: State) -> Iterator[tuple[str, str]]:
    """The specials of the post-processor, each behind the name it is declared under."""
    for part in nested_parts(state["post_processor"]):
        if part.get("type") in ("BertProcessing", "RobertaProcessing"):
            yield f"{ROLE_PREFIX}class", part["cls"][0]
            yield f"{ROLE_PREFIX}separator", part["sep"][0]
        elif part.get("type") == "TemplateProcessing":
            for name, special in part["special_tokens"].items():
                yield from ((name, token) for token in special["tokens"])


def unknown_of(state: State) -> str | None:
    """The token a file maps the unknown to, if there is one."""
    model = state["model"]
    if model["type"] == "Unigram":
        place = model["unk_id"]
        return None if place is None else str(model["vocab"][place][0])
    token = model["unk_token"]
    return token if token in model["vocab"] else None


def nested_parts(part: Any) -> Iterator[dict[str, Any]]:
    """A part of a file and all parts nested in it, the outer before the inner."""
    if isinstance(part, dict):
        yield part
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for each in inner:
        yield from nested_parts(each)
