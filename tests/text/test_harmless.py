"""A tokenizer from a stranger takes what it is given, and not the process or the memory."""

import base64
import json

import pytest
import tokenizers
from tokenizers import normalizers, pre_tokenizers

from regard.text import Tokenizer
from regard.text.harmless import refuse_harmful


@pytest.fixture
def state(trained):
    """The parts of a tokenizer, to be changed."""
    return json.loads(trained("bpe", ["the cat sees a dog"] * 3, ("unknown", "end")).to_json())


def refused(state, words):
    with pytest.raises(ValueError, match=words) as told:
        Tokenizer.from_json(state if isinstance(state, str) else json.dumps(state))
    assert "\n" not in str(told.value)


def replacing(piece, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: piece}, "content": content}


def splitting(kind, pattern):
    how = {"behavior": "Isolated", "invert": False}
    return {"type": "Split", "pattern": {kind: pattern}, **how}


def sequence(name, *steps):
    return {"type": "Sequence", name: list(steps)}


# Each of these ends the process, by a panic or for want of memory, once the library has it.
CHARSMAP = base64.b64encode(b"\xff\xff\xff\xff" + bytes(8)).decode()
DEADLY = {
    "a table of characters": ("normalizer", {"type": "Precompiled", "precompiled_charsmap": ""}),
    "a large one": ("normalizer", {"type": "Precompiled", "precompiled_charsmap": CHARSMAP}),
    "pieces of no length": ("pre_tokenizer", {"type": "FixedLength", "length": 0}),
    "more taken off than there is": (
        "decoder",
        {"type": "Strip", "content": "a", "start": 1, "stop": 5},
    ),
    "doubling again and again": (
        "normalizer",
        sequence("normalizers", *[replacing("a", "aa")] * 40),
    ),
    "doubling within": (
        "normalizer",
        sequence("normalizers", sequence("normalizers", *[replacing("a", "aa")] * 40)),
    ),
    "doubling what is said": ("decoder", sequence("decoders", *[replacing("a", "aa")] * 40)),
    "something for nothing": ("normalizer", replacing("", "aa")),
    "something for anything": ("normalizer", replacing(".", "aaaa", kind="Regex")),
    "a long beginning": ("normalizer", {"type": "Prepend", "prepend": "a" * 10**6}),
    "many steps": ("normalizer", sequence("normalizers", *[{"type": "ByteLevel"}] * 40)),
    "years of going back": ("pre_tokenizer", splitting("Regex", "(a+)+$")),
    "years of either or": ("pre_tokenizer", splitting("Regex", "(a|a)" * 40 + "$")),
    "years of perhaps": ("pre_tokenizer", splitting("Regex", "a?" * 40 + "a" * 40)),
    "what was there before": ("pre_tokenizer", splitting("Regex", r"a\1")),
}


@pytest.mark.parametrize("name", DEADLY)
def test_a_part_that_could_do_harm_is_refused_before_the_library_has_it(name, state, monkeypatch):
    place, part = DEADLY[name]
    monkeypatch.setattr(tokenizers.Tokenizer, "from_str", lambda text: pytest.fail("it has it"))
    refused(state | {place: part}, rf"^{place} ")


def test_a_mark_that_merges_need_not_have_is_refused(state):
    state["model"]["continuing_subword_prefix"] = "longer than any token"
    refused(state, r"^model \('BPE'\)")


NO_PARTS = [
    (3, "^a part must be a table, and '3' is none"),
    ([], r"^a part must be a table, and '\[\]' is none"),
    ("Lowercase", "^a part must be a table, and 'Lowercase' is none"),
    ({}, r"^normalizer \('None'\) is not one of Lowercase"),
    ({"type": 3}, r"^normalizer \('3'\) is not one of Lowercase"),
    ({"type": "Sequence"}, "^a sequence must have one list of parts"),
]


@pytest.mark.parametrize(("part", "message"), NO_PARTS)
def test_what_is_no_part_is_said_in_one_line(part, message, state):
    refused(state | {"normalizer": part}, message)


@pytest.mark.parametrize("place", ["normalizer", "pre_tokenizer", "post_processor", "decoder"])
def test_every_part_of_a_file_is_looked_at(place, state):
    refused(state | {place: {"type": "Magic"}}, rf"^{place} \('Magic'\) is not one of")


