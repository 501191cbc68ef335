"""python -m benchmarks.results: docs/results.md from the run records under results/.

python -m benchmarks.results --keep RUN … adds the records of finished runs first: recipe, record
and evaluation, on test data too where the recipe has some and they are there; never weights.
"""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from pathlib import Path
from statistics import mean
from typing import Any

from regard.checkpoints.zoo import CHECKOUT
from regard.models.ngram import Ngram
from regard.running import Run, load

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
HEAD = """# Results

Made by `python -m benchmarks.results` from the records in `results/`: each row is one run of a
shipped recipe on 2 cores, scored by `regard evaluate`: on validation data, and on the test data of
the recipe where they are at hand.

| recipe | score | on test | expected | minutes | steps | signature |
|---|---|---|---|---|---|---|
"""
LANGUAGE_MODELS = """
## Language models on the Penn Treebank

Perplexity on the validation text: 73,760 words, sentence ends among them, each predicted. The
parameters of an n-gram model are the n-grams it has counted. The last column is the share of
attention that falls on the last five words a position may see.

| recipe | model | parameters | perplexity | on the last five |
|---|---|---|---|---|
"""
LUONG = """
## Luong's table, on number names

Made by `python -m benchmarks.luong`: `numbers-luong` trained once for each cell, with the same data
and as many steps. Exact match on 1,000 test numbers; alignment error rate of the strongest weight
against the gold of the morphemes, on 300 of them. One morpheme in six answers to nothing and is
linked all the same, so that an attention that is always right has 0.089.

| score | scope | input feeding | exact match | AER | minutes |
|---|---|---|---|---|---|
"""
ELMO_MIX = """
## The layers of a small ELMo, for sentiment

Made by `python -m benchmarks.elmo_mix`: `sst2-elmo` on the frozen language model of
`wikitext2-elmo`, three seeds each. Accuracy on the 872 development sentences of SST-2, with the
last weights; one standard error is 1.5 points. The shape of the classifier, its rate and its
dropout were chosen among eight settings on the same sentences, with earlier weights of the language
model and one seed, so the figures may be a little too high. The mix is the share of each layer: the
words' own vectors, the first and the second.

| reads | accuracy, mean | of each seed | mix |
|---|---|---|---|
"""
BACKPACKS = """
## Backpack and plain Transformer on WikiText-2

Perplexity on the validation text, in words: 10,000 lower-cased ones, the others unknown. Both
have the same Transformer and are trained on the same tokens in the same order.

| recipe | model | parameters | perplexity |
|---|---|---|---|
"""
SENSES = """
Made by `python -m benchmarks.senses`: each sense of {words} words of the validation text is
switched off where the text ends in that word. Log-probabilities of the next word move by so much
(mean over words ± standard error) for the ten words that the sense names, and for ten that the
other {others} senses name. The last column: of how many words the named fall more than the others.

| named by this sense | named by the others | difference | effect size | words |
|---|---|---|---|---|
| {named} | {beside} | {difference} | {effect_size:.2f} | {words_as_said} of {words} |

SimLex-999, Spearman's ρ of cosines with what people say, over the {pairs} of {of} pairs whose words
are known:

| vectors | ρ |
|---|---|
"""
LENGTHS = """
## Translation by sentence length

Made by `python -m benchmarks.lengths`: BLEU with beam 5 on English sentences into German, put
together by the words of the source. `multi30k-seq2seq` has no attention.

![BLEU by sentence length](pictures/bleu-by-length.svg)

"""
ZOO = """
## The zoo

What `regard zoo` lists is stored in half precision. Both figures are from the same run, on the same
validation data: as it was trained, and as it is stored and loaded again.

| name | as trained | as stored (half precision) | size |
|---|---|---|---|
"""


