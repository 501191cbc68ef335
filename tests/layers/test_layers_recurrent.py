import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing import assert_close

from regard.layers import Dropout, Recurrent, RecurrentState, watch_gates

THEIRS = {
    "rnn": nn.RNN,
    "rnn-relu": lambda *sizes, **rest: nn.RNN(*sizes, nonlinearity="relu", **rest),
    "lstm": nn.LSTM,
    "gru": nn.GRU,
}
KINDS = list(THEIRS)
LENGTHS = torch.tensor([4, 11, 1])  # of a batch of 3 and 11 steps, and not in order
every_kind = pytest.mark.parametrize("kind", KINDS)


def pair(kind, layers=1, bidirectional=False):
    """The same network twice: theirs and ours."""
    theirs = THEIRS[kind](5, 7, layers, bidirectional=bidirectional, batch_first=True)
    return theirs, Recurrent.from_torch(theirs)


def random_state(recurrent, batch=3):
    hidden = torch.randn(len(recurrent.cells), batch, recurrent.hidden_size)
    return RecurrentState(hidden, torch.randn_like(hidden) if recurrent.kind == "lstm" else None)


def run_theirs(theirs, inputs, lengths, state):
    """torch's own way: pack, run, unpack."""
    if lengths is not None:
        inputs = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    start = state if state is None or state.cell is not None else state.hidden
    outputs, end = theirs(inputs, start)
    if lengths is not None:
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
    return outputs, RecurrentState(*end) if isinstance(end, tuple) else RecurrentState(end)


def parts(result):
    outputs, state = result
    return [outputs, *(part for part in state if part is not None)]


def gradients(result, wanted, slopes):
    return torch.autograd.grad(parts(result), wanted, slopes, allow_unused=True)


