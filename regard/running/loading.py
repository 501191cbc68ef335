"""Open a run folder, or a Hugging Face folder as it is, from whoever it comes."""

from __future__ import annotations

import os
from pathlib import Path

from regard.checkpoints.hugging_face import HuggingFaceFolder
from regard.checkpoints.reading import MANIFEST
from regard.checkpoints.zoo import find_run, hint_at_zoo
from regard.running.importing import load_hugging_face
from regard.running.run import Run
from regard.training.finished import open_finished


def load(run: str | Path) -> Run:
    """The model of a run folder, of one in the zoo by its name, or of a Hugging Face folder.

    The folder may come from a stranger: nothing in it is run, and each file of a run is read only
    as the manifest lists it. Torch's generator is left as it was.
    """
    folder = find_run(run)
    if not folder.is_dir():
        raise ValueError(f"no run folder at {folder}{hint_at_zoo(folder)}")
    if not os.path.lexists(folder / MANIFEST):
        if HuggingFaceFolder.is_at(folder):
            return load_hugging_face(HuggingFaceFolder(folder))
        begun = (folder / "recipe.toml").is_file()
        hint = "; `regard train … --resume` goes on with it" if begun else ""
        raise ValueError(
            f"{folder} is not a finished run: {MANIFEST} is missing{hint}"
            f"{'' if begun else ', and so is the config.json of a Hugging Face folder'}"
        )
    held = open_finished(folder)
    return Run(folder, held.recipe, held.task, held.resources, held.model)
