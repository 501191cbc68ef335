"""Attention against an independent plain-torch formula: values, gradients, weights on demand."""

import math
from itertools import cycle, product

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention import (
    Additive,
    ALiBi,
    Attention,
    Causal,
    Cosine,
    Dot,
    General,
    Location,
    MultiHead,
    Packed,
    Padding,
    Prefix,
    Proportional,
    RelativeBias,
    Rotary,
    ScaledDot,
    Softmax,
    Sparsemax,
    StrictlyCausal,
    Window,
    attention,
    fused,
    watch,
)

ROWS, KEYS, SIZE, VALUE, HIDDEN = 5, 7, 3, 11, 13


@pytest.fixture(autouse=True)
def _the_same_numbers_in_every_run():
    torch.manual_seed(11)


def general(score, q, k):
    return torch.einsum("...id,ed,...je->...ij", q, score.matrix.weight, k)


def cosine(score, q, k):
    lengths = q.norm(dim=-1).unsqueeze(-1) * k.norm(dim=-1).unsqueeze(-2)
    return score.strength * torch.einsum("...id,...jd->...ij", q, k) / lengths


def additive(score, q, k):
    hidden = F.linear(q, score.query.weight, score.query.bias).unsqueeze(-2)
    hidden = hidden + F.linear(k, score.key.weight).unsqueeze(-3)
    return (torch.tanh(hidden) * score.direction).sum(dim=-1)


SCORES = {
    "dot": (lambda: Dot(), lambda s, q, k: torch.einsum("...id,...jd->...ij", q, k)),
    "scaled": (
        lambda: ScaledDot(),
        lambda s, q, k: torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(SIZE),
    ),
    "general": (lambda: General(SIZE, SIZE), general),
    "cosine": (lambda: Cosine(3.0), cosine),
    "additive": (lambda: Additive(SIZE, SIZE, HIDDEN, bias=True), additive),
    "location": (
        lambda: Location(SIZE, 17),
        lambda s, q, k: F.linear(q, s.places.weight[: k.shape[-2]]),
    ),
}

place = torch.arange(ROWS).unsqueeze(-1) + KEYS - ROWS  # queries are the last ones
key = torch.arange(KEYS)
LENGTHS, OPEN = torch.tensor([0, 4]), torch.tensor([3, 0])
DOCUMENTS = torch.tensor([[0, 0, 0, 1, 1, 2, 2], [5, 5, 5, 5, 5, 5, 4]])
ANY = torch.rand(2, ROWS, KEYS, generator=torch.Generator().manual_seed(3)) > 0.6
own = DOCUMENTS[:, KEYS - ROWS :].unsqueeze(-1) == DOCUMENTS.unsqueeze(1)
padded = (key < LENGTHS.unsqueeze(-1)).unsqueeze(1)
opened = (key < OPEN.unsqueeze(-1)).unsqueeze(1)
MASKS = {
    "no mask": (None, None),
    "causal": (Causal(), (key <= place).unsqueeze(0)),
    "strictly causal": (StrictlyCausal(), (key < place).unsqueeze(0)),
    "window": (Window(2, 1), ((key >= place - 2) & (key <= place + 1)).unsqueeze(0)),
    "padding": (Padding(LENGTHS), padded),
    "prefix": (Causal() | Prefix(OPEN), (key <= place) | opened),
    "packed": (Packed(DOCUMENTS), own),
    "formula": ((Causal() & Packed(DOCUMENTS)) | Padding(LENGTHS), ((key <= place) & own) | padded),
    "tensor": (ANY, ANY),
}
LEADING = [(2,), (2, 3), (2, 17), (2, 3, 2)]
PLACES = [(leading, "whole") for leading in LEADING] + [((2, 3), "in blocks")]


def tensors(lead, dtype=torch.float64):
    shapes = [(ROWS, SIZE), (KEYS, SIZE), (KEYS, VALUE)]
    return [torch.randn(*lead, *shape, dtype=dtype, requires_grad=True) for shape in shapes]


