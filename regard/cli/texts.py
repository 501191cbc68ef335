"""The doorway of every command that takes texts: how they come in, how answers go out.

@click.command()
@takes_texts
@decoding_options
def translate(texts: Texts, **settings: object) -> None:
    texts.answer("translate", settings)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from regard.running import Answer, Run
    from regard.tasks.answering import BoundVerb

WINDOW = 1024
"""Lines that are sorted by length together: the first answer waits for this many at the most."""


def takes_texts(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare RUN, TEXTS, --input, --json and --look, and hand them in as one `Texts`."""

    @click.argument("run", type=click.Path(path_type=Path))
    @click.argument("texts", nargs=-1)
    @click.option("--input", "file", help="A file with a text a line; - is standard input.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object a text.")
    @click.option(
        "--look",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Save where the model looked: HTML, SVG, PNG, PDF or JSON (one text).",
    )
    @wraps(command)
    def doorway(
        run: Path,
        texts: tuple[str, ...],
        file: str | None,
        as_json: bool,
        look: Path | None,
        **settings: object,
    ) -> Any:
        return command(Texts(run, texts, file, as_json, look), **settings)

    return doorway


def decoding_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The [decoding] section as options; what is not given stays as the run's recipe has it."""
    methods = click.Choice(["greedy", "sample", "beam"])
    penalties = click.Choice(["none", "gnmt", "average", "power"])
    stoppings = click.Choice(["exact", "hf", "hf-early", "hf-never"])
    precisions = click.Choice(["float32", "int8"])
    for option in (
        click.option("--weights", type=precisions, help="int8: matrices in 8 bits, for speed."),
        click.option(
            "--sliding",
            is_flag=True,
            default=None,
            help="Read the last words of a prompt that is too long.",
        ),
        click.option("--no-repeat-ngram", type=int, help="Say no n words in a row twice."),
        click.option("--stopping", type=stoppings, help="When a beam is done; hf: as theirs."),
        click.option("--length-alpha", type=float, help="Strength of the gnmt or power penalty."),
        click.option("--length-penalty", type=penalties, help="What scores are divided by."),
        click.option("--shortest", type=int, help="Words before the end may come."),
        click.option("--longest", type=int, help="Words at most."),
        click.option("--seed", type=int, help="Of the draws (samples)."),
        click.option("--top-p", type=float, help="Draw from the likeliest share p (samples)."),
        click.option("--top-k", type=int, help="Draw from the k likeliest words (samples)."),
        click.option("--temperature", type=float, help="0 is greedy (samples)."),
        click.option("--n-best", type=int, help="Answers to each text, best first."),
        click.option("--beam", type=int, help="Hypotheses kept at each step (searches)."),
        click.option("--method", type=methods, help="Left out: what the other options ask for."),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class Texts:
    """What a command was asked: texts from its arguments or from a file, and how to answer."""

    run: Path
    given: tuple[str, ...]
    file: str | None
    as_json: bool
    look: Path | None

    def __post_init__(self) -> None:
        if self.file is not None and self.given:
            raise ValueError(f"--input {self.file} and a text were given; one of them is enough")
        if self.look is not None:
            from regard.cli.output import check_output_path

            check_output_path(self.look, "--look")
            if self.file is not None or len(self.given) > 1:
                asked = f"--input {self.file}" if self.file else f"{len(self.given)} texts"
                raise ValueError(f"--look {self.look} draws one text; {asked} may be more")

    def answer(
        self,
        verb: str,
        settings: dict[str, Any],
        *,
        nothing: tuple[str, ...] = (),
        shown: Callable[[Any], str] = lambda candidate: candidate.output,
        between: str = "",
    ) -> None:
        """Answer every text and print the answers in order, each as soon as it is ready.

        `nothing` are the texts when none were given, `shown` is what of a hypothesis is printed,
        and `between` stands between several.
        """
        for run, answer in self.answers(verb, settings, nothing=nothing):
            self._print(answer, shown, between)
            if self.look is not None:
                self._draw(run, answer)

    def answers(
        self, verb: str, settings: dict[str, Any], *, nothing: tuple[str, ...] = ()
    ) -> Iterator[tuple[Run, Answer]]:
        """Every answer in the order of the texts, once it is ready, and the run that gave it."""
        given = self.given or nothing
        if self.file is None and not given:
            raise ValueError(f"nothing to {verb}: give a text, or --input FILE")
        from regard.running import load

        # Before the model, which takes longer: a file that is not there is told at once.
        windows = [list(given)] if self.file is None else self._windows()
        loaded = load(self.run)
        bound = loaded.bind(verb, **settings)  # what is refused is refused before a line is read
        first = 0
        with self._progress() as done:
            for window in windows:
                for answer in self._answers(bound, window, first):
                    yield loaded, answer
                    done()
                first += len(window)

    def _answers(self, bound: BoundVerb, window: list[str], first: int) -> Iterator[Answer]:
        """The answers to the texts of a window; an empty line of a file has an empty answer."""
        from regard.running import Answer

        asked = [self.file is None or bool(text.strip()) for text in window]
        numbers = [first + place for place, wanted in enumerate(asked) if wanted]
        texts = [window[number - first] for number in numbers]
        found = bound.answers(texts, numbers)
        for text, wanted in zip(window, asked, strict=True):
            yield next(found) if wanted else Answer.empty(text)

    def _print(self, answer: Answer, shown: Callable[[Any], str], between: str) -> None:
        if self.as_json:
            click.echo(json.dumps(answer.as_dict(), ensure_ascii=False))
        else:
            click.echo(f"\n{between}".join(shown(each) for each in answer.hypotheses))

    def _draw(self, run: Run, answer: Answer) -> None:
        assert self.look is not None
        run.look_at(answer).save(self.look)
        click.echo(f"saved {self.look}", err=True)

    def _windows(self) -> Iterator[list[str]]:
        """The lines of the file, many at a time; of a pipe, those that are there already."""
        from regard.cli.windows import waiting_lines, windows
        from regard.data.corpora import read_lines

        assert self.file is not None
        read = read_lines(self.file)
        return waiting_lines(read, WINDOW) if self._is_pipe() else windows(read, WINDOW)

    def _is_pipe(self) -> bool:
        """Whether somebody may be at the other end, waiting for an answer before the next line."""
        if self.file != "-":
            return not Path(self.file or "").is_file()
        try:
            return not Path(f"/dev/fd/{sys.stdin.fileno()}").is_file()
        except OSError:  # no file at all, as under a test
            return False

    @contextmanager
    def _progress(self) -> Iterator[Callable[[], None]]:
        """A bar on the terminal while the answers to a file go elsewhere."""
        from regard.cli.counting import count_done

        if self.file is None or sys.stdout.isatty():
            yield lambda: None
            return
        count = None if self._is_pipe() or self.file == "-" else _count_lines(self.file)
        with count_done(count) as done:
            yield done


def _count_lines(file: str) -> int:
    from regard.data.corpora import read_lines

    return sum(1 for _ in read_lines(file))


def files_from_here(files: tuple[str, ...]) -> list[str]:
    """The files of --data: as they are found from here, else where the recipe has its data."""
    return [str(Path(file).absolute()) if Path(file).exists() else file for file in files]
