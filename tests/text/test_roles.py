import json

import pytest
import tokenizers
from tokenizers import models

from regard.text import KINDS, ROLES, TextConfig, Tokenizer, roles_from_hugging_face

BERT = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
ROBERTA = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "cls_token": "<s>",
    "mask_token": {"content": "<mask>", "lstrip": True, "normalized": False, "special": True},
}


def spelled(made: Tokenizer) -> dict[str, str]:
    return {role: made.tokens_of([number])[0] for role, number in made.roles.items()}


# Trained here


def test_the_roles_of_a_task_have_the_first_ids_and_the_usual_spellings(trained):
    made = trained("word", ["a"], ROLES)
    names = ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "<sep>", "<cls>"]
    assert made.tokens_of(range(7)) == names
    assert made.roles == dict(zip(ROLES, range(7), strict=True))
    assert (made.pad, made.unknown, made.start, made.end) == (0, 1, 2, 3)
    assert (made.mask, made.separator, made.classifier) == (4, 5, 6)
    assert [made.id_of_role(role) for role in ROLES] == [*range(7)]


def test_a_recipe_respells_the_roles_of_the_task_and_adds_its_own_behind(corpus):
    config = TextConfig(roles={"mask": "[MASK]", "unknown": "[OOV]"})
    made = Tokenizer.train(corpus, config, ("unknown", "end"))
    assert made.tokens_of([0, 1, 2]) == ["[OOV]", "</s>", "[MASK]"]
    assert made.roles == {"unknown": 0, "end": 1, "mask": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_one_token_may_play_several_roles(trained, kind):
    shared = {"start": "<|text|>", "end": "<|text|>"}
    made = trained(kind, needed=("unknown", "start", "end"), roles=shared)
    assert made.specials == ("<unk>", "<|text|>")
    assert made.roles == {"unknown": 0, "start": 1, "end": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_keeps_the_roles_of_other_spellings(trained, corpus, kind, tmp_path):
    roles = {"unknown": "[OOV]", "mask": "[BLANK]", "start": "<go>", "end": "<go>"}
    made = trained(kind, roles=roles, specials=("<extra>", "<go>"))
    assert made.specials == ("<extra>", "<go>", "[OOV]", "[BLANK]")
    assert made.roles == {"unknown": 2, "start": 1, "end": 1, "mask": 3}
    made.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert (loaded.roles, loaded.specials) == (made.roles, made.specials)
    assert loaded.to_json() == made.to_json()
    for line in [*corpus, "nowhere Ж"]:
        ids = theirs.encode(line).ids
        assert loaded.encode(line).ids == made.encode(line).ids == ids


@pytest.mark.parametrize("kind", KINDS)
def test_usual_spellings_need_no_words_in_the_file(every, kind):
    assert "role:" not in every[kind].to_json()


def test_specials_of_the_recipe_play_the_roles_they_are_spelled_for(corpus):
    config = TextConfig(specials=("[PAD]", "[UNK]", "<extra>", "[CLS]"))
    made = Tokenizer.train(corpus, config, ("unknown", "end"))
    assert made.roles == {"pad": 0, "unknown": 1, "class": 3}
    assert made.encode("nowhere").ids == [1]
    assert made.decode([2, 4, 1]) == f"{made.tokens_of([4])[0]} [UNK]"


def test_a_corpus_that_is_lowercased_still_means_the_unknown_by_its_name(trained):
    lines = ["a [UNK] b", "[UNK]"]
    made = trained("word", lines, ("unknown",), lowercase=True, roles={"unknown": "[UNK]"})
    assert made.tokens_of(range(made.size)) == ["[UNK]", "a", "b"]
    assert made.encode("A [UNK]").ids == [1, 0]


# From elsewhere


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        (
            "bert",
            {
                "pad": "[PAD]",
                "unknown": "[UNK]",
                "mask": "[MASK]",
                "separator": "[SEP]",
                "class": "[CLS]",
            },
        ),
        ("gpt2", {"start": "<|endoftext|>", "end": "<|endoftext|>"}),
        (
            "roberta",
            {
                "pad": "<pad>",
                "unknown": "<unk>",
                "start": "<s>",
                "end": "</s>",
                "mask": "<mask>",
                "separator": "</s>",
                "class": "<s>",
            },
        ),
        ("t5", {"pad": "<pad>", "unknown": "<unk>", "end": "</s>"}),
        ("llama", {"unknown": "<unk>", "start": "<s>", "end": "</s>"}),
        ("llama3", {"start": "<bos>", "end": "<eos>"}),
        ("words", {"pad": "[PAD]", "unknown": "[UNK]", "mask": "[MASK]"}),
    ],
)
def test_published_tokenizers_play_their_known_roles(published, name, roles):
    assert spelled(Tokenizer.from_json(published[name]().to_str())) == roles