@every_kind
@pytest.mark.parametrize(
    ("layers", "bidirectional", "lengths", "started"),
    [
        (1, False, None, False),
        (2, True, None, True),
        (3, False, LENGTHS, True),  # padded by saturated gates, from a state
        (1, True, LENGTHS, False),
        (2, True, LENGTHS, True),  # an LSTM's hidden state read backward must be packed
    ],
    ids=["plain", "full", "padded", "both ways", "padded both ways"],
)
def test_values_and_gradients_are_those_of_torch_by_cells_or_fused(
    double, kind, bidirectional, layers, lengths, started
):
    theirs, ours = pair(kind, layers, bidirectional)
    inputs = torch.randn(3, 11, 5, requires_grad=True)
    state = random_state(ours) if started else None
    expected = run_theirs(theirs, inputs, lengths, state)
    result = ours(inputs, lengths, state)
    with watch_gates(ours):
        watched = ours(inputs, lengths, state)
    with torch.no_grad():
        unlearned = ours(inputs, lengths, state)
    for got in (result, watched, unlearned):
        assert_close(parts(got), parts(expected), atol=1e-12, rtol=0)

    slopes = [torch.randn_like(part) for part in parts(expected)]
    # Theirs come layer by layer and direction by direction, each as w, u, b, b′; so do ours.
    wanted = gradients(expected, [inputs, *theirs.parameters()], slopes)
    for got in (result, watched):
        given = gradients(got, [inputs, *ours.parameters()], slopes)
        assert_close(given, wanted, atol=1e-11, rtol=0)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_single_precision_agrees_to_a_millionth(kind):
    theirs, ours = pair(kind, 2, bidirectional=True)
    inputs = torch.randn(3, 11, 5)
    expected = parts(run_theirs(theirs, inputs, LENGTHS, None))
    assert_close(parts(ours(inputs, LENGTHS)), expected, atol=1e-6, rtol=0)
    with watch_gates(ours):
        assert_close(parts(ours(inputs, LENGTHS)), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_saturated_gates_hold_however_long(kind):
    ours = Recurrent(kind, 5, 7)
    inputs = torch.randn(1, 3, 5)
    short = ours(inputs, torch.tensor([2]))[1]
    long = ours(torch.cat([inputs, torch.randn(1, 5000, 5)], dim=1), torch.tensor([2]))[1]
    assert_close(tuple(long), tuple(short), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("kind", "bidirectional"),
    [("rnn", True), ("rnn-relu", False), ("lstm", False), ("lstm", True), ("gru", True)],
)
def test_padding_changes_nothing_and_comes_out_as_zeros_be_it_nan(kind, bidirectional):
    ours = Recurrent(kind, 5, 7, layers=2, bidirectional=bidirectional)
    padding = torch.arange(11) >= LENGTHS[:, None]
    clean = torch.randn(3, 11, 5)
    dirty = clean.masked_fill(padding[..., None], torch.nan)
    expected = ours(clean, LENGTHS)
    expected[0].sum().backward()
    slopes = [weight.grad.clone() for weight in ours.parameters()]
    ours.zero_grad()
    dirty.requires_grad_()
    result = ours(dirty, LENGTHS)
    result[0].sum().backward()
    assert_close(parts(result), parts(expected), atol=0, rtol=0)
    assert_close([weight.grad for weight in ours.parameters()], slopes, atol=0, rtol=0)
    assert torch.all(result[0][padding] == 0)
    assert torch.all(dirty.grad[padding] == 0)


@pytest.mark.parametrize(
    ("kind", "bidirectional", "started", "way"),
    [
        ("rnn", False, True, "fused"),
        ("gru", True, True, "fused"),
        ("lstm", False, True, "fused"),
        ("lstm", True, False, "fused"),
        ("lstm", True, True, "fused"),
        ("lstm", True, True, "by cells"),
        ("gru", False, False, "no gradient"),
        ("lstm", True, True, "no gradient"),
    ],
)
def test_a_row_without_words_says_nothing_and_keeps_its_state(kind, bidirectional, started, way):
    ours = Recurrent(kind, 5, 7, layers=2, bidirectional=bidirectional)
    state = random_state(ours) if started else None
    inputs, lengths = torch.randn(3, 11, 5), torch.tensor([4, 0, 11])
    inputs[1] = torch.nan
    if way == "by cells":
        with watch_gates(ours):
            outputs, end = ours(inputs, lengths, state)
    else:
        with torch.set_grad_enabled(way == "fused"):
            outputs, end = ours(inputs, lengths, state)
    assert torch.all(outputs[1] == 0)
    for part, start in zip(end, state or ours.start(3), strict=True):
        assert part is None or torch.equal(part[:, 1], start[:, 1])
    alone = ours(inputs[[0, 2]], lengths[[0, 2]], state and state.pick(torch.tensor([0, 2])))
    assert_close(outputs[[0, 2]], alone[0], atol=1e-6, rtol=0)


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    kind=st.sampled_from(KINDS),
    bidirectional=st.booleans(),
    layers=st.integers(1, 2),
    learning=st.booleans(),
)
def test_a_row_reads_the_same_alone_as_in_any_company(
    lengths, kind, bidirectional, layers, learning
):
    ours = Recurrent(kind, 2, 3, layers, bidirectional)
    inputs = torch.randn(len(lengths), 6, 2)
    with torch.set_grad_enabled(learning):
        outputs, end = ours(inputs, torch.tensor(lengths))
        for row, length in enumerate(lengths):
            alone, end_alone = ours(inputs[row : row + 1, :length])
            assert_close(outputs[row : row + 1, :length], alone, atol=1e-6, rtol=0)
            assert torch.all(outputs[row, length:] == 0)
            picked = end.pick(torch.tensor([row]))
            assert_close(tuple(picked), tuple(end_alone), atol=1e-6, rtol=0)


def test_a_batch_of_rows_without_words_is_silent():
    outputs, end = Recurrent("gru", 5, 7)(torch.randn(3, 11, 5), torch.zeros(3, dtype=torch.int64))
    assert torch.all(outputs == 0)
    assert torch.all(end.hidden == 0)


