"""What the tests of the lectures share: each lecture played once."""

from collections.abc import Callable
from functools import cache

import pytest

from regard.lectures import Lesson, play


@cache
def _played(name: str) -> Lesson:
    return play(name, quick=True) if name == "any-b" else play(name)


@pytest.fixture(scope="session")
def played() -> Callable[[str], Lesson]:
    """played("aaba"): the lesson, any-b in its quick version."""
    return _played


@pytest.fixture(scope="session")
def printed() -> Callable[[str], str]:
    """printed("aaba"): the lesson as text, its lines joined so that wrapping hides nothing."""
    return lambda name: " ".join(_played(name).text().split())


@pytest.fixture(scope="session")
def whole_any_b() -> Lesson:
    """any-b as users see it; about a minute."""
    return play("any-b")
