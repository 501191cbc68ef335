"""Documents of sentences of words, padded along both."""

import torch

from regard.data.documents import DocumentIds, LabelledDocumentsFeed

DOCUMENTS = [[[5, 6, 7], [8]], [], [[9, 9], [4, 3, 2, 1], [6]]]


def test_documents_become_a_cube_with_words_and_sentences_at_the_front():
    ids, mask = DocumentIds(DOCUMENTS).cube([2, 1, 0], filler=0)
    assert ids.tolist() == [
        [[9, 9, 0, 0], [4, 3, 2, 1], [6, 0, 0, 0]],
        [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
        [[5, 6, 7, 0], [8, 0, 0, 0], [0, 0, 0, 0]],
    ]
    assert torch.equal(mask, ids > 0)


def test_a_feed_has_every_document_once_with_its_own_label():
    documents = [[[n] * (n % 4 + 1)] * (n % 3 + 1) for n in range(1, 30)]
    feed = LabelledDocumentsFeed(documents, list(range(1, 30)), tokens=20, seed=3)
    batches = [feed.batch(1, index) for index in range(feed.batches(1))]
    found = [int(label) for batch in batches for label in batch.labels]
    assert sorted(found) == list(range(1, 30))
    for batch in batches:
        assert (batch.ids[:, 0, 0] == batch.labels).all()
        assert batch.sentence_mask.sum(dim=1).tolist() == [int(n) % 3 + 1 for n in batch.labels]
        assert batch.tokens == sum((int(n) % 4 + 1) * (int(n) % 3 + 1) for n in batch.labels)
    assert torch.equal(feed.batch(1, 2).ids, feed.batch(1, 2).ids)
    assert feed.summary == "29 documents of 29 classes"


def test_documents_without_a_word_are_rows_of_padding():
    ids, mask = DocumentIds([[], []]).cube([0, 1], filler=0)
    assert ids.shape == mask.shape == (2, 0, 0)
