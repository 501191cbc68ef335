"""AllenNLP's ELMo as a run folder."""

from __future__ import annotations

from pathlib import Path

from regard.checkpoints.allennlp import read_elmo
from regard.checkpoints.folders import new_folder, write_tensors
from regard.running.loading import WEIGHTS, load
from regard.running.run import Run
from regard.training.recipe import check, write_recipe


def import_elmo(place: Path, out: Path) -> Run:
    """Write a folder with `options.json` and HDF5 weights as a run folder, and open it.

    It has no tokenizer, since no word is unknown to it, and no softmax: it embeds words.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} is not empty; name a folder that is not there yet")
    settings, weights = read_elmo(place)
    recipe = check(
        {
            "name": place.resolve().name,
            "task": {"kind": "bidirectional-language-model"},
            "model": {"name": "elmo", **settings},
            "training": {"epochs": 1},  # of no run that ever was
        },
        str(place),
    )
    with new_folder(out) as built:
        (built / "recipe.toml").write_bytes(write_recipe(recipe))
        write_tensors(built / WEIGHTS, weights)
    return load(out)
