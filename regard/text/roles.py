"""What each special token is for, whatever its spelling.

Where several sources speak of a role, the first of these wins:

1. what is given: `roles` of a call, `text.roles` of a recipe;
2. Hugging Face's `special_tokens_map.json` or `tokenizer_config.json`, if handed in;
3. the tokenizer file itself: a role that was declared when it was saved, the token its model writes
   for what it does not know, the [CLS] and [SEP] of BERT's and RoBERTa's post-processor;
4. a known spelling (`SPELLINGS`), among tokens that the file declares special.

The unknown is decided by the model alone, if it has one: no name changes what it writes.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Any

from tokenizers import processors

from regard.naming import suggest
from regard.text.kinds import ROLE_PREFIX, State, declared_specials, specials_of, unknown_of
from regard.text.specials import CLASS, END, MASK, PAD, SEPARATOR, START, UNKNOWN

ROLES = ("pad", "unknown", "start", "end", "mask", "separator", "class")

# The first of each is the spelling of tokenizers trained here. BERT, Llama, Gemma, CLIP, Llama 3
# and GPT-2, whose one token both starts and ends a text, have the others.
SPELLINGS = {
    "pad": (PAD, "[PAD]", "<|pad|>", "<|padding|>"),
    "unknown": (UNKNOWN, "[UNK]", "<|unk|>"),
    "start": (START, "[BOS]", "<bos>", "<|startoftext|>", "<|begin_of_text|>", "<|endoftext|>"),
    "end": (END, "[EOS]", "<eos>", "<|endoftext|>", "<|end_of_text|>"),
    "mask": (MASK, "[MASK]", "<|mask|>"),
    "separator": (SEPARATOR, "[SEP]"),
    "class": (CLASS, "[CLS]"),
}
HUGGING_FACE = {
    "pad_token": "pad",
    "unk_token": "unknown",
    "bos_token": "start",
    "eos_token": "end",
    "mask_token": "mask",
    "sep_token": "separator",
    "cls_token": "class",
}


def check_roles(names: Iterable[str]) -> None:
    """Refuse what is no role, with the nearest name that is one."""
    for name in names:
        if name not in ROLES:
            raise ValueError(f"role ({name!r}) is not one of the roles: {suggest(name, ROLES)}")


def find_by_spelling(role: str, specials: Container[str]) -> str | None:
    """The special whose spelling is known for a role."""
    return next((spelling for spelling in SPELLINGS[role] if spelling in specials), None)


def choose_specials(
    roles: Iterable[str], spellings: tuple[str, ...] | None, given: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The specials of a tokenizer to be trained, in the order of their ids, and who plays what.

    Each role of the task has the spelling given for it, else the usual one; `spellings` replace
    them all. Roles that were given and not asked for come behind.
    """
    if spellings is None:
        chosen = {role: given.get(role, SPELLINGS[role][0]) for role in roles} | dict(given)
        return tuple(dict.fromkeys(chosen.values())), chosen
    specials = tuple(dict.fromkeys((*spellings, *given.values())))
    known = {role: token for role in ROLES if (token := find_by_spelling(role, specials))}
    return specials, known | dict(given)


def roles_from_hugging_face(mapping: Mapping[str, Any]) -> dict[str, str]:
    """Role → spelling, as a `special_tokens_map.json` or `tokenizer_config.json` tells them.

    A token is a string or an object with its `content`; other keys of the file are passed over.
    """
    found = {}
    for key, role in HUGGING_FACE.items():
        token = mapping.get(key)
        if token is None:
            continue
        spelling = token.get("content") if isinstance(token, Mapping) else token
        if not isinstance(spelling, str):
            raise ValueError(f"{key} ({token!r}) must be a string, or have one as its content")
        found[role] = spelling
    return found


def find_roles(
    state: State,
    ids: Mapping[str, int],
    given: Mapping[str, str],
    mapped: Mapping[str, str],
) -> dict[str, str]:
    """Role → spelling for a tokenizer file with these ids, in the order of `ROLES`.

    What is given must be in the vocabulary; a map may name tokens that the file lacks.
    """
    check_roles(given)
    for role, spelling in given.items():
        if spelling not in ids:
            raise ValueError(f"roles: {role} ({spelling!r}) is not in the tokenizer's vocabulary")
    specials = specials_of(state) & ids.keys()
    declared = {role: token for role, token in _declared_roles(state).items() if token in ids}
    mapped = {role: token for role, token in mapped.items() if token in ids}
    known = {role: token for role in ROLES if (token := find_by_spelling(role, specials))}
    found = {**known, **declared, **mapped, **given}
    unknown = unknown_of(state)
    if unknown is not None:
        if given.get("unknown", unknown) != unknown:
            raise ValueError(
                f"roles: unknown ({given['unknown']!r}) must be {unknown!r}, which the "
                "tokenizer's model writes for what it does not know"
            )
        found["unknown"] = unknown
    return {role: found[role] for role in ROLES if role in found}


def declare_roles(
    after: processors.PostProcessor | None, roles: Mapping[str, str], ids: Mapping[str, int]
) -> processors.PostProcessor:
    """A post-processor that does what `after` does and stores the roles for the file's next reader.

    A template may declare specials that it never puts anywhere, so the library reads the file as
    before.
    """
    specials = [
        {"id": ROLE_PREFIX + role, "ids": [ids[token]], "tokens": [token]}
        for role, token in roles.items()
    ]
    declaring = processors.TemplateProcessing(single="$A", pair="$A $B:1", special_tokens=specials)
    # First: a template numbers the texts of a pair anew, and theirs has the last word on that.
    return declaring if after is None else processors.Sequence([declaring, after])


def _declared_roles(state: State) -> dict[str, str]:
    """The roles that a tokenizer file itself declares, the outermost first."""
    found: dict[str, str] = {}
    for name, token in declared_specials(state):
        if name.startswith(ROLE_PREFIX):
            found.setdefault(name.removeprefix(ROLE_PREFIX), token)
    return found
