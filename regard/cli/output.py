"""Print lessons, save their pictures, and check where pictures are to go."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import click

from regard.lectures.lesson import Lesson


class Picture(Protocol):
    """Whatever can show itself and be saved."""

    def print(self) -> None: ...

    def save(self, path: Path) -> None: ...


def print_lesson(lesson: Lesson) -> None:
    """Print steps, numbers and pictures, in the order of the lecture."""
    click.echo(lesson.text())
    if lesson.listing is not None:
        click.echo(f"\n{lesson.listing}")
    for picture in collect_pictures(lesson):
        click.echo()
        picture.print()


def check_output_path(out: Path, option: str = "--out") -> None:
    """Refuse a path that cannot be written before a minute of work goes into it."""
    from regard.looking.files import check_ending
    from regard.looking.looks import ENDINGS

    check_ending(out, ENDINGS)
    if not out.absolute().parent.is_dir():
        raise ValueError(f"{option} {out}: there is no folder {out.parent}")


def save_pictures(lesson: Lesson, out: Path) -> list[Path]:
    """Save what the lesson draws; a second picture goes beside the first with a number."""
    if lesson.drawing is not None and out.suffix == ".svg":
        from regard.looking.files import write_file

        write_file(out, lesson.drawing.encode())
        return [out]
    pictures = collect_pictures(lesson)
    if not pictures:
        kinds = "SVG (--out FILE.svg)" if lesson.drawing is not None else "text only"
        raise ValueError(f"--out {out}: the lecture {lesson.name!r} has its picture as {kinds}")
    paths = [out, *(out.with_stem(f"{out.stem}-{n}") for n in range(2, len(pictures) + 1))]
    for picture, path in zip(pictures, paths, strict=True):
        picture.save(path)
    return paths


def collect_pictures(lesson: Lesson) -> list[Picture]:
    """The maps of a lesson, then its curves."""
    from regard.looking import Looks

    maps: list[Picture] = [Looks(lesson.looks)] if lesson.looks else []
    return [*maps, *lesson.curves]
