"""The recipes that come with regard, by name."""

from __future__ import annotations

from pathlib import Path

from regard.naming import suggest

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
        hint = suggest(name, shipped)
        raise ValueError(f"no recipe is named {name!r}; {hint} (a file of yours ends in .toml)")
    return shipped[name]
