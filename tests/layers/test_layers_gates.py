import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.layers import Gates, GRUCell, LSTMCell, Recurrent, RecurrentState, RNNCell, watch_gates

LENGTHS = torch.tensor([4, 11, 1])
NAMES = {
    "rnn": ("hidden",),
    "rnn-relu": ("hidden",),
    "lstm": ("input", "forget", "candidate", "output", "cell", "hidden"),
    "gru": ("reset", "update", "candidate", "hidden"),
}


class Reader(nn.Module):
    """An encoder over the whole sentence, then a cell that takes three steps on its own."""

    def __init__(self):
        super().__init__()
        self.encoder = Recurrent("lstm", 5, 7, layers=2, bidirectional=True)
        self.decoder = nn.ModuleDict({"cell": GRUCell(14, 3)})

    def forward(self, inputs, lengths=None):
        outputs, _ = self.encoder(inputs, lengths)
        state = None
        for step in range(3):
            _, state = self.decoder["cell"](outputs[:, step], state)
        return state.hidden


@pytest.mark.parametrize("kind", NAMES)
def test_every_gate_can_be_looked_at_in_every_layer_and_direction(kind):
    model = Recurrent(kind, 5, 7, layers=2, bidirectional=True)
    with watch_gates(model) as seen:
        outputs, _ = model(torch.randn(3, 11, 5))
    (gates,) = seen["recurrent"]
    assert gates.names == NAMES[kind]
    for name in gates.names:
        for layer in (0, 1):
            for direction in ("forward", "backward"):
                assert gates.of(name, layer=layer, direction=direction).shape == (3, 11, 7)
    both = [gates.of("hidden", direction=direction) for direction in ("forward", "backward")]
    assert torch.equal(torch.cat(both, dim=-1), outputs)


def test_the_gates_of_an_lstm_explain_its_states():
    model = Recurrent("lstm", 5, 7)
    inputs, start = (
        torch.randn(3, 11, 5),
        RecurrentState(torch.randn(1, 3, 7), torch.randn(1, 3, 7)),
    )
    with watch_gates(model) as seen:
        _, end = model(inputs, state=start)
    (gates,) = seen["recurrent"]
    i, f, g, o, cell, hidden = map(gates.of, gates.names)
    before = torch.cat([start.cell[0].unsqueeze(1), cell[:, :-1]], dim=1)
    assert_close(cell, f * before + i * g)
    assert_close(hidden, o * cell.tanh())
    assert_close(end.cell[0], cell[:, -1])
    assert all(((gate > 0) & (gate < 1)).all() for gate in (i, f, o))


def test_the_gates_of_a_gru_read_backward_explain_its_states():
    model = Recurrent("gru", 5, 7, bidirectional=True)
    with watch_gates(model) as seen:
        _, end = model(torch.randn(3, 11, 5), LENGTHS)
    (gates,) = seen["recurrent"]
    z, n, hidden = (
        gates.of(name, direction="backward") for name in ("update", "candidate", "hidden")
    )
    after = torch.cat([hidden[:, 1:], torch.zeros(3, 1, 7)], dim=1)  # its past is what comes later
    assert_close(hidden, (1 - z) * n + z * after)
    assert_close(end.hidden[1], hidden[:, 0])


def test_at_padding_every_gate_is_zero():
    model = Recurrent("lstm", 5, 7)
    with watch_gates(model) as seen:
        model(torch.randn(3, 11, 5), LENGTHS)
    padding = torch.arange(11) >= LENGTHS[:, None]
    (gates,) = seen["recurrent"]
    for name in gates.names:
        assert torch.all(gates.of(name)[padding] == 0)
        assert torch.all(gates.of(name)[~padding] != 0)


def test_a_model_is_watched_under_the_paths_it_has_call_by_call():
    model = Reader()
    with watch_gates(model) as seen:
        model(torch.randn(3, 11, 5))
        model(torch.randn(2, 13, 5))
    assert list(seen) == ["encoder", "decoder.cell"]
    assert [call.of("forget").shape for call in seen["encoder"]] == [(3, 11, 7), (2, 13, 7)]
    assert len(seen["decoder.cell"]) == 6
    assert seen["decoder.cell"][0].of("reset").shape == (3, 1, 3)