@pytest.mark.parametrize("shape", [(3, 0, 5), (0, 11, 5)])
def test_no_time_or_no_rows_gives_no_outputs(shape):
    ours = Recurrent("lstm", 5, 7, bidirectional=True)
    outputs, end = ours(torch.randn(shape))
    assert outputs.shape == (*shape[:2], 14)
    assert end.hidden.shape == end.cell.shape == (2, shape[0], 7)


@every_kind
def test_word_by_word_is_the_same_as_all_at_once(double, kind):
    ours = Recurrent(kind, 5, 7, layers=3)
    inputs, state = torch.randn(3, 11, 5), random_state(ours)
    expected = ours(inputs, state=state)
    said = []
    for word in inputs.unbind(dim=1):
        output, state = ours.step(word, state)
        said.append(output)
    assert_close([torch.stack(said, dim=1), state], list(expected), atol=1e-12, rtol=0)


def test_a_step_without_a_state_begins_with_zeros():
    ours = Recurrent("lstm", 5, 7, layers=2)
    word = torch.randn(3, 5)
    assert_close(ours.step(word), ours.step(word, ours.start(3)))


def test_a_sequence_cut_in_two_goes_on_where_it_stopped(double):
    ours = Recurrent("gru", 5, 7, layers=2)
    inputs = torch.randn(3, 11, 5)
    first, state = ours(inputs[:, :4])
    second, end = ours(inputs[:, 4:], state=state)
    assert_close([torch.cat([first, second], dim=1), end], list(ours(inputs)))


def test_dropout_acts_between_layers_and_nowhere_else():
    ours = Recurrent("lstm", 5, 7, layers=2, bidirectional=True, dropout=0.5)
    lower, upper = Recurrent("lstm", 5, 7, 1, True), Recurrent("lstm", 14, 7, 1, True)
    lower.cells, upper.cells = ours.cells[:2], ours.cells[2:]
    inputs = torch.randn(3, 11, 5)
    torch.manual_seed(1)
    result, _ = ours(inputs, LENGTHS)
    torch.manual_seed(1)
    between = Dropout(0.5)(lower(inputs, LENGTHS)[0])
    assert_close(result, upper(between, LENGTHS)[0])
    assert not torch.allclose(result, ours.eval()(inputs, LENGTHS)[0])


def test_one_layer_has_nothing_to_drop():
    ours = Recurrent("lstm", 5, 7, dropout=0.9)
    inputs = torch.randn(3, 11, 5)
    assert torch.equal(ours.train()(inputs)[0], ours.eval()(inputs)[0])


def test_watching_drops_the_same_numbers():
    ours = Recurrent("gru", 5, 7, layers=3, dropout=0.5)
    inputs = torch.randn(3, 11, 5)
    torch.manual_seed(1)
    result = ours(inputs, LENGTHS)
    torch.manual_seed(1)
    with watch_gates(ours):
        assert_close(parts(ours(inputs, LENGTHS)), parts(result), atol=1e-6, rtol=0)


@every_kind
def test_a_network_begins_with_the_weights_torch_would_draw(kind):
    torch.manual_seed(3)
    theirs = THEIRS[kind](5, 7, 2, bidirectional=True)
    torch.manual_seed(3)
    ours = Recurrent(kind, 5, 7, layers=2, bidirectional=True)
    assert_close(list(ours.parameters()), list(theirs.parameters()), atol=0, rtol=0)


def test_torchs_network_without_biases_moves_over_with_biases_of_zero():
    theirs = nn.GRU(5, 7, 2, bias=False, batch_first=True)
    inputs = torch.randn(3, 11, 5)
    assert_close(Recurrent.from_torch(theirs)(inputs)[0], theirs(inputs)[0])


