import json
import tracemalloc

import pytest
import tokenizers
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from regard.text import END, KINDS, PAD, START, UNKNOWN, TextConfig, Tokenizer

WORLD = "İI ßẞ e\u0301te\u0301 👩\u200d👩\u200d👧 漢字 سلام\u200cها"
WORDS = ["the", "dog", "barks", "at", "newest", "straße", "漢字", "barking,", "and", "İstanbul:"]


@given(st.text())
def test_bytes_give_back_every_string(every, text):
    made = every["byte-bpe"]
    assert made.decode(made.encode(text).ids) == text


@given(st.text())
def test_characters_give_back_every_string_they_know(trained, text):
    made = trained("character", [text + "."], ("start", "end"))
    assert made.decode(made.encode(text).ids) == text


@given(st.lists(st.sampled_from(WORDS)), st.sampled_from(KINDS))
def test_words_of_the_corpus_come_back_joined_by_single_blanks(every, words, kind):
    made = every[kind]
    text = "   ".join(words)
    decoded = made.decode(made.encode(text).ids)
    assert decoded.split() == words
    if kind not in ("character", "byte-bpe"):
        assert decoded == " ".join(words)


@pytest.mark.parametrize("kind", ["bpe", "byte-bpe", "character", "unigram"])
def test_a_special_that_a_text_spells_out_is_text(corpus, trained, kind):
    made = trained(kind, [*corpus, "a <s>bold</s> <unk> <pad>"])
    text = "a <s>bold</s> <unk> <pad>"
    assert made.decode(made.encode(text).ids) == text


def test_a_word_spelled_like_the_unknown_is_the_unknown_and_no_other_special_is_read(every):
    made = every["word"]
    encoded = made.encode("the <unk> dog </s> <s> <pad>")
    the, dog, unknown = made.id_of("the"), made.id_of("dog"), made.unknown
    assert encoded.ids == [the, unknown, dog, unknown, unknown, unknown]
    assert encoded.offsets == [(0, 3), (4, 9), (10, 13), (14, 18), (19, 22), (23, 28)]


def test_a_word_spelled_like_a_special_is_refused_when_nothing_stands_for_it(trained):
    made = trained("word", ["the dog </s>"], ("end",))
    with pytest.raises(ValueError, match="the word '</s>' at position 4 is not in the vocabulary"):
        made.encode("the </s>")


@settings(deadline=None)
@given(text=st.text(), kind=st.sampled_from(KINDS))
@pytest.mark.parametrize("lowercase", [False, True])
def test_the_library_reads_the_file_and_gives_the_same_ids(trained, lowercase, text, kind):
    # The library reads a word spelled like a special as that special.
    assume(kind != "word" or not {PAD, START, END}.intersection(text.lower().split()))
    made = trained(kind, lowercase=lowercase)
    theirs = tokenizers.Tokenizer.from_str(made.to_json())
    assert theirs.encode(text).ids == made.encode(text).ids


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_tokenizer_is_all_there_when_loaded(corpus, every, kind, tmp_path):
    made = every[kind]
    made.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert loaded.kind == kind
    assert loaded.specials == (PAD, UNKNOWN, START, END)
    assert (loaded.pad, loaded.unknown, loaded.start, loaded.end) == (0, 1, 2, 3)
    assert loaded.to_json() == made.to_json()
    for line in [*corpus, "<unk> nowhere 12"]:
        assert loaded.encode(line).ids == made.encode(line).ids == theirs.encode(line).ids


def surface(token: str) -> str:
    return token.removeprefix("##").removeprefix("▁")


@pytest.mark.parametrize("kind", ["word", "character", "bpe", "wordpiece", "unigram"])
def test_offsets_point_at_what_a_token_shows(corpus, trained, kind):
    text = f"  the dogs\tare {WORLD}  barking "
    encoded = trained(kind, [*corpus, WORLD]).encode(text)
    assert UNKNOWN not in encoded.tokens or kind == "character"
    for token, (start, end) in zip(encoded.tokens, encoded.offsets, strict=True):
        if token != UNKNOWN:
            assert text[start:end] == surface(token)


@pytest.mark.parametrize("kind", ["word", "bpe", "wordpiece", "unigram"])
def test_offsets_cover_every_character_that_is_no_blank(corpus, trained, kind):
    text = f" {WORLD}  the dogs"
    encoded = trained(kind, [*corpus, WORLD]).encode(text)
    covered = {place for start, end in encoded.offsets for place in range(start, end)}
    assert covered == {place for place, character in enumerate(text) if not character.isspace()}


