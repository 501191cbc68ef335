import gzip
import json

import pytest
from tokenizers import pre_tokenizers

from regard.text import Tokenizer

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())


@pytest.fixture
def tables(tmp_path):
    """All bytes, two merges, and an end that no merge makes."""
    tokens = [*BYTES, "he", "hel", "<|end|>"]
    encoder, merges = tmp_path / "encoder.json", tmp_path / "vocab.bpe"
    encoder.write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    merges.write_text("#version: 0.2\nh e\nhe l\n")
    return encoder, merges


def test_gpt2_reads_hello_world_as_published(data):
    folder = data / "gpt2_bpe"
    if not folder.is_dir():
        pytest.skip("no gpt2_bpe tables")
    gpt2 = Tokenizer.from_bpe_tables(folder / "encoder.json.gz", folder / "vocab.bpe.gz")
    assert gpt2.id_of("Hello") == 15496
    # Published with the tables: Hello 15496, Ġworld 995. tiktoken gives these eight ids, too.
    text = "Hello world, attention is all you need"
    assert gpt2.encode(text).ids == [15496, 995, 11, 3241, 318, 477, 345, 761]
    assert gpt2.encode(text).tokens[:2] == ["Hello", "Ġworld"]
    assert (gpt2.size, gpt2.specials) == (50257, ("<|endoftext|>",))
    assert gpt2.decode([50256, 15496, 995]) == "Hello world"
    assert gpt2.decode(gpt2.encode("zażółć 👩\u200d👧\n\t <|endoftext|>").ids) == (
        "zażółć 👩\u200d👧\n\t <|endoftext|>"
    )


def test_merges_apply_in_their_order(tables):
    made = Tokenizer.from_bpe_tables(*tables)
    assert made.encode("hello").tokens == ["hel", "l", "o"]
    assert made.kind == "byte-bpe"


def test_what_no_merge_makes_is_a_special(tables):
    made = Tokenizer.from_bpe_tables(*tables)
    assert made.specials == ("<|end|>",)
    assert 258 not in made.encode("<|end|>").ids


def test_a_merge_of_strangers_is_named_with_its_line(tables):
    encoder, merges = tables
    merges.write_text("#version: 0.2\nh e\nhe x\n")
    with pytest.raises(ValueError, match=r"vocab\.bpe'\), line 3: 'he x' must be two tokens"):
        Tokenizer.from_bpe_tables(encoder, merges)


def test_a_missing_byte_is_named(tables):
    encoder, merges = tables
    tokens = [token for token in [*BYTES, "he", "hel"] if token != "z"]
    encoder.write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    with pytest.raises(ValueError, match="has no token for the byte 'z'"):
        Tokenizer.from_bpe_tables(encoder, merges)


@pytest.mark.parametrize("content", ['{"a": 0, "b": 2}', "[1]", '{"a": "x"}'])
def test_ids_must_be_counted_from_nought(tables, content):
    encoder, merges = tables
    encoder.write_text(content)
    with pytest.raises(ValueError, match="must map tokens to the ids 0, 1, 2"):
        Tokenizer.from_bpe_tables(encoder, merges)


def test_tables_that_cannot_be_read_are_named(tables, tmp_path):
    encoder, merges = tables
    with pytest.raises(ValueError, match=r"encoder \('.*none\.json'\) cannot be read"):
        Tokenizer.from_bpe_tables(tmp_path / "none.json", merges)
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(gzip.compress(encoder.read_bytes())[:-20])
    with pytest.raises(ValueError, match="cannot be read"):
        Tokenizer.from_bpe_tables(cut, merges)
    encoder.write_text("{")
    with pytest.raises(ValueError, match="is not JSON"):
        Tokenizer.from_bpe_tables(encoder, merges)
