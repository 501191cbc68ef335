"""What a look can be beside weights over words: over an image, of a document, gates over time."""

import io
import json
from dataclasses import replace

import pytest
import torch
from PIL import Image
from torch.testing import assert_close

from regard.attention import Attention, Causal, Dot, Look, Side, make_looks, watch
from regard.layers import Recurrent
from regard.layers.gates import watch_gates
from regard.looking import Looks, draw_look, make_gate_looks
from regard.looking.drawing import Picture

WORDS = ["she", "eats", "an", "apple", "now"]


@pytest.fixture
def image():
    pixels = torch.arange(4 * 6 * 3).reshape(4, 6, 3).to(torch.uint8)
    return Look.of_weights(
        torch.rand(2, 6),
        path="decoder.attention",
        kind="image",
        queries=["dog", "cat"],
        keys=[f"cell {n}" for n in range(6)],
        grid=(2, 3),
        image=pixels,
    )


@pytest.fixture
def document():
    """Two sentences of three and two words, pooled into two vectors, and those into one."""
    sentences = tuple(
        Look.of_weights(torch.rand(1, n), path="words", kind="pool", queries=["s"], keys=WORDS[:n])
        for n in (3, 2)
    )
    return Look.of_weights(
        torch.tensor([[0.25, 0.75]]),
        path="sentences",
        kind="pool",
        queries=["good"],
        keys=["0", "1"],
        inner=sentences,
    )


@pytest.fixture
def steps():
    """A text read with a cache: two words at once, then one by one."""
    model = Attention(Dot(), sides=("words", "words"))
    x = torch.randn(1, 5, 7)
    with watch(model) as seen:
        for begin, end in ((0, 2), (2, 3), (3, 4), (4, 5)):
            model(x[:, begin:end], x[:, :end], x[:, :end], Causal())
    return make_looks(model, seen, {"words": Side(WORDS)})[0]


@pytest.fixture
def gates():
    network = Recurrent("lstm", 4, 3, layers=2)
    with watch_gates(network) as seen, torch.no_grad():
        network(torch.randn(1, 5, 4))
    return seen["recurrent"][0], make_gate_looks(seen, WORDS)


def reloaded(looks, path):
    Looks(looks).save(path)
    return Looks.load(path)


def test_an_image_is_kept_and_drawn_before_its_maps(image, tmp_path):
    (again,) = reloaded([image], tmp_path / "x.json")
    assert again == image
    assert torch.equal(again.image, image.image)
    drawing = draw_look(again)
    (picture,) = (mark for mark in drawing.marks if isinstance(mark, Picture))
    assert (picture.pixels == image.image.numpy()).all()
    boxes = [cells.box for cells in drawing.maps]
    assert len(boxes) == 2
    for box in boxes:
        assert box[2:] == pytest.approx((picture.width, picture.height))
    places = {(picture.x, picture.y), *(box[:2] for box in boxes)}
    assert len(places) == 3  # none covers another


@pytest.mark.parametrize("ending", ["svg", "html", "png", "pdf"])
def test_an_image_is_in_every_kind_of_file(image, tmp_path, ending):
    plain = Look.of_weights(
        image.weights, kind="image", queries=image.queries, keys=image.keys, grid=(2, 3)
    )
    for name, look in (("with", image), ("without", plain)):
        Looks([look]).save(tmp_path / f"{name}.{ending}")
    first, second = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("with", "without"))
    if ending in ("svg", "html"):
        assert first.count(b"<image") == second.count(b"<image") + 1
    elif ending == "png":
        sizes = [Image.open(io.BytesIO(content)).size for content in (first, second)]
        assert sizes[0] > sizes[1]
    else:
        assert first.count(b"/Image") > second.count(b"/Image")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": [4, 5]}, r"looks\.0: its image is torch\.uint8 \(4, 6, 3\), and should be"),
        ({"image": [4]}, r"looks\.0\.image: List should have at least 2 items"),
        ({"image": [0, 6]}, r"looks\.0\.image\.0: Input should be greater than or equal to 1"),
    ],
)
def test_an_image_that_is_not_as_told_is_refused(image, tmp_path, change, words):
    path = tmp_path / "x.json"
    Looks([image]).save(path)
    record = json.loads(path.read_text())
    record["looks"][0] |= change
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=words):
        Looks.load(path)


