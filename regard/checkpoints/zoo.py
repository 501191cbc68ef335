"""Runs by name: the zoo, a folder of finished run folders.

$REGARD_ZOO               a folder that holds run folders, if you set it
zoo/regard_zoo            beside the package, in a checkout of the repository
the package regard_zoo    where `pip install ./zoo` put it; it is found and not imported

A name in several of them is that of the first.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from regard.checkpoints.reading import MANIFEST
from regard.naming import suggest

PACKAGE = "regard_zoo"
CHECKOUT = Path(__file__).parents[2] / "zoo" / PACKAGE
INSTALL = "`pip install ./zoo`, from regard's repository, brings trained models by name"


def find_run(run: str | Path) -> Path:
    """The folder of a run: the one at this path, else the zoo's of this name.

    Where there is neither, the path comes back as it was: `hint_at_zoo` says what to do.
    """
    path = Path(run)
    return path if path.exists() else zoo_runs().get(str(run), path)


def hint_at_zoo(run: Path) -> str:
    """What may have been meant by a name that is no folder; nothing about a longer path."""
    if run.name != str(run) or run.exists():
        return ""
    runs = zoo_runs()
    return f", and none in the zoo; {suggest(run, runs)}" if runs else f"; {INSTALL}"


def zoo_runs() -> dict[str, Path]:
    """Name → run folder, of every zoo there is, in the order of their names."""
    found: dict[str, Path] = {}
    for zoo in zoo_folders():
        for manifest in zoo.glob(f"*/{MANIFEST}"):
            if not manifest.parent.name.startswith("."):  # one that is being written
                found.setdefault(manifest.parent.name, manifest.parent)
    return dict(sorted(found.items()))


def zoo_folders() -> list[Path]:
    """The folders that hold run folders, those that win first."""
    folders = []
    if given := os.environ.get("REGARD_ZOO"):
        if not Path(given).is_dir():
            raise ValueError(f"$REGARD_ZOO ({given!r}) must be a folder of run folders")
        folders.append(Path(given))
    spec = find_spec(PACKAGE)
    installed = [] if spec is None else spec.submodule_search_locations or []
    return [*folders, CHECKOUT, *map(Path, installed)]