@pytest.mark.parametrize("depth", [100, 900, 200_000])
def test_a_tokenizer_nested_too_deeply_is_said_in_one_line(depth, state):
    refused("[" * depth + "]" * depth, "nested too deeply|not a table of parts")
    part = {"type": "Lowercase"}
    for _ in range(min(depth, 200)):
        part = sequence("normalizers", part)
    refused(state | {"normalizer": part}, "nested too deeply|recursion limit")


def test_what_is_read_is_what_was_checked(state):
    """A second table under the same name would be the library's, and the first the checker's."""
    text = json.dumps(state)
    twice = text[:-1] + ', "normalizer": {"type": "Lowercase"}}'
    twice = twice.replace("{", '{"normalizer": {"type": "Precompiled"}, ', 1)
    assert Tokenizer.from_json(twice).encode("THE CAT").ids == (
        Tokenizer.from_json(json.dumps(state | {"normalizer": {"type": "Lowercase"}}))
        .encode("THE CAT")
        .ids
    )


@pytest.mark.parametrize("kind", ["word", "character", "wordpiece"])
@pytest.mark.parametrize("number", [4_294_967_295, 40_000_000])
def test_a_vocabulary_of_a_few_words_and_billions_of_ids_is_refused(kind, number, every):
    state = json.loads(every[kind].to_json())
    state["model"]["vocab"][max(state["model"]["vocab"])] = number
    refused(state, r"^model \(")


def test_a_vocabulary_with_a_few_holes_is_read(trained):
    state = json.loads(trained("word", ["the cat"], ("unknown",)).to_json())
    state["model"]["vocab"]["cat"] = 7
    made = Tokenizer.from_json(json.dumps(state))
    assert (made.size, made.tokens_of([7, 6])) == (8, ["cat", ""])


PUBLISHED = {
    "bert": {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    },
    "llama": {
        "normalizer": sequence(
            "normalizers", {"type": "Prepend", "prepend": "▁"}, replacing(" ", "▁")
        ),
        "decoder": sequence(
            "decoders",
            replacing("▁", " "),
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ),
    },
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_parts_of_published_tokenizers_are_allowed(name, state):
    text = json.dumps(state | PUBLISHED[name])
    made = Tokenizer.from_json(text)
    theirs = tokenizers.Tokenizer.from_str(text)
    ids = made.encode("the cat sees").ids
    assert ids == theirs.encode("the cat sees", add_special_tokens=False).ids
    assert made.decode(ids) == theirs.decode(ids)


@pytest.mark.parametrize("special", ["<*>", "a\\1", "(x)+", "<|end|>", "{0}", "[?]", "é∀…"])
def test_specials_of_any_spelling_are_no_harm(special, trained):
    made = trained("bpe", specials=("<unk>", special))
    assert Tokenizer.from_json(made.to_json()).to_json() == made.to_json()


def test_what_the_library_itself_gives_up_on_is_said_in_one_line(state, monkeypatch):
    class PanicException(BaseException):  # as the library's own is called
        pass

    def panic(text):
        raise PanicException("index out of bounds")

    monkeypatch.setattr(tokenizers.Tokenizer, "from_str", panic)
    refused(state, "the library gives up on it: index out of bounds")


def test_whoever_presses_control_c_is_heard(state, monkeypatch):
    def pressed(text):
        raise KeyboardInterrupt

    monkeypatch.setattr(tokenizers.Tokenizer, "from_str", pressed)
    with pytest.raises(KeyboardInterrupt):
        Tokenizer.from_json(json.dumps(state))


def test_a_tokenizer_of_our_own_passes_unchanged(every):
    for made in every.values():
        assert json.loads(refuse_harmful(made.to_json())) == json.loads(made.to_json())


def test_other_harmless_parts_are_allowed(state):
    inner = tokenizers.Tokenizer.from_str(json.dumps(state))
    inner.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(), pre_tokenizers.Punctuation(), pre_tokenizers.Whitespace()]
    )
    assert Tokenizer.from_json(inner.to_str()).encode("the cat").ids == inner.encode("the cat").ids
