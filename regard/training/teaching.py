"""Other runs as teachers: what they answer to the training data is learned from, too.

[data]
taught_by = ["runs/teacher", "multi30k-bahdanau"]    run folders, or names of the zoo

A teacher's answer is the one it thinks likeliest, so that there is less to be learned by heart
than in what people wrote, and several teachers differ where people would.

Kim & Rush (2016), "Sequence-level knowledge distillation", section 3.2; beside the references, and
from teachers no larger than the pupil: Nguyen, Joty, Wu & Aw (2020), "Data diversification".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from regard.atomic import write_atomically
from regard.checkpoints.reading import MANIFEST, read_regular
from regard.checkpoints.zoo import find_run, hint_at_zoo
from regard.config import Recipe
from regard.tasks import make_task
from regard.tasks.answering import BoundVerb
from regard.training.finished import open_finished
from regard.training.loop import Report
from regard.training.placement import Placement

ANSWERS = "taught.jsonl"
"""Where a run folder keeps the answers: a resumed run learns from the same ones, and anybody may
read them."""
MAX_ANSWERS_BYTES = 1 << 32


def ask_teachers(
    recipe: Recipe, folder: Path, placement: Placement, resume: bool, report: Report
) -> list[str]:
    """What the teachers answer to the training data, one after the other; none without teachers."""
    if not recipe.data.taught_by:
        return []
    place = folder / ANSWERS
    if placement.first and not (resume and place.is_file()):
        task = make_task(recipe)
        questions = task.questions(task.read("train"))
        lines = []
        for name in recipe.data.taught_by:
            report("note", {"text": f"{name} answers {len(questions):,} questions"})
            answers = ask(name, questions, task.teaching_verb)
            lines += [
                json.dumps({"teacher": name, "answer": each}, ensure_ascii=False)
                for each in answers
            ]
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(place, "".join(f"{line}\n" for line in lines).encode())
    placement.barrier()
    content = read_regular(place, MAX_ANSWERS_BYTES).decode()
    # Not splitlines: JSON leaves characters such as U+2028 as they are, at which that would split.
    return [json.loads(line)["answer"] for line in content.rstrip("\n").split("\n")]


def ask(name: str, questions: Sequence[str], verb: str) -> list[str]:
    """The answers of one run, decoded as its own recipe says."""
    folder = find_run(name)
    if not (folder / MANIFEST).is_file():
        raise ValueError(
            f"data.taught_by ({name!r}) must be the folder of a finished run, or one's name in the "
            f"zoo{hint_at_zoo(folder)}"
        )
    teacher = open_finished(folder)
    verbs = teacher.task.verbs()
    if verb not in verbs:
        kind = teacher.recipe.task["kind"]
        raise ValueError(f"data.taught_by ({name!r}) is a run of {kind}, which does not {verb}")
    action = verbs[verb](teacher.task, teacher.model, teacher.resources)
    return [each.output for each in BoundVerb(action, verb, {}).answers(questions)]
