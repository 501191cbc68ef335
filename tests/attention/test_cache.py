"""Word by word with a cache is the same as all at once without."""

from itertools import product

import pytest
import torch
from torch.testing import assert_close

from regard.attention import (
    Additive,
    ALiBi,
    Causal,
    KeyValueCache,
    MultiHead,
    Padding,
    RelativeBias,
    Rotary,
    Sparsemax,
    Window,
    cache,
    stitch,
    watch,
)

BATCH, LENGTH, HEADS, SIZE = 3, 11, 4, 24
PIECES = [3, 1, 1, 2, 4]  # a prompt, then words, then several at once
POSITIONS = {
    "no positions": lambda: None,
    "rotary": lambda: Rotary(6),
    "rotary in pairs": lambda: Rotary(6, interleaved=True),
    "alibi": lambda: ALiBi(HEADS),
    "relative": lambda: RelativeBias(HEADS, buckets=8, farthest=6, bidirectional=False),
    "relative both ways": lambda: RelativeBias(HEADS),
}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(cache, "GROWTH", 3)


def build(**words):
    return MultiHead(SIZE, HEADS, **words).double()


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def step_by_step(model, x, mask):
    cached = KeyValueCache()
    steps = [model(part, mask=mask, cache=cached) for part in x.split(PIECES, dim=1)]
    return torch.cat(steps, dim=1)


def ways():
    """Every position with gradients and without; groups take turns."""
    for (i, name), (j, grad) in product(enumerate(POSITIONS), enumerate([True, False])):
        yield name, [4, 2, 1][(i + j) % 3], grad


@pytest.mark.parametrize("name, groups, grad", list(ways()))
def test_cached_steps_say_what_the_whole_sentence_says(name, groups, grad):
    model = build(position=POSITIONS[name](), key_value_heads=groups)
    x = numbers(BATCH, LENGTH, SIZE)
    with torch.set_grad_enabled(grad):
        for mask in (Causal(), Causal() & Window(4)):
            assert_close(step_by_step(model, x, mask), model(x, mask=mask))


@pytest.mark.parametrize("words", [{"score": Additive(6, 6, 5)}, {"weigh": Sparsemax()}], ids=str)
def test_other_scores_and_weighings_are_cached_alike(words):
    model, x = build(**words), numbers(BATCH, LENGTH, SIZE)
    with torch.no_grad():
        assert_close(step_by_step(model, x, Causal()), model(x, mask=Causal()))


def test_a_sentence_padded_on_the_left_goes_on_by_itself():
    model, x = build(position=ALiBi(HEADS)), numbers(BATCH, LENGTH, SIZE)
    lengths = torch.tensor([11, 10, 9])
    cached, outputs = KeyValueCache(), []
    with torch.no_grad():
        for end in range(3, LENGTH + 1):
            new = x[:, :3] if end == 3 else x[:, end - 1 : end]
            mask = Causal() & Padding(lengths - LENGTH + end, side="left")
            outputs.append(model(new, mask=mask, cache=cached))
        whole = model(x, mask=Causal() & Padding(lengths, side="left"))
    assert_close(torch.cat(outputs, dim=1), whole)


def test_gradients_flow_through_cached_steps():
    model, x = build(position=Rotary(6)), numbers(BATCH, LENGTH, SIZE)
    upstream = numbers(BATCH, LENGTH, SIZE)
    found = []
    for way in (lambda a: step_by_step(model, a, Causal()), lambda a: model(a, mask=Causal())):
        leaf = x.clone().requires_grad_()
        model.zero_grad()
        (way(leaf) * upstream).sum().backward()
        found.append([leaf.grad, *(p.grad.clone() for p in model.parameters())])
    for cached, whole in zip(*found, strict=True):
        assert_close(cached, whole)


def test_queries_learn_though_keys_and_values_are_frozen():
    model = MultiHead(SIZE, HEADS, key_size=5)
    for part in (model.projection.key, model.projection.value):
        part.requires_grad_(False)
    cached, memory = KeyValueCache(), torch.randn(BATCH, 3, 5)
    total = sum(
        model(torch.randn(BATCH, 1, SIZE), word, cache=cached).sum() for word in memory.split(1, 1)
    )
    total.backward()
    assert model.projection.query.weight.grad.isfinite().all()


