"""A vocabulary from a corpus, for each kind: one pass over the lines, one corpus one file.

The library's trainers of BPE give the same merges every time. Its other trainers let the order of
a hash table settle ties, so words and characters are ranked here, WordPiece's symbols are numbered
before they meet the trainer, and the unigram model is estimated here.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

from .config import TextConfig
from .counting import Fold, count_characters, count_words, ranked
from .kinds import CONTINUED, assembled, pre_tokenizer
from .specials import check
from .unigram import estimate

_AT_ONCE = 1000  # copies of a word that go to a trainer in one string


def train(
    lines: Iterable[str], config: TextConfig, specials: tuple[str, ...], unknown: str | None
) -> tokenizers.Tokenizer:
    """A tokenizer of the library's own, its specials first; the unknown is one of them, if any."""
    check(specials)
    asked = config.vocabulary_size
    if asked is not None and asked <= len(specials):
        raise ValueError(
            f"vocabulary_size ({asked}) leaves no room beside {len(specials)} specials"
        )
    learn = {
        "word": _whole,
        "character": _whole,
        "bpe": _bpe,
        "byte-bpe": _bpe,
        "wordpiece": _wordpiece,
        "unigram": _unigram,
    }[config.kind]
    model = learn(lines, config, specials, unknown)
    inner = assembled(config.kind, model, lowercase=config.lowercase, specials=specials)
    size = inner.get_vocab_size()
    if size == len(specials):
        raise ValueError(
            "lines: there is no text to learn a vocabulary from, "
            f"or none that reaches minimum_count ({config.minimum_count})"
        )
    if asked is not None and size > asked:
        raise ValueError(
            f"vocabulary_size ({asked}) is too small: specials and single characters "
            f"of this corpus alone make {size}"
        )
    return inner


def _whole(
    lines: Iterable[str], config: TextConfig, specials: tuple[str, ...], unknown: str | None
) -> models.Model:
    """Specials, then types by falling count."""
    count = count_words if config.kind == "word" else count_characters
    counts = count(lines, _fold(config))
    # A corpus that writes `<unk>` for a word means the unknown by it, also when it is lowercased.
    spoken_for = {*specials, _fold(config)(unknown or "")}
    types = [token for token in ranked(counts) if token not in spoken_for]
    kept = [token for token in types if counts[token] >= config.minimum_count]
    if config.vocabulary_size is not None:
        kept = kept[: max(config.vocabulary_size - len(specials), 0)]
    if len(kept) < len(types) and unknown is None:
        raise ValueError(
            f"vocabulary_size ({config.vocabulary_size}) and minimum_count "
            f"({config.minimum_count}) leave out {len(types) - len(kept)} of {len(types)} types, "
            f"such as {types[len(kept)]!r}, and no special has the role 'unknown' to stand for them"
        )
    vocabulary = _numbered([*specials, *kept])
    if config.kind == "word":
        # A name no word has, when there is none: the library wants one.
        return models.WordLevel(vocabulary, unk_token=unknown or "")
    # Pieces that are never merged are characters, and need no regular expression to be found.
    return models.BPE(vocabulary, [], unk_token=unknown)


def _bpe(
    lines: Iterable[str], config: TextConfig, specials: tuple[str, ...], unknown: str | None
) -> models.Model:
    """Merge the most frequent neighbours, again and again: Sennrich et al. (2016), section 3.2;
    over bytes, Radford et al. (2019), section 2.2."""
    bytewise = config.kind == "byte-bpe"
    trainer = trainers.BpeTrainer(
        vocab_size=_room(config),
        min_frequency=config.minimum_count,
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if bytewise else [],
        show_progress=False,
    )
    inner = tokenizers.Tokenizer(models.BPE())
    if config.lowercase:
        inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizer(config.kind, specials)
    inner.train_from_iterator(iter(lines), trainer)
    learned = json.loads(inner.to_str())["model"]
    merges = [tuple(pair) for pair in learned["merges"]]
    return models.BPE(learned["vocab"], merges, unk_token=None if bytewise else unknown)


def _wordpiece(
    lines: Iterable[str], config: TextConfig, specials: tuple[str, ...], unknown: str | None
) -> models.Model:
    """Word beginnings, and continuations under `##`: Schuster & Nakajima (2012), marked as in
    Devlin et al. (2019), section 3. Merged by count, as the library does."""
    counts = _spelled(count_words(lines, _fold(config)), pre_tokenizer("wordpiece", specials))
    # Numbered beforehand, by name: equal counts are settled by number, and the trainer would number
    # them as its hash table turns them up.
    continued = [CONTINUED + character for character in sorted(set(chain.from_iterable(counts)))]
    trainer = trainers.WordPieceTrainer(
        vocab_size=_room(config),
        min_frequency=config.minimum_count,
        special_tokens=[*specials, *continued],
        continuing_subword_prefix=CONTINUED,
        show_progress=False,
    )
    inner = tokenizers.Tokenizer(models.WordPiece(unk_token=unknown or ""))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.train_from_iterator(_copies(counts), trainer)
    return models.WordPiece(inner.get_vocab(), unk_token=unknown or "")


def _unigram(
    lines: Iterable[str], config: TextConfig, specials: tuple[str, ...], unknown: str | None
) -> models.Model:
    counts = _spelled(count_words(lines, _fold(config)), pre_tokenizer("unigram", specials))
    room = _room(config) - len(specials)
    pieces = estimate(counts, room, max(config.minimum_count, 2)) if counts else []
    scored = [(special, 0.0) for special in specials] + pieces
    return models.Unigram(scored, None if unknown is None else specials.index(unknown))


def _spelled(words: Counter[str], cut: pre_tokenizers.PreTokenizer | None) -> Counter[str]:
    """Words as the model will meet them: each type goes through the cuts once."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for piece, _ in cut.pre_tokenize_str(word) if cut else [(word, None)]:
            counts[piece] += count
    return counts


def _copies(counts: Counter[str]) -> Iterator[str]:
    """The trainer counts for itself, so it is told each word as often as it was seen."""
    for word, count in sorted(counts.items()):
        whole, rest = divmod(count, _AT_ONCE)
        for times in [_AT_ONCE] * whole + [rest]:
            yield f"{word} " * times


def _fold(config: TextConfig) -> Fold:
    # The library's lowercasing, not Python's: they disagree about Σ at the end of a word.
    return normalizers.Lowercase().normalize_str if config.lowercase else str


def _room(config: TextConfig) -> int:
    assert config.vocabulary_size is not None  # the config refuses it for pieces
    return config.vocabulary_size


def _numbered(tokens: list[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}