def plain_weights(scores, visible):
    """softmax with minus infinity where one may not look, and nothing where there is nothing."""
    if visible is not None:
        while visible.dim() < scores.dim():
            visible = visible.unsqueeze(1)
        scores = scores.masked_fill(~visible, -torch.inf)
    return scores.softmax(dim=-1).nan_to_num(0.0)


def assert_same(ours, theirs, inputs):
    """Equal values, and equal gradients for one random loss."""
    assert_close(ours, theirs)
    upstream = torch.randn_like(theirs)
    pairs = (
        torch.autograd.grad(out, inputs, upstream, allow_unused=True, retain_graph=True)
        for out in (ours, theirs)
    )
    for actual, expected in zip(*pairs, strict=True):
        if actual is None or expected is None:
            assert actual is expected
        else:
            assert_close(actual, expected)


# Places take turns: each score and each mask comes to each of them.
@pytest.mark.parametrize("pair, place", list(zip(product(SCORES, MASKS), cycle(PLACES))), ids=str)
def test_every_score_mask_and_heads_agree_with_the_formula(pair, place, monkeypatch):
    (name, kind), (leading, blocks) = pair, place
    if blocks == "in blocks":
        monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", 20)
        monkeypatch.setattr(attention, "SCORES_PER_BLOCK", 20)
    build, formula = SCORES[name]
    mask, visible = MASKS[kind]
    score = build().double()
    inputs = tensors(leading)
    queries, keys, values = inputs
    read = Attention(score)(queries, keys, values, mask)
    weights = plain_weights(formula(score, queries, keys), visible)
    assert_same(read.context, weights @ values, [*inputs, *score.parameters()])
    assert_close(read.weights, weights)


def single():
    """Every mask with all leading axes; scores take turns."""
    names = list(SCORES)
    for (i, kind), (j, leading) in product(enumerate(MASKS), enumerate(LEADING)):
        yield names[(i + j) % len(names)], leading, kind


@pytest.mark.parametrize("name, leading, kind", list(single()), ids=str)
def test_fused_single_precision_agrees_with_its_weights_on_demand(name, leading, kind):
    queries, keys, values = tensors(leading, torch.float32)
    read = Attention(SCORES[name][0]())(queries, keys, values, MASKS[kind][0])
    assert (read.weights @ values - read.context).abs().max() <= 1e-5


@pytest.mark.parametrize("name", ["dot", "scaled", "general", "cosine", "additive"])
def test_fused_single_precision_agrees_over_hundreds_of_tokens(name):
    queries, keys, values = (torch.randn(1, 2, 509, SIZE) for _ in range(3))
    model = Attention(SCORES[name][0]())
    with torch.no_grad():
        for mask in (None, Causal(), Window(31, 7) | Prefix(torch.tensor([5]))):
            read = model(queries, keys, values, mask)
            assert (read.weights @ values - read.context).abs().max() <= 1e-5
            some = read.weights_of(heads=1, rows=[0, 37, 508])
            assert (some @ values[:, 1:] - read.context[:, 1:, [0, 37, 508]]).abs().max() <= 1e-5


@pytest.mark.parametrize("name, blocks", list(zip(SCORES, cycle(["whole", "in blocks"]))))
def test_the_whole_attention_has_the_gradient_of_finite_differences(name, blocks, monkeypatch):
    if blocks == "in blocks":
        monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", 1)
        monkeypatch.setattr(attention, "SCORES_PER_BLOCK", 1)
    model = Attention(SCORES[name][0](), Softmax(temperature=0.8)).double()
    inputs = [torch.randn(2, n, SIZE, dtype=torch.float64, requires_grad=True) for n in (3, 4, 4)]
    mask = StrictlyCausal() & Padding(torch.tensor([4, 2]))

    def read(queries, keys, values):
        return model(queries, keys, values, mask).context

    assert gradcheck(read, inputs)


@pytest.mark.parametrize("weigh", [Sparsemax, Proportional])
def test_other_weighings_have_the_gradient_of_finite_differences(weigh):
    model = Attention(ScaledDot(), weigh())
    inputs = [torch.rand(2, n, SIZE, dtype=torch.float64, requires_grad=True) for n in (3, 4, 4)]
    mask = StrictlyCausal() & Padding(torch.tensor([4, 2]))
    assert gradcheck(lambda q, k, v: model(q, k, v, mask).context, inputs)


