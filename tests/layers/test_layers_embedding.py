import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard.layers import Embedding


def test_an_embedding_with_torchs_weights_reads_what_torchs_reads():
    ours, theirs = Embedding(13, 5, padding_id=2), nn.Embedding(13, 5, padding_idx=2)
    ours.load_state_dict(theirs.state_dict())
    ids = torch.randint(13, (3, 7))
    assert torch.equal(ours(ids), theirs(ids))
    assert ours(ids[0, 0]).shape == (5,)


def test_a_scaled_embedding_is_multiplied_by_the_root_of_its_size():
    scaled, plain = Embedding(13, 16, scaled=True), Embedding(13, 16)
    plain.load_state_dict(scaled.state_dict())
    ids = torch.randint(13, (3, 7))
    assert_close(scaled(ids), 4 * plain(ids))


@pytest.mark.parametrize("scaled", [False, True])
def test_what_comes_out_has_variance_one_either_way(scaled):
    vectors = Embedding(1009, 101, scaled=scaled)(torch.arange(1009))
    assert_close(vectors.var(), torch.tensor(1.0), atol=0.03, rtol=0)


def test_padding_is_zero_and_learns_nothing_from_either_end():
    embedding = Embedding(13, 5, padding_id=2)
    optimizer = torch.optim.SGD(embedding.parameters(), lr=1.0)
    ids = torch.tensor([[1, 2, 7], [2, 2, 11]])
    for _ in range(3):
        logits = embedding.logits(embedding(ids) + torch.randn(2, 3, 5))
        F.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
        optimizer.step()
    assert torch.all(embedding.weight[2] == 0)
    assert torch.all(embedding.weight.grad[2] == 0)
    assert torch.all(embedding.weight.grad[[1, 7, 11]] != 0)
    assert torch.all(logits[..., 2] == 0)


def test_logits_are_inner_products_with_the_rows():
    embedding = Embedding(13, 5, padding_id=2)
    vectors = torch.randn(3, 7, 5)
    assert_close(embedding.logits(vectors), vectors @ embedding.weight.T)
    with torch.no_grad():
        assert_close(embedding.logits(vectors), vectors @ embedding.weight.T)


def test_ids_that_are_no_words_are_refused():
    embedding = Embedding(13, 5)
    with pytest.raises(ValueError, match=r"ids \(13\) must be from 0 to 12"):
        embedding(torch.tensor([0, 13]))
    with pytest.raises(ValueError, match=r"ids \(-1\) must be from 0 to 12"):
        embedding(torch.tensor([0, -1]))
    with pytest.raises(ValueError, match=r"ids \(torch.float32\) must be whole numbers"):
        embedding(torch.tensor([0.0, 1.0]))
    with pytest.raises(ValueError, match=r"padding_id \(13\) must be from 0 to 12"):
        Embedding(13, 5, padding_id=13)
