"""`page`: a model as one HTML file that asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sensortree.cli import options
from sensortree.cli.console import check_free, emit, write

if TYPE_CHECKING:
    from sensortree.persistence.saved import SavedModel


def page(
    model: options.Model,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="HTML", help="Where to write the page."),
    ] = Path("page.html"),
    title: Annotated[
        str | None,
        typer.Option(
            "--title",
            metavar="TEXT",
            show_default=False,
            help="What stands at the top; by default what the model predicts.",
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            metavar="CODE",
            show_default=False,
            help="Language of the page, en or de; by default the browser's.",
        ),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(
            "--texts",
            metavar="JSON",
            exists=True,
            dir_okay=False,
            show_default=False,
            help='Other languages: {"fr": {...}}, with every key of the English texts.',
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write one HTML file that asks for the sensors, in any browser, offline."""
    from sensortree.page import to_page

    check_free(output, force)
    html = to_page(
        _plain_model(model), title=title, language=language, texts=_read_texts(texts)
    )
    write(output, html)
    document = {"output": str(output), "size": len(html.encode())}
    emit("page", document, f"{output} written; open it in a browser.", as_json)


def _plain_model(path: Path) -> SavedModel:
    """A model file without parts that only Python can run."""
    from sensortree.cli.models import open_model
    from sensortree.exceptions import ModelFileError
    from sensortree.page.runnable import only_python

    try:
        return open_model(path)
    except ModelFileError as error:
        what, foreign, _ = str(error).partition(", written by skops")
        raise (only_python(what) if foreign else error) from error


def _read_texts(path: Path | None) -> dict[str, Any] | None:
    """Texts of other languages."""
    if path is None:
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise typer.BadParameter(
            f"{path} is not JSON ({error}).", param_hint="--texts"
        ) from error
    if not isinstance(found, dict):
        raise typer.BadParameter(
            f'{path} must hold an object, {{"fr": {{...}}}}.', param_hint="--texts"
        )
    return found
