"""A document pooled sentence by sentence: the text itself, shaded at both levels.

A sentence has a red bar on its left, the deeper the more it weighs. A word is blue by √p_s · p_w,
its weight within the sentence times the root of the sentence's: the important words of unimportant
sentences are still seen, but not louder than the rest.

Yang et al. (2016), "Hierarchical attention networks for document classification", section 3.5.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from regard.attention import Label, Look
from regard.looking.colours import FAINT, Floats, Scale
from regard.looking.drawing import Cells, Drawing, Mark, Place, Text
from regard.looking.fonts import measure_text
from regard.looking.frame import HEAD_HEIGHT, MARGIN, RAMP_SIZE, draw_ramp, format_weight
from regard.looking.tokens import clip, make_visible
from regard.looking.views import View, format_count
from regard.text_width import text_width

BAR_WIDTH, BAR_GAP = 34, 12  # the weight of a sentence, and what is free beside it
LINE_WIDTH, LINE_HEIGHT, SENTENCE_GAP = 780, 23, 6
WORD_SIZE, BLANK = 13.5, 5.0
MAX_WORD_CELLS = 60  # cells of a word that are shown
WORDS_LEGEND, SENTENCES_LEGEND = "word, times √ of its sentence", "sentence"


@dataclass(frozen=True, eq=False, kw_only=True)
class DocumentView(View):
    """A document made dense: its keys are all words, and behind them the sentences."""

    sentences: tuple[range, ...]  # the words of each, by their numbers
    blanks: tuple[bool, ...]  # whether a blank stands before a word
    sentence_scale: Scale

    @property
    def words(self) -> int:
        return len(self.keys) - len(self.sentences)

    def weight_of_sentence(self, sentence: int) -> float:
        return float(self.values[0, 0, self.words + sentence])


def is_document(look: Look) -> bool:
    """Whether a look pools sentences into one vector and holds a look at the words of each."""
    return _pools(look) and 0 < len(look.inner) == len(look.keys) and all(map(_pools, look.inner))


def _pools(look: Look) -> bool:
    return look.kind == "pool" and len(look.queries) == len(look.heads) == 1 and bool(look.keys)


def shade_words(look: Look) -> Floats:
    """√p_s · p_w of all words of a document: (word,)."""
    sentences = look.weights[0, 0]  # (sentence,)
    shaded = [
        weight.clamp(min=0).sqrt() * inner.weights[0, 0]
        for weight, inner in zip(sentences, look.inner, strict=True)
    ]
    return torch.cat(shaded).numpy()


def make_document_view(look: Look) -> DocumentView:
    """The view of a document: what is shown of each word, and the weight of each sentence."""
    words, sentences = shade_words(look), look.weights[0, 0].numpy()
    counts = [len(inner.keys) for inner in look.inner]
    ends = np.cumsum([0, *counts]).tolist()
    values = np.concatenate([words, sentences])[None, None]
    keys = [_as_written(label, look.key_text) for inner in look.inner for label in inner.keys]
    names = ", ".join(dict.fromkeys((look.path, *(inner.path for inner in look.inner))))
    shown = Look.of_weights(
        torch.from_numpy(values),
        path=names,
        kind="pool",
        queries=look.queries,
        keys=[*keys, *look.keys],
    )
    size = f"{format_count(len(sentences), 'sentence')} · {format_count(len(words), 'word')}"
    return DocumentView(
        shown,
        shown.queries,
        shown.keys,
        values,
        np.zeros(values.shape, bool),
        np.zeros((1, 0), np.float32),
        Scale.fit([words]),
        caption=f"document read as «{make_visible(look.queries[0].text)}» · {size}",
        sentences=tuple(map(range, ends[:-1], ends[1:])),
        blanks=tuple(_has_blank(keys, at, look.key_text) for at in range(len(keys))),
        sentence_scale=Scale.fit([sentences], hue="red"),
    )


def _as_written(label: Label, text: str | None) -> Label:
    """The word as the text has it, where a label may be folded or the unknown."""
    if text is None or label.start is None or label.end is None or label.start == label.end:
        return label
    return Label(text[label.start : label.end], label.start, label.end)


def _has_blank(words: Sequence[Label], at: int, text: str | None) -> bool:
    before, start = words[at - 1].end if at else None, words[at].start
    if text is None or before is None or start is None:
        return True
    return start > before


def break_sentence(
    view: DocumentView, words: range, widths: Sequence[float], line_width: float
) -> Iterator[range]:
    """The words of each line, by their numbers; a comma stays with the word before it."""
    ends = np.cumsum([0.0, *widths])

    def width(begin: int, end: int) -> float:
        return float(ends[end - words.start] - ends[begin - words.start])

    first = words.start
    begins = [word for word in words if word == words.start or view.blanks[word]]
    for begin, end in pairwise([*begins, words.stop]):
        # What has no blanks in it is taken apart only if no line could hold it.
        parts = range(begin, end) if width(begin, end) > line_width else (begin,)
        for part, part_end in pairwise([*parts, end]):
            if part > first and width(first, part_end) > line_width:
                yield range(first, part)
                first = part
    yield range(first, words.stop)


def draw_document(view: DocumentView) -> Drawing:
    """The text in lines, each sentence on lines of its own behind its bar."""
    y = float(HEAD_HEIGHT)
    marks: list[Mark] = []
    for number, words in enumerate(view.sentences):
        widths = [_word_width(view, word) for word in words]
        top = y
        for line in break_sentence(view, words, widths, LINE_WIDTH):
            own = widths[line.start - words.start : line.stop - words.start]
            marks += _draw_line(view, line, own, y)
            y += LINE_HEIGHT
        marks += _draw_bar(view, number, top, y - 2)
        y += SENTENCE_GAP
    width = MARGIN + BAR_WIDTH + BAR_GAP + LINE_WIDTH + MARGIN
    title = clip(make_visible(view.look.path), 80)
    head = [
        Text(MARGIN, 24, title, size=16, bold=True),
        Text(MARGIN, 45, clip(view.caption, 110), colour=FAINT),
    ]
    foot = [*_draw_legend(view, y + 16)]
    name = f"{title}: {view.caption}"
    return Drawing(width, y + 36, (*head, *marks, *foot), name)


def _word_width(view: DocumentView, word: int) -> float:
    """A word with the blank before it."""
    return measure_text(_shown(view, word), WORD_SIZE) + BLANK * view.blanks[word]


def _shown(view: DocumentView, word: int) -> str:
    return clip(make_visible(view.keys[word].text), MAX_WORD_CELLS)


def _draw_line(
    view: DocumentView, words: range, widths: Sequence[float], y: float
) -> Iterator[Mark]:
    """Words on their shades; the blank between two is half of each one's."""
    left = MARGIN + BAR_WIDTH + BAR_GAP
    ends = left + np.cumsum([0.0, *widths])  # each word begins a blank behind the end before it
    opened = np.array([view.blanks[word] for word in words] + [True])
    edges = ends + BLANK / 2 * opened
    values = view.values[0, :, words.start : words.stop]
    place = Place(0, key=words.start, query_step=0)
    rows = np.array([y, y + LINE_HEIGHT - 3])
    yield Cells(edges, rows, values, np.zeros(values.shape, bool), view.scale, 0, place)
    middle = y + (LINE_HEIGHT - 3) / 2
    for at, word in enumerate(words):
        colour = view.scale.text_colour(float(values[0, at]))
        x, width = float(ends[at]) + BLANK * view.blanks[word], float(widths[at])
        yield Text(
            x,
            middle,
            _shown(view, word),
            WORD_SIZE,
            colour=colour,
            width=width - BLANK * view.blanks[word],
        )


