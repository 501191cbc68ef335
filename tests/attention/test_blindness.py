"""A query that may look nowhere reads zeros with zero gradient: every score, weighing and path."""

from itertools import cycle, product

import pytest
import torch
from torch import nn

from regard.attention import (
    Additive,
    ALiBi,
    Attention,
    Causal,
    Controls,
    Cosine,
    Dot,
    General,
    Given,
    Hard,
    LocalMonotonic,
    LocalPredictive,
    Location,
    MultiHead,
    NTMAddressing,
    Padding,
    Proportional,
    ScaledDot,
    Softmax,
    Sparsemax,
    StrictlyCausal,
    watch,
)
from regard.attention.attended import Attended

BATCH, HEADS, ROWS, KEYS, SIZE, VALUE = 5, 2, 3, 3, 2, 5

SCORES = {
    "dot": lambda: Dot(),
    "scaled": lambda: ScaledDot(),
    "general": lambda: General(SIZE, SIZE),
    "cosine": lambda: Cosine(2.0),
    "additive": lambda: Additive(SIZE, SIZE, 11),
    "location": lambda: Location(SIZE, 13),
}
PURE = {
    "softmax": lambda: Softmax(temperature=0.7),
    "sparsemax": lambda: Sparsemax(),
    "proportional": lambda: Proportional(),
}
REMEMBERING = {
    "given": lambda: Given(torch.rand(1, 1)),
    "hard": lambda: Hard(),
    "hard in evaluation": lambda: Hard().eval(),
    "local-m": lambda: LocalMonotonic(reach=1),
    "local-p": lambda: LocalPredictive(SIZE, reach=1),
    "ntm": lambda: NTMAddressing(),
}
WEIGHINGS = PURE | REMEMBERING
MASKS = {
    "strictly causal": lambda: StrictlyCausal(),
    "padding": lambda: Padding(torch.tensor([0, 2, 1, 3, 0])),
    "causal and padding": lambda: Causal() & Padding(torch.tensor([0, 2, 1, 3, 0]), "left"),
    "tensor with heads": lambda: torch.rand(BATCH, HEADS, ROWS, KEYS) > 0.7,
    "nowhere": lambda: torch.zeros(ROWS, KEYS, dtype=torch.bool),
}
LEADING = [(), (2,), (2, 3), (5, 7), (2, 3, 2)]


def ways():
    """Every score with every weighing on every path that this pair can take; masks take turns."""
    masks = cycle(MASKS)
    for score, weigh in product(SCORES, WEIGHINGS):
        paths = ["whole", "blocked"] if weigh in PURE else ["whole"]
        for path in [*paths, "written out"] if weigh == "softmax" else paths:
            yield score, weigh, path, next(masks)


def controls(leading: tuple[int, ...], rows: int, keys: int) -> Controls:
    return Controls.of(torch.randn(*leading, rows, 6), torch.rand(*leading, rows, keys))


def inputs(leading: tuple[int, ...], rows: int, keys: int) -> list[torch.Tensor]:
    shapes = [(rows, SIZE), (keys, SIZE), (keys, VALUE)]
    return [torch.randn(*leading, *shape, requires_grad=True) for shape in shapes]


def look(attention: Attention, tensors: list[torch.Tensor], mask, path: str) -> Attended:
    queries, keys, _ = tensors
    carried = None
    if isinstance(attention.weigh, NTMAddressing):
        carried = controls(queries.shape[:-2], queries.shape[-2], keys.shape[-2])
    with watch(attention, gradients=path == "written out"):
        return attention(*tensors, mask, carried)


@pytest.mark.parametrize("score, weigh, path, kind", list(ways()))
def test_a_query_that_may_look_nowhere_reads_zeros(score, weigh, path, kind, take):
    take(path)
    attention = Attention(SCORES[score](), WEIGHINGS[weigh]())
    tensors = inputs((BATCH, HEADS), ROWS, KEYS)
    read = look(attention, tensors, MASKS[kind](), path)
    visible = read.visible().expand(BATCH, HEADS, ROWS, KEYS)
    blind = ~visible.any(dim=-1)
    assert blind.any()

    assert read.context.isfinite().all()
    assert (read.context[blind] == 0).all()
    weights = read.weights
    assert weights.isfinite().all()
    assert (weights[~visible] == 0).all()

    (read.context * torch.randn_like(read.context)).sum().backward()
    to_queries = tensors[0].grad
    assert to_queries is None or (to_queries[blind] == 0).all()
    for learned in (*tensors, *attention.parameters()):
        assert learned.grad is None or learned.grad.isfinite().all()
    if kind == "nowhere":
        for tensor in tensors:
            assert tensor.grad is None or (tensor.grad == 0).all()


@pytest.mark.parametrize(
    "pair, score", list(zip(product(WEIGHINGS, LEADING), cycle(SCORES))), ids=str
)
def test_an_empty_key_axis_reads_zeros(pair, score):
    weigh, leading = pair
    attention = Attention(SCORES[score](), WEIGHINGS[weigh]())
    tensors = inputs(leading, ROWS, 0)
    for mask in (None, Causal()):
        read = look(attention, tensors, mask, "whole")
        assert read.context.shape == (*leading, ROWS, VALUE)
        assert (read.context == 0).all()
        assert read.weights.shape == (*leading, ROWS, 0)
        if read.context.requires_grad:
            read.context.sum().backward()
    assert tensors[0].grad is None or (tensors[0].grad == 0).all()


@pytest.mark.parametrize("weigh, score", list(zip(WEIGHINGS, cycle(SCORES))))
def test_nobody_asking_reads_nothing(score, weigh):
    attention = Attention(SCORES[score](), WEIGHINGS[weigh]())
    for leading in [(2,), (2, 3)]:
        read = look(attention, inputs(leading, 0, KEYS), None, "whole")
        assert read.context.shape == (*leading, 0, VALUE)
        assert read.weights.shape == (*leading, 0, KEYS)


@pytest.mark.parametrize("path", ["whole", "blocked"])
def test_a_position_bias_does_not_lift_the_blindness(path, take):
    take(path)
    queries, keys, values = inputs((2, 3), 7, 7)
    bias = ALiBi(3)(7, 7)
    read = Attention(Dot())(queries, keys, values, StrictlyCausal(), bias=bias)
    assert (read.context[..., 0, :] == 0).all()
    assert (read.weights[..., 0, :] == 0).all()
    read.context.sum().backward()
    assert (queries.grad[..., 0, :] == 0).all()
    for tensor in (queries, keys, values):
        assert tensor.grad.isfinite().all()


@pytest.mark.parametrize("path", ["whole", "blocked"])
def test_dropout_does_not_lift_the_blindness(path, take):
    take(path)
    tensors = inputs((2, 3), 7, 7)
    read = Attention(Dot(), dropout=0.5)(*tensors, StrictlyCausal())
    assert (read.context[..., 0, :] == 0).all()
    assert read.context.isfinite().all()


def test_a_row_of_padding_alone_leaves_the_heads_with_their_biases_only():
    model = MultiHead(10, 2)
    nn.init.normal_(model.output.bias)
    x = torch.randn(3, 7, 10)
    output = model(x, mask=Padding(torch.tensor([7, 0, 5])))
    torch.testing.assert_close(output[1], model.output.bias.expand(7, 10))
