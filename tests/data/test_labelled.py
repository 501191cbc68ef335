"""Texts with labels and word vectors, from files."""

import gzip

import pytest
import torch

from regard.data.buckets import LabelledTextsFeed
from regard.data.corpora import read_labelled
from regard.data.splits import hold_out
from regard.data.vectors import read_vectors


def test_a_line_of_text_is_a_label_a_blank_and_a_text(tmp_path):
    with gzip.open(tmp_path / "a.txt.gz", "wt") as file:
        file.write("1 a fine film .\n\n0 dull\n")
    assert list(read_labelled(tmp_path / "a.txt.gz")) == [("a fine film .", "1"), ("dull", "0")]


@pytest.mark.parametrize(
    ("name", "format", "columns", "content"),
    [
        ("a.tsv", "tsv", None, "fine\tgood\ndull\tbad\n"),
        ("a.tsv", "tsv", [2, 0], "good\tx\tfine\nbad\ty\tdull\n"),
        ("a.csv", "csv", ["text", "label"], "label,text\ngood,fine\nbad,dull\n"),
        (
            "a.jsonl",
            "jsonl",
            None,
            '{"text": "fine", "label": "good"}\n{"text": "dull", "label": "bad"}\n',
        ),
    ],
)
def test_columns_name_the_text_then_the_label(name, format, columns, content, tmp_path):
    (tmp_path / name).write_text(content)
    found = list(read_labelled(tmp_path / name, format, columns))
    assert found == [("fine", "good"), ("dull", "bad")]


def test_three_columns_are_two_texts_and_their_label(tmp_path):
    (tmp_path / "pairs.csv").write_text('answer,said,of\nyes,"A dog, a cat",pets\nno,Rain,\n')
    found = list(read_labelled(tmp_path / "pairs.csv", "csv", ["said", "of", "answer"]))
    assert found == [("A dog, a cat\tpets", "yes"), ("Rain\t", "no")]


def test_a_tab_within_one_of_two_texts_does_not_part_them(tmp_path):
    (tmp_path / "pairs.jsonl").write_text('{"a": "one\\ttwo", "b": "three", "of": "yes"}\n')
    assert list(read_labelled(tmp_path / "pairs.jsonl", "jsonl", ["a", "b", "of"])) == [
        ("one two\tthree", "yes")
    ]


@pytest.mark.parametrize(
    ("content", "format", "columns", "message"),
    [
        (
            "1 fine\n0\n",
            "text",
            None,
            r"line 2: a label, a blank and a text were expected, not '0'",
        ),
        ("1 fine\n", "text", [0, 1], r"columns \(\[0, 1\]\): format 'text' has no columns"),
        ("fine\tgood\n", "tsv", [0], r"columns \(\[0\]\) must be two, text and label, or"),
        ("fine\n", "tsv", None, r"line 1: there is no column 1"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(content, format, columns, message, tmp_path):
    (tmp_path / "a").write_text(content)
    with pytest.raises(ValueError, match=message):
        list(read_labelled(tmp_path / "a", format, columns))


def test_a_feed_of_labelled_texts_has_each_once_in_an_order_of_its_seed():
    texts = [[n] * (1 + n % 5) for n in range(1, 31)]
    feed = LabelledTextsFeed(texts, list(range(30)), tokens=12, seed=3)
    orders = []
    for epoch in (0, 1, 0):
        batches = [feed.batch(epoch, index) for index in range(feed.batches(epoch))]
        orders.append([int(label) for batch in batches for label in batch.labels])
        for batch in batches:
            for ids, mask, label in zip(batch.ids, batch.mask, batch.labels, strict=True):
                assert ids[mask].tolist() == texts[int(label)]
    assert sorted(orders[0]) == list(range(30))
    assert orders[0] == orders[2] != orders[1]
    assert feed.batch(0, 0).loss_mask.all()


def test_held_out_examples_are_the_last():
    assert hold_out([1, 2, 3, 4, 5], 0.4) == ([1, 2, 3], [4, 5])
    assert hold_out("abcd", 0.0) == ("abcd", "")


def test_vectors_fill_the_rows_of_the_words_they_know(tmp_path):
    (tmp_path / "v.txt").write_text("3 2\nfilm 1.5 -2\nunseen 7 7\na 0.25 1e-1\n")
    table = torch.full((3, 2), 9.0)
    assert read_vectors(tmp_path / "v.txt", ["a", "<pad>", "film"], table) == 2
    assert torch.equal(table, torch.tensor([[0.25, 0.1], [9.0, 9.0], [1.5, -2.0]]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 1 2 3\n", r"line 1: a word and 2 numbers were expected .*, not 3 numbers"),
        ("a 1 2\nb 1 x\n", r"line 2: could not convert string to float: 'x'"),
        ("a 1 nan\n", r"line 1: a number is infinite or none"),
        ("c 1 2\n", r"knows none of the 2 words"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(content, message, tmp_path):
    (tmp_path / "v.txt").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_vectors(tmp_path / "v.txt", ["a", "b"], torch.zeros(2, 2))
