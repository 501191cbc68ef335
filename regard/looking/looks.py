"""Looks, to be printed, saved and shown."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TextIO, overload

import torch

from regard.attention import Look
from regard.looking import record
from regard.looking.computed import DTYPES
from regard.looking.console import make_console, print_lines, width_and_colour
from regard.looking.documents import is_document, make_document_view
from regard.looking.drawing import Drawing, stack
from regard.looking.figure import render_pdf, render_png
from regard.looking.files import check_ending, write_file
from regard.looking.maps import draw_view
from regard.looking.page import render_page
from regard.looking.svg import render_svg
from regard.looking.terminal import render_terminal
from regard.looking.views import View, make_views
from regard.naming import suggest

ENDINGS = (".html", ".svg", ".png", ".pdf", ".json")


class Looks(Sequence[Look]):
    """Some looks in their order; it never changes.

    looks.print()                 # in the terminal
    looks.save("look.html")       # or .svg, .png, .pdf, .json by the ending
    looks["decoder.attention"]    # one of them, by its path or number
    """

    def __init__(self, looks: Iterable[Look]):
        self._looks = tuple(looks)

    @overload
    def __getitem__(self, at: int | str) -> Look: ...
    @overload
    def __getitem__(self, at: slice) -> "Looks": ...
    def __getitem__(self, at: int | str | slice) -> "Look | Looks":
        if isinstance(at, str):
            return self._only(at)
        return Looks(self._looks[at]) if isinstance(at, slice) else self._looks[at]

    def __len__(self) -> int:
        return len(self._looks)

    def __iter__(self) -> Iterator[Look]:
        return iter(self._looks)

    def __contains__(self, wanted: object) -> bool:
        """By path, or the very look: two looks are not compared weight by weight."""
        return any(wanted is look or wanted == look.path for look in self._looks)

    def __repr__(self) -> str:
        return f"Looks({', '.join(self.paths)})"

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(look.path for look in self._looks)

    @property
    def tokens(self) -> tuple[str, ...]:
        """What the first look looks at: for most models, the text that was put in."""
        innermost = self._looks[:1]
        while any(look.inner for look in innermost):  # a document's words, not its sentences
            innermost = tuple(inner for look in innermost for inner in look.inner)
        return tuple(label.text for look in innermost for label in look.keys)

    def under(self, path: str) -> "Looks":
        """All looks at this path and below it: `layers.3` holds `layers.3.attention`."""
        found = [look for look in self._looks if f"{look.path}.".startswith(f"{path}.")]
        if not found:
            raise self._unknown(path)
        return Looks(found)

    def print(
        self, file: TextIO | None = None, colour: bool | None = None, width: int | None = None
    ) -> None:
        """Show every look as text.

        Colour and width are the terminal's own unless given; NO_COLOR is respected.
        """
        console = make_console(file, colour, width)
        for look in self._all():
            print_lines(console, render_terminal(look, *width_and_colour(console)))

    def save(self, path: str | Path, dtype: torch.dtype = torch.float32) -> None:
        """Write a file of the kind its ending names: .html, .svg, .png, .pdf or .json.

        `dtype` is for .json: `torch.float16` stores queries and keys in half the room.
        """
        path = Path(path)
        kind = check_ending(path, ENDINGS)
        if not self._looks:
            raise ValueError(f"path ({str(path)!r}): there are no looks to save")
        if dtype not in DTYPES.values():
            raise ValueError(f"dtype ({dtype}) must be one of {', '.join(DTYPES)}")
        if kind == ".json":
            record.write_looks(self._looks, path, dtype)
        elif kind == ".html":
            write_file(path, render_page(self._views()).encode())
        elif kind == ".svg":
            write_file(path, render_svg(stack(self.drawings())).encode())
        else:
            write_file(path, (render_png if kind == ".png" else render_pdf)(self.drawings()))

    @classmethod
    def load(cls, path: str | Path) -> "Looks":
        """The looks of a saved .json, exactly as they were."""
        return cls(record.read_looks(Path(path)))

    def drawings(self) -> list[Drawing]:
        """One drawing a look: what SVG, PNG and PDF show."""
        return [draw_view(view) for view in self._views()]

    def _repr_html_(self) -> str:
        """The page in a frame of its own: a notebook's styles and scripts stay out of it."""
        if not self._looks:
            return "<em>no looks</em>"
        seen = self._views()
        height = min(760, 40 + int(sum(draw_view(view).height + 60 for view in seen)))
        return (
            f'<iframe srcdoc="{escape(render_page(seen))}" sandbox="allow-scripts" width="100%" '
            f'height="{height}" style="border: 0" title="{escape(repr(self))}"></iframe>'
        )

    def _all(self) -> list[Look]:
        """Each look, and behind it those inside it; a document shows its sentences itself."""
        return [
            each
            for look in self._looks
            for each in (look, *(() if is_document(look) else Looks(look.inner)._all()))
        ]

    def _views(self) -> list[View]:
        """What is drawn of all looks, in their order."""
        looks = self._all()
        others = iter(make_views([look for look in looks if not is_document(look)]))
        return [make_document_view(look) if is_document(look) else next(others) for look in looks]

    def _only(self, path: str) -> Look:
        found = [look for look in self._looks if look.path == path]
        if not found:
            raise self._unknown(path)
        if len(found) > 1:
            raise ValueError(
                f"path ({path!r}) was looked at {len(found)} times: take one of .under({path!r})"
            )
        return found[0]

    def _unknown(self, path: str) -> ValueError:
        hint = suggest(path, self.paths)
        return ValueError(f"path ({path!r}) is not among the {len(self)} looks; {hint}")
