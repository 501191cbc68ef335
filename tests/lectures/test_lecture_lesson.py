import torch

from regard.lectures.formatting import decimals, double, fraction, fractions, table, to_list
from regard.lectures.lesson import Lesson, step


def lesson(**rest):
    return Lesson(name="x", title="A title", source="Lecture", numbers={}, **rest)


def test_a_lesson_reads_as_numbered_steps_with_their_lines_below():
    text = lesson(steps=(step("First.", "1 + 1 = 2"), step("Then."))).text()
    assert text == "A title\nLecture\n\n 1. First.\n      1 + 1 = 2\n 2. Then."


def test_the_slip_stands_at_the_end():
    told = lesson(steps=(step("First."),), slip="it is so.")
    assert str(told).endswith(" 1. First.\n\nA slip: it is so.")


def test_a_long_sentence_is_wrapped_and_its_numbers_are_not():
    text = lesson(steps=(step("word " * 30 + "end.", "0 " * 80 + "1"),)).text()
    sentence, rest, numbers = text.splitlines()[3:]
    assert len(sentence) <= 96 and rest.startswith("    word")
    assert numbers.endswith("0 1")


def test_numbers_are_written_as_a_lecture_writes_them():
    row = double([1 / 6, 0.5, 0.0, -0.0, 3.0])
    assert fractions(row) == "[1/6 1/2 0 0 3]"
    assert decimals(row, 3) == "[0.167 0.500 0 0 3]"
    assert decimals(double([-0.00001]), 2) == "[0.00]"
    assert fraction(2 / 3) == "2/3"


def test_plain_numbers_have_no_digits_that_only_rounding_made():
    assert to_list(double([[0.1 + 0.2]])) == [[0.3]]
    assert to_list(torch.tensor([0.1])) == [0.1]
    assert to_list(torch.tensor([True, False])) == [True, False]


def test_in_a_table_words_stand_left_and_numbers_right():
    assert table([("", "n"), ("one", "1"), ("ten", "10")]) == ("      n", "one   1", "ten  10")
    assert table([("a", "b c"), ("long", "d")]) == ("a     b c", "long  d")