def test_watching_changes_no_result_and_leaves_nothing_behind():
    model = Reader()
    inputs = torch.randn(3, 11, 5)
    before, attributes = model(inputs, LENGTHS), dict(vars(model.encoder))
    with watch_gates(model) as seen:
        assert_close(model(inputs, LENGTHS), before, atol=1e-6, rtol=0)
    assert all(not part.listeners for part in (model.encoder, model.decoder["cell"]))
    assert vars(model.encoder) == attributes
    assert torch.equal(model(inputs, LENGTHS), before)
    assert len(seen["encoder"]) == 1


def test_watching_ends_also_when_the_model_fails():
    model = Recurrent("gru", 5, 7)
    with pytest.raises(ValueError, match="inputs"), watch_gates(model):
        model(torch.randn(3, 11, 6))
    assert not model.listeners


def test_two_may_watch_at_once():
    model = Recurrent("gru", 5, 7)
    with watch_gates(model) as outer:
        with watch_gates(model) as inner:
            model(torch.randn(3, 11, 5))
        model(torch.randn(3, 11, 5))
    assert len(outer["recurrent"]) == 2
    assert len(inner["recurrent"]) == 1


def test_a_model_without_recurrence_shows_nothing():
    with watch_gates(nn.Linear(5, 7)) as seen:
        pass
    assert seen == {}


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_word_by_word_leaves_the_same_gates_as_all_at_once(kind):
    model = Recurrent(kind, 5, 7, layers=2)
    inputs = torch.randn(3, 11, 5)
    with watch_gates(model) as seen:
        model(inputs)
        state = None
        for word in inputs.unbind(dim=1):
            _, state = model.step(word, state)
    whole, *steps = seen["recurrent"]
    joined = Gates.join(steps)
    for name in whole.names:
        for layer in (0, 1):
            assert_close(joined.of(name, layer=layer), whole.of(name, layer=layer))


def test_joined_calls_remember_where_each_had_padding():
    model = Recurrent("rnn", 5, 7)
    with watch_gates(model) as seen:
        _, state = model(torch.randn(3, 2, 5))
        model(torch.randn(3, 11, 5), LENGTHS, state)
    joined = Gates.join(seen["recurrent"])
    expected = torch.arange(13) < 2 + LENGTHS[:, None]
    assert torch.equal(joined.of("hidden").ne(0).all(dim=-1), expected)


@pytest.mark.parametrize(("cell", "gates"), [(RNNCell, 1), (LSTMCell, 6), (GRUCell, 4)])
def test_a_cell_alone_can_be_watched(cell, gates):
    model = cell(5, 7)
    with watch_gates(model) as seen:
        output, _ = model(torch.randn(3, 5))
    (call,) = seen["recurrent"]
    assert len(call.names) == gates
    assert torch.equal(call.of("hidden"), output.unsqueeze(1))


def test_watched_gates_have_gradients():
    model = Recurrent("lstm", 5, 7)
    with watch_gates(model) as seen:
        outputs, _ = model(torch.randn(3, 11, 5))
    forget = seen["recurrent"][0].per_step("forget")
    first, *_, last = torch.autograd.grad(outputs[:, -1].sum(), forget)
    assert last.abs().sum() > first.abs().sum() >= 0


def test_what_is_not_there_cannot_be_asked_for():
    model = Recurrent("gru", 5, 7, layers=2)
    with watch_gates(model) as seen:
        model(torch.randn(3, 11, 5))
    (gates,) = seen["recurrent"]
    with pytest.raises(ValueError, match=r"name \('forget'\) must be one of reset, update, cand"):
        gates.of("forget")
    with pytest.raises(ValueError, match=r"direction \('backward'\) must be one of forward"):
        gates.of("reset", direction="backward")
    with pytest.raises(ValueError, match=r"layer \(2\) must be one of the 2 there are"):
        gates.of("reset", layer=2)
    with pytest.raises(ValueError, match=r"calls \(none\) must be at least one"):
        Gates.join([])


def test_calls_that_read_backward_cannot_be_joined():
    model = Recurrent("gru", 5, 7, bidirectional=True)
    with watch_gates(model) as seen:
        model(torch.randn(3, 11, 5))
        model(torch.randn(3, 11, 5))
    with pytest.raises(ValueError, match=r"calls \(2\) must be one for a bidirectional network"):
        Gates.join(seen["recurrent"])
