import io
import re

import pytest
import torch
from rich.cells import cell_len

from regard.attention import Look
from regard.looking import Looks
from regard.looking.console import make_console, width_and_colour


@pytest.fixture(autouse=True)
def a_terminal_of_all_colours(monkeypatch):
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)


def printed(look, width=80, colour=False):
    file = io.StringIO()
    Looks([look]).print(file, colour=colour, width=width)
    return file.getvalue().splitlines()


def column(line, mark):
    """At which terminal cell a mark stands."""
    return cell_len(line[: line.index(mark)])


def test_numbers_and_shades_are_those_of_the_weights(small):
    rows = [line for line in printed(small) if line[:2] in ("a ", "b ")]
    # 0.25 is a third of the largest, 0.75; 0.4 half of it; 0.6 four fifths.
    assert rows == ["a ░.25 █.75   ·  ", "b  0   ▒.40 ▓.60 "]


def test_a_causal_map_is_as_dark_as_its_choices(causal):
    lines = printed(causal)
    assert " the █1     ·    ·    ·  " in lines
    assert "runs █.60 ▒.30 ░.10   ·  " in lines
    legend = lines.index("0   ░░▒▒▓▓██ ≥ 0.6")
    masked = "weight; · masked: may not look"
    note = "rows with one or few visible keys do not set the scale"
    assert lines[legend + 1 : legend + 3] == [masked, note]
    assert f"0   ░░▒▒▓▓██ ≥ 0.6  {masked}; {note}" in printed(causal, width=140)


def test_masked_cells_differ_from_zeros_without_colour_and_with_it(small):
    plain = [line for line in printed(small) if line[:2] in ("a ", "b ")]
    assert "·" in plain[0]
    assert "·" not in plain[1]
    first, second = [line for line in printed(small, colour=True) if re.match(r"[ab] ", line)]
    masked = first.split("\x1b[")[-2]
    assert "·" in masked
    assert "48;2" not in masked
    assert second.startswith("b \x1b[38;2;27;31;39;48;2;242;247;254m  0  ")


def test_zeros_are_blank_and_the_largest_weight_is_solid(heads):
    weights = torch.zeros(3, 5, 7)
    weights[:, 2, 4] = 0.9
    look = Look.of_weights(weights, queries="abcde", keys="1234567")
    (row,) = [line for line in printed(look) if line.startswith("c ")]
    assert row == "c " + "  ".join(["        ██    "] * 3)


def test_masked_cells_are_dots_in_small_multiples_too(heads):
    rows = [line for line in printed(heads, 60) if line.lstrip().startswith("q")]
    assert len(rows) == 5
    assert all(row.count(" ·") == 3 for row in rows)


@pytest.mark.parametrize(("width", "colour"), [(20, False), (33, True), (80, False), (131, True)])
@pytest.mark.parametrize("name", ["small", "heads", "hostile", "persian", "large"])
def test_no_line_is_wider_than_the_terminal(name, width, colour, request):
    for line in printed(request.getfixturevalue(name), width, colour):
        assert cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= width


@pytest.mark.parametrize("width", [20, 80])
def test_a_strip_is_no_wider_than_the_terminal_either(width):
    words = ["سلام", "日本語", "attention", "\x00", "", "x" * 90] * 5
    look = Look.of_weights(torch.rand(2, 1, 30), kind="pool", queries=["s"], keys=words)
    assert all(cell_len(line) <= width for line in printed(look, width))


def test_columns_stay_in_line_whatever_the_script():
    tokens = ["a", "日本語", "سلام", "می‌رود", "e\u0301", "👨\u200d👩\u200d👧", "\x00", "", "\t"]
    weights = torch.zeros(9, 13)
    weights[:, 5] = 1.0
    look = Look.of_weights(weights, queries=tokens, keys=[str(at) for at in range(13)])
    rows = [line for line in printed(look) if "█" in line and not line.startswith("0 ")]
    assert len(rows) == 9
    assert len({column(row, "█") for row in rows}) == 1


def test_leftward_tokens_cannot_reorder_their_line(persian):
    rows = [line for line in printed(persian) if "می" in line]
    assert rows
    assert all("\u2068می‌رود\u2069" in row for row in rows)


