"""The look record: one map, its labels, and what it computes when asked."""

import pytest
import torch
from torch.testing import assert_close

from regard.attention import (
    Attention,
    Causal,
    Dot,
    Label,
    Look,
    MultiHead,
    Padding,
    StrictlyCausal,
    stitch,
    watch,
)

WORDS = ["she", "is", "eating", "a", "green"]


def seen_by(*, heads=None, mask=None, rows=3):
    leading = (2,) if heads is None else (2, heads)
    queries, keys, values = (torch.randn(*leading, n, 7) for n in (rows, 5, 5))
    return Attention(Dot())(queries, keys, values, mask)


def test_weights_at_hand_become_a_look():
    look = Look.of_weights(torch.tensor([[0.1, 0.1, 0.5, 0.1, 0.2]]), queries=["apple"], keys=WORDS)
    assert (look.path, look.kind, look.heads) == ("attention", "self", ("",))
    assert look.queries == (Label("apple"),)
    assert [label.text for label in look.keys] == WORDS
    assert look.weights.shape == (1, 1, 5)
    assert look.mask is None


def test_a_mask_at_hand_is_that_of_every_head():
    mask = torch.rand(2, 5) > 0.5
    look = Look.of_weights(torch.rand(3, 2, 5), queries="ab", keys=WORDS, mask=mask)
    assert torch.equal(look.mask, mask.unsqueeze(0))


def test_labels_keep_the_piece_of_text_they_stand_for():
    label = Label("green", 16, 21)
    look = Look.of_weights(
        torch.rand(1, 1), queries=["apple"], keys=[label], key_text="she is eating a green apple"
    )
    assert look.keys == (label,)
    assert look.key_text[label.start : label.end] == "green"


def test_weights_at_hand_are_taken_off_the_graph_in_single_precision():
    weights = torch.rand(3, 2, 5, dtype=torch.float64, requires_grad=True)
    look = Look.of_weights(weights, queries="ab", keys=WORDS)
    assert look.weights.dtype == torch.float32
    assert not look.weights.requires_grad
    assert look.heads == ("head 0", "head 1", "head 2")


def test_a_look_does_not_change_with_the_weights_it_was_made_of():
    weights = torch.rand(2, 5)
    look = Look.of_weights(weights, queries="ab", keys=WORDS)
    before = look.weights.clone()
    weights.zero_()
    assert torch.equal(look.weights, before)


def test_a_part_of_a_look_is_that_part_of_the_whole():
    weights = torch.rand(3, 2, 5)
    look = Look.of_weights(weights, queries="ab", keys=WORDS)
    assert torch.equal(look.weights_of(heads=1), weights[1:2])
    assert torch.equal(look.weights_of(rows=-1), weights[:, 1:])
    assert torch.equal(look.weights_of(heads=[2, 0], rows=slice(1)), weights[[2, 0], :1])


@pytest.mark.parametrize("row", [0, 1])
def test_a_look_shows_one_row_of_the_batch(row):
    read = seen_by(mask=Padding(torch.tensor([5, 2])))
    look = Look.of(read, queries="abc", keys=WORDS, row=row)
    assert_close(look.weights, read.weights[row : row + 1])
    assert_close(look.weights_of(rows=[2]), read.weights[row : row + 1, 2:])
    expected = torch.arange(5) < [5, 2][row]
    assert torch.equal(look.mask.expand(1, 3, 5), expected.expand(1, 3, 5))


@pytest.mark.parametrize("row", [0, 1])
def test_a_look_at_heads_shows_each_of_them(row):
    mask = torch.rand(2, 7, 3, 5) > 0.3
    read = seen_by(heads=7, mask=mask)
    look = Look.of(read, queries="abc", keys=WORDS, row=row, path="layers.3.attention")
    assert look.path == "layers.3.attention"
    assert len(look.heads) == 7
    assert_close(look.weights, read.weights[row])
    assert_close(look.weights_of(heads=[5, 1], rows=0), read.weights[row][[5, 1], :1])
    assert torch.equal(look.mask, mask[row])


def test_a_mask_that_is_alike_for_all_is_told_alike():
    look = Look.of(seen_by(heads=7, mask=Causal()), queries="abc", keys=WORDS)
    expected = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]).bool()
    assert torch.equal(look.mask.expand(7, 3, 5), expected.expand(7, 3, 5))


def test_nothing_is_hidden_without_a_mask():
    assert Look.of(seen_by(), queries="abc", keys=WORDS).mask is None


