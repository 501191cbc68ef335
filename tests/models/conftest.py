"""What the tests of the models share: the same numbers in every run, and small models of each."""

import pytest
import torch

from regard.data.batches import Words


@pytest.fixture(autouse=True)
def _the_same_numbers_in_every_run() -> None:
    torch.manual_seed(7)


@pytest.fixture
def words():
    """words(batch, position): random words without padding, each row with its next ones."""

    def drawn(batch: int, position: int, vocabulary_size: int = 11) -> Words:
        ids = torch.randint(vocabulary_size, (batch, position + 1))
        mask = torch.ones(batch, position, dtype=torch.bool)
        return Words(ids[:, :-1], ids[:, 1:], mask)

    return drawn
