"""Training and inference: "You are welcome" → "De nada", twice.

In training the target is known. Shifted right behind a start token it goes in all at once, and a
causal mask lets position t see no further than t, so every next word is predicted in one pass. In
inference only the source is known: each word is generated, then fed back. A trained model gives the
same logits both ways.

Vaswani et al. (2017), section 3.1; the name: Williams & Zipser (1989).
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.attention import KeyValueCache, Look, Padding, watch
from regard.lectures.catalog import TITLES
from regard.lectures.formatting import max_difference, table, to_list
from regard.lectures.lesson import MODELS, Lesson, step
from regard.lectures.seeding import fixed_seed
from regard.lectures.translator import END, PAIRS, START, STEPS, Translator, train_translator

SOURCE, TARGET = (sentence.split() for sentence in PAIRS[0])
LONGEST, SEED = 10, 15


@torch.no_grad()
def teacher_force(model: Translator) -> Tensor:
    """Teacher forcing: logits (position, vocabulary) behind start token and target, in one pass."""
    source, lengths = model.source_vocabulary.encode([SOURCE])
    target, _ = model.target_vocabulary.encode([[START, *TARGET]])
    return model.decode(target, model.encode(source, lengths), Padding(lengths))[0]


@torch.no_grad()
def generate(model: Translator) -> tuple[Tensor, list[str]]:
    """Greedy inference: logits (step, vocabulary) collected word by word, and the words."""
    source, lengths = model.source_vocabulary.encode([SOURCE])
    memory, memory_mask = model.encode(source, lengths), Padding(lengths)
    word, cache = torch.tensor([[model.target_vocabulary.ids[START]]]), KeyValueCache()
    logits: list[Tensor] = []
    words: list[str] = []
    while END not in words and len(words) < LONGEST:
        logits.append(model.decode(word, memory, memory_mask, cache)[:, -1])  # (1, vocabulary)
        word = logits[-1].argmax(dim=-1, keepdim=True)  # fed back at the next step
        words += model.target_vocabulary.decode(word[0])
    return torch.cat(logits), words


@torch.no_grad()
def teacher_force_padded(model: Translator, *, masked: bool) -> Tensor:
    """As `teacher_force`, in a batch whose other source is longer, so that ours is padded."""
    source, lengths = model.source_vocabulary.encode([SOURCE, [*SOURCE, *SOURCE]])
    target, _ = model.target_vocabulary.encode([[START, *TARGET]] * 2)
    memory_mask = Padding(lengths) if masked else None
    return model.decode(target, model.encode(source, lengths), memory_mask)[0]


def lesson() -> Lesson:
    with fixed_seed(SEED):
        model = train_translator()
        with watch(model) as seen:
            forced = teacher_force(model)
        stepped, words = generate(model)
        padded = teacher_force_padded(model, masked=True)
        unmasked = teacher_force_padded(model, masked=False)
    predictions = model.target_vocabulary.decode(forced.argmax(dim=-1))
    difference = max_difference(forced, stepped[: len(forced)])
    inputs, targets = [START, *TARGET], [*TARGET, END]
    return Lesson(
        name="teacher-forcing",
        title=TITLES["teacher-forcing"],
        source=MODELS,
        steps=(
            step(
                "A small translator, one encoder layer and one decoder layer, was trained just "
                f"now: {STEPS} steps on {len(PAIRS)} phrases, among them ours.",
                *(f"{english} → {spanish}" for english, spanish in PAIRS),
            ),
            step(
                "In training the target is shifted right behind a start token and goes in whole. A "
                "causal mask hides what comes later, so all positions are predicted at once.",
                *table(
                    [
                        ("position", *map(str, range(len(inputs)))),
                        ("input", *inputs),
                        ("target", *targets),
                        ("predicted", *predictions),
                    ]
                ),
            ),
            step(
                "In inference there is no target. One token goes in at a time, and what comes out "
                "is fed back; keys and values of earlier tokens wait in a cache.",
                *(
                    f"step {n}: {word} → {following}"
                    for n, (word, following) in enumerate(zip([START, *words], words, strict=False))
                ),
            ),
            step(
                "Same words, same logits: training in parallel asks for nothing that inference "
                "will not have.",
                f"largest difference of any logit: {difference:.1e}",
            ),
            step(
                "In a batch, beside a longer sentence, our source is padded. With that padding "
                "masked the logits stay; unmasked, the translator looks at padding as if it were "
                "words.",
                f"masked: changed by {max_difference(forced, padded):.1e}   "
                f"unmasked: changed by {max_difference(forced, unmasked):.2f}",
            ),
        ),
        numbers={
            "source": SOURCE,
            "inputs": inputs,
            "targets": targets,
            "predictions": predictions,
            "generated": words,
            "vocabulary": model.target_vocabulary.words,
            "logits_teacher_forced": to_list(forced),
            "logits_generated": to_list(stepped),
            "largest_difference": difference,
            "padding": {"masked": max_difference(forced, padded)},
            "as_written": {"source_padding_not_masked": max_difference(forced, unmasked)},
        },
        slip=(
            "the lecture has the encoder-decoder attention mask the padding of the target; what it "
            "looks at, and so what must be masked there, is the source."
        ),
        looks=(
            Look.of(
                seen["decoder_attention.block"][0],
                path="decoder attention",
                queries=inputs,
                keys=inputs,
            ),
            Look.of(
                seen["cross_attention.block"][0],
                path="cross attention",
                kind="cross",
                queries=inputs,
                keys=SOURCE,
            ),
        ),
    )
