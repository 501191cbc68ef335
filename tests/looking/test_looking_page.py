import base64
import hashlib
import json
import re
import time
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from regard.attention import Label, Look
from regard.looking import draw_look
from regard.looking.page import render_page, render_plain_page
from regard.looking.views import make_view


class Reader(HTMLParser):
    """The tags of a page, with what stands inside its scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inside = [], {"script": [], "style": []}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        tag = self.tags[-1][0] if self.tags else ""
        if tag in self.inside and self.lasttag == tag and self.cdata_elem == tag:
            self.inside[tag].append(data)


def written(*looks):
    return render_page([make_view(look) for look in looks])


def data_of(text):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1))


def test_nothing_is_loaded_from_anywhere(heads, large):
    text = written(heads, large)
    assert set(re.findall(r"https?://[^\s\"'<>);]+", text)) == {"http://www.w3.org/2000/svg"}
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {
        "#look-0-hatch",
        "#look-1-hatch",
        "#large-hatch",
        '"',  # in the script, which asks whether a fill starts with url(
    }
    assert "@import" not in text
    for tag, attributes in Reader(text).tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert "src" not in attributes
        assert attributes.get("href", "data:").startswith("data:")


def test_hostile_tokens_make_no_tags(hostile, small):
    tame, wild = Reader(written(small)), Reader(written(hostile))
    assert {tag for tag, _ in wild.tags} <= {tag for tag, _ in tame.tags}
    assert len([tag for tag, _ in wild.tags if tag == "script"]) == 2
    assert not [name for _, attributes in wild.tags for name in attributes if name[:2] == "on"]
    assert written(hostile).encode()  # halves of characters too can be written


def test_the_policy_admits_our_script_and_style_alone(hostile):
    reader = Reader(written(hostile))
    (policy,) = [a["content"] for tag, a in reader.tags if tag == "meta" and "http-equiv" in a]

    def digest(parts):
        return base64.b64encode(hashlib.sha256("".join(parts).encode()).digest()).decode()

    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest(reader.inside['script'][1:])}'"
    assert rules["style-src"] == f"'sha256-{digest(reader.inside['style'])}'"
    assert rules["img-src"] == "data:"
    assert "unsafe" not in policy


def test_no_element_has_a_style_of_its_own_which_the_policy_would_forbid(heads):
    assert not [tag for tag, attributes in Reader(written(heads)).tags if "style" in attributes]


def test_the_page_holds_the_very_weights(heads):
    (data,) = data_of(written(heads))
    numbers = np.frombuffer(base64.b64decode(data["weights"]), "<f4").reshape(3, 5, 7)
    assert np.array_equal(numbers, heads.weights.numpy())
    hidden = np.unpackbits(np.frombuffer(base64.b64decode(data["hidden"]), np.uint8))[: 3 * 5 * 7]
    assert np.array_equal(hidden.reshape(3, 5, 7), np.arange(7) == np.full((3, 5, 1), 6))


def test_the_page_keeps_the_places_in_the_raw_text(small):
    (data,) = data_of(written(small))
    assert data["keys"] == [["x", 0, 1, 0], ["y", 2, 3, 0], ["z", 4, 5, 0]]
    assert [text["text"] for text in data["texts"]] == ["a b", "x y z"]


def test_a_text_both_sides_share_is_shown_once():
    tokens = [Label("a", 0, 1), Label("b", 2, 3)]
    look = Look.of_weights(
        torch.eye(2), queries=tokens, keys=tokens, query_text="a b", key_text="a b"
    )
    (data,) = data_of(written(look))
    assert [text["sides"] for text in data["texts"]] == [["query", "key"]]


def test_a_thousand_tokens_are_quick_and_light():
    """Random numbers: no compression helps, so no map of this size makes a larger page."""
    tokens = [f"token{at}" for at in range(1_000)]
    weights = torch.rand(1_000, 1_000, generator=torch.Generator().manual_seed(3))
    look = Look.of_weights(weights, queries=tokens, keys=tokens)
    start = time.process_time()
    text = written(look)
    assert time.process_time() - start < 2
    assert len(text.encode()) < 5_000_000
    (data,) = data_of(text)
    steps = np.frombuffer(base64.b64decode(data["weights"]), "<u2").reshape(1_000, 1_000)
    told = data["low"] + steps / 65_535 * (data["high"] - data["low"])
    assert np.abs(told - weights.numpy()).max() < 1e-5


def test_a_page_of_many_weights_holds_those_beyond_the_scale_too():
    """Above 250,000 weights are kept in steps, between the least and the greatest of them all."""
    mask = torch.ones(600, 600, dtype=torch.bool).tril()
    weights = mask / mask.sum(dim=-1, keepdim=True)
    tokens = [f"token{at}" for at in range(600)]
    text = written(Look.of_weights(weights, queries=tokens, keys=tokens, mask=mask))
    assert ">≥ 0.0167<" in text  # from the row that sees 60 keys, a tenth of all, on
    (data,) = data_of(text)
    steps = np.frombuffer(base64.b64decode(data["weights"]), "<u2").reshape(600, 600)
    told = data["low"] + steps / 65_535 * (data["high"] - data["low"])
    assert np.abs(told - weights.numpy()).max() < 1e-5


def test_a_drawing_alone_has_the_same_policy_and_no_data(small):
    text = render_plain_page(draw_look(small))
    assert data_of(text) == []
    assert "Content-Security-Policy" in text


@pytest.mark.parametrize("token", ["</script>", "<!--<script>", "\u2028", "&lt;"])
def test_data_cannot_end_its_own_element(token):
    text = written(Look.of_weights(torch.eye(1), queries=[token], keys=["x"], path=token))
    assert len(re.findall(r"</script", text, re.IGNORECASE)) == 2
    assert text.count("<!--") == 0
