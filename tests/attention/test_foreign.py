"""Calls of torch's own kernel and modules, watched and edited wherever they are made."""

import asyncio
import copy
import threading

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from regard.attention import Attention, Causal, Dot, MultiHead, edit, uniform, watch, zero

BATCH, LENGTH, SIZE, HEADS = 2, 7, 15, 3


class Plain(nn.Module):
    """Self-attention as anybody writes it."""

    def __init__(self, size=SIZE, heads=HEADS):
        super().__init__()
        self.heads, self.packed = heads, nn.Linear(size, 3 * size)

    def forward(self, x, **options):
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.packed(x).chunk(3, dim=-1)
        )
        return F.scaled_dot_product_attention(q, k, v, **options).transpose(1, 2).flatten(2)


class Stack(nn.Module):
    """One attention of anybody's between two of ours."""

    def __init__(self):
        super().__init__()
        self.first, self.middle, self.last = MultiHead(SIZE, HEADS), Plain(), MultiHead(SIZE, HEADS)

    def forward(self, x):
        return self.last(x + self.middle(x + self.first(x, mask=Causal())))


class Kernel(nn.Module):
    def forward(self, *args, **kwargs):
        return F.scaled_dot_product_attention(*args, **kwargs)


def vectors(*shape):
    return torch.randn(*shape, 5, dtype=torch.float64)


