"""Words of Hugging Face folders that have tables and no tokenizer.json, against transformers."""

import json

import pytest
from tokenizers import pre_tokenizers

from regard.checkpoints.hugging_face.files import Files
from regard.checkpoints.hugging_face.words import read_tokenizer

transformers = pytest.importorskip("transformers")

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "t"), ("Ġt", "he")]
PAIR = [*BYTES, *("".join(pair) for pair in MERGES), "<|endoftext|>"]
PIECES = [f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")]
PIECES += ["the", "hello", "co", "##vid", "##s", "a", "żółw", "zolw", "東", ".", "'", "t"]
TEXTS = [
    "hello the world",
    " hello  the\n\ncovid19 s",
    "the covid19s, COVID19 and the covid19.",
    "żółw: 東京!",
    "",
    "thecovid19the",
]
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}


def gpt2(folder, **files):
    words = {token: number for number, token in enumerate(PAIR)}
    merges = "#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in MERGES)
    return write(folder, "gpt2", {"vocab.json": words, "merges.txt": merges}, files)


def bert(folder, **files):
    return write(folder, "bert", {"vocab.txt": "\n".join(PIECES) + "\n"}, files)


def write(folder, kind, table, files):
    named = {f"{name}.json": content for name, content in files.items()}
    for name, content in {"config.json": {"model_type": kind}, **table, **named}.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text)
    return folder


def compare(folder, texts=TEXTS):
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = read_tokenizer(Files(folder))
    for text in texts:
        assert ours.encode(text).ids == theirs(text, add_special_tokens=False).input_ids, text
    assert ours.size == len(theirs)
    return ours


def test_tables_alone_cut_texts_as_there(tmp_path):
    for number, make in enumerate((gpt2, bert)):
        place = tmp_path / str(number)
        place.mkdir()
        compare(make(place))


def test_tokens_that_were_added_later_are_found_in_texts(tmp_path):
    """As a fine-tuned GPT-2 has them: a word of its own, and something to pad with."""
    first = len(PAIR)
    folder = gpt2(
        tmp_path,
        added_tokens={"covid19": first, "<|pad|>": first + 1, "<said>": first + 2},
        special_tokens_map={
            "pad_token": "<|pad|>",
            "eos_token": "<|endoftext|>",
            "additional_special_tokens": ["<said>"],
        },
    )
    words = compare(folder)
    assert first in words.encode("the covid19 virus").ids
    assert words.pad == first + 1 and words.end == first - 1
    assert max(words.encode("<|pad|> <said>").ids) < first  # these spellings are text
    assert words.decode([first + 1, first]) == "covid19"


def test_tokens_that_were_added_are_found_as_they_are_described(tmp_path):
    first = len(PAIR)
    described = {
        str(first - 1): {"content": "<|endoftext|>", "special": True, **FLAGS},
        str(first): {"content": "covid19", "special": False, **FLAGS, "lstrip": True},
    }
    folder = gpt2(tmp_path, tokenizer_config={"added_tokens_decoder": described})
    words = compare(folder)
    assert words.encode("the covid19").ids == [*words.encode("the").ids, first]


def test_word_pieces_may_have_more_words_too(tmp_path):
    first = len(PIECES)
    words = compare(bert(tmp_path, added_tokens={"covid19": first}))
    assert first in words.encode("the covid19 .").ids


def test_a_text_may_be_read_as_if_a_space_stood_before_it(tmp_path):
    words = compare(gpt2(tmp_path, tokenizer_config={"add_prefix_space": True}))
    assert words.encode("the").ids == [PAIR.index("Ġthe")]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"added_tokens": {"covid19": 9999}}, "'covid19' cannot have the id 9999"),
        ({"added_tokens": {"covid19": "many"}}, r"added_tokens\.json must be a table"),
        ({"tokenizer_config": {"added_tokens_decoder": [1]}}, "added_tokens_decoder must be"),
        ({"tokenizer_config": {"added_tokens_decoder": {"9": {}}}}, "added_tokens_decoder must be"),
    ],
    ids=str,
)
def test_added_tokens_that_cannot_be_are_named(tmp_path, files, told):
    with pytest.raises(ValueError, match=told):
        read_tokenizer(Files(gpt2(tmp_path, **files)))
