"""The sections of docs/results.md behind its first table, made from the records in results/."""

from __future__ import annotations

import json
import tomllib
from math import exp
from pathlib import Path
from statistics import mean
from typing import Any

from regard.checkpoints.zoo import CHECKOUT
from regard.training.record import read_record

RESULTS = Path(__file__).parent.parent / "results"
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
BERTS = """
## A small BERT from raw text

Held-out pairs of WikiText-2, half of them with a second text that follows the first. The third
column is how often the commonest word of all would be right.

| recipe | hidden words guessed | the commonest word | follows or not |
|---|---|---|---|
"""
FINE_TUNED = """
Accuracy on the 872 development sentences of SST-2 (one standard error is 1.4 points), the same
network and words from what the BERT has learned and from random weights:

| seed | pretrained | from random weights | difference |
|---|---|---|---|
"""
BACKPACKS = """
## Backpack and plain Transformer on WikiText-2

Perplexity on the validation text, in words: 10,000 lower-cased ones, the others unknown. All are
trained on the same tokens in the same order; `-plain` is the Backpack's own Transformer without its
senses, `-matched` one of as many parameters.

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
TRANSLATORS = """
## Translators on image descriptions

The `tok` files of Multi30k, English into German (`-fr`: into French), beam 5, trained on 29,000
pairs. BLEU on val and on test_2016_flickr, perplexity of a unit of the reference on the latter;
units are those of a recipe, so that perplexities compare within one vocabulary only.

| recipe | model | parameters | units | BLEU, val | BLEU, test | perplexity, test | minutes |
|---|---|---|---|---|---|---|---|
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


def read(place: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The recipe and the evaluation."""
    recipe = tomllib.loads((place / "recipe.toml").read_text(encoding="utf-8"))
    return recipe, json.loads((place / "evaluation.json").read_text(encoding="utf-8"))


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


def translators(places: list[Path]) -> str:
    """Every translator of Multi30k, the best on validation data first."""
    found = [place for place in places if place.name.startswith("multi30k-")]
    read_all = [(place, *read(place)) for place in found if "test" in read(place)[1]]
    rows = sorted(read_all, key=lambda each: -float(each[2]["bleu"]))
    return TRANSLATORS + "".join(translator_line(*each) for each in rows) if rows else ""


def translator_line(place: Path, recipe: dict[str, Any], values: dict[str, Any]) -> str:
    model, test = recipe["model"], values["test"]
    kind = ", ".join(str(model[name]) for name in ("name", "score", "scope") if name in model)
    cells = [
        f"`{place.name}`",
        kind,
        f"{values['parameters']:,}",
        f"{recipe['text']['vocabulary_size']:,}",
        f"{values['bleu']:.2f}",
        f"{test['bleu']:.2f}",
        f"{exp(test['loss']):.2f}",
        minutes(place),
    ]
    return f"| {' | '.join(cells)} |\n"


def minutes(place: Path) -> str:
    """How long a run took, and on how many cores if not on both; and how long its teachers took."""
    taught_by = read(place)[0]["data"].get("taught_by", [])
    teachers = sum(seconds(RESULTS / name) for name in taught_by) / 60
    taught = f" + {teachers:.1f} of its teachers" if taught_by else ""
    cores = " on one core" if read_record(place / "record.jsonl")[-1].get("threads") == 1 else ""
    return f"{seconds(place) / 60:.1f}{cores}{taught}"


def seconds(place: Path) -> float:
    """How long a run took."""
    record = read_record(place / "record.jsonl")
    # An evaluation tells its own seconds; steps tell those since the run began.
    told = [line for line in record if line["event"] == "train"] or record
    return max(float(line.get("seconds", 0)) for line in told)


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


def berts(places: list[Path]) -> str:
    """What a small BERT knows of text, and what that is worth for sentiment."""
    rows = []
    for place in places:
        recipe, values = read(place)
        if recipe["task"]["kind"] == "pretraining":
            shares = (values[name] for name in ("masked_accuracy", "commonest", "nsp_accuracy"))
            rows.append(f"| `{place.name}` | {' | '.join(f'{share:.1%}' for share in shares)} |\n")
    return BERTS + "".join(rows) + fine_tuned(places) if rows else ""


def fine_tuned(places: list[Path]) -> str:
    """sst2-bert beside sst2-bert-scratch, seed by seed."""
    by_name = {place.name: float(read(place)[1].get("accuracy", 0.0)) for place in places}
    rows, gains = [], []
    for name, ours in by_name.items():
        other = by_name.get(name.replace("sst2-bert", "sst2-bert-scratch"))
        if not name.startswith("sst2-bert") or "scratch" in name or other is None:
            continue
        seed = name.removeprefix("sst2-bert").removeprefix("-seed") or "1"
        gains.append(ours - other)
        rows.append(f"| {seed} | {ours:.1%} | {other:.1%} | {100 * gains[-1]:+.1f} |\n")
    if not rows:
        return ""
    return FINE_TUNED + "".join(rows) + f"| mean |  |  | {100 * mean(gains):+.1f} |\n"


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
