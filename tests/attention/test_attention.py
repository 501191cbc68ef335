"""The core itself: what it reads, what it tells when asked, and what it refuses."""

import copy
import math
from functools import partial
from itertools import cycle, product

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

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
    NTMAddressing,
    Padding,
    Proportional,
    RelativeBias,
    ScaledDot,
    Softmax,
    Sparsemax,
    StrictlyCausal,
    Window,
    edit,
    fused,
)
from regard.attention import attention as attention_module

SCORES = {
    "dot": lambda: Dot(),
    "scaled": lambda: ScaledDot(),
    "general": lambda: General(5, 5),
    "cosine": lambda: Cosine(2.0),
    "additive": lambda: Additive(5, 5, 11),
    "location": lambda: Location(5, 13),
}
WEIGHINGS = {
    "softmax": lambda: Softmax(),
    "base 3": lambda: Softmax(base=3.0, temperature=0.5),
    "sparsemax": lambda: Sparsemax(),
    "proportional": lambda: Proportional(),
    "hard": lambda: Hard(),
    "local-m": lambda: LocalMonotonic(2),
    "local-p": lambda: LocalPredictive(5, reach=2),
}
PATHS = ["as it is", "blocked"]
LEADING = [(), (2,), (2, 3), (5, 7), (2, 3, 2)]
PLACES = [("as it is", leading) for leading in LEADING] + [("blocked", (2, 3))]
# Every score once and every weighing once, for what does not depend on how the two are paired.
EACH_ONCE = [(score, "softmax") for score in SCORES]
EACH_ONCE += [("general", weigh) for weigh in WEIGHINGS if weigh != "softmax"]
LEARNED = [(score, weigh) for score, weigh in EACH_ONCE if score not in ("dot", "scaled")]


def inputs(*leading, rows=3, keys=7, size=5, value=11, dtype=torch.float32):
    shapes = [(rows, size), (keys, size), (keys, value)]
    return [torch.randn(*leading, *shape, dtype=dtype) for shape in shapes]


def test_aaba_asked_for_b_reads_mostly_the_b():
    a, b = [1.0, 0.0], [0.0, 1.0]
    keys = torch.tensor([[a, a, b, a]])
    read = Attention(Dot())(torch.tensor([[b]]), keys, keys)
    expected = torch.tensor([[[0.1749, 0.1749, 0.4754, 0.1749]]])
    assert_close(read.weights, expected, atol=1e-4, rtol=0)
    assert_close(read.context, torch.tensor([[[0.5246, 0.4754]]]), atol=1e-4, rtol=0)


def test_aaba_in_base_three_is_half_and_half():
    a, b = [1.0, 0.0], [0.0, 1.0]
    keys = torch.tensor([[a, a, b, a]])
    read = Attention(Dot(), Softmax(base=3))(torch.tensor([[b]]), keys, keys)
    assert_close(read.weights, torch.tensor([[[1 / 6, 1 / 6, 1 / 2, 1 / 6]]]))
    assert_close(read.context, torch.tensor([[[0.5, 0.5]]]))


def test_scaled_dot_attention_agrees_with_torch_under_a_mask():
    queries, keys, values = inputs(2)
    mask = torch.arange(7).expand(2, 3, 7) < 4
    read = Attention(ScaledDot())(queries, keys, values, mask)
    assert_close(read.context, scaled_dot_product_attention(queries, keys, values, mask))


def test_even_weights_read_the_mean():
    queries, keys, values = inputs(2)
    read = Attention(Dot(), Given(torch.full((7,), 1 / 7)))(queries, keys, values)
    assert_close(read.context, values.mean(dim=1, keepdim=True).expand(2, 3, 11))


# Places take turns: each score and each weighing comes to each of them.
@pytest.mark.parametrize(
    "pair, place", list(zip(product(SCORES, WEIGHINGS), cycle(PLACES))), ids=str
)
def test_the_weights_on_demand_are_those_that_made_the_context(pair, place, take):
    (score, weigh), (path, leading) = pair, place
    take(path)
    attention = Attention(SCORES[score](), WEIGHINGS[weigh]())
    queries, keys, values = inputs(*leading)
    if weigh == "proportional":  # sums near zero would ask for more digits than there are
        queries, keys, values = queries.double(), keys.double(), values.double()
        attention.double()
    with torch.no_grad():
        for mask in (None, Causal(), Window(2)):
            read = attention(queries, keys, values, mask)
            assert read.context.shape == (*leading, 3, 11)
            assert read.weights.shape == (*leading, 3, 7)
            assert_close(read.weights @ values, read.context, atol=1e-5, rtol=1e-5)


