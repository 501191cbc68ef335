"""Looks stored as queries and keys: far smaller than their weights, and any tile as it was."""

import json
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

from regard.attention import (
    Additive,
    ALiBi,
    Attention,
    Causal,
    Dense,
    Dot,
    KeyValueCache,
    Look,
    MultiHead,
    Packed,
    Padding,
    Prefix,
    ScaledDot,
    Side,
    Softmax,
    Sparsemax,
    StrictlyCausal,
    Window,
    make_looks,
    watch,
)
from regard.looking import Looks

LONG, HEADS, SIZE = 4096, 12, 64


def vectors(queries=19, keys=23, heads=2, size=3):
    torch.manual_seed(7)
    return (torch.randn(1, heads, n, size) for n in (queries, keys, keys))


def looked_at(attended):
    queries, keys = attended.comparison.sizes
    return Look.of(
        attended, queries=[f"q{n}" for n in range(queries)], keys=[f"k{n}" for n in range(keys)]
    )


def reloaded(look, path, **options):
    Looks([look]).save(path, **options)
    return Looks.load(path)[0]


def stored(path):
    return json.loads(path.read_text())["looks"][0]["vectors"]


@pytest.fixture(scope="module")
def long():
    """Queries and keys of a long text as they are projected, and the look at them."""
    torch.manual_seed(0)
    queries, keys, values = (torch.randn(1, HEADS, LONG, n) for n in (SIZE, SIZE, 1))
    look = looked_at(Attention(ScaledDot())(2 * queries, keys, values, Causal()))
    return 2 * queries[0], keys[0], look


def expected_tile(queries, keys, head, rows, columns):
    """softmax(q kᵀ / √64) by hand, over what stands before each row."""
    scores = queries[head, rows] @ keys[head].T / 8.0
    for at, row in enumerate(range(*rows.indices(LONG))):
        scores[at, row + 1 :] = -torch.inf
    return scores.softmax(dim=-1)[:, columns]


@pytest.mark.parametrize(
    ("dtype", "megabytes", "tolerance"), [(torch.float32, 25.2, 1e-6), (torch.float16, 12.6, 2e-3)]
)
def test_a_look_of_4096_tokens_is_small_and_any_tile_of_it_is_right(
    long, tmp_path, dtype, megabytes, tolerance
):
    queries, keys, look = long
    again = reloaded(look, tmp_path / "x.json", dtype=dtype)
    size = (tmp_path / "x.safetensors").stat().st_size
    assert abs(size / 1e6 - megabytes) < 0.1  # the weights alone would be 805
    for head, first in ((3, 0), (7, 2000), (11, 4032)):
        rows, columns = slice(first, first + 64), slice(max(first - 100, 0), first + 28)
        tile = again.weights_of(heads=head, rows=rows, columns=columns)
        expected = expected_tile(queries, keys, head, rows, columns)
        assert_close(tile[0], expected, atol=tolerance, rtol=0)


