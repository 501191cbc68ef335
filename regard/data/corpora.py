"""Text from files, line by line, whatever they are packed in.

    read_lines("ptb/ptb.train.txt.gz")                        one text a line
    read_lines("imdb/train.tsv.xz", format="tsv", column=3)   one text a row
    read_lines("-", format="jsonl", column="text")            objects from standard input
    read_pairs(["train.en", "train.de"])                      line n of both belong together
    read_pairs("pairs.csv", format="csv", columns=("en", "de"))
    read_labelled("sst2/train.txt.gz")                        a label, a blank, a text
    read_labelled("imdb/train.tsv.xz", "tsv", [3, 0])         two columns: the text, its label
    read_rows("restaurants.csv", "csv")                       all cells of each row

Nothing is held but the line in hand. What is wrong with a file is said with its name and line.
"""

import csv
import gzip
import json
import lzma
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest
from pathlib import Path
from typing import Any

FORMATS = ("text", "tsv", "csv", "jsonl")
Column = str | int

_MARK = b"\xef\xbb\xbf"  # some editors begin UTF-8 files with it; it is no part of the text
_FIRST: dict[str, Column] = {"text": 0, "tsv": 0, "csv": 0, "jsonl": "text"}
_BOTH: dict[str, tuple[Column, Column]] = {
    "tsv": (0, 1),
    "csv": (0, 1),
    "jsonl": ("source", "target"),
}


def read_lines(
    path: str | Path, *, format: str = "text", column: Column | None = None
) -> Iterator[str]:
    """The texts of a file, in order; "-" is standard input, gz and xz are known by their ending.

    A column is a name, which the first row then has to give, or a number from 0, and then every
    row is data. A field of JSON lines is a name. Left out: the first column, the field "text".
    """
    _check(path, format)
    if format == "text":
        if column is not None:
            raise ValueError(f"column ({column!r}): format 'text' has no columns")
        return (line.removesuffix("\n") for line in _read(path))
    chosen = _FIRST[format] if column is None else column
    return (texts[0] for texts in _records(path, format, (chosen,)))


def read_pairs(
    paths: str | Path | Sequence[str | Path],
    format: str = "text",
    columns: tuple[Column, Column] | None = None,
) -> Iterator[tuple[str, str]]:
    """Source and target: two files side by side, or two columns of one.

    With two files of rows, the first column belongs to the first file and the second to the second.
    """
    if columns is not None and len(columns) != 2:
        raise ValueError(f"columns ({columns!r}) must be two: source and target")
    if isinstance(paths, str | Path):
        return _two_columns(paths, format, columns)
    if len(paths) != 2:
        raise ValueError(f"paths ({_quote_all(paths)}) must be two files, or one with columns")
    source, target = paths
    if _is_stdin(source) and _is_stdin(target):
        raise ValueError("paths ('-', '-'): standard input can be read only once")
    chosen = columns or (None, None)
    sides = [
        read_lines(path, format=format, column=column)
        for path, column in zip(paths, chosen, strict=True)
    ]
    return _side_by_side(sides[0], sides[1], (_name(source), _name(target)))


def read_labelled(
    path: str | Path, format: str = "text", columns: Sequence[Column] | None = None
) -> Iterator[tuple[str, str]]:
    """Texts and their labels: (text, label).

    Of plain text each line is a label, a blank and a text. Columns name the text, then the label;
    left out, the first two, of JSON lines the fields "text" and "label". Three columns name two
    texts that are read together, with a tab between them, then the label.
    """
    _check(path, format)
    if columns is not None and len(columns) not in (2, 3):
        raise ValueError(
            f"columns ({list(columns)!r}) must be two, text and label, or three: two texts and "
            "their label"
        )
    if format == "text":
        if columns is not None:
            raise ValueError(f"columns ({list(columns)!r}): format 'text' has no columns")
        return _label_first(path)
    chosen = tuple(columns) if columns else ("text", "label") if format == "jsonl" else (0, 1)
    records = _records(path, format, chosen)
    if len(chosen) == 2:
        return ((text, label) for text, label in records)
    # A tab of their own would be taken for the one between them.
    return (("\t".join(t.replace("\t", " ") for t in texts), label) for *texts, label in records)


