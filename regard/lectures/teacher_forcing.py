"""Training and inference: "You are welcome" → "De nada", twice.

In training the target is known. Shifted right behind a start token it goes in all at once, and a
causal mask lets position t see no further than t, so every next word is foretold in one pass. In
inference only the source is known: each word is said, fed back, and the next one said. A trained
model gives the same logits both ways.

Vaswani et al. (2017), section 3.1; the name: Williams & Zipser (1989).
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.attention import KeyValueCache, Look, Padding, watch
from regard.lectures.catalog import TITLES
from regard.lectures.figures import plain, table
from regard.lectures.lesson import MODELS, Lesson, step
from regard.lectures.translator import END, PAIRS, START, STEPS, Translator, trained
from regard.lectures.workshop import workshop

SOURCE, TARGET = (sentence.split() for sentence in PAIRS[0])
LONGEST, SEED = 10, 15


@torch.no_grad()
def all_at_once(model: Translator) -> Tensor:
    """Teacher forcing: logits (position, vocabulary) behind start token and target."""
    source, lengths = model.source.encode([SOURCE])
    said, _ = model.target.encode([[START, *TARGET]])
    logits: Tensor = model.say(said, model.read(source, lengths), Padding(lengths))
    return logits[0]


@torch.no_grad()
def one_by_one(model: Translator) -> tuple[Tensor, list[str]]:
    """Inference: the same logits gathered step by step, and the words said."""
    source, lengths = model.source.encode([SOURCE])
    memory, seen = model.read(source, lengths), Padding(lengths)
    word, cache = torch.tensor([[model.target.ids[START]]]), KeyValueCache()
    logits: list[Tensor] = []
    words: list[str] = []
    while END not in words and len(words) < LONGEST:
        logits.append(model.say(word, memory, seen, cache)[:, -1])  # (1, vocabulary)
        word = logits[-1].argmax(dim=-1, keepdim=True)  # fed back at the next step
        words += model.target.decode(word[0])
    return torch.cat(logits), words


@torch.no_grad()
def beside_a_longer_sentence(model: Translator, masked: bool) -> Tensor:
    """As `all_at_once`, in a batch whose other source is longer, so that ours is padded."""
    source, lengths = model.source.encode([SOURCE, [*SOURCE, *SOURCE]])
    said, _ = model.target.encode([[START, *TARGET]] * 2)
    seen = Padding(lengths) if masked else None
    logits: Tensor = model.say(said, model.read(source, lengths), seen)
    return logits[0]


def lesson() -> Lesson:
    with workshop(SEED):
        model = trained()
        with watch(model) as looked:
            forced = all_at_once(model)
        stepped, words = one_by_one(model)
        padded = beside_a_longer_sentence(model, masked=True)
        unmasked = beside_a_longer_sentence(model, masked=False)
    foretold = model.target.decode(forced.argmax(dim=-1))
    same = _difference(forced, stepped[: len(forced)])
    inputs, wanted = [START, *TARGET], [*TARGET, END]
    return Lesson(
        name="teacher-forcing",
        title=TITLES["teacher-forcing"],
        source=MODELS,
        steps=(
            step(
                f"A small translator, one layer to read and one to write, was trained just now: "
                f"{STEPS} steps on {len(PAIRS)} phrases, among them ours.",
                *(f"{english} → {spanish}" for english, spanish in PAIRS),
            ),
            step(
                "In training the target is shifted right behind a start token and goes in whole. A "
                "causal mask hides what comes later, so all positions are foretold at once.",
                *table(
                    [
                        ("position", *map(str, range(len(inputs)))),
                        ("goes in", *inputs),
                        ("wanted", *wanted),
                        ("foretold", *foretold),
                    ]
                ),
            ),
            step(
                "In inference there is no target. One token goes in at a time, and what comes out "
                "is fed back; keys and values of earlier tokens wait in a cache.",
                *(
                    f"step {n}: {word} → {said}"
                    for n, (word, said) in enumerate(zip([START, *words], words, strict=False))
                ),
            ),
            step(
                "Same words, same logits: training in parallel asks for nothing that inference "
                "will not have.",
                f"largest difference of any logit: {same:.1e}",
            ),
            step(
                "In a batch, beside a longer sentence, our source is padded. With that padding "
                "masked the logits stay; unmasked, the translator looks at padding as if it were "
                "words.",
                f"masked: changed by {_difference(forced, padded):.1e}   "
                f"unmasked: changed by {_difference(forced, unmasked):.2f}",
            ),
        ),
        numbers={
            "source": SOURCE,
            "inputs": inputs,
            "wanted": wanted,
            "foretold": foretold,
            "said": words,
            "vocabulary": model.target.words,
            "logits_all_at_once": plain(forced),
            "logits_one_by_one": plain(stepped),
            "largest_difference": same,
            "padding": {"masked": _difference(forced, padded)},
            "as_written": {"source_padding_not_masked": _difference(forced, unmasked)},
        },
        slip=(
            "the lecture has the encoder-decoder attention mask the padding of the target; what it "
            "looks at, and so what must be masked there, is the source."
        ),
        looks=(
            Look.of(looked["recalling.block"][0], path="recalling", queries=inputs, keys=inputs),
            Look.of(
                looked["looking.block"][0],
                path="looking",
                kind="cross",
                queries=inputs,
                keys=SOURCE,
            ),
        ),
    )


def _difference(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())
