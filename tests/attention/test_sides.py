"""Labels, kind and texts of a look follow from what its attention looks from and at."""

from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import (
    Attention,
    Causal,
    Dot,
    KeyValueCache,
    Look,
    MultiHead,
    Side,
    StrictlyCausal,
    Window,
    kind_of,
    make_looks,
    sides_of,
    watch,
)

KINDS = {
    ("words", "words"): "self",
    ("source", "source"): "self",
    ("words", "earlier words"): "self",
    ("target", "source"): "cross",
    ("words", "image"): "image",
    ("words", "memory"): "memory",
    ("words", "senses"): "senses",
    ("words", "senses of words"): "senses",
    ("class", "words"): "pool",
    ("document", "sentences"): "pool",
    None: "other",
}


class Captioner(nn.Module):
    """Four attentions: one of each sort, and one of which nobody said anything."""

    def __init__(self):
        super().__init__()
        self.self_attention = MultiHead(10, 2, sides=("words", "words"))
        self.cross = Attention(Dot(), sides=("words", "image"))
        self.pool = Attention(Dot(), sides=("class", "words"))
        self.unknown = Attention(Dot())

    def forward(self, words, image):
        words = self.self_attention(words, mask=Causal())
        self.cross(words, image, image)
        self.pool(words[:, :1], words, words)
        self.unknown(words[:, :2], image, image)


def seen_by_captioner():
    model = Captioner()
    with watch(model) as seen:
        model(torch.randn(1, 3, 10), torch.randn(1, 6, 10))
    return model, seen


GIVEN = {
    "words": Side(["a", "b", "c"], "a b c"),
    "image": Side([f"cell {n}" for n in range(6)], grid=(2, 3)),
    "class": Side(["good"]),
}


@pytest.mark.parametrize("sides", KINDS)
def test_the_kind_follows_from_the_sides(sides):
    assert kind_of(sides) == KINDS[sides]


def test_sides_are_known_by_path_also_those_of_heads():
    assert sides_of(Captioner()) == {
        "self_attention": ("words", "words"),
        "cross": ("words", "image"),
        "pool": ("class", "words"),
        "unknown": None,
    }


def test_every_attention_is_labelled_and_none_is_lost():
    model, seen = seen_by_captioner()
    looks = {look.path: look for look in make_looks(model, seen, GIVEN)}
    told = {
        path: (look.kind, "".join(q.text for q in look.queries), len(look.keys), look.grid)
        for path, look in looks.items()
    }
    assert told == {
        "self_attention": ("self", "abc", 3, None),
        "cross": ("image", "abc", 6, (2, 3)),
        "pool": ("pool", "good", 3, None),
        "unknown": ("other", "01", 6, None),
    }
    assert looks["cross"].keys[4].text == "cell 4"
    assert [key.text for key in looks["unknown"].keys] == list("012345")
    assert (looks["pool"].query_text, looks["pool"].key_text) == (None, "a b c")
    for path, look in looks.items():
        assert_close(look.weights.squeeze(), seen[path][0].weights.detach().squeeze())


def test_a_side_that_nobody_gives_has_numbers():
    model, seen = seen_by_captioner()
    without = {name: side for name, side in GIVEN.items() if name != "image"}
    look = next(x for x in make_looks(model, seen, without) if x.path == "cross")
    assert [key.text for key in look.keys] == list("012345")
    assert [query.text for query in look.queries] == ["a", "b", "c"]


def test_sizes_that_do_not_fit_are_refused_with_path_sides_and_sizes():
    model, seen = seen_by_captioner()
    wrong = {**GIVEN, "image": Side(["x"] * 5)}
    with pytest.raises(
        ValueError,
        match=r"cross: 3 queries × 6 keys do not fit its sides \(words × image\), which have 3 × 5",
    ):
        make_looks(model, seen, wrong)


