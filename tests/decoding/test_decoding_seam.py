"""What a model may hand to a decoder."""

import pytest
import torch

from regard.decoding import Ancestry, DecodingConfig, beam, greedy, sample

CONFIG = DecodingConfig(longest=5, beam=3)
WAYS = [greedy, sample, beam]


@pytest.mark.parametrize(
    ("way", "bad"), [(greedy, torch.nan), (sample, torch.inf), (beam, torch.nan)]
)
def test_nan_names_its_step_and_row(way, bad, table, toys):
    model = table(5, tables=2)
    model.logits[1, 2, :, 3] = bad
    with pytest.raises(ValueError, match=r"logits of step 2 hold NaN or inf in row \d+ of \d+"):
        way(model, toys.sources([0], [1]), torch.tensor([0, 0]), CONFIG)


def test_one_impossible_row_does_not_hide_a_nan_in_another(table, toys):
    model = table(5, tables=3)
    model.logits[1, 0] = -torch.inf
    model.logits[2, 0, :, 4] = torch.nan
    with pytest.raises(ValueError, match="step 0 hold NaN or inf in row 2 of 3"):
        greedy(model, toys.sources([0], [1], [2]), torch.zeros(3, dtype=torch.long), CONFIG)


@pytest.mark.parametrize("way", WAYS)
def test_half_precision_logits_are_summed_in_full(way, table, toys):
    model = table(5)
    model.logits = model.logits.bfloat16()
    exact = toys.Table(model.logits.float())
    batch, first = toys.sources([0]), torch.tensor([0])
    assert way(model, batch, first, CONFIG) == way(exact, batch, first, CONFIG)


@pytest.mark.parametrize("way", WAYS)
def test_logits_of_another_shape_are_refused(way, toys):
    class Strange(toys.Table):
        def step(self, ids, state):
            logits, state = super().step(ids, state)
            return logits.unsqueeze(1), state

    model = Strange(torch.zeros(1, 1, 3, 3))
    with pytest.raises(ValueError, match=r"logits \(2, 1, 3\) of step 0 must be \(2, vocabulary\)"):
        way(model, toys.sources([0], [0]), torch.tensor([0, 0]), CONFIG)


@pytest.mark.parametrize(
    ("way", "first"),
    [(greedy, torch.tensor(0)), (sample, torch.tensor([0.0])), (beam, torch.tensor([[0]]))],
)
def test_first_ids_are_a_row_of_integers(way, first, table, toys):
    with pytest.raises(ValueError, match=r"first \(torch.*\) must be long ids \(batch,\)"):
        way(table(3), toys.sources([0]), first, CONFIG)


@pytest.mark.parametrize("way", WAYS)
def test_no_gradient_is_kept_for_a_decoder(way, toys):
    class Curious(toys.Table):
        def step(self, ids, state):
            assert not torch.is_grad_enabled()
            return super().step(ids, state)

    way(Curious(torch.zeros(1, 1, 3, 3)), toys.sources([0]), torch.tensor([0]), CONFIG)
    assert torch.is_grad_enabled()


def test_an_ancestry_serves_one_decoding(table, toys):
    ancestry = Ancestry()
    batch, first = toys.sources([0]), torch.tensor([0])
    greedy(table(3), batch, first, CONFIG, ancestry=ancestry)
    with pytest.raises(ValueError, match="ancestry is that of another decoding already"):
        greedy(table(3), batch, first, CONFIG, ancestry=ancestry)
