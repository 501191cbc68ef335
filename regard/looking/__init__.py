"""Looking: from weights to something a person can see.

from regard.looking import Looks, look

looks = look(model, tokenizer, "a text")  # any model; or Looks([…]) of looks at hand
looks.print()              # in the terminal, with or without colour
looks.save("look.html")    # also .svg, .png, .pdf, and .json to load again
Looks.load("look.json")

One layout, several renderers: what is where is decided once, in `Drawing`, and SVG, PNG, PDF and
the page all show the same one. Only the terminal, which has so few cells, lays out for itself.
"""

from regard.attention import Look
from regard.looking.curves import Curves, draw_curves
from regard.looking.drawing import Drawing
from regard.looking.gates import make_gate_looks
from regard.looking.inside import look
from regard.looking.looks import Looks


def draw_look(a_look: Look) -> Drawing:
    """The drawing of one look."""
    return Looks([a_look]).drawings()[0]


__all__ = [
    "Curves",
    "Drawing",
    "Looks",
    "draw_curves",
    "draw_look",
    "look",
    "make_gate_looks",
]
