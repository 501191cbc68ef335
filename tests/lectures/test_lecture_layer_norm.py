import pytest
import torch

from regard.lectures import layer_norm


def test_the_features_have_mean_zero_and_variance_one(played):
    numbers = played("layer-norm").numbers
    assert (numbers["mean"], numbers["variance"]) == (5, 4)
    assert numbers["normed"] == pytest.approx([-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2], abs=1e-9)
    assert numbers["normed_mean"] == pytest.approx(0, abs=1e-9)
    assert numbers["normed_variance"] == pytest.approx(1, abs=1e-9)


def test_torch_agrees(played):
    numbers = played("layer-norm").numbers
    x = torch.tensor(numbers["x"])
    expected = torch.nn.functional.layer_norm(x, (8,), eps=0.0)
    assert numbers["normed"] == pytest.approx(expected.tolist(), abs=1e-6)


def test_divided_by_the_variance_the_variance_is_not_one(played):
    written = played("layer-norm").numbers["as_written"]
    expected = [-0.75, -0.25, -0.25, -0.25, 0, 0, 0.5, 1]
    assert written["normed"] == pytest.approx(expected, abs=1e-9)
    assert written["normed_variance"] == pytest.approx(1 / 4, abs=1e-9)


def test_stretch_shift_and_neighbours_change_nothing(played):
    numbers = played("layer-norm").numbers
    assert numbers["stretched_and_shifted"] == pytest.approx(numbers["normed"], abs=1e-9)
    assert numbers["with_a_neighbour"] == pytest.approx(numbers["normed"], abs=1e-9)


def test_with_other_features_the_lecture_tells_theirs(monkeypatch):
    monkeypatch.setattr(layer_norm, "X", torch.tensor([0.0, 0.0, 6.0, 2.0], dtype=torch.float64))
    lesson = layer_norm.lesson()
    assert lesson.steps[1].lines == (
        "μ = 8/4 = 2",
        "σ² = (4 + 4 + 16 + 0)/4 = 6   σ = 2.4495",
    )
    assert lesson.slip.endswith("Here that is 2.4495 in place of 6.")
