"""Several heads: against torch's own, against each other, and against what must be refused."""

import copy
import functools

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention import (
    Additive,
    ALiBi,
    Causal,
    Cosine,
    General,
    KeyValueCache,
    LocalMonotonic,
    Location,
    MultiHead,
    Padding,
    Proportional,
    RelativeBias,
    Rotary,
    Sparsemax,
    watch,
)

BATCH, LENGTH, HEADS, SIZE = 2, 7, 3, 15


def randomise(module):
    """Biases start at zero in both libraries, where a slip would not be seen."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.double()


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def copy_weights(theirs, ours):
    """Give our heads the weights of an nn.MultiheadAttention."""
    with torch.no_grad():
        if theirs.in_proj_weight is not None:
            ours.projection.weight.copy_(theirs.in_proj_weight)
            if theirs.in_proj_bias is not None:
                ours.projection.bias.copy_(theirs.in_proj_bias)
        else:
            parts = (ours.projection.query, ours.projection.key, ours.projection.value)
            matrices = (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
            for part, matrix in zip(parts, matrices, strict=True):
                part.weight.copy_(matrix)
            if theirs.in_proj_bias is not None:
                for part, bias in zip(parts, theirs.in_proj_bias.chunk(3), strict=True):
                    part.bias.copy_(bias)
        ours.output.weight.copy_(theirs.out_proj.weight)
        if theirs.out_proj.bias is not None:
            ours.output.bias.copy_(theirs.out_proj.bias)
    return ours


LENGTHS = torch.tensor([7, 4])
HIDDEN_KEYS = torch.arange(LENGTH) >= LENGTHS.unsqueeze(-1)  # torch says where one may *not* look
FUTURE = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
MASKS = {
    "no mask": (None, {}),
    "padding": (Padding(LENGTHS), {"key_padding_mask": HIDDEN_KEYS}),
    "causal": (Causal(), {"attn_mask": FUTURE}),
    "both": (
        Causal() & Padding(LENGTHS),
        {"attn_mask": FUTURE, "key_padding_mask": HIDDEN_KEYS},
    ),
}


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("kind", MASKS)
def test_self_attention_agrees_with_torch(kind, bias):
    theirs = randomise(nn.MultiheadAttention(SIZE, HEADS, bias=bias, batch_first=True))
    ours = copy_weights(theirs, MultiHead(SIZE, HEADS, bias=bias).double())
    mask, words = MASKS[kind]
    x, y = (numbers(BATCH, LENGTH, SIZE) for _ in range(2))
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    with watch(ours) as seen:
        output = ours(a, mask=mask)
    expected, weights = theirs(b, b, b, average_attn_weights=False, **words)
    assert_close(output, expected)
    assert_close(seen["attention"][0].weights, weights)
    (output * y).sum().backward()
    (expected * y).sum().backward()
    assert_close(a.grad, b.grad)
    assert_close(ours.projection.weight.grad, theirs.in_proj_weight.grad)
    assert_close(ours.output.weight.grad, theirs.out_proj.weight.grad)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("sizes", [(15, 15), (11, 13), (11, 11), (15, 13)], ids=str)
def test_cross_attention_agrees_with_torch(sizes, bias):
    key_size, value_size = sizes
    theirs = nn.MultiheadAttention(
        SIZE, HEADS, bias=bias, kdim=key_size, vdim=value_size, batch_first=True
    )
    theirs = randomise(theirs)
    ours = MultiHead(SIZE, HEADS, key_size=key_size, value_size=value_size, bias=bias).double()
    copy_weights(theirs, ours)
    queries = numbers(BATCH, 5, SIZE)
    keys, values = numbers(BATCH, LENGTH, key_size), numbers(BATCH, LENGTH, value_size)
    output = ours(queries, keys, values, Padding(LENGTHS))
    expected, _ = theirs(queries, keys, values, key_padding_mask=HIDDEN_KEYS)
    assert_close(output, expected)


def test_self_attention_is_attention_to_oneself():
    model, x = randomise(MultiHead(SIZE, HEADS)), numbers(BATCH, LENGTH, SIZE)
    assert_close(model(x, x), model(x))
    assert_close(model(x, x, x), model(x))


def test_without_positions_permuted_words_give_permuted_outputs():
    model, x = randomise(MultiHead(SIZE, HEADS)), numbers(BATCH, LENGTH, SIZE)
    order = torch.randperm(LENGTH)
    assert_close(model(x[:, order]), model(x)[:, order])


@pytest.mark.parametrize("position", [Rotary(4), ALiBi(3), RelativeBias(3)], ids=str)
def test_with_positions_they_do_not(position):
    model, x = randomise(MultiHead(12, 3, position=position)), numbers(BATCH, LENGTH, 12)
    order = torch.arange(LENGTH).flip(0).roll(2)
    assert not torch.allclose(model(x[:, order]), model(x)[:, order], atol=1e-3)


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_shared_keys_and_values_are_repeated_ones(groups):
    heads, size = 6, 5
    shared = randomise(MultiHead(heads * size, heads, key_value_heads=groups))
    full = MultiHead(heads * size, heads).double()
    with torch.no_grad():
        for name in ("weight", "bias"):
            q, k, v = getattr(shared.projection, name).split(shared.widths)
            each = [[part[g * size : (g + 1) * size] for g in range(groups)] for part in (k, v)]
            own = [torch.cat([part[h * groups // heads] for h in range(heads)]) for part in each]
            getattr(full.projection, name).copy_(torch.cat([q, *own]))
        full.output.load_state_dict(shared.output.state_dict())
    x = numbers(BATCH, LENGTH, heads * size)
    assert_close(shared(x, mask=Causal()), full(x, mask=Causal()))


def test_a_head_may_have_a_size_of_its_own():
    model = randomise(MultiHead(SIZE, 2, head_size=11))
    x = numbers(BATCH, LENGTH, SIZE)
    assert model.projection.weight.shape == (3 * 2 * 11, SIZE)
    q, k, v = (x @ model.projection.weight.T + model.projection.bias).chunk(3, dim=-1)
    heads = []
    for part in range(2):
        own = slice(11 * part, 11 * part + 11)
        weights = (q[..., own] @ k[..., own].mT / 11**0.5).softmax(dim=-1)
        heads.append(weights @ v[..., own])
    expected = torch.cat(heads, dim=-1) @ model.output.weight.T + model.output.bias
    assert_close(model(x), expected)


def test_a_mask_for_each_row_is_the_same_for_each_head():
    model, x = randomise(MultiHead(SIZE, HEADS)), numbers(BATCH, LENGTH, SIZE)
    rows = torch.rand(BATCH, LENGTH, LENGTH) > 0.4
    heads = rows.unsqueeze(1).expand(BATCH, HEADS, LENGTH, LENGTH)
    assert_close(model(x, mask=rows), model(x, mask=heads))


def test_heads_may_have_masks_of_their_own():
    model, x = randomise(MultiHead(SIZE, HEADS)), numbers(BATCH, LENGTH, SIZE)
    mask = torch.rand(1, HEADS, LENGTH, LENGTH) > 0.4
    with watch(model) as seen:
        model(x, mask=mask)
    weights = seen["attention"][0].weights
    assert torch.equal(weights > 0, mask.expand_as(weights))


OTHERS = {
    "general": lambda: {"score": General(5, 5)},
    "cosine": lambda: {"score": Cosine(3.0)},
    "additive": lambda: {"score": Additive(5, 5, 7)},
    "location": lambda: {"score": Location(5, 11)},
    "sparsemax": lambda: {"weigh": Sparsemax()},
    "proportional": lambda: {"weigh": Proportional()},
}


@pytest.mark.parametrize("name", OTHERS)
def test_heads_come_for_free_with_every_score_and_weighing(name):
    model = randomise(MultiHead(SIZE, HEADS, **OTHERS[name]()))
    x = numbers(BATCH, LENGTH, SIZE)
    with watch(model) as seen:
        output = model(x, mask=Causal())
    (read,) = seen["attention"]
    assert read.weights.shape == (BATCH, HEADS, LENGTH, LENGTH)
    values = (x @ model.projection.weight.T + model.projection.bias).chunk(3, dim=-1)[2]
    values = values.unflatten(-1, (HEADS, -1)).transpose(1, 2)  # (batch, head, key, size)
    joined = (read.weights @ values).transpose(1, 2).reshape(BATCH, LENGTH, SIZE)
    assert_close(output, joined @ model.output.weight.T + model.output.bias)


def test_heads_hand_on_what_is_carried():
    model, x = MultiHead(SIZE, HEADS, weigh=LocalMonotonic(reach=1)), torch.randn(2, 7, SIZE)
    with watch(model) as seen:
        model(x[:, :1], x, carried=3)
    (read,) = seen["attention"]
    assert read.carried == 4
    assert read.weights[0, 0, 0].nonzero().flatten().tolist() == [2, 3, 4]


@pytest.mark.parametrize("position", [None, Rotary(4), ALiBi(3), RelativeBias(3)], ids=str)
def test_the_last_queries_alone_read_what_they_read_among_the_others(position):
    model = randomise(MultiHead(12, 3, position=position))
    x = numbers(BATCH, LENGTH, 12)
    assert_close(model(x[:, -2:], x, mask=Causal()), model(x, mask=Causal())[:, -2:])


@pytest.mark.parametrize("position", [None, Rotary(4), ALiBi(3), RelativeBias(3)], ids=str)
@pytest.mark.parametrize("dtype, near", [(torch.float16, 5e-3), (torch.bfloat16, 5e-2)])
def test_half_precision_says_nearly_the_same(dtype, near, position):
    model = MultiHead(12, 3, position=copy.deepcopy(position)).to(dtype)
    exact = copy.deepcopy(model).float()
    x = torch.randn(BATCH, LENGTH, 12).to(dtype)
    output = model(x, mask=Causal())
    assert output.dtype == dtype
    assert_close(output.float(), exact(x.float(), mask=Causal()), atol=near, rtol=near)
    output.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("position", [Rotary(4), RelativeBias(3)], ids=str)
def test_compiled_heads_say_the_same(position):
    torch.compiler.reset()
    model = randomise(MultiHead(12, 3, position=position))
    compiled = torch.compile(model, backend="eager", fullgraph=False)
    x = numbers(BATCH, LENGTH, 12)
    for mask in (None, Causal() & Padding(LENGTHS)):
        assert_close(compiled(x, mask=mask), model(x, mask=mask))


@pytest.mark.parametrize("position", [Rotary(4), ALiBi(3), RelativeBias(3)], ids=str)
def test_a_copy_and_a_saved_state_say_the_same(position):
    model = randomise(MultiHead(12, 3, key_value_heads=1, position=position))
    other = MultiHead(12, 3, key_value_heads=1, position=copy.deepcopy(position)).double()
    other.load_state_dict(model.state_dict())
    x = numbers(BATCH, LENGTH, 12)
    assert torch.equal(copy.deepcopy(model)(x), model(x))
    assert torch.equal(other(x), model(x))


def test_only_what_is_learned_is_saved():
    assert set(MultiHead(12, 3, position=ALiBi(3)).state_dict()) == {
        "projection.weight",
        "projection.bias",
        "output.weight",
        "output.bias",
    }
    named = set(MultiHead(12, 3, key_size=5, bias=False).state_dict())
    assert named == {f"projection.{part}.weight" for part in ("query", "key", "value")} | {
        "output.weight"
    }


REFUSED = {
    "an equal share": (
        lambda: MultiHead(512, 6),
        r"model_size \(512\) must be a multiple of heads \(6\)",
    ),
    "at least one head": (lambda: MultiHead(12, 0), r"heads \(0\) must be 1 or more"),
    "even groups": (
        lambda: MultiHead(12, 6, key_value_heads=4),
        r"heads \(6\) must be a multiple of key_value_heads \(4\)",
    ),
    "at least one group": (
        lambda: MultiHead(12, 6, key_value_heads=0),
        r"heads \(6\) must be a multiple of key_value_heads \(0\)",
    ),
    "heads of some size": (
        lambda: MultiHead(12, 3, head_size=0),
        r"head_size \(0\) must be 1 or more",
    ),
    "keys of some size": (
        lambda: MultiHead(12, 3, key_size=0),
        r"key_size \(0\) must be 1 or more",
    ),
    "rotary of that size": (
        lambda: MultiHead(12, 3, position=Rotary(6)),
        "position turns heads of size 6, these have 4",
    ),
    "slopes for these heads": (
        lambda: MultiHead(12, 3, position=ALiBi(1)),
        "position is made for 1 heads, there are 3",
    ),
    "a share to drop": (lambda: MultiHead(12, 3, dropout=1.5), r"dropout \(1.5\) must be at least"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_heads_that_cannot_work_are_not_built(name):
    build, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("position", [Rotary(4), ALiBi(3), RelativeBias(3)], ids=str)
def test_positions_of_two_sequences_are_refused(position):
    """Among three, the first query would stand on the second of four keys; alone, on the last."""
    name = type(position).__name__
    model, memory, x = MultiHead(12, 3, position=position), numbers(2, 4, 12), numbers(2, 3, 12)
    model.double()
    message = rf"position \({name}\) needs queries and keys of one sequence, but queries "
    for queries in (x, x[:, :1], numbers(2, 5, 12), memory[:, :3]):
        with pytest.raises(ValueError, match=message + r"\(2, \d, 12\) are not the last of keys"):
            model(queries, memory)
    with pytest.raises(ValueError, match=rf"position \({name}\) needs .* key_size \(5\) is not"):
        MultiHead(12, 3, key_size=5, position=position)


@pytest.mark.parametrize("position", [Rotary(4), ALiBi(3), RelativeBias(3)], ids=str)
def test_positions_of_one_sequence_are_welcome_whichever_way_it_comes(position):
    model, x = randomise(MultiHead(12, 3, position=position)), numbers(BATCH, LENGTH, 12)
    whole = model(x, mask=Causal())
    assert_close(model(x, x, x, mask=Causal()), whole)
    assert_close(model(x, x.clone(), mask=Causal()), whole)
    cached, steps = KeyValueCache(), []
    for t in range(LENGTH):
        word = x[:, t : t + 1]
        assert_close(model(word, x[:, : t + 1], mask=Causal()), whole[:, t : t + 1])
        steps.append(model(word, word.clone(), mask=Causal(), cache=cached))
    assert_close(torch.cat(steps, dim=1), whole)


def test_vectors_of_the_wrong_shape_are_named():
    model = MultiHead(12, 3)
    with pytest.raises(ValueError, match=r"queries \(2, 7, 11\) must be \(batch, position, 12\)"):
        model(torch.randn(2, 7, 11))
    with pytest.raises(ValueError, match=r"queries \(7, 12\) must be \(batch, position, 12\)"):
        model(torch.randn(7, 12))
    with pytest.raises(ValueError, match=r"keys \(2, 7, 5\) must be \(batch, position, 12\)"):
        model(torch.randn(2, 7, 12), torch.randn(2, 7, 5))
    with pytest.raises(ValueError, match=r"values \(2, 7, 5\) must be \(batch, position, 12\)"):
        model(torch.randn(2, 7, 12), torch.randn(2, 7, 12), torch.randn(2, 7, 5))
    with pytest.raises(ValueError, match=r"values \(2, 7, 12\) came without their keys"):
        model(torch.randn(2, 7, 12), values=torch.randn(2, 7, 12))
    with pytest.raises(ValueError, match="must agree in their leading axes"):
        model(torch.randn(2, 7, 12), torch.randn(3, 7, 12))


def test_keys_of_another_size_must_be_handed_in():
    model = MultiHead(12, 3, key_size=5)
    with pytest.raises(ValueError, match="keys are needed: this attention was built for keys of"):
        model(torch.randn(2, 7, 12))
    with pytest.raises(ValueError, match=r"keys \(2, 7, 12\) must be \(batch, position, 5\)"):
        model(torch.randn(2, 7, 12), torch.randn(2, 7, 12))


def test_a_mask_of_the_wrong_kind_is_named():
    model, x = MultiHead(12, 3), torch.randn(2, 7, 12)
    with pytest.raises(ValueError, match=r"mask \(torch.float32 .*\) must be a boolean tensor"):
        model(x, mask=torch.zeros(2, 7, 7))
    with pytest.raises(ValueError, match=r"mask \(2, 5, 7, 7\) does not fit the scores"):
        model(x, mask=torch.ones(2, 5, 7, 7, dtype=torch.bool))


class Eighths(nn.Module):
    """Stands in for a quantised layer: called like a Linear, with no weight to be cut or named."""

    def __init__(self, linear):
        super().__init__()
        self.steps = (linear.weight.detach() * 8).round().to(torch.int8)
        self.offset = linear.bias.detach()

    def forward(self, vectors):
        return vectors @ (self.steps.to(vectors.dtype) / 8).T + self.offset


@pytest.mark.parametrize("key_size", [SIZE, 11], ids=["packed", "separate"])
def test_projections_can_be_swapped(key_size):
    """What the swapped layers compute is what torch's heads compute with the rounded weights."""
    model = randomise(MultiHead(SIZE, HEADS, key_size=key_size))
    rounded = copy.deepcopy(model)
    for name, part in list(model.named_modules()):
        if isinstance(part, nn.Linear):
            owner = model.get_submodule(name.rpartition(".")[0])
            setattr(owner, name.rpartition(".")[2], Eighths(part))
            with torch.no_grad():
                weight = rounded.get_submodule(name).weight
                weight.copy_((weight * 8).round() / 8)
    x, memory = numbers(BATCH, LENGTH, SIZE), numbers(BATCH, 5, key_size)
    assert_close(model(x, memory), rounded(x, memory))
    assert_close(model(x, model.prepare(memory)), rounded(x, memory))
    if key_size == SIZE:
        assert_close(model(x, mask=Causal()), rounded(x, mask=Causal()))
    else:
        with pytest.raises(ValueError, match="keys are needed"):
            model(x)


class Rounded(nn.Module):
    """A linear layer with weights in eighths, and no matrix to be seen."""

    def __init__(self, layer):
        super().__init__()
        self.call = functools.partial(F.linear, weight=(layer.weight * 8).round() / 8)

    def forward(self, inputs):
        return self.call(inputs)


def test_another_kind_of_layer_can_take_the_place_of_the_projection():
    model = randomise(MultiHead(32, 4, bias=False)).float().eval()
    rounded = copy.deepcopy(model)
    rounded.projection = Rounded(model.projection)
    with torch.no_grad():
        model.projection.weight.copy_((model.projection.weight * 8).round() / 8)
        x, memory, cache = (
            torch.randn(BATCH, LENGTH, 32),
            torch.randn(BATCH, 7, 32),
            KeyValueCache(),
        )
        exact = model(x, mask=Causal())
        assert_close(rounded(x, mask=Causal()), exact)
        steps = [rounded(word, mask=Causal(), cache=cache) for word in x.split(1, dim=1)]
        assert_close(torch.cat(steps, dim=1), exact)
        assert_close(rounded(x, memory), model(x, memory))  # queries and memory apart
