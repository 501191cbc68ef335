"""python docs/settings.py makes docs/settings.md: every key of a recipe, from the dataclasses that
check them.

What a key means is the comment beside it in the code, so that the two cannot drift apart; a test
holds the page to this script.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import textwrap
import tokenize
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from regard.config import EvaluationConfig, ScheduleConfig, TrainingConfig
from regard.data.config import DataConfig
from regard.decoding.config import DecodingConfig
from regard.models.catalog import MODELS
from regard.tasks.catalog import TASKS, find_task
from regard.text import TextConfig

PAGE = Path(__file__).parent / "settings.md"
HEAD = """# Settings

Every key of a [recipe](training.md#recipes) with its default. `--set section.key=value` overrides
one; a key that is not here is refused with the nearest that is. Sizes that follow from the data, as
`vocabulary_size` of a model and `classes`, are not set. `seed` (1) stands at the top.
"""
SECTIONS: dict[str, tuple[type, str]] = {
    "data": (DataConfig, "Where examples come from."),
    "text": (TextConfig, "How strings become tokens: [text](text.md)."),
    "training": (TrainingConfig, "How it is learned: [training](training.md)."),
    "training.schedule": (ScheduleConfig, "How the rate changes."),
    "decoding": (DecodingConfig, "How the next word is chosen: [decoding](decoding.md)."),
    "evaluation": (EvaluationConfig, "What a run is judged by, and what to expect."),
}
TASK = """
## [task]

`kind` is one of {kinds}: [tasks](tasks.md).
"""
MODEL = """
## [model]

`name` says which model; `preset` a row of its paper's table, under the other keys; `from` a run, a
folder of Hugging Face or a name of the [zoo](zoo.md) to start from, `fresh` a list of the weights
that start anew all the same. What each model is: [models](models.md).
"""
TABLE = "\n| key | default | |\n|---|---|---|\n"
RENAMED = {"from_run": "from"}  # Python has other plans for the word


def make_page() -> str:
    """The text of docs/settings.md."""
    page = HEAD + TASK.format(kinds=", ".join(f"`{kind}`" for kind in TASKS))
    sizes = {size for kind in TASKS for size in find_task(kind).size_names}
    for kind in TASKS:
        config = find_task(kind).config
        if fields(config):
            page += f"\n### {kind}\n" + table(config)
    for name, (config, about) in SECTIONS.items():
        page += f"\n## [{name}]\n\n{about}\n" + table(config)
    page += MODEL
    for name, entry in MODELS.items():
        page += f"\n### {name}\n"
        presets = getattr(entry.config, "presets", {})
        if presets:
            page += f"\nPresets: {', '.join(f'`{preset}`' for preset in presets)}.\n"
        page += table(entry.config, sizes | {"source_vocabulary_size"})
    return page


def table(config: type, left_out: set[str] | frozenset[str] = frozenset()) -> str:
    """A line for each key of a config."""
    meanings, hints = comments_of(config), get_type_hints(config)
    lines = []
    for field in fields(config):
        if field.name in left_out:
            continue
        cells = (
            f"`{RENAMED.get(field.name, field.name)}`",
            default_of(field),
            "; ".join(part for part in (choices(hints[field.name]), meanings[field.name]) if part),
        )
        lines.append(f"| {' | '.join(cells)} |\n")
    return TABLE + "".join(lines)


def default_of(field: Field[Any]) -> str:
    """As a recipe would write it; – where there is none, or None."""
    value = field.default
    if value is MISSING:
        value = None if field.default_factory is MISSING else field.default_factory()
    if value is None or is_dataclass(value) or value in ("", [], {}):
        return "–"
    return f"`{json.dumps(value)}`"


def choices(hint: Any) -> str:
    """The words that may stand there, if it is one of a few."""
    if get_origin(hint) is not Literal:
        return ""
    return ", ".join(f"`{json.dumps(word)}`" for word in get_args(hint))


def comments_of(config: type) -> dict[str, str]:
    """What is written beside each field, or right above it, in the class that declares it."""
    found: dict[str, str] = {field.name: "" for field in fields(config)}
    for owner in reversed(config.__mro__):
        if not is_dataclass(owner):
            continue
        source = textwrap.dedent(inspect.getsource(owner))
        told = {
            token.start: token.string.lstrip("# ")
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type == tokenize.COMMENT
        }
        beside = {line: comment for (line, column), comment in told.items() if column > 4}
        above = {line: comment for (line, column), comment in told.items() if column == 4}
        (tree,) = ast.parse(source).body
        assert isinstance(tree, ast.ClassDef)
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                lines = []
                line = node.lineno - 1
                while line in above:
                    lines.insert(0, above[line])
                    line -= 1
                found[node.target.id] = beside.get(node.end_lineno or 0, " ".join(lines))
    return found


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    print(PAGE)