@pytest.mark.parametrize("kind", ["word", "character", "bpe", "wordpiece", "unigram"])
def test_offsets_point_into_the_raw_text_also_when_it_was_lowercased(corpus, trained, kind):
    text = f"{WORLD} THE İDOGS"
    encoded = trained(kind, [*corpus, text, "i̇ i̇dogs"], lowercase=True).encode(text)
    lowered = "".join(surface(token) for token in encoded.tokens)
    assert lowered.replace(" ", "") == text.lower().replace(" ", "")
    for token, (start, end) in zip(encoded.tokens, encoded.offsets, strict=True):
        assert surface(token) in text[start:end].lower()


def test_one_letter_that_becomes_two_characters_is_one_place(trained):
    made = trained("character", ["İ"], (), lowercase=True)
    encoded = made.encode("İİ")
    assert encoded.tokens == ["i", "\u0307", "i", "\u0307"]
    assert encoded.offsets == [(0, 1), (0, 1), (1, 2), (1, 2)]


def test_the_bytes_of_a_letter_share_its_place(trained):
    made = trained("byte-bpe", ["x"], (), vocabulary_size=256)
    encoded = made.encode("a漢 👧")
    assert encoded.offsets == [(0, 1), *[(1, 2)] * 3, (2, 3), *[(3, 4)] * 4]


def test_a_mark_alone_takes_no_place_in_the_text(trained):
    made = trained("bpe", ["b"], ("unknown",))
    encoded = made.encode(" x ▁b")
    assert encoded.tokens == ["▁", UNKNOWN, "▁b"]
    assert encoded.offsets == [(1, 1), (1, 2), (3, 5)]


@pytest.mark.parametrize("kind", KINDS)
def test_many_texts_are_encoded_as_each_alone(corpus, every, kind, monkeypatch):
    monkeypatch.setattr("regard.text.tokenizer._MAX_BATCH_TEXTS", 3)
    monkeypatch.setattr("regard.text.tokenizer._MAX_BATCH_CHARACTERS", 61)
    made = every[kind]
    texts = ["", *corpus, "", *corpus, WORLD]
    together = list(made.encode_all(iter(texts)))
    assert [encoded.text for encoded in together] == texts
    assert [encoded.ids for encoded in together] == [made.encode(text).ids for text in texts]
    assert [e.offsets for e in together] == [made.encode(text).offsets for text in texts]
    assert [len(encoded) for encoded in together] == [len(e.tokens) for e in together]


def test_a_stream_without_end_is_encoded_while_it_comes(every):
    def forever():
        while True:
            yield "the dog"

    first = next(every["word"].encode_all(forever()))
    assert first.tokens == ["the", "dog"]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_nothing(every, kind):
    made = every[kind]
    assert (made.encode("").ids, made.encode("").offsets, made.decode([])) == ([], [], "")


@pytest.mark.parametrize("kind", KINDS)
def test_encoding_adds_no_specials_and_decoding_leaves_them_out(every, kind):
    made = every[kind]
    ids = made.encode("the dog").ids
    assert not set(ids) & {made.pad, made.start, made.end, made.unknown}
    assert made.decode([made.start, *ids, made.end, made.pad, made.pad]) == "the dog"


def test_specials_that_were_not_declared_have_no_id(trained):
    made = trained("word", ["a <s> b"], ("unknown",))
    assert (made.pad, made.unknown, made.start, made.end) == (None, 0, None, None)
    assert made.encode("<s>").tokens == ["<s>"]
    assert made.decode(made.encode("a <s>").ids) == "a <s>"


def test_ids_and_tokens_name_each_other(every):
    made = every["word"]
    assert made.tokens_of([0, 1, 2, 3]) == [PAD, UNKNOWN, START, END]
    assert made.id_of("the") == 4
    assert made.id_of("nowhere") is None


@pytest.mark.parametrize("wrong", [-1, 1000, 2**40])
def test_an_id_beyond_the_vocabulary_is_refused(every, wrong):
    made = every["word"]
    for read in (made.decode, made.tokens_of):
        with pytest.raises(ValueError, match=rf"ids: {wrong} is not in the vocabulary, 0 to \d+"):
            read([4, wrong])