DRAW = """
import resource, sys
from regard.looking import Looks
looks = Looks.load(sys.argv[1])
Looks.load(sys.argv[3]).save(sys.argv[2])  # so that the code itself is in memory
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
looks.save(sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_a_look_of_4096_tokens_is_drawn_without_its_weights_in_memory(long, tmp_path, ending):
    Looks([long[2]]).save(tmp_path / "x.json")
    Looks([looked_at(Attention(Dot())(*vectors(), Causal()))]).save(tmp_path / "small.json")
    files = [tmp_path / name for name in ("x.json", f"x.{ending}", "small.json")]
    command = [sys.executable, "-c", DRAW, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 400_000  # kilobytes; its weights would be 805,000
    assert "each square is the largest of" in (tmp_path / f"x.{ending}").read_text()


MASKS = {
    "none": None,
    "causal": Causal(),
    "strictly causal": StrictlyCausal(),
    "window": Window(3, 1),
    "padding": Padding(torch.tensor([17])),
    "left padding": Causal() & Padding(torch.tensor([17]), side="left"),
    "prefix": Causal() | Prefix(torch.tensor([5])),
    "packed": Causal() & Packed(torch.arange(23).unsqueeze(0) // 7),
    "dense": Dense(torch.rand(1, 2, 19, 23, generator=torch.Generator().manual_seed(1)) > 0.4),
    "dense and causal": Causal() & (torch.arange(23).expand(1, 19, 23) % 3 > 0),
}


@pytest.mark.parametrize("name", MASKS)
def test_every_mask_comes_back(name, tmp_path):
    attended = Attention(Dot())(*vectors(), MASKS[name])
    look = looked_at(attended)
    again = reloaded(look, tmp_path / "x.json")
    assert stored(tmp_path / "x.json") is not None
    assert again == look
    assert_close(again.weights, attended.weights[0])
    assert_close(again.weights_of(heads=1, rows=[4, 2]), attended.weights[0, 1:, [4, 2]])
    if MASKS[name] is None:
        assert again.mask is None
    else:
        whole = attended.visible().expand(1, 2, 19, 23)[0]
        assert torch.equal(again.mask.expand(2, 19, 23), whole)


def test_scale_temperature_base_and_bias_come_back(tmp_path):
    attention = Attention(ScaledDot(), Softmax(temperature=0.7, base=3.0))
    attended = attention(*vectors(), bias=ALiBi(2)(19, 23))
    again = reloaded(looked_at(attended), tmp_path / "x.json")
    told = stored(tmp_path / "x.json")
    assert (told["temperature"], told["base"], told["bias"]) == (0.7, 3.0, 23)
    assert_close(again.weights, attended.weights[0])
    assert_close(again.weights_of(rows=[3]), attended.weights[0][:, 3:4])


def test_one_head_and_no_batch_come_back(tmp_path):
    queries, keys, values = (x[0, 0] for x in vectors())
    for place, leading in ((0, ()), (1, (1,))):
        shaped = (x.reshape(*leading, *x.shape) for x in (queries, keys, values))
        attended = Attention(Dot())(*shaped, Causal())
        again = reloaded(looked_at(attended), tmp_path / f"{place}.json")
        assert stored(tmp_path / f"{place}.json") is not None
        assert_close(again.weights[0], attended.weights.reshape(19, 23))


def test_what_is_smaller_or_follows_otherwise_is_stored_as_weights(tmp_path):
    few = Attention(Dot())(*vectors(queries=2, keys=3))
    other = Attention(Dot(), Sparsemax())(*vectors())
    queries, keys, values = (x[:, 0] for x in vectors())
    tanh = Attention(Additive(3, 3, 5))(queries, keys, values)
    for place, attended in enumerate((few, other, tanh)):
        look = looked_at(attended)
        again = reloaded(look, tmp_path / f"{place}.json")
        assert stored(tmp_path / f"{place}.json") is None
        assert torch.equal(again.weights, look.weights)


def test_a_look_from_heads_is_stored_with_its_rotated_vectors(tmp_path):
    model = MultiHead(12, 2, key_value_heads=1)
    with watch(model) as seen:
        model(torch.randn(1, 40, 12), mask=Causal())
    attended = seen["attention"][0]
    again = reloaded(looked_at(attended), tmp_path / "x.json")
    assert stored(tmp_path / "x.json")["size"] == 6
    assert_close(again.weights, attended.weights[0].detach())


def test_text_generated_over_a_cache_is_stored_as_if_it_were_read_at_once(tmp_path):
    model, cache = MultiHead(12, 2, sides=("words", "words")), KeyValueCache()
    x = torch.randn(1, 40, 12)
    with watch(model) as seen, torch.no_grad():
        model(x[:, :7], mask=Causal(), cache=cache)
        for end in range(8, 41):
            model(x[:, end - 1 : end], mask=Causal(), cache=cache)
    (look,) = make_looks(model, seen, {"words": Side([f"w{n}" for n in range(40)])})
    again = reloaded(look, tmp_path / "x.json")
    assert stored(tmp_path / "x.json")["mask"] == {"kind": "causal"}
    assert again == look
    assert_close(again.weights, look.weights)
    assert torch.equal(again.mask, look.mask)


def test_vectors_too_large_for_half_precision_are_refused(tmp_path):
    queries, keys, values = vectors()
    look = looked_at(Attention(Dot())(1e6 * queries, keys, values))
    with pytest.raises(ValueError, match=r"dtype \(float16\) cannot hold these queries"):
        Looks([look]).save(tmp_path / "x.json", dtype=torch.float16)
    with pytest.raises(ValueError, match=r"dtype \(torch.int8\) must be one of float32, float16"):
        Looks([look]).save(tmp_path / "x.json", dtype=torch.int8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"size": 4}, r"looks\.0: its queries are .*\(2, 19, 3\), and should be"),
        ({"size": 10**9}, r"vectors\.size: Input should be less than"),
        ({"dtype": "float16"}, r"its queries are torch\.float32"),
        ({"scale": float("nan")}, r"vectors\.scale: Input should be a finite number"),
        ({"base": 1.0}, r"vectors\.base: Input should be greater than 1"),
        ({"temperature": 0.0}, r"vectors\.temperature: Input should be greater than 0"),
        ({"mask": {"kind": "sideways"}}, r"vectors\.mask: Input tag 'sideways'"),
        ({"mask": {"kind": "dense"}}, r"its mask is missing"),
        ({"mask": {"kind": "packed", "documents": [1]}}, r"Packed documents number 1 keys"),
        ({"mask": {"kind": "window", "before": -1, "after": 0}}, r"window\.before"),
        ({"bias": 3}, r"its bias are missing"),
    ],
)
def test_a_record_whose_vectors_cannot_be_is_refused_with_the_place(change, words, tmp_path):
    path = tmp_path / "x.json"
    Looks([looked_at(Attention(Dot())(*vectors(), Causal()))]).save(path)
    record = json.loads(path.read_text())
    record["looks"][0]["vectors"] |= change
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=words) as told:
        Looks.load(path)
    assert "\n" not in str(told.value)


def test_masks_nested_too_deeply_are_refused(tmp_path):
    path = tmp_path / "x.json"
    Looks([looked_at(Attention(Dot())(*vectors(), Causal()))]).save(path)
    record = json.loads(path.read_text())
    mask = {"kind": "causal"}
    for _ in range(200):
        mask = {"kind": "and", "left": mask, "right": {"kind": "causal"}}
    record["looks"][0]["vectors"]["mask"] = mask
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"x\.json: it is nested too deeply"):
        Looks.load(path)
