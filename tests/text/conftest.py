"""Small corpora, and real ones where they are at hand; small tokenizers, as others publish them."""

import os
import string
from inspect import signature
from pathlib import Path

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from regard.text import KINDS, TextConfig, Tokenizer
from regard.text.config import PIECE_KINDS

LINES = (
    "the dog barks at the other dog",
    "the dogs are barking, barking and barking!",
    "İstanbul: straße STRASSE e\u0301te\u0301 👩\u200d👩\u200d👧 漢字 سلام\u200cها",
    "lower lowest newer newest wider widest",
)
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
LETTERS = [*string.ascii_letters, *string.digits, *string.punctuation]


def train(kind, lines=LINES, needed=("pad", "unknown", "start", "end"), **choices) -> Tokenizer:
    """A tokenizer of any kind, with room for a few merges where room is to be given."""
    if kind in PIECE_KINDS:
        choices.setdefault("vocabulary_size", 400 if kind == "byte-bpe" else 150)
    return Tokenizer.train(iter(lines), TextConfig(kind=kind, **choices), needed)


@pytest.fixture(scope="session")
def trained():
    return train


@pytest.fixture(scope="session")
def corpus() -> tuple[str, ...]:
    return LINES


@pytest.fixture(scope="session")
def every() -> dict[str, Tokenizer]:
    """One of each kind."""
    return {kind: train(kind) for kind in KINDS}


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder with real corpora."""
    here = Path(__file__).parents[2].parent / "shared/data"
    folder = Path(os.environ.get("REGARD_DATA", here))
    if not folder.is_dir():
        pytest.skip("no corpora: set REGARD_DATA to their folder")
    return folder


def numbered(tokens):
    return {token: number for number, token in enumerate(tokens)}


def bert(pad="[PAD]", unk="[UNK]", cls="[CLS]", sep="[SEP]", mask="[MASK]"):
    """WordPiece behind a normalizer, specials around the text, and a word added by a user."""
    specials = [pad, unk, cls, sep, mask]
    pieces = [*LETTERS, *(f"##{letter}" for letter in LETTERS), "the", "dog", "bark", "##ing"]
    made = tokenizers.Tokenizer(models.WordPiece(numbered([*specials, *pieces]), unk_token=unk))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    made.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(cls, 2), (sep, 3)],
    )
    made.add_special_tokens(specials)
    made.add_tokens(["t-rex"])
    return made


def gpt2(end="<|endoftext|>"):
    """Bytes and merges; one special, which starts and ends a text."""
    vocabulary = numbered([*BYTES, "he", "end", "of", "text", "Ġt", "Ġthe", "en", "te", "tex", end])
    merges = ["h e", "e n", "en d", "o f", "t e", "te x", "tex t", "Ġ t", "Ġt he"]
    made = tokenizers.Tokenizer(models.BPE(vocabulary, [tuple(m.split()) for m in merges]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    made.add_special_tokens([end])
    return made


def roberta(start="<s>", pad="<pad>", end="</s>", unk="<unk>", mask="<mask>"):
    """As GPT-2, with <s> and </s> as class and separator, and a mask that swallows a blank."""
    vocabulary = numbered([start, pad, end, unk, *BYTES, "he", mask])
    made = tokenizers.Tokenizer(models.BPE(vocabulary, [("h", "e")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.RobertaProcessing((end, 2), (start, 0))
    made.add_special_tokens([start, pad, end, unk, AddedToken(mask, lstrip=True)])
    return made


def t5(pad="<pad>", end="</s>", unk="<unk>", extra="<extra_id_0>"):
    """Unigram, whose specials are pieces like others, and score best."""
    scored = [(name, 0.0) for name in (pad, end, unk)]
    scored += [("▁", -2.0), ("▁the", -3.0), ("▁dog", -3.5), ("s>", -4.0), ("</", -4.5)]
    scored += [(letter, -6.0 - 0.01 * at) for at, letter in enumerate(LETTERS)]
    made = tokenizers.Tokenizer(models.Unigram([*scored, (extra, 0.0)], 2))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", pair=f"$A {end} $B {end}", special_tokens=[(end, 1)]
    )
    made.add_special_tokens([pad, end, unk, extra])
    return made


def llama(unk="<unk>", start="<s>", end="</s>"):
    """Byte fallback, no pre-tokenizer, and merges that happen to make the specials."""
    bytewise = [f"<0x{number:02X}>" for number in range(256)]
    pieces = [*LETTERS, "▁", "s>", "</", "th", "▁th", "▁the", "e>"]
    merges = [("s", ">"), ("<", "/"), ("t", "h"), ("▁", "th"), ("▁th", "e"), ("e", ">")]
    if (start, end) == ("<s>", "</s>"):
        merges += [("<", "s>"), ("</", "s>")]
    vocabulary = numbered([unk, start, end, *bytewise, *pieces])
    made = tokenizers.Tokenizer(
        models.BPE(vocabulary, merges, unk_token=unk, fuse_unk=True, byte_fallback=True)
    )
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    made.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    made.post_processor = processors.TemplateProcessing(
        single=f"{start} $A", pair=f"{start} $A {start}:1 $B:1", special_tokens=[(start, 1)]
    )
    made.add_special_tokens([unk, start, end])
    return made


def words(pad="[PAD]", unk="[UNK]", mask="[MASK]"):
    """Whole words between blanks."""
    vocabulary = numbered([pad, unk, mask, "the", "dog"])
    made = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=unk))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens([pad, unk, mask])
    return made


def llama3(start="<bos>", end="<eos>", turn="<|eot_id|>"):
    """As Llama 3: what stands between cuts is looked up whole before it is merged."""
    vocabulary = numbered([*BYTES, "he", start, end])
    made = tokenizers.Tokenizer(models.BPE(vocabulary, [("h", "e")], ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([start, end, turn])
    return made


@pytest.fixture(scope="session")
def published():
    """Makers of tokenizers, put together with the library alone, by what they are like."""
    return {maker.__name__: maker for maker in (bert, gpt2, roberta, t5, llama, llama3, words)}


@pytest.fixture(scope="session")
def respelled(published):
    """The same, but for specials with names that nobody writes."""
    return {
        name: maker(
            **{special: f"\ue000{special}\ue001" for special in signature(maker).parameters}
        )
        for name, maker in published.items()
    }
