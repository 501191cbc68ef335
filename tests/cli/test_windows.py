"""Lines in groups: full ones from a file, from a pipe those that have come."""

from queue import Queue

import pytest

from regard.cli.windows import waiting_lines, windows


def test_a_file_comes_in_full_groups():
    assert list(windows("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]


def test_a_pipe_is_answered_before_the_next_line_is_sent():
    sent: Queue[str | None] = Queue()
    groups = waiting_lines(iter(sent.get, None), 7)
    for line in ("one", "two", "three"):  # who sends waits for each answer
        sent.put(line)
        assert next(groups) == [line]
    sent.put(None)
    assert list(groups) == []


def test_lines_that_are_there_together_are_answered_together():
    assert list(waiting_lines(["a", "b", "c"], 2)) == [["a", "b"], ["c"]]
    assert list(waiting_lines(["a", "b", "c"], 7)) == [["a", "b", "c"]]


def test_what_is_wrong_with_a_pipe_is_told_after_the_lines_before_it():
    def broken():
        yield "good"
        raise ValueError("line 2 is no text")

    groups = waiting_lines(broken(), 7)
    assert next(groups) == ["good"]
    with pytest.raises(ValueError, match="line 2 is no text"):
        next(groups)
