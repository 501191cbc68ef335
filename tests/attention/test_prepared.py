"""Keys and memory transformed once say at every step what they would say anew."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import (
    Additive,
    ALiBi,
    Attention,
    Cosine,
    General,
    KeyValueCache,
    MultiHead,
    Padding,
    Rotary,
    ScaledDot,
)

BATCH, KEYS, SIZE, STEPS = 3, 7, 5, 4
SCORES = {
    "additive": lambda: Additive(SIZE, SIZE, 11),
    "cosine": lambda: Cosine(2.0),
    "general": lambda: General(SIZE, SIZE),
    "scaled dot": ScaledDot,
}


def numbers(*shape, spread=1.0):
    return spread * torch.randn(*shape, dtype=torch.float64)


def naive_step(score, query, keys, memory):
    """softmax(vᵀ tanh(W q + U k)) memory, with every product written out."""
    hidden = torch.tanh(score.query(query) + score.key(keys))  # (batch, key, hidden)
    return (hidden @ score.direction).softmax(dim=-1).unsqueeze(1) @ memory


@pytest.mark.parametrize("spread", [1.0, 30.0, 500.0])
def test_a_decoder_over_prepared_additive_keys_learns_what_the_naive_one_learns(spread):
    """Each query depends on what the last one read, as in a decoder; saturated sums among them."""
    attention = Attention(Additive(SIZE, SIZE, 11)).double()
    memory, first = numbers(BATCH, KEYS, SIZE, spread=spread), numbers(BATCH, 1, SIZE)
    upstream = numbers(BATCH, 1, SIZE)

    def learn(step):
        leaf = memory.clone().requires_grad_()
        attention.zero_grad()
        query, keys = first, attention.prepare(leaf)
        for _ in range(STEPS):
            query = step(query, keys, leaf)
        (query * upstream).sum().backward()
        return [query, leaf.grad, *(p.grad.clone() for p in attention.parameters())]

    ours = learn(lambda query, keys, leaf: attention(query, keys, leaf).context)
    theirs = learn(lambda query, _, leaf: naive_step(attention.score, query, leaf, leaf))
    for actual, correct in zip(ours, theirs, strict=True):
        assert_close(actual, correct)


@pytest.mark.parametrize("spread", [0.01, 5.0, 25.0, 39.0, 45.0, 1e4])
def test_prepared_exponentials_keep_the_digits_of_the_tanh(spread):
    attention = Attention(Additive(SIZE, SIZE, SIZE))
    with torch.no_grad():
        for part in (attention.score.query, attention.score.key):
            part.weight.copy_(torch.eye(SIZE))
    signs = torch.randn(BATCH, KEYS, SIZE).sign()
    keys = spread * signs + torch.randn(BATCH, KEYS, SIZE)
    query = -spread * signs[:, :1] + torch.randn(BATCH, 1, SIZE)  # some sums cancel, others grow
    scores = attention(query, attention.prepare(keys), keys).scores.squeeze(1)
    exact = torch.tanh(query.double() + keys.double()) @ attention.score.direction.double()
    assert_close(scores.double(), exact, atol=1e-5, rtol=1e-5)


def test_a_key_beyond_the_exponentials_reach_keeps_its_digits():
    """e^(2 · 44.5) is no float32 any more, yet tanh(44.5 − 39.5) is not 1."""
    attention = Attention(Additive(1, 1, 1))
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.fill_(1.0)
    query, keys = torch.full((1, 1, 1), -39.5), torch.full((1, 1, 1), 44.5)
    scores = attention(query, attention.prepare(keys), keys).scores
    assert scores.item() == pytest.approx(math.tanh(5.0), abs=1e-6)


def test_some_heads_and_rows_of_prepared_keys_score_what_all_of_them_score():
    score = Additive(SIZE, SIZE, 11).double()
    query, keys = numbers(BATCH, 2, 1, SIZE), numbers(BATCH, 2, KEYS, SIZE)
    compared = score(query, score.prepare(keys))
    expected = torch.tanh(score.query(query) + score.key(keys)) @ score.direction
    expected = expected.unsqueeze(-2)  # (batch, head, 1, key)
    assert_close(compared.scores(), expected)
    assert_close(compared.heads(torch.tensor([1])).scores(), expected[:, 1:])
    assert_close(compared.pick(torch.tensor([2, 0])).scores(), expected[[2, 0]])


@pytest.mark.parametrize("name", SCORES)
def test_rows_can_be_picked_from_prepared_keys(name):
    attention, keys = Attention(SCORES[name]()).double(), numbers(BATCH, KEYS, SIZE)
    rows, query = torch.tensor([2, 0, 0, 1]), numbers(4, 1, SIZE)
    picked = attention(query, attention.prepare(keys).pick(rows), keys[rows])
    assert_close(picked.context, attention(query, keys[rows], keys[rows]).context)


@pytest.mark.parametrize("spread", [1.0, 1e4])
@pytest.mark.parametrize("name", SCORES)
def test_prepared_keys_can_grow(name, spread):
    """With keys too large for their exponentials behind others that are not, too."""
    attention, query = Attention(SCORES[name]()).double(), numbers(BATCH, 1, SIZE)
    keys, later = numbers(BATCH, KEYS, SIZE), numbers(BATCH, 2, SIZE, spread=spread)
    grown = attention.prepare(keys).append(attention.prepare(later))
    everything = torch.cat([keys, later], dim=1)
    read = attention(query, grown, everything)
    assert_close(read.context, attention(query, everything, everything).context)
    assert_close(read.pick(1).weights, attention(query, everything, everything).weights[1:2])


def test_detached_keys_end_the_gradient():
    attention, keys = Attention(Additive(SIZE, SIZE, 11)), torch.randn(BATCH, KEYS, SIZE)
    prepared = attention.prepare(keys).detach()
    attention(torch.randn(BATCH, 1, SIZE), prepared, keys).context.sum().backward()
    assert attention.score.key.weight.grad is None
    assert attention.score.query.weight.grad is not None


def test_all_rows_in_their_order_are_not_copied():
    attention = Attention(Additive(SIZE, SIZE, 11))
    prepared = attention.prepare(torch.randn(BATCH, KEYS, SIZE))
    picked = prepared.pick(torch.arange(BATCH))
    assert picked.keys is prepared.keys
    assert picked.exponentials is prepared.exponentials
    assert prepared.pick(torch.arange(BATCH - 1)).keys.shape[0] == BATCH - 1


def torch_heads(key_size, value_size):
    """torch's own multi-head attention, and ours with its weights."""
    theirs = nn.MultiheadAttention(12, 3, kdim=key_size, vdim=value_size, batch_first=True).double()
    ours = MultiHead(12, 3, key_size=key_size, value_size=value_size).double()
    with torch.no_grad():
        for parameter in theirs.parameters():
            nn.init.normal_(parameter, std=0.3)
        if theirs.in_proj_weight is not None:
            ours.projection.weight.copy_(theirs.in_proj_weight)
            ours.projection.bias.copy_(theirs.in_proj_bias)
        else:
            matrices = (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
            for i, (matrix, bias) in enumerate(
                zip(matrices, theirs.in_proj_bias.chunk(3), strict=True)
            ):
                ours.projection[i].weight.copy_(matrix)
                ours.projection[i].bias.copy_(bias)
        ours.output.load_state_dict(theirs.out_proj.state_dict())
    return theirs, ours


@pytest.mark.parametrize("sizes", [(12, 12), (7, 11)], ids=["one size", "other sizes"])
def test_memory_projected_once_is_what_torch_projects_at_every_step(sizes):
    theirs, ours = torch_heads(*sizes)
    keys, values = (numbers(BATCH, KEYS, size) for size in sizes)
    lengths = torch.tensor([7, 4, 5])
    hidden = torch.arange(KEYS) >= lengths.unsqueeze(-1)
    queries = [numbers(BATCH, 1, 12) for _ in range(STEPS)]

    def learn(make_step):
        leaves = [x.clone().requires_grad_() for x in (keys, values)]
        step = make_step(*leaves)
        outputs = torch.cat([step(query) for query in queries], dim=1)
        (outputs * torch.arange(12.0)).sum().backward()
        return [outputs, *(leaf.grad for leaf in leaves)]

    def prepare(k, v):
        memory = ours.prepare(k, v)
        return lambda query: ours(query, memory, mask=Padding(lengths))

    expected = learn(lambda k, v: lambda query: theirs(query, k, v, key_padding_mask=hidden)[0])
    for actual, correct in zip(learn(prepare), expected, strict=True):
        assert_close(actual, correct)


@pytest.mark.parametrize("groups", [1, 3])
def test_memory_can_be_picked_and_grow(groups):
    model = MultiHead(12, 3, key_value_heads=groups).double()
    encoded, later = numbers(BATCH, KEYS, 12), numbers(4, 2, 12)
    rows, query = torch.tensor([2, 0, 0, 1]), numbers(4, 1, 12)
    memory = model.prepare(encoded).pick(rows).append(model.prepare(later))
    assert_close(model(query, memory), model(query, torch.cat([encoded[rows], later], dim=1)))


def test_memory_may_be_scored_by_any_score():
    model = MultiHead(12, 3, score=Additive(4, 4, 5)).double()
    encoded, query = numbers(BATCH, KEYS, 12), numbers(BATCH, 1, 12)
    assert_close(model(query, model.prepare(encoded)), model(query, encoded))


@pytest.mark.parametrize("position", [Rotary(4), ALiBi(3)], ids=["rotary", "alibi"])
def test_memory_has_no_distance_from_a_query(position):
    with pytest.raises(ValueError, match="distances between two"):
        MultiHead(12, 3, position=position).prepare(torch.randn(BATCH, KEYS, 12))


def test_prepared_memory_takes_no_values_and_no_cache():
    model, encoded = MultiHead(12, 3), torch.randn(BATCH, KEYS, 12)
    memory, query = model.prepare(encoded), torch.randn(BATCH, 1, 12)
    for words in ({"values": encoded}, {"cache": KeyValueCache()}):
        with pytest.raises(ValueError, match="prepared keys have their values"):
            model(query, memory, **words)
