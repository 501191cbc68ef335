"""A graph as text: one line a node, in the order in which values are computed."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from regard.graph.node import Node
from regard.graph.summary import summarise

DIGITS, MAX_NUMBERS = 4, 6  # significant digits of a number, and how many numbers are written out


def list_nodes(nodes: Sequence[Node], names: Mapping[Node, str]) -> str:
    """Aligned columns: name, formula, value, gradient ("-" where there is none)."""
    rows = [("node", "formula", "value", "gradient")]
    rows += [_describe_node(node, names) for node in nodes]
    widths = [max(cell_len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("  ".join(_pad(*cell) for cell in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _describe_node(node: Node, names: Mapping[Node, str]) -> tuple[str, str, str, str]:
    formula = node.operation.formula(*(names[read] for read in node.inputs))
    gradient = "-" if node.gradient is None else summarise(node.gradient, DIGITS, MAX_NUMBERS)
    return names[node], formula, summarise(node.value, DIGITS, MAX_NUMBERS), gradient


def _pad(cell: str, width: int) -> str:
    """Fill up to a width in terminal columns: wide letters take two, combining marks none."""
    return cell + " " * (width - cell_len(cell))
