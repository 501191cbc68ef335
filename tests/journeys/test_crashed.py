"""A crash at every single touch of the disk, while a checkpoint is replaced and while a run ends.

Two ways to crash. A process that is killed leaves the disk as the system saw it. When the power
fails, only what was flushed is sure: of a file the content at its last fsync, of a folder the names
at its own. The rest may be there or not. Here it is as bad as it can be: what was written or moved
is not there if it was not flushed, and what was removed is gone.
"""

import json
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest
import torch

from regard.checkpoints import folders
from regard.checkpoints.folders import new_folder, recover, write_json, write_tensors
from regard.checkpoints.reading import check_folder, read_tensors
from regard.running import load
from regard.training import loop
from regard.training import train as training
from regard.training.loop import Training
from regard.training.saving import newest_checkpoint
from regard.training.train import train

CRASHED = 77
TOUCHES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree")


class Disk:
    """What is on the disk for good, file by file and folder by folder."""

    def __init__(self, root):
        self.root = root
        self.contents = {}  # of a file, by its number
        self.names = {}  # in a folder, by its number: name → number
        self.open = {}  # so that no number is given to another file
        self.removed = set()
        for place, inner, files in os.walk(root):
            for path in (Path(place), *(Path(place, name) for name in (*inner, *files))):
                self.flush(os.open(path, os.O_RDONLY))

    def flush(self, handle):
        path, number = Path(f"/proc/self/fd/{handle}").readlink(), self.hold(handle)
        if path.is_dir():
            entries = {p.name: os.open(p, os.O_RDONLY) for p in path.iterdir()}
            self.names[number] = {name: self.hold(entry) for name, entry in entries.items()}
        else:
            self.contents[number] = path.read_bytes()

    def hold(self, handle):
        number = os.fstat(handle).st_ino
        self.open.setdefault(number, os.dup(handle))
        return number

    def fail(self):
        """The power is gone: only what was flushed remains."""
        number = self.root.stat().st_ino
        shutil.rmtree(self.root)
        self.restore(self.root, number)

    def restore(self, path, number):
        if not stat.S_ISDIR(os.fstat(self.open[number]).st_mode):
            path.write_bytes(self.contents.get(number, b""))
            return
        path.mkdir()
        for name, inner in self.names.get(number, {}).items():
            if inner not in self.removed:
                self.restore(path / name, inner)


