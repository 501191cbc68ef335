"""Computation graphs: values forward, gradients backward, both to be seen in every node."""

from .functions import (
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
from .graph import Graph
from .node import Node, apply, constant, data, parameter
from .operation import Operation

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