def test_a_prompt_read_with_gradients_may_go_on_without():
    model, x = build(), numbers(BATCH, LENGTH, SIZE)
    cached = KeyValueCache()
    first = model(x[:, :5], mask=Causal(), cache=cached)
    with torch.no_grad():
        rest = [model(word, mask=Causal(), cache=cached) for word in x[:, 5:].split(1, dim=1)]
    assert_close(torch.cat([first, *rest], dim=1), model(x, mask=Causal()))
    first.sum().backward()


@pytest.mark.parametrize("groups", [4, 2])
def test_what_was_seen_stays_true_while_the_cache_grows(groups):
    model = build(position=Rotary(6), key_value_heads=groups)
    x = numbers(BATCH, LENGTH, SIZE)
    with torch.no_grad(), watch(model) as seen:
        step_by_step(model, x, Causal())
        model(x, mask=Causal())
    *steps, whole = seen["attention"]
    assert [step.weights.shape[-1] for step in steps] == [3, 4, 5, 7, 11]
    for row in range(BATCH):
        assert_close(stitch(steps, row), whole.weights[row].float())


def test_picked_rows_go_on_as_if_they_had_always_stood_there():
    model, x = build(position=Rotary(6)), numbers(BATCH, LENGTH, SIZE)
    order = torch.tensor([2, 0, 2, 2])
    cached = KeyValueCache()
    with torch.no_grad():
        model(x[:, :5], mask=Causal(), cache=cached)
        picked = cached.pick(order)
        continued = x[order].clone()
        continued[:, 5:] = numbers(4, LENGTH - 5, SIZE)
        outputs = [model(w, mask=Causal(), cache=picked) for w in continued[:, 5:].split(1, dim=1)]
        assert_close(torch.cat(outputs, dim=1), model(continued, mask=Causal())[:, 5:])
        # The picked cache was another one: the first goes on untouched.
        rest = [model(word, mask=Causal(), cache=cached) for word in x[:, 5:].split(1, dim=1)]
        assert_close(torch.cat(rest, dim=1), model(x, mask=Causal())[:, 5:])


def pieces(cache_, *numbers_):
    """Append positions that hold these numbers, one by one; what is handed out last."""
    for number in numbers_:
        keys, values = cache_.append(*(torch.full((1, 1, 1, 1), float(number)) for _ in range(2)))
        assert torch.equal(keys, values)
    return keys.flatten().tolist()


@pytest.mark.parametrize("first", [True, False], ids=["with gradients", "without"])
@pytest.mark.parametrize("second", [True, False], ids=["then with", "then without"])
def test_branches_go_on_by_themselves_and_leave_the_root_as_it_was(first, second):
    root = KeyValueCache()
    with torch.no_grad():
        pieces(root, 1, 2)
    left, right = root.branch(), root.branch()
    with torch.set_grad_enabled(first):
        assert pieces(left, 3, 4, 5, 6) == [1, 2, 3, 4, 5, 6]
    with torch.set_grad_enabled(second):
        assert pieces(right, 7, 8) == [1, 2, 7, 8]
        assert pieces(left.branch(), 9) == [1, 2, 3, 4, 5, 6, 9]
        assert pieces(left, 10) == [1, 2, 3, 4, 5, 6, 10]
    assert (root.length, left.length, right.length) == (2, 7, 4)
    assert pieces(root, 11) == [1, 2, 11]


def test_whoever_goes_on_first_writes_into_the_room_that_is_there():
    root = KeyValueCache()
    with torch.no_grad():
        cached, _ = root.append(torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1))
        first, second = (
            root.branch().append(torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 1))[0]
            for _ in range(2)
        )
    assert first.data_ptr() == cached.data_ptr()
    assert second.data_ptr() != cached.data_ptr()


def test_an_empty_cache_has_nothing_to_pick_from():
    assert KeyValueCache().pick(torch.tensor([0, 0])).length == 0


def test_a_cache_counts_its_positions_and_hands_out_all_of_them():
    cached = KeyValueCache()
    keys, values = torch.randn(2, 3, 7, 5), torch.randn(2, 3, 7, 5)
    with torch.no_grad():
        for i in range(7):
            k, v = cached.append(keys[:, :, i : i + 1], values[:, :, i : i + 1])
            assert cached.length == i + 1
            assert torch.equal(k, keys[:, :, : i + 1])
            assert torch.equal(v, values[:, :, : i + 1])


