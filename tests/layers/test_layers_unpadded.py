"""The GRU that computes no padding, where the tests of `Recurrent` do not look."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.testing import assert_close

from regard.layers import Recurrent, RecurrentState, fused
from regard.layers.unpadded import Layout

LENGTHS = torch.tensor([2, 5, 1, 5])


def test_words_are_laid_out_step_by_step_and_mirrored_within_their_row():
    layout = Layout(LENGTHS)
    padded = torch.arange(20).view(4, 5, 1)
    words = layout.pack(padded)
    expected = [5, 15, 0, 10, 6, 16, 1, 7, 17, 8, 18, 9, 19]  # step by step, the longest rows first
    assert words.flatten().tolist() == expected
    assert words[layout.mirror].flatten().tolist()[:4] == [9, 19, 1, 10]  # each row's last word
    assert words[layout.ends].flatten().tolist() == [1, 9, 10, 19]
    real = torch.arange(5) < LENGTHS.unsqueeze(-1)
    assert torch.equal(layout.pad(words, 5), padded * real.unsqueeze(-1))


def test_gradients_reach_the_state_it_started_from():
    theirs = nn.GRU(3, 7, batch_first=True, bidirectional=True).double()
    ours = Recurrent.from_torch(theirs)
    inputs = torch.randn(4, 5, 3, dtype=torch.double)
    start = torch.randn(2, 4, 7, dtype=torch.double, requires_grad=True)
    packed = pack_padded_sequence(inputs, LENGTHS, batch_first=True, enforce_sorted=False)
    _, end = theirs(packed, start)
    slopes = torch.randn_like(end)
    (expected,) = torch.autograd.grad(end, start, slopes)
    _, state = ours(inputs, LENGTHS, RecurrentState(start))
    (found,) = torch.autograd.grad(state.hidden, start, slopes)
    assert_close(found, expected)


def test_it_is_the_way_taken_where_there_is_something_to_learn(monkeypatch):
    taken = []
    for name in ("run_packed", "run_padded", "run_unpadded"):
        run = getattr(fused, name)
        monkeypatch.setattr(fused, name, lambda *a, n=name, r=run: (taken.append(n), r(*a))[1])
    gru, lstm = Recurrent("gru", 3, 7), Recurrent("lstm", 3, 7)
    inputs = torch.randn(4, 5, 3)
    gru(inputs, LENGTHS)
    lstm(inputs, LENGTHS)
    with torch.no_grad():
        gru(inputs, LENGTHS)
    with torch.autocast("cpu", torch.bfloat16):
        gru(inputs, LENGTHS)
    assert taken == ["run_unpadded", "run_padded", "run_packed", "run_padded"]
