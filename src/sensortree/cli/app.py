"""The program `sensortree`: its commands, and what becomes of errors."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sensortree._version import __version__
from sensortree.cli import (
    asking,
    inspecting,
    learning,
    preparing,
    publishing,
    serving,
    showing,
    using,
)
from sensortree.cli.console import say, told_warnings
from sensortree.cli.ledgers import ledger
from sensortree.exceptions import SensorTreeError

FAILED, INTERRUPTED = 1, 130


class Commands(TyperGroup):
    """The commands; whatever they raise on purpose becomes a sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            with told_warnings():
                return super().invoke(ctx)
        except (SensorTreeError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            say(str(error), "error")
            raise typer.Exit(FAILED) from error
        except (KeyboardInterrupt, typer.Abort) as error:
            say("interrupted.", "error")
            raise typer.Exit(INTERRUPTED) from error


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Learn which measurement to buy next, and when to stop.",
    epilog="Exit codes: 0 done; 1 data, sensors or model that cannot be used; 2 wrong "
    "usage; 3 done, but for some rows; 130 interrupted. Results go to "
    "stdout, everything else to stderr.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Learn which measurement to buy next, and when to stop."""


for command in (
    preparing.init,
    preparing.check,
    learning.fit,
    learning.curve,
    learning.compare,
    using.evaluate,
    using.report,
    using.predict,
    using.explain,
    asking.ask,
    publishing.page,
    serving.serve,
    serving.token,
    inspecting.inspect,
    inspecting.plot,
    inspecting.verify,
    showing.demo,
    showing.reproduce,
):
    app.command()(command)
app.add_typer(ledger, name="ledger")