def head_mask():
    return torch.rand(2, 3, 5, 7) > 0.3


@pytest.mark.parametrize("score, weigh", EACH_ONCE)
def test_a_part_of_the_weights_is_that_part_of_the_whole(score, weigh):
    attention = Attention(SCORES[score](), WEIGHINGS[weigh]()).double()
    tensors = inputs(2, 3, rows=5, dtype=torch.float64)
    for mask in (None, StrictlyCausal(), head_mask(), Padding(torch.tensor([3, 7]))):
        read = attention(*tensors, mask)
        whole = read.weights
        assert_close(read.weights_of(), whole)
        assert_close(read.weights_of(heads=1), whole[:, 1:2])
        assert_close(read.weights_of(heads=-1, rows=2), whole[:, 2:3, 2:3])
        assert_close(read.weights_of(rows=slice(1, 4)), whole[:, :, 1:4])
        assert_close(
            read.weights_of(heads=[2, 0], rows=[4, 0, 0]), whole[:, [2, 0]][:, :, [4, 0, 0]]
        )
        own = read.pick(1)
        assert_close(own.weights, whole[1:])
        assert_close(own.weights_of(heads=2, rows=[3]), whole[1:, 2:3, 3:4])
        assert_close(own.context, read.context[1:])


@pytest.mark.parametrize("make", [ALiBi, RelativeBias])
def test_a_part_of_biased_weights_is_that_part_of_the_whole(make):
    tensors = inputs(2, 3, rows=5, dtype=torch.float64)
    bias = make(3).double()(5, 7)
    read = Attention(ScaledDot())(*tensors, Causal(), bias=bias)
    whole = read.weights
    assert_close(read.weights_of(heads=[2, 1], rows=[4, 0]), whole[:, [2, 1]][:, :, [4, 0]])
    assert_close(read.pick(1).weights, whole[1:])
    assert_close(whole @ tensors[2], read.context)


@pytest.mark.parametrize("path", PATHS)
def test_a_bias_is_added_before_the_softmax_sharpens(path, take):
    take(path)
    queries, keys, values = inputs(2, 3, rows=7, dtype=torch.float64)
    slopes = torch.tensor([1 / 4, 1 / 16, 1 / 64], dtype=torch.float64)
    bias = ALiBi(3).double()
    bias.slopes.copy_(slopes)
    read = Attention(Dot(), Softmax(temperature=0.5))(queries, keys, values, bias=bias(7, 7))
    distance = (torch.arange(7) - torch.arange(7).unsqueeze(-1)).abs()
    scores = queries @ keys.mT - slopes.view(3, 1, 1) * distance
    expected = (2 * scores).softmax(dim=-1)
    assert_close(read.weights, expected)
    assert_close(read.context, expected @ values)


def step_optimizer(attention, *others):
    """Move every parameter, as an optimizer does."""
    parameters = [*attention.parameters(), *others]
    torch.optim.SGD(parameters, lr=1.0).step()


@pytest.mark.parametrize("score, weigh", LEARNED)
def test_what_was_seen_stays_true_after_an_optimizer_step(score, weigh):
    attention = Attention(SCORES[score](), WEIGHINGS[weigh]())
    queries, keys, values = inputs(2)
    read = attention(queries, keys, values, Causal())
    before = read.weights.detach().clone()
    fresh = read.context.detach().clone()
    for parameter in attention.parameters():
        parameter.grad = torch.randn_like(parameter)
    step_optimizer(attention)
    assert torch.equal(read.weights, before)
    assert torch.equal(read.weights_of(rows=[1]), before[:, 1:2])
    if weigh == "softmax":  # the parameters did move
        assert (attention(queries, keys, values, Causal()).context - fresh).abs().max() > 1e-3


