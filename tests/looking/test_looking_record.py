import hashlib
import json
import os

import pytest
import torch
from safetensors import safe_open

from regard.attention import Label, Look
from regard.looking import Looks


@pytest.fixture
def saved(small, tmp_path):
    Looks([small]).save(tmp_path / "x.json")
    return tmp_path / "x.json"


def changed(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


def same(first, second):
    masks = first.mask, second.mask
    return (
        first == second
        and torch.equal(first.weights, second.weights)
        and (masks == (None, None) or torch.equal(*masks))
    )


def test_what_is_loaded_is_exactly_what_was_saved(small, heads, hostile, persian, tmp_path):
    image = Look.of_weights(
        torch.rand(1, 2, 15) / 3,
        kind="image",
        queries=[Label("dog"), Label("", 7, 7)],
        keys=[str(at) for at in range(15)],
        grid=(3, 5),
        steps=(4, 2),
    )
    looks = Looks([small, heads, hostile, persian, image])
    looks.save(tmp_path / "x.json")
    again = Looks.load(str(tmp_path / "x.json"))
    assert len(again) == 5
    assert all(same(*pair) for pair in zip(looks, again, strict=True))


def test_looks_that_share_their_numbers_can_be_saved_together(small, tmp_path):
    Looks([small, small]).save(tmp_path / "x.json")
    again = Looks.load(tmp_path / "x.json")
    assert same(again[0], small)
    assert same(again[1], small)


def test_the_weights_lie_beside_as_any_tool_can_read_them(saved, small):
    record = json.loads(saved.read_text())
    assert (record["format"], record["version"]) == ("regard-look", 2)
    assert record["weights"]["file"] == "x.safetensors"
    assert record["looks"][0]["keys"][1] == {"text": "y", "start": 2, "end": 3}
    with safe_open(saved.with_suffix(".safetensors"), "pt") as file:
        assert set(file.keys()) == {"0.weights", "0.mask"}
        assert torch.equal(file.get_tensor("0.weights"), small.weights)


def test_a_loaded_look_is_drawn_as_the_saved_one(saved, small, tmp_path):
    Looks([small]).save(tmp_path / "first.svg")
    Looks.load(saved).save(tmp_path / "second.svg")
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_a_newer_file_is_refused_with_both_versions(saved):
    with pytest.raises(ValueError, match=r"x\.json: version 3 is newer than 2"):
        Looks.load(changed(saved, version=3))
    with pytest.raises(ValueError, match=r"x\.json: version 1 is no longer read"):
        Looks.load(changed(saved, version=1))


@pytest.mark.parametrize("content", ['{"format": "something"}', "[1, 2]", "{}", "null"])
def test_a_foreign_file_is_refused(saved, content):
    saved.write_text(content)
    with pytest.raises(
        ValueError, match=r'x\.json: not a saved look: it has no "format": "regard-'
    ):
        Looks.load(saved)


def test_what_is_not_json_is_refused(saved):
    saved.write_bytes(b"\x89PNG\xff")
    with pytest.raises(ValueError, match=r"x\.json: not JSON"):
        Looks.load(saved)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"nothing\.json: .*No such file"):
        Looks.load(tmp_path / "nothing.json")


def test_missing_weights_are_named(saved):
    saved.with_suffix(".safetensors").unlink()
    with pytest.raises(ValueError, match=r"x\.json: .*x\.safetensors is missing"):
        Looks.load(saved)


def test_weights_of_another_look_are_noticed(saved, heads, tmp_path):
    Looks([heads]).save(tmp_path / "y.json")
    (tmp_path / "y.safetensors").replace(tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match=r"x\.safetensors is not the file it was saved with"):
        Looks.load(saved)


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "", ".."])
def test_a_record_cannot_reach_out_of_its_folder(saved, name):
    weights = {"file": name, "sha256": "0"}
    with pytest.raises(ValueError, match=r"must be the name of a file beside it"):
        Looks.load(changed(saved, weights=weights))