def test_hugging_face_maps_tell_roles_by_string_or_by_content():
    assert roles_from_hugging_face(ROBERTA) == {
        "pad": "<pad>",
        "unknown": "<unk>",
        "start": "<s>",
        "end": "</s>",
        "mask": "<mask>",
        "separator": "</s>",
        "class": "<s>",
    }
    assert roles_from_hugging_face({"bos_token": None, "model_max_length": 512}) == {}


@pytest.mark.parametrize("token", [3, {"special": True}, ["<s>"], {"content": None}])
def test_a_map_with_something_else_for_a_token_is_refused(token):
    with pytest.raises(ValueError, match=r"bos_token \(.*\) must be a string, or have one as"):
        roles_from_hugging_face({"bos_token": token})


def test_what_is_given_goes_before_the_map_and_the_map_before_spellings(published):
    content = published["bert"]().to_str()
    told = {**BERT, "bos_token": "[CLS]", "eos_token": "[SEP]", "mask_token": "[PAD]"}
    made = Tokenizer.from_json(content, {"end": "[CLS]"}, told)
    assert spelled(made) == {
        "pad": "[PAD]",  # all three agree
        "unknown": "[UNK]",
        "start": "[CLS]",  # the map alone
        "end": "[CLS]",  # given, against the map
        "mask": "[PAD]",  # the map, against the spelling
        "separator": "[SEP]",
        "class": "[CLS]",
    }


def test_a_map_goes_before_what_the_file_says_itself(published):
    made = Tokenizer(published["roberta"](), special_tokens_map={"cls_token": "<mask>"})
    assert (spelled(made)["class"], spelled(made)["separator"]) == ("<mask>", "</s>")


def test_a_known_spelling_that_is_not_declared_special_is_a_word():
    theirs = tokenizers.Tokenizer(models.WordLevel({"<unk>": 0, "<mask>": 1}, unk_token="<unk>"))
    made = Tokenizer(theirs)
    assert made.roles == {"unknown": 0}
    assert made.encode("<mask>").ids == [1]
    assert Tokenizer(theirs, roles={"mask": "<mask>"}).encode("<mask>").ids == [0]


def test_a_map_may_name_tokens_that_the_file_lacks(published):
    made = Tokenizer(published["gpt2"](), special_tokens_map={"pad_token": "[PAD]"})
    assert made.pad is None


def test_an_unknown_that_also_ends_texts_is_not_shown(published):
    # As in GPT-2's own map; bytes leave nothing unknown.
    told = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
    made = Tokenizer(published["gpt2"](), special_tokens_map=told)
    assert made.unknown == made.start == made.end
    assert made.decode([made.start, *made.encode("the end").ids, made.end]) == "the end"


