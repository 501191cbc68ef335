"""The deep averaging network against torch's own parts, and against numbers worked out by hand."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.data.batches import LabelledTexts
from regard.models import DAN, DANConfig
from regard.models.dan import WordDropout

SIZES = {"vocabulary_size": 13, "classes": 3, "embedding_size": 5, "hidden_size": 7}


def batch_of(*texts):
    longest = max(map(len, texts))
    ids = torch.tensor([[*text, *[0] * (longest - len(text))] for text in texts])
    mask = torch.tensor([[place < len(text) for place in range(longest)] for text in texts])
    return LabelledTexts(ids, mask, torch.zeros(len(texts), dtype=torch.long))


def test_one_layer_agrees_with_torch_s_embedding_bag():
    torch.manual_seed(1)
    model = DAN(DANConfig(**SIZES, layers=1)).eval()
    bag = nn.EmbeddingBag.from_pretrained(model.embedding.weight.detach(), mode="mean")
    texts = [[1, 2, 3, 4], [5], [6, 6, 0]]
    offsets = torch.tensor([0, 4, 5])
    means = bag(torch.tensor([word for text in texts for word in text]), offsets)
    (layer,) = model.layers
    expected = model.output(torch.relu(layer(means)))
    assert_close(model(batch_of(*texts)), expected)


def test_a_bag_of_vectors_is_linear_in_the_mean_of_its_words():
    model = DAN(DANConfig(vocabulary_size=3, classes=2, embedding_size=2, layers=0)).eval()
    with torch.no_grad():
        model.embedding.weight.copy_(torch.tensor([[9.0, 9.0], [1.0, 0.0], [0.0, 3.0]]))
        model.output.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        model.output.bias.zero_()
    # The word 0 fills up the second text and is never heard: (1, 0), (0, 3), (0, 3) have the mean
    # (1/3, 2).
    logits = model(batch_of([1, 2, 2], [1, 2]))
    assert_close(logits, torch.tensor([[1 / 3, 2.0], [0.5, 1.5]]))


def test_the_order_of_words_does_not_matter():
    model = DAN(DANConfig(**SIZES)).eval()
    assert_close(model(batch_of([1, 2, 3])), model(batch_of([3, 1, 2])))


def test_a_text_without_words_reads_zeros():
    model = DAN(DANConfig(**SIZES, layers=0)).eval()
    empty = LabelledTexts(torch.zeros(1, 2).long(), torch.zeros(1, 2).bool(), torch.zeros(1).long())
    assert_close(model(empty), model.output.bias.unsqueeze(0))


def test_word_dropout_leaves_out_its_share_of_words_and_never_all():
    torch.manual_seed(1)
    mask = torch.ones(20_000, 5, dtype=torch.bool)
    mask[:, 3:] = False
    left = WordDropout(0.7)(mask)
    assert not left[:, 3:].any()
    assert left.any(dim=1).all()
    # All three are lost with probability .343, and then all come back: .3 + .343 of each.
    assert float(left[:, :3].float().mean()) == pytest.approx(0.3 + 0.343, abs=0.01)
    assert torch.equal(WordDropout(0.7).eval()(mask), mask)


def test_given_vectors_can_be_kept_as_they_are():
    model = DAN(DANConfig(**SIZES, train_vectors=False))
    model(batch_of([1, 2])).sum().backward()
    assert model.embedding.weight.grad is None
    assert model.output.weight.grad is not None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": -1}, r"layers \(-1\) must be at least 0"),
        ({"word_dropout": 1.0}, r"word_dropout \(1.0\) must be at least 0 and below 1"),
        ({"activation": "gelu"}, r"activation \('gelu'\) must be one of relu, tanh"),
        ({"init_range": 0.0}, r"init_range \(0.0\) must be above 0"),
    ],
)
def test_a_config_refuses_what_cannot_work(settings, message):
    with pytest.raises(ValueError, match=message):
        DANConfig(**SIZES, **settings)
