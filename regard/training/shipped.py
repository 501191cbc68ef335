"""The recipes that come with regard, by name."""

from __future__ import annotations

import difflib
from pathlib import Path

SHIPPED = Path(__file__).parent.parent / "recipes"


def find_recipe(name: str) -> Path:
    """A shipped recipe by its name, or a file of yours that ends in .toml."""
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ValueError(f"no recipe at {path}")
        return path
    shipped = {p.stem: p for p in sorted(SHIPPED.glob("*.toml"))}
    if name not in shipped:
        near = difflib.get_close_matches(name, shipped, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(shipped)}"
        raise ValueError(f"no recipe is named {name!r}; {hint} (a file of yours ends in .toml)")
    return shipped[name]
