"""`demo` and `reproduce`: what the library does on data that we chose."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from sensortree.cli import options
from sensortree.cli.console import emit


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="For the pictures.")
    ] = Path("demo_output"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repeats: a look in seconds.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Show heart patients and tests priced in dollars."""
    from sensortree.demo import main

    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main(["--output", str(output), *(["--quick"] if quick else [])])
    if code:
        raise typer.Exit(code)
    text = printed.getvalue()
    emit("demo", {"output": str(output), "report": text}, text.rstrip(), as_json)


def reproduce(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="EXPERIMENT",
            show_default=False,
            help="One of those that the command lists without it.",
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGUMENTS", show_default=False, help="Handed on to the experiment."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Run an experiment of a checkout again, or list those there are."""
    folder = _experiments()
    found = {name: _first_line(path) for name, path in studies(folder).items()}
    if experiment is None:
        text = "\n".join(f"{name:14} {what}" for name, what in found.items())
        emit("reproduce", {"experiments": found}, text, as_json)
        return
    if experiment not in found:
        raise typer.BadParameter(
            f"{experiment!r} is not one of {', '.join(found)}.", param_hint="EXPERIMENT"
        )
    command = [sys.executable, "-m", "experiments.run", experiment, *(arguments or [])]
    code = subprocess.run(command, cwd=folder.parent, check=False).returncode
    if code:
        raise typer.Exit(code)


def _experiments() -> Path:
    """The folder of experiments: of the current folder, or beside the sources."""
    from sensortree.exceptions import MissingDependencyError

    beside = Path(__file__).resolve().parents[3]
    for folder in (Path.cwd() / "experiments", beside / "experiments"):
        if (folder / "run.py").is_file():
            return folder
    raise MissingDependencyError(
        "there are no experiments here; they come with the source, not with the installed "
        "package: run this in a checkout of the repository."
    )


def studies(folder: Path) -> dict[str, Path]:
    """The studies of the experiments by name, each a file or a folder with a first file."""
    files = {path.stem: path for path in folder.glob("studies/[!_]*.py")}
    folders = {path.parent.name: path for path in folder.glob("studies/*/__init__.py")}
    return dict(sorted({**files, **folders}.items()))


def _first_line(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].strip('"')
