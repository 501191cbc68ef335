"""What the tests of attention share: the same numbers in every run, and a door to every path."""

from collections.abc import Callable

import pytest
import torch

from regard.attention import attention as explicit
from regard.attention import fused


@pytest.fixture(autouse=True)
def _the_same_numbers_in_every_run() -> None:
    torch.manual_seed(7)


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """take(path): from now on long inputs are those of a few numbers, so that blocks are met."""

    def choose(path: str) -> None:
        if path == "blocked":
            monkeypatch.setattr(explicit, "SCORES_PER_BLOCK", 1)
            monkeypatch.setattr(fused, "MAX_WRITTEN_ENTRIES", 1)

    return choose
