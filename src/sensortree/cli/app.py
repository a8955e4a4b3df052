"""The program `sensortree`: its commands, and how errors end them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from sensortree._version import __version__
from sensortree.cli import asking, inspecting, learning, options, preparing, using
from sensortree.cli.console import emit, say, told_warnings
from sensortree.cli.options import flag, output_file
from sensortree.exceptions import MissingDependencyError, SensorTreeError

FAILED, INTERRUPTED = 1, 130


class Commands(TyperGroup):
    """The commands; errors of the library end in a sentence and an exit code."""

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
    version: bool = flag(
        "--version", "Print the version.", callback=_print_version, is_eager=True
    ),
) -> None:
    """Learn which measurement to buy next, and when to stop."""


def demo(
    output: Path = output_file("FOLDER", "For the pictures.", Path("demo_output")),
    quick: bool = flag("--quick", "Fewer repeats: a look in seconds."),
    as_json: options.Json = False,
) -> None:
    """Show a model of heart patients and tests priced in dollars."""
    from sensortree.demo import show

    text = show(output, quick)
    emit("demo", {"output": str(output), "report": text}, text.rstrip(), as_json)


def reproduce(
    experiment: str | None = typer.Argument(
        None, metavar="EXPERIMENT", help="Without it, experiments are listed."
    ),
    arguments: list[str] | None = typer.Argument(
        None, metavar="ARGUMENTS", help="Handed on to the experiment."
    ),
    as_json: options.Json = False,
) -> None:
    """Run an experiment of a checkout again, or list them."""
    roots = (Path.cwd(), Path(__file__).resolve().parents[3])
    checkouts = [root for root in roots if (root / "experiments" / "run.py").is_file()]
    if not checkouts:
        raise MissingDependencyError(
            "there are no experiments here; they come with the source, not with the "
            "installed package: run this in a checkout of the repository."
        )
    studies = checkouts[0] / "experiments" / "studies"
    found = {path.stem: path for path in studies.glob("[!_]*.py")}
    found |= {path.parent.name: path for path in studies.glob("*/__init__.py")}
    if experiment is None:
        texts = {
            name: found[name].read_text(encoding="utf-8") for name in sorted(found)
        }
        about = {n: text.partition("\n")[0].strip('"') for n, text in texts.items()}
        text = "\n".join(f"{name:14} {what}" for name, what in about.items())
        emit("reproduce", {"experiments": about}, text, as_json)
        return
    if experiment not in found:
        raise typer.BadParameter(
            f"{experiment!r} is not one of {', '.join(sorted(found))}.",
            param_hint="EXPERIMENT",
        )
    command = [sys.executable, "-m", "experiments.run", experiment, *(arguments or [])]
    code = subprocess.run(command, cwd=checkouts[0], check=False).returncode
    if code:
        raise typer.Exit(code)


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
    inspecting.page,
    asking.serve,
    asking.token,
    inspecting.inspect,
    inspecting.plot,
    inspecting.verify,
    demo,
    reproduce,
):
    app.command(cls=options.Command)(command)
app.add_typer(asking.ledger, name="ledger")
