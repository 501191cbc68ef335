import numpy as np
import pytest
import torch

from regard.attention import Label, Look
from regard.looking import views
from regard.looking.colours import Scale
from regard.looking.views import choose_block, make_view


def test_a_map_of_ordinary_size_is_shown_weight_by_weight(heads):
    seen = make_view(heads)
    assert seen.block == (1, 1)
    assert np.array_equal(seen.values, heads.weights.numpy())
    assert seen.hidden[..., -1].all()
    assert not seen.hidden[..., :-1].any()


def marked(*texts):
    return [Label(text, at, at + 1) for at, text in enumerate(texts)] + [Label("</s>")]


def test_marks_of_words_are_left_out_where_every_piece_is_a_word():
    words, pieces = marked("▁a", "▁dog"), marked("▁do", "g")
    for keys, shown in ((words, ["a", "dog", "</s>"]), (pieces, ["▁do", "g", "</s>"])):
        seen = make_view(Look.of_weights(torch.ones(3, 3) / 3, queries=words, keys=keys))
        assert [label.text for label in seen.keys] == shown
        assert seen.queries[0].text == ("a" if keys is words else "▁a")
        assert (seen.keys[0].start, seen.look.keys[0].text) == (0, keys[0].text)
    # A mark by itself is a token, and where nobody knows the places all labels stay as they are.
    for texts in (["▁", "▁b"], ["▁a", "▁b"]):
        keys = marked(*texts) if "▁" in texts else texts
        seen = make_view(Look.of_weights(torch.ones(1, len(keys)), queries=["x"], keys=keys))
        assert [label.text for label in seen.keys][:2] == texts


def test_row_sums_are_those_of_the_whole_row(heads):
    assert make_view(heads).sums == pytest.approx(heads.weights.sum(dim=-1).numpy())


def test_a_row_that_sees_one_key_alone_does_not_set_the_scale(causal):
    scale = make_view(causal).scale
    assert (scale.low, scale.high, scale.clipped) == (0.0, pytest.approx(0.6), True)
    assert make_view(causal).values[0, 0, 0] == 1.0


def test_the_next_rows_of_a_long_causal_map_do_not_set_the_scale_either():
    """Of 40 keys the second row sees two and the third three: they must give much to somebody."""
    mask = torch.ones(40, 40, dtype=torch.bool).tril()
    even = mask / mask.sum(dim=-1, keepdim=True)
    tokens = [str(at) for at in range(40)]
    scale = make_view(Look.of_weights(even, queries=tokens, keys=tokens, mask=mask)).scale
    assert (scale.high, scale.clipped) == (0.25, True)


def test_without_a_mask_every_row_sets_the_scale():
    weights = torch.tensor([[1.0, 0.0], [0.4, 0.6]])
    scale = make_view(Look.of_weights(weights, queries="ab", keys="xy")).scale
    assert (scale.high, scale.clipped) == (1.0, False)


def test_each_head_has_its_own_rows_without_a_choice():
    weights = torch.tensor([[[1.0, 0.0], [0.4, 0.6]], [[0.3, 0.7], [0.0, 1.0]]])
    mask = torch.tensor([[[True, False], [True, True]], [[True, True], [False, True]]])
    scale = make_view(Look.of_weights(weights, queries="ab", keys="xy", mask=mask)).scale
    assert (scale.high, scale.clipped) == (pytest.approx(0.7), True)


def test_where_nobody_has_a_choice_all_set_the_scale():
    lone = Look.of_weights(torch.tensor([[0.5], [0.25]]), queries="ab", keys="x")
    alone = Look.of_weights(
        torch.eye(3), queries="abc", keys="abc", mask=torch.eye(3, dtype=torch.bool)
    )
    assert (make_view(lone).scale, make_view(alone).scale) == (Scale(0.0, 0.5), Scale(0.0, 1.0))


def test_weights_that_are_written_alike_at_the_end_of_the_scale_are_not_beyond_it():
    weights = torch.tensor([[1.0, 0.0], [0.0001, 0.9999]])
    mask = torch.ones(2, 2, dtype=torch.bool).tril()
    scale = make_view(Look.of_weights(weights, queries="ab", keys="ab", mask=mask)).scale
    assert (scale.clipped, scale.end_labels) == (False, ("0", "1"))