def test_biased_weights_stay_true_after_an_optimizer_step():
    attention, position = Attention(ScaledDot()), RelativeBias(3)
    tensors = inputs(2, 3)
    read = attention(*tensors, bias=position(3, 7))
    before = read.weights.detach().clone()
    position.table.grad = torch.randn_like(position.table)
    step_optimizer(attention, position.table)
    assert torch.equal(read.weights, before)


@pytest.mark.parametrize("score", ["dot", "scaled", "cosine"])
def test_a_learned_query_or_key_may_move_on_and_the_look_stays(score):
    query, memory = nn.Parameter(torch.randn(1, 5)), nn.Parameter(torch.randn(7, 5))
    attention = Attention(SCORES[score]())
    read = attention(query.expand(2, 1, 5), memory.expand(2, 7, 5), torch.randn(2, 7, 3))
    before = read.weights.detach().clone()
    query.grad, memory.grad = torch.randn_like(query), torch.randn_like(memory)
    step_optimizer(attention, query, memory)
    assert torch.equal(read.weights, before)


def controls(batch):
    """What an NTM's controller might say of five rows: (batch, query, …)."""
    previous = torch.rand(batch, 3, 7, dtype=torch.float64).softmax(dim=-1)
    return Controls.of(torch.randn(batch, 3, 6, dtype=torch.float64), previous)


CARRIERS = {
    "hard": (lambda: Hard(), lambda: None),
    "local-m": (lambda: LocalMonotonic(2), lambda: 3),
    "local-p": (lambda: LocalPredictive(5, reach=2), lambda: None),
    "ntm": (lambda: NTMAddressing(), lambda: controls(5)),
    "softmax": (lambda: Softmax(), lambda: controls(5)),
}


@pytest.mark.parametrize("name", CARRIERS)
def test_a_picked_row_carries_what_is_its_own(name):
    weigh, carried = (make() for make in CARRIERS[name])
    attention = Attention(Dot(), weigh).double().eval()
    queries, keys, values = inputs(5, dtype=torch.float64)
    read = attention(queries, keys, values, carried=carried)
    for rows, chosen in ((3, [3]), (slice(1, 3), [1, 2]), (torch.tensor([4, 0, 4]), [4, 0, 4])):
        own = read.pick(rows)
        alone = carried
        if isinstance(carried, Controls):
            alone = Controls(*(part[chosen] for part in carried))
        expected = attention(queries[chosen], keys[chosen], values[chosen], carried=alone)
        assert type(own.carried) is type(expected.carried)
        assert_close(own.carried, expected.carried)
        assert_close(own.context, expected.context)
        assert_close(own.weights, expected.weights)


def test_what_is_carried_for_the_whole_batch_goes_with_every_row():
    read = Attention(Dot())(*inputs(2), carried=(torch.tensor(3.0), torch.ones(1, 3), "a word"))
    step, shared, word = read.pick(1).carried
    assert (step.item(), shared.shape, word) == (3.0, (1, 3), "a word")


def test_dropout_thins_what_is_read_and_not_the_weights():
    attention = Attention(ScaledDot(), dropout=0.4)
    queries, keys, values = inputs(2)
    keep = attention.eval()(queries, keys, values)
    drop = attention.train()(queries, keys, values)
    assert torch.equal(drop.weights, keep.weights)
    assert_close(keep.context, scaled_dot_product_attention(queries, keys, values))


@pytest.mark.parametrize("path", ["as it is", "blocked", "edited", "plain"])
def test_dropout_hides_its_share_and_makes_up_for_it(path, take, monkeypatch):
    """Every value is 1: each context is the weight that was left, divided by 1 − 0.4."""
    if path == "plain":
        monkeypatch.setattr(attention_module, "MAX_PLAIN_CAUSAL_SCORES", 500 * 100)
    else:
        take(path)
    attention = Attention(Dot(), dropout=0.4)
    changes = {"attention": lambda weights, mask, call: weights} if path == "edited" else {}
    rows = torch.zeros(1, 500, 3)
    with edit(attention, changes):
        context = attention(rows, torch.zeros(1, 100, 3), torch.ones(1, 100, 1)).context
    left = 100 * 0.6 * context
    assert_close(left.round(), left, atol=1e-3, rtol=0)  # a whole number of keys …
    assert left.mean().item() == pytest.approx(60, abs=0.7)  # … 60 of 100, √(24 / 500) = 0.2 about
    assert left.std().item() == pytest.approx(24**0.5, abs=0.7)


