"""Objectives of several parts, with parameters of their own, and with eyes on attention."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard import watch
from regard.attention import Attention, Dot, Hard, Softmax
from regard.data.batches import LabelledTexts
from regard.tasks import Objective, Outcome, Sum
from regard.tasks.objective import Totals, add_counts
from regard.training.loop import Training


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, -2.0]))


class TwoParts(Objective):
    """Words and labels, counted each by itself, and a baseline that follows the words."""

    weights = {"words": 1.0, "labels": 0.5}  # noqa: RUF012

    def __init__(self, model):
        super().__init__(model)
        self.head = nn.Parameter(torch.tensor(3.0))
        self.register_buffer("baseline", torch.tensor(0.0))

    def counts(self, batch):
        return {"words": batch.tokens, "labels": int(batch.loss_mask.sum())}

    def forward(self, batch, state=None):
        words = (self.model.weight[0] * batch.ids.float())[batch.mask].sum()
        labels = (self.head * self.model.weight[1] * batch.labels.float())[batch.loss_mask].sum()
        longest = Sum(batch.mask.sum(dim=1).max(), 1)
        return Outcome({"words": words, "labels": labels}, {"longest": longest})

    def finish_step(self, means):
        self.baseline.mul_(0.9).add_(0.1 * means["words"])


def batch(ids, labels, counted):
    ids = torch.tensor(ids)
    return LabelledTexts(ids, ids > 0, torch.tensor(labels), torch.tensor(counted))


ONE = batch([[4, 5, 0], [6, 0, 0]], [2, 7], [True, False])
OTHER = batch([[8, 9, 1]], [3], [True])


def test_each_part_is_normalised_by_its_own_count_over_all_batches():
    objective = TwoParts(Linear())
    totals = Totals.zero()
    counts = [objective.counts(each) for each in (ONE, OTHER)]
    assert add_counts(counts) == {"words": 6, "labels": 2}
    for each, count in zip((ONE, OTHER), counts, strict=True):
        totals.add(objective(each), count)
    means = totals.means()
    # words: 1 · (4+5+6 + 8+9+1) / 6; labels: 3 · −2 · (2 + 3) / 2; the label 7 does not count.
    assert means == {"words": 33 / 6, "labels": -15.0, "longest": 2.5}
    assert objective.loss(means) == pytest.approx(33 / 6 - 7.5)
    assert objective.metrics(means)["loss"] == objective.loss(means)


def test_the_loop_weighs_each_part_and_makes_up_for_the_averaging_of_processes():
    objective = TwoParts(Linear())
    training = SimpleNamespace(objective=objective, placement=SimpleNamespace(world=2))
    loss = Training.loss(training, objective(ONE), {"words": 6.0, "labels": 2.0})
    # 1 · 15 / 6 of the words, ½ · (3 · −2 · 2) / 2 of the labels, twice.
    assert loss.item() == pytest.approx(2 * (15 / 6 - 3.0))


def test_what_is_the_objective_s_own_is_told_from_the_model_s():
    objective = TwoParts(Linear())
    assert set(objective.own_state()) == {"head", "baseline"}
    assert {name for name, _ in objective.named_parameters()} == {"head", "model.weight"}


def test_an_objective_keeps_the_mode_of_its_model():
    model = Linear().eval()
    assert not TwoParts(model).training
    assert not model.training


class Pooled(nn.Module):
    """Attention pooling over ids, for objectives that look at it."""

    def __init__(self, weigh):
        super().__init__()
        torch.manual_seed(1)
        self.embedding = nn.Embedding(11, 5)
        self.query = nn.Parameter(torch.randn(1, 1, 5))
        self.attention = Attention(Dot(), weigh)

    def forward(self, batch):
        words = self.embedding(batch.ids)
        read = self.attention(
            self.query.expand(len(words), -1, -1), words, words, batch.mask[:, None]
        )
        return read.context.squeeze(1)


class Even(Objective):
    """A loss, and how far the weights of each text are from even: Σ (α − 1/n)²."""

    weights = {"loss": 1.0, "uneven": 0.3}  # noqa: RUF012

    def counts(self, batch):
        return {"loss": len(batch), "uneven": len(batch)}

    def forward(self, batch, state=None):
        with watch(self.model) as seen:
            loss = self.model(batch).square().sum()
        (read,) = seen["attention"]
        even = batch.mask / batch.mask.sum(dim=1, keepdim=True)  # (batch, position)
        return Outcome({"loss": loss, "uneven": (read.weights[:, 0] - even).square().sum()})


def test_an_objective_sees_attention_weights_with_their_gradient():
    texts = batch([[4, 5, 2], [6, 3, 0]], [0, 0], [True, True])
    model = Pooled(Softmax())
    outcome = Even(model)(texts)
    (outcome.parts["loss"] + 0.3 * outcome.parts["uneven"]).backward()
    found = model.query.grad.clone()

    # The same by plain torch.
    query = model.query.detach().requires_grad_()
    words = model.embedding(texts.ids).detach()
    scores = (words @ query[0, 0]).masked_fill(~texts.mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    even = texts.mask / texts.mask.sum(dim=1, keepdim=True)
    loss = (weights.unsqueeze(1) @ words).square().sum()
    (loss + 0.3 * (weights - even).square().sum()).backward()
    assert_close(found, query.grad)


class Reinforce(Objective):
    """−Σ log p(position) · (reward − baseline), and a baseline that follows the rewards."""

    weights = {"policy": 1.0, "entropy": -0.1}  # noqa: RUF012

    def __init__(self, model):
        super().__init__(model)
        self.register_buffer("baseline", torch.tensor(0.0))

    def counts(self, batch):
        return {"policy": len(batch), "entropy": len(batch)}

    def forward(self, batch, state=None):
        with watch(self.model) as seen:
            self.model(batch)
        (read,) = seen["attention"]
        sample = read.carried
        chosen = batch.ids.gather(1, sample.positions).squeeze(1)
        reward = (chosen == 4).float()
        policy = -(sample.log_probability.squeeze(1) * (reward - self.baseline)).sum()
        reported = {"reward": Sum(reward.sum(), len(batch))}
        return Outcome({"policy": policy, "entropy": sample.entropy.sum()}, reported)

    def finish_step(self, means):
        self.baseline.lerp_(torch.tensor(means["reward"]), 0.1)


def test_an_objective_learns_from_the_sample_of_a_hard_attention():
    torch.manual_seed(2)
    texts = batch([[4, 5, 2], [6, 4, 0], [7, 8, 4]] * 10, [0] * 30, [True] * 30)
    objective = Reinforce(Pooled(Hard()))
    optimizer = torch.optim.Adam(objective.parameters(), lr=0.03)
    rewards = []
    for _ in range(120):
        totals = Totals.zero()
        outcome = objective(texts)
        totals.add(outcome, objective.counts(texts))
        loss = sum(w * outcome.parts[n] for n, w in objective.weights.items()) / 30
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        objective.finish_step(totals.means())
        rewards.append(totals.means()["reward"])
    assert sum(rewards[:10]) / 10 < 0.6
    assert sum(rewards[-10:]) / 10 > 0.9
    assert float(objective.baseline) > 0.8
