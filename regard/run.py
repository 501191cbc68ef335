"""A run folder in use: `regard.load("runs/shakespeare-char")`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention import Label, Look, watch
from regard.checkpoints.reading import MANIFEST, Folder
from regard.checkpoints.weights import load_arrays, load_model
from regard.data.batches import Pairs, Words
from regard.data.feeds import Translations
from regard.decoding import Continuing, DecodingConfig, Hypothesis, decode
from regard.looking import Looks
from regard.models.ngram import Ngram
from regard.text import Tokenizer
from regard.training import parallel
from regard.training.evaluation import scored, signature
from regard.training.objectives import Objective
from regard.training.reach import looks_back, share_of_last
from regard.training.recipe import LARGEST_RECIPE, Recipe, parse_recipe
from regard.training.tasks import Text, Texts, Work, assemble, language_feed, scoring
from regard.training.train import counted


@dataclass(frozen=True)
class Answer:
    """What was asked, the best that came of it, and the others if they were asked for."""

    input: str
    output: str
    score: float
    hypotheses: tuple[tuple[str, float], ...] = ()
    text: str = ""  # the input with the output behind it, for those who continue it

    def as_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {"input": self.input, "output": self.output, "score": self.score}
        if len(self.hypotheses) > 1:
            told["hypotheses"] = [{"output": text, "score": s} for text, s in self.hypotheses]
        return told


def load(folder: str | Path) -> Run:
    """The model of a run folder, ready to be used.

    The folder may come from a stranger: nothing in it is run, and each file is read only as the
    manifest lists it. Torch's generator is left as it was.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"no run folder at {folder}")
    if not os.path.lexists(folder / MANIFEST):
        begun = (folder / "recipe.toml").is_file()
        hint = "; `regard train … --resume` goes on with it" if begun else ""
        raise ValueError(f"{folder} is not a finished run: {MANIFEST} is missing{hint}")
    files = Folder(folder)
    files.check()
    recipe = parse_recipe(files.read("recipe.toml", LARGEST_RECIPE), folder / "recipe.toml")
    tokenizer = Tokenizer.from_bytes(files.read("tokenizer.json"), folder / "tokenizer.json")
    make = partial(assemble, recipe, tokenizer)
    if recipe.model["name"] == "ngram":
        arrays = load_arrays(files, "model.safetensors")
        return Run(folder, recipe, tokenizer, Ngram.from_tensors(make().config, arrays))
    return Run(folder, recipe, tokenizer, load_model(make, files, "model.safetensors").eval())


def probed(work: Work, folder: Path, step: int) -> None:
    """Save where the model looks now, for each probe sentence of the recipe."""
    probes = work.recipe.training.probes
    if probes:
        folder.mkdir(exist_ok=True)
    was = work.model.training
    run = Run(folder, work.recipe, work.tokenizer, work.model.eval())
    for number, text in enumerate(probes):
        run.look(text).save(folder / f"step-{step:08d}-{number}.json")
    work.model.train(was)


