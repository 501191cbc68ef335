import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.layers import LSTMCell, Recurrent, RecurrentState, gradient_flow


def last(result):
    """The sum of all that was said at the end."""
    outputs, _ = result
    return outputs[:, -1].sum()


def linear(recurrent_weight):
    """A ReLU RNN that never leaves its positive part, which makes it h_t = W h_{t-1} + x_t."""
    size = len(recurrent_weight)
    model = Recurrent("rnn-relu", size, size)
    cell = model.cells[0]
    with torch.no_grad():
        cell.weight_ih.copy_(torch.eye(size))
        cell.weight_hh.copy_(recurrent_weight)
        cell.bias_ih.zero_()
        cell.bias_hh.zero_()
    return model


def test_the_flow_through_a_linear_network_is_the_product_of_its_jacobians(double):
    W = torch.rand(7, 7) / 4
    flow = gradient_flow(linear(W), torch.rand(3, 11, 7), last)
    slope = torch.ones(3, 7)
    expected = [slope.norm()]
    for _ in range(10):
        slope = slope @ W  # ∂loss/∂h_t = ∂loss/∂h_{t+1} W
        expected.insert(0, slope.norm())
    assert_close(flow, torch.stack(expected), atol=1e-12, rtol=1e-12)


def test_the_flow_through_tanh_is_the_product_of_its_jacobians(double):
    model = Recurrent("rnn", 5, 7)
    inputs = torch.randn(1, 11, 5)
    hidden, _ = model(inputs)
    slope = torch.ones(7)
    expected = [slope.norm()]
    for time in range(10, 0, -1):
        slope = (slope * (1 - hidden[0, time] ** 2)) @ model.cells[0].weight_hh
        expected.insert(0, slope.norm())
    assert_close(gradient_flow(model, inputs, last), torch.stack(expected), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_the_gradient_vanishes_or_explodes_with_the_spectral_radius(radius):
    swap = torch.eye(3)[[1, 2, 0]]  # a permutation: it turns vectors and keeps their length
    flow = gradient_flow(linear(radius * swap), torch.rand(1, 31, 3), last)
    steps = torch.arange(30, -1, -1)
    assert_close(flow, 3**0.5 * radius**steps)


def test_an_open_lstm_carries_its_gradient_through_the_cell():
    model = Recurrent("lstm", 5, 7)
    with torch.no_grad():
        model.cells[0].weight_hh.zero_()
        model.cells[0].bias_ih.chunk(4)[1].fill_(1000.0)  # forget nothing
    inputs = torch.randn(3, 101, 5)
    flow = gradient_flow(model, inputs, lambda result: result[1].cell.sum(), of="cell")
    assert_close(flow, torch.full((101,), 21**0.5))


def test_nothing_flows_back_from_words_that_do_not_count():
    model = Recurrent("gru", 5, 7)
    lengths = torch.tensor([4, 2, 1])
    inputs = (torch.randn(3, 11, 5), lengths)
    flow = gradient_flow(model, inputs, lambda result: result[1].hidden.square().sum())
    assert torch.all(flow[:4] > 0)
    assert torch.all(flow[4:] == 0)


def test_a_loss_in_the_middle_reaches_back_and_not_ahead():
    model = Recurrent("lstm", 5, 7, bidirectional=True)
    inputs = torch.randn(3, 11, 5)
    ahead = gradient_flow(model, inputs, lambda result: result[0][:, 5, :7].sum())
    assert torch.equal(ahead > 0, torch.arange(11) <= 5)
    back = gradient_flow(model, inputs, lambda r: r[0][:, 5, 7:].sum(), direction="backward")
    assert torch.equal(back > 0, torch.arange(11) >= 5)


class Decoder(nn.Module):
    """Two recurrent parts, one of them a cell that is called step by step."""

    def __init__(self):
        super().__init__()
        self.encoder = Recurrent("lstm", 5, 7, layers=2)
        self.cell = LSTMCell(7, 7)

    def forward(self, inputs):
        outputs, end = self.encoder(inputs)
        state = RecurrentState(end.hidden[-1], end.cell[-1])
        for step in outputs.unbind(dim=1):
            output, state = self.cell(step, state)
        return output


def test_each_recurrent_part_of_a_model_can_be_asked():
    model, inputs = Decoder(), torch.randn(3, 11, 5)
    for path in ("encoder", "cell"):
        assert gradient_flow(model, inputs, torch.sum, path=path).shape == (11,)
    lower = gradient_flow(model, inputs, torch.sum, path="encoder", layer=0)
    assert not torch.equal(lower, gradient_flow(model, inputs, torch.sum, path="encoder", layer=1))
    message = r"path \(None\) must name a recurrent module of the model: 'encoder', 'cell'"
    with pytest.raises(ValueError, match=message):
        gradient_flow(model, inputs, torch.sum)


def test_the_probe_leaves_no_gradients_and_no_listeners_and_works_without_grad_mode():
    model = Recurrent("lstm", 5, 7)
    with torch.no_grad():
        gradient_flow(model, torch.randn(3, 11, 5), last)
    assert all(weight.grad is None for weight in model.parameters())
    assert not model.listeners


def test_a_probe_that_cannot_be_is_refused():
    model, inputs = Recurrent("lstm", 5, 7), torch.randn(3, 11, 5)
    with pytest.raises(ValueError, match=r"loss \(3, 11, 7\) must give a single number"):
        gradient_flow(model, inputs, lambda result: result[0])
    with pytest.raises(ValueError, match=r"path \(None\) must name .* of the model: none"):
        gradient_flow(nn.Linear(5, 7), inputs, torch.sum)
    with pytest.raises(ValueError, match=r"name \('update'\) must be one of input, forget"):
        gradient_flow(model, inputs, last, of="update")
    with pytest.raises(ValueError, match=r"model must have parameters that require a gradient"):
        gradient_flow(model.requires_grad_(False), inputs, last)
