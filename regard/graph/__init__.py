"""Computation graphs: values forward, gradients backward, both to be seen in every node."""

from regard.graph.functions import (
    concatenate,
    cross_entropy,
    embedding,
    exp,
    log,
    log_softmax,
    relu,
    sigmoid,
    softmax,
    sqrt,
    stack,
    tanh,
    where,
)
from regard.graph.graph import Graph
from regard.graph.node import Node, apply, constant, data, parameter
from regard.graph.operation import Operation

__all__ = [
    "Graph",
    "Node",
    "Operation",
    "apply",
    "concatenate",
    "constant",
    "cross_entropy",
    "data",
    "embedding",
    "exp",
    "log",
    "log_softmax",
    "parameter",
    "relu",
    "sigmoid",
    "softmax",
    "sqrt",
    "stack",
    "tanh",
    "where",
]
