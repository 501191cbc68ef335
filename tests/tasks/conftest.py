"""Recipes of these tests bring their data."""

import pytest


@pytest.fixture(autouse=True)
def _data_beside_the_recipe(monkeypatch):
    """Whoever runs the tests may have data of their own; these recipes bring theirs."""
    monkeypatch.delenv("REGARD_DATA", raising=False)
