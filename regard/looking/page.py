"""Render looks as a page: one HTML file that opens from disk, with no network and no loader.

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
from regard.looking.colours import find_extent
from regard.looking.drawing import Cells, Drawing
from regard.looking.maps import draw_view
from regard.looking.svg import render_svg
from regard.looking.tokens import clip, direction, make_visible, replace_surrogates
from regard.looking.views import View, head_name

MAX_EXACT_WEIGHTS = 250_000  # of one look; more are stored in steps of 1/65,535
MAX_TOOLTIP_CELLS = 400  # cells of a token that a tooltip shows

DIALOG = """<div id="tip" role="status" hidden></div>
<dialog id="large" aria-labelledby="large-title"><header><strong id="large-title"></strong>
<button id="large-before" aria-label="previous">◀</button>
<select id="large-list" aria-label="map"></select>
<button id="large-after" aria-label="next">▶</button>
<button id="large-close" aria-label="close">✕</button>
</header><figure id="large-map"></figure></dialog>
"""


def render_page(views: Sequence[View]) -> str:
    """The page of some looks, with their tooltips."""
    drawings = [draw_view(view) for view in views]
    sections = [
        render_section(view, drawing, at)
        for at, (view, drawing) in enumerate(zip(views, drawings, strict=True))
    ]
    data = [
        look_payload(view, drawing, at)
        for at, (view, drawing) in enumerate(zip(views, drawings, strict=True))
    ]
    return render_document(
        sections, data, ", ".join(dict.fromkeys(make_visible(view.look.path) for view in views))
    )


def render_plain_page(drawing: Drawing) -> str:
    """The page of a drawing alone, in the same style."""
    return render_document([render_figure(drawing, "drawing-")], [], drawing.name)


def render_document(sections: Iterable[str], data: list[dict[str, Any]], title: str) -> str:
    """The HTML document around the sections and the data of a page."""
    style, script = read_asset("page.css"), read_asset("page.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{hash_source(style)}'; "
        f"script-src '{hash_source(script)}'; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(clip(title, 120))}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<main>\n{''.join(sections)}</main>\n{DIALOG}"
        f'<script type="application/json" id="data">{to_inert_json(data)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def render_section(view: View, drawing: Drawing, at: int) -> str:
    """One look: its drawing, and below it the raw texts."""
    texts = "".join(
        f'<p class="raw" id="{text["id"]}" data-name="{" and ".join(text["sides"])} text" '
        f'dir="auto">{escape(replace_surrogates(text["text"]))}</p>\n'
        for text in collect_raw_texts(view, at)
    )
    return f'<section class="look">\n{render_figure(drawing, f"look-{at}-")}{texts}</section>\n'


def render_figure(drawing: Drawing, prefix: str) -> str:
    """A drawing as an HTML figure."""
    return f"<figure>\n{render_svg(drawing, prefix=prefix, paper=None)}</figure>\n"


def look_payload(view: View, drawing: Drawing, at: int) -> dict[str, Any]:
    """What the script needs to know of one look."""
    look = view.look
    exact = view.values.size <= MAX_EXACT_WEIGHTS
    low, high = find_extent([view.values]) or (0.0, 0.0)
    steps = np.rint((view.values - low) * (65_535 / ((high - low) or 1.0)))
    numbers = view.values.astype("<f4") if exact else steps.astype("<u2")
    return {
        "path": make_visible(look.path),
        "heads": [head_name(name) for name in look.heads],
        "queries": [label_payload(label) for label in view.queries],
        "keys": [label_payload(label) for label in view.keys],
        "steps": None if view.in_blocks else look.steps,
        "block": view.block,
        "exact": exact,
        "low": low,
        "high": high,
        "weights": to_base64(numbers),
        "hiddenMeans": view.terms.hidden,
        "hidden": to_base64(np.packbits(view.hidden)) if view.hidden.any() else None,
        "sums": to_base64(view.sums.astype("<f4")),
        "texts": collect_raw_texts(view, at),
        "maps": [
            map_payload(cells, f"look-{at}-map-{index}", view)
            for index, cells in enumerate(drawing.maps)
        ],
    }


def label_payload(label: Label) -> tuple[str, int | None, int | None, int]:
    """A token's text, its start and end in the raw text, and 1 if it runs leftward."""
    text = make_visible(label.text)
    known = label.start is not None and label.end is not None
    start, end = (label.start, label.end) if known else (None, None)
    return clip(text, MAX_TOOLTIP_CELLS), start, end, int(direction(text) == "rtl")


def map_payload(cells: Cells, name: str, view: View) -> dict[str, Any]:
    """What the script needs to know of one map: where its cells are, and which weights."""
    place = cells.place
    assert place is not None
    parts = [head_name(view.look.heads[place.head])]
    if place.query_step == 0:
        parts.insert(0, clip(make_visible(view.queries[place.query].text), 40))
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


def collect_raw_texts(view: View, at: int) -> list[dict[str, Any]]:
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


def to_base64(numbers: np.ndarray[Any, Any]) -> str:
    """The bytes of an array in Base64."""
    return base64.b64encode(numbers.tobytes()).decode()


def to_inert_json(data: object) -> str:
    """JSON in which no character means anything to HTML: `</script>` cannot end the element."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def hash_source(text: str) -> str:
    """The SHA-256 of a script or style, as a content security policy writes it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def read_asset(name: str) -> str:
    """A file beside this one: `page.css` or `page.js`."""
    return files("regard.looking").joinpath(name).read_text("utf-8")
