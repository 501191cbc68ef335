"""Beginnings of different length."""

import torch

from regard.decoding import prepare_prompts


def test_the_last_id_is_fed_and_the_rest_is_padded_on_the_left():
    batch, first = prepare_prompts([[5, 3, 8], [2, 7], [4], []], first=1)
    assert first.tolist() == [8, 7, 4, 1]
    assert batch.mask.tolist() == [[True, True], [False, True], [False, False], [False, False]]
    assert batch.inputs[batch.mask].tolist() == [5, 3, 2]


def test_prompts_of_one_word_leave_nothing_to_read():
    batch, first = prepare_prompts([(4,), ()], first=0)
    assert batch.inputs.shape == batch.mask.shape == (2, 0)
    assert first.tolist() == [4, 0]
    assert first.dtype == torch.long


def test_no_prompts_are_an_empty_batch():
    batch, first = prepare_prompts([], first=0)
    assert batch.inputs.shape == (0, 0)
    assert first.shape == (0,)


def test_the_prompts_themselves_stay_as_they_were():
    prompts = [[5, 3], []]
    prepare_prompts(prompts, first=1)
    assert prompts == [[5, 3], []]
