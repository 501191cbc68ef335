"""A run folder in use: `regard.load("runs/shakespeare-char")`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention import Label, Look, watch
from regard.checkpoints.reading import MANIFEST, Folder
from regard.checkpoints.weights import load_arrays, load_model
from regard.data.batches import Pairs, Words
from regard.data.feeds import Bucketed, Translations
from regard.decoding import DecodingConfig, Hypothesis, WindowedGenerator, decode
from regard.looking import Looks
from regard.models.ngram import Ngram
from regard.text import Tokenizer
from regard.training import parallel
from regard.training.evaluation import carries_state, score, score_ngram, signature
from regard.training.objectives import Objective
from regard.training.reach import looks_back, share_of_last
from regard.training.recipe import LARGEST_RECIPE, Recipe, parse_recipe
from regard.training.tasks import Text, Texts, Work, assemble, scoring_feed
from regard.training.train import words_of

TOKENS = 4096
"""Tokens answered at once, when many texts are asked: more gain nothing on a small machine."""


class Candidate(NamedTuple):
    """One possible answer."""

    output: str
    score: float
    text: str  # the input with the output behind it, for those who continue it


@dataclass(frozen=True)
class Answer:
    """What was asked, and what came of it: the best, and the others if they were asked for."""

    input: str
    hypotheses: tuple[Candidate, ...]

    @classmethod
    def empty(cls, text: str) -> Answer:
        """The answer to nothing."""
        return cls(text, (Candidate("", 0.0, ""),))

    @property
    def output(self) -> str:
        return self.hypotheses[0].output

    @property
    def score(self) -> float:
        return self.hypotheses[0].score

    @property
    def text(self) -> str:
        """The input with the output behind it, for those who continue it."""
        return self.hypotheses[0].text

    def as_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"input": self.input, "output": self.output, "score": self.score}
        if len(self.hypotheses) > 1:
            fields["hypotheses"] = [
                {"output": each.output, "score": each.score} for each in self.hypotheses
            ]
        return fields


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

    def generate(self, prompts: Sequence[str] | str = "", **settings: Any) -> list[Answer]:
        """Continue each prompt; settings are those of the [decoding] section."""
        return list(self.answers("generate", _listed(prompts), **settings))

    def translate(self, texts: Sequence[str] | str, **settings: Any) -> list[Answer]:
        """Translate each text; settings are those of the [decoding] section."""
        return list(self.answers("translate", _listed(texts), **settings))

    def answers(
        self,
        verb: str,
        texts: Sequence[str],
        *,
        numbers: Sequence[int] | None = None,
        **settings: Any,
    ) -> Iterator[Answer]:
        """Answer texts in their order, each as soon as it and those before it are ready.

        Texts of like length go together, about 4,096 tokens at once. What is sampled follows from
        the number of a text (0, 1, … if not given) and not from the texts beside it.
        """
        kind = {"generate": "language-model", "translate": "translation"}[verb]
        self._expect(kind, verb)
        config = self.decoding(**settings)
        asked = [self._ids(text) for text in texts]
        answer = self._continue if verb == "generate" else self._translate
        plan = Bucketed([len(ids) + 1 for ids in asked], TOKENS, None).plan(0) if asked else ()

        def answered(places: Sequence[int]) -> list[Answer]:
            ids = [asked[i] for i in places]
            own = list(places) if numbers is None else [numbers[i] for i in places]
            found = answer(ids, own, config)
            rows = zip(places, ids, found, strict=True)
            return [self._answer(texts[i], each, before) for i, before, each in rows]

        return in_order(plan, answered)

    @torch.no_grad()
    def stream(self, prompt: str = "", **settings: Any) -> Iterator[str]:
        """Continue one prompt, piece by piece as it comes."""
        self._expect("language-model", "generate")
        config = self.decoding(**settings)
        before = self.tokenizer.encode(prompt).ids
        words = self._continuing(config).stream(before)
        return self.tokenizer.decode_stream(words, before)

    def _ids(self, text: str) -> list[int]:
        if self.recipe.task.kind == "translation":
            text = parallel.taken_apart(text, self.recipe)
        return self.tokenizer.encode(text).ids

    @torch.no_grad()
    def _continue(
        self, prompts: list[list[int]], numbers: list[int], config: DecodingConfig
    ) -> list[list[Hypothesis]]:
        return self._continuing(config).generate(prompts, numbers)

    @torch.no_grad()
    def _translate(
        self, sources: list[list[int]], numbers: list[int], config: DecodingConfig
    ) -> list[list[Hypothesis]]:
        """The hypotheses for each source; a source without words has an empty one."""
        there = [place for place, ids in enumerate(sources) if ids]
        found: list[list[Hypothesis]] = [[Hypothesis((), 0.0, 0.0, True)] for _ in sources]
        if there:
            batch = self.pairs([sources[i] for i in there])
            start = torch.full((len(there),), self._special("start"))
            own = [numbers[i] for i in there]
            for place, each in zip(there, self._found(batch, start, config, own), strict=True):
                found[place] = each
        return found

    def evaluate(self, text: Iterable[str], name: str = "valid") -> dict[str, Any]:
        """Loss, perplexity and bits over lines of text, with a signature.

        Every word counts once and is predicted from what the model could see in training: the text
        so far, or its own sentence alone (`training.feed` "sentences" and "packed"). What was
        trained with `data.unit` "character" takes pieces of one text, line ends among them.
        `on_last_five` is the share of attention that falls on the five nearest words. A model whose
        scores are no probabilities has their mean logarithm, `score`, instead of a loss.
        """
        self._expect("language-model", "evaluate")
        started = time.monotonic()
        feed = scoring_feed(text, self.tokenizer, self.recipe)
        values: dict[str, Any]
        if isinstance(self.model, Ngram):
            values = score_ngram(self.model, words_of(feed))
        else:
            values = score(Objective(self.model), feed, carries_state(self.model, feed))
            if looks_back(self.model):
                values["on_last_five"] = share_of_last(self.model, feed)
        metric = "loss" if self.recipe.data.unit == "character" else "perplexity"
        metric = "score" if "score" in values else metric
        told = signature(self.recipe, metric, values[metric], data=name)
        return {**values, "seconds": round(time.monotonic() - started, 2), "signature": told}

    def evaluate_files(self, files: Sequence[str] = ()) -> dict[str, Any]:
        """`evaluate` on files, or on what the recipe calls its validation data."""
        data = self.recipe.data
        if not files and data.generator is None and data.valid is None and data.valid_share:
            texts = Texts.read(data, Path())
            return self.evaluate(texts.valid or (), "valid")
        if self.recipe.task.kind == "translation":
            return parallel.evaluate(self.model, self.tokenizer, self.recipe, list(files))
        named = list(files) or ([data.valid] if isinstance(data.valid, str) else [])
        if len(named) != 1:
            raise ValueError(f"a language model is judged by one file, --data names {len(named)}")
        return self.evaluate(Text(named[0], data, Path()), "--data" if files else "valid")

    def perplexity(self, text: str) -> float:
        """exp of the mean loss of the words of one text."""
        if isinstance(self.model, Ngram) and not self.model.normalised:
            smoothing = self.model.config.smoothing
            raise ValueError(
                f"perplexity: {self.folder} has none, the scores of smoothing {smoothing!r} do not "
                "add up to 1; evaluate gives their mean logarithm"
            )
        return float(self.evaluate([text])["perplexity"])

    @torch.no_grad()
    def logits(self, ids: Tensor) -> Tensor:
        """(batch, position) ids → (batch, position, vocabulary)."""
        self._neural("logits")
        return self.model(Words(ids, ids, torch.ones_like(ids, dtype=torch.bool)))

    # To look inside

    def look_at(self, answer: Answer) -> Looks:
        """Where the model looks while it says an answer it has given."""
        if self.recipe.task.kind == "translation":
            return self._look_across(answer.input, answer.text)
        return self.look(answer.text)

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

    @torch.no_grad()
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
        return self.recipe.decoding.with_settings(**settings)

    def pairs(self, sources: list[list[int]], targets: list[list[int]] | None = None) -> Pairs:
        for place, ids in enumerate(sources):
            if not ids:
                raise ValueError(f"text {place + 1} is empty: there is nothing to translate")
        pairs = list(zip(sources, targets or [[] for _ in sources], strict=True))
        start, end, pad = (self._special(name) for name in ("start", "end", "pad"))
        return Translations(pairs, start, end, pad, tokens=1).gathered(pairs)

    def _continuing(self, config: DecodingConfig) -> WindowedGenerator:
        return WindowedGenerator(
            self.model, config, self._first(), self.tokenizer.end, self._never()
        )

    def _found(
        self,
        batch: Words | Pairs,
        first: Tensor,
        config: DecodingConfig,
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        end, never = self.tokenizer.end, self._never()
        return decode(self.model, batch, first, config, end=end, never=never, numbers=numbers)

    def _answer(self, text: str, found: list[Hypothesis], prompt: Sequence[int]) -> Answer:
        before = prompt if self.recipe.task.kind == "language-model" else ()

        def candidate(each: Hypothesis) -> Candidate:
            output = parallel.put_together(self.tokenizer.decode(each.ids), self.recipe)
            return Candidate(output, each.score, self.tokenizer.decode([*before, *each.ids]))

        return Answer(text, tuple(candidate(each) for each in found))

    def _first(self) -> int:
        """What stands before the first word: the end of a sentence, or a line's end."""
        if self.tokenizer.end is not None:
            return self.tokenizer.end
        return self.tokenizer.id_of("\n") or 0

    def _never(self) -> list[int]:
        """Ids that are no words."""
        silent = (self.tokenizer.pad, self.tokenizer.start)
        # One token may start and end a text, as GPT-2's does: it has to be said, to come to an end.
        return [i for i in silent if i is not None and i != self.tokenizer.end]

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


def _listed(texts: Sequence[str] | str) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def in_order(
    plan: Iterable[Sequence[int]], answered: Callable[[Sequence[int]], list[Answer]]
) -> Iterator[Answer]:
    """Answers in the order of their places, though the plan has them in another."""
    waiting: dict[int, Answer] = {}
    place = 0
    for places in plan:
        waiting.update(zip(places, answered(places), strict=True))
        while place in waiting:
            yield waiting.pop(place)
            place += 1
