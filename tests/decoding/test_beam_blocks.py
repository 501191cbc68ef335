"""The likeliest words, found by blocks."""

import pytest
import torch

from regard.decoding.beams import WORDS_PER_BLOCK, top_of_blocks


@pytest.mark.parametrize("vocabulary", [5, WORDS_PER_BLOCK * 6, WORDS_PER_BLOCK * 9 + 7])
@pytest.mark.parametrize("count", [1, 5])
def test_they_are_those_of_the_whole_vocabulary(vocabulary, count):
    log_probs = torch.randn(40, vocabulary, generator=torch.Generator().manual_seed(2))
    log_probs[:, ::3] = -torch.inf  # barred words
    values, ids = top_of_blocks(log_probs, count)
    expected = log_probs.topk(count)
    assert torch.equal(values, expected.values)
    real = ~values.isneginf()
    assert torch.equal(ids[real], expected.indices[real])


def test_words_of_one_block_may_all_be_among_them():
    blocks = 8
    log_probs = torch.zeros(2, WORDS_PER_BLOCK * blocks)
    best = torch.arange(5) * blocks + 3  # a block is every eighth word
    log_probs[:, best] = torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0])
    assert top_of_blocks(log_probs, 5)[1].tolist() == [best.tolist()] * 2
