"""A file that is written appears whole or not at all."""

import os
import stat

import pytest

from regard.atomic import HIDDEN_NAME, hidden_sibling, replacing, write_atomically


def test_the_new_content_is_there_and_nothing_beside_it(tmp_path):
    path = tmp_path / "a.bin"
    for content in (b"old", b"new"):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_content_then_rename_then_folder_go_to_disk(tmp_path, monkeypatch):
    path, flushed = tmp_path / "a.bin", []

    def note(handle):
        name = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        flushed.append((name, path.exists()))

    monkeypatch.setattr(os, "fsync", note)
    write_atomically(path, b"new")
    assert flushed == [("file", False), ("folder", True)]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(step, tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_while_writing_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a.bin") as hidden:
        hidden.write_bytes(b"half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_what_waits_under_the_hidden_name_is_not_written_through(tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda _: "01234567")
    path, victim = tmp_path / "a.bin", tmp_path / "victim"
    victim.write_bytes(b"old")
    hidden_sibling(path).symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_atomically(path, b"new")
    assert victim.read_bytes() == b"old"


def test_a_hidden_name_tells_where_it_belongs(tmp_path):
    found = HIDDEN_NAME.fullmatch(hidden_sibling(tmp_path / "a.bin").name)
    assert found is not None
    assert found["name"] == "a.bin"
