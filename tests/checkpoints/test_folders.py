"""Folders are whole or not there."""

import json
import resource

import pytest
import torch

from regard.checkpoints.folders import new_folder, recover, write_json, write_tensors
from regard.checkpoints.reading import check_folder, read_tensors


def filled(place):
    with new_folder(place) as folder:
        write_tensors(folder / "model.safetensors", {"w": torch.arange(7.0)})
        write_json(folder / "progress.json", {"step": 3})
    return place


def test_what_was_written_is_read_back(tmp_path):
    place = filled(tmp_path / "run")
    check_folder(place)
    assert torch.equal(read_tensors(place / "model.safetensors")["w"], torch.arange(7.0))


def test_a_failure_leaves_nothing_behind(tmp_path):
    with pytest.raises(OSError, match="disk"), new_folder(tmp_path / "run") as folder:
        (folder / "half").write_text("half")
        raise OSError("no space left on disk")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_folder_that_was_there(tmp_path):
    place = filled(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt), new_folder(place) as folder:
        (folder / "other").write_text("other")
        raise KeyboardInterrupt
    check_folder(place)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_weights_that_find_no_room_leave_the_folder_that_was_there(tmp_path):
    place = filled(tmp_path / "run")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))  # as if the disk ended there
    try:
        with (
            pytest.raises(OSError, match=r"model\.safetensors cannot be written: .*too large"),
            new_folder(place) as folder,
        ):
            write_tensors(folder / "model.safetensors", {"w": torch.zeros(5000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    check_folder(place)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_what_a_crash_left_half_built_is_swept_away_and_the_rest_stays(tmp_path):
    filled(tmp_path / "run")
    (tmp_path / ".run-0123abcd.part").mkdir()
    (tmp_path / ".run-0123abcd.part" / "half").write_text("half")
    (tmp_path / ".model.safetensors-0123abcd.part").write_text("half")
    (tmp_path / ".vscode-settings").mkdir()
    recover(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"run", ".vscode-settings"}


def test_what_stands_whole_beside_its_empty_place_is_put_back(tmp_path):
    filled(tmp_path / "run").rename(tmp_path / ".run-0123abcd.part")
    recover(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    check_folder(tmp_path / "run")


def test_a_link_under_a_hidden_name_is_removed_and_not_what_it_leads_to(tmp_path):
    mine = filled(tmp_path / "mine")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ".run-0123abcd.part").symlink_to(mine)
    recover(tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []
    check_folder(mine)


def test_a_new_folder_takes_the_place_of_the_old(tmp_path):
    place = filled(tmp_path / "run")
    with new_folder(place) as folder:
        write_json(folder / "progress.json", {"step": 4})
    assert json.loads((place / "progress.json").read_text()) == {"step": 4}
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_links_and_hidden_files_are_not_listed(tmp_path):
    (tmp_path / "outside").write_text("outside")
    with new_folder(tmp_path / "run") as folder:
        write_json(folder / "progress.json", {})
        (folder / ".left").write_text("by a crash")
        (folder / "link").symlink_to(tmp_path / "outside")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert list(manifest["files"]) == ["progress.json"]


def test_a_file_is_not_written_through_a_link_that_waits_for_it(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "record").symlink_to(tmp_path / "precious")
    write_json(tmp_path / "record", {})
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "record").is_symlink()
