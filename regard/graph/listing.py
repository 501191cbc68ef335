"""A graph as text: one line a node, in the order in which values are computed."""

import unicodedata
from collections.abc import Mapping, Sequence

from .node import Node
from .summary import summary

DIGITS, MOST = 4, 6  # significant digits of a number, and how many numbers are written out


def listing(nodes: Sequence[Node], names: Mapping[Node, str]) -> str:
    """Aligned columns: name, formula, value, gradient ("-" where there is none)."""
    rows = [("node", "formula", "value", "gradient")]
    rows += [_row(node, names) for node in nodes]
    widths = [max(columns(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("  ".join(_padded(*cell) for cell in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _row(node: Node, names: Mapping[Node, str]) -> tuple[str, str, str, str]:
    formula = node.operation.formula(*(names[read] for read in node.inputs))
    gradient = "-" if node.gradient is None else summary(node.gradient, DIGITS, MOST)
    return names[node], formula, summary(node.value, DIGITS, MOST), gradient


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - columns(cell))


def columns(text: str) -> int:
    """How many columns a terminal gives the text: wide letters take two, combining marks none."""
    letters = (letter for letter in text if unicodedata.category(letter) not in ("Mn", "Me", "Cf"))
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in letters)
