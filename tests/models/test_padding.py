import torch

from regard.data.batches import Words
from regard.models.padding import (
    LeftAligned,
    document_positions,
    lengths_from_first_word,
    take_last,
)


def test_words_behind_padding_move_to_the_front_and_back_again():
    aligned = LeftAligned.from_batch(Words.prompts([[1, 2, 3], [4], [5, 6]], filler=9))
    assert aligned.ids.tolist() == [[1, 2, 3], [4, 9, 9], [5, 6, 9]]
    assert aligned.lengths.tolist() == [3, 1, 2]
    assert aligned.restore(aligned.ids.unsqueeze(-1)).squeeze(-1).tolist() == [
        [1, 2, 3],
        [9, 9, 4],
        [9, 5, 6],
    ]


def test_full_rows_have_no_lengths():
    aligned = LeftAligned.from_batch(Words.prompts([[1, 2], [3, 4]]))
    assert aligned.lengths is None and aligned.shift is None


def test_padding_on_the_right_stays_where_it_is():
    ids = torch.tensor([[1, 2, 3], [4, 9, 9]])
    aligned = LeftAligned.from_batch(Words(ids, ids, ids < 9))
    assert aligned.ids.tolist() == ids.tolist() and aligned.lengths.tolist() == [3, 1]


def test_the_latest_words_end_where_a_row_ends():
    before = torch.tensor([[1, 2], [3, 4], [5, 6]])
    new = torch.tensor([[7, 8, 9], [7, 0, 0], [0, 0, 0]])
    lengths = torch.tensor([3, 1, 0])
    assert take_last(before, new, lengths, 2).tolist() == [[8, 9], [4, 7], [5, 6]]
    assert take_last(before, new, None, 4).tolist() == [[2, 7, 8, 9], [4, 7, 0, 0], [6, 0, 0, 0]]
    assert take_last(before, new, None, 0).shape == (3, 0)


def test_a_row_is_counted_from_its_first_word():
    assert lengths_from_first_word(Words.prompts([[1, 2, 3], [4], []]).mask).tolist() == [3, 1, 0]
    on_both_sides = torch.tensor([[False, True, True, False]])
    assert lengths_from_first_word(on_both_sides).tolist() == [3]
    assert lengths_from_first_word(torch.tensor([[True, False], [True, True]])) is None
    assert lengths_from_first_word(torch.ones(2, 0, dtype=torch.bool)) is None


def test_places_start_anew_with_each_document():
    documents = torch.tensor([[4, 4, 4, 2, 2, 7], [1, 0, 0, 0, -1, -1]])
    assert document_positions(documents).tolist() == [[0, 1, 2, 0, 1, 0], [0, 0, 1, 2, 0, 1]]
