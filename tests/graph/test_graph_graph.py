import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from regard.graph import Graph, data, exp, parameter, tanh


@pytest.fixture
def lecture() -> Graph:
    """ŷ = w·x + b, r = y − ŷ, ℓ = r², with r = 3 − (0.5 − 2 + 0.25) = 4.25"""
    x, y = data("x", [1.0, 2.0]), data("y", 3.0)
    w, b = parameter("w", [0.5, -1.0]), parameter("b", 0.25)
    prediction = (w @ x + b).set_name("ŷ")
    residual = (y - prediction).set_name("r")
    return Graph((residual**2).set_name("ℓ"))


def test_the_lectures_example_has_the_gradients_worked_out_by_hand(lecture):
    lecture.backward()
    r = 4.25
    assert lecture["r"].value == r
    assert lecture["ℓ"].value == 18.0625
    assert lecture["ℓ"].gradient == 1.0
    assert lecture["r"].gradient == 2 * r
    assert lecture["ŷ"].gradient == -2 * r
    assert lecture["b"].gradient == -2 * r
    assert_array_equal(lecture["w"].gradient, [-2 * r * 1.0, -2 * r * 2.0])
    assert_array_equal(lecture["x"].gradient, [-2 * r * 0.5, -2 * r * -1.0])
    assert lecture["y"].gradient == 2 * r


def test_a_new_value_is_carried_through_in_order(lecture):
    lecture["x"].value = [3.0, 1.0]
    assert lecture.forward() == (3.0 - (1.5 - 1.0 + 0.25)) ** 2
    assert lecture["ŷ"].value == 0.75


def test_every_node_stands_after_the_nodes_it_reads(lecture):
    seen = set()
    for node in lecture.nodes:
        assert seen.issuperset(node.inputs)
        seen.add(node)
    assert len(lecture.nodes) == len(seen) == 8


def test_a_step_against_the_gradient_makes_the_loss_smaller(lecture):
    before = lecture.output.value
    lecture.backward()
    for parameter_node in lecture.parameters:
        parameter_node.value = parameter_node.value - 0.01 * parameter_node.gradient
    assert lecture.forward() < before


def test_gradients_add_up_over_every_use():
    x = parameter("x", 3.0)
    Graph(x * x + x).backward()
    assert x.gradient == 2 * 3.0 + 1


def test_both_ways_round_a_diamond_count():
    x = parameter("x", 0.7)
    left, right = exp(x), tanh(x)
    Graph(left * right).backward()
    slope = 1 - np.tanh(0.7) ** 2
    assert_allclose(x.gradient, np.exp(0.7) * (np.tanh(0.7) + slope), rtol=1e-14)


def test_a_row_of_diamonds_costs_a_node_each_and_not_a_path_each():
    x = parameter("x", 1.0)
    doubled = x
    for _ in range(60):
        doubled = doubled + doubled
    Graph(doubled).backward()
    assert x.gradient == 2.0**60


def test_a_second_backward_starts_afresh(lecture):
    lecture.backward()
    once = lecture["w"].gradient
    lecture.backward()
    assert_array_equal(lecture["w"].gradient, once)


def test_forward_forgets_the_gradients_of_the_old_values(lecture):
    lecture.backward()
    lecture.forward()
    assert all(node.gradient is None for node in lecture.nodes)


def test_a_chain_of_a_hundred_thousand_nodes_goes_forward_and_back():
    x = parameter("x", 1.0)
    y = x
    for _ in range(100_000):
        y = -y
    graph = Graph(y)
    assert len(graph.nodes) == 100_001
    graph.backward()
    assert x.gradient == 1.0
    x.value = 5.0
    assert graph.forward() == 5.0


def test_a_graph_of_one_node_is_its_own_gradient():
    x = parameter("x", 2.0)
    Graph(x).backward()
    assert x.gradient == 1.0


def test_a_seed_asks_for_a_weighted_sum_of_the_outputs():
    x = parameter("x", [1.0, 2.0, 3.0])
    Graph(x * x).backward([1.0, 0.0, 10.0])
    assert_array_equal(x.gradient, [2.0, 0.0, 60.0])


def test_many_numbers_need_a_seed():
    graph = Graph((parameter("x", [1.0, 2.0]) * 2).set_name("y"))
    with pytest.raises(ValueError, match=r"the output y has shape \(2,\): .* needs a seed of that"):
        graph.backward()
    with pytest.raises(ValueError, match=r"seed must have the shape \(2,\) of the output y, got"):
        graph.backward([1.0, 2.0, 3.0])


def test_backward_refuses_values_that_forward_has_not_seen(lecture):
    lecture["x"].value = [5.0, 5.0]
    with pytest.raises(
        ValueError, match=r"x has a new value that a nameless matmul has not seen: "
    ):
        lecture.backward()
    lecture.forward()
    lecture.backward()


def test_a_new_value_that_does_not_fit_is_refused_by_forward(lecture):
    lecture["x"].value = [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match=r"matmul of w \(2,\), x \(3,\)"):
        lecture.forward()


def test_names_in_a_graph_differ():
    with pytest.raises(ValueError, match="2 nodes are named 'x': names in a graph must differ"):
        Graph(parameter("x", 1.0) + parameter("x", 2.0))


def test_the_nameless_get_names_nobody_has():
    x, v1 = parameter("x", 1.0), parameter("v1", 2.0)
    graph = Graph((x + v1) * 0.5 + 0.5)
    assert list(graph.names.values()) == ["x", "v1", "v2", "0.5", "v3", "0.5 (2)", "v4"]
    assert graph["v4"] is graph.output


def test_an_unknown_name_is_answered_with_the_nearest_or_with_all():
    graph = Graph(parameter("weights", 1.0) * data("x", 2.0))
    with pytest.raises(ValueError, match=r"no node is named 'weight'; did you mean 'weights'\?"):
        graph["weight"]
    with pytest.raises(ValueError, match=r"no node is named 'ŷ'; there are: weights, x, v1"):
        graph["ŷ"]


def test_a_graph_is_saved_as_svg_or_text(lecture, tmp_path):
    lecture.save(tmp_path / "graph.svg")
    lecture.save(str(tmp_path / "graph.TXT"))
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == lecture.svg() + "\n"
    assert (tmp_path / "graph.TXT").read_text(encoding="utf-8") == lecture.text() + "\n"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_drawing_that_fails_leaves_the_old_file_alone(lecture, tmp_path, monkeypatch):
    path = tmp_path / "graph.txt"
    path.write_text("old", encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="no space left"):
        lecture.save(path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_other_endings_are_refused(lecture, tmp_path):
    with pytest.raises(ValueError, match=r"path must end in .svg or .txt, got '.*graph.png'"):
        lecture.save(tmp_path / "graph.png")
