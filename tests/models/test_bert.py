"""What BERT does beside agreeing with others (tests/agreement/test_bert_agreement.py)."""

import pytest
import torch
from torch.testing import assert_close

from regard.attention import watch
from regard.data.batches import MarkedTexts, MaskedTexts
from regard.models.bert import Bert, BertClassifier, BertConfig

SMALL = {"vocabulary_size": 23, "model_size": 24, "heads": 2, "layers": 2, "longest": 13}


def texts(*lengths):
    ids = torch.randint(23, (len(lengths), max(lengths)))
    return MaskedTexts(ids, torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1))


def test_every_word_sees_both_sides_and_no_padding():
    model = Bert(BertConfig(**SMALL)).eval()
    batch = texts(11, 7)
    with watch(model) as seen:
        model(batch)
    weights = seen["layers.1.attention"][0].weights
    assert (weights[0] > 0).all()
    assert (weights[1, :, :7, :7] > 0).all() and (weights[1, :, :7, 7:] == 0).all()


@torch.no_grad()
def test_what_stands_in_the_padding_does_not_matter():
    model = Bert(BertConfig(**SMALL)).eval()
    batch = texts(11, 7)
    other = MaskedTexts(batch.ids.masked_fill(~batch.mask, 5), batch.mask)
    assert_close(model(batch)[batch.mask], model(other)[batch.mask])
    assert_close(model.next_logits(model.features(batch)), model.next_logits(model.features(other)))


def test_every_parameter_learns():
    model = Bert(BertConfig(**SMALL))
    batch = texts(11, 7)
    batch = MaskedTexts(batch.ids, batch.mask, batch.ids % 2)
    told = model.next_logits(model.features(batch)).logsumexp(dim=-1).sum()
    (model(batch).logsumexp(dim=-1).sum() + told).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.abs().max() > 0, name


def test_guided_heads_begin_by_looking_at_their_like_and_at_neighbours():
    torch.manual_seed(1)
    sizes = {**SMALL, "model_size": 192, "heads": 6, "init_std": 0.05}
    ids = torch.tensor([[1, 5, 6, 7, 2, 8, 6, 9, 2]])
    model = Bert(BertConfig(**sizes, guided=True)).eval()
    with watch(model) as seen:
        model(MaskedTexts(ids, torch.ones_like(ids).bool()))
    looks = seen["layers.0.attention"][0].weights[0].detach()  # (head, query, key)
    # The third word comes again as the seventh: but for itself, nothing is looked at more.
    alike = looks[:2, 2].mean(dim=0)
    assert alike.argsort(descending=True)[:2].tolist() == [2, 6]
    for head, offset in ((2, 1), (3, -1)):
        assert looks[head].diagonal(offset).mean() > 0.4


def test_guided_heads_need_room():
    with pytest.raises(ValueError, match=r"guided \(True\) needs 4 heads or more \(2\)"):
        BertConfig(**{**SMALL, "model_size": 128, "heads": 2}, guided=True)


def test_parts_that_are_left_out_are_not_there_and_say_so():
    model = Bert(BertConfig(**SMALL, masked_words=False, next_sentence=False, pooler=False))
    names = {name.partition(".")[0] for name, _ in model.named_parameters()}
    assert names == {"embedding", "segments", "positions", "norm", "layers"}
    batch = texts(5)
    with pytest.raises(ValueError, match=r"masked_words \(False\)"):
        model(batch)
    with pytest.raises(ValueError, match=r"next_sentence \(False\)"):
        model.next_logits(model.features(batch))
    with pytest.raises(ValueError, match=r"pooler \(False\)"):
        model.pool(model.features(batch))


def test_a_classifier_needs_classes_and_reads_them_from_the_first_word():
    with pytest.raises(ValueError, match=r"a classifier needs classes \(None\)"):
        BertClassifier(BertConfig(**SMALL))
    model = BertClassifier(BertConfig(**SMALL, classes=3)).eval()
    batch = texts(11, 7)
    found = model(MarkedTexts(batch.ids, batch.mask, torch.zeros(2)))
    first = model.features(batch)[:, 0]
    expected = model.classifier(model.pooler.dense(first).tanh())
    assert_close(found, expected)


def test_a_text_beyond_the_last_position_is_refused_with_the_limit():
    with pytest.raises(ValueError, match=r"has 14 tokens, but this model has 13 positions"):
        Bert(BertConfig(**SMALL))(texts(14))
