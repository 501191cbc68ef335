"""Hidden units as features, learned or of inputs that somebody has chosen."""

import pytest
import torch
from torch.testing import assert_close

from regard.data.batches import Rows
from regard.models.mlp import MLP, MLPConfig


def test_a_network_of_two_units_is_worked_out_by_hand():
    model = MLP(MLPConfig(inputs=2, outputs=1, hidden_size=2, activation="relu"))
    with torch.no_grad():
        model.layers[0].weight.copy_(torch.tensor([[1.0, -1.0], [2.0, 0.5]]))
        model.layers[0].bias.copy_(torch.tensor([0.0, -3.0]))
        model.output.weight.copy_(torch.tensor([[3.0, -2.0]]))
        model.output.bias.fill_(0.25)
    rows = torch.tensor([[3.0, 1.0], [0.0, 2.0]])
    # relu(3 − 1) = 2, relu(6 + 0.5 − 3) = 3.5 → 6 − 7 + 0.25;  relu(−2) = 0, relu(1 − 3) = 0
    assert_close(model.hidden(rows)[0], torch.tensor([[2.0, 3.5], [0.0, 0.0]]))
    assert_close(model(Rows(rows, torch.zeros(2))), torch.tensor([[-0.75], [0.25]]))


@pytest.mark.parametrize(
    ("activation", "expected"), [("tanh", 0.761594), ("sigmoid", 0.731059), ("relu", 1.0)]
)
def test_units_have_the_activation_that_is_asked_for(activation, expected):
    model = MLP(MLPConfig(inputs=1, outputs=1, hidden_size=1, layers=2, activation=activation))
    with torch.no_grad():
        for layer in model.layers:
            layer.weight.fill_(1.0)
            layer.bias.zero_()
    first, second = model.hidden(torch.ones(1, 1))
    assert first.item() == pytest.approx(expected, abs=1e-6)
    assert second.item() == pytest.approx(model.hidden(first)[0].item())


def test_what_a_unit_does_not_see_stays_at_zero_while_the_rest_learns():
    torch.manual_seed(1)
    model = MLP(MLPConfig(inputs=5, outputs=1, hidden_size=4, features="hand-made"))
    model.divide([[0, 1], [2], [3, 4]])
    seen = torch.tensor([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1], [1, 1, 0, 0, 0]]).bool()
    assert torch.equal(model.layers[0].weight != 0, seen)
    before = model.layers[0].weight.detach().clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(5):
        batch = Rows(torch.randn(7, 5), torch.randn(7))
        (model(batch).squeeze(-1) - batch.targets).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    weight = model.layers[0].weight
    assert (weight[~seen] == 0).all() and (weight[seen] != before[seen]).all()
    inputs = torch.randn(2, 5)
    inputs[1, :4] = inputs[0, :4]  # the last input is the third unit's alone
    one, other = model.hidden(inputs)[0]
    assert torch.equal(one != other, torch.tensor([False, False, True, False]))


def test_a_learned_network_sees_everything_whatever_belongs_together():
    model = MLP(MLPConfig(inputs=5, outputs=1, features="learned"))
    model.divide([[0, 1], [2], [3, 4]])
    assert (model.layers[0].weight != 0).all() and "layers.0.sees" not in model.state_dict()


def test_a_hand_made_network_needs_subproblems_and_a_unit_for_each():
    model = MLP(MLPConfig(inputs=5, outputs=1, hidden_size=2, features="hand-made"))
    with pytest.raises(ValueError, match="which inputs belong together is not told"):
        model.divide([])
    with pytest.raises(ValueError, match=r"hidden_size \(2\) must be at least 3"):
        model.divide([[0], [1], [2]])
