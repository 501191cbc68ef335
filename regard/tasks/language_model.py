"""Predict the next word of a text: n-grams, windows, recurrent networks, Transformers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.attention import Look, make_looks, watch
from regard.config import Recipe
from regard.data import corpora
from regard.data.batches import Batch, Words
from regard.data.buckets import Sentences
from regard.data.config import DataConfig, Files
from regard.data.feeds import Feed
from regard.data.files import find_one
from regard.data.splits import hold_out
from regard.data.streams import Columns, Packed, PackedInOrder, Windows
from regard.decoding import WindowedGenerator
from regard.layers.output import linear_cross_entropy
from regard.metrics import likelihood_scores
from regard.tasks.answers import Candidate
from regard.tasks.labels import ids_side, text_side
from regard.tasks.objective import Objective, Outcome
from regard.tasks.reach import share_of_last
from regard.tasks.resources import Resources
from regard.tasks.senses import NamedSenseChange, change_senses
from regard.tasks.stepping import random_ids, step_through
from regard.tasks.task import Check, Task, check_output
from regard.text import Tokenizer
from regard.text.sentences import split_sentences

Lines = Iterable[str]


class LineTask(Task[Lines]):
    """A task that learns from lines of text."""

    def read(self, split: str) -> Lines | None:
        data = self.recipe.data
        if data.train is None:
            raise ValueError("data.train is missing: which file is to be learned from?")
        if split != "test" and data.valid is None and data.valid_share:
            return hold_out_lines(Text(data.train, data), data)[split == "valid"]
        files: Files = getattr(data, split)
        return None if files is None else Text(files, data)

    def read_files(self, files: Sequence[str]) -> Lines:
        return Text(list(files), self.recipe.data)

    def examples(self, examples: Iterable[Any]) -> Lines:
        """Lines of text; pieces of one text, line ends among them, with data.unit "character"."""
        return examples

    def prepare(self, train: Lines, tokenizer: Tokenizer | None) -> Resources:
        return Resources(tokenizer or Tokenizer.train(train, self.recipe.text, self.roles))


class LanguageModelling(LineTask):
    """p(w₁ … w_T) = Π p(w_t | w₁ … w_{t−1})"""

    feeds = ("sentences", "columns", "windows", "packed")

    def __init__(self, recipe: Recipe):
        super().__init__(recipe)
        characters = recipe.data.unit == "character"
        self.roles = () if characters else ("unknown", "end")
        self.metrics = (
            ("loss", "perplexity", "bits") if characters else ("perplexity", "loss", "bits")
        )

    def training_feed(self, corpus: Lines, resources: Resources) -> Feed[Words]:
        training, seed = self.recipe.training, self.recipe.seed
        words = resources.words
        match self.feed_kind:
            case "columns":
                return Columns(self._stream(corpus, words), training.batch, training.length)
            case "windows":
                return Windows(self._stream(corpus, words), training.batch, training.length, seed)
            case "sentences":
                return Sentences(encode(corpus, words), self._end(words), training.tokens, seed)
            case _:  # packed
                documents = self._enclose(corpus, words)
                return Packed(documents, training.batch, training.length, seed)

    def scoring_feed(self, corpus: Lines, resources: Resources) -> Feed[Words]:
        """Every word a target once, predicted from what the model could see in training.

        Windows are of one text, so that it is read from its beginning to its end.
        """
        training, batch = self.recipe.training, self.recipe.evaluation.batch
        words = resources.words
        match self.feed_kind:
            case "columns" | "windows":
                return Columns(self._stream(corpus, words), batch, training.length)
            case "sentences":
                return Sentences(encode(corpus, words), self._end(words), training.tokens)
            case _:  # packed
                return PackedInOrder(self._enclose(corpus, words), batch, training.length)

    def objective(self, model: nn.Module) -> NextWord:
        return NextWord(model, self.recipe.training.label_smoothing)

    def observe(self, model: Any, feed: Feed[Batch]) -> dict[str, float]:
        """`on_last_five`: the share of attention that falls on the five nearest words."""
        share = share_of_last(model, feed) if isinstance(model, nn.Module) else None
        return {} if share is None else {"on_last_five": share}

    def fit(self, model: Any, feed: Feed[Batch], resources: Resources) -> None:
        model.fit(whole_text(feed), resources.words.end)

    def evaluate_fitted(self, model: Any, feed: Feed[Batch]) -> dict[str, Any]:
        """Where scores are no probabilities, their mean logarithm as `score`, and none of the
        names that speak of probabilities."""
        words = whole_text(feed)
        total = float(model.log_probabilities(words).sum())
        if not model.normalised:
            return {"score": total / len(words), "tokens": len(words)}
        return {**likelihoods(-total / len(words)), "tokens": len(words)}

    def verbs(self) -> dict[str, Any]:
        return {"generate": Generate}

    def logits(self, model: nn.Module, ids: Tensor) -> Tensor:
        return model(Words.of_ids(ids))

    def look(
        self, model: nn.Module, resources: Resources, text: str, target: str | None = None
    ) -> list[Look]:
        if target is not None:
            raise ValueError(f"target ({target!r}): a language model reads one text")
        encoded = resources.words.encode(text)
        if not encoded.ids:
            raise ValueError(f"text ({text!r}) has no tokens to look at")
        with watch(model) as seen:
            model(Words.of_ids(torch.tensor([encoded.ids])))
        return make_looks(model, seen, {"words": text_side(encoded)})

    def checks(self, model: Any, resources: Resources, seed: int) -> Iterator[Check]:
        size, neural = resources.size_of(model), isinstance(model, nn.Module)
        if neural:
            ids = random_ids(size, (3, 12), seed)
            state = model.start(Words.prompts([[] for _ in ids]))
            steps = step_through(model, state, ids)
            yield Check("one word at a time = all at once", steps, model(Words.of_ids(ids)))
        # Of different length, so that they are padded on the left.
        rows = [random_ids(size, (1, n), seed + n)[0].tolist() for n in (3, 7, 12)]
        alone = torch.cat([logits_after(model, [row]) for row in rows])
        yield Check("a batch of 3 = 3 batches of 1", logits_after(model, rows), alone)

    def _end(self, tokenizer: Tokenizer) -> int:
        """What ends a sentence, for feeds that cannot do without."""
        if tokenizer.end is None:
            raise ValueError(
                f"training.feed ({self.feed_kind!r}) needs a token with the role 'end'; "
                "text.roles or text.specials declares one"
            )
        return tokenizer.end

    def _enclose(self, text: Lines, tokenizer: Tokenizer) -> list[list[int]]:
        """Sentences between two ends: the first is what their first word is predicted from."""
        end = self._end(tokenizer)
        return [[end, *sentence, end] for sentence in encode(text, tokenizer)]

    def _stream(self, text: Lines, tokenizer: Tokenizer) -> Tensor:
        """All words in a row, every line ended by </s>, which also stands before the first;
        without </s>, the text as it stands."""
        end = tokenizer.end
        if end is None and self.recipe.data.unit != "character":
            raise ValueError(
                f"data.unit ({self.recipe.data.unit!r}) needs a token with the role 'end' "
                "(text.roles or text.specials declares one), or one line would run into the next; "
                "data.unit = 'character' reads the text as it stands, with its line ends"
            )
        ids = array("i", [] if end is None else [end])
        for encoded in tokenizer.encode_all(text):
            ids.extend(encoded.ids)
            if end is not None:
                ids.append(end)
        return torch.frombuffer(ids, dtype=torch.int32).clone() if ids else torch.zeros(0)


class NextWord(Objective[Words]):
    """loss = −Σ log p(word | words before it). The logits of a large vocabulary never exist
    whole."""

    def __init__(self, model: nn.Module, label_smoothing: float = 0.0):
        super().__init__(model)
        self.label_smoothing = label_smoothing

    def forward(self, batch: Words, state: Any = None) -> Outcome:
        features, state = self.model.features(batch, state)
        output = self.model.output
        # In evaluation nothing is smoothed: perplexity is about the words themselves.
        smoothing = self.label_smoothing if self.training else 0.0
        loss = linear_cross_entropy(
            features, output.weight, output.bias, batch.targets, batch.loss_mask, smoothing
        )
        return Outcome({"loss": loss}, state=state)

    def metrics(self, means: Mapping[str, float]) -> dict[str, float]:
        return likelihoods(means["loss"])


class Generate:
    """Continue a prompt; settings are those of the [decoding] section.

    `senses` are other senses of some words, for a model that has them: see `change_senses`.
    """

    def __init__(
        self,
        task: Task[Any],
        model: Any,
        resources: Resources,
        senses: Mapping[str, Mapping[int, NamedSenseChange]] | None = None,
        **settings: Any,
    ):
        self.words = resources.words
        if senses:
            model = change_senses(model, self.words, senses)
        self.generator = WindowedGenerator(
            model,
            task.recipe.decoding.with_settings(**settings),
            before_first_word(self.words),
            self.words.end,
            [*unspeakable(self.words), *nameless(self.words, model)],
        )

    def encode(self, text: str) -> list[int]:
        return self.words.encode(text).ids

    def answer(self, encoded: list[list[int]], numbers: list[int]) -> list[list[Candidate]]:
        found = self.generator.generate(encoded, numbers)
        return [
            [
                Candidate(
                    self.words.decode(one.ids), one.score, self.words.decode([*prompt, *one.ids])
                )
                for one in hypotheses
            ]
            for prompt, hypotheses in zip(encoded, found, strict=True)
        ]

    def look(self, text: str, number: int, output: str | None = None) -> list[Look]:
        """Where the model looked while it continued the text; rows are words as they were read.

        The last word is not among them, since nothing was read after it.
        """
        watched = self.generator.generate_watched(self.encode(text), number)
        said = [word for window in watched for word in window.hypothesis.ids]
        check_output(output, self.words.decode(said))
        looks = []
        for window in watched:
            read = [*window.prompt, *window.hypothesis.ids[:-1]]
            sides = {"words": ids_side(read, self.words)}
            looks += make_looks(self.generator.model, window.seen, sides)
        return looks

    def stream(self, encoded: list[int]) -> Iterator[str]:
        return self.words.decode_stream(self.generator.stream(encoded), encoded)


class Text:
    """A text file that can be gone through more than once, without being held."""

    def __init__(self, files: Files, data: DataConfig):
        self.path: Path | str = find_one(files, data, "a language model")
        self.data = data

    def __iter__(self) -> Iterator[str]:
        if self.data.unit == "character":
            return iter([corpora.read_text(self.path)])
        column = self.data.columns[0] if self.data.columns else None
        lines = corpora.read_lines(self.path, format=self.data.format, column=column)
        if self.data.unit == "sentence":
            return (line[begin:end] for line in lines for begin, end in split_sentences(line))
        return lines


def hold_out_lines(text: Lines, data: DataConfig) -> tuple[Sequence[str], Sequence[str]]:
    """A text without its last `data.valid_share`, and that."""
    if data.unit == "character":
        train, valid = hold_out("".join(text), data.valid_share)
        return ["".join(train)], ["".join(valid)]
    return hold_out(list(text), data.valid_share)


def encode(text: Lines, tokenizer: Tokenizer) -> list[list[int]]:
    """The ids of each line."""
    return [encoded.ids for encoded in tokenizer.encode_all(text)]


def likelihoods(loss: float) -> dict[str, float]:
    """One loss under its three names."""
    return {each.name: each.value for each in likelihood_scores(loss, 1)}


def whole_text(feed: Feed[Batch]) -> NDArray[np.int64]:
    """The text of a feed, for models that count it whole."""
    if not isinstance(feed, Columns):
        raise ValueError("an n-gram model reads its text in order: training.feed must be 'columns'")
    return feed.words().long().numpy()


def before_first_word(tokenizer: Tokenizer) -> int:
    """What stands before the first word: the end of a sentence, or a line's end."""
    if tokenizer.end is not None:
        return tokenizer.end
    return tokenizer.id_of("\n") or 0


def unspeakable(tokenizer: Tokenizer) -> list[int]:
    """Ids that are no words."""
    silent = (tokenizer.pad, tokenizer.start)
    # One token may start and end a text, as GPT-2's does: it has to be said, to come to an end.
    return [i for i in silent if i is not None and i != tokenizer.end]


def nameless(tokenizer: Tokenizer, model: Any) -> range:
    """Ids that a model has room for and no token stands for: tables are filled up to round
    sizes."""
    size = getattr(getattr(model, "config", None), "vocabulary_size", tokenizer.size)
    return range(tokenizer.size, size)


def logits_after(model: Any, rows: list[list[int]]) -> Tensor:
    """The logits after each row, the last of its words taken in a step of its own."""
    state = model.start(Words.prompts([row[:-1] for row in rows]))
    logits: Tensor = model.step(torch.tensor([row[-1] for row in rows]), state)[0]
    return logits
