import numpy as np

from regard.graph import Graph, data, parameter, softmax, sqrt, stack, where


def test_a_listing_shows_name_formula_value_and_gradient_in_columns():
    x, w, b = data("x", [1.0, 2.0]), parameter("w", [0.5, -1.0]), parameter("b", 0.25)
    graph = Graph(((w @ x + b) ** 2).set_name("ℓ"))
    graph.backward()
    assert graph.text().splitlines() == [
        "node  formula    value      gradient",
        "w     parameter  [0.5, -1]  [-2.5, -5]",
        "x     data       [1, 2]     [-1.25, 2.5]",
        "v1    w @ x      -1.5       -2.5",
        "b     parameter  0.25       -2.5",
        "v2    v1 + b     -1.25      -2.5",
        "ℓ     v2²        1.562      1",
    ]
    assert str(graph) == graph.text()


def test_before_backward_there_is_no_gradient_to_show():
    assert Graph(parameter("x", 2.0)).text().splitlines()[1] == "x     parameter  2      -"


def test_nothing_less_than_nothing_is_nothing():
    assert Graph(data("x", [-0.0, 0.0])).text().splitlines()[1].split()[2:4] == ["[0,", "0]"]


def test_large_values_are_told_by_shape_and_range():
    rows = [
        Graph(data("x", np.arange(35.0).reshape(5, 7))).text(),
        Graph(data("x", np.zeros(7))).text(),
        Graph(data("x", np.arange(7) < 3, dtype=bool)).text(),
        Graph(data("x", np.arange(7), dtype=int)).text(),
        Graph(data("x", np.zeros((0, 3)))).text(),
    ]
    shown = [row.splitlines()[1].split(maxsplit=1)[1].removesuffix("-").rstrip() for row in rows]
    assert shown == [
        "data     (5, 7) 0 … 34",
        "data     (7,) all 0",
        "data mask  (7,) 3 of 7 True",
        "data ids  (7,) 0 … 6",
        "data     []",
    ]


def test_formulas_read_as_they_are_typed():
    x, y = parameter("x", np.ones((5, 3))), parameter("y", np.ones((5, 3)))
    formulas = {
        "x - y": x - y,
        "x * y": x * y,
        "x / y": x / y,
        "-x": -x,
        "x⁻²": x**-2,
        "x ** 0.5": x**0.5,
        "x ** y": x**y,
        "x[0]": x[0],
        "x[:, 1:]": x[:, 1:],
        "x[..., ::2]": x[..., ::2],
        "x[[0, 2]]": x[[0, 2]],
        "sum(x)": x.sum(),
        "mean(x, axis=(0, 1), keepdims=True)": x.mean(axis=(0, 1), keepdims=True),
        "reshape(x, (3, 5))": x.reshape(3, 5),
        "transpose(x)": x.mT,
        "transpose(x, (0, 1))": x.transpose(0, 1),
        "softmax(x)": softmax(x),
        "softmax(x, axis=0)": softmax(x, axis=0),
        "stack(x, y, axis=1)": stack([x, y], axis=1),
        "sqrt(x)": sqrt(x),
        "where(v1, x, y)": where(np.ones((5, 3), dtype=bool), x, y),
    }
    for formula, node in formulas.items():
        assert f"  {formula}  " in Graph(node).text().splitlines()[-1]


def test_columns_line_up_under_wide_and_combining_letters():
    graph = Graph(data("単語", 1.0) + data("y\u0302", 2.0))
    header, wide, combined, last = graph.text().splitlines()
    assert header.index("formula") == 6
    assert wide.index("data") == 4  # two letters, four columns
    assert combined.index("data") == 7  # two letters, one column
    assert last.index("単語") == 6
