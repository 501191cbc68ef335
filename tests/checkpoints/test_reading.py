"""Folders from strangers: what is read is listed, inside, a file, as large and as it was saved."""

import json
import os
import struct

import pytest
import torch

from regard.checkpoints.folders import new_folder, write_json, write_manifest, write_tensors
from regard.checkpoints.reading import (
    Folder,
    check_folder,
    parse_json,
    parse_tensors,
    parse_toml,
    read_tensors,
    refuse_links,
)


@pytest.fixture
def run(tmp_path):
    with new_folder(tmp_path / "run") as folder:
        write_tensors(folder / "model.safetensors", {"w": torch.arange(7.0)})
        write_json(folder / "progress.json", {"step": 3})
    return tmp_path / "run"


def listing(run, **files):
    """Changes what the manifest says."""
    manifest = json.loads((run / "manifest.json").read_text())
    for name, entry in files.items():
        manifest["files"][name.replace("_", ".")] = entry
    (run / "manifest.json").write_text(json.dumps(manifest))


def refused(run, words):
    with pytest.raises(ValueError, match=words) as told:
        check_folder(run)
    assert "\n" not in str(told.value)


def test_what_was_saved_is_read(run):
    files = Folder(run)
    files.check()
    assert files.read_json("progress.json") == {"step": 3}
    assert torch.equal(files.tensors("model.safetensors")["w"], torch.arange(7.0))


@pytest.mark.parametrize("name", ["unlisted.json", "../progress.json", "manifest.json", ""])
def test_a_file_that_is_not_listed_is_not_read(name, run):
    (run / "unlisted.json").write_text("{}")
    for read in (Folder(run).read, Folder(run).tensors):
        with pytest.raises(ValueError, match=r"manifest\.json does not list .*not read"):
            read(name)


@pytest.mark.parametrize("place", range(0, 84, 7))
def test_one_flipped_bit_is_noticed(place, run):
    content = bytearray((run / "model.safetensors").read_bytes())
    content[place] ^= 1
    (run / "model.safetensors").write_bytes(content)
    refused(run, r"model\.safetensors is damaged")
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        Folder(run).tensors("model.safetensors")
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        Folder(run).read("model.safetensors")


def test_a_missing_file_is_named(run):
    (run / "progress.json").unlink()
    refused(run, r"incomplete: progress\.json is missing")


def test_a_folder_from_a_newer_version_is_refused(run):
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
    refused(run, "newer regard")


@pytest.mark.parametrize(
    "content",
    [[], {}, {"version": "1"}, {"version": 1}, {"version": 1, "files": []}, {"version": 0}, 3],
)
def test_what_is_no_manifest_is_called_none(content, run):
    (run / "manifest.json").write_text(json.dumps(content))
    refused(run, r"manifest\.json is not a manifest of regard")


def test_a_manifest_that_lists_nothing_proves_nothing(run):
    (run / "manifest.json").write_text('{"version": 1, "files": {}}')
    refused(run, r"manifest\.json lists no files")


@pytest.mark.parametrize(
    "entry",
    [
        *(3, None, [], {}, {"bytes": 84}, {"sha256": "…"}, {"bytes": "84", "sha256": ""}),
        *({"bytes": 84.0, "sha256": ""}, {"bytes": True, "sha256": ""}),
        *({"bytes": -1, "sha256": ""}, {"bytes": 84, "sha256": 5}),
    ],
)
def test_an_entry_that_says_too_little_proves_nothing(entry, run):
    listing(run, model_safetensors=entry)
    refused(run, r"does not say the bytes and the sha256 of model\.safetensors")


@pytest.mark.parametrize(
    "name",
    ["../outside", "..", ".", "", "/etc/passwd", "inside/file", "./progress.json", "a\0b", "run/"],
)
def test_a_name_that_leads_elsewhere_is_refused(name, run, tmp_path):
    (tmp_path / "outside").write_text("outside")
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["files"][name] = {"bytes": 7, "sha256": "0" * 64}
    (run / "manifest.json").write_text(json.dumps(manifest))
    refused(run, "not the name of a file in its folder")


@pytest.mark.parametrize("name", ["model.safetensors", "manifest.json"])
@pytest.mark.parametrize("leads", ["inside", "outside"])
def test_no_link_is_followed_wherever_it_leads(name, leads, run, tmp_path):
    target = (run if leads == "inside" else tmp_path) / "target"
    (run / name).rename(target)
    (run / name).symlink_to(target)
    refused(run, rf"{name} is a link, and regard follows none")


