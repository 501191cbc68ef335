import pytest
import torch


def test_without_positions_permuting_the_words_permutes_the_outputs(played):
    assert played("order").numbers["without_positions"]["largest_difference"] < 1e-12


def test_with_positions_it_does_not(played):
    assert played("order").numbers["with_positions"]["largest_difference"] > 0.01


def test_without_positions_the_map_is_the_same_map_rearranged(played):
    numbers = played("order").numbers
    reversed_ = numbers["permutation"]
    weights = torch.tensor(numbers["without_positions"]["weights"])
    permuted = torch.tensor(numbers["without_positions"]["weights_of_permuted"])
    torch.testing.assert_close(permuted, weights[:, reversed_][:, :, reversed_])


def test_four_maps_are_drawn(played):
    looks = played("order").looks
    assert [look.path for look in looks] == [
        "without positions: dog bites man",
        "without positions: man bites dog",
        "with positions: dog bites man",
        "with positions: man bites dog",
    ]
    assert looks[0].weights.sum().item() == pytest.approx(6)
