"""Looks whose numbers can be checked by hand, and some that mean harm."""

import pytest
import torch

from regard.attention import Label, Look

HOSTILE = (
    "<script>window.harmed=1</script>",
    "</script><script>window.harmed=1</script>",
    "<img src=x onerror=window.harmed=1>",
    "\"&'",
    "a\nb",
    "\x00",
    "$x_1$",
    "\u202eevil",
    "\ud800",
    "",
    "Donaudampfschifffahrtsgesellschaftskapitän",
)


def labelled(text: str) -> list[Label]:
    """The words of a text with their places in it."""
    labels, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        labels.append(Label(word, start, at))
    return labels


@pytest.fixture
def small() -> Look:
    """Two queries over three keys. Query «a» may not see «z»; query «b» sees «x» and gives it 0."""
    return Look.of_weights(
        torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.4, 0.6]]),
        path="decoder.attention",
        kind="cross",
        queries=labelled("a b"),
        keys=labelled("x y z"),
        mask=torch.tensor([[True, True, False], [True, True, True]]),
        query_text="a b",
        key_text="x y z",
    )


@pytest.fixture
def heads() -> Look:
    """Three heads, five queries, seven keys; the last key hidden from all."""
    weights = torch.rand(3, 5, 7, generator=torch.Generator().manual_seed(1))
    mask = torch.ones(1, 7, dtype=torch.bool)
    mask[:, -1] = False
    return Look.of_weights(
        weights * mask,
        path="layers.3.attention",
        queries=[f"q{at}" for at in range(5)],
        keys=[f"key{at}" for at in range(7)],
        mask=mask,
    )


@pytest.fixture
def causal() -> Look:
    """Four words, each looking at itself and those before it. The first has no choice."""
    weights = [[1, 0, 0, 0], [0.45, 0.55, 0, 0], [0.6, 0.3, 0.1, 0], [0.15, 0.2, 0.25, 0.4]]
    return Look.of_weights(
        torch.tensor(weights),
        queries=labelled("the dog runs home"),
        keys=labelled("the dog runs home"),
        mask=torch.ones(4, 4, dtype=torch.bool).tril(),
    )


@pytest.fixture
def hostile() -> Look:
    size = len(HOSTILE)
    return Look.of_weights(
        torch.full((size, size), 1 / size),
        path="<b>bold</b>.&attention",
        queries=[Label(token, 0, 3) for token in HOSTILE],
        keys=list(HOSTILE),
        query_text="</p><script>window.harmed=1</script>\ud800",
    )


@pytest.fixture
def persian() -> Look:
    text = "دختر کوچولو از خانه‌ی چوبی بالا می‌رود"
    words = labelled(text)
    return Look.of_weights(
        torch.eye(7, 3),
        kind="cross",
        queries=words,
        keys=["girl", "日本語", "climbs"],
        query_text=text,
    )


@pytest.fixture
def large() -> Look:
    """More cells than are drawn one by one, half of them hidden."""
    size = 211
    weights = torch.rand(size, size, generator=torch.Generator().manual_seed(2)).tril()
    tokens = [f"t{at}" for at in range(size)]
    mask = torch.ones(size, size, dtype=torch.bool).tril()
    return Look.of_weights(weights, queries=tokens, keys=tokens, mask=mask)
