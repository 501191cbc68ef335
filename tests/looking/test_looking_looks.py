import stat
from xml.etree import ElementTree

import pytest
import torch

from regard.attention import Look
from regard.looking import Looks


@pytest.fixture
def looks(small, heads):
    return Looks([small, heads])


def test_looks_are_found_by_number_and_by_path(looks, small, heads):
    assert looks[1] is heads
    assert looks[-2] is small
    assert looks["layers.3.attention"] is heads
    assert list(looks[:1]) == [small]
    assert isinstance(looks[:1], Looks)
    assert len(looks) == 2
    assert "decoder.attention" in looks
    assert heads in looks
    assert "decoder" not in looks


def test_an_unknown_path_is_answered_with_the_nearest(looks):
    with pytest.raises(
        ValueError,
        match=r"path \('layer.3'\) is not among the 2 looks; did you mean 'layers.3.att",
    ):
        looks["layer.3"]


def test_a_path_looked_at_twice_is_not_guessed_at(small):
    with pytest.raises(ValueError, match=r"was looked at 2 times: take one of \.under"):
        Looks([small, small])["decoder.attention"]


def test_a_path_holds_everything_below_it(looks, small):
    assert looks.under("layers.3").paths == ("layers.3.attention",)
    assert len(Looks([small, small]).under("decoder.attention")) == 2
    with pytest.raises(ValueError, match=r"path \('layers.30'\)"):
        looks.under("layers.30")
    with pytest.raises(ValueError, match=r"path \('layer'\)"):
        looks.under("layer")


def test_the_tokens_are_what_is_looked_at_first(looks):
    assert looks.tokens == ("x", "y", "z")
    assert Looks([]).tokens == ()


def test_looks_never_change(looks):
    with pytest.raises(TypeError):
        looks[0] = looks[1]
    given = [looks[0]]
    held = Looks(given)
    given.clear()
    assert len(held) == 1


@pytest.mark.parametrize(
    ("ending", "start"),
    [
        ("html", b"<!doctype html>"),
        ("svg", b"<svg xmlns="),
        ("png", b"\x89PNG"),
        ("pdf", b"%PDF-"),
        ("json", b"{"),
        ("SVG", b"<svg xmlns="),
    ],
)
def test_the_ending_names_the_kind_of_file(looks, tmp_path, ending, start):
    looks.save(tmp_path / f"look.{ending}")
    assert (tmp_path / f"look.{ending}").read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["look.gif", "look", "look.jpeg"])
def test_an_ending_nobody_knows_is_answered_with_those_known(looks, tmp_path, name):
    with pytest.raises(ValueError, match=r"must end in one of \.html, \.svg, \.png, \.pdf, \.json"):
        looks.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_no_looks_make_no_file(tmp_path):
    with pytest.raises(ValueError, match="there are no looks to save"):
        Looks([]).save(tmp_path / "look.svg")
    assert not list(tmp_path.iterdir())


def test_all_looks_are_in_one_svg_with_hatching_of_one_kind(looks, tmp_path):
    looks.save(str(tmp_path / "look.svg"))
    root = ElementTree.parse(tmp_path / "look.svg").getroot()
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert len([name for name in ids if "map" in name]) == 4


def test_a_missing_folder_is_named(looks, tmp_path):
    with pytest.raises(ValueError, match=r"there is no folder '.*nowhere'"):
        looks.save(tmp_path / "nowhere" / "look.svg")


def test_a_folder_in_the_way_is_named(looks, tmp_path):
    (tmp_path / "look.svg").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        looks.save(tmp_path / "look.svg")


@pytest.mark.parametrize("ending", ["html", "svg", "png", "pdf", "json"])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(looks, tmp_path, monkeypatch, ending):
    path = tmp_path / f"look.{ending}"
    path.write_text("old")

    def full(_):
        raise OSError("the disk is full")

    monkeypatch.setattr("regard.atomic.os.fsync", full)
    with pytest.raises(OSError, match="full"):
        looks.save(path)
    assert path.read_text() == "old"
    assert [left.name for left in tmp_path.iterdir()] == [path.name]


def test_whoever_has_the_old_file_open_keeps_reading_it(looks, tmp_path):
    path = tmp_path / "look.svg"
    path.write_text("old")
    with path.open() as reader:
        looks.save(path)
        assert reader.read() == "old"
    assert path.read_text().startswith("<svg")


def test_a_saved_file_may_be_read_by_whoever_may_read_others(looks, tmp_path):
    (tmp_path / "other").write_text("")
    looks.save(tmp_path / "look.svg")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("other", "look.svg")]
    assert modes[0] == modes[1]


def test_a_notebook_gets_a_frame_that_holds_everything(looks):
    shown = looks._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts"' in shown
    assert "<script" not in shown
    assert Looks([])._repr_html_() == "<em>no looks</em>"


def test_twelve_layers_of_long_maps_share_the_room_of_one_file(tmp_path):
    tokens = [f"t{at}" for at in range(600)]
    look = Look.of_weights(torch.rand(2, 600, 600), queries=tokens, keys=tokens)
    Looks([look] * 12).save(tmp_path / "look.html")
    assert (tmp_path / "look.html").stat().st_size < 20_000_000