def test_calls_over_all_queries_are_a_look_each():
    model = Attention(Dot(), sides=("words", "words"))
    with watch(model) as seen:
        for _ in range(2):
            x = torch.randn(1, 3, 5)
            model(x, x, x)
    looks = make_looks(model, seen, GIVEN)
    assert len(looks) == 2
    for look, call in zip(looks, seen["attention"], strict=True):
        assert_close(look.weights, call.weights)


def test_steps_over_a_cache_are_one_look_with_the_future_hatched():
    model = Attention(Dot(), sides=("words", "words"))
    x = torch.randn(1, 3, 5)
    whole = model(x, x, x, Causal())
    with watch(model) as seen:
        model(x[:, :1], x[:, :1], x[:, :1], Causal())
        for end in (2, 3):
            model(x[:, end - 1 : end], x[:, :end], x[:, :end])
    (look,) = make_looks(model, seen, GIVEN)
    assert_close(look.weights, whole.weights)
    assert torch.equal(look.mask, torch.ones(1, 3, 3, dtype=torch.bool).tril())
    assert torch.equal(look.mask_of(rows=[2, 0]), look.mask[:, [2, 0]])
    assert_close(look.weights_of(rows=[2, 0]), look.weights[:, [2, 0]])
    assert look.steps == (0, 1, 2)


def test_steps_over_a_window_stand_at_their_own_keys():
    """A prompt that was read without looking has no rows, and the window forgets its beginning."""
    model = Attention(Dot(), sides=("words", "words"))
    x = torch.randn(1, 5, 7)
    mask = StrictlyCausal() & Window(2)
    whole = model(x, x, x, mask)
    with watch(model) as seen:
        for end in (4, 5):  # the words before are only remembered
            model(x[:, end - 1 : end], x[:, end - 3 : end], x[:, end - 3 : end], mask)
    (look,) = make_looks(model, seen, {"words": Side(list("abcde"))})
    assert [query.text for query in look.queries] == ["d", "e"]
    assert [key.text for key in look.keys] == list("abcde")
    assert_close(look.weights, whole.weights[:, 3:])
    expected = [[0, 1, 1, 0, 0], [0, 0, 1, 1, 0]]
    assert look.mask.long().tolist() == [expected]


def test_a_decoder_says_one_word_where_it_has_read_another():
    model = Attention(Dot(), sides=("target", "target"))
    x = torch.randn(1, 3, 5)
    with watch(model) as seen:
        model(x, x, x, Causal())
    side = Side(["the", "dog", "</s>"], read=["<s>", "the", "dog"])
    (look,) = make_looks(model, seen, {"target": side})
    assert [query.text for query in look.queries] == ["the", "dog", "</s>"]
    assert [key.text for key in look.keys] == ["<s>", "the", "dog"]


def read_in_steps(model, x, ends):
    cache = KeyValueCache()
    with watch(model) as seen, torch.no_grad():
        for begin, end in pairwise([0, *ends]):
            model(x[:, begin:end], mask=Causal(), cache=cache)
    return seen


def test_steps_over_a_cache_can_be_taken_for_one_causal_attention():
    model = MultiHead(10, 2, sides=("words", "words"))
    x = torch.randn(1, 5, 10)
    seen = read_in_steps(model, x, (2, 3, 4, 5))
    (look,) = make_looks(model, seen, {"words": Side(list("abcde"))})
    with watch(model) as whole, torch.no_grad():
        model(x, mask=Causal())
    assert isinstance(look.attended.mask, Causal)
    assert_close(look.attended.weights, whole["attention"][0].weights)
    assert_close(look.weights, whole["attention"][0].weights[0])


def test_steps_that_do_not_go_on_from_each_other_are_not_taken_for_one():
    model = MultiHead(10, 2, sides=("words", "words"))
    other = read_in_steps(model, torch.randn(1, 5, 10), (2,))["attention"]
    calls = [*other, *read_in_steps(model, torch.randn(1, 5, 10), (2, 5))["attention"][1:]]
    look = Look.of_calls(calls, queries=list("abcde"), keys=list("abcde"))
    assert look.attended is None
    assert_close(look.weights[:, 2:], calls[1].weights[0])
