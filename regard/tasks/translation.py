"""Say in one language what was said in another: pairs from files, or from a generator that knows
the right answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from regard.attention import Label, Look, Side, make_looks, watch
from regard.config import Recipe
from regard.data import corpora
from regard.data.batches import Batch, Pairs
from regard.data.buckets import PerEpochTranslations, Translations
from regard.data.config import Files
from regard.data.feeds import Feed, random_stream
from regard.data.files import find_file
from regard.data.numbers import LANGUAGES, NumberExample, NumberNames
from regard.data.splits import hold_out
from regard.decoding import Hypothesis, decode, decode_watched
from regard.metrics import Links, Score, aer, bleu, chrf, exact_match
from regard.tasks.alignment import collate, cross_paths, cross_weights, word_weights
from regard.tasks.answers import Candidate
from regard.tasks.labels import ids_side, text_side, token_labels
from regard.tasks.objective import Objective
from regard.tasks.reinforce import Reinforced, draws_positions
from regard.tasks.resources import Resources
from regard.tasks.stepping import random_ids, step_through
from regard.tasks.target_words import ConsistentTargetWord, NextTargetWord
from regard.tasks.task import Check, Task, check_output
from regard.text import Encoded, Tokenizer
from regard.text.bpe_dropout import BPEDroppedTexts

GENERATORS = "numbers-"
BLEU_WORDS = 4
"""As many words in a row does BLEU compare."""
TextPair = tuple[str, str]
TextPairs = Sequence[TextPair]


class LinkedPairs(list[TextPair]):
    """Pairs of texts, and which words of each belong together."""

    def __init__(self, examples: Sequence[NumberExample]):
        super().__init__((" ".join(each.source), " ".join(each.target)) for each in examples)
        self.links = [each.links for each in examples]


@dataclass(frozen=True, kw_only=True)
class TranslationConfig:
    """The [task] section: how translations are compared with references, and learned."""

    bleu_tokenize: str = "13a"  # sacrebleu's name; "none" for text that is tokenized already
    bpe_dropout: float = 0.0  # share of the merges passed over while training, anew every epoch
    consistency: float = 0.0  # how much two guesses under two dropouts must agree; 0: one guess
    consistency_from: int = 0  # the step from which there are two guesses
    discount: float = 1.0  # hard attention: how much later words count for a place looked at
    entropy_bonus: float = 0.01  # hard attention: what it is worth to stay undecided

    def __post_init__(self) -> None:
        if not 0.0 <= self.discount <= 1.0:
            raise ValueError(f"discount ({self.discount}) must be from 0 to 1")
        if not 0.0 <= self.bpe_dropout <= 1.0:
            raise ValueError(f"bpe_dropout ({self.bpe_dropout}) must be from 0 to 1")
        for name in ("consistency", "consistency_from", "entropy_bonus"):
            if getattr(self, name) < 0.0:
                raise ValueError(f"{name} ({getattr(self, name)}) must be 0 or more")


class Translation(Task[TextPairs]):
    """p(y₁ … y_T | x) = Π p(y_t | x, y₁ … y_{t−1})

    One tokenizer serves both sides, so that languages can share an encoder.
    """

    config = TranslationConfig
    roles = ("pad", "unknown", "start", "end")
    teaching_verb = "translate"

    def __init__(self, recipe: Recipe):
        super().__init__(recipe)
        generator = recipe.data.generator
        self.names = None if generator is None else number_names(generator)
        decoded = ("exact_match", "bleu", "chrf") if generator else ("bleu", "chrf", "exact_match")
        self.metrics = (*decoded, "loss")

    # From data to batches

    def read(self, split: str) -> TextPairs | None:
        data = self.recipe.data
        if self.names is not None:
            counts = {"train": data.examples, "valid": data.valid_examples}
            count = counts.get(split, data.test_examples)
            made = self.names.take(count, self.recipe.seed, split)
            return LinkedPairs(made) if made else None
        if data.train is None:
            raise ValueError("data.train is missing: two files, or a data.generator")
        if split != "test" and data.valid is None and data.valid_share:
            return hold_out(self._read_pairs(data.train), data.valid_share)[split == "valid"]
        files: Files = getattr(data, split)
        return None if files is None else self._read_pairs(files)

    def read_files(self, files: Sequence[str]) -> TextPairs:
        return self.examples(self._read_pairs(list(files)))

    def _read_pairs(self, files: str | list[str]) -> TextPairs:
        data = self.recipe.data
        paths = [find_file(name, data) for name in ([files] if isinstance(files, str) else files)]
        columns = None if data.columns is None else (data.columns[0], data.columns[1])
        return list(
            corpora.read_pairs(paths[0] if len(paths) == 1 else paths, data.format, columns)
        )

    def examples(self, examples: Iterable[Any]) -> TextPairs:
        """(source, target) pairs of strings, as a user writes them."""
        return [self.segment_pair(source, target) for source, target in examples]

    def questions(self, corpus: TextPairs) -> list[str]:
        return [source for source, _ in corpus]

    def add_answers(self, corpus: TextPairs, answers: Sequence[str]) -> TextPairs:
        teachers, rest = divmod(len(answers), len(corpus))
        if rest:
            raise ValueError(
                f"data.taught_by: {len(answers):,} answers are not those of whole teachers to "
                f"{len(corpus):,} sources; the training data are not those they were asked about"
            )
        asked = self.questions(corpus) * teachers
        taught = [self.segment_pair(*pair) for pair in zip(asked, answers, strict=True)]
        return [*corpus, *taught]

    def prepare(self, train: TextPairs, tokenizer: Tokenizer | None) -> Resources:
        sides = (side for pair in train for side in pair)
        return Resources(tokenizer or Tokenizer.train(sides, self.recipe.text, self.roles))

    def training_feed(self, corpus: TextPairs, resources: Resources) -> Feed[Pairs]:
        whole = self._feed(corpus, resources.words, self.recipe.seed)
        rate = self.settings.bpe_dropout
        if not rate:
            return whole
        return redraw_pieces(whole, corpus, resources.words, rate, self.recipe.seed)

    def scoring_feed(self, corpus: TextPairs, resources: Resources) -> Feed[Pairs]:
        return self._feed(corpus, resources.words, None)

    def _feed(self, pairs: TextPairs, words: Tokenizer, seed: int | None) -> Translations:
        if not pairs:
            raise ValueError("there are no pairs to translate")
        sources, targets = (words.encode_all(side) for side in zip(*pairs, strict=True))
        ids = [(s.ids, t.ids) for s, t in zip(sources, targets, strict=True)]
        for place, (source, _) in enumerate(ids):
            if not source:
                raise ValueError(f"pair {place + 1} has an empty source: nothing to translate")
        references = [self.join(target, source) for source, target in pairs]
        links = pairs.links if isinstance(pairs, LinkedPairs) else ()
        start, end, pad = (words.id_of_role(role) for role in ("start", "end", "pad"))
        tokens = self.recipe.training.tokens
        return Translations(ids, start, end, pad, tokens, seed, references, links)

    # From batches to numbers

    def objective(self, model: nn.Module) -> Objective[Pairs]:
        smoothing, settings = self.recipe.training.label_smoothing, self.settings
        if draws_positions(model):
            if settings.consistency:
                raise ValueError(
                    f"consistency ({settings.consistency}) is for soft attention: two guesses of a "
                    "hard one looked at different words"
                )
            return Reinforced(model, smoothing, settings.discount, settings.entropy_bonus)
        if settings.consistency:
            return ConsistentTargetWord(
                model, smoothing, settings.consistency, settings.consistency_from
            )
        return NextTargetWord(model, smoothing)

    def evaluate(
        self,
        objective: Objective[Any],
        feed: Feed[Batch],
        resources: Resources,
        names: Sequence[str],
        wrapped: Any = None,
    ) -> dict[str, Any]:
        values = super().evaluate(objective, feed, resources, names, wrapped)
        if set(names) <= {"loss"}:
            return values
        assert isinstance(feed, Translations)
        scores = self._compare(objective.model, feed, resources)
        return {**{each.name: each.value for each in scores}, **values}

    def observe(self, model: Any, feed: Feed[Batch]) -> dict[str, float]:
        """`aer`: how often the attention looks elsewhere than at the word that belongs, where the
        data know which belong and every word is one token."""
        paths = cross_paths(model)
        if not isinstance(feed, Translations) or not feed.links or not paths:
            return {}
        found = {}
        for rows in feed.buckets.plan(0):
            weights = cross_weights(model, feed.collate([feed.pairs[i] for i in rows]), paths)
            for place, each in zip(rows, weights, strict=True):
                strongest = each[: len(feed.pairs[place][1])].argmax(dim=-1).tolist()
                found[place] = Links({(source, j) for j, source in enumerate(strongest)})
        gold = [Links(set(links)) for links in feed.links]
        return {"aer": aer([found[place] for place in range(len(gold))], gold).value}

    def story(self, name: str) -> dict[str, str]:
        decoding = self.recipe.decoding
        width = f"-{decoding.beam}" if decoding.method == "beam" else ""
        made = {"decode": f"{decoding.method}{width}"} if name != "loss" else {}
        return {**made, **({"tok": self.settings.bleu_tokenize} if name == "bleu" else {})}

    def _compare(self, model: nn.Module, feed: Translations, resources: Resources) -> list[Score]:
        """Translate every source, and compare with its reference."""
        if any(isinstance(p, DTensor) for p in model.parameters()):
            raise ValueError(
                "evaluation.select: translations need the weights in one place, which "
                "training.sharding 'fsdp' spreads; select by 'loss' there"
            )
        was = model.training
        translate = Translate(self, model.eval(), resources)
        said: dict[int, str] = {}
        for rows in feed.buckets.plan(0):
            sources = [list(feed.pairs[i][0]) for i in rows]
            for place, found in zip(rows, translate.answer(sources, list(rows)), strict=True):
                said[place] = found[0].output
        model.train(was)
        hypotheses = [said[place] for place in range(len(said))]
        scores = [chrf(hypotheses, feed.references), exact_match(hypotheses, feed.references)]
        # A German number is one word, and BLEU would be 0 whatever is said.
        longest = max(len(reference.split()) for reference in feed.references)
        if self.names is None or longest >= BLEU_WORDS or self.recipe.evaluation.select == "bleu":
            tokenize = self.settings.bleu_tokenize
            scores = [bleu(hypotheses, feed.references, tokenize=tokenize), *scores]
        return scores

    # A run in use

    def verbs(self) -> dict[str, Any]:
        return {"translate": Translate}

    def look(
        self, model: nn.Module, resources: Resources, text: str, target: str | None = None
    ) -> list[Look]:
        """The alignment of each word that is said; without a target, while it says its own."""
        if target is None:
            return Translate(self, model, resources).look(text, 0)
        text, target = self.segment_pair(text, target)
        words = resources.words
        source, said = words.encode(text), words.encode(target)
        if not source.ids:
            raise ValueError(f"text ({text!r}) has no tokens to look at")
        batch = collate([(source.ids, said.ids)], words)
        with watch(model) as seen:
            model(batch)
        end = Label(words.tokens_of([words.id_of_role("end")])[0])
        side = Side([*token_labels(said), end], target)
        return make_looks(model, seen, sides(source, side, words))

    def checks(self, model: Any, resources: Resources, seed: int) -> Iterator[Check]:
        words, sizes = resources.words, [(5, 7), (3, 4), (8, 6)]
        pairs = [
            (
                random_ids(words.size, (1, source), seed + source)[0].tolist(),
                random_ids(words.size, (1, target), seed + 100 + target)[0].tolist(),
            )
            for source, target in sizes
        ]
        batch = collate(pairs, words)
        whole, real = model(batch), batch.target_mask
        steps = step_through(model, model.start(batch), batch.target_input)
        yield Check("one word at a time = all at once", steps[real], whole[real])
        alone = torch.cat([model(collate([pair], words))[0] for pair in pairs])
        yield Check("a batch of 3 = 3 batches of 1", whole[real], alone)

    def gold_pairs(self, split: str) -> tuple[list[TextPair], list[Links] | None]:
        """The pairs of a split, and which words belong together, if the data know."""
        pairs = self.read(split)
        if pairs is None:
            raise ValueError(f"there is no data.{split} to align; name two files")
        if not isinstance(pairs, LinkedPairs):
            return list(pairs), None
        return list(pairs), [Links(set(links)) for links in pairs.links]

    def word_weights(
        self,
        model: nn.Module,
        resources: Resources,
        pairs: Sequence[TextPair],
        path: str | None = None,
    ) -> Iterator[Tensor]:
        segmented = [self.segment_pair(*pair) for pair in pairs]
        return word_weights(model, resources.words, segmented, path)

    # What users write, and what the model reads

    def segment(self, text: str) -> str:
        """What a user writes, as the model reads it: twenty-one → twenty one."""
        return text if self.names is None else self.names.segment(text)

    def segment_pair(self, source: str, target: str) -> TextPair:
        """A text and its translation, both as the model reads them."""
        source = self.segment(source)
        if self.names is None or not source:
            return source, target
        return source, self.names.segment_target(target, source)

    def join(self, said: str, source: str) -> str:
        """What the model says, as a user writes it: ein und zwanzig → einundzwanzig."""
        return said if self.names is None else self.names.join(said, source)


class Translate:
    """Translate a text; settings are those of the [decoding] section."""

    def __init__(self, task: Translation, model: Any, resources: Resources, **settings: Any):
        self.task, self.model, self.words = task, model, resources.words
        self.decoding = task.recipe.decoding.with_settings(**settings)

    def encode(self, text: str) -> list[int]:
        return self.words.encode(self.task.segment(text)).ids

    @torch.no_grad()
    def answer(self, encoded: list[list[int]], numbers: list[int]) -> list[list[Candidate]]:
        """The translations of each; a source without words has an empty one."""
        nothing = Candidate("", 0.0)
        places = [place for place, ids in enumerate(encoded) if ids]
        found = [[nothing] for _ in encoded]
        if places:
            batch = collate([(encoded[i], []) for i in places], self.words)
            options = self._options([numbers[i] for i in places])
            decoded = decode(self.model, batch, self._first(batch), self.decoding, **options)
            for place, hypotheses in zip(places, decoded, strict=True):
                source = self.words.decode(encoded[place])
                found[place] = [self._candidate(each, source) for each in hypotheses]
        return found

    def look(self, text: str, number: int, output: str | None = None) -> list[Look]:
        """Where the model looked while it said its best translation."""
        source = self.words.encode(self.task.segment(text))
        if not source.ids:
            raise ValueError(f"text ({text!r}) has no tokens to look at")
        batch = collate([(source.ids, [])], self.words)
        ((best, *_),) = decode_watched(
            self.model, batch, self._first(batch), self.decoding, **self._options([number])
        )
        spoken = self._candidate(best.hypothesis, self.words.decode(source.ids))
        check_output(output, spoken.output)
        said = ids_side(best.hypothesis.ids, self.words)
        return make_looks(self.model, best.seen, sides(source, said, self.words))

    def _first(self, batch: Pairs) -> Tensor:
        return torch.full((len(batch),), self.words.id_of_role("start"))

    def _options(self, numbers: list[int]) -> dict[str, Any]:
        words = self.words
        never = [words.id_of_role("pad"), words.id_of_role("start")]
        return {
            "end": words.end,
            "never": [i for i in never if i != words.end],
            "numbers": numbers,
        }

    def _candidate(self, hypothesis: Hypothesis, source: str) -> Candidate:
        text = self.words.decode(hypothesis.ids)
        return Candidate(self.task.join(text, source), hypothesis.score, text)


def sides(source: Encoded, target: Side, words: Tokenizer) -> dict[str, Side]:
    """What the attentions of a translator look from and at; a decoder reads what it has said."""
    start = Label(words.tokens_of([words.id_of_role("start")])[0])
    read = [start, *target.labels[:-1]]
    return {"source": text_side(source), "target": replace(target, read=read)}


def redraw_pieces(
    feed: Translations, pairs: TextPairs, words: Tokenizer, rate: float, seed: int
) -> PerEpochTranslations:
    """The same pairs with their words cut anew every epoch."""
    sides = [BPEDroppedTexts(side, words, rate) for side in zip(*pairs, strict=True)]

    def draw(epoch: int) -> Translations:
        sources, targets = (
            each.draw(random_stream(seed, epoch, side).initial_seed())
            for side, each in enumerate(sides)
        )
        return feed.with_pairs(list(zip(sources, targets, strict=True)))

    return PerEpochTranslations(draw)


def number_names(generator: str) -> NumberNames:
    """numbers-de → English to German; numbers-de-fr → to German and to French"""
    targets = [name for name in LANGUAGES if name != "en"]
    languages = generator.removeprefix(GENERATORS).split("-")
    known = all(language in targets for language in languages)
    if not generator.startswith(GENERATORS) or not known or len(set(languages)) < len(languages):
        named = ", ".join(f"{GENERATORS}{name}" for name in targets)
        raise ValueError(
            f"data.generator ({generator!r}) must be one of {named}, or several: numbers-de-fr"
        )
    return NumberNames(languages)
