"""The hierarchical attention network against plain torch, and what padding must not change."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention import sides_of, watch
from regard.data.batches import LabelledDocuments
from regard.data.documents import DocumentIds
from regard.models.han import HAN, POOLINGS, HANConfig, Level, group_by_length

SIZES = {"vocabulary_size": 13, "classes": 3, "embedding_size": 5, "hidden_size": 4}
DOCUMENTS = [[[1, 2, 3, 4, 5], [6]], [[7]], [[8, 9], [3, 3, 3], [1, 2]]]


def batch_of(*documents, pad=0):
    ids, mask = DocumentIds(documents).cube(range(len(documents)), pad)
    return LabelledDocuments(ids, mask, torch.zeros(len(documents), dtype=torch.long))


def model_of(**settings):
    torch.manual_seed(3)
    return HAN(HANConfig(**SIZES, attention_size=7, **settings)).eval()


def in_plain_torch(model, document):
    """One document, sentence by sentence, by nn.GRU and the formulas of the paper."""

    def read(level, vectors):
        gru = nn.GRU(vectors.shape[-1], 4, batch_first=True, bidirectional=True)
        ours = [weight for cell in level.encoder.cells for weight in cell.parameters()]
        for theirs, weight in zip(gru.parameters(), ours, strict=True):
            theirs.data = weight.data
        h = gru(vectors.unsqueeze(0))[0][0]  # (position, size)
        u = torch.tanh(level.projection(h))
        return F.softmax(u @ level.context, dim=0) @ h

    sentences = [read(model.words, model.embedding.weight[sentence]) for sentence in document]
    return model.output(read(model.sentences, torch.stack(sentences)))


def test_it_agrees_with_plain_torch_document_by_document():
    model = model_of()
    expected = torch.stack([in_plain_torch(model, document) for document in DOCUMENTS])
    assert_close(model(batch_of(*DOCUMENTS)), expected)


def test_pooling_by_hand():
    # Two words with states (1, 0) and (0, 1) and a third that is padding; W = ln 3 · I, u = (1, 0):
    # the scores are tanh(ln 3) = 0.8 and 0, so the weights are e^0.8 : 1.
    config = HANConfig(vocabulary_size=2, classes=2, hidden_size=1, attention_size=2)
    level = Level(config, 2, ("sentence", "words"))
    with torch.no_grad():
        level.projection.weight.copy_(math.log(3) * torch.eye(2))
        level.projection.bias.zero_()
        level.context.copy_(torch.tensor([1.0, 0.0]))
    states = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [50.0, 50.0]]])
    found = level.attend(states, torch.tensor([[True, True, False]]))
    share = math.exp(0.8) / (math.exp(0.8) + 1)
    assert_close(found, torch.tensor([[share, 1 - share]]))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_batch_of_three_is_three_batches_of_one(pooling):
    model = model_of(pooling=pooling)
    together = model(batch_of(*DOCUMENTS))
    alone = torch.cat([model(batch_of(document)) for document in DOCUMENTS])
    assert_close(together, alone)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_what_stands_in_the_padding_does_not_matter(pooling):
    model = model_of(pooling=pooling)
    zeros, tens = batch_of(*DOCUMENTS), batch_of(*DOCUMENTS, pad=10)
    assert not torch.equal(zeros.ids, tens.ids)
    assert torch.equal(model(zeros), model(tens))


def test_padding_has_no_weight_at_either_level():
    model = model_of()
    batch = batch_of(*DOCUMENTS)
    with watch(model) as seen:
        model(batch)
    (words,), (sentences,) = seen["words.attention"], seen["sentences.attention"]
    real = batch.sentence_mask
    for weights, mask in ((words.weights, batch.mask[real]), (sentences.weights, real)):
        assert weights.squeeze(1)[~mask].eq(0).all()
        assert_close(weights.sum(dim=-1), torch.ones(len(mask), 1))
    declared = {"words.attention": ("sentence", "words")}
    assert sides_of(model) == {**declared, "sentences.attention": ("document", "sentences")}


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_document_without_sentences_is_zeros_and_never_nan(pooling):
    model = model_of(pooling=pooling).train()  # in training sentences go another way
    batch = batch_of([], *DOCUMENTS)
    logits = model(batch)
    assert_close(logits[0], model.output.bias)
    assert_close(model.eval()(batch), logits)
    logits.sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all(), name
    assert model.train()(batch_of([], [])).isfinite().all()


def test_training_reads_sentences_in_groups_and_says_the_same():
    model = model_of()
    documents = [[[1] * n, [2, 3], [4] * (3 * n)] for n in (1, 5, 12)]
    expected = model(batch_of(*documents))
    assert_close(model.train()(batch_of(*documents)), expected)  # there is no dropout to differ


def test_groups_hold_every_row_once_and_like_lengths():
    lengths = torch.tensor([40, 1, 7, 90, 2, 8, 41, 7])
    groups = group_by_length(lengths)
    assert sorted(torch.cat(groups).tolist()) == list(range(8))
    assert [lengths[group].tolist() for group in groups] == [[1, 2], [7, 7, 8], [40, 41], [90]]
    assert group_by_length(lengths[:0]) == []


def test_a_word_of_one_sentence_is_not_heard_in_another_row():
    model = model_of()
    changed = [DOCUMENTS[0], [[12]], DOCUMENTS[2]]
    before, after = model(batch_of(*DOCUMENTS)), model(batch_of(*changed))
    assert_close(before[[0, 2]], after[[0, 2]])
    assert (before[1] - after[1]).abs().max() > 1e-4


def test_only_attention_has_a_query_to_learn():
    with watch(model_of(pooling="average")) as seen:
        assert not seen
    names = {name for name, _ in model_of(pooling="last").named_parameters()}
    assert not any("context" in name or "projection" in name for name in names)


def test_word_dropout_is_of_whole_words():
    model = model_of(word_dropout=0.5).train()
    heard = []
    model.words.encoder.register_forward_pre_hook(lambda _, inputs: heard.append(inputs[0]))
    model(batch_of([[1, 2, 3, 4, 5, 6, 7, 8] * 20]))
    (vectors,) = heard
    silent = vectors.eq(0).all(dim=-1)
    assert 40 < int(silent.sum()) < 120
    expected = 2 * model.embedding.weight[[1, 2, 3, 4, 5, 6, 7, 8] * 20]
    assert_close(vectors[0][~silent[0]], expected[~silent[0]])


def test_settings_that_cannot_work_are_refused():
    config = HANConfig(**SIZES)
    with pytest.raises(ValueError, match=r"pooling \('mean'\) must be one of attention, average"):
        replace(config, pooling="mean")
    with pytest.raises(ValueError, match=r"word_dropout \(1\.0\) must be at least 0 and below 1"):
        replace(config, word_dropout=1.0)
