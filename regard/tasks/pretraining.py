"""Guess hidden words, and tell whether a second text follows the first: what BERT learns from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import Look, make_looks, watch
from regard.data.batches import Batch, MaskedTexts
from regard.data.buckets import pad_rows
from regard.data.config import Files
from regard.data.feeds import Feed
from regard.data.masked import Hiding, MaskedPairs
from regard.data.splits import hold_out
from regard.layers.output import linear_cross_entropy
from regard.layers.pooling import mean_of_words
from regard.metrics import likelihood_scores
from regard.tasks.answers import Candidate
from regard.tasks.language_model import Text
from regard.tasks.marks import encode_around, find_marks, ordinary_ids, read_marked
from regard.tasks.objective import Objective, Outcome, Sum
from regard.tasks.resources import Resources
from regard.tasks.stepping import random_ids
from regard.tasks.task import Check, Task
from regard.text import Tokenizer
from regard.text.sentences import split_sentences

Document = Sequence[str]  # its sentences
Corpus = Sequence[Document]

_HEADING = re.compile(r"\s*=.*=\s*$")
_TITLE = re.compile(r"\s*= [^=].*[^=] =\s*$")


@dataclass(frozen=True, kw_only=True)
class PretrainingSettings:
    """[task]: how documents are told apart, and how much is hidden."""

    documents: Literal["blank-lines", "headings"] = "blank-lines"
    """What stands between two documents: blank lines, or a line = Title = as in WikiText."""
    unknown: str = "<unk>"  # how the corpus writes words it leaves out
    hidden_share: float = 0.15  # of the words are to be guessed; of these,
    mask_share: float = 0.8  # so many are hidden,
    random_share: float = 0.1  # so many are another word, and the rest is left as it is

    def __post_init__(self) -> None:
        self.hiding()

    def hiding(self) -> Hiding:
        """How words are hidden."""
        return Hiding(share=self.hidden_share, hidden=self.mask_share, another=self.random_share)


class Pretraining(Task[Corpus]):
    """−Σ log p(hidden word | the words around it) − Σ log p(B follows A, or not | A, B)"""

    config = PretrainingSettings
    roles = ("pad", "unknown", "class", "separator", "mask")
    feeds = ("pairs", "texts")
    metrics = ("masked_accuracy", "nsp_accuracy", "perplexity", "loss")

    def read(self, split: str) -> Corpus | None:
        data = self.recipe.data
        if data.train is None:
            raise ValueError("data.train is missing: which file is to be learned from?")
        if split != "test" and data.valid is None and data.valid_share:
            return hold_out(self._read(data.train), data.valid_share)[split == "valid"]
        files: Files = getattr(data, split)
        return None if files is None else self._read(files)

    def read_files(self, files: Sequence[str]) -> Corpus:
        return self._read(list(files))

    def _read(self, files: Files) -> Corpus:
        return self.examples(Text(files, self.recipe.data))

    def examples(self, examples: Iterable[Any]) -> Corpus:
        """Lines of text, documents told apart as task.documents says."""
        split = split_at_titles if self.settings.documents == "headings" else split_at_blank_lines
        return [sentences for lines in split(examples) if (sentences := find_sentences(lines))]

    def prepare(self, train: Corpus, tokenizer: Tokenizer | None) -> Resources:
        unknown = self.settings.unknown
        lines = (
            sentence.replace(unknown, " ") if unknown else sentence
            for document in train
            for sentence in document
        )
        return Resources(tokenizer or Tokenizer.train(lines, self.recipe.text, self.roles))

    def training_feed(self, corpus: Corpus, resources: Resources) -> Feed[MaskedTexts]:
        return self._feed(corpus, resources, self.recipe.seed)

    def scoring_feed(self, corpus: Corpus, resources: Resources) -> Feed[MaskedTexts]:
        """Pairs and hidden words that are the same for every run."""
        return self._feed(corpus, resources, None)

    def _feed(self, corpus: Corpus, resources: Resources, seed: int | None) -> MaskedPairs:
        words, training = resources.words, self.recipe.training
        return MaskedPairs(
            self._encode(corpus, words),
            find_marks(words),
            ordinary_ids(words),
            length=training.length,
            tokens=training.tokens,
            seed=seed,
            hiding=self.settings.hiding(),
            paired=self.feed_kind == "pairs",
        )

    def _encode(self, corpus: Corpus, words: Tokenizer) -> list[list[list[int]]]:
        """The ids of each sentence of each document."""
        unknown = (
            {self.settings.unknown: words.id_of_role("unknown")} if self.settings.unknown else {}
        )
        flat = encode_around((s for document in corpus for s in document), words, unknown)
        return [[ids for _ in document if (ids := next(flat))] for document in corpus]

    def objective(self, model: nn.Module) -> MaskedWords:
        if getattr(model, "masked_head", None) is None:
            raise ValueError("masked_words (False): this model guesses no words to be judged by")
        asks_next = self.feed_kind == "pairs" and getattr(model, "next_sentence", None) is not None
        return MaskedWordsAndNext(model) if asks_next else MaskedWords(model)

    def observe(self, model: Any, feed: Feed[Batch]) -> dict[str, float]:
        """`commonest`: the masked accuracy of whoever always says the commonest word."""
        batches = [feed.batch(0, index) for index in range(feed.batches(0))]
        asked = [b.targets[b.loss_mask] for b in batches if isinstance(b, MaskedTexts)]
        counts = torch.cat(asked).bincount()
        return {"commonest": float(counts.max() / counts.sum())}

    def verbs(self) -> dict[str, Any]:
        return {"fill": Fill, "embed": Embed}

    def logits(self, model: nn.Module, ids: Tensor) -> Tensor:
        return model(MaskedTexts(ids, torch.ones_like(ids, dtype=torch.bool)))

    def look(
        self, model: Any, resources: Resources, text: str, target: str | None = None
    ) -> list[Look]:
        """Where the words of a text look, hidden ones too; `target` is a second text behind it."""
        row, side = read_marked(text, target, resources.words)
        with watch(model) as seen:
            for _ in model.hidden_states(row):
                pass
        return make_looks(model, seen, {"words": side})

    def checks(self, model: Any, resources: Resources, seed: int) -> Iterator[Check]:
        size = resources.size_of(model)
        rows = [random_ids(size, (1, n), seed + n)[0].tolist() for n in (3, 7, 12)]
        batch = MaskedTexts(*pad_rows(rows, resources.filler))
        alone = [model.features(MaskedTexts(*pad_rows([row], 0)))[0] for row in rows]
        found = model.features(batch)[batch.mask]
        yield Check("a batch of 3 = 3 batches of 1", found, torch.cat(alone))


class MaskedWords(Objective[MaskedTexts]):
    """masked = −Σ log p(word), over the words that are to be guessed and no others

    The vectors of these words are gathered first: six sevenths of the output layer's work are
    never done.
    """

    weights: ClassVar[Mapping[str, float]] = {"masked": 1.0}

    def counts(self, batch: MaskedTexts) -> dict[str, int]:
        return {"masked": int(batch.loss_mask.sum())}

    def forward(self, batch: MaskedTexts, state: Any = None) -> Outcome:
        return self._guess_words(self.model.features(batch), batch)

    def _guess_words(self, features: Tensor, batch: MaskedTexts) -> Outcome:
        asked = batch.loss_mask.flatten().nonzero().squeeze(-1)
        targets = batch.targets.flatten()[asked]
        vectors = self.model.masked_head(features.flatten(0, 1)[asked])  # (asked, model)
        output = self.model.output
        if self.training:
            loss = linear_cross_entropy(vectors, output.weight, output.bias, targets)
            return Outcome({"masked": loss}, {})
        logits = output(vectors)  # (asked, vocabulary)
        loss = F.cross_entropy(logits, targets, reduction="sum")
        right = (logits.argmax(dim=-1) == targets).sum()
        return Outcome({"masked": loss}, {"masked_accuracy": Sum(right, len(targets))})

    def metrics(self, means: Mapping[str, float]) -> dict[str, float]:
        """The perplexity is that of the hidden words."""
        shares = {name: share for name, share in means.items() if name.endswith("accuracy")}
        [_, perplexity, _] = likelihood_scores(means["masked"], 1)
        return {**shares, "perplexity": perplexity.value, "loss": self.loss(means)}


class MaskedWordsAndNext(MaskedWords):
    """The same, and nsp = −Σ log p(label), 0 if the second text follows the first, else 1"""

    weights: ClassVar[Mapping[str, float]] = {"masked": 1.0, "nsp": 1.0}

    def counts(self, batch: MaskedTexts) -> dict[str, int]:
        return {**super().counts(batch), "nsp": int(batch.pair_mask.sum())}

    def forward(self, batch: MaskedTexts, state: Any = None) -> Outcome:
        features = self.model.features(batch)
        parts, reports, *_ = self._guess_words(features, batch)
        asked = batch.pair_mask
        logits, labels = self.model.next_logits(features)[asked], batch.unrelated[asked]
        nsp = F.cross_entropy(logits, labels, reduction="sum")
        right = (logits.argmax(dim=-1) == labels).sum()
        reports = {**reports, "nsp_accuracy": Sum(right, len(labels))}
        return Outcome({**parts, "nsp": nsp}, reports)


class Fill:
    """The likeliest words in place of each mask of a text, with their probability."""

    def __init__(self, task: Pretraining, model: Any, resources: Resources, n_best: Any = None):
        if n_best is not None and (type(n_best) is not int or n_best < 1):
            raise ValueError(f"n_best ({n_best!r}) must be a whole number, 1 or more")
        self.model, self.words = model, resources.words
        self.mask = self.words.id_of_role("mask")
        self.n_best = min(n_best or 5, self.words.size)

    def encode(self, text: str) -> list[int]:
        ids = read_marked(text, None, self.words)[0].ids[0].tolist()
        if self.mask not in ids:
            [spelling] = self.words.tokens_of([self.mask])
            raise ValueError(f"text ({text!r}) hides no word: write {spelling} in place of one")
        return ids

    @torch.no_grad()
    def answer(self, encoded: list[list[int]], numbers: list[int]) -> list[list[Candidate]]:
        """For several masks, words for all of them; each is guessed as if it were alone."""
        batch = MaskedTexts(*pad_rows(encoded, self.words.id_of_role("pad")))
        hidden = batch.mask & (batch.ids == self.mask)
        logits = self.model.word_logits(self.model.features(batch)[hidden])  # (mask, vocabulary)
        odds, order = logits.softmax(dim=-1).topk(self.n_best, dim=-1)
        guesses = zip(odds.tolist(), order.tolist(), strict=True)
        found = []
        for ids, count in zip(encoded, hidden.sum(dim=1).tolist(), strict=True):
            found.append(self._combine(ids, [next(guesses) for _ in range(count)]))
        return found

    def _combine(
        self, ids: list[int], guesses: list[tuple[list[float], list[int]]]
    ) -> list[Candidate]:
        """The likeliest combinations of the guesses for each mask."""
        best: list[tuple[float, list[int]]] = [(1.0, [])]
        for odds, order in guesses:
            longer = [
                (share * odd, [*words, word])
                for share, words in best
                for odd, word in zip(odds, order, strict=True)
            ]
            best = sorted(longer, key=lambda each: -each[0])[: self.n_best]
        return [self._candidate(ids, words, share) for share, words in best]

    def _candidate(self, ids: list[int], words: list[int], share: float) -> Candidate:
        said = iter(words)
        text = self.words.decode([next(said) if i == self.mask else i for i in ids])
        pieces = [self.words.decode([word]).strip() for word in words]
        return Candidate(" ".join(pieces), share, text)


class Embed:
    """A vector for each text: the mean over its tokens, or that of its first, [CLS].

    `layer` counts from the embeddings, 0, or back from the last, −1.
    """

    tokens = 1024  # at once: what is computed of them then stays in the cache of a small machine

    def __init__(
        self,
        task: Task[Any],
        model: Any,
        resources: Resources,
        pooling: str = "mean",
        layer: int | None = None,
    ):
        if pooling not in ("mean", "class"):
            raise ValueError(f"pooling ({pooling!r}) must be 'mean' or 'class'")
        layers = model.config.layers
        wanted = layers if layer is None else layer
        if type(wanted) is not int or not -layers - 1 <= wanted <= layers:
            raise ValueError(
                f"layer ({layer!r}) must be from 0, the embeddings, to {layers}, the last layer"
            )
        self.model, self.words, self.pooling = model, resources.words, pooling
        self.layer = wanted % (layers + 1)
        self.first, self.last = map(self.words.id_of_role, ("class", "separator"))

    def encode(self, text: str) -> list[int]:
        return [self.first, *self.words.encode(text).ids, self.last]

    @torch.no_grad()
    def answer(self, encoded: list[list[int]], numbers: list[int]) -> list[list[Candidate]]:
        batch = MaskedTexts(*pad_rows(encoded, self.words.id_of_role("pad")))
        states = self.model.hidden_states(batch)
        vectors = next(state for layer, state in enumerate(states) if layer == self.layer)
        pooled = vectors[:, 0] if self.pooling == "class" else mean_of_words(vectors, batch.mask)
        return [[Candidate(row, 0.0)] for row in pooled.tolist()]


def split_at_blank_lines(lines: Iterable[str]) -> Iterator[list[str]]:
    """The lines of each document."""
    document: list[str] = []
    for line in lines:
        if line.strip():
            document.append(line)
        elif document:
            yield document
            document = []
    if document:
        yield document


def split_at_titles(lines: Iterable[str]) -> Iterator[list[str]]:
    """The lines of each document, titles and = = headings = = left out."""
    document: list[str] = []
    for line in lines:
        if _TITLE.match(line):
            if document:
                yield document
            document = []
        elif line.strip() and not _HEADING.match(line):
            document.append(line)
    if document:
        yield document


def find_sentences(lines: Iterable[str]) -> list[str]:
    """The sentences of each line, one after the other."""
    return [line[begin:end] for line in lines for begin, end in split_sentences(line)]