@pytest.mark.parametrize("kind", ["character", "bpe", "wordpiece", "unigram"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_an_unknown_character_is_named_with_its_place_when_nothing_stands_for_it(
    corpus, trained, kind, lowercase
):
    made = trained(kind, corpus, ("end",), lowercase=lowercase)
    assert made.decode(made.encode("the dogs").ids) == "the dogs"
    with pytest.raises(ValueError, match="the character 'Ж' at position 4 is not in the vocab"):
        made.encode("the ЖЖ")
    with pytest.raises(ValueError, match="the character 'Ж' at position 4 is not in the vocab"):
        list(made.encode_all(["the dog", "the Ж"]))


def test_an_unknown_word_is_named_with_its_place_when_nothing_stands_for_it(trained):
    made = trained("word", ["the dog <unk>"], ("end",))
    with pytest.raises(ValueError, match="the word 'cat' at position 4 is not in the vocabulary"):
        made.encode("the cat")


def test_a_word_too_long_for_wordpiece_is_refused_when_nothing_stands_for_it(corpus, trained):
    made = trained("wordpiece", corpus, ("end",))
    with pytest.raises(ValueError, match="the word at position 4 has 101 characters; above 100"):
        made.encode("the " + "r" * 101)
    assert made.decode(made.encode("r" * 100).ids) == "r" * 100


def test_half_a_character_is_refused_with_its_place(every):
    for kind in KINDS:
        with pytest.raises(ValueError, match=r"U\+D800 at position 3 is half a character"):
            every[kind].encode("dog\ud800")


def test_a_file_appears_whole_or_not_at_all(every, tmp_path, monkeypatch):
    path = tmp_path / "tokenizer.json"
    every["word"].save(path)
    before = path.read_bytes()

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        every["bpe"].save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "content", ["", "{", "{}", "[1, 2]", '{"model": {"type": "Magic"}}', "\x00"]
)
def test_what_is_no_tokenizer_is_said_in_one_line(content, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"tokenizer\.json'\) is no tokenizer\.json: .+") as told:
        Tokenizer.load(path)
    assert "\n" not in str(told.value)


def test_a_missing_file_is_named(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ValueError, match=r"must be a tokenizer\.json: there is no such file"):
            Tokenizer.load(path)


def test_a_file_from_elsewhere_keeps_its_own_specials_and_is_not_cut_short(tmp_path):
    words = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "a": 3, "##b": 4}
    theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece(words, unk_token="[UNK]"))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    theirs.add_special_tokens(["[PAD]", "[UNK]", "[CLS]"])
    theirs.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", 2)]
    )
    theirs.enable_truncation(2)
    theirs.enable_padding(length=5, pad_id=0, pad_token="[PAD]")
    theirs.save(str(tmp_path / "tokenizer.json"))
    made = Tokenizer.load(tmp_path / "tokenizer.json")
    assert (made.kind, made.specials) == ("wordpiece", ("[PAD]", "[UNK]", "[CLS]"))
    assert made.roles == {"pad": 0, "unknown": 1, "class": 2}
    assert made.encode("ab a x").ids == [3, 4, 3, 1]
    assert made.encode("[CLS] a").ids == [1, 1, 1, 3]  # [, CLS, ]


def test_a_long_text_of_characters_takes_little_more_than_its_ids(trained):
    made = trained("character", ["abc "], ("end",))
    text = "abc " * 100_000
    tracemalloc.start()
    ids = made.encode(text).ids
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ids) == 400_000
    assert peak < 20 * len(text)


def test_the_file_holds_nothing_the_library_does_not_know(every):
    stored = json.loads(every["word"].to_json())
    blank = json.loads(tokenizers.Tokenizer(tokenizers.models.BPE()).to_str())
    assert stored.keys() == blank.keys()


def test_a_stream_shows_a_character_when_all_its_bytes_are_there():
    text = "é 😀 naïve 👩‍👩‍👧"
    tokenizer = Tokenizer.train(["abc"], TextConfig(kind="byte-bpe", vocabulary_size=256), ())
    ids = tokenizer.encode(text).ids
    assert len(ids) == len(text.encode())  # a token a byte
    pieces = list(tokenizer.decode_stream(ids))
    assert "".join(pieces) == text
    assert pieces == list(text)


def test_a_stream_goes_on_from_what_was_there_before():
    tokenizer = Tokenizer.train(["abc"], TextConfig(kind="byte-bpe", vocabulary_size=256), ())
    before, after = tokenizer.encode("caf").ids, tokenizer.encode("é!").ids
    assert list(tokenizer.decode_stream(after, before)) == ["é", "!"]


def test_a_stream_ends_with_the_bytes_that_never_became_a_character():
    tokenizer = Tokenizer.train(["abc"], TextConfig(kind="byte-bpe", vocabulary_size=256), ())
    cut = tokenizer.encode("aé").ids[:2]
    assert "".join(tokenizer.decode_stream(cut)) == "a\N{REPLACEMENT CHARACTER}"
