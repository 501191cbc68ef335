import json

import pytest
import tokenizers
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import models

from regard.text import KINDS, Tokenizer

PUBLISHED = ["bert", "gpt2", "roberta", "t5", "llama", "llama3", "words"]
SPELLED = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<|endoftext|>", "<s>", "<pad>", "</s>"]
SPELLED += ["<unk>", "<mask>", "<extra_id_0>", "<bos>", "<eos>", "<|eot_id|>"]
ORDINARY = ["the", "dog", "barking", " ", "  ", "t-rex", "<", "s>", "</", "[", "É", "漢", "▁", "\n"]
texts = st.lists(st.sampled_from(SPELLED + ORDINARY) | st.text(max_size=3)).map("".join)


@pytest.fixture(scope="module")
def loaded(published):
    return {name: Tokenizer(maker()) for name, maker in published.items()}


@pytest.mark.parametrize("name", PUBLISHED)
@settings(deadline=None)
@given(text=texts)
def test_no_text_yields_a_special_of_a_tokenizer_from_elsewhere(loaded, text, name):
    made = loaded[name]
    specials = {made.id_of(special) for special in made.specials} - {made.unknown}
    assert specials
    assert not specials & set(made.encode(text).ids)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(text=texts)
def test_no_text_yields_a_special_of_a_tokenizer_trained_here(every, text, kind):
    made = every[kind]
    assert not {made.pad, made.start, made.end} & set(made.encode(text).ids)


@pytest.mark.parametrize("name", PUBLISHED)
@settings(deadline=None)
@given(text=texts)
def test_a_spelled_special_is_read_as_if_specials_were_spelled_otherwise(
    loaded, respelled, text, name
):
    encoded = loaded[name].encode(text)
    theirs = respelled[name].encode(text, add_special_tokens=False)
    assert encoded.ids == theirs.ids
    places = loaded[name].offsets_of(text)
    for ours, place, token in zip(places, theirs.offsets, theirs.tokens, strict=True):
        assert ours == place or token == "▁"  # a mark of its own has no place


@pytest.mark.parametrize("name", PUBLISHED)
@settings(deadline=None)
@given(text=st.text())
def test_ordinary_text_has_the_ids_that_the_library_gives_it(loaded, published, text, name):
    assume(not any(special in text for special in SPELLED))
    theirs = published[name]().encode(text, add_special_tokens=False)
    assert loaded[name].encode(text).ids == theirs.ids


@pytest.mark.parametrize("name", ["bert", "gpt2", "roberta"])
@settings(deadline=None)
@given(text=texts)
def test_the_library_told_to_take_specials_as_text_gives_the_same_ids(
    loaded, published, text, name
):
    theirs = published[name]()
    theirs.encode_special_tokens = True
    encoding = theirs.encode(text, add_special_tokens=False)
    assert loaded[name].encode(text).ids == encoding.ids
    assert loaded[name].encode(text).offsets == encoding.offsets


def test_the_mask_of_bert_is_read_letter_by_letter(loaded):
    encoded = loaded["bert"].encode("the [MASK] t-rex")
    assert encoded.tokens == ["the", "[", "m", "##a", "##s", "##k", "]", "t-rex"]
    assert encoded.offsets == [
        *[(0, 3), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9), (9, 10), (11, 16)],
    ]


def test_the_end_of_gpt2_is_text_as_published(data):
    folder = data / "gpt2_bpe"
    if not folder.is_dir():
        pytest.skip("no gpt2_bpe tables")
    gpt2 = Tokenizer.from_bpe_tables(folder / "encoder.json.gz", folder / "vocab.bpe.gz")
    # tiktoken's encode("<|endoftext|>", disallowed_special=()), as in its documentation.
    assert gpt2.encode("<|endoftext|>").ids == [27, 91, 437, 1659, 5239, 91, 29]


def test_the_ids_of_words_added_behind_the_specials_stay(loaded, published):
    assert loaded["bert"].encode("t-rex").ids == [published["bert"]().token_to_id("t-rex")]


@pytest.mark.parametrize("name", PUBLISHED)
def test_decoding_is_silent_about_specials_from_elsewhere(loaded, published, name):
    made = loaded[name]
    said = made.encode("the dog").ids
    specials = [made.id_of(special) for special in made.specials]
    silent = [number for number in specials if number != made.unknown]
    plain = published[name]().decode(said, skip_special_tokens=True)
    assert made.decode([*silent, *said, *silent]) == plain


def test_decoding_shows_the_unknown_from_elsewhere(loaded):
    made = loaded["bert"]
    assert made.decode([made.classifier, *made.encode("the 漢").ids]) == "the [UNK]"


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_file_is_saved_as_it_came(loaded, published, name):
    assert loaded[name].to_json() == published[name]().to_str(pretty=True)


def test_a_word_added_as_an_ordinary_one_is_hidden_when_it_gets_a_role(published):
    rex = published["bert"]().token_to_id("t-rex")
    made = Tokenizer(published["bert"](), roles={"end": "t-rex"})
    assert made.end == rex
    assert made.encode("t-rex").tokens == ["t", "-", "r", "##e", "##x"]
    assert made.decode([*made.encode("the dog").ids, rex]) == "the dog"


def test_a_special_of_one_character_is_no_character_of_a_text():
    characters = {"_": 0, "a": 1, "b": 2, "?": 3}
    theirs = tokenizers.Tokenizer(models.BPE(characters, [], unk_token="?"))
    made = Tokenizer(theirs, roles={"pad": "_"})
    assert (made.kind, made.encode("a_b").ids) == ("character", [1, 3, 2])
    without = tokenizers.Tokenizer(models.BPE(characters, []))
    with pytest.raises(ValueError, match="the character '_' at position 1 is not in the vocab"):
        Tokenizer(without, roles={"pad": "_"}).encode("a_b")


def test_merges_with_a_mark_of_continuation_do_not_make_a_special():
    vocabulary = {"<": 0, "##s": 1, "##>": 2, "<s": 3, "<s>": 4, "?": 5}
    merges = [("<", "##s"), ("<s", "##>")]
    model = models.BPE(vocabulary, merges, continuing_subword_prefix="##", unk_token="?")
    theirs = tokenizers.Tokenizer(model)
    assert theirs.encode("<s>").ids == [4]
    assert Tokenizer(theirs, roles={"start": "<s>"}).encode("<s>").ids == [3, 2]


def test_what_is_hidden_is_not_in_the_file(loaded):
    stored = json.loads(loaded["t5"].to_json())
    assert [piece for piece, _ in stored["model"]["vocab"][:3]] == ["<pad>", "</s>", "<unk>"]
