from math import tanh

import pytest
import torch

from regard.lectures.lstm import fix_gates


def test_with_forget_one_and_input_zero_the_cell_is_unchanged(played):
    kept = played("lstm").numbers["kept"]
    assert kept["forget"] == [1, 1, 1] and kept["input"] == [0, 0, 0]
    assert kept["cell_after"] == kept["cell_before"] == [0.5, -1, 2]


def test_with_forget_zero_and_input_one_only_the_new_is_there(played):
    written = played("lstm").numbers["written"]
    assert written["cell"] == written["candidate"]
    assert all(-1 < number < 1 for number in written["cell"])


def test_in_between_it_fades_as_a_power_of_the_gate(played):
    for row in played("lstm").numbers["share_of_cell_left"]:
        expected = [row["forget"] ** n for n in range(101)]
        assert row["by_step"] == pytest.approx(expected, abs=1e-9)


def test_what_is_shown_is_pressed_by_tanh_and_the_lectures_version_is_not(played):
    numbers = played("lstm").numbers
    assert numbers["output_gate"] == [0.5] * 3
    assert numbers["hidden"] == pytest.approx([0.5 * tanh(c) for c in (0.5, -1, 2)], abs=1e-9)
    assert numbers["as_written"]["hidden"] == [0.25, -0.5, 1]


def test_a_cell_with_fixed_gates_does_in_torch_what_it_does_here():
    ours = fix_gates(forget=0.9, input=0.3)
    theirs = torch.nn.LSTMCell(2, 3).double()
    theirs.load_state_dict(ours.state_dict())
    word, start = torch.tensor([[0.7, -0.2]]).double(), torch.tensor([[0.5, -1.0, 2.0]]).double()
    hidden, state = ours(word, ours.start(1)._replace(cell=start))
    expected_hidden, expected_cell = theirs(word, (torch.zeros(1, 3).double(), start))
    torch.testing.assert_close(hidden, expected_hidden)
    torch.testing.assert_close(state.cell, expected_cell)