HALVES = [(torch.float16, 4e-3), (torch.bfloat16, 3e-2)]
STABLE = ["softmax", "sparsemax", "hard", "local-m", "local-p"]


@pytest.mark.parametrize("pair, half", list(zip(product(SCORES, STABLE), cycle(HALVES))), ids=str)
def test_half_precision_reads_what_single_precision_reads(pair, half):
    (score, weigh), (dtype, near) = pair, half
    attention = Attention(SCORES[score](), WEIGHINGS[weigh]()).eval()
    tensors = [x.to(dtype) for x in inputs(2, 3)]
    attention.to(dtype)
    exact = copy.deepcopy(attention).float()
    mask = Padding(torch.tensor([0, 5]))
    read = attention(*tensors, mask)
    assert read.context.dtype == read.weights.dtype == dtype
    expected = exact(*(x.float() for x in tensors), mask)
    assert_close(read.context.float(), expected.context, atol=5 * near, rtol=near)
    assert_close(read.weights.float(), expected.weights, atol=near, rtol=near)


def identity():
    score = General(64, 64)
    nn.init.eye_(score.matrix.weight)
    return score


@pytest.mark.parametrize(
    "score, few, causal",
    [(Dot, 1 << 14, False), (ScaledDot, 1 << 14, True), (identity, 0, False), (Dot, 0, True)],
    ids=["few tokens", "few tokens, causal", "kernel", "kernel, causal"],
)
def test_scores_beyond_the_largest_half_are_read_as_they_are(score, few, causal, monkeypatch):
    monkeypatch.setattr(attention_module, "MAX_PLAIN_SCORES", few)
    monkeypatch.setattr(attention_module, "MAX_PLAIN_CAUSAL_SCORES", few)
    size = 200.0 if score is ScaledDot else 64.0
    keys = torch.full((2, 3, 64), size, dtype=torch.float16)
    keys[:, 1] *= -1  # scores of ±262,144, beyond 65,504: every query sees only keys like itself
    values = torch.tensor([[1.0, 2.0, 4.0]] * 2, dtype=torch.float16).unsqueeze(-1)
    attention = Attention(score()).half()
    read = attention(keys, keys, values, Causal() if causal else None)
    first = [1.0, 0.0, 0.0] if causal else [0.5, 0.0, 0.5]
    expected = torch.tensor([[first, [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]] * 2).half()
    assert torch.equal(read.weights, expected)
    assert torch.equal(read.context, expected @ values)


def test_every_explicit_way_bears_large_scores():
    """Dropout, a change and another weighing have their weights written out."""
    keys = 64 * torch.tensor([[[1.0] * 64, [-1.0] * 64]]).half()
    values = torch.tensor([[[3.0], [5.0]]]).half()
    ways = [Attention(Dot(), dropout=1e-9), Attention(Dot(), Sparsemax()), Attention(Dot())]
    for attention in ways:
        changes = {"attention": lambda weights, mask, call: weights} if attention is ways[2] else {}
        with edit(attention, changes):
            read = attention(keys, keys, values)
        assert torch.equal(read.context, values)
        assert torch.equal(read.weights, torch.eye(2).half().unsqueeze(0))


def test_autocast_does_not_overflow_what_the_kernel_would_not():
    keys = 64 * torch.tensor([[[1.0] * 64, [-1.0] * 64]])
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast("cpu", dtype):
            read = Attention(Dot())(keys, keys, keys)
            assert read.context.dtype == dtype
            assert torch.equal(read.context.float(), keys)
            assert torch.equal(read.weights, torch.eye(2).unsqueeze(0))


@pytest.mark.parametrize("bias", [None, ALiBi(3).double()(3, 7)], ids=["no bias", "bias"])
def test_autocast_leaves_double_precision_alone(bias):
    tensors = inputs(2, 3, dtype=torch.float64)
    alone = Attention(Dot())(*tensors, bias=bias).context
    with torch.autocast("cpu", torch.bfloat16):
        assert_close(Attention(Dot())(*tensors, bias=bias).context, alone)


@pytest.mark.parametrize("dtype, near", [(torch.float16, 0.01), (torch.bfloat16, 0.08)])
def test_few_tokens_have_scores_of_single_precision(dtype, near):
    """A score of 30 has a rounding error of 0.06 in bfloat16, and its weight one of 6 %."""
    queries, keys, values = (3 * torch.randn(2, 3, 16, 64).to(dtype) for _ in range(3))
    weights = (queries.double() @ keys.double().mT).softmax(dim=-1)
    read = Attention(Dot())(queries, keys, values)
    assert_close(read.context.double(), weights @ values.double(), atol=near, rtol=0)
    assert_close(read.weights.double(), weights, atol=torch.finfo(dtype).eps, rtol=0)


@pytest.mark.parametrize("score, weigh", EACH_ONCE)
def test_autocast_may_end_before_anybody_asks(score, weigh):
    attention = Attention(SCORES[score](), WEIGHINGS[weigh]())
    queries, keys, values = inputs(2)
    queries.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        read = attention(queries, keys, values, Causal())
    assert read.weights.isfinite().all()
    if weigh == "softmax":
        exact = attention(queries, keys, values, Causal())
        assert_close(read.weights.float(), exact.weights, atol=0.05, rtol=0)
    if read.context.requires_grad:
        read.context.float().sum().backward()
        assert queries.grad is None or queries.grad.isfinite().all()


def test_scores_are_told_before_the_mask_and_the_weighing():
    queries, keys, values = inputs(2)
    read = Attention(Dot())(queries, keys, values, StrictlyCausal())
    assert_close(read.scores, queries @ keys.mT)


def test_a_copy_attends_like_its_original():
    attention = Attention(Additive(5, 5, 7), LocalPredictive(5))
    twin = copy.deepcopy(attention)
    other = Attention(Additive(5, 5, 7), LocalPredictive(5))
    other.load_state_dict(attention.state_dict())
    tensors = inputs(2)
    expected = attention(*tensors).context
    assert torch.equal(twin(*tensors).context, expected)
    assert torch.equal(other(*tensors).context, expected)


def test_long_inputs_are_read_in_blocks_without_a_difference(take):
    tensors = inputs(2, 3, rows=31, keys=31, dtype=torch.float64)
    for score in SCORES.values():
        attention = Attention(score() if score is not SCORES["location"] else Location(5, 31))
        attention.double()
        whole = attention(*tensors, Causal()).context
        take("blocked")
        assert_close(attention(*tensors, Causal()).context, whole)


REFUSED = {
    "queries must be many": ((5,), (2, 7, 5), (2, 7, 11), r"queries \(5,\) must be \(…, position"),
    "each key has its value": (
        (2, 3, 5),
        (2, 7, 5),
        (2, 5, 11),
        r"keys \(2, 7, 5\) and values \(2",
    ),
    "one batch": (
        (3, 3, 5),
        (2, 7, 5),
        (2, 7, 11),
        r"queries \(3, 3, 5\) and keys \(2, 7, 5\) must",
    ),
    "as many axes": ((3, 5), (2, 7, 5), (2, 7, 11), r"queries \(3, 5\) and keys \(2, 7, 5\) must"),
    "one size": ((2, 3, 5), (2, 7, 3), (2, 7, 11), r"Dot needs queries and keys of one size"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_shapes_that_do_not_fit_are_named(name):
    *shapes, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        Attention(Dot())(*(torch.randn(shape) for shape in shapes))


def test_a_mask_that_does_not_fit_is_named():
    attention, tensors = Attention(Dot()), inputs(2, 3)
    with pytest.raises(ValueError, match=r"mask \(2, 5, 3, 7\) does not fit the scores"):
        attention(*tensors, torch.ones(2, 5, 3, 7, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"mask \(torch.float32 \(3, 7\)\) must be a boolean"):
        attention(*tensors, torch.zeros(3, 7))
    with pytest.raises(ValueError, match=r"mask \(list .*\) must be a boolean tensor or a Mask"):
        attention(*tensors, [[True] * 7] * 3)
    with pytest.raises(ValueError, match="for a batch of 3, but the batch has 2 rows"):
        attention(*tensors, Causal() & Padding(torch.tensor([1, 2, 3])))


def test_numbers_must_be_of_one_precision():
    queries, keys, values = inputs(2)
    with pytest.raises(ValueError, match=r"torch.float64.*torch.float32.*one precision"):
        Attention(Dot())(queries.double(), keys, values)
    with pytest.raises(ValueError, match=r"values \(torch.int64\) must be floating-point"):
        Attention(Dot())(queries, keys, values.long())


@pytest.mark.parametrize("dropout", [-0.1, 1.0, math.nan])
def test_dropout_is_a_share_below_all(dropout):
    with pytest.raises(ValueError, match=r"dropout \(.*\) must be at least 0 and below 1"):
        Attention(Dot(), dropout=dropout)


def test_rows_and_heads_beyond_the_last_are_refused():
    read = Attention(Dot())(*inputs(2, 3))
    with pytest.raises(ValueError, match=r"rows \(\[1, 3\]\) must lie within 0 … 2"):
        read.weights_of(rows=[1, 3])
    with pytest.raises(ValueError, match=r"heads \(7\) must lie within 0 … 2"):
        read.weights_of(heads=7)
    with pytest.raises(ValueError, match=r"rows \(\(0, 1\)\) must be .* a list of numbers"):
        read.weights_of(rows=(0, 1))
    with pytest.raises(ValueError, match=r"heads \(0\) were asked for, but this attention has one"):
        Attention(Dot())(*inputs(2)).weights_of(heads=0)
    with pytest.raises(ValueError, match=r"rows \(2\) must lie within the batch, which has 2 rows"):
        read.pick(2)
    for rows in ([1, -1], [0, 2]):
        with pytest.raises(ValueError, match=r"rows \(\[.*\]\) must lie within the batch"):
            read.pick(torch.tensor(rows))


def test_a_bias_needs_an_inner_product():
    with pytest.raises(ValueError, match=r"bias \(Bias\) needs a score that is an inner product"):
        Attention(Additive(5, 5, 7))(*inputs(2, 3), bias=ALiBi(3)(3, 7))


@pytest.mark.parametrize(
    "leading, heads, rows, keys",
    [((2, 3), 2, 3, 7), ((2,), 2, 3, 7), ((), 1, 3, 7), ((2, 3), 3, 2, 7), ((2, 3), 3, 3, 5)],
)
def test_a_bias_must_be_made_for_these_heads_queries_and_keys(leading, heads, rows, keys):
    message = f"bias is for {heads} heads, {rows} queries and {keys} keys, but the scores have"
    with pytest.raises(ValueError, match=message):
        Attention(Dot())(*inputs(*leading), bias=ALiBi(heads)(rows, keys))


def test_given_weights_may_change_and_the_look_stays():
    weigh = Given(torch.rand(3, 7))
    read = Attention(Dot(), weigh)(*inputs(2))
    before = read.weights.clone()
    weigh.weights.add_(1.0)
    assert torch.equal(read.weights, before)


def test_few_tokens_taken_explicitly_read_what_the_kernel_reads(monkeypatch):
    queries, keys, values = (torch.randn(2, 3, n, 7) for n in (5, 11, 11))
    kernel = Attention(ScaledDot())(queries, keys, values).context
    monkeypatch.setattr(attention_module, "MAX_PLAIN_SCORES", 5 * 11)
    explicit = Attention(ScaledDot())(queries, keys, values).context
    assert_close(explicit, kernel)


@pytest.mark.parametrize("mask", [None, Causal()], ids=str)
def test_many_tokens_are_left_to_the_kernel(mask, monkeypatch):
    taken = []
    for name in ("plain_context", "fused_context"):
        take = getattr(attention_module, name)
        note = partial(lambda name, take, *x: taken.append(name) or take(*x), name, take)
        monkeypatch.setattr(attention_module, name, note)
    monkeypatch.setattr(attention_module, "MAX_PLAIN_SCORES", 7 * 7)
    monkeypatch.setattr(attention_module, "MAX_PLAIN_CAUSAL_SCORES", 7 * 7)
    for length in (7, 8):
        Attention(Dot())(*(torch.randn(2, length, 5) for _ in range(3)), mask)
    assert taken == ["plain_context", "fused_context"]


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_few_tokens_under_a_causal_mask_read_what_the_kernel_reads(leading, monkeypatch):
    tensors = [torch.randn(*leading, 9, 7, requires_grad=True) for _ in range(3)]
    read = []
    for few in (9 * 9, 0):
        monkeypatch.setattr(attention_module, "MAX_PLAIN_CAUSAL_SCORES", few)
        context = Attention(ScaledDot())(*tensors, mask=Causal()).context
        read.append((context, *torch.autograd.grad(context.square().sum(), tensors)))
    for explicit, kernel in zip(*read, strict=True):
        assert_close(explicit, kernel)


@pytest.mark.parametrize("leading", [(2,), (2, 3)])
def test_few_tokens_under_padding_read_what_the_kernel_reads(leading, monkeypatch):
    queries = torch.randn(*leading, 5, 7, requires_grad=True)
    keys, values = (torch.randn(*leading, 9, 7, requires_grad=True) for _ in range(2))
    tensors = (queries, keys, values)
    for lengths in ([9, 4], [9, 0]):  # who sees no key reads nothing
        mask, read = Padding(torch.tensor(lengths)), []
        for few in (5 * 9, 0):
            monkeypatch.setattr(attention_module, "MAX_PLAIN_SCORES", few)
            context = Attention(ScaledDot())(*tensors, mask=mask).context
            read.append((context, *torch.autograd.grad(context.square().sum(), tensors)))
        for explicit, kernel in zip(*read, strict=True):
            assert_close(explicit, kernel)


def test_padding_over_few_tokens_takes_plain_products(monkeypatch):
    monkeypatch.setattr(attention_module, "MAX_PLAIN_SCORES", 5 * 9)
    monkeypatch.setattr(attention_module, "fused_context", None)
    queries, keys = torch.randn(2, 5, 7), torch.randn(2, 9, 7)
    Attention(ScaledDot())(queries, keys, keys, mask=Padding(torch.tensor([9, 4])))
    with pytest.raises(TypeError):  # one more query is one too many
        Attention(ScaledDot())(torch.randn(2, 6, 7), keys, keys, Padding(torch.tensor([9, 4])))


def test_weights_dropped_under_padding_are_never_those_of_the_padding():
    attention = Attention(Dot(), dropout=0.4)
    values = torch.tensor([1.0] * 60 + [torch.inf] * 40).view(1, 100, 1).repeat(2, 1, 1)
    values[1] = 1.0
    mask = Padding(torch.tensor([60, 0]))
    context = attention(torch.zeros(2, 100, 3), torch.zeros(2, 100, 3), values.nan_to_num(), mask)
    left = 60 * 0.6 * context.context[0]
    assert_close(left.round(), left, atol=1e-3, rtol=0)
    assert left.mean().item() == pytest.approx(36, abs=2)
    assert not context.context[1].any()


@torch.no_grad()
@pytest.mark.parametrize("masked", [False, True])
def test_the_single_queries_of_many_rows_read_what_the_kernel_reads(masked, monkeypatch):
    store = torch.randn(2, 4, 3, 16, 7)  # keys and values, with room for more behind them
    query, (keys, values) = torch.randn(4, 3, 1, 7), store[..., :11, :]
    lengths = torch.tensor([11, 4, 1, 7])
    mask = Padding(lengths).write_out(1, 11) if masked else Causal()
    read, taken = [], []
    take = fused._step_context
    monkeypatch.setattr(fused, "_step_context", lambda *given: taken.append(1) or take(*given))
    for least in (12, 13):  # 4 rows of 3 heads
        monkeypatch.setattr(fused, "MIN_HEADS_IN_STEP", least)
        read.append(Attention(ScaledDot())(query, keys, values, mask).context)
    assert len(taken) == 1
    assert_close(read[0], read[1])
    monkeypatch.setattr(fused, "MIN_HEADS_IN_STEP", 12)
    blind = Padding(torch.tensor([11, 0, 1, 7])).write_out(1, 11)
    assert not Attention(ScaledDot())(query, keys, values, blind).context[1].any()
    # Keys that would have to be copied first are the kernel's.
    taken.clear()
    apart = keys.transpose(1, 2).contiguous().transpose(1, 2)
    assert_close(Attention(ScaledDot())(query, apart, values, mask).context, read[1])
    assert not taken
