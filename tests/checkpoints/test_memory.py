"""What is too large for the memory is refused before it is asked for."""

import pytest

from regard.checkpoints import memory
from regard.checkpoints.memory import available_memory, check_memory, format_bytes


@pytest.fixture
def told(tmp_path, monkeypatch):
    """A system that says what the test wants."""

    def say(meminfo=None, limit=None):
        for name, content in (("MEMINFO", meminfo), ("CONTAINER_LIMIT", limit)):
            monkeypatch.setattr(memory, name, tmp_path / name)
            if content is not None:
                (tmp_path / name).write_text(content)

    return say


MEMINFO = "MemTotal:       24000000 kB\nMemFree: 1000 kB\nMemAvailable:   2000000 kB\n"


def test_memory_is_what_the_system_says_is_available(told):
    told(MEMINFO)
    assert available_memory() == 2_048_000_000


@pytest.mark.parametrize(
    ("limit", "available"),
    [("500000000\n", 500_000_000), ("max\n", 2_048_000_000), ("9000000000", 2_048_000_000)],
)
def test_a_container_has_no_more_than_it_is_given(limit, available, told):
    told(MEMINFO, limit)
    assert available_memory() == available


@pytest.mark.parametrize("meminfo", [None, "", "MemTotal: 24000000 kB\n"])
def test_nothing_is_refused_where_nobody_knows(meminfo, told):
    told(meminfo)
    assert available_memory() is None
    check_memory(10**18, "a model")


def test_too_much_is_refused_with_what_is_needed_and_what_there_is(told):
    told(MEMINFO)
    check_memory(2_048_000_000, "a model")
    with pytest.raises(
        ValueError, match=r"^a model needs 16\.0 TB of memory, and 2\.0 GB is available$"
    ):
        check_memory(16 * 10**12, "a model")


def test_this_system_says_what_there_is():
    found = available_memory()
    assert found is None or 10**6 < found < 10**15


def test_sizes_are_said_in_words():
    assert [format_bytes(n) for n in (0, 999_999, 1_500_000, 10**9, 10**16)] == [
        "0 bytes",
        "999,999 bytes",
        "1.5 MB",
        "1.0 GB",
        "10,000.0 TB",
    ]
