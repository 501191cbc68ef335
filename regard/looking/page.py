"""The pen that writes a page: one HTML file that opens from disk, with no network and no loader.

The page carries its pictures as SVG, its numbers as data, and one small script that connects both.
A content security policy names the script and the style by their hashes, so nothing that a token
may try to smuggle in could run or be fetched.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from regard.attention import Label
from regard.looking.colours import extent
from regard.looking.drawing import Cells, Drawing
from regard.looking.maps import draw
from regard.looking.svg import svg
from regard.looking.tokens import clip, direction, storable, visible
from regard.looking.views import View, head_name

EXACT = 250_000  # weights of one look that are kept as they are; above, in steps of 1/65,535
LONGEST = 400  # cells of a token that a tooltip shows

DIALOG = """<div id="tip" role="status" hidden></div>
<dialog id="large" aria-labelledby="large-title"><header><strong id="large-title"></strong>
<button id="large-before" aria-label="previous">◀</button>
<select id="large-list" aria-label="map"></select>
<button id="large-after" aria-label="next">▶</button>
<button id="large-close" aria-label="close">✕</button>
</header><figure id="large-map"></figure></dialog>
"""


def page(views: Sequence[View]) -> str:
    """Every look with its tooltips."""
    drawings = [draw(view) for view in views]
    sections = [
        section(view, drawing, at)
        for at, (view, drawing) in enumerate(zip(views, drawings, strict=True))
    ]
    data = [
        payload(view, drawing, at)
        for at, (view, drawing) in enumerate(zip(views, drawings, strict=True))
    ]
    return document(
        sections, data, ", ".join(dict.fromkeys(visible(view.look.path) for view in views))
    )


def plain_page(drawing: Drawing) -> str:
    """A drawing alone, in the same dress."""
    return document([figure(drawing, "drawing-")], [], drawing.name)


def document(sections: Iterable[str], data: list[dict[str, Any]], title: str) -> str:
    style, script = part("page.css"), part("page.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{digest(style)}'; "
        f"script-src '{digest(script)}'; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(clip(title, 120))}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<main>\n{''.join(sections)}</main>\n{DIALOG}"
        f'<script type="application/json" id="data">{inert(data)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def section(view: View, drawing: Drawing, at: int) -> str:
    texts = "".join(
        f'<p class="raw" id="{text["id"]}" data-name="{" and ".join(text["sides"])} text" '
        f'dir="auto">{escape(storable(text["text"]))}</p>\n'
        for text in raw_texts(view, at)
    )
    return f'<section class="look">\n{figure(drawing, f"look-{at}-")}{texts}</section>\n'


def figure(drawing: Drawing, prefix: str) -> str:
    return f"<figure>\n{svg(drawing, prefix=prefix, paper=None)}</figure>\n"


def payload(view: View, drawing: Drawing, at: int) -> dict[str, Any]:
    """What the script needs to know of one look."""
    look = view.look
    exact = view.values.size <= EXACT
    low, high = extent([view.values]) or (0.0, 0.0)
    steps = np.rint((view.values - low) * (65_535 / ((high - low) or 1.0)))
    numbers = view.values.astype("<f4") if exact else steps.astype("<u2")
    return {
        "path": visible(look.path),
        "heads": [head_name(name) for name in look.heads],
        "queries": [told(label) for label in view.queries],
        "keys": [told(label) for label in view.keys],
        "steps": look.steps if view.whole else None,
        "block": view.block,
        "exact": exact,
        "low": low,
        "high": high,
        "weights": packed(numbers),
        "hidden": packed(np.packbits(view.hidden)) if view.hidden.any() else None,
        "sums": packed(view.sums.astype("<f4")),
        "texts": raw_texts(view, at),
        "maps": [
            placed(cells, f"look-{at}-map-{index}", view)
            for index, cells in enumerate(drawing.maps)
        ],
    }


def told(label: Label) -> tuple[str, int | None, int | None, int]:
    shown = visible(label.text)
    known = label.start is not None and label.end is not None
    start, end = (label.start, label.end) if known else (None, None)
    return clip(shown, LONGEST), start, end, int(direction(shown) == "rtl")


def placed(cells: Cells, name: str, view: View) -> dict[str, Any]:
    place = cells.place
    assert place is not None
    parts = [head_name(view.look.heads[place.head])]
    if place.query_step == 0:
        parts.insert(0, clip(visible(view.queries[place.query].text), 40))
    return {
        "id": name,
        "title": " · ".join(filter(None, parts)),
        "x": [round(float(edge), 3) for edge in cells.x],
        "y": [round(float(edge), 3) for edge in cells.y],
        "place": [
            place.head,
            place.query,
            place.key,
            place.query_step,
            place.key_step,
            place.key_across,
        ],
    }


def raw_texts(view: View, at: int) -> list[dict[str, Any]]:
    """The texts the offsets point into; one paragraph when both sides share it."""
    look = view.look
    sides = {"query": (look.query_text, view.queries), "key": (look.key_text, view.keys)}
    known = {
        side: text
        for side, (text, labels) in sides.items()
        if text is not None and any(label.start is not None for label in labels)
    }
    if len(known) == 2 and look.query_text == look.key_text:
        return [{"id": f"look-{at}-text", "sides": ["query", "key"], "text": look.query_text}]
    return [
        {"id": f"look-{at}-{side}-text", "sides": [side], "text": text}
        for side, text in known.items()
    ]


def packed(numbers: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(numbers.tobytes()).decode()


def inert(data: object) -> str:
    """JSON in which no character means anything to HTML: `</script>` cannot end the element."""
    written = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def part(name: str) -> str:
    return files("regard.looking").joinpath(name).read_text("utf-8")
