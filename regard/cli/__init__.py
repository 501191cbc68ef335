"""What a user types. One file a command; each declares its words and makes one call into a room.

Nothing here imports torch before a command runs, so that `regard --help` answers at once.
"""

from __future__ import annotations

import os
import sys

import click

from regard import __version__
from regard.cli.align import align
from regard.cli.classify import classify
from regard.cli.demo import demo
from regard.cli.embed import embed
from regard.cli.evaluate import evaluate
from regard.cli.export import export
from regard.cli.fill import fill
from regard.cli.generate import generate
from regard.cli.import_ import import_
from regard.cli.lecture import lecture
from regard.cli.look import look
from regard.cli.recipes import recipes
from regard.cli.senses import senses
from regard.cli.train import train
from regard.cli.translate import translate
from regard.cli.verify import verify
from regard.cli.zoo import zoo
from regard.openmp import spin_briefly


class OneLineErrors(click.Group):
    """Wrong input is answered with one line and exit code 2, never with a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Whoever reads, `head` say, has seen enough; nothing more can be written there.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except click.UsageError as error:
            asked = (error.ctx or ctx).command_path
            click.echo(f"regard: {error.format_message()} See: {asked} --help", err=True)
            ctx.exit(2)
        except (ValueError, FloatingPointError, OSError) as error:
            click.echo(f"regard: {' '.join(str(error).split())}", err=True)
            ctx.exit(2)


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="regard")
def main() -> None:
    """Sequence models of the attention lineage: train them, run them, look inside them."""
    spin_briefly()


for command in (
    align,
    classify,
    demo,
    embed,
    evaluate,
    export,
    fill,
    generate,
    import_,
    lecture,
    look,
    recipes,
    senses,
    train,
    translate,
    verify,
    zoo,
):
    main.add_command(command)