class Crash:
    """Counts the touches of a folder, and ends the process just before the one that is chosen."""

    def __init__(self, root, at, power):
        self.root, self.at, self.count, self.active = root, at, 0, False
        self.disk = Disk(root) if power else None
        self.save_file = folders.save_file
        sys.addaudithook(self.heard)
        os.fsync, folders.save_file = self.flushed, self.saved

    def touch(self):
        self.count += self.active
        if self.active and self.count == self.at:
            self.active = False
            if self.disk is not None:
                self.disk.fail()
            os._exit(CRASHED)

    def heard(self, event, arguments):
        writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if not self.active or not (writes or event in TOUCHES):
            return
        path = Path(arguments[0])
        removed = event in ("os.remove", "os.rmdir")
        if removed and arguments[1] != -1:  # one of a tree
            path = Path(f"/proc/self/fd/{arguments[1]}").readlink() / path
        if path.is_relative_to(self.root):
            self.touch()
            if removed and self.disk is not None:
                self.disk.removed.add(path.lstat().st_ino)

    def flushed(self, handle):
        self.touch()
        if self.disk is not None:
            self.disk.flush(handle)

    def saved(self, tensors, path, metadata=None):
        """Written in Rust, where nobody listens: the process may end when half of it is there."""
        self.touch()
        self.save_file(tensors, path, metadata)
        whole, active, self.active = path.read_bytes(), self.active, False
        path.write_bytes(whole[: len(whole) // 2])
        self.active = active
        self.touch()
        self.active = False
        path.write_bytes(whole)
        self.active = active

    def counting(self, function):
        """The function, with its touches counted."""

        def call(*given, **named):
            self.active = True
            try:
                return function(*given, **named)
            finally:
                self.active = False

        return call


def crashed(work, root, at, inside=(), power=False):
    """Do the work in a child which ends at its `at`-th touch of `root`; True if it came so far.

    Touches are counted inside of these functions, or from beginning to end if none is named.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            torch.set_num_threads(1)
            crash = Crash(root, at, power)
            for where, name in inside:
                setattr(where, name, crash.counting(getattr(where, name)))
            (work if inside else crash.counting(work))()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, CRASHED)
    return code == CRASHED


def outcome(folder):
    """Everything a run leaves, but for its times."""
    places = sorted((folder / "checkpoints").glob("step-*"))
    parts = {
        name: read_tensors(places[-1] / f"{name}.safetensors")
        for name in ("model", "optimizer", "extras")
    }
    parts["final"] = read_tensors(folder / "model.safetensors")
    # Copies: tensors that were read are those of the file, also when it is written over.
    tensors = {f"{part}/{k}": t.clone() for part, held in parts.items() for k, t in held.items()}
    lines = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    record = [{k: v for k, v in line.items() if k != "seconds"} for line in lines]
    return [place.name for place in places], record, tensors


def check_same(folder, whole):
    (places, record, tensors), (its_places, its_record, its_tensors) = outcome(folder), whole
    assert (places, record) == (its_places, its_record)
    assert tensors.keys() == its_tensors.keys()
    assert all(torch.equal(tensors[name], its_tensors[name]) for name in tensors)


def left_over(folder):
    return [path for path in folder.rglob(".*") if path.name.endswith(".part")]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    """What is flushed when is looked at above; that it takes time need not be proved."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class StoppedError(Exception):
    """What a test stops a run with."""


def stopped_before_its_end(path, folder, settings, monkeypatch):
    """A run that has saved its last step and has not chosen the weights to end with."""

    def stop(self):
        raise StoppedError

    with monkeypatch.context() as changed, pytest.raises(StoppedError):
        changed.setattr(Training, "finish", stop)
        train(path, folder, settings)


ENDING = {
    "replacing a checkpoint": [(loop, "save_checkpoint")],
    "ending a run": [(training, "close_folder")],
}
POINTS = {"replacing a checkpoint": 20, "ending a run": 10}  # at least, each in a run of its own


@pytest.mark.parametrize("power", [False, True], ids=["killed", "without power"])
@pytest.mark.parametrize(
    ("name", "keep", "average"),
    [("lstm", 1, 0), pytest.param("transformer", 2, 2, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("doing", ENDING)
def test_a_crash_at_any_touch_of_the_disk_loses_nothing(
    doing, name, keep, average, power, recipe, tmp_path, monkeypatch
):
    path = str(recipe(name))
    settings = ["training.steps=4", "training.evaluate_every=2", "training.save_every=1"]
    settings += [f"training.keep={keep}", f"training.average={average}"]
    train(path, tmp_path / "whole", settings)
    whole = outcome(tmp_path / "whole")
    stopped_before_its_end(path, tmp_path / "stopped", settings, monkeypatch)
    run, points = tmp_path / "run", 0

    def resume():
        train(path, run, settings, resume=True)

    while True:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(tmp_path / "stopped", run)
        if not crashed(resume, run, points + 1, ENDING[doing], power):
            break
        points += 1
        if (run / "manifest.json").exists():
            load(run)
        else:
            with pytest.raises(ValueError, match=r"is not a finished run: .* --resume"):
                load(run)
        found = newest_checkpoint(run / "checkpoints")
        assert found is not None
        assert found[0].progress.step == 4
        assert found[1] == []  # nothing damaged was passed over
        resume()
        load(run)
        check_same(run, whole)
        assert left_over(run) == []
    check_same(run, whole)
    assert points >= POINTS[doing]


def test_killed_and_without_power_these_are_more_than_fifty_moments():
    assert 2 * sum(POINTS.values()) >= 50


@pytest.mark.parametrize("power", [False, True], ids=["killed", "without power"])
def test_a_folder_that_is_replaced_is_there_before_and_after(power, tmp_path):
    root, points, seen = tmp_path / "root", 0, set()

    def replace(number):
        with new_folder(root / "place") as folder:
            write_tensors(folder / "model.safetensors", {"w": torch.full((7,), float(number))})
            write_json(folder / "progress.json", {"number": number})

    while True:
        shutil.rmtree(root, ignore_errors=True)
        replace(1)
        if not crashed(lambda: replace(2), root, points + 1, power=power):
            break
        points += 1
        recover(root)
        check_folder(root / "place")
        number = json.loads((root / "place" / "progress.json").read_text())["number"]
        assert read_tensors(root / "place" / "model.safetensors")["w"].tolist() == 7 * [number]
        assert [path.name for path in root.iterdir()] == ["place"]
        seen.add(number)
    assert seen == {1, 2}
    assert points >= 15


def test_a_finished_run_that_is_resumed_is_not_touched(recipe, tmp_path):
    path, run = str(recipe("lstm")), tmp_path / "run"
    train(path, run, ["training.steps=3"])
    shutil.rmtree(run / "checkpoints")  # who would, to have room on the disk
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in run.rglob("*") if p.is_file()}
    assert not crashed(lambda: train(path, run, ["training.steps=3"], resume=True), run, 1)
    after = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in run.rglob("*") if p.is_file()}
    assert after == before


def test_a_finished_run_that_was_damaged_is_mended_by_resuming(recipe, tmp_path):
    path, run = str(recipe("lstm")), tmp_path / "run"
    train(path, run, ["training.steps=3"])
    whole = outcome(run)
    (run / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="is damaged"):
        load(run)
    train(path, run, ["training.steps=3"], resume=True)
    load(run)
    check_same(run, whole)


@pytest.mark.slow
@pytest.mark.parametrize("power", [False, True], ids=["killed", "without power"])
def test_a_crash_at_any_moment_of_a_whole_run_can_be_resumed_or_begun_again(
    power, recipe, tmp_path
):
    path, settings = str(recipe("lstm")), ["training.steps=2", "training.save_every=1"]
    train(path, tmp_path / "whole", settings)
    whole, points = outcome(tmp_path / "whole"), 0
    root = tmp_path / "root"

    def begin():
        train(path, root / "run", settings)

    while True:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        if not crashed(begin, root, points + 1, power=power):
            break
        points += 1
        begun = (root / "run" / "recipe.toml").is_file()
        train(path, root / "run", settings, resume=begun)
        check_same(root / "run", whole)
        assert left_over(root) == []
    assert points >= 50