def _label_first(path: str | Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(_read(path), start=1):
        label, blank, text = line.strip().partition(" ")
        if not label:
            continue
        if not blank:
            raise ValueError(
                f"{_name(path)}, line {number}: a label, a blank and a text were expected, "
                f"not {line.strip()[:40]!r}"
            )
        yield text.strip(), label


def read_rows(path: str | Path, format: str) -> Iterator[tuple[int, list[str]]]:
    """Every row of a tsv or csv file with the number of its line; blank ones are passed over."""
    _check(path, format)
    if format not in ("tsv", "csv"):
        raise ValueError(f"format ({format!r}) has no rows of cells; tsv and csv do")
    return _tsv(path) if format == "tsv" else _csv(path)


def read_text(path: str | Path) -> str:
    """All of a text file as one string, its newlines kept."""
    _check(path, "text")
    return "".join(_read(path))


def _two_columns(
    path: str | Path, format: str, columns: tuple[Column, Column] | None
) -> Iterator[tuple[str, str]]:
    _check(path, format)
    if format == "text":
        raise ValueError(
            f"paths ({_name(path)}): format 'text' needs two files, [source, target]; "
            "one file with both needs format tsv, csv or jsonl"
        )
    chosen = _BOTH[format] if columns is None else columns
    return ((texts[0], texts[1]) for texts in _records(path, format, chosen))


def _side_by_side(
    source: Iterator[str], target: Iterator[str], names: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    counts = [0, 0]
    for left, right in zip_longest(source, target):
        counts[0] += left is not None
        counts[1] += right is not None
        if left is not None and right is not None:
            yield left, right
    # The longer one is read to its end first, so that both counts can be told.
    if counts[0] != counts[1]:
        raise ValueError(
            "parallel files must have equally many lines: "
            f"{names[0]} has {counts[0]}, {names[1]} has {counts[1]}"
        )


def _records(path: str | Path, format: str, columns: tuple[Column, ...]) -> Iterator[list[str]]:
    """The chosen columns of every row; blank rows are passed over."""
    _check_columns(columns, format)
    name = _name(path)
    if format == "jsonl":
        return _require_rows(_fields(path, columns), name)
    return _require_rows(_cells(read_rows(path, format), name, columns), name)


def _require_rows(records: Iterator[list[str]], name: str) -> Iterator[list[str]]:
    """The records as they are; an error if there is none."""
    first = next(records, None)
    if first is None:
        raise ValueError(f"{name} has no rows beside blank ones and names of columns")
    yield first
    yield from records


def _tsv(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(_read(path), start=1):
        row = line.removesuffix("\n")
        if row:
            yield number, row.split("\t")


def _csv(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(sys.maxsize)  # a document may well be longer than 131,072 characters
    reader = csv.reader(_read(path), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as reason:
        raise ValueError(f"{_name(path)}, line {reader.line_num}: not CSV: {reason}") from None


def _cells(
    rows: Iterator[tuple[int, list[str]]], name: str, columns: tuple[Column, ...]
) -> Iterator[list[str]]:
    places = [column for column in columns if isinstance(column, int)]
    if len(places) < len(columns):
        number, header = next(rows, (1, []))
        places = [_place(column, header, f"{name}, line {number}") for column in columns]
    for number, row in rows:
        if len(row) <= max(places):
            raise ValueError(
                f"{name}, line {number}: there is no column {max(places)} (counted from 0) "
                f"in a row of {len(row)}"
            )
        yield [row[place] for place in places]


def _place(column: Column, header: list[str], where: str) -> int:
    if isinstance(column, int):
        return column
    if column not in header:
        raise ValueError(f"{where}: there is no column {column!r} among {_quote_all(header)}")
    return header.index(column)


def _fields(path: str | Path, columns: tuple[Column, ...]) -> Iterator[list[str]]:
    for number, line in enumerate(_read(path), start=1):
        if line.strip():
            where = f"{_name(path)}, line {number}"
            record = _object(line, where)
            yield [_field(record, column, where) for column in columns]


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as reason:
        raise ValueError(f"{where}: not JSON: {reason}") from None
    if not isinstance(record, dict):
        raise ValueError(f'{where}: a line must be an object, as in {{"text": …}}')
    return record


def _field(record: dict[str, Any], column: Column, where: str) -> str:
    if column not in record:
        raise ValueError(f"{where}: there is no field {column!r} among {_quote_all(record)}")
    text = record[column]
    if not isinstance(text, str):
        raise ValueError(f"{where}: the field {column!r} must be a string, not {json.dumps(text)}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # JSON can spell half a character, \ud800, and no text holds it
        raise ValueError(f"{where}: the field {column!r} has a lone surrogate") from None
    return text


def _read(path: str | Path) -> Iterator[str]:
    """Lines with their newline, as the file has them: decoded, CRLF as a plain newline."""
    name, number = _name(path), 0
    try:
        with _open(path) as file:
            for raw in file:
                content = raw if number else raw.removeprefix(_MARK)
                if content:
                    number += 1
                    yield _decode(content, f"{name}, line {number}")
    except EOFError:
        raise ValueError(
            f"{name}: cut off after line {number}: the compressed data has no end"
        ) from None
    except (OSError, zlib.error, lzma.LZMAError) as reason:
        raise ValueError(f"{name}: cannot be read after line {number}: {reason}") from None
    if not number:
        raise ValueError(f"{name} is empty: there is no line to read")


def _decode(raw: bytes, where: str) -> str:
    if b"\0" in raw:
        raise ValueError(f"{where}: a NUL byte: this is a binary file or UTF-16, not UTF-8 text")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as reason:
        wrong = f"byte {reason.start + 1} (0x{raw[reason.start]:02x})"
        raise ValueError(f"{where}: not UTF-8: {wrong}: {reason.reason}") from None
    return text.removesuffix("\r\n") + "\n" if text.endswith("\r\n") else text


def _open(path: str | Path) -> AbstractContextManager[Iterable[bytes]]:
    if _is_stdin(path):
        return nullcontext(sys.stdin.buffer)  # not ours to close
    ending = Path(path).suffix.lower()
    if ending == ".gz":
        return gzip.open(path, "rb")
    return lzma.open(path, "rb") if ending == ".xz" else Path(path).open("rb")


def _check(path: str | Path, format: str) -> None:
    if format not in FORMATS:
        raise ValueError(f"format ({format!r}) must be one of {', '.join(FORMATS)}")
    if _is_stdin(path):
        return
    if not Path(path).exists():
        raise ValueError(f"{path}: there is no such file")
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder: a file was expected")


def _check_columns(columns: Sequence[Column], format: str) -> None:
    for column in columns:
        if isinstance(column, int) and (column < 0 or format == "jsonl"):
            wanted = "the name of a field" if format == "jsonl" else "a name, or a number from 0"
            raise ValueError(f"column ({column}) must be {wanted}")


def _is_stdin(path: str | Path) -> bool:
    return str(path) == "-"


def _name(path: str | Path) -> str:
    return "standard input" if _is_stdin(path) else str(path)


def _quote_all(names: Sequence[Any] | dict[str, Any]) -> str:
    return ", ".join(repr(str(name)) for name in names)
