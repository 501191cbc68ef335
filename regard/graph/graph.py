"""A computation graph: everything an output depends on, in an order in which it can be computed.

Backpropagation is the chain rule with nothing computed twice: ∂output/∂a is the sum, over the
nodes y that read a, of ∂output/∂y · ∂y/∂a, and in reverse order every ∂output/∂y is complete
before it is needed.

Rumelhart, Hinton & Williams (1986), "Learning representations by back-propagating errors".
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from regard.atomic import write_atomically
from regard.graph.drawing import draw
from regard.graph.listing import list_nodes
from regard.graph.names import name_nodes
from regard.graph.node import Node, as_array
from regard.graph.operation import Array, sum_to
from regard.naming import suggest


class Graph:
    """The nodes `output` depends on; every node stands after the nodes it reads.

    x, w = data("x", [1, 2]), parameter("w", [3, 4])
    graph = Graph((w @ x).set_name("y"))
    graph.backward()
    w.gradient            # [1, 2]
    x.value = [5, 6]
    graph.forward()       # 39
    """

    def __init__(self, output: Node):
        self.output = output
        self.nodes = tuple(_topological_order(output))
        name_nodes(self.nodes)  # two of one name are refused now rather than at the first drawing

    @property
    def parameters(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.operation.name == "parameter")

    @property
    def names(self) -> Mapping[Node, str]:
        """The name of every node; the nameless get v1, v2, …, a constant number its digits."""
        return name_nodes(self.nodes)

    def __getitem__(self, name: str) -> Node:
        nodes = {its_name: node for node, its_name in self.names.items()}
        if name not in nodes:
            raise ValueError(f"no node is named {name!r}; {suggest(name, nodes)}")
        return nodes[name]

    def forward(self) -> Array:
        """Recompute every value from the leaves, drop all gradients, and return the output."""
        for node in self.nodes:
            node.gradient = None
            node.compute()
        return self.output.value

    def backward(self, seed: ArrayLike | None = None) -> None:
        """Set the gradient ∂output/∂value of every node; gradients of earlier calls are dropped.

        An output of more than one number needs a `seed` of its shape; then the gradients are
        those of Σ seed · output.
        """
        self._check_fresh()
        gradients = {self.output: self._seed(seed)}
        for node in reversed(self.nodes):
            node.gradient = gradients.pop(node, None)
            if node.gradient is None:  # a constant, ids or a mask
                continue
            node.gradient.setflags(write=False)
            for read, part in _input_gradients(node, node.gradient):
                total = gradients[read] + part if read in gradients else part
                gradients[read] = np.asarray(total)

    def text(self) -> str:
        """One line a node: its name, its formula, its value and its gradient."""
        return list_nodes(self.nodes, self.names)

    def svg(self, title: str = "Computation graph") -> str:
        """The graph drawn from top to bottom, as an SVG document."""
        return draw(self.nodes, self.names, title)

    def save(self, path: str | Path) -> None:
        """Write the drawing (.svg) or the listing (.txt): all of it, or nothing."""
        path = Path(path)
        makers = {".svg": self.svg, ".txt": self.text}
        ending = path.suffix.lower()
        if ending not in makers:
            raise ValueError(f"path must end in .svg or .txt, got {str(path)!r}")
        write_atomically(path, (makers[ending]() + "\n").encode())

    def __str__(self) -> str:
        return self.text()

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return self.svg()

    def _check_fresh(self) -> None:
        for node in self.nodes:
            if (newer := node.newer_input) is not None:
                raise ValueError(
                    f"{newer} has a new value that {node} has not seen: "
                    "call forward() before backward()"
                )

    def _seed(self, seed: ArrayLike | None) -> Array:
        shape = self.output.shape
        if seed is None:
            if self.output.value.size != 1:
                raise ValueError(
                    f"the output {self.output} has shape {shape}: backward() from more than "
                    "one number needs a seed of that shape"
                )
            return np.ones(shape)
        array = as_array(seed, float, "seed")
        if array.shape != shape:
            raise ValueError(
                f"seed must have the shape {shape} of the output {self.output}, got {array.shape}"
            )
        return array


def _input_gradients(node: Node, gradient: Array) -> Iterator[tuple[Node, Array]]:
    """The part of each input's gradient that comes from `node`, in the input's shape."""
    if not node.inputs:
        return
    values = (read.value for read in node.inputs)
    parts = node.operation.backward(gradient, node.value, *values)
    for read, part in zip(node.inputs, parts, strict=True):
        if part is not None and read.differentiable:
            yield read, sum_to(np.asarray(part), read.shape)


def _topological_order(output: Node) -> Iterator[Node]:
    """The nodes `output` depends on, each after the nodes it reads.

    Depth first, without recursion: a chain may be longer than Python's stack.
    """
    seen: set[Node] = set()
    waiting = [(output, iter(output.inputs))]
    while waiting:
        node, unread = waiting[-1]
        read = next(unread, None)
        if read is None:
            waiting.pop()
            seen.add(node)
            yield node
        elif read not in seen:
            waiting.append((read, iter(read.inputs)))