def reference(query, key, added=0.0, scale=None):
    """softmax(scale · q kᵀ + added), by hand."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return (query @ key.mT * factor + added).softmax(dim=-1)


def hidden(mask):
    return torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)


TOP_LEFT = torch.ones(4, 7, dtype=torch.bool).tril()
SEEN = torch.rand(2, 1, 4, 7, generator=torch.Generator().manual_seed(3)) > 0.4
SEEN[..., 0] = True
OPTIONS = {
    "nothing": ({}, 0.0),
    "a scale": ({"scale": 0.3}, 0.0),
    "causal, from the top left": ({"is_causal": True}, hidden(TOP_LEFT)),
    "a mask for all": ({"attn_mask": TOP_LEFT}, hidden(TOP_LEFT)),
    "a mask for each row": ({"attn_mask": SEEN}, hidden(SEEN)),
    "a padding mask": ({"attn_mask": SEEN[:, :, :1]}, hidden(SEEN[:, :, :1])),
    "added numbers": ({"attn_mask": hidden(SEEN)}, hidden(SEEN)),
    "lowest numbers": (
        {"attn_mask": (~SEEN).double() * torch.finfo(torch.float64).min},
        hidden(SEEN),
    ),
    "a bias for each head": ({"attn_mask": SEEN.double().expand(2, 6, 4, 7)}, SEEN.double()),
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("groups", [6, 2, 1])
def test_the_kernels_weights_are_those_of_the_formula(name, groups):
    options, added = OPTIONS[name]
    query, key, value = vectors(2, 6, 4), vectors(2, groups, 7), vectors(2, groups, 7)
    model = Kernel()
    with watch(model) as seen:
        context = model(query, key, value, **options, enable_gqa=groups < 6)
    (read,) = seen["attention"]
    repeated = key.repeat_interleave(6 // groups, dim=1)
    expected = reference(query, repeated, added, options.get("scale"))
    assert_close(read.weights, expected)
    assert_close(read.weights @ value.repeat_interleave(6 // groups, dim=1), context)
    assert_close(read.weights_of(heads=[4, 2], rows=[3, 1]), expected[:, [4, 2]][:, :, [3, 1]])
    assert_close(read.pick(1).weights, expected[1:])
    if (visible := read.visible()) is not None:
        assert torch.equal(visible.expand_as(expected), expected > 0)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3, 4)])
def test_any_leading_axes_are_welcome(leading):
    query, key = vectors(*leading, 4), vectors(*leading, 7)
    model, mask = Kernel(), torch.rand(4, 7) > 0.2
    with watch(model) as seen:
        model(query, key, key, mask)
    weights = seen["attention"][0].weights
    assert_close(weights.reshape(*leading, 4, 7), reference(query, key, hidden(mask)))


def test_ours_and_anybodys_are_seen_once_each():
    model, x = Stack(), torch.randn(BATCH, 200, SIZE)  # so many that ours takes the kernel, too
    alone = model(x)
    with watch(model) as seen:
        assert torch.equal(model(x), alone)
    assert {path: len(calls) for path, calls in seen.items()} == {
        "first": 1, "last": 1, "middle": 1,
    }  # fmt: skip


def test_what_another_model_calls_is_not_seen():
    model, other = Plain(), Plain()
    with watch(model) as seen:
        other(torch.randn(BATCH, LENGTH, SIZE))
        q = torch.randn(1, 2, 3, 5)
        F.scaled_dot_product_attention(q, q, q)
    assert not seen


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("case", ["plain", "padded", "causal", "both", "per head", "extra keys"])
def test_torchs_multi_head_attention_is_seen_as_it_tells(need_weights, batch_first, case):
    extra = {"add_bias_kv": True, "add_zero_attn": True} if case == "extra keys" else {}
    model = nn.MultiheadAttention(SIZE, HEADS, batch_first=batch_first, **extra).eval()
    x = torch.randn(BATCH, LENGTH, SIZE)
    options = {}
    if case in ("padded", "both", "extra keys"):
        options["key_padding_mask"] = torch.arange(LENGTH) >= torch.tensor([[LENGTH], [4]])
    if case in ("causal", "both"):
        options["attn_mask"] = ~torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    if case == "per head":
        options["attn_mask"] = torch.randn(BATCH * HEADS, LENGTH, LENGTH)
    x = x if batch_first else x.transpose(0, 1)
    with torch.no_grad():
        _, expected = model(x, x, x, average_attn_weights=False, **options)
        alone, _ = model(x, x, x, need_weights=need_weights, **options)
        with watch(model) as seen:
            output, told = model(x, x, x, need_weights=need_weights, **options)
    assert_close(output, alone, atol=1e-6, rtol=0)
    assert (told is not None) == need_weights
    (read,) = seen["attention"]
    assert read.one_sequence
    assert_close(read.weights, expected, atol=1e-6, rtol=0)
    assert_close(read.weights_of(heads=2, rows=[3]), expected[:, 2:, 3:4], atol=1e-6, rtol=0)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("nested", [True, False])
def test_an_encoder_is_seen_in_training_and_evaluation(training, nested):
    """With an even number of heads, so that torch takes its fast path when nobody watches."""
    layer = nn.TransformerEncoderLayer(20, 4, 11, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested).train(training)
    x, padding = torch.randn(BATCH, LENGTH, 20), torch.zeros(BATCH, LENGTH, dtype=torch.bool)
    padding[1, 4:] = True
    with torch.no_grad():
        alone = model(x, src_key_padding_mask=padding)
        with watch(model) as seen:
            watched = model(x, src_key_padding_mask=padding)
    assert_close(watched[~padding], alone[~padding], atol=1e-5, rtol=0)
    for number in range(2):
        (read,) = seen[f"layers.{number}.self_attn"]
        attention = model.layers[number].self_attn
        with torch.no_grad():
            _, expected = attention(
                x, x, x, key_padding_mask=padding, need_weights=True, average_attn_weights=False
            )
            rows = (~padding).nonzero(as_tuple=True)
            ours, theirs = (each.transpose(1, 2)[rows] for each in (read.weights, expected))
            assert_close(ours, theirs, atol=1e-6, rtol=0)
            x = model.layers[number](x, src_key_padding_mask=padding)


def test_a_decoder_of_torch_looks_at_two_sequences():
    model = nn.Transformer(SIZE, HEADS, 1, 1, 11, batch_first=True).eval()
    with torch.no_grad(), watch(model) as seen:
        model(torch.randn(BATCH, LENGTH, SIZE), torch.randn(BATCH, 5, SIZE))
    found = {path: (c[0].comparison.sizes, c[0].one_sequence) for path, c in seen.items()}
    assert found == {
        "encoder.layers.0.self_attn": ((7, 7), True),
        "decoder.layers.0.self_attn": ((5, 5), True),
        "decoder.layers.0.multihead_attn": ((5, 7), False),
    }


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_head_of_torchs_own_can_be_made_to_read_nothing(need_weights):
    model, x = nn.MultiheadAttention(SIZE, HEADS, batch_first=True), torch.randn(2, 7, SIZE)
    with torch.no_grad(), edit(model, {"attention": zero(heads=1)}), watch(model) as seen:
        edited, told = model(x, x, x, need_weights=need_weights, average_attn_weights=False)
    kept = torch.ones(SIZE).index_fill(0, torch.arange(5, 10), 0.0)
    with torch.no_grad():
        model.out_proj.weight *= kept  # a head is a slice of the output projection's columns
        expected, _ = model(x, x, x)
    assert_close(edited, expected, atol=1e-6, rtol=0)
    assert (seen["attention"][0].weights[:, 1] == 0).all()
    assert told is None or (told[:, 1] == 0).all()


def test_gradients_of_anybodys_weights_are_kept():
    model, x = Plain(), torch.randn(BATCH, LENGTH, SIZE)
    with watch(model, gradients=True) as seen:
        output = model(x)
        output.sum().backward()
    weights = seen["attention"][0].weights
    values = model.packed(x).chunk(3, dim=-1)[2].unflatten(-1, (HEADS, -1)).transpose(1, 2)
    # Each context is weights · values, and the loss their sum: ∂loss/∂weight is its value's sum.
    assert_close(weights.grad, values.sum(-1).unsqueeze(-2).expand_as(weights))


def test_an_edit_has_a_gradient():
    model, x = Plain(), torch.randn(BATCH, LENGTH, SIZE, requires_grad=True)
    with edit(model, {"attention": zero(heads=0)}):
        model(x)[..., :5].sum().backward()
    assert not x.grad.any()


@pytest.mark.parametrize("make", [Plain, lambda: MultiHead(SIZE, HEADS)], ids=["any", "ours"])
def test_a_backward_pass_that_computes_again_makes_no_new_call_and_the_same_changes(make):
    model, x = make(), torch.randn(BATCH, LENGTH, SIZE, requires_grad=True)
    gradients = []
    for run in (model, lambda x: checkpoint(model, x, use_reentrant=False)):
        with watch(model) as seen, edit(model, {"attention": zero(heads=0)}):
            run(x).square().sum().backward()
        assert len(seen["attention"]) == 1
        gradients.append(x.grad)
        x.grad = None
    assert_close(*gradients)


def test_a_record_without_gradients_holds_no_graph_and_one_with_them_can_be_detached():
    model, x = Stack(), torch.randn(BATCH, LENGTH, SIZE)
    with torch.no_grad(), watch(model) as seen:
        model(x)
    assert not any(calls[0].weights.requires_grad for calls in seen.values())
    with watch(model) as seen:
        model(x)
    for (read,) in seen.values():
        assert read.weights.requires_grad
        detached = read.detach()
        assert not detached.weights.requires_grad
        assert torch.equal(detached.weights, read.weights)


def test_a_record_holds_queries_and_keys_and_nothing_larger():
    for model, path in ((Plain(), "attention"), (MultiHead(SIZE, HEADS), "attention")):
        with torch.no_grad(), watch(model) as seen:
            model(torch.randn(BATCH, LENGTH, SIZE))
        read = seen[path][0]
        for part in (read.comparison.queries, read.comparison.keys):
            assert part.untyped_storage().nbytes() == 4 * BATCH * LENGTH * SIZE
        assert read.context.shape == (BATCH, HEADS, LENGTH, 5)
        assert read.context.is_meta


def test_a_copy_made_inside_carries_nothing():
    model, x = Stack(), torch.randn(BATCH, LENGTH, SIZE)
    plain = model(x)
    with watch(model) as seen, edit(model, {"middle": zero(), "first": zero()}):
        twin = copy.deepcopy(model)
        assert torch.equal(twin(x), plain)
        model(x)
    assert torch.equal(twin(x), plain)
    assert {len(calls) for calls in seen.values()} == {1}
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in twin.modules())


def test_four_threads_with_one_model_do_not_see_each_other():
    model, x = Stack().eval(), torch.randn(4, BATCH, LENGTH, SIZE)
    plain = [model(each) for each in x]
    with edit(model, {"middle": zero(heads=1), "last": uniform()}):
        edited = [model(each) for each in x]
    start, failures = threading.Barrier(4), []

    def work(number, edits):
        try:
            for _ in range(20):
                start.wait(timeout=60)
                if edits:
                    with edit(model, {"middle": zero(heads=1), "last": uniform()}):
                        start.wait(timeout=60)
                        output = model(x[number])
                    assert torch.equal(output, edited[number])
                else:
                    with watch(model) as seen:
                        start.wait(timeout=60)
                        output = model(x[number])
                    assert torch.equal(output, plain[number])
                    assert {len(calls) for calls in seen.values()} == {1}
                    assert not (seen["middle"][0].weights == 0).any()
        except BaseException as reason:
            failures.append(reason)
            start.abort()

    threads = [threading.Thread(target=work, args=(n, n % 2 == 0)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert torch.equal(model(x[0]), plain[0])


def test_tasks_of_one_thread_do_not_see_each_other():
    model, x = Stack(), torch.randn(2, BATCH, LENGTH, SIZE)

    async def look(number, before, after):
        with watch(model) as seen:
            await asyncio.sleep(before)
            model(x[number])
            await asyncio.sleep(after)
        return seen

    async def both():
        return await asyncio.gather(look(0, 0.0, 0.0), look(1, 0.01, 0.02))

    for number, seen in enumerate(asyncio.run(both())):
        with watch(model) as expected:
            model(x[number])
        assert {len(calls) for calls in seen.values()} == {1}
        assert torch.equal(seen["middle"][0].weights, expected["middle"][0].weights)
    assert not torch.overrides._get_current_function_mode_stack()


def test_modes_of_others_stay_where_they_were():
    model = Plain()
    watching = watch(model)
    watching.__enter__()
    with torch.device("meta"):
        watching.__exit__(None, None, None)
        assert torch.empty(3).is_meta
    assert not torch.empty(3).is_meta


@pytest.mark.parametrize("way", ["wrapped", "in place", "a part"])
def test_a_compiled_model_is_seen_like_a_plain_one(way):
    model, x = Stack().eval(), torch.randn(BATCH, LENGTH, SIZE)
    with watch(model) as expected, edit(model, {"middle": zero(heads=1)}):
        edited = model(x)
    compiled = model
    if way == "wrapped":
        compiled = torch.compile(model, backend="eager")
    elif way == "in place":
        model.compile(backend="eager")
    else:
        model.middle = torch.compile(model.middle, backend="eager")
    alone = compiled(x)
    with watch(compiled) as seen, edit(compiled, {"middle": zero(heads=1)}):
        assert_close(compiled(x), edited)
    assert list(seen) == list(expected)
    for path in seen:
        assert_close(seen[path][0].weights, expected[path][0].weights)
    assert_close(compiled(x), alone)


def test_a_scripted_model_is_refused():
    model = torch.jit.trace(Plain(), torch.randn(BATCH, LENGTH, SIZE))
    message = r"TorchScript module \(Plain\), whose calls nobody sees"
    with pytest.raises(ValueError, match=message), watch(model):
        pass


def test_rows_are_positions_also_with_a_cache():
    attention = Attention(Dot())
    x, told = torch.randn(1, 5, 3), []

    def change(weights, mask, call):
        told.append((call.path, call.step, call.rows))
        return weights

    with edit(attention, {"attention": change}), watch(attention) as seen:
        attention(x[:, :2], x[:, :2], x[:, :2], Causal())
        attention(x[:, 2:4], x[:, :4], x[:, :4], Causal())
        attention(x[:, 4:], x, x, Causal())
    assert told == [
        ("attention", 0, range(2)), ("attention", 1, range(2, 4)), ("attention", 2, range(4, 5)),
    ]  # fmt: skip
    assert [read.first_row for read in seen["attention"]] == [0, 2, 4]
    with edit(attention, {"attention": zero(rows=[1, 4])}), watch(attention) as seen:
        attention(x[:, :2], x[:, :2], x[:, :2], Causal())
        attention(x[:, 2:4], x[:, :4], x[:, :4], Causal())
        attention(x[:, 4:], x, x, Causal())
    assert (seen.stitch("attention")[0] == 0).all(dim=-1).tolist() == [
        False,
        True,
        False,
        False,
        True,
    ]


def test_a_row_that_never_came_is_told_when_the_edit_ends():
    attention, x = Attention(Dot()), torch.randn(1, 5, 3)
    message = r"rows \(\[0, 5\]\) of 'attention' must lie within 0 … 4"
    with (
        pytest.raises(ValueError, match=message),
        edit(attention, {"attention": zero(rows=[0, 5])}),
    ):
        attention(x, x, x)


def test_a_model_that_makes_no_call_cannot_be_edited():
    model = nn.Sequential(nn.Linear(3, 3))
    message = r"nothing was changed: Sequential made no attention call at '0'; there are: none"
    with pytest.raises(ValueError, match=message), edit(model, {"0": "zero"}):
        model(torch.randn(2, 3))
