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

from regard.text.config import TextConfig
from regard.text.counting import Fold, count_characters, count_words, rank_by_count
from regard.text.kinds import CONTINUATION_PREFIX, assemble, make_pre_tokenizer, make_word_splitter
from regard.text.specials import check_specials
from regard.text.unigram import estimate

_MAX_COPIES = 1000  # copies of a word that go to a trainer in one string


def train(
    lines: Iterable[str], config: TextConfig, specials: tuple[str, ...], unknown: str | None
) -> tokenizers.Tokenizer:
    """A tokenizer of the library's own, its specials first; the unknown is one of them, if any."""
    check_specials(specials)
    size_limit = config.vocabulary_size
    if size_limit is not None and size_limit <= len(specials):
        raise ValueError(
            f"vocabulary_size ({size_limit}) leaves no room beside {len(specials)} specials"
        )
    learn = {
        "word": _train_whole,
        "character": _train_whole,
        "bpe": _train_bpe,
        "byte-bpe": _train_bpe,
        "wordpiece": _train_wordpiece,
        "unigram": _train_unigram,
    }[config.kind]
    model = learn(lines, config, specials, unknown)
    inner = assemble(
        config.kind,
        model,
        lowercase=config.lowercase,
        specials=specials,
        pre_tokenizer=make_word_splitter(True) if config.split_punctuation else None,
    )
    size = inner.get_vocab_size()
    if size == len(specials):
        raise ValueError(
            "lines: there is no text to learn a vocabulary from, "
            f"or none that reaches minimum_count ({config.minimum_count})"
        )
    if size_limit is not None and size > size_limit:
        raise ValueError(
            f"vocabulary_size ({size_limit}) is too small: specials and single characters "
            f"of this corpus alone make {size}"
        )
    return inner


def _train_whole(
    lines: Iterable[str], config: TextConfig, specials: tuple[str, ...], unknown: str | None
) -> models.Model:
    """A vocabulary of words or characters: specials, then types by falling count."""
    count = count_words if config.kind == "word" else count_characters
    counts = count(lines, _folding(config))
    if config.split_punctuation:
        counts = _pre_tokenize(counts, make_word_splitter(True))
    # A corpus that writes `<unk>` for a word means the unknown by it, also when it is lowercased.
    reserved = {*specials, _folding(config)(unknown or "")}
    types = [token for token in rank_by_count(counts) if token not in reserved]
    chosen = [token for token in types if counts[token] >= config.minimum_count]
    if config.vocabulary_size is not None:
        chosen = chosen[: max(config.vocabulary_size - len(specials), 0)]
    left_out = types[len(chosen) :]
    if left_out and unknown is None:
        raise ValueError(
            f"vocabulary_size ({config.vocabulary_size}) and minimum_count "
            f"({config.minimum_count}) leave out {len(left_out)} of {len(types)} types, "
            f"such as {left_out[0]!r}, and no special has the role 'unknown' to stand for them"
        )
    vocabulary = _number_tokens([*specials, *chosen])
    if config.kind == "word":
        # A name no word has, when there is none: the library wants one.
        return models.WordLevel(vocabulary, unk_token=unknown or "")
    # Pieces that are never merged are characters, and need no regular expression to be found.
    return models.BPE(vocabulary, [], unk_token=unknown)


def _train_bpe(
    lines: Iterable[str], config: TextConfig, specials: tuple[str, ...], unknown: str | None
) -> models.Model:
    """Merge the most frequent neighbours, again and again: Sennrich et al. (2016), section 3.2;
    over bytes, Radford et al. (2019), section 2.2."""
    bytewise = config.kind == "byte-bpe"
    trainer = trainers.BpeTrainer(
        vocab_size=_vocabulary_size(config),
        min_frequency=config.minimum_count,
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if bytewise else [],
        show_progress=False,
    )
    inner = tokenizers.Tokenizer(models.BPE())
    if config.lowercase:
        inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = make_pre_tokenizer(config.kind, specials)
    inner.train_from_iterator(iter(lines), trainer)
    learned = json.loads(inner.to_str())["model"]
    merges = [tuple(pair) for pair in learned["merges"]]
    return models.BPE(learned["vocab"], merges, unk_token=None if bytewise else unknown)


def _train_wordpiece(
    lines: Iterable[str], config: TextConfig, specials: tuple[str, ...], unknown: str | None
) -> models.Model:
    """Word beginnings, and continuations under `##`: Schuster & Nakajima (2012), marked as in
    Devlin et al. (2019), section 3. Merged by count, as the library does."""
    counts = _pre_tokenize(
        count_words(lines, _folding(config)), make_pre_tokenizer("wordpiece", specials)
    )
    # Numbered beforehand, by name: equal counts are settled by number, and the trainer would number
    # them as its hash table turns them up.
    continued = [
        CONTINUATION_PREFIX + character for character in sorted(set(chain.from_iterable(counts)))
    ]
    trainer = trainers.WordPieceTrainer(
        vocab_size=_vocabulary_size(config),
        min_frequency=config.minimum_count,
        special_tokens=[*specials, *continued],
        continuing_subword_prefix=CONTINUATION_PREFIX,
        show_progress=False,
    )
    inner = tokenizers.Tokenizer(models.WordPiece(unk_token=unknown or ""))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.train_from_iterator(_repeat_words(counts), trainer)
    return models.WordPiece(inner.get_vocab(), unk_token=unknown or "")


def _train_unigram(
    lines: Iterable[str], config: TextConfig, specials: tuple[str, ...], unknown: str | None
) -> models.Model:
    """Pieces with probabilities, by expectation-maximisation: see `unigram`."""
    counts = _pre_tokenize(
        count_words(lines, _folding(config)), make_pre_tokenizer("unigram", specials)
    )
    size = _vocabulary_size(config) - len(specials)
    pieces = estimate(counts, size, max(config.minimum_count, 2)) if counts else []
    scored = [(special, 0.0) for special in specials] + pieces
    return models.Unigram(scored, None if unknown is None else specials.index(unknown))


def _pre_tokenize(words: Counter[str], cut: pre_tokenizers.PreTokenizer | None) -> Counter[str]:
    """Words as the model will meet them: each type goes through the cuts once."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for piece, _ in cut.pre_tokenize_str(word) if cut else [(word, None)]:
            counts[piece] += count
    return counts


def _repeat_words(counts: Counter[str]) -> Iterator[str]:
    """Each word as often as it was seen, since the trainer counts for itself."""
    for word, count in sorted(counts.items()):
        whole, rest = divmod(count, _MAX_COPIES)
        for times in [_MAX_COPIES] * whole + [rest]:
            yield f"{word} " * times


def _folding(config: TextConfig) -> Fold:
    """Lowercasing, or nothing."""
    # The library's lowercasing, not Python's: they disagree about Σ at the end of a word.
    return normalizers.Lowercase().normalize_str if config.lowercase else str


def _vocabulary_size(config: TextConfig) -> int:
    """How many tokens a kind of pieces is to have."""
    assert config.vocabulary_size is not None  # the config refuses it for pieces
    return config.vocabulary_size


def _number_tokens(tokens: list[str]) -> dict[str, int]:
    """Token → id, in their order."""
    return {token: number for number, token in enumerate(tokens)}
