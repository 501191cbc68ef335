"""The [text] section of a recipe: how strings become tokens."""

from dataclasses import dataclass, fields

from regard.naming import suggest
from regard.text.roles import check_roles
from regard.text.specials import check_specials

WHOLE_KINDS = ("word", "character")  # their vocabulary is what they saw
PIECE_KINDS = ("bpe", "byte-bpe", "wordpiece", "unigram")  # theirs is as large as one asks
KINDS = WHOLE_KINDS + PIECE_KINDS


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """Which pieces a text is cut into, and how many different ones there are."""

    kind: str = "word"  # or "character", "bpe", "byte-bpe", "wordpiece", "unigram"
    # With the specials; words and characters may leave it out, and every one seen is kept.
    vocabulary_size: int | None = None
    minimum_count: int = 1  # that a word, a character or a merged piece must reach to be kept
    lowercase: bool = False
    split_punctuation: bool = False  # kind word: marks are words of their own
    specials: tuple[str, ...] | None = None  # all special tokens, instead of those of the task
    # How the special of a role is spelled, as {"mask": "[BLANK]"}, also of roles the task has not.
    roles: dict[str, str] | None = None
    from_run: str | None = None  # a run folder or a tokenizer.json, in place of all other keys

    def __post_init__(self) -> None:
        if self.from_run is not None:
            self._check_alone()
        if self.kind not in KINDS:
            raise ValueError(f"kind ({self.kind!r}) is not known; {suggest(self.kind, KINDS)}")
        if self.vocabulary_size is None and self.kind in PIECE_KINDS:
            raise ValueError(
                f"vocabulary_size (None) must be given for kind {self.kind!r}: "
                "it decides how far pieces are merged"
            )
        if self.vocabulary_size is not None and self.vocabulary_size < 1:
            raise ValueError(f"vocabulary_size ({self.vocabulary_size}) must be 1 or more")
        if self.split_punctuation and self.kind != "word":
            raise ValueError(
                f"split_punctuation (True) is for kind 'word': {self.kind!r} finds its own pieces"
            )
        if self.minimum_count < 1:
            raise ValueError(f"minimum_count ({self.minimum_count}) must be 1 or more")
        if self.specials is not None:
            check_specials(self.specials)
        if self.roles is not None:
            check_roles(self.roles)
            # One special may play several.
            check_specials(tuple(dict.fromkeys(self.roles.values())))

    def _check_alone(self) -> None:
        """Refuse settings beside `from`: the words are as the other run has them."""
        for field in fields(self):
            if field.name != "from_run" and getattr(self, field.name) != field.default:
                raise ValueError(
                    f"from ({self.from_run!r}) brings its own words: {field.name} "
                    f"({getattr(self, field.name)!r}) does not go with it"
                )