@pytest.mark.parametrize("band", [1, 4_000_000], ids=["in bands", "at once"])
def test_a_map_in_blocks_has_the_scale_of_its_weights(band, causal, monkeypatch):
    monkeypatch.setattr(views, "MAX_SIDE", 2)
    monkeypatch.setattr(views, "MAX_WEIGHTS_IN_MEMORY", band)
    seen = make_view(causal)
    assert seen.block == (2, 2)
    assert seen.values[0].tolist() == pytest.approx(np.array([[1.0, 0.0], [0.6, 0.4]]))
    assert (seen.scale.high, seen.scale.clipped) == (pytest.approx(0.6), True)


def test_a_block_shows_the_largest_weight_in_it(monkeypatch):
    monkeypatch.setattr(views, "MAX_SIDE", 3)
    weights = torch.rand(2, 11, 7)
    look = Look.of_weights(weights, queries=list("abcdefghijk"), keys=list("stuvwxy"))
    seen = make_view(look)
    assert seen.block == (4, 3)
    for head, row, column in np.ndindex(2, 3, 3):
        block = weights[head, 4 * row : 4 * row + 4, 3 * column : 3 * column + 3]
        assert seen.values[head, row, column] == block.max()


def test_a_block_of_differences_shows_the_one_farthest_from_zero(monkeypatch):
    monkeypatch.setattr(views, "MAX_SIDE", 2)
    weights = torch.tensor([[0.1, -0.7, 0.2, 0.3], [0.0, 0.5, -0.1, 0.0]])
    seen = make_view(Look.of_weights(weights, queries="ab", keys="wxyz"))
    assert seen.block == (1, 2)
    assert seen.values[0].tolist() == pytest.approx(np.array([[-0.7, 0.3], [0.5, -0.1]]))


def test_a_block_is_hidden_only_when_all_of_it_is(monkeypatch):
    monkeypatch.setattr(views, "MAX_SIDE", 2)
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[0, 0] = True
    tokens = list("abcd")
    seen = make_view(
        Look.of_weights(torch.full((4, 4), 0.5), queries=tokens, keys=tokens, mask=mask)
    )
    assert seen.hidden[0].tolist() == [[False, True], [True, True]]
    assert seen.values[0].tolist() == [[0.5, 0.0], [0.0, 0.0]]


def test_a_large_map_read_in_bands_is_the_map_read_at_once(monkeypatch, large):
    monkeypatch.setattr(views, "MAX_SIDE", 53)
    at_once = make_view(large)
    monkeypatch.setattr(views, "MAX_WEIGHTS_IN_MEMORY", 1_000)
    in_bands = make_view(large)
    assert np.array_equal(at_once.values, in_bands.values)
    assert np.array_equal(at_once.hidden, in_bands.hidden)


def test_the_label_of_a_block_reaches_from_its_first_token_to_its_last(monkeypatch):
    monkeypatch.setattr(views, "MAX_SIDE", 2)
    tokens = [Label("one", 0, 3), Label("two", 4, 7), Label("three", 8, 13)]
    seen = make_view(Look.of_weights(torch.eye(3), queries=tokens, keys=tokens))
    assert seen.keys == (Label("one…two", 0, 7), Label("three", 8, 13))


@pytest.mark.parametrize("size", [(1, 1_000, 1_000), (12, 4_099, 4_099), (16, 3, 50_021)])
def test_blocks_are_large_enough_for_the_file_and_no_larger(size):
    heads, queries, keys = size
    down, across = choose_block(heads, queries, keys, views.MAX_CELLS_PER_FILE)
    rows, columns = -(-queries // down), -(-keys // across)
    assert heads * rows * columns <= views.MAX_CELLS_PER_FILE
    assert max(rows, columns) <= views.MAX_SIDE
    assert (
        (down, across) == (1, 1)
        or heads * rows * columns > views.MAX_CELLS_PER_FILE / 4
        or columns > 1_000
    )


def test_a_weight_that_is_no_number_is_named_by_its_place():
    weights = torch.zeros(2, 3, 5)
    weights[1, 2, 4] = torch.nan
    look = Look.of_weights(weights, path="layers.0", queries=list("abc"), keys=list("vwxyz"))
    with pytest.raises(ValueError, match=r"layers\.0: the weight of head 1, query 2, key 4 is nan"):
        make_view(look)
