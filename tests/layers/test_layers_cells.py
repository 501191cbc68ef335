import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.layers import GRUCell, LSTMCell, RecurrentState, RNNCell

PAIRS = [
    (lambda: RNNCell(5, 7), lambda: nn.RNNCell(5, 7)),
    (lambda: RNNCell(5, 7, activation="relu"), lambda: nn.RNNCell(5, 7, nonlinearity="relu")),
    (lambda: LSTMCell(5, 7), lambda: nn.LSTMCell(5, 7)),
    (lambda: GRUCell(5, 7), lambda: nn.GRUCell(5, 7)),
]
NAMES = ["rnn", "rnn-relu", "lstm", "gru"]


def random_state(cell, batch=3, **options):
    hidden = torch.randn(batch, cell.hidden_size, **options)
    other = torch.randn(batch, cell.hidden_size, **options)
    return RecurrentState(hidden, other if isinstance(cell, LSTMCell) else None)


def as_torch(state):
    return state.hidden if state.cell is None else tuple(state)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=NAMES)
def test_a_cell_with_torchs_weights_does_what_torchs_cell_does(double, ours, theirs):
    ours, theirs = ours(), theirs()
    ours.load_state_dict(theirs.state_dict())
    inputs = torch.randn(3, 5, requires_grad=True)
    state = random_state(ours, requires_grad=True)
    output, after = ours(inputs, state)
    expected = theirs(inputs, as_torch(state))
    expected = expected if isinstance(expected, tuple) else (expected,)
    result = [part for part in after if part is not None]
    assert output is after.hidden
    assert_close(result, list(expected), atol=1e-12, rtol=0)

    slopes = [torch.randn_like(part) for part in expected]
    leaves = [inputs, *(part for part in state if part is not None)]
    got = torch.autograd.grad(result, [*leaves, *ours.parameters()], slopes)
    wanted = torch.autograd.grad(expected, [*leaves, *theirs.parameters()], slopes)
    assert_close(got, wanted, atol=1e-12, rtol=0)


def test_without_a_state_a_cell_begins_with_zeros():
    cell = LSTMCell(5, 7)
    inputs = torch.randn(3, 5)
    zeros = RecurrentState(torch.zeros(3, 7), torch.zeros(3, 7))
    assert_close(cell(inputs), cell(inputs, zeros))


def test_an_lstm_that_forgets_nothing_and_lets_nothing_in_keeps_its_cell():
    cell = LSTMCell(5, 7)
    with torch.no_grad():
        i, f, _, _ = cell.bias_ih.chunk(4)
        i.fill_(-1000.0)
        f.fill_(1000.0)
    state = random_state(cell)
    output, after = cell(torch.randn(3, 5), state)
    assert torch.equal(after.cell, state.cell)
    assert output.abs().le(state.cell.tanh().abs()).all()  # h = o ⊙ tanh(c), and o is at most 1


def test_an_lstm_worked_out_by_hand():
    cell = LSTMCell(1, 1)
    with torch.no_grad():
        cell.weight_ih.copy_(torch.tensor([[1.0], [2.0], [3.0], [4.0]]))  # i, f, g, o
        for weight in (cell.weight_hh, cell.bias_ih, cell.bias_hh):
            weight.zero_()
    before = RecurrentState(torch.zeros(1, 1), torch.tensor([[0.5]]))
    output, after = cell(torch.tensor([[0.1]]), before)

    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    written = sigmoid(0.2) * 0.5 + sigmoid(0.1) * math.tanh(0.3)
    assert after.cell.item() == pytest.approx(written, abs=1e-6)
    assert output.item() == pytest.approx(sigmoid(0.4) * math.tanh(written), abs=1e-6)


def test_a_gru_that_updates_nothing_keeps_its_state():
    cell = GRUCell(5, 7)
    with torch.no_grad():
        cell.bias_ih.chunk(3)[1].fill_(1000.0)
    state = random_state(cell)
    assert torch.equal(cell(torch.randn(3, 5), state)[0], state.hidden)


def test_the_reset_gate_of_a_gru_acts_after_the_recurrent_product():
    cell = GRUCell(1, 1)
    with torch.no_grad():
        for weight in cell.parameters():
            weight.zero_()
        cell.bias_hh[2] = (
            1.0  # with the reset gate at ½, b′ counts half; in the paper it counts whole
        )
        cell.bias_ih[1] = -1000.0
    output, _ = cell(torch.zeros(1, 1), RecurrentState(torch.zeros(1, 1)))
    assert output.item() == pytest.approx(math.tanh(0.5), abs=1e-6)


def test_rows_of_a_state_can_be_picked_twice_or_not_at_all():
    hidden = torch.arange(2 * 3 * 5.0).view(2, 3, 5)  # (layer, batch, hidden)
    picked = RecurrentState(hidden, -hidden).pick(torch.tensor([2, 0, 2, 2]))
    assert torch.equal(picked.hidden, hidden[:, [2, 0, 2, 2]])
    assert torch.equal(picked.cell, -hidden[:, [2, 0, 2, 2]])
    assert RecurrentState(hidden[0]).pick(torch.tensor([1])).hidden.shape == (1, 5)


def test_a_detached_state_has_the_same_numbers_and_no_history():
    _, state = LSTMCell(5, 7)(torch.randn(3, 5))
    detached = state.detach()
    assert_close(tuple(detached), tuple(part.detach() for part in state))
    assert not detached.hidden.requires_grad
    assert not detached.cell.requires_grad


def test_a_cell_refuses_inputs_of_another_size():
    with pytest.raises(ValueError, match=r"inputs \(3, 4\) must be \(batch, input_size 5\)"):
        GRUCell(5, 7)(torch.randn(3, 4))
    with pytest.raises(ValueError, match=r"inputs \(5,\) must be \(batch, input_size 5\)"):
        GRUCell(5, 7)(torch.randn(5))


def test_a_cell_refuses_a_state_that_is_not_its_own():
    inputs, hidden = torch.randn(3, 5), torch.randn(3, 7)
    with pytest.raises(ValueError, match=r"state.hidden \(2, 7\) must be \(3, 7\)"):
        GRUCell(5, 7)(inputs, RecurrentState(hidden[:2]))
    with pytest.raises(ValueError, match=r"state.cell must be None"):
        GRUCell(5, 7)(inputs, RecurrentState(hidden, hidden))
    with pytest.raises(ValueError, match=r"state.cell must be given"):
        LSTMCell(5, 7)(inputs, RecurrentState(hidden))


def test_a_cell_refuses_sizes_and_activations_that_cannot_be():
    with pytest.raises(ValueError, match=r"hidden_size \(0\) must be at least 1"):
        LSTMCell(5, 0)
    with pytest.raises(ValueError, match=r"activation \('sine'\) must be tanh or relu"):
        RNNCell(5, 7, activation="sine")