def test_a_copy_of_torchs_network_keeps_its_precision_and_not_its_memory():
    theirs = nn.LSTM(5, 7, dtype=torch.float64)
    ours = Recurrent.from_torch(theirs)
    with torch.no_grad():
        ours.cells[0].weight_ih.zero_()
    assert ours.cells[0].weight_ih.dtype == torch.float64
    assert theirs.weight_ih_l0.abs().sum() > 0


def test_a_network_in_evaluation_still_has_gradients():
    ours = Recurrent("lstm", 5, 7).eval()
    inputs = torch.randn(3, 11, 5, requires_grad=True)
    for lengths in (None, LENGTHS):
        (gradient,) = torch.autograd.grad(ours(inputs, lengths)[0].sum(), inputs)
        assert gradient[:, 0].abs().sum() > 0


@pytest.mark.slow
def test_a_compiled_network_learns_the_same():
    ours = Recurrent("lstm", 2, 3, bidirectional=True)
    inputs, lengths = torch.randn(2, 5, 2), torch.tensor([5, 3])
    expected = torch.autograd.grad(ours(inputs, lengths)[0].sum(), list(ours.parameters()))
    compiled = torch.compile(ours, backend="aot_eager")
    result = torch.autograd.grad(compiled(inputs, lengths)[0].sum(), list(ours.parameters()))
    assert_close(result, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (torch.tensor([4, 12, 1]), r"lengths \(12\) must be from 0 to the number of steps, 11"),
        (torch.tensor([4, -2, 1]), r"lengths \(-2\) must be from 0 to the number of steps, 11"),
        (torch.tensor([4.0, 2.0, 1.0]), r"lengths \(torch.float32\) must be whole numbers"),
        (torch.tensor([True, True, True]), r"lengths \(torch.bool\) must be whole numbers"),
        (torch.tensor([4, 2]), r"lengths \(2,\) must be \(batch 3,\)"),
    ],
)
def test_lengths_that_cannot_be_are_refused(lengths, message):
    with pytest.raises(ValueError, match=message):
        Recurrent("lstm", 5, 7)(torch.randn(3, 11, 5), lengths)


def test_inputs_and_states_that_do_not_fit_are_refused():
    ours = Recurrent("lstm", 5, 7, layers=2)
    shape = r"must be \(batch, time, input_size 5\)"
    with pytest.raises(ValueError, match=r"inputs \(3, 11, 6\) " + shape):
        ours(torch.randn(3, 11, 6))
    with pytest.raises(ValueError, match=r"inputs \(11, 5\) " + shape):
        ours(torch.randn(11, 5))
    with pytest.raises(ValueError, match=r"state.hidden \(1, 3, 7\) must be \(2, 3, 7\)"):
        ours(
            torch.randn(3, 11, 5), state=RecurrentState(torch.zeros(1, 3, 7), torch.zeros(1, 3, 7))
        )
    with pytest.raises(ValueError, match=r"inputs \(3, 1, 5\) must be \(batch, input_size 5\)"):
        ours.step(torch.randn(3, 1, 5))
    with pytest.raises(ValueError, match=r"inputs \(3, 6\) must be \(batch, input_size 5\)"):
        ours.step(torch.randn(3, 6))


def test_networks_that_cannot_be_are_refused():
    with pytest.raises(
        ValueError, match=r"kind \('elman'\) must be one of rnn, rnn-relu, lstm, gru"
    ):
        Recurrent("elman", 5, 7)
    with pytest.raises(ValueError, match=r"layers \(0\) must be at least 1"):
        Recurrent("gru", 5, 7, layers=0)
    with pytest.raises(ValueError, match=r"rate \(1.0\) must be at least 0 and below 1"):
        Recurrent("gru", 5, 7, dropout=1.0)
    with pytest.raises(ValueError, match=r"proj_size \(3\) must be 0"):
        Recurrent.from_torch(nn.LSTM(5, 7, proj_size=3))
    with pytest.raises(ValueError, match=r"bidirectional \(True\) must be False for a step"):
        Recurrent("gru", 5, 7, bidirectional=True).step(torch.randn(3, 5))