def _draw_bar(view: DocumentView, sentence: int, top: float, bottom: float) -> Iterator[Mark]:
    """The weight of a sentence, beside all of its lines."""
    value, scale = view.weight_of_sentence(sentence), view.sentence_scale
    place = Place(0, key=view.words + sentence, query_step=0)
    x, y = np.array([MARGIN, MARGIN + BAR_WIDTH]), np.array([top, bottom])
    yield Cells(x, y, np.array([[value]]), np.zeros((1, 1), bool), scale, 0, place)
    middle = top + (LINE_HEIGHT - 3) / 2
    number = format_weight(value)
    colour = scale.text_colour(value)
    yield Text(MARGIN + BAR_WIDTH / 2, middle, number, 11, "middle", colour=colour)


def _draw_legend(view: DocumentView, y: float) -> Iterator[Mark]:
    """Both scales of colour, each with its ends and what it is of."""
    x = float(MARGIN)
    for scale, words in ((view.sentence_scale, SENTENCES_LEGEND), (view.scale, WORDS_LEGEND)):
        low, high = scale.end_labels
        yield Text(x, y, low, size=11)
        x += text_width(low, 11) + 5
        yield draw_ramp(scale, x, y)
        x += RAMP_SIZE[0] + 6
        yield Text(x, y, high, size=11)
        x += text_width(high, 11) + 10
        yield Text(x, y, words, size=11, colour=FAINT)
        x += text_width(words, 11) + 30
