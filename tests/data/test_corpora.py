import gzip
import io
import json
import lzma
import os
import tracemalloc
from hashlib import md5
from pathlib import Path
from random import Random

import pytest

from regard.data.corpora import read_lines, read_pairs, read_text
from regard.text import TextConfig, Tokenizer

SONG = "Ännchen von Tharau\n\nist's, die mir gefällt;\u2028\x85 漢字\n"
LINES = ["Ännchen von Tharau", "", "ist's, die mir gefällt;\u2028\x85 漢字"]


@pytest.fixture
def write(tmp_path):
    """Put bytes or text into a file."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def type_in(monkeypatch):
    """Say something on standard input."""

    def type_in(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    return type_in


@pytest.fixture
def data() -> Path:
    here = Path(__file__).parents[2].parent / "shared/data"
    folder = Path(os.environ.get("REGARD_DATA", here))
    if not folder.is_dir():
        pytest.skip("no corpora: set REGARD_DATA to their folder")
    return folder


PACKED = {"song.txt": bytes, "song.txt.gz": gzip.compress, "song.XZ": lzma.compress}


@pytest.mark.parametrize("name", PACKED)
def test_lines_end_at_newlines_only_whatever_they_are_packed_in(write, name):
    path = write(name, PACKED[name](SONG.encode()))
    assert list(read_lines(path)) == list(read_lines(str(path))) == LINES


@pytest.mark.parametrize("name", PACKED)
def test_a_whole_text_keeps_its_newlines(write, name):
    assert read_text(write(name, PACKED[name](SONG.encode()))) == SONG


def test_a_dash_is_standard_input(type_in):
    type_in(SONG.encode())
    assert list(read_lines("-")) == LINES
    type_in(SONG.encode())
    assert read_text("-") == SONG


def test_a_last_line_needs_no_newline(write):
    path = write("a.txt", "a\nb")
    assert list(read_lines(path)) == ["a", "b"]
    assert read_text(path) == "a\nb"


def test_windows_files_read_as_others_do(write):
    path = write("a.txt", b"\xef\xbb\xbfa\r\n\r\nb\rc\r\n")
    assert list(read_lines(path)) == ["a", "", "b\rc"]
    assert read_text(path) == "a\n\nb\rc\n"


def test_a_byte_order_mark_belongs_to_the_beginning_only(write):
    assert list(read_lines(write("a.txt", "\ufeffa\n\ufeffb\n"))) == ["a", "\ufeffb"]


def test_a_column_is_a_number_or_a_name(write):
    path = write("a.tsv", "en\tde\nthe dog\tder Hund\n\n\t\n")
    assert list(read_lines(path, format="tsv", column="de")) == ["der Hund", ""]
    assert list(read_lines(path, format="tsv", column=1)) == ["de", "der Hund", ""]
    assert list(read_lines(path, format="tsv")) == ["en", "the dog", ""]


def test_tabs_are_not_quoted_but_commas_are(write):
    assert list(read_lines(write("a.tsv", '1\t"a\n'), format="tsv", column=1)) == ['"a']
    path = write("a.csv", 'n,text\r\n1,"a, ""b""\r\nc"\r\n\r\n2,d\r\n')
    assert list(read_lines(path, format="csv", column="text")) == ['a, "b"\nc', "d"]


def test_a_document_in_a_cell_may_be_long(write):
    path = write("a.csv", f"x,{'long ' * 100_000}\n")
    assert list(read_lines(path, format="csv", column=1)) == ["long " * 100_000]


def test_json_lines_give_a_field(write):
    rows = [{"text": "a\nb", "de": "c"}, {"text": "", "de": "d"}]
    path = write("a.jsonl.gz", gzip.compress("\n\n".join(map(json.dumps, rows)).encode()))
    assert list(read_lines(path, format="jsonl")) == ["a\nb", ""]
    assert list(read_lines(path, format="jsonl", column="de")) == ["c", "d"]


def test_parallel_files_are_read_side_by_side(write):
    source, target = write("a.en", "a\n\nb\n"), write("a.de.gz", gzip.compress(b"c\nd\n\n"))
    expected = [("a", "c"), ("", "d"), ("b", "")]
    assert list(read_pairs([source, target])) == list(read_pairs((str(source), target))) == expected


def test_one_of_two_may_come_from_standard_input(write, type_in):
    type_in(b"c\nd\n")
    assert list(read_pairs([write("a.en", "a\nb\n"), "-"])) == [("a", "c"), ("b", "d")]


def test_pairs_are_two_columns_of_one_file(write):
    path = write("a.tsv", "a\tb\tc\nd\te\tf\n")
    assert list(read_pairs(path, "tsv")) == [("a", "b"), ("d", "e")]
    assert list(read_pairs(path, format="tsv", columns=(2, 0))) == [("c", "a"), ("f", "d")]
    assert list(read_pairs(path, format="tsv", columns=("c", 0))) == [("f", "d")]
    path = write("a.jsonl", '{"source": "a", "target": "b", "x": "c"}')
    assert list(read_pairs(path, format="jsonl")) == [("a", "b")]
    assert list(read_pairs(path, "jsonl", ("x", "source"))) == [("c", "a")]


def test_pairs_are_one_column_of_each_of_two_files(write):
    files = [write("a.tsv", "1\ta\n2\tb\n"), write("b.tsv", "c\n\nd\n")]
    assert list(read_pairs(files, format="tsv", columns=(1, 0))) == [("a", "c"), ("b", "d")]


@pytest.mark.parametrize("longer", [0, 1])
def test_parallel_files_of_different_length_are_named_with_their_counts(write, longer):
    files = [write("a.en", "a\n" * 3), write("a.de", "b\n" * 3)]
    files[longer].write_text("c\n" * 7)
    counts = ["3", "3"]
    counts[longer] = "7"
    told = rf"equally many lines: .*a\.en has {counts[0]}, .*a\.de has {counts[1]}$"
    with pytest.raises(ValueError, match=told):
        list(read_pairs(files))


def test_what_is_not_there_is_said_at_once(tmp_path):
    with pytest.raises(ValueError, match=r"none\.txt: there is no such file$"):
        read_lines(tmp_path / "none.txt")
    with pytest.raises(ValueError, match=r"is a folder: a file was expected$"):
        read_text(tmp_path)
    with pytest.raises(ValueError, match=r"none\.en: there is no such file$"):
        read_pairs([tmp_path / "none.en", tmp_path / "none.de"])


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(write, type_in, content):
    for path in (write("a.txt", content), write("a.txt.gz", gzip.compress(content))):
        with pytest.raises(ValueError, match=r"a\.txt(\.gz)? is empty: there is no line to read"):
            list(read_lines(path))
    type_in(content)
    with pytest.raises(ValueError, match="standard input is empty"):
        read_text("-")


@pytest.mark.parametrize("format", ["tsv", "csv"])
def test_names_of_columns_alone_are_no_rows(write, format):
    with pytest.raises(ValueError, match=r"a\.rows has no rows beside blank ones"):
        list(read_lines(write("a.rows", "text\n\n"), format=format, column="text"))


def test_a_binary_file_is_named_with_its_line(write):
    path = write("a.txt", b"fine\nPNG\x00\x01\n")
    with pytest.raises(ValueError, match=r"a\.txt, line 2: a NUL byte: this is a binary file"):
        list(read_lines(path))


@pytest.mark.parametrize("format", ["text", "tsv", "csv", "jsonl"])
def test_a_byte_that_is_not_utf8_is_named_with_its_line(write, format):
    path = write("a.txt", b'{"text": "fine"}\n\n{"text": "caf\xe9"}\n')
    told = r"a\.txt, line 3: not UTF-8: byte 14 \(0xe9\): invalid continuation byte"
    with pytest.raises(ValueError, match=told):
        list(read_lines(path, format=format))


def test_good_lines_before_a_bad_one_come_out(write):
    found = read_lines(write("a.txt", b"fine\n\xff\n"))
    assert next(found) == "fine"
    with pytest.raises(ValueError, match="line 2: not UTF-8"):
        next(found)


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a.xz", lzma.compress)])
def test_a_packed_file_that_was_cut_off_is_refused(write, name, pack):
    packed = pack(b"".join(b"%d\n" % number for number in range(100_000)))
    with pytest.raises(ValueError, match=rf"{name}: cut off after line [1-9]\d+: the compressed"):
        list(read_lines(write(name, packed[: len(packed) // 2])))


@pytest.mark.parametrize("name", ["a.gz", "a.xz"])
def test_a_file_that_only_says_it_is_packed_is_refused(write, name):
    with pytest.raises(ValueError, match=rf"{name}: cannot be read after line 0: .+"):
        list(read_lines(write(name, "plain text\n")))


def test_a_packed_file_with_a_flipped_bit_is_refused(write):
    packed = bytearray(gzip.compress(Random(3).randbytes(1000).hex().encode()))
    packed[500] ^= 0x55
    with pytest.raises(
        ValueError, match=r"a\.gz: (cannot be read|cut off) after line|not UTF-8|NUL"
    ):
        list(read_lines(write("a.gz", bytes(packed))))


def test_a_row_without_the_column_is_named_with_its_line(write):
    path = write("a.tsv", "a\tb\nc\n")
    with pytest.raises(ValueError, match=r"a\.tsv, line 2: there is no column 1 .* in a row of 1"):
        list(read_lines(path, format="tsv", column=1))
    with pytest.raises(ValueError, match=r"a\.tsv, line 1: there is no column 'x' among 'a', 'b'"):
        list(read_lines(path, format="tsv", column="x"))


def test_an_open_quote_is_named_with_its_line(write):
    with pytest.raises(ValueError, match=r"a\.csv, line 2: not CSV: unexpected end of data"):
        list(read_lines(write("a.csv", 'a,b\nc,"d\n'), format="csv"))


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("{", "not JSON: "),
        ("[" * 100_000, "not JSON: "),
        ("[1]", "a line must be an object"),
        ('{"title": "x"}', "there is no field 'text' among 'title'"),
        ('{"text": 3}', "the field 'text' must be a string, not 3"),
        ('{"text": "\\ud800"}', "the field 'text' has a lone surrogate"),
    ],
)
def test_a_line_of_json_that_does_not_fit_is_named(write, row, told):
    path = write("a.jsonl", '{"text": "fine"}\n' + row + "\n")
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 2: {told}"):
        list(read_lines(path, format="jsonl"))


def test_what_cannot_be_meant_is_refused(write):
    path = write("a.txt", "a\n")
    with pytest.raises(ValueError, match=r"format \('xml'\) must be one of text, tsv, csv, jsonl"):
        read_lines(path, format="xml")
    with pytest.raises(ValueError, match=r"column \(1\): format 'text' has no columns"):
        read_lines(path, column=1)
    with pytest.raises(ValueError, match=r"column \(-1\) must be a name, or a number from 0"):
        read_lines(path, format="csv", column=-1)
    with pytest.raises(ValueError, match=r"column \(0\) must be the name of a field"):
        read_lines(path, format="jsonl", column=0)
    with pytest.raises(ValueError, match=r"a\.txt\): format 'text' needs two files"):
        read_pairs(path)
    with pytest.raises(ValueError, match="must be two files, or one with columns"):
        read_pairs([path])
    with pytest.raises(ValueError, match="standard input can be read only once"):
        read_pairs(["-", "-"])
    with pytest.raises(ValueError, match=r"columns \(\(1,\)\) must be two: source and target"):
        read_pairs(path, "tsv", (1,))  # type: ignore[arg-type]


def test_a_large_file_is_never_held_as_a_whole(write):
    path = write("a.txt.gz", gzip.compress(b"a line of some thirty letters\n" * 50_000))
    tracemalloc.start()
    count = sum(1 for _ in read_lines(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 50_000
    assert peak < 500_000  # of 1,500,000


def test_penn_treebank_has_its_published_counts(data):
    train, valid = (data / f"ptb/ptb.{split}.txt.gz" for split in ("train", "valid"))
    if not train.is_file():
        pytest.skip("no Penn Treebank")
    made = Tokenizer.train(read_lines(train), TextConfig(), ("unknown", "end"))
    assert made.size == 10_000  # 9,999 types, <unk> among them, and the end of the sentence
    counts = [len(encoded) for encoded in made.encode_all(read_lines(train))]
    assert (len(counts), sum(counts)) == (42_068, 887_521)
    read = list(made.encode_all(read_lines(valid)))
    assert (len(read), sum(map(len, read))) == (3_370, 70_390)
    assert any(made.unknown in encoded.ids for encoded in read)
    assert all(made.decode(e.ids) == " ".join(e.text.split()) for e in read[:100])


def test_tiny_shakespeare_is_read_to_the_last_character(data):
    path = data / "tinyshakespeare/input.txt.gz"
    if not path.is_file():
        pytest.skip("no tinyshakespeare")
    text = read_text(path)
    assert md5(text.encode()).hexdigest() == "6fb458f1232090904fb40fe944165e91"
    made = Tokenizer.train([text], TextConfig(kind="character"), ())
    assert (len(text), made.size) == (1_115_394, 65)
    ids = made.encode(text).ids
    assert made.decode(ids) == text


def test_multi30k_is_parallel(data):
    files = [data / f"multi30k/raw/val.{language}.gz" for language in ("en", "de")]
    if not files[0].is_file():
        pytest.skip("no multi30k")
    assert len(list(read_pairs(files))) == 1014