@pytest.mark.parametrize("name", ["model.safetensors", "manifest.json"])
def test_a_pipe_is_not_waited_for(name, run):
    (run / name).unlink()
    os.mkfifo(run / name)
    refused(run, rf"{name} is not a regular file")


def test_a_folder_is_no_file(run):
    (run / "progress.json").unlink()
    (run / "progress.json").mkdir()
    refused(run, r"progress\.json is not a regular file")


def test_a_file_of_another_size_is_not_read(run, monkeypatch):
    (run / "model.safetensors").write_bytes(b"0" * 10_000)
    monkeypatch.setattr("regard.checkpoints.reading.digest", lambda file, size: pytest.fail())
    refused(run, r"model\.safetensors is damaged")


def test_sizes_are_looked_at_before_anything_is_hashed(run, monkeypatch):
    (run / "progress.json").unlink()  # listed behind the weights
    monkeypatch.setattr("regard.checkpoints.reading.digest", lambda file, size: pytest.fail())
    refused(run, r"progress\.json is missing")


def test_a_text_that_no_text_is_as_long_as_is_not_read(run):
    with (run / "manifest.json").open("wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no room on the disk
    refused(run, r"manifest\.json has 1\.1 TB, and regard reads up to 1\.0 MB of such files")
    with pytest.raises(ValueError, match=r"progress\.json has 15 bytes, and .* up to 11 bytes"):
        write_manifest(run)
        Folder(run).read("progress.json", max_bytes=11)


@pytest.mark.parametrize("depth", [33, 500, 900, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_json_nested_too_deeply_is_said_in_one_line(depth, opening, closing, tmp_path):
    content = opening * depth + "1" + closing * depth
    with pytest.raises(ValueError, match=r"x\.json is nested too deeply: more than 32 levels$"):
        parse_json(content.encode(), tmp_path / "x.json")


@pytest.mark.parametrize("depth", [33, 250, 900, 5_000])
@pytest.mark.parametrize(
    "written",
    [
        lambda depth: "a = " + "[" * depth + "]" * depth,
        lambda depth: "a = " + "{a = " * depth + "1" + "}" * depth,
        lambda depth: "a." * depth + "a = 1",
        lambda depth: "[" + "a." * depth + "a]",
    ],
)
def test_toml_nested_too_deeply_is_said_in_one_line(depth, written, tmp_path):
    with pytest.raises(ValueError, match=r"x\.toml is nested too deeply: more than 32 levels$"):
        parse_toml(written(depth).encode(), tmp_path / "x.toml")


def test_what_is_nested_within_reason_is_read(tmp_path):
    content = "[" * 32 + "]" * 32
    assert parse_json(content.encode(), tmp_path) == json.loads(content)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"9" * 5000, b"nan", b'"\xed\xa0\x80"'])
def test_what_is_no_json_is_said_in_one_line(content, tmp_path):
    with pytest.raises(ValueError, match=r"x\.json is damaged: it is not JSON$"):
        parse_json(content, tmp_path / "x.json")


@pytest.mark.parametrize("content", [b"=", b"\xff", b"a = " + b"9" * 5000])
def test_what_is_no_toml_is_said_in_one_line(content, tmp_path):
    with pytest.raises(ValueError, match=r"x\.toml is not TOML: .+") as told:
        parse_toml(content, tmp_path / "x.toml")
    assert "\n" not in str(told.value)


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack("<Q", 2**62) + b"{}",
        safetensors([]),
        safetensors(b'{"a":' * 5_000),
        safetensors(b'{"\xff": 1}'),
        safetensors({"a": entry([1], 0, 4), "b": entry([1], 0, 4)}, bytes(4)),  # overlapping
        safetensors({"a": entry([1], 4, 8)}, bytes(8)),  # a gap
        safetensors({"a": entry([2], 0, 4)}, bytes(4)),
        safetensors({"a": entry([2**40, 2**40], 0, 4)}, bytes(4)),
        safetensors({"a": entry([-1], 0, 4)}, bytes(4)),
        safetensors({"a": entry([8], 0, 6, "F6_E2M3")}, bytes(6)),
        safetensors({"a": entry([1], 0, 4, "PICKLE")}, bytes(4)),
    ],
)
def test_what_is_no_safetensors_is_said_in_one_line(content, tmp_path):
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.safetensors is damaged: .+") as told:
        read_tensors(tmp_path / "x.safetensors")
    assert "\n" not in str(told.value)
    with pytest.raises(ValueError, match=r".+") as told:
        parse_tensors(content)
    assert "\n" not in str(told.value)


def test_a_link_in_a_folder_that_is_written_to_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "record.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(ValueError, match=r"record\.jsonl is a link"):
        refuse_links(tmp_path / "run")
