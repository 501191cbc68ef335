from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.ft2font import FT2Font

from regard.graph import Graph, data, parameter, softmax, tanh

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.fixture
def head() -> Graph:
    x = data("x", np.eye(5, 7))
    q, k, v = (x @ parameter(f"W{name}", np.eye(7, 3)) for name in "qkv")
    return Graph((softmax(q @ k.mT / 2.0) @ v).sum().set_name("total"))


def test_every_node_is_drawn_once_by_its_name(head):
    drawn = texts(head.svg())
    for name in head.names.values():
        assert drawn.count(name) == 1


def test_boxes_carry_operation_value_and_gradient():
    w = parameter("w", [0.5, -1.0])
    graph = Graph((w * 3.0).sum().set_name("y"))
    graph.backward()
    drawn = texts(graph.svg())
    for text in (
        "parameter",
        "multiply",
        "sum",
        "constant",
        "=[0.5, −1]",
        "∂[3, 3]",
        "=−1.5",
        "∂1",
    ):
        assert text in drawn


def test_the_legend_explains_what_is_there_and_no_more():
    graph = Graph(parameter("w", 2.0) * data("x", 3.0))
    before = texts(graph.svg())
    assert "= value" in before
    assert "∂ gradient of the output" not in before
    assert before[-4:-1] == ["data", "parameter", "computed"]
    graph.backward()
    assert texts(graph.svg())[-1] == "∂ gradient of the output"


def test_an_arrow_arrives_for_every_use():
    x = parameter("x", 2.0)
    svg = ElementTree.fromstring(Graph(x * x).svg())
    _, heads = svg.iter(f"{SVG}path")
    assert heads.get("d").count("z") == 2


def test_text_from_outside_is_escaped():
    graph = Graph(tanh(parameter("<script>alert('&')</script>", 1.0)))
    svg = graph.svg(title='</title><script>"x"&')
    assert "<script" not in svg
    assert "<script>alert('&')</script>" in texts(svg)
    root = ElementTree.fromstring(svg)
    assert root.find(f"{SVG}title").text == root.get("aria-label") == '</title><script>"x"&'


def test_a_drawing_can_be_read_aloud(head):
    root = ElementTree.fromstring(head.svg())
    assert root.get("role") == "img"
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == "Computation graph"


def test_a_drawing_fetches_nothing_and_leaks_no_style(head):
    svg = head.svg()
    for word in ("<style", "<script", "href", "url(", " id=", "<image"):
        assert word not in svg


def test_everything_lies_inside_the_picture(head):
    head.backward()
    root = ElementTree.fromstring(head.svg())
    width, height = float(root.get("width")), float(root.get("height"))
    drawing = root.findall(f"{SVG}g")[0]
    left, top = offset(drawing)
    for group in drawing.findall(f"{SVG}g"):
        x, y = offset(group)
        box = group.find(f"{SVG}rect")
        assert 0 < left + x < left + x + float(box.get("width")) < width
        assert 0 < top + y < top + y + float(box.get("height")) < height


def offset(group: ElementTree.Element) -> tuple[float, float]:
    x, y = group.get("transform").removeprefix("translate(").removesuffix(")").split()
    return float(x), float(y)


def test_long_names_are_cut():
    assert "a" * 35 + "…" in texts(Graph(parameter("a" * 100, 1.0)).svg())


def test_a_notebook_shows_the_drawing(head):
    assert head._repr_svg_() == head.svg()


def test_more_boxes_than_anybody_can_read_are_refused():
    y = parameter("x", 1.0)
    for _ in range(1000):
        y = -y
    with pytest.raises(
        ValueError, match=r"at most 1000 nodes, this graph has 1001: text\(\) lists"
    ):
        Graph(y).svg()


@pytest.mark.parametrize("name", ["m" * 30, "ŷ"])
def test_name_and_operation_stand_beside_each_other_in_the_box(name):
    svg = ElementTree.fromstring(Graph(parameter(name, 1.0)).svg())
    box = svg.findall(f"{SVG}g")[0].find(f"{SVG}g")
    title, operation = box.findall(f"{SVG}text")[:2]
    end = float(title.get("x")) + drawn_width(title, "DejaVuSans-Bold.ttf")
    start = float(operation.get("x")) - drawn_width(operation, "DejaVuSans.ttf")
    assert end < start


def drawn_width(text: ElementTree.Element, file: str) -> float:
    """By the fonts that come with matplotlib; the group of a box has letters of 12."""
    font = FT2Font(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / file))
    font.set_size(float(text.get("font-size", 12)), 72)
    return sum(font.load_char(ord(letter)).linearHoriAdvance for letter in text.text) / 65536