def test_views_handed_out_earlier_keep_what_they_held():
    cached, handed, copies = KeyValueCache(), [], []
    with torch.no_grad():
        for _ in range(10):
            k, v = cached.append(torch.randn(2, 3, 1, 5), torch.randn(2, 3, 1, 5))
            handed.append((k, v))
            copies.append((k.clone(), v.clone()))
    for (k, v), (was_k, was_v) in zip(handed, copies, strict=True):
        assert torch.equal(k, was_k)
        assert torch.equal(v, was_v)


@pytest.mark.parametrize(
    "keys, values, grad",
    [
        ((4, 3, 1, 5), (4, 3, 1, 7), True),
        ((2, 1, 1, 5), (2, 1, 1, 7), False),
        ((2, 3, 1, 11), (2, 3, 1, 7), True),
        ((2, 3, 1, 5), (2, 3, 1, 11), False),
        ((2, 3, 1, 5), (4, 3, 1, 7), True),
        ((2, 3, 1, 5), (2, 3, 2, 7), False),
    ],
)
def test_what_does_not_continue_a_cache_is_refused_and_leaves_it_as_it_was(keys, values, grad):
    cached = KeyValueCache()
    first = torch.randn(2, 3, 1, 5), torch.randn(2, 3, 1, 7)
    with torch.set_grad_enabled(grad):
        cached.append(*first)
        with pytest.raises(ValueError, match=r"(keys|values) \(.*\) do not continue a cache of"):
            cached.append(torch.randn(keys), torch.randn(values))
        assert cached.length == 1
        next_ = torch.randn(2, 3, 1, 5), torch.randn(2, 3, 1, 7)
        for whole, a, b in zip(cached.append(*next_), first, next_, strict=True):
            assert torch.equal(whole, torch.cat([a, b], dim=-2))


def test_a_cache_filled_in_inference_mode_goes_on_outside_of_it():
    cached = KeyValueCache()
    with torch.inference_mode():
        cached.append(torch.ones(2, 3, 1, 5), torch.ones(2, 3, 1, 5))
    with torch.no_grad():
        keys, _ = cached.append(torch.zeros(2, 3, 1, 5), torch.zeros(2, 3, 1, 5))
    assert keys[0, 0, :, 0].tolist() == [1.0, 0.0]


def test_a_picked_cache_has_room_for_the_next_positions():
    cached = KeyValueCache()
    with torch.no_grad():
        cached.append(torch.ones(3, 1, 3, 1), torch.ones(3, 1, 3, 1))  # a block, full
        picked = cached.pick(torch.tensor([2, 0]))
        store = picked._store.keys
        first, _ = picked.append(torch.zeros(2, 1, 1, 1), torch.zeros(2, 1, 1, 1))
        second, _ = picked.append(torch.zeros(2, 1, 1, 1), torch.zeros(2, 1, 1, 1))
    assert store.data_ptr() == first.data_ptr() == second.data_ptr()
    assert second.flatten(1).tolist() == 2 * [[1.0, 1.0, 1.0, 0.0, 0.0]]


@pytest.mark.parametrize("grad", [True, False])
def test_all_rows_in_their_order_are_picked_without_a_copy(grad):
    cached = KeyValueCache()
    with torch.set_grad_enabled(grad):
        before, _ = cached.append(torch.ones(2, 1, 1, 1), torch.ones(2, 1, 1, 1))
        same, other = cached.pick(torch.arange(2)), cached.pick(torch.tensor([0]))
        assert same._store.keys.data_ptr() == before.data_ptr()
        assert other._store.keys.data_ptr() != before.data_ptr()
        same.append(torch.zeros(2, 1, 1, 1), torch.zeros(2, 1, 1, 1))
        after, _ = cached.append(torch.full((2, 1, 1, 1), 7.0), torch.full((2, 1, 1, 1), 7.0))
    assert after.flatten(1).tolist() == 2 * [[1.0, 7.0]]


def test_gradients_reach_the_past_through_picked_rows():
    cached = KeyValueCache()
    past = torch.ones(2, 1, 1, 1, requires_grad=True)
    cached.append(past, past)
    keys, _ = cached.pick(torch.tensor([1, 1])).append(past, past)
    keys.sum().backward()
    assert past.grad.flatten().tolist() == [1.0, 3.0]
