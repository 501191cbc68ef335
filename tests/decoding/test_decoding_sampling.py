"""Draws whose frequencies are known, and that no neighbour can change."""

import pytest
import torch
from torch.testing import assert_close

from regard.decoding import DecodingConfig, greedy, sample
from regard.decoding import sampling as module
from regard.decoding.sampling import UniformDraws, invert_cdf, nucleus, sample_ids

P = torch.tensor([0.25, 0.05, 0.4, 0.1, 0.2])


def frequencies(toys, config: DecodingConfig, count: int = 4001) -> torch.Tensor:
    model = toys.Table(P.log().expand(1, 1, 5, 5))
    batch, first = toys.sources(*[[0]] * count), torch.zeros(count, dtype=torch.long)
    rows = sample(model, batch, first, config)
    return torch.bincount(torch.tensor([row[0].ids[0] for row in rows]), minlength=5) / count


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, P),
        ({"temperature": 0.5}, P**2 / (P**2).sum()),
        ({"temperature": 2.0}, P**0.5 / (P**0.5).sum()),
        ({"top_k": 2}, torch.tensor([0.25, 0, 0.4, 0, 0]) / 0.65),
        ({"top_k": 5}, P),
        ({"top_k": 99}, P),
        ({"top_p": 0.6}, torch.tensor([0.25, 0, 0.4, 0, 0]) / 0.65),
        ({"top_p": 0.7}, torch.tensor([0.25, 0, 0.4, 0, 0.2]) / 0.85),
        ({"top_p": 0.01}, torch.tensor([0, 0, 1.0, 0, 0])),
        # Of the three likeliest, 0.85 in all, 0.7 · 0.85 = 0.595 is held by two.
        ({"top_k": 3, "top_p": 0.7}, torch.tensor([0.25, 0, 0.4, 0, 0]) / 0.65),
    ],
)
def test_words_come_as_often_as_they_should(toys, options, expected):
    found = frequencies(toys, DecodingConfig(longest=1, **options))
    assert (found[expected == 0] == 0).all()
    # Four standard errors: sqrt(p (1 - p) / 4001).
    assert_close(found, expected, atol=4 * 0.5 / 4001**0.5, rtol=0)


def test_the_nucleus_holds_the_word_that_crosses_p():
    # 0.4 and 0.25 are 0.65: below 0.66 a third is needed, at 0.65 itself it is not.
    weights = torch.tensor([[4.0, 5.0, 8.0, 3.0]], dtype=torch.float64)  # 20 in all
    held = {p: sorted(nucleus(weights, p)[0][0].tolist()) for p in (0.4, 0.41, 0.65, 0.66)}
    assert held == {0.4: [0, 0, 0, 8], 0.41: [0, 0, 5, 8], 0.65: [0, 0, 5, 8], 0.66: [0, 4, 5, 8]}


def test_a_nucleus_wider_than_the_first_reach_is_found_whole(monkeypatch):
    weights = torch.rand(3, 17)
    weights[1] *= torch.arange(17) == 5  # one row has its nucleus at once
    expected, places = nucleus(weights, 0.8)
    monkeypatch.setattr(module, "NUCLEUS_CANDIDATES", (2, 3))
    found, again = nucleus(weights, 0.8)
    assert_close(found, expected)
    assert torch.equal(places[expected > 0], again[found > 0])


def test_a_number_falls_into_the_share_it_points_at():
    weights = torch.tensor([[0.0, 2.0, 0.0, 1.0, 1.0, 0.0]]).expand(7, -1)
    numbers = torch.tensor([0.0, 0.49, 0.5, 0.74, 0.75, 0.99, 1 - 2**-53], dtype=torch.float64)
    assert invert_cdf(weights, numbers).tolist() == [1, 1, 3, 3, 4, 4, 4]


def test_temperature_zero_is_greedy(table, toys):
    model = table(7, tables=3)
    batch, first = toys.sources([0], [1], [2]), torch.zeros(3, dtype=torch.long)
    config = DecodingConfig(method="sample", temperature=0.0, longest=5)
    assert sample(model, batch, first, config, end=1) == greedy(model, batch, first, config, end=1)


