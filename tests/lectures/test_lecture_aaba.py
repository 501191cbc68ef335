import pytest

from regard.lectures import aaba


def close(numbers):
    return pytest.approx(numbers, abs=5e-5)  # four digits, as printed


def test_with_e_taken_for_three_the_weights_are_sixths_and_a_half(played):
    numbers = played("aaba").numbers
    assert numbers["scores"] == [0, 0, 1, 0]
    assert numbers["base_3"]["weights"] == pytest.approx([1 / 6, 1 / 6, 1 / 2, 1 / 6], abs=1e-12)
    assert numbers["base_3"]["output"] == pytest.approx([1 / 2, 1 / 2], abs=1e-12)
    assert numbers["base_3"]["as_fractions"] == {
        "weights": "[1/6 1/6 1/2 1/6]",
        "output": "[1/2 1/2]",
    }


def test_both_versions_are_printed(printed):
    assert "[1/6 1/6 1/2 1/6] → [1/2 1/2]" in printed("aaba")
    assert "[0.1749 0.1749 0.4754 0.1749] → [0.5246 0.4754]" in printed("aaba")


def test_with_the_real_e_it_is_softer(played):
    assert played("aaba").numbers["base_e"] == {
        "weights": close([0.1749, 0.1749, 0.4754, 0.1749]),
        "output": close([0.5246, 0.4754]),
    }


def test_a_plain_average_gives_three_quarters_of_a(played):
    average = played("aaba").numbers["average"]
    assert average["weights"] == [1 / 4] * 4
    assert average["output"] == [3 / 4, 1 / 4]


def test_a_query_of_ten_finds_the_b(played):
    strong = played("aaba").numbers["strong"]
    assert strong["weights"] == pytest.approx([0, 0, 1, 0], abs=2e-4)
    assert strong["output"] == pytest.approx([0, 1], abs=2e-4)


def test_in_self_attention_every_position_asks_for_bs(played):
    everyone = played("aaba").numbers["self_attention"]
    assert everyone["W_K"] == [[1, 0], [0, 1]]
    assert everyone["queries"] == [[0, 10]] * 4
    assert everyone["scores"] == [[0, 0, 10, 0]] * 4
    for output in everyone["output"]:
        assert output == pytest.approx([0, 1], abs=2e-4)


def test_the_pictures_are_the_weights(played):
    first, second = played("aaba").looks
    assert first.weights[0, 0].tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 2, 1 / 6])
    assert [label.text for label in second.queries] == list("AABA")
    assert second.weights.shape == (1, 4, 4)


def test_with_another_strength_the_lecture_tells_that_query(monkeypatch):
    monkeypatch.setattr(aaba, "STRENGTH", 4.0)
    lesson = aaba.lesson()
    assert "q = [0 4]" in lesson.text() and "W^Q = [[0 0] [4 4]]" in " ".join(lesson.text().split())
    assert lesson.numbers["strong"]["query"] == [0, 4]
    assert lesson.numbers["self_attention"]["scores"] == [[0, 0, 4, 0]] * 4
