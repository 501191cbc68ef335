"""Tokenizers as GPT-2 and BERT were published: a table of tokens with a list of merges, and a list
of word pieces.

Radford et al. (2019), section 2.2; Devlin et al. (2019), section 3.
"""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from regard.text.kinds import CONTINUATION_PREFIX, assemble, make_pre_tokenizer

BERT_UNKNOWN, BERT_FIRST, BERT_SEPARATOR = "[UNK]", "[CLS]", "[SEP]"
BERT_SPECIALS = ("[PAD]", BERT_UNKNOWN, BERT_FIRST, BERT_SEPARATOR, "[MASK]")


def read_tables(encoder: Path, merges: Path, prefix_space: bool = False) -> tokenizers.Tokenizer:
    """The tokenizer of an `encoder.json` and its list of merges.

    What is neither a byte nor the product of a merge can only be meant as a special. With
    `prefix_space` a text is read as if a space stood before it.
    """
    vocabulary = _read_vocabulary(encoder)
    pairs = _read_merges(merges, vocabulary)
    bytewise = set(pre_tokenizers.ByteLevel.alphabet())
    missing = sorted(bytewise - vocabulary.keys())
    if missing:
        raise ValueError(f"encoder ({str(encoder)!r}) has no token for the byte {missing[0]!r}")
    spelled = bytewise.union(left + right for left, right in pairs)
    specials = tuple(sorted(vocabulary.keys() - spelled, key=vocabulary.__getitem__))
    model = models.BPE(vocabulary, pairs)
    cuts = make_pre_tokenizer("byte-bpe", specials, prefix_space)
    return assemble("byte-bpe", model, lowercase=False, specials=specials, pre_tokenizer=cuts)


def read_word_pieces(
    path: Path,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
) -> tokenizers.Tokenizer:
    """The tokenizer of BERT's `vocab.txt`: a piece a line, its id the number of the line.

    Accents are stripped with lowercasing, unless it is said otherwise.
    """
    pieces = _read_text(path, "vocabulary").removesuffix("\n").split("\n")
    vocabulary = {piece.removesuffix("\r"): number for number, piece in enumerate(pieces)}
    if len(vocabulary) < len(pieces):
        raise ValueError(f"vocabulary ({str(path)!r}) has a piece twice")
    for special in (BERT_UNKNOWN, BERT_FIRST, BERT_SEPARATOR):
        if special not in vocabulary:
            raise ValueError(f"vocabulary ({str(path)!r}) has no {special}")
    inner = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token=BERT_UNKNOWN))
    inner.normalizer = normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip_accents, handle_chinese_chars=split_chinese
    )
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece(prefix=CONTINUATION_PREFIX)
    inner.add_special_tokens([special for special in BERT_SPECIALS if special in vocabulary])
    inner.post_processor = between_marks(inner, BERT_FIRST, BERT_SEPARATOR)
    return inner


def add_tokens(
    inner: tokenizers.Tokenizer, added: Mapping[int, tokenizers.AddedToken]
) -> tokenizers.Tokenizer:
    """The tokenizer with tokens that were added to its table later, each under its id."""
    for number, token in sorted(added.items()):
        (inner.add_special_tokens if token.special else inner.add_tokens)([token])
        if inner.token_to_id(token.content) != number:
            raise ValueError(
                f"added token {token.content!r} cannot have the id {number}: the table and the "
                f"tokens added before it leave {inner.token_to_id(token.content)}"
            )
    return inner


def between_marks(
    inner: tokenizers.Tokenizer, first: str, separator: str
) -> processors.TemplateProcessing:
    """What puts [CLS] before a text and [SEP] behind it, and behind a second one."""
    return processors.TemplateProcessing(
        single=f"{first} $A {separator}",
        pair=f"{first} $A {separator} $B:1 {separator}:1",
        special_tokens=[(each, inner.token_to_id(each)) for each in (first, separator)],
    )


def _read_vocabulary(path: Path) -> dict[str, int]:
    try:
        vocabulary = json.loads(_read_text(path, "encoder"))
    except json.JSONDecodeError as reason:
        raise ValueError(f"encoder ({str(path)!r}) is not JSON: {reason}") from None
    is_table = isinstance(vocabulary, dict)
    if not is_table or sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError(f"encoder ({str(path)!r}) must map tokens to the ids 0, 1, 2, …")
    return vocabulary


def _read_merges(path: Path, vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    pairs = []
    for number, line in enumerate(_read_text(path, "merges").split("\n"), start=1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        left, blank, right = line.partition(" ")
        if not blank or not {left, right, left + right} <= vocabulary.keys():
            raise ValueError(
                f"merges ({str(path)!r}), line {number}: {line!r} must be two tokens "
                "whose join is a token too"
            )
        pairs.append((left, right))
    return pairs


def _read_text(path: Path, name: str) -> str:
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as reason:
        raise ValueError(f"{name} ({str(path)!r}) cannot be read: {reason}") from None