def keep(run: Path) -> None:
    """Copy what can be committed of a run, and evaluate it."""
    loaded = load(run)
    seed = loaded.recipe.seed  # shipped recipes have 1
    place = RESULTS / (loaded.recipe.name if seed == 1 else f"{loaded.recipe.name}-seed{seed}")
    place.mkdir(parents=True, exist_ok=True)
    for name in ("recipe.toml", "record.jsonl"):
        shutil.copy(run / name, place / name)
    values = {**loaded.evaluate(), "parameters": parameters(loaded.model)}
    test = evaluate_test(loaded)
    if test is not None:
        values["test"] = test
    (place / "evaluation.json").write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def evaluate_test(run: Run) -> dict[str, Any] | None:
    """The metrics on the test split; None where its files are not at hand."""
    try:
        return run.evaluate("test")
    except ValueError:  # no data.test, or a split that is held out
        return None


def parameters(model: Any) -> int:
    """The numbers a model has learned; of an n-gram model, the n-grams."""
    if isinstance(model, Ngram):
        return sum(len(level.keys) - 1 for level in model.levels)
    return sum(weight.numel() for weight in model.parameters())


def read(place: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The recipe and the evaluation."""
    recipe = tomllib.loads((place / "recipe.toml").read_text(encoding="utf-8"))
    return recipe, json.loads((place / "evaluation.json").read_text(encoding="utf-8"))


def row(place: Path) -> str:
    recipe, values = read(place)
    record = [json.loads(line) for line in (place / "record.jsonl").read_text().splitlines()]
    (metric, expected), *_ = recipe["evaluation"]["expected"].items()
    # An evaluation tells its own seconds; steps tell those since the run began.
    told = [line for line in record if line["event"] == "train"] or record
    seconds = max(line.get("seconds", 0) for line in told)
    steps = max(line["step"] for line in record)
    threads = record[-1].get("threads", 2)
    cells = [
        f"`{place.name}`",
        f"{metric} {values[metric]:.4g}",
        f"{values['test'][metric]:.4g}" if "test" in values else "",
        f"{expected:g}",
        f"{seconds / 60:.1f}" + (" on one core" if threads == 1 else ""),
        f"{steps:,}",
        f"`{values['signature']}`".replace("|", "\\|"),
    ]
    return f"| {' | '.join(cells)} |\n"


def language_models(places: list[Path]) -> str:
    """Every language model of the Penn Treebank, the best one last."""
    found = [(place.name, *read(place)) for place in places if place.name.startswith("ptb-")]
    rows = []
    for name, recipe, values in sorted(found, key=lambda each: -float(each[2]["perplexity"])):
        model = recipe["model"]
        kind = f"{model['name']} ({model['kind']})" if "kind" in model else model["name"]
        near = f"{values['on_last_five']:.0%}" if "on_last_five" in values else ""
        size = f"{values['parameters']:,}"
        rows.append(f"| `{name}` | {kind} | {size} | {values['perplexity']:.1f} | {near} |\n")
    return LANGUAGE_MODELS + "".join(rows)


def luong() -> str:
    """Luong's table, a line for each cell."""
    table = RESULTS / "luong" / "table.json"
    if not table.is_file():
        return ""
    cells = json.loads(table.read_text(encoding="utf-8"))
    return LUONG + "".join(luong_line(cell) for cell in cells)


def luong_line(cell: dict[str, Any]) -> str:
    feeding = "yes" if cell["input_feeding"] else "no"
    numbers = f"{cell['exact_match']:.1%} | {cell['aer']:.3f} | {cell['minutes']:.1f}"
    return f"| {cell['score']} | {cell['scope']} | {feeding} | {numbers} |\n"


def elmo_mix() -> str:
    """What each way to read the layers of an ELMo comes to."""
    table = RESULTS / "elmo_mix" / "table.json"
    if not table.is_file():
        return ""
    cells = json.loads(table.read_text(encoding="utf-8"))
    variants = dict.fromkeys(cell["variant"] for cell in cells)
    return ELMO_MIX + "".join(
        elmo_mix_line(variant, [cell for cell in cells if cell["variant"] == variant])
        for variant in variants
    )


def elmo_mix_line(variant: str, cells: list[dict[str, Any]]) -> str:
    accuracies = [cell["accuracy"] for cell in cells]
    shares = [mean(each) for each in zip(*(cell["mix"] for cell in cells), strict=True)]
    each = ", ".join(f"{accuracy:.1%}" for accuracy in accuracies)
    mix = ", ".join(f"{share:.2f}" for share in shares)
    return f"| {variant} | {mean(accuracies):.1%} | {each} | {mix} |\n"


def backpacks(places: list[Path]) -> str:
    """The Backpack beside the plain Transformers, and what its senses do."""
    found = [place for place in places if place.name.startswith("wikitext2-backpack")]
    if not found:
        return ""
    rows = []
    for place in found:
        recipe, values = read(place)
        numbers = f"{values['parameters']:,} | {values['perplexity']:.1f}"
        rows.append(f"| `{place.name}` | {recipe['model']['name']} | {numbers} |\n")
    measured = sorted((RESULTS / "senses").glob("*.json"))
    tables = [senses_table(json.loads(path.read_text(encoding="utf-8"))) for path in measured]
    return BACKPACKS + "".join(rows) + "".join(tables)


def senses_table(found: dict[str, Any]) -> str:
    """What `benchmarks.senses` found."""
    effect, simlex = found["effect"], found["simlex"]

    def show(value: dict[str, float]) -> str:
        return f"{value['mean']:+.3f} ± {value['error']:.3f}"

    head = SENSES.format(
        words=effect["words"],
        others=effect["senses"] - 1,
        named=show(effect["named"]),
        beside=show(effect["others"]),
        difference=show(effect["difference"]),
        effect_size=effect["effect_size"],
        words_as_said=effect["words_as_said"],
        pairs=simlex["pairs"],
        of=simlex["of"],
    )
    rows = [(f"sense {n}", rho) for n, rho in enumerate(simlex["by_sense"])]
    rows += [("least like of all senses", simlex["least_of_senses"])]
    rows += [("embeddings of the Backpack", simlex["embeddings"])]
    if "plain_embeddings" in simlex:
        rows.append(("embeddings of the plain Transformer", simlex["plain_embeddings"]))
    return head + "".join(f"| {name} | {rho:+.3f} |\n" for name, rho in rows)


def lengths() -> str:
    """BLEU by sentence length, a line for each translator."""
    table = RESULTS / "lengths" / "table.json"
    if not table.is_file():
        return ""
    rows = json.loads(table.read_text(encoding="utf-8"))
    words = " | ".join(f"{mean:.1f} words" for mean in rows[0]["words"])
    counts = " | ".join(f"{count:,}" for count in rows[0]["sentences"])
    lines = [
        f"| recipe | parameters | all | {words} |",
        "|" + "---|" * (3 + len(rows[0]["words"])),
        f"| *sentences* |  | {sum(rows[0]['sentences']):,} | {counts} |",
    ]
    for row in rows:
        scores = " | ".join(f"{score:.1f}" for score in row["bleu"])
        lines.append(f"| `{row['recipe']}` | {row['parameters']:,} | {row['all']:.1f} | {scores} |")
    return LENGTHS + "\n".join(lines) + "\n"


def zoo(places: list[Path]) -> str:
    """Every run of the zoo, beside the run it was made from."""
    rows = []
    for place in places:
        stored = CHECKOUT / place.name
        if not (stored / "manifest.json").is_file():
            continue
        recipe, values = read(place)
        kept = read(stored)[1]
        (metric, _), *_ = recipe["evaluation"]["expected"].items()
        size = sum(file.stat().st_size for file in stored.iterdir()) / 1e6
        cells = f"{metric} {values[metric]:.5g} | {metric} {kept[metric]:.5g} | {size:.1f} MB"
        rows.append(f"| `{place.name}` | {cells} |\n")
    return ZOO + "".join(rows) if rows else ""


def write_page() -> str:
    """docs/results.md, and its text."""
    places = sorted(path.parent for path in RESULTS.glob("*/evaluation.json"))
    page = HEAD + "".join(row(place) for place in places) + language_models(places)
    page += luong() + lengths() + elmo_mix() + backpacks(places) + zoo(places)
    (ROOT / "docs" / "results.md").write_text(page, encoding="utf-8")
    return page


def main() -> None:
    if sys.argv[1:2] == ["--keep"]:
        for run in sys.argv[2:]:
            keep(Path(run))
    print(write_page())


if __name__ == "__main__":
    main()
