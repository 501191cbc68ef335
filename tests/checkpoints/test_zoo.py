"""Runs by name: where they are found, and what is said when they are not."""

import sys

import pytest

from regard.checkpoints import zoo
from regard.checkpoints.zoo import find_run, hint_at_zoo, zoo_runs


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Three zoos with nothing in them, and a folder to stand in."""
    for name in ("given", "checkout", "site/regard_zoo", "here"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "site" / "regard_zoo" / "__init__.py").touch()
    monkeypatch.setenv("REGARD_ZOO", str(tmp_path / "given"))
    monkeypatch.setattr(zoo, "CHECKOUT", tmp_path / "checkout")
    # A finder of an editable install would come first, and the real zoo with it.
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def add(folder):
    folder.mkdir(parents=True)
    (folder / "manifest.json").touch()
    return folder


def test_a_name_is_found_in_the_zoo_you_set_then_the_checkout_then_what_is_installed(places):
    installed = add(places / "site" / "regard_zoo" / "dan")
    assert find_run("dan") == installed
    checkout = add(places / "checkout" / "dan")
    assert find_run("dan") == checkout
    given = add(places / "given" / "dan")
    assert find_run("dan") == given
    assert "regard_zoo" not in sys.modules


def test_a_folder_of_that_name_wins_over_the_zoo(places):
    add(places / "given" / "dan")
    (places / "here" / "dan").mkdir()
    assert find_run("dan").resolve() == places / "here" / "dan"


def test_only_finished_runs_are_in_the_zoo(places):
    add(places / "given" / "ntm")
    add(places / "given" / "dan")
    add(places / "given" / ".dan.x1.part")  # half written
    (places / "given" / "notes").mkdir()
    assert list(zoo_runs()) == ["dan", "ntm"]


def test_a_name_that_is_nowhere_is_answered_with_the_nearest_or_with_how_to_install(places):
    assert "pip install ./zoo" in hint_at_zoo(find_run("imdb-hna"))
    add(places / "given" / "imdb-han")
    assert hint_at_zoo(find_run("imdb-hna")).endswith("did you mean 'imdb-han'?")
    assert hint_at_zoo(find_run("runs/imdb-hna")) == ""


def test_a_zoo_that_is_no_folder_is_refused(places, monkeypatch):
    monkeypatch.setenv("REGARD_ZOO", "nowhere")
    with pytest.raises(ValueError, match=r"\$REGARD_ZOO \('nowhere'\) must be a folder"):
        find_run("dan")
