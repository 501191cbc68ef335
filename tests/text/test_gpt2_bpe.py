"""GPT-2's byte-level BPE against its description, written out once more in the plainest way."""

import gzip
import json
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text import Tokenizer

regex = pytest.importorskip("regex")

WORDS = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
TEXTS = [
    "Hello world, attention is all you need",
    "I'll say they've we're it's don't; I'LL SAY 'tis",
    "  two  blanks,\ttabs\r\nand lines \n\n\n at   the end   ",
    "zażółć gęślą jaźń ﬁ ǆ ß İi̇",
    "नमस्ते दुनिया 東京タワー مرحبا بالعالم",
    "👩\u200d👩\u200d👧\u200d👦🏽 e\u0301 \ufeff\u00a0\u2003x\u0000y\x7f",
    "½ ² ٣ Ⅷ 1234567890 3.14159e-10",
    "<|endoftext|> <<|endoftext|>> a<|endoftext|>b",
    "",
    " ",
]


@pytest.fixture(scope="module")
def tables(data):
    folder = data / "gpt2_bpe"
    if not folder.is_dir():
        pytest.skip("no gpt2_bpe tables")
    return folder / "encoder.json.gz", folder / "vocab.bpe.gz"


@pytest.fixture(scope="module")
def gpt2(tables):
    return Tokenizer.from_bpe_tables(*tables)


@pytest.fixture(scope="module")
def reference(tables):
    """Cut into words, spell each word's bytes, merge the earliest pair of the list until none is
    left."""
    encoder, merges = (gzip.decompress(path.read_bytes()).decode() for path in tables)
    ids = json.loads(encoder)
    ranks = {tuple(line.split()): n for n, line in enumerate(merges.split("\n")[1:-1])}
    plain = [
        *range(33, 127),
        *range(161, 173),
        *range(174, 256),
    ]  # bytes that are shown as they are
    others = [byte for byte in range(256) if byte not in plain]
    letters = {byte: chr(byte) for byte in plain}
    letters |= {byte: chr(256 + n) for n, byte in enumerate(others)}

    @cache
    def merge(word):
        pieces = list(word)
        while True:
            pairs = [(ranks[pair], pair) for pair in pairwise(pieces) if pair in ranks]
            if not pairs:
                return [ids[piece] for piece in pieces]
            _, (left, right) = min(pairs)
            merged = []
            for piece in pieces:
                if piece == right and merged and merged[-1] == left:
                    merged[-1] = left + right
                else:
                    merged.append(piece)
            pieces = merged

    def encode(text):
        words = ("".join(letters[byte] for byte in word.encode()) for word in WORDS.findall(text))
        return [number for word in words for number in merge(word)]

    return encode


@pytest.mark.parametrize("text", TEXTS)
def test_texts_have_the_ids_of_the_description(gpt2, reference, text):
    assert gpt2.encode(text).ids == reference(text)
    assert gpt2.decode(gpt2.encode(text).ids) == text


def test_characters_of_every_kind_have_them(gpt2, reference):
    """Every 89th of all characters, between a letter, a blank, a digit and a mark."""
    codes = (code for code in range(0, 0x110000, 89) if not 0xD800 <= code < 0xE000)
    texts = [f"a{chr(code)} {chr(code)}1{chr(code)}.{chr(code)} " for code in codes]
    for text, encoded in zip(texts, gpt2.encode_all(texts), strict=True):
        assert encoded.ids == reference(text), ascii(text)


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_string_has_them_and_comes_back(gpt2, reference, text):
    ids = gpt2.encode(text).ids
    assert ids == reference(text)
    assert gpt2.decode(ids) == text


def test_transformers_has_them_too(gpt2, tables, tmp_path):
    transformers = pytest.importorskip("transformers")
    for path, name in zip(tables, ("vocab.json", "merges.txt"), strict=True):
        (tmp_path / name).write_bytes(gzip.decompress(path.read_bytes()))
    theirs = transformers.GPT2Tokenizer.from_pretrained(tmp_path)
    texts = [text for text in TEXTS if "<|" not in text]  # which they read as the end
    assert [gpt2.encode(text).ids for text in texts] == theirs(texts).input_ids
