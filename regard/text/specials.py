"""The tokens that stand for no piece of text, each spelled in this one place."""

import re

from tokenizers import Regex

PAD = "<pad>"
UNKNOWN = "<unk>"
START = "<s>"
END = "</s>"
MASK = "<mask>"
SEPARATOR = "<sep>"
CLASS = "<cls>"


def check_specials(specials: tuple[str, ...]) -> None:
    """Refuse specials that text could be mistaken for, or that would share an id."""
    for special in specials:
        if len(special) < 2 or any(character.isspace() for character in special):
            raise ValueError(
                f"specials ({special!r}): a special has two characters or more and no blanks, "
                f"as in {START!r}: one character could not be told from the text's own"
            )
    twice = sorted({special for special in specials if specials.count(special) > 1})
    if twice:
        raise ValueError(f"specials ({', '.join(specials)}): {twice[0]!r} is declared twice")


def first_character_pattern(specials: tuple[str, ...]) -> Regex:
    """A pattern that finds the first character of every special that a text happens to spell out.

    Cut behind it, a text may say `<s>` and no piece of it can grow into the special: what a user
    writes never opens or ends a sentence.
    """
    spelled = (f"{re.escape(name[0])}(?={re.escape(name[1:])})" for name in specials)
    return Regex("|".join(spelled))
