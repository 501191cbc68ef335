"""`regard look`: where a run looks."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text", required=False)
@click.option("--input", "file", help="A file that is one text, a review say; - is standard input.")
@click.option("--target", help="What a translator is made to say; its own answer if left out.")
@click.option("--out", type=click.Path(path_type=Path), help="HTML, SVG, PNG, PDF or JSON.")
def look(
    run: Path, text: str | None, file: str | None, target: str | None, out: Path | None
) -> None:
    """Show where RUN looks while it reads TEXT.

    A TEXT that is the name of a file is read from there.
    """
    text = _read_text(text, file)
    from regard.running import load

    looks = load(run).look(text, target)
    if out is not None:
        looks.save(out)
        click.echo(f"saved {out}")
    else:
        looks.print()
    count = len(looks) + len({inner.path for look in looks for inner in look.inner})
    tokens = len(looks.tokens)
    several, words = ("" if number == 1 else "s" for number in (count, tokens))
    click.echo(f"{count} attention{several} over {tokens} token{words}")


def _read_text(text: str | None, file: str | None) -> str:
    """What was typed, or what is in the file that was named."""
    if text is not None and file is not None:
        raise ValueError(f"--input {file} and a text were given; one of them is enough")
    if text is not None and _is_file(text):
        click.echo(f"reading the file {text}", err=True)
        file = text
    if file is not None:
        from regard.data.corpora import read_text

        return read_text(file).removesuffix("\n")
    if text is None:
        raise ValueError("nothing to look at: give a text, or --input FILE")
    return text


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # a review is too long to be a name
        return False
