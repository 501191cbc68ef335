"""Folders are whole or not there."""

import json
import resource

import pytest
import torch

from regard.checkpoints.folders import (
    check_folder,
    new_folder,
    read_tensors,
    sweep,
    write_json,
    write_tensors,
)


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


@pytest.mark.parametrize("place", range(0, 84, 7))
def test_one_flipped_bit_is_noticed(tmp_path, place):
    run = filled(tmp_path / "run")
    content = bytearray((run / "model.safetensors").read_bytes())
    content[place] ^= 1
    (run / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        check_folder(run)


def test_a_missing_file_is_named(tmp_path):
    run = filled(tmp_path / "run")
    (run / "progress.json").unlink()
    with pytest.raises(ValueError, match=r"incomplete: progress\.json is missing"):
        check_folder(run)


def test_a_folder_from_a_newer_version_is_refused(tmp_path):
    run = filled(tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
    with pytest.raises(ValueError, match="newer regard"):
        check_folder(run)


@pytest.mark.parametrize(
    "content",
    [[], {}, {"version": "1"}, {"version": 1}, {"version": 1, "files": []}, {"version": 0}],
)
def test_what_is_no_manifest_is_called_none(content, tmp_path):
    run = filled(tmp_path / "run")
    (run / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"manifest\.json is not a manifest of regard"):
        check_folder(run)


@pytest.mark.parametrize("entry", [3, {"bytes": 84}, {"sha256": "…"}])
def test_an_entry_that_says_too_little_proves_nothing(entry, tmp_path):
    run = filled(tmp_path / "run")
    files = {"files": {"model.safetensors": entry}}
    (run / "manifest.json").write_text(json.dumps({"version": 1, **files}))
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        check_folder(run)


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


def test_what_a_crash_left_is_swept_away_and_the_rest_stays(tmp_path):
    filled(tmp_path / "run")
    (tmp_path / ".run-abc").mkdir()
    (tmp_path / ".run-abc" / "half").write_text("half")
    sweep(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
