"""Results, messages, files and the progress bar."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from sensortree.text import plain

VERSION = 1  # of the documents that --json prints


def emit(command: str, document: Mapping[str, Any], text: str, as_json: bool) -> None:
    """Print the result of a command: one JSON document, or text for people."""
    if as_json:
        head = {"schema": f"sensortree/{command}", "version": VERSION}
        typer.echo(to_json({**head, **document}))
    else:
        typer.echo(text)


def to_json(document: Any) -> str:
    """Write a document on one line, with null for NaN and infinity."""
    return json.dumps(plain(document), ensure_ascii=False, allow_nan=False)


def as_csv(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Write a table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue()


def say(message: str, kind: str = "") -> None:
    """Print a message on stderr; results go to stdout."""
    from rich.console import Console
    from rich.text import Text

    styles = {"error": "bold red", "warning": "yellow"}
    text = Text.assemble((f"{kind}: ", styles[kind]), message) if kind else message
    Console(stderr=True).print(text, soft_wrap=True, highlight=False, markup=False)


@contextmanager
def told_warnings() -> Iterator[None]:
    """Print warnings as messages, each once."""
    told = set()

    def tell(message: Any, *rest: Any, **more: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            say(str(message), "warning")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.showwarning = tell
        yield


class Work:
    """A progress bar on stderr, if that is a terminal.

    It is also a callback of scikit-learn, which shows the steps of a fit.
    """

    def __init__(self, what: str, bar: Any, total: float | None):
        self.what, self.bar = what, bar
        self.task = bar.add_task(what, total=total)

    def advance(self, step: str) -> None:
        """Show that a step has ended."""
        self.bar.update(self.task, advance=1, description=f"{self.what}: {step}")

    def setup(self, estimator: Any, context: Any) -> None:
        """Few of the steps that a fit can have are taken: they say nothing of the end."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is needed after a fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **rest: Any) -> None:
        """Nothing is shown at a beginning."""

    def on_fit_task_end(self, estimator: Any, context: Any, **rest: Any) -> bool:
        """Show the step; the fit goes on."""
        self.advance(str(context.task_name))
        return False


@contextmanager
def working(what: str, total: float | None = None) -> Iterator[Work]:
    """Show progress; `total` is the number of steps, if it is known."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class TimeLeft(TimeRemainingColumn):
        def render(self, task: Any) -> Text:  # only if it is known
            left = super().render(task)
            return (
                Text.assemble("gone, ", left, " left") if task.total else Text("gone")
            )

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns,
        TimeLeft(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        yield Work(what, bar, total)


def check_free(path: Path, force: bool, option: str = "--output") -> None:
    """Refuse to replace a file without `force`, before any work is done for it."""
    if path.exists() and not force:
        raise typer.BadParameter(
            f"{path} exists; pass --force to replace it.", param_hint=option
        )
    if not path.parent.is_dir():
        raise typer.BadParameter(
            f"there is no folder {path.parent}; make it first.", param_hint=option
        )


def write(path: Path, contents: str | bytes) -> None:
    """Write a whole file, or nothing."""
    from sensortree.persistence.files import replace_file

    replace_file(path, contents.encode() if isinstance(contents, str) else contents)


def picture(figure: Any, path: Path, named: str = ".svg, .png or .pdf") -> bytes:
    """A figure in the format that a file's name says."""
    kinds = figure.canvas.get_supported_filetypes()
    kind = path.suffix.lower().lstrip(".")
    if kind not in kinds:
        raise typer.BadParameter(f"{path} ends in no kind of picture; use {named}.")
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, bbox_inches="tight")
    return drawn.getvalue()
