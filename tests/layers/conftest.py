"""What the tests of the layers share: the same numbers in every run."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _the_same_numbers_in_every_run() -> None:
    torch.manual_seed(13)


@pytest.fixture
def double():
    """For one test, numbers are double precision unless told."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
