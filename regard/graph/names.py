"""A name for every node of a graph, also those that have none of their own."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

from regard.graph.node import Node
from regard.graph.operation import Leaf
from regard.graph.summary import format_number


def name_nodes(nodes: Sequence[Node]) -> dict[Node, str]:
    """Own names as they are; v1, v2, … for the nameless, and for a constant number its digits."""
    own = Counter(node.name for node in nodes if node.name is not None)
    for name, uses in own.items():
        if uses > 1:
            raise ValueError(f"{uses} nodes are named {name!r}: names in a graph must differ")
    computed = (name for i in count(1) if (name := f"v{i}") not in own)
    numbers: dict[str, Iterator[str]] = {}
    names = {}
    for node in nodes:
        if node.name is not None:
            names[node] = node.name
        elif isinstance(node.operation, Leaf) and node.shape == ():
            digits = format_number(node.value.item(), 4)
            names[node] = next(numbers.setdefault(digits, _variants(digits, own)))
        else:
            names[node] = next(computed)
    return names


def _variants(name: str, taken: Counter[str]) -> Iterator[str]:
    """name, name (2), name (3), …, passing over those that are taken."""
    for i in count(1):
        variant = name if i == 1 else f"{name} ({i})"
        if variant not in taken:
            yield variant