@pytest.mark.parametrize("name", ["bert", "gpt2", "roberta", "t5", "llama", "llama3", "words"])
def test_roles_that_were_given_are_in_the_file_and_change_no_id_of_the_library(
    published, name, tmp_path
):
    first = Tokenizer(published[name]()).specials[0]
    (tmp_path / "theirs.json").write_text(published[name]().to_str(), encoding="utf-8")
    made = Tokenizer.load(tmp_path / "theirs.json", roles={"start": first, "separator": first})
    made.save(tmp_path / "ours.json")
    assert spelled(Tokenizer.load(tmp_path / "ours.json")) == spelled(made)
    assert made.start == made.separator == made.id_of(first)
    theirs, ours = published[name](), tokenizers.Tokenizer.from_file(str(tmp_path / "ours.json"))
    for texts in [("the dog",), ("the dog", "barking the dog"), ("",), ("", "a")]:
        for add in (True, False):
            before, after = (t.encode(*texts, add_special_tokens=add) for t in (theirs, ours))
            assert after.ids == before.ids
            assert after.type_ids == before.type_ids
            assert after.offsets == before.offsets
            assert after.special_tokens_mask == before.special_tokens_mask


def test_roles_given_again_go_before_those_in_the_file(published):
    made = Tokenizer(published["bert"](), roles={"start": "[CLS]"})
    again = Tokenizer.from_json(made.to_json(), roles={"start": "[PAD]"})
    assert spelled(Tokenizer.from_json(again.to_json()))["start"] == "[PAD]"


def test_a_file_with_roles_in_it_holds_nothing_the_library_does_not_know(published):
    made = Tokenizer(published["bert"](), roles={"start": "[CLS]"})
    blank = json.loads(tokenizers.Tokenizer(models.BPE()).to_str())
    assert json.loads(made.to_json()).keys() == blank.keys()


# What is wrong is said


def test_a_misspelled_role_is_told_its_nearest_name(corpus, every, published):
    wrong = r"role \('seperator'\) is not one of the roles: did you mean 'separator'\?"
    with pytest.raises(ValueError, match=wrong):
        TextConfig(roles={"seperator": "<sep>"})
    with pytest.raises(ValueError, match=wrong):
        Tokenizer.train(corpus, TextConfig(), ("unknown", "seperator"))
    with pytest.raises(ValueError, match=wrong):
        Tokenizer(published["bert"](), roles={"seperator": "[SEP]"})
    with pytest.raises(ValueError, match=wrong):
        every["word"].id_of_role("seperator")


def test_a_role_that_nobody_plays_is_refused_with_those_that_are_and_the_way_to_declare_one(
    trained,
):
    made = trained("word", ["a"], ("unknown", "end"))
    assert (made.mask, made.pad, made.classifier, made.separator) == (None, None, None, None)
    with pytest.raises(ValueError, match="no token with the role 'mask'") as told:
        made.id_of_role("mask")
    assert str(told.value) == (
        "the tokenizer has no token with the role 'mask'; it has unknown (<unk>), end (</s>); "
        "text.roles (mask = ...) or text.specials declares one"
    )
    with pytest.raises(ValueError, match=r"'pad'; it has none; text\.roles"):
        trained("character", ["a"], ()).id_of_role("pad")


def test_a_role_for_a_token_that_is_not_there_is_refused(published, tmp_path):
    published["bert"]().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(
        ValueError, match=r"^roles: mask \('<mask>'\) is not in the tokenizer's voc"
    ):
        Tokenizer.load(tmp_path / "tokenizer.json", roles={"mask": "<mask>"})


def test_another_unknown_than_the_model_writes_is_refused(published):
    with pytest.raises(ValueError, match=r"unknown \('\[PAD\]'\) must be '\[UNK\]', which the"):
        Tokenizer(published["bert"](), roles={"unknown": "[PAD]"})
    made = Tokenizer(published["bert"](), special_tokens_map={"unk_token": "[PAD]"})
    assert spelled(made)["unknown"] == "[UNK]"


@pytest.mark.parametrize("special", ["_", "", "end of text"])
def test_a_role_cannot_be_given_to_what_could_be_text(special):
    with pytest.raises(ValueError, match="a special has two characters or more and no blanks"):
        TextConfig(roles={"end": special})
