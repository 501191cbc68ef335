import numpy as np
import pytest
import torch

from regard.attention import Label, Look
from regard.looking import views
from regard.looking.views import block_of, view


def test_a_map_of_ordinary_size_is_shown_weight_by_weight(heads):
    seen = view(heads)
    assert seen.block == (1, 1)
    assert np.array_equal(seen.values, heads.weights.numpy())
    assert seen.hidden[..., -1].all()
    assert not seen.hidden[..., :-1].any()


def test_row_sums_are_those_of_the_whole_row(heads):
    assert view(heads).sums == pytest.approx(heads.weights.sum(dim=-1).numpy())


def test_a_block_shows_the_largest_weight_in_it(monkeypatch):
    monkeypatch.setattr(views, "SIDE", 3)
    weights = torch.rand(2, 11, 7)
    look = Look.of_weights(weights, queries=list("abcdefghijk"), keys=list("stuvwxy"))
    seen = view(look)
    assert seen.block == (4, 3)
    for head, row, column in np.ndindex(2, 3, 3):
        block = weights[head, 4 * row : 4 * row + 4, 3 * column : 3 * column + 3]
        assert seen.values[head, row, column] == block.max()


def test_a_block_of_differences_shows_the_one_farthest_from_zero(monkeypatch):
    monkeypatch.setattr(views, "SIDE", 2)
    weights = torch.tensor([[0.1, -0.7, 0.2, 0.3], [0.0, 0.5, -0.1, 0.0]])
    seen = view(Look.of_weights(weights, queries="ab", keys="wxyz"))
    assert seen.block == (1, 2)
    assert seen.values[0].tolist() == pytest.approx(np.array([[-0.7, 0.3], [0.5, -0.1]]))


def test_a_block_is_hidden_only_when_all_of_it_is(monkeypatch):
    monkeypatch.setattr(views, "SIDE", 2)
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[0, 0] = True
    tokens = list("abcd")
    seen = view(Look.of_weights(torch.full((4, 4), 0.5), queries=tokens, keys=tokens, mask=mask))
    assert seen.hidden[0].tolist() == [[False, True], [True, True]]
    assert seen.values[0].tolist() == [[0.5, 0.0], [0.0, 0.0]]


def test_a_large_map_read_in_bands_is_the_map_read_at_once(monkeypatch, large):
    monkeypatch.setattr(views, "SIDE", 53)
    at_once = view(large)
    monkeypatch.setattr(views, "BAND", 1_000)
    in_bands = view(large)
    assert np.array_equal(at_once.values, in_bands.values)
    assert np.array_equal(at_once.hidden, in_bands.hidden)


def test_the_label_of_a_block_reaches_from_its_first_token_to_its_last(monkeypatch):
    monkeypatch.setattr(views, "SIDE", 2)
    tokens = [Label("one", 0, 3), Label("two", 4, 7), Label("three", 8, 13)]
    seen = view(Look.of_weights(torch.eye(3), queries=tokens, keys=tokens))
    assert seen.keys == (Label("one…two", 0, 7), Label("three", 8, 13))


@pytest.mark.parametrize("size", [(1, 1_000, 1_000), (12, 4_099, 4_099), (16, 3, 50_021)])
def test_blocks_are_large_enough_for_the_file_and_no_larger(size):
    heads, queries, keys = size
    down, across = block_of(heads, queries, keys, views.ROOM)
    rows, columns = -(-queries // down), -(-keys // across)
    assert heads * rows * columns <= views.ROOM
    assert max(rows, columns) <= views.SIDE
    assert (down, across) == (1, 1) or heads * rows * columns > views.ROOM / 4 or columns > 1_000


def test_a_weight_that_is_no_number_is_named_by_its_place():
    weights = torch.zeros(2, 3, 5)
    weights[1, 2, 4] = torch.nan
    look = Look.of_weights(weights, path="layers.0", queries=list("abc"), keys=list("vwxyz"))
    with pytest.raises(ValueError, match=r"layers\.0: the weight of head 1, query 2, key 4 is nan"):
        view(look)