def test_an_image_must_be_bytes():
    with pytest.raises(ValueError, match=r"image \(torch.float32 \(2, 2, 3\)\) must be bytes"):
        Look.of_weights(torch.rand(1, 1), queries="a", keys="b", image=torch.rand(2, 2, 3))


def test_a_document_holds_the_looks_of_its_sentences(document, tmp_path):
    (again,) = reloaded([document], tmp_path / "x.json")
    assert again == document
    for one, other in zip(again.inner, document.inner, strict=True):
        assert torch.equal(one.weights, other.weights)
    assert len(Looks([again])) == 1


def test_looks_inside_that_are_no_document_are_shown_below(document, tmp_path):
    looks = Looks([replace(document, kind="other")])
    assert len(looks.drawings()) == 3
    looks.save(tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert page.count('<section class="look">') == 3
    shown = io.StringIO()
    looks.print(shown, colour=False, width=80)
    lines = shown.getvalue().splitlines()
    assert [line for line in lines if line in ("sentences", "words")] == [
        "sentences",
        "words",
        "words",
    ]


def test_looks_inside_looks_without_end_are_refused(document, tmp_path):
    path = tmp_path / "x.json"
    Looks([document]).save(path)
    record = json.loads(path.read_text())
    look = record["looks"][0] | {"inner": []}
    for _ in range(100):
        look = look | {"inner": [look]}
    record["looks"] = [look]
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"x\.json: it is nested too deeply"):
        Looks.load(path)


def test_a_sentence_without_numbers_is_named_by_its_place(document, tmp_path):
    path = tmp_path / "x.json"
    Looks([document]).save(path)
    record = json.loads(path.read_text())
    record["looks"][0]["inner"].append(record["looks"][0]["inner"][0])
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"looks\.0\.2: its weights are missing"):
        Looks.load(path)


def test_steps_keep_their_own_masks(steps, tmp_path):
    (again,) = reloaded([steps], tmp_path / "x.json")
    assert again == steps
    assert again.steps == (0, 0, 1, 2, 3)
    assert torch.equal(again.weights, steps.weights)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    assert torch.equal(again.mask[0], causal)
    (cells,) = draw_look(again).maps
    assert (cells.hidden == ~causal.numpy()).all()


def test_gates_are_looks_over_time_with_a_row_for_each_unit(gates, tmp_path):
    recorded, looks = gates
    assert [look.path for look in looks] == ["recurrent.0.forward", "recurrent.1.forward"]
    for layer, look in enumerate(reloaded(looks, tmp_path / "x.json")):
        assert (look.kind, look.heads) == ("gates", ("input", "forget", "output"))
        for head, name in enumerate(look.heads):
            assert_close(look.weights[head], recorded.of(name, layer=layer)[0].T)
    drawing = draw_look(looks[0])
    assert drawing.name == "recurrent.0.forward: gates over time · 3 gates · 3 units × 5 steps"


def test_other_gates_and_states_can_be_asked_for():
    network = Recurrent("gru", 4, 3, bidirectional=True)
    with watch_gates(network) as seen, torch.no_grad():
        network(torch.randn(2, 5, 4))
    looks = make_gate_looks(seen, WORDS, names=["hidden"], row=1)
    assert [look.path for look in looks] == ["recurrent.0.forward", "recurrent.0.backward"]
    backward = seen["recurrent"][0].of("hidden", direction="backward")
    assert_close(looks[1].weights[0], backward[1].T)


def test_a_page_does_not_sum_up_gates(gates, tmp_path):
    Looks(gates[1][:1]).save(tmp_path / "x.html")
    assert '"sums":""' in (tmp_path / "x.html").read_text()