def test_a_temperature_close_to_zero_is_nearly_so(table, toys):
    model, config = table(7), DecodingConfig(temperature=1e-9, longest=5)
    batch, first = toys.sources([0]), torch.tensor([0])
    assert sample(model, batch, first, config) == greedy(model, batch, first, config)


def test_the_same_seed_says_the_same_and_another_something_else(table, toys):
    model = table(7, scale=0.5)
    batch, first = toys.sources([0]), torch.tensor([0])

    def say(seed: int):
        return sample(model, batch, first, DecodingConfig(seed=seed, longest=11))

    assert say(3) == say(3)
    assert len({say(seed)[0][0].ids for seed in range(7)}) == 7


def test_rows_of_one_batch_draw_apart(table, toys):
    model, config = table(7, scale=0.5), DecodingConfig(longest=11)
    batch, first = toys.sources(*[[0]] * 5), torch.zeros(5, dtype=torch.long)
    assert len({row[0].ids for row in sample(model, batch, first, config)}) == 5


def test_neither_global_randomness_nor_the_next_seed_is_touched(table, toys):
    torch.manual_seed(3)
    expected = torch.rand(())
    torch.manual_seed(3)
    sample(table(5), toys.sources([0]), torch.tensor([0]), DecodingConfig(longest=3))
    assert torch.rand(()) == expected
    one, other = UniformDraws(0, [(1, 0)]), UniformDraws(1, [(0, 0)])
    assert one.at(0, torch.tensor([0])) != other.at(0, torch.tensor([0]))


def test_draws_do_not_come_round_again():
    draws, path = UniformDraws(0, [(0, 0)]), torch.tensor([0])
    numbers = [float(draws.at(step, path)) for step in range(2 * module.STEPS_PER_BLOCK + 1)]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("options", [{}, {"top_k": 5}, {"top_p": 0.8}, {"top_k": 5, "top_p": 0.8}])
def test_a_row_draws_the_same_alone_as_among_others(table, toys, options):
    model = table(7, steps=3, tables=5, scale=1.0)
    config = DecodingConfig(method="sample", longest=130, n_best=3, **options)
    batch = toys.sources(*[[which] for which in range(5)])
    rows = sample(model, batch, torch.arange(5), config, end=1)
    assert len({len(one.ids) for row in rows for one in row}) > 5  # they end at different times
    for which, row in enumerate(rows):
        alone = batch.pick(torch.tensor([which]))
        [own] = sample(model, alone, torch.tensor([which]), config, end=1, numbers=[which])
        assert own == row


def test_draws_of_one_row_differ_and_come_best_first(table, toys):
    config = DecodingConfig(method="sample", n_best=7, longest=11)
    [row] = sample(table(7, scale=0.5), toys.sources([0]), torch.tensor([0]), config)
    assert len({one.ids for one in row}) == 7
    assert [one.score for one in row] == sorted((one.score for one in row), reverse=True)


def test_the_probability_is_the_models_own_at_any_temperature(toys):
    model = toys.Table(P.log().expand(1, 1, 5, 5))
    config = DecodingConfig(temperature=3.0, top_k=3, longest=1, length_penalty="none")
    [[found]] = sample(model, toys.sources([0]), torch.tensor([0]), config)
    assert found.log_probability == pytest.approx(float(P[found.ids[0]].log()))


def test_a_barred_word_is_never_drawn():
    logs = torch.tensor([[-torch.inf, -1.0, -torch.inf, -2.0]]).expand(101, -1)
    numbers = torch.linspace(0, 1 - 2**-53, 101, dtype=torch.float64)
    for options in ({}, {"top_k": 3}, {"top_p": 0.99}, {"temperature": 50.0}):
        assert set(sample_ids(logs, numbers, DecodingConfig(**options)).tolist()) <= {1, 3}


def test_as_many_numbers_as_rows_are_needed(table, toys):
    with pytest.raises(ValueError, match=r"numbers \(2\) must be as many as the batch has rows, 1"):
        sample(table(3), toys.sources([0]), torch.tensor([0]), DecodingConfig(), numbers=[0, 1])
