import json
import subprocess
import sys

import pytest
import torch

from regard.attention import Look
from regard.lectures import NAMES, TITLES, play
from regard.looking import Curves

IN_ORDER = (
    "aaba any-b trick-was-sick backprop soft-database sql apple positions lstm layer-norm "
    "alignment coreference rnn-memory residual teacher-forcing order"
)
WITH_A_SLIP = {
    "any-b": "last position",
    "trick-was-sick": "formula (5)",
    "soft-database": "between keys and values",
    "positions": "10000^(i/d)",
    "lstm": "h = o ⊙ c;",
    "layer-norm": "variance",
    "teacher-forcing": "padding of the target",
}


def test_there_are_sixteen_lectures_in_their_order():
    assert " ".join(NAMES) == IN_ORDER
    assert tuple(TITLES) == NAMES


def test_every_title_is_one_line():
    assert all(title and "\n" not in title and len(title) < 72 for title in TITLES.values())


def test_the_list_of_lectures_imports_neither_torch_nor_any_lecture():
    script = (
        "import sys; from regard.lectures import TITLES\n"
        "print(*(m for m in sys.modules if m == 'torch' or m.startswith('regard.lectures.')))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8")
    assert run.stdout.split() == ["regard.lectures.catalog", "regard.lectures.lesson"]


def test_an_unknown_lecture_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match=r"no lecture is named 'abba'; did you mean 'aaba'\?"):
        play("abba")
    with pytest.raises(ValueError, match=r"'layernorm'; did you mean 'layer-norm'\?"):
        play("layernorm")
    with pytest.raises(ValueError, match=r"'\?'; there are: aaba, any-b, .*, order"):
        play("?")


def test_only_names_of_the_catalog_are_played():
    for module in ("catalog", "any_b", "translator", "..looking"):
        with pytest.raises(ValueError, match="no lecture is named"):
            play(module)


def test_an_unknown_option_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"'any-b' has no option 'fast'; it has: quick"):
        play("any-b", fast=True)
    with pytest.raises(ValueError, match=r"'sql' has no option 'quick'; it has: none"):
        play("sql", quick=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_lecture_has_all_that_a_lesson_needs(played, name):
    lesson = played(name)
    assert (lesson.name, lesson.title) == (name, TITLES[name])
    assert lesson.source.startswith("Lecture")
    assert len(lesson.steps) >= 3
    assert all(step.text and step.text.endswith((".", ":")) for step in lesson.steps)
    assert any(step.lines for step in lesson.steps)
    assert all(isinstance(line, str) for step in lesson.steps for line in step.lines)
    numbers = json.loads(json.dumps(lesson.numbers, allow_nan=False))
    assert numbers == lesson.numbers  # plain lists, floats and strings

    pictures = [*lesson.looks, *lesson.curves, *filter(None, [lesson.drawing])]
    assert pictures or name == "layer-norm"
    assert all(isinstance(look, Look) and look.weights.isfinite().all() for look in lesson.looks)
    assert all(isinstance(curves, Curves) and curves.series for curves in lesson.curves)


def test_a_slip_is_told_where_there_is_one_with_the_version_of_the_lecture(played):
    for name in NAMES:
        lesson = played(name)
        slip = WITH_A_SLIP.get(name)
        assert (lesson.slip is None) == ("as_written" not in lesson.numbers) == (slip is None)
        if slip is not None:
            assert slip in lesson.slip
            assert lesson.slip.split()[0] in lesson.text().split("A slip: ")[1]


@pytest.mark.parametrize("name", ["lstm", "residual", "order", "teacher-forcing"])
def test_a_lecture_with_random_numbers_is_the_same_at_every_visit_and_leaves_the_callers(name):
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(3)
    first = play(name).numbers
    assert torch.equal(torch.rand(5), expected)
    torch.manual_seed(5)
    assert play(name).numbers == first