def test_a_damaged_record_is_refused_with_the_place(saved):
    looks = json.loads(saved.read_text())["looks"]
    del looks[0]["keys"][1]["text"]
    with pytest.raises(ValueError, match=r"x\.json: looks\.0\.keys\.1\.text: Field required"):
        Looks.load(changed(saved, looks=looks))


def test_a_key_nobody_knows_is_refused_rather_than_lost(saved):
    with pytest.raises(ValueError, match=r"x\.json: colour: Extra inputs are not permitted"):
        Looks.load(changed(saved, colour="blue"))


def test_labels_that_do_not_fit_the_weights_are_refused(saved):
    looks = json.loads(saved.read_text())["looks"]
    looks[0]["keys"].pop()
    with pytest.raises(
        ValueError, match=r"looks\.0: its weights are of shape \(1, 2, 3\), and 1 head"
    ):
        Looks.load(changed(saved, looks=looks))


def test_more_looks_than_weights_are_refused(saved):
    looks = json.loads(saved.read_text())["looks"]
    with pytest.raises(ValueError, match=r"looks\.1: its weights are missing"):
        Looks.load(changed(saved, looks=looks * 2))


def test_a_kind_nobody_knows_is_refused(saved):
    looks = json.loads(saved.read_text())["looks"]
    looks[0]["kind"] = "sideways"
    with pytest.raises(ValueError, match=r"x\.json: .*'sideways'"):
        Looks.load(changed(saved, looks=looks))


def refused(path, words):
    with pytest.raises(ValueError, match=words) as told:
        Looks.load(path)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"format":' * 100_000, "9" * 5_000])
def test_a_record_nested_too_deeply_is_refused_in_one_line(saved, content):
    saved.write_text(content)
    refused(saved, r"x\.json: (nested too deeply|not JSON)")


def test_weights_behind_a_link_are_not_read(saved, tmp_path):
    (tmp_path / "x.safetensors").rename(tmp_path / "y.safetensors")
    (tmp_path / "x.safetensors").symlink_to("y.safetensors")
    refused(saved, r"x\.safetensors is a link, and regard follows none")


def test_weights_from_a_pipe_are_not_waited_for(saved, tmp_path):
    (tmp_path / "x.safetensors").unlink()
    os.mkfifo(tmp_path / "x.safetensors")
    refused(saved, r"x\.safetensors is not a regular file")


def test_a_file_larger_than_its_looks_is_not_read(saved, tmp_path):
    with (tmp_path / "x.safetensors").open("ab") as file:
        file.truncate(1 << 40)  # a hole: it takes no room on the disk
    refused(saved, r"x\.safetensors has 1\.1 TB, and regard reads up to [\d,]+ bytes of such files")


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ("I32", r"looks\.0: its weights are torch\.int32, and should be float32"),
        ("C64", r"looks\.0: its weights are torch\.complex64, and should be float32"),
        ("F8_E8M0", r"x\.safetensors holds no safetensors .*F8_E8M0"),
    ],
)
def test_numbers_of_another_type_are_refused(saved, tmp_path, dtype, words):
    size = {"I32": 24, "C64": 48, "F8_E8M0": 6}[dtype]
    entry = {"dtype": dtype, "shape": [1, 2, 3], "data_offsets": [0, size]}
    header = json.dumps({"0.weights": entry}).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(size)
    (tmp_path / "x.safetensors").write_bytes(content)
    weights = {"file": "x.safetensors", "sha256": hashlib.sha256(content).hexdigest()}
    refused(changed(saved, weights=weights), words)


def test_ten_thousand_small_looks_are_read_again(tmp_path):
    look = Look.of_weights(
        torch.ones(1, 1, 1), queries=["a"], keys=["b"], mask=torch.ones(1, 1) > 0
    )
    Looks([look] * 10_000).save(tmp_path / "x.json")
    assert len(Looks.load(tmp_path / "x.json")) == 10_000
