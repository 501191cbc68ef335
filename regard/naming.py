"""Suggest the nearest known name for a wrong one. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest(name: object, known: Iterable[str]) -> str:
    """`did you mean 'steps'?`, or all names there are when none is near."""
    names = [str(each) for each in known]
    near = get_close_matches(str(name), names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or 'none'}"
