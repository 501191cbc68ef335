"""A projected LSTM is torch's where nothing is clipped, and the formula where something is."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing import assert_close

from regard.layers import RecurrentState
from regard.layers.projected import ProjectedLSTM

LENGTHS = torch.tensor([3, 6, 1])


def from_torch(theirs: nn.LSTM, **clips) -> ProjectedLSTM:
    ours = ProjectedLSTM(theirs.input_size, theirs.hidden_size, theirs.proj_size, **clips)
    with torch.no_grad():
        for direction, end in enumerate(("_l0", "_l0_reverse")):
            for name in ("weight_ih", "weight_hh", "weight_hr"):
                getattr(ours, name)[direction] = getattr(theirs, name + end)
            biases = [getattr(theirs, name + end) for name in ("bias_ih", "bias_hh")]
            ours.bias[direction] = sum(biases)
    return ours


def by_hand(layer: ProjectedLSTM, direction: int, words, cell_clip, projection_clip):
    """One row (time, input), as the docstring says it, step by step."""
    hidden = torch.zeros(layer.projection_size)
    cell = torch.zeros(layer.hidden_size)
    found = []
    for word in words:
        sums = layer.weight_ih[direction] @ word + layer.weight_hh[direction] @ hidden
        i, f, g, o = (sums + layer.bias[direction]).chunk(4)
        cell = (f.sigmoid() * cell + i.sigmoid() * g.tanh()).clamp(-cell_clip, cell_clip)
        hidden = layer.weight_hr[direction] @ (o.sigmoid() * cell.tanh())
        hidden = hidden.clamp(-projection_clip, projection_clip)
        found.append(hidden)
    return torch.stack(found), cell


def test_without_clipping_it_is_torch_s_lstm_with_a_projection(double):
    theirs = nn.LSTM(5, 7, proj_size=3, bidirectional=True, batch_first=True)
    inputs = torch.randn(3, 6, 5)
    packed = pack_padded_sequence(inputs, LENGTHS, batch_first=True, enforce_sorted=False)
    expected, (hidden, cell) = theirs(packed)
    expected, _ = pad_packed_sequence(expected, batch_first=True)
    outputs, state = from_torch(theirs)(inputs.expand(2, -1, -1, -1), LENGTHS)
    assert_close(torch.cat([*outputs], dim=-1), expected)
    assert_close(state.hidden, hidden)
    assert_close(state.cell, cell)


def test_cell_and_projection_stay_within_their_bounds_as_by_hand(double):
    layer = ProjectedLSTM(5, 7, 3, cell_clip=0.4, projection_clip=0.2)
    inputs = torch.randn(2, 1, 11, 5)
    outputs, state = layer(inputs)
    ahead, cell = by_hand(layer, 0, inputs[0, 0], 0.4, 0.2)
    back, back_cell = by_hand(layer, 1, inputs[1, 0].flip(0), 0.4, 0.2)
    assert_close(outputs[:, 0], torch.stack([ahead, back.flip(0)]))
    assert_close(state.cell[:, 0], torch.stack([cell, back_cell]))
    assert 0.1 < (outputs.abs() == 0.2).double().mean() < 0.9
    assert (state.cell.abs() == 0.4).any()


@pytest.mark.parametrize("clips", [{}, {"cell_clip": 0.4, "projection_clip": 0.2}])
def test_the_gradient_that_is_written_out_is_that_of_the_numbers(double, clips):
    layer = ProjectedLSTM(2, 3, 2, **clips)
    inputs = torch.randn(2, 3, 6, 2, requires_grad=True)
    hidden, cell = (torch.randn(2, 3, size, requires_grad=True) for size in (2, 3))

    def run(inputs, hidden, cell, *weights):
        outputs, state = layer(inputs, LENGTHS, RecurrentState(hidden, cell))
        return outputs, state.hidden, state.cell

    assert torch.autograd.gradcheck(run, (inputs, hidden, cell, *layer.parameters()))


def test_padding_is_not_read_and_a_row_without_words_keeps_its_state():
    layer = ProjectedLSTM(5, 7, 3, cell_clip=3.0)
    inputs = torch.randn(2, 3, 6, 5)
    start = RecurrentState(torch.randn(2, 3, 3), torch.randn(2, 3, 7))
    lengths = torch.tensor([4, 0, 6])
    outputs, state = layer(inputs, lengths, start)
    inputs[:, 0, 4:] = float("nan")
    again, _ = layer(inputs, lengths, start)
    assert_close(again, outputs)
    assert not outputs[:, 0, 4:].any()
    assert_close(state.hidden[:, 1], start.hidden[:, 1])
    assert_close(state.cell[:, 1], start.cell[:, 1])


def test_a_state_that_is_carried_on_reads_forward_as_in_one_go():
    layer = ProjectedLSTM(5, 7, 3, directions=1, cell_clip=3.0, projection_clip=3.0)
    inputs = torch.randn(1, 2, 9, 5)
    whole, end = layer(inputs)
    begun, state = layer(inputs[:, :, :4])
    rest, state = layer(inputs[:, :, 4:], None, state)
    assert_close(torch.cat([begun, rest], dim=2), whole)
    assert_close(state.cell, end.cell)


def test_under_autocast_it_computes_in_its_weights_own_precision():
    layer = ProjectedLSTM(5, 7, 3, cell_clip=3.0)
    inputs = torch.randn(2, 2, 6, 5)
    expected, _ = layer(inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, _ = layer(inputs)
        outputs.sum().backward()
    assert_close(outputs, expected)
    assert layer.weight_hh.grad.dtype == torch.float32


def test_inputs_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"inputs \(1, 2, 3, 5\) must be \(direction 2"):
        ProjectedLSTM(5, 7, 3)(torch.randn(1, 2, 3, 5))
