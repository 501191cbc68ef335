import torch

from regard.lectures import backprop


def test_the_gradients_are_those_of_the_lecture(played):
    numbers = played("backprop").numbers
    values, gradients = numbers["values"], numbers["gradients"]
    r, x = values["r"], values["x"]
    assert (values["ŷ"], r, values["ℓ"]) == (6, 2, 4)
    assert gradients["r"] == 2 * r == 4
    assert gradients["ŷ"] == gradients["b"] == -2 * r == -4
    assert gradients["w"] == [-2 * r * feature for feature in x] == [-12, -4]
    assert numbers["by_hand"] == gradients


def test_torch_finds_the_same_gradients(played):
    numbers = played("backprop").numbers
    w = torch.tensor(numbers["values"]["w"], requires_grad=True)
    b = torch.tensor(numbers["values"]["b"], requires_grad=True)
    (numbers["values"]["y"] - w @ torch.tensor(numbers["values"]["x"]) - b).square().backward()
    assert w.grad.tolist() == numbers["gradients"]["w"]
    assert b.grad.item() == numbers["gradients"]["b"]


def test_a_step_downhill_makes_the_loss_smaller(played):
    # w = [1.36, 2.12] and b = 1.12 give ŷ = 7.32, r = 0.68
    assert abs(played("backprop").numbers["loss_after_one_step"] - 0.68**2) < 1e-12


def test_the_graph_is_drawn_and_listed(played):
    lesson = played("backprop")
    assert lesson.drawing.startswith("<svg") and "ŷ" in lesson.drawing
    assert "r²" in lesson.listing and "[-12, -4]" in lesson.listing


def test_with_other_numbers_the_lecture_tells_those(monkeypatch):
    # ŷ = 3 − ½ − 1 = 1½ and r = 1½, so ∂ℓ/∂ŷ = −3; the step goes to w = [1.68 0.41], b = −0.91.
    for name, value in (
        ("FEATURES", (2.0, -1.0)),
        ("TARGET", 3.0),
        ("WEIGHTS", (1.5, 0.5)),
        ("BIAS", -1.0),
    ):
        monkeypatch.setattr(backprop, name, value)
    lines = [line for step in backprop.lesson().steps for line in step.lines]
    for line in (
        "x = [2 -1]   y = 3   w = [1.5 0.5]   b = -1",
        "ŷ = 1.5·2 + 0.5·-1 + -1 = 1.5",
        "r = 3 − 1.5 = 1.5",
        "ℓ = 1.5² = 2.25",
        "∂ℓ/∂w₂ = ∂ℓ/∂ŷ · x₂ = −2r x₂ = 3",
        "w − 0.03 · [-6 3] = [1.68 0.41]   b − 0.03 · (-3) = -0.91",
    ):
        assert line in lines
