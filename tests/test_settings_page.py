"""docs/settings.md lists the keys of a recipe as the code has them."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def settings():
    spec = spec_from_file_location("settings", DOCS / "settings.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_as_the_code_says(settings):
    written = settings.PAGE.read_text(encoding="utf-8")
    assert written == settings.make_page(), "run python docs/settings.py"


def test_defaults_and_meanings_are_those_of_the_dataclasses(settings):
    page = settings.make_page()
    assert '| `optimizer` | `"adamw"` | `"adamw"`, `"adam"`, `"sgd"` |' in page
    assert "| `reach` | `10` | local scopes: the window is [p − reach, p + reach] |" in page
    assert "`vocabulary_size`" not in page.partition("## [model]")[2].partition("###")[2]


def test_a_key_that_is_inherited_means_what_its_class_says(settings):
    of_backpack = settings.make_page().partition("### backpack")[2].partition("###")[0]
    assert '| `norm` | `"pre"` | before each block' in of_backpack
    assert "| `senses` | `16` | of each word |" in of_backpack
    assert "| `longest` | `512` |" in of_backpack
