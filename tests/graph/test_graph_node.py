import numpy as np
import pytest
from numpy.testing import assert_array_equal

from regard.graph import Graph, Node, Operation, apply, constant, data, parameter


def test_a_node_tells_what_it_is():
    x, w = data("x", [1, 2]), parameter("w", [3.0, 4.0])
    y = (w @ x).set_name("y")
    assert (y.name, str(y.operation), y.inputs, y.shape) == ("y", "matmul", (w, x), ())
    assert y.value == 11.0
    assert y.gradient is None
    assert (str(x.operation), str(w.operation)) == ("data", "parameter")
    assert repr(y) == "<y = matmul, shape ()>"


def test_whole_numbers_become_real_ones():
    assert data("x", [1, 2]).value.dtype == np.float64
    assert (data("ids", [1, 2], dtype=int) * 1).value.dtype == np.float64


def test_a_leaf_keeps_its_own_copy():
    array = np.array([1.0, 2.0])
    x = data("x", array)
    array[0] = 7.0
    assert_array_equal(x.value, [1.0, 2.0])


def test_values_and_gradients_cannot_be_changed_in_place():
    x = parameter("x", [1.0, 2.0])
    Graph((x + x).sum()).backward()
    for array in (x.value, x.gradient):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7.0


def test_what_reads_what_is_fixed():
    y = parameter("x", 1.0) + 1.0
    with pytest.raises(AttributeError):
        y.inputs = ()
    with pytest.raises(AttributeError):
        y.operation = None


def test_a_computed_value_cannot_be_set():
    y = (parameter("x", 1.0) + 1.0).set_name("y")
    with pytest.raises(ValueError, match="y is computed by add: only the value of a leaf can be"):
        y.value = 3.0


def test_a_parameter_keeps_its_shape_and_given_data_need_not():
    w, x = parameter("w", np.ones((3, 1))), data("x", np.ones((5, 3)))
    graph = Graph(x @ w)
    x.value = np.ones((7, 3))
    assert graph.forward().shape == (7, 1)
    with pytest.raises(ValueError, match=r"parameter w must keep its shape \(3, 1\), got \(3,\)"):
        w.value = np.ones(3)


@pytest.mark.parametrize("bad", ["text", [1j]])
def test_a_value_must_be_numbers(bad):
    with pytest.raises(ValueError, match="the value of x must be numbers, got an array of"):
        data("x", bad)


def test_a_ragged_value_is_refused():
    with pytest.raises(ValueError, match="the value of x must be one array"):
        data("x", [[1.0], [1.0, 2.0]])


@pytest.mark.parametrize("bad", ["", "two\nlines", "\ud800", "\u2028", "\uffff"])
def test_a_name_is_one_line_of_text(bad):
    with pytest.raises(ValueError, match="a name must be one line of text, got "):
        data(bad, 1.0)


def test_names_may_be_in_any_script():
    for name in ("ŷ", "می‌رود", "単語", "🙂"):
        assert data(name, 1.0).name == name


def test_constants_have_no_gradient():
    x, c = parameter("x", 3.0), constant(2.0, "c")
    Graph(x * c).backward()
    assert x.gradient == 2.0
    assert c.gradient is None


class Cube(Operation):
    """y = x³,  x̄ = 3 ȳ x²"""

    name = "cube"

    def forward(self, x):
        return x**3

    def backward(self, gradient, y, x):
        return (3.0 * gradient * x**2,)


def test_an_operation_of_ones_own_joins_the_others():
    x = parameter("x", [1.0, 2.0])
    y = apply(Cube(), x * 2.0)
    assert isinstance(y, Node)
    Graph(y.sum()).backward()
    assert_array_equal(y.value, [8.0, 64.0])
    assert_array_equal(x.gradient, [24.0, 96.0])
    assert "cube(v1)" in Graph(y).text()