HEADS, HEAD = 4, 6
POSITIONS = {
    "none": lambda: None,
    "rotary": lambda: Rotary(HEAD, interleaved=True),
    "alibi": lambda: ALiBi(HEADS),
    "relative": lambda: RelativeBias(HEADS),
}


def rotate(x, places):
    """Each pair (2i, 2i + 1) as a complex number times e^(i · place / 10000^(2i / size))."""
    rates = 10000.0 ** (-torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    turns = torch.polar(torch.ones(()).double(), places.double().unsqueeze(-1) * rates)
    points = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(points * turns).flatten(-2)


def heads_by_formula(model, x, visible, position):
    """Each head on its own, in a loop."""
    size, groups = HEAD, model.key_value_heads
    q, k, v = F.linear(x, model.projection.weight, model.projection.bias).split(
        [HEADS * size, groups * size, groups * size], dim=-1
    )
    places = torch.arange(x.shape[1])
    distance = places - places.unsqueeze(-1)
    read = []
    for head in range(HEADS):
        group = head * groups // HEADS
        a = q[..., head * size : (head + 1) * size]
        b, c = (t[..., group * size : (group + 1) * size] for t in (k, v))
        if position == "rotary":
            a, b = rotate(a, places), rotate(b, places)
        scores = a @ b.mT / math.sqrt(size)
        if position == "alibi":
            scores = scores - distance.abs() / 2 ** (8 * (head + 1) / HEADS)
        if position == "relative":  # 16 buckets a side; nearer than 8, each has its own
            buckets = distance.abs() + 16 * (distance > 0)
            scores = scores + model.position.table[buckets, head]
        read.append(plain_weights(scores, visible) @ c)
    return F.linear(torch.cat(read, dim=-1), model.output.weight, model.output.bias)


def ways():
    """Every position under every mask; groups take turns."""
    kinds = ["no mask", "causal", "padding", "both"]
    for (i, position), (j, kind) in product(enumerate(POSITIONS), enumerate(kinds)):
        yield position, kind, [4, 2, 1][(i + j) % 3]


@pytest.mark.parametrize("position, kind, groups", list(ways()))
def test_heads_with_positions_groups_and_masks_agree_with_the_formula(position, kind, groups):
    model = MultiHead(HEADS * HEAD, HEADS, key_value_heads=groups, position=POSITIONS[position]())
    for parameter in model.double().parameters():
        nn.init.normal_(parameter, std=0.3)
    x = torch.randn(2, 7, HEADS * HEAD, dtype=torch.float64, requires_grad=True)
    past = torch.ones(7, 7, dtype=torch.bool).tril().unsqueeze(0)
    real = (torch.arange(7) < torch.tensor([[0], [4]])).unsqueeze(1)
    mask, visible = {
        "no mask": (None, None),
        "causal": (Causal(), past),
        "padding": (Padding(torch.tensor([0, 4])), real),
        "both": (Causal() & Padding(torch.tensor([0, 4])), past & real),
    }[kind]
    ours = model(x, mask=mask)
    assert_same(ours, heads_by_formula(model, x, visible, position), [x, *model.parameters()])


def test_watched_weights_are_those_of_torchs_own_heads():
    theirs = nn.MultiheadAttention(15, 3, batch_first=True).double()
    ours = MultiHead(15, 3).double()
    with torch.no_grad():
        ours.projection.weight.copy_(theirs.in_proj_weight)
        ours.projection.bias.copy_(theirs.in_proj_bias)
        ours.output.load_state_dict(theirs.out_proj.state_dict())
    x = torch.randn(2, 7, 15, dtype=torch.float64)
    hidden = torch.rand(2, 7) > 0.6
    hidden[:, 0] = False
    with watch(ours) as seen:
        output = ours(x, mask=~hidden.unsqueeze(1))
    expected, weights = theirs(x, x, x, key_padding_mask=hidden, average_attn_weights=False)
    assert_close(output, expected)
    assert_close(seen["attention"][0].weights, weights)