def test_a_look_without_a_batch_is_shown_as_it_is():
    queries, keys = torch.randn(3, 7), torch.randn(5, 7)
    read = Attention(Dot())(queries, keys, keys, Causal())
    look = Look.of(read, queries="abc", keys=WORDS)
    assert_close(look.weights, read.weights.unsqueeze(0))
    assert_close(look.weights_of(rows=1), read.weights[None, 1:2])
    assert look.mask.shape == (1, 3, 5)
    assert_close(stitch([read, read])[0], torch.cat([read.weights, read.weights]))


def test_more_leading_axes_than_heads_make_no_one_map():
    read = Attention(Dot())(*(torch.randn(2, 2, 2, n, 7) for n in (3, 5, 5)))
    with pytest.raises(ValueError, match="not 5 axes"):
        Look.of(read, queries="abc", keys=WORDS)


def test_weights_are_not_computed_before_somebody_asks(monkeypatch):
    read = seen_by(heads=7)
    asked = []
    monkeypatch.setattr(type(read.weigh), "forward", lambda *given: asked.append(given))
    Look.of(read, queries="abc", keys=WORDS)
    assert asked == []


def test_a_blind_row_is_shown_as_zeros():
    read = seen_by(rows=5, mask=StrictlyCausal())
    look = Look.of(read, queries=WORDS, keys=WORDS)
    assert look.weights[0, 0].tolist() == [0.0] * 5


def test_looks_at_words_said_one_by_one_are_stitched_into_one_map():
    a, b = torch.rand(2, 3, 2, 4), torch.rand(2, 3, 1, 6)
    model = MultiHead(12, 3)
    with watch(model) as seen:
        for weights in (a, b):
            q, k = weights.shape[-2:]
            model(torch.randn(2, q, 12), torch.randn(2, k, 12))
    calls = seen["attention"]
    whole = stitch(calls, row=1)
    assert whole.shape == (3, 3, 6)
    assert_close(whole[:, :2, :4], calls[0].weights[1])
    assert (whole[:, :2, 4:] == 0).all()
    assert_close(whole[:, 2:], calls[1].weights[1])


def test_one_head_is_stitched_as_one():
    calls = [seen_by(rows=1), seen_by(rows=2)]
    whole = stitch(calls)
    assert whole.shape == (1, 3, 5)
    assert_close(whole[0, 1:], calls[1].weights[0])


def test_nothing_cannot_be_stitched():
    with pytest.raises(ValueError, match="calls is empty: nothing was looked at"):
        stitch([])


def test_a_look_at_an_image_has_a_grid():
    look = Look.of_weights(
        torch.rand(1, 6), queries=["dog"], keys=["cell"] * 6, kind="image", grid=(2, 3)
    )
    assert look.grid == (2, 3)


def of_weights(shape=(2, 5), **words):
    return Look.of_weights(torch.rand(shape), queries="ab", keys=WORDS, **words)


REFUSED = {
    "a kind": ({"kind": "glance"}, r"kind \('glance'\) must be one of self, cross, pool, memory"),
    "a grid": ({"grid": (2, 3)}, r"grid \(2, 3\) does not hold 5 keys"),
    "four axes": ({"shape": (1, 2, 2, 5)}, r"weights \(1, 2, 2, 5\) must be \(query, key\) or"),
    "other labels": ({"shape": (3, 5)}, r"weights \(3, 5\) do not fit 2 queries and 5 keys"),
    "head names": ({"heads": ("x",), "shape": (3, 2, 5)}, r"heads \('x',\) do not name 3 heads"),
    "steps": ({"steps": (0, 1, 2)}, "3 steps do not fit 2 queries"),
    "a mask's shape": ({"mask": torch.ones(3, 5, dtype=torch.bool)}, r"mask \(1, 3, 5\) does not"),
    "a mask's kind": (
        {"mask": torch.ones(2, 5)},
        r"mask \(torch.float32 \(2, 5\)\) must be a bool",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_a_look_is_named(name):
    words, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        of_weights(**words)


def test_labels_must_be_as_many_as_the_map_has_rows_and_columns():
    with pytest.raises(ValueError, match=r"2 queries and 5 keys do not label a map of \(3, 5\)"):
        Look.of(seen_by(), queries="ab", keys=WORDS)


def test_a_row_beyond_the_batch_is_refused():
    with pytest.raises(ValueError, match=r"rows \(2\) must lie within the batch, which has 2 rows"):
        Look.of(seen_by(), queries="abc", keys=WORDS, row=2)


def test_a_part_beyond_the_last_is_refused():
    look = of_weights()
    with pytest.raises(ValueError, match=r"rows \(2\) must lie within 0 … 1"):
        look.weights_of(rows=2)
    with pytest.raises(ValueError, match=r"heads \(1\) must lie within 0 … 0"):
        look.weights_of(heads=1)
