"""Hard attention learns: its gradient is the exact one, on average."""

import pytest
import torch
from torch import nn

from regard.attention import Attention, Dot, Hard
from regard.data.batches import Pairs
from regard.tasks.reinforce import Reinforced

VALUES = torch.tensor([[2.0, 0.0], [0.0, 1.0], [-1.0, 0.5]])  # what is found in three places


class Toy(nn.Module):
    """Looks at one of three places for each of two words; what it finds are the logits."""

    def __init__(self):
        super().__init__()
        self.scores = nn.Parameter(torch.tensor([[0.3, -0.2, 0.5], [0.1, 0.4, -0.3]]))
        self.values = nn.Parameter(VALUES.clone())
        self.attention = Attention(Dot(), Hard(), sides=("target", "source"))

    def forward(self, batch):
        rows = len(batch.source)
        queries = self.scores.expand(rows, 2, 3)
        keys, values = torch.eye(3).expand(rows, 3, 3), self.values.expand(rows, 3, 2)
        found = self.attention(queries, keys, values).context
        # The second word also depends on where the first one looked, as with input feeding.
        return found + torch.cat([torch.zeros(rows, 1, 2), found[:, :1]], dim=1)


def episodes(count):
    ids = torch.tensor([[0, 1]]).expand(count, 2)
    return Pairs(ids, torch.ones_like(ids).bool(), ids, ids, torch.ones_like(ids).bool())


def exact_gradient():
    """∇ of E[log p(y | s)], by summing over all nine pairs of places."""
    scores = torch.tensor([[0.3, -0.2, 0.5], [0.1, 0.4, -0.3]], requires_grad=True)
    pi = scores.softmax(dim=-1)
    total = torch.zeros(())
    for one in range(3):
        for two in range(3):
            first, second = VALUES[one], VALUES[two] + VALUES[one]
            log_p = first.log_softmax(0)[0] + second.log_softmax(0)[1]
            total = total + pi[0, one] * pi[1, two] * log_p
    return torch.autograd.grad(-total, scores)[0]


@pytest.mark.parametrize("baseline", [0.0, -0.7])
def test_the_estimate_is_the_exact_gradient_on_average_whatever_the_baseline(baseline):
    count, model = 200_000, Toy()
    objective = Reinforced(model, entropy_bonus=0.0)
    objective.baseline.fill_(baseline)
    outcome = objective(episodes(count))
    (outcome.parts["reinforce"] / count).backward()
    assert torch.allclose(model.scores.grad, exact_gradient(), atol=0.01)


def test_a_place_that_answers_for_its_own_word_alone_would_miss_what_it_did_to_later_ones():
    count, model = 200_000, Toy()
    objective = Reinforced(model, discount=0.0, entropy_bonus=0.0)
    (objective(episodes(count)).parts["reinforce"] / count).backward()
    exact = exact_gradient()
    assert torch.allclose(model.scores.grad[1], exact[1], atol=0.01)
    assert (model.scores.grad[0] - exact[0]).abs().max() > 0.05


def test_a_reward_is_a_number_and_teaches_the_words_nothing():
    model = Toy()
    outcome = Reinforced(model, entropy_bonus=0.0)(episodes(7))
    outcome.parts["reinforce"].backward(retain_graph=True)
    assert model.scores.grad.abs().max() > 0 and model.values.grad is None
    outcome.parts["loss"].backward()
    assert model.values.grad.abs().max() > 0


def test_a_good_baseline_lowers_the_variance_it_reports():
    model = Toy()
    told = {}
    for baseline in (3.0, -0.7):
        objective = Reinforced(model)
        objective.baseline.fill_(baseline)
        report = objective(episodes(20_000)).reports["estimator_variance"]
        told[baseline] = float(report.value) / report.items
    assert told[-0.7] < 0.2 * told[3.0]


def test_the_baseline_follows_the_reward_and_the_entropy_is_a_bonus():
    model = Toy()
    objective = Reinforced(model, entropy_bonus=0.5)
    outcome = objective(episodes(3))
    pi = model.scores.detach().softmax(dim=-1)
    entropy = -(pi * pi.log()).sum()
    assert outcome.parts["entropy"].item() == pytest.approx(-0.5 * 3 * float(entropy), rel=1e-5)
    objective.finish_step({"reward": -2.0})
    assert float(objective.baseline) == pytest.approx(-0.2)