def in_cells(line):
    """The character at each terminal cell; a wide one is at two."""
    return [character for character in line for _ in range(cell_len(character))]


def test_every_key_stands_above_its_column_or_on_a_stem_that_leads_there():
    keys = ["The", "animal", "日本", "سلام", "because", "it", *"123456", "tired"]
    look = Look.of_weights(torch.eye(13), queries=[f"q{at}" for at in range(13)], keys=keys)
    lines = printed(look)
    rows = [line for line in lines if line.lstrip().startswith("q") and "█" in line]
    head = [in_cells(line) for line in lines[3 : lines.index(rows[0])]]
    assert max(map(len, head)) <= 80
    for key, row in zip(keys, rows, strict=True):
        place, wanted = column(row, "█"), in_cells(key)
        (own,) = [at for at, line in enumerate(head) if line[place : place + len(wanted)] == wanted]
        assert all(line[place] == "│" for line in head[own + 1 :])


def test_what_does_not_fit_is_told(large):
    lines = printed(large, width=80)
    # 3 cells and a space for «t59», 8 kept for the name of the last key, 2 for each cell
    assert "left out: queries 60 to 210, keys 34 to 210; a saved .html shows all" in lines


def test_an_image_is_shown_query_by_query():
    weights = torch.zeros(2, 15)
    weights[0, 11] = 1
    weights[1, 4] = 1
    keys = [str(at) for at in range(15)]
    look = Look.of_weights(weights, kind="image", queries=["dog", "cat"], keys=keys, grid=(3, 5))
    lines = printed(look)
    start = lines.index("dog         cat")
    assert [line.rstrip() for line in lines[start + 1 : start + 4]] == [
        "                    ██",
        "",
        "  ██",
    ]


def test_a_strip_stands_above_its_words():
    look = Look.of_weights(
        torch.tensor([[0.0, 1.0, 0.5]]), kind="pool", queries=["s"], keys=["a", "good", "book"]
    )
    lines = printed(look)
    at = lines.index("a good book ")
    assert lines[at - 1] == "  ████ ▒▒▒▒ "


def test_nothing_to_look_at_is_said():
    look = Look.of_weights(torch.zeros(1, 0), queries=["first"], keys=[])
    assert "nothing to look at" in printed(look)


def test_a_negative_number_shows_its_sign_without_colour():
    weights = torch.zeros(13, 1)
    weights[3], weights[7] = -0.5, 0.5
    look = Look.of_weights(weights, queries=[f"q{at}" for at in range(13)], keys=["k"])
    lines = [line.strip() for line in printed(look)]
    assert "q3 -█" in lines
    assert "q7 ██" in lines


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_no_color_in_the_environment_is_respected(small, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    file = Terminal()
    Looks([small]).print(file, width=80)
    assert "48;" not in file.getvalue()
    assert "░.25" in file.getvalue()


@pytest.mark.parametrize(
    ("term", "system", "colour"),
    [("xterm-256color", "256", True), ("xterm-16color", "standard", False), ("dumb", None, False)],
)
def test_a_terminal_with_too_few_colours_gets_shades(monkeypatch, term, system, colour):
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("COLORTERM", raising=False)
    console = make_console(Terminal(), None, 80)
    assert console.color_system == system
    assert width_and_colour(console) == (80, colour)


def test_numbers_far_from_one_keep_to_their_columns():
    weights = torch.tensor([[1e30, -1e30], [12.5, -0.25]])
    rows = printed(Look.of_weights(weights, queries="ab", keys="xy"))[4:6]
    assert rows == ["a █1e30█-1e…", "b  12   -.25"]


def test_the_names_of_heads_cannot_break_the_lines():
    look = Look.of_weights(torch.rand(2, 2, 2), queries="ab", keys="xy", heads=("a\nb", "\x1b[31m"))
    assert "  a↵b   ␛[3…" in printed(look)


def test_a_file_gets_no_escape_codes(small):
    file = io.StringIO()
    Looks([small]).print(file, width=80)
    assert "\x1b" not in file.getvalue()


def test_a_terminal_too_narrow_is_refused(small):
    with pytest.raises(ValueError, match=r"width \(7\) must be at least 20"):
        Looks([small]).print(io.StringIO(), width=7)