class Run:
    """A trained model with its words."""

    def __init__(self, folder: Path, recipe: Recipe, tokenizer: Tokenizer, model: Any):
        self.folder, self.recipe, self.tokenizer, self.model = folder, recipe, tokenizer, model

    def __repr__(self) -> str:
        return f"Run({self.folder}, {self.recipe.model['name']})"

    # To use it

    @torch.no_grad()
    def generate(self, prompts: Sequence[str] | str = "", **settings: Any) -> list[Answer]:
        """Continue each prompt; settings are those of the [decoding] section."""
        self._expect("language-model", "generate")
        prompts = [prompts] if isinstance(prompts, str) else list(prompts)
        config = self.decoding(**settings)
        ids = [self.tokenizer.encode(prompt).ids for prompt in prompts]
        found = self._continuing(config).answers(ids)
        rows = zip(prompts, ids, found, strict=True)
        return [self._answer(prompt, each, before) for prompt, before, each in rows]

    @torch.no_grad()
    def stream(self, prompt: str = "", **settings: Any) -> Iterator[str]:
        """The same for one prompt, piece by piece as it comes."""
        self._expect("language-model", "generate")
        config = self.decoding(**settings)
        before = self.tokenizer.encode(prompt).ids
        said: list[int] = []
        told = self.tokenizer.decode(before)
        for word in self._continuing(config).words(before):
            said.append(word)
            text = self.tokenizer.decode([*before, *said])
            yield text[len(told) :]
            told = text

    @torch.no_grad()
    def translate(self, texts: Sequence[str] | str, **settings: Any) -> list[Answer]:
        """Translate each text."""
        self._expect("translation", "translate")
        texts = [texts] if isinstance(texts, str) else list(texts)
        config = self.decoding(**settings)
        apart = [parallel.taken_apart(text, self.recipe) for text in texts]
        batch = self.pairs([self.tokenizer.encode(text).ids for text in apart])
        first = torch.full((len(texts),), self._special("start"))
        found = self._found(batch, first, config)
        return [self._answer(text, each) for text, each in zip(texts, found, strict=True)]

    def evaluate(self, text: Iterable[str], name: str = "valid") -> dict[str, Any]:
        """Loss, perplexity and bits over lines of text, with a signature.

        `on_last_five` is the share of attention that falls on the five nearest words.
        """
        self._expect("language-model", "evaluate")
        started = time.monotonic()
        feed = language_feed(text, self.tokenizer, scoring(self.recipe), None)
        values: dict[str, Any]
        if isinstance(self.model, Ngram):
            values = counted(self.model, feed)
        else:
            values = scored(Objective(self.model), feed, getattr(self.model, "carries", False))
            if looks_back(self.model):
                values["on_last_five"] = share_of_last(self.model, feed)
        metric = "loss" if self.recipe.data.unit == "character" else "perplexity"
        told = signature(self.recipe, metric, values[metric], data=name)
        return {**values, "seconds": round(time.monotonic() - started, 2), "signature": told}

    def judge(self, files: Sequence[str] = ()) -> dict[str, Any]:
        """`evaluate` on files, or on what the recipe calls its validation data."""
        data = self.recipe.data
        if not files and data.generator is None and data.valid is None and data.valid_share:
            texts = Texts.read(data, Path())
            return self.evaluate(texts.valid or (), "valid")
        if self.recipe.task.kind == "translation":
            return parallel.judged(self.model, self.tokenizer, self.recipe, list(files))
        named = list(files) or ([data.valid] if isinstance(data.valid, str) else [])
        if len(named) != 1:
            raise ValueError(f"a language model is judged by one file, --data names {len(named)}")
        return self.evaluate(Text(named[0], data, Path()), "--data" if files else "valid")

    def perplexity(self, text: str) -> float:
        """exp of the mean loss of the words of one text."""
        return float(self.evaluate([text])["perplexity"])

    @torch.no_grad()
    def logits(self, ids: Tensor) -> Tensor:
        """(batch, position) ids → (batch, position, vocabulary)."""
        self._neural("logits")
        return self.model(Words(ids, ids, torch.ones_like(ids, dtype=torch.bool)))

    # To look inside

    @torch.no_grad()
    def look(self, text: str, target: str | None = None) -> Looks:
        """Where the model looks while it reads the text, or while it says the target."""
        self._neural("look")
        if self.recipe.task.kind == "translation":
            return self._look_across(text, target)
        encoded = self.tokenizer.encode(text)
        if not encoded.ids:
            raise ValueError(f"text ({text!r}) has no tokens to look at")
        ids = torch.tensor([encoded.ids])
        labels = _labels(encoded.tokens, encoded.offsets)
        with watch(self.model) as seen:
            self.model(Words(ids, ids, torch.ones_like(ids, dtype=torch.bool)))
        looks = [
            Look.of(read, queries=labels, keys=labels, path=path, query_text=text, key_text=text)
            for path, calls in seen.items()
            for read in calls
            if read.comparison.sizes == (len(labels), len(labels))
        ]
        if not looks:
            raise ValueError(f"{self.recipe.model['name']} has no attention to look at")
        return Looks(looks)

    def _look_across(self, text: str, target: str | None) -> Looks:
        text = parallel.taken_apart(text, self.recipe)
        said = target if target is not None else self._said(text)
        source, answer = self.tokenizer.encode(text), self.tokenizer.encode(said)
        pairs = self.pairs([source.ids], [answer.ids])
        with watch(self.model) as seen:
            self.model(pairs)
        queries = [*_labels(answer.tokens, answer.offsets), Label("</s>")]
        keys = _labels(source.tokens, source.offsets)
        looks = []
        for path, calls in seen.items():
            weights = torch.cat([call.weights[0] for call in calls], dim=-2)  # (query, key)
            looks.append(
                Look.of_weights(
                    weights,
                    queries=queries,
                    keys=keys,
                    path=path,
                    kind="cross",
                    query_text=said,
                    key_text=text,
                )
            )
        return Looks(looks)

    def _said(self, text: str) -> str:
        """The model's own translation, in the tokens it says."""
        batch = self.pairs([self.tokenizer.encode(text).ids])
        first = torch.full((1,), self._special("start"))
        return self.tokenizer.decode(self._found(batch, first, self.decoding())[0][0].ids)

    # What these need

    def decoding(self, **settings: Any) -> DecodingConfig:
        """The recipe's own, with these settings in place of its."""
        known = {key: value for key, value in settings.items() if value is not None}
        if "beam" in known:
            known.setdefault("method", "beam" if known["beam"] > 1 else "greedy")
        return replace(self.recipe.decoding, **known)

    def pairs(self, sources: list[list[int]], targets: list[list[int]] | None = None) -> Pairs:
        for place, ids in enumerate(sources):
            if not ids:
                raise ValueError(f"text {place + 1} is empty: there is nothing to translate")
        pairs = list(zip(sources, targets or [[] for _ in sources], strict=True))
        start, end, pad = (self._special(name) for name in ("start", "end", "pad"))
        return Translations(pairs, start, end, pad, tokens=1).gathered(pairs)

    def _continuing(self, config: DecodingConfig) -> Continuing:
        return Continuing(self.model, config, self._first(), self.tokenizer.end, self._never())

    def _found(
        self, batch: Words | Pairs, first: Tensor, config: DecodingConfig
    ) -> list[list[Hypothesis]]:
        end, never = self.tokenizer.end, self._never()
        return decode(self.model, batch, first, config, end=end, never=never)

    def _answer(self, asked: str, found: list[Hypothesis], before: Sequence[int] = ()) -> Answer:
        said = [(self.tokenizer.decode(each.ids), each.score) for each in found]
        texts = tuple((parallel.put_together(text, self.recipe), score) for text, score in said)
        whole = self.tokenizer.decode([*before, *found[0].ids])
        return Answer(asked, texts[0][0], texts[0][1], texts, whole)

    def _first(self) -> int:
        """What stands before the first word: the end of a sentence, or a line's end."""
        if self.tokenizer.end is not None:
            return self.tokenizer.end
        return self.tokenizer.id_of("\n") or 0

    def _never(self) -> list[int]:
        """Ids that are no words."""
        return [i for i in (self.tokenizer.pad, self.tokenizer.start) if i is not None]

    def _special(self, name: str) -> int:
        found = getattr(self.tokenizer, name)
        if found is None:
            raise ValueError(f"the tokenizer of {self.folder} has no {name} token")
        return int(found)

    def _expect(self, kind: str, what: str) -> None:
        if self.recipe.task.kind != kind:
            own = self.recipe.task.kind
            raise ValueError(f"{what} needs a {kind} run; {self.folder} is a {own}")

    def _neural(self, what: str) -> None:
        if not isinstance(self.model, nn.Module):
            raise ValueError(f"{what} needs a neural model; {self.folder} counts n-grams")


def _labels(tokens: list[str], offsets: list[tuple[int, int]]) -> list[Label]:
    return [Label(text, *place) for text, place in zip(tokens, offsets, strict=True)]
