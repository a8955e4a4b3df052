"""`evaluate`, `report`, `predict` and `explain`: what a model does with a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sensortree.cli import options
from sensortree.cli.console import check_free, emit, say, working, write
from sensortree.exceptions import DataError

if TYPE_CHECKING:
    from sensortree.cli.data_file import DataFile
    from sensortree.cli.models import Labels
    from sensortree.logs import LogEvaluation
    from sensortree.persistence.saved import SavedModel

INCOMPLETE = 3  # exit code: done, but for rows that cannot be used
PROBLEMS_SAID = 5  # on stderr; the table has them all


def evaluate(
    model: options.Model,
    data: options.Data,
    target: options.Learned = None,
    log: options.Log = None,
    id_column: options.Id = "id",
    label_influenced_buying: options.LabelInfluencedBuying = False,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    strict: options.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Report what a model spends on a table, and what it gets right."""
    from sensortree.cli.data_file import read_data
    from sensortree.cli.layout import Layout
    from sensortree.cli.logs import read_log
    from sensortree.cli.models import open_model, rows_as_lines

    policy = open_model(model, strict)
    table = read_data(data, Layout(delimiter, encoding, decimal, thousands))
    if data.name == policy.about_.data:
        say(
            f"the model was learned from a file of this name, {data.name}; if it is the "
            f"same, expect less of new rows.",
            "warning",
        )
    if log is not None:
        acquired = read_log(log, table, policy.sensors_.names, id_column)
        judged, problems = _judged_by_log(
            policy, table, target, acquired, label_influenced_buying
        )
        left_out = len(table) - judged.support.n_rows
        document = {**judged.to_dict(), "rows_left_out": left_out}
        emit("evaluate-log", document, str(judged), as_json)
        if problems:
            raise typer.Exit(INCOMPLETE)
        return
    rows, X, y, problems = _answered(policy, table, target)
    with working("evaluate"), rows_as_lines(table, rows):
        report = policy.report(X, y)
    document = {**report.to_dict(), "rows_left_out": len(table) - len(y)}
    emit("evaluate", document, str(report), as_json)
    if problems:
        raise typer.Exit(INCOMPLETE)


def _judged_by_log(
    model: SavedModel,
    table: DataFile,
    target: str | None,
    acquired: Any,
    label_influenced_buying: bool,
) -> tuple[LogEvaluation, dict[int, str]]:
    """What a model would have spent on rows for which another rule bought."""
    from sensortree.cli.logs import unreadable_and_bought
    from sensortree.cli.models import bad_prices, labels_for, rows_as_lines, table_for
    from sensortree.logs import evaluate_from_log

    read, labels = table_for(model, table), labels_for(model, table, target)
    found = {
        **unreadable_and_bought(model, read, acquired),
        **bad_prices(model, read),
        **table.broken,
    }
    usable, problems = _usable(table, labels, found, (*table.notes, *read.notes))
    rows = labels.rows[usable]
    with working("evaluate"), rows_as_lines(table, rows.tolist()):
        judged = evaluate_from_log(
            model,
            read.X[rows],
            labels.classes[usable],
            acquired=acquired[rows],
            label_influenced_buying=label_influenced_buying,
        )
    return judged, problems


def report(
    model: options.Model,
    data: options.Data,
    target: options.Learned = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="HTML", help="Where to write the page."),
    ] = Path("report.html"),
    title: Annotated[
        str,
        typer.Option(
            "--title", metavar="TEXT", show_default=False, help="Heading of the page."
        ),
    ] = "",
    log: options.Log = None,
    id_column: options.Id = "id",
    label_influenced_buying: options.LabelInfluencedBuying = False,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write one page: what a model asks whom, and what that saves."""
    from sensortree.cli.data_file import read_data
    from sensortree.cli.layout import Layout
    from sensortree.cli.logs import read_log
    from sensortree.cli.models import open_model, rows_as_lines
    from sensortree.logs import report_page_from_log

    check_free(output, force)
    policy = open_model(model)
    table = read_data(data, Layout(delimiter, encoding, decimal, thousands))
    if log is not None:
        acquired = read_log(log, table, policy.sensors_.names, id_column)
        judged, problems = _judged_by_log(
            policy, table, target, acquired, label_influenced_buying
        )
        page = report_page_from_log(policy, judged, data=log.name, title=title)
        n_rows = judged.support.n_rows
    else:
        rows, X, y, problems = _answered(policy, table, target)
        with working("report"), rows_as_lines(table, rows):
            page = policy.report_page(X, y, data=data.name, title=title)
        n_rows = len(y)
    write(output, page)
    document = {"output": str(output), "rows_left_out": len(table) - n_rows}
    emit("report", document, f"{output} written.", as_json)
    if problems:
        raise typer.Exit(INCOMPLETE)


def _answered(
    model: SavedModel, table: DataFile, target: str | None
) -> tuple[list[int], Any, Any, dict[int, str]]:
    """Rows with a right answer that can be used, their answers; and why not others."""
    from sensortree.cli.models import labels_for, problems_of, table_for

    read, labels = table_for(model, table), labels_for(model, table, target)
    found = problems_of(model, table, read)
    usable, problems = _usable(table, labels, found, (*table.notes, *read.notes))
    rows = labels.rows[usable]
    return rows.tolist(), read.X[rows], labels.classes[usable], problems


def _usable(
    table: DataFile, labels: Labels, found: Mapping[int, str], notes: Iterable[str]
) -> tuple[Any, dict[int, str]]:
    """Which labelled rows have no problem; problems of rows that have a class are told."""
    import numpy as np

    asked = {*labels.rows.tolist(), *labels.unknown}
    problems = {**labels.unknown, **{r: why for r, why in found.items() if r in asked}}
    _tell(table, notes, problems)
    if labels.n_empty:
        say(f"{labels.n_empty} rows are left out: their {labels.target} is empty.")
    usable = ~np.isin(labels.rows, list(problems))
    if not usable.any():
        raise DataError(f"{table.path}: no row is left that can be used.")
    return usable, problems


def _tell(table: DataFile, notes: Iterable[str], problems: Mapping[int, str]) -> None:
    """Say how a table was read, and which of its rows cannot be used."""
    for note in notes:
        say(note)
    for row, why in list(problems.items())[:PROBLEMS_SAID]:
        say(f"{table.place(row)}: {why}", "warning")
    if problems:
        say(f"{len(problems)} of {len(table)} rows cannot be used.", "warning")


def predict(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="CSV",
            show_default=False,
            help="Where to write the table; by default it is printed.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            show_default=False,
            help="Column of DATA to write beside the answers; may be repeated.",
        ),
    ] = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    force: options.Force = False,
    strict: options.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Answer each row of a table: class, probabilities, cost."""
    from sensortree.cli.data_file import read_data
    from sensortree.cli.layout import Layout
    from sensortree.cli.models import (
        open_model,
        problems_of,
        rows_as_lines,
        table_for,
    )

    if output is not None:
        check_free(output, force)
    policy = open_model(model, strict)
    table = read_data(data, Layout(delimiter, encoding, decimal, thousands))
    for name in keep or []:
        table.require(name, "--keep")
    read = table_for(policy, table)
    problems = problems_of(policy, table, read)
    answered = [row for row in range(len(table)) if row not in problems]
    with working("predict"), rows_as_lines(table, answered):
        answers = _answers(policy, table, read.X, answered, problems)
    for name in keep or []:
        if name in answers:
            raise typer.BadParameter(
                f"the answers have a column {name!r} already; rename that of {data}, or "
                f"leave it out: {table.unit} says which row of {data} it is.",
                param_hint="--keep",
            )
    _tell(table, (*table.notes, *read.notes), problems)
    answers = {**{name: table.texts(name).tolist() for name in keep or []}, **answers}
    rows = [
        dict(zip(answers, row, strict=True))
        for row in zip(*answers.values(), strict=True)
    ]
    text = _as_csv(answers, rows)
    if output is not None:
        write(output, text)
        said = f", {len(problems)} of them without an answer" if problems else ""
        say(f"{output} written: {len(rows)} rows{said}.")
        text = ""
    if as_json:
        emit("predict", {"rows": rows}, "", as_json)
    elif text:
        typer.echo(text, nl=False)
    if problems:
        raise typer.Exit(INCOMPLETE)


def _answers(
    model: Any,
    table: DataFile,
    X: Any,
    answered: list[int],
    problems: Mapping[int, str],
) -> dict[str, list[Any]]:
    """Columns of the answers; empty cells and the reason where there is no answer."""
    found: dict[str, list[Any]] = _found(model, X[answered]) if answered else {}
    position = {row: at for at, row in enumerate(answered)}
    columns = {
        name: [
            values[position[row]] if row in position else None
            for row in range(len(table))
        ]
        for name, values in found.items()
    }
    return {
        table.unit: list(table.lines),
        **columns,
        "problem": [problems.get(row, "") for row in range(len(table))],
    }


def _found(model: Any, X: Any) -> dict[str, list[Any]]:
    """Columns of the answers to rows that have one."""
    said, classes = (
        model.policy_.outputs(model._table(X, None)),
        model.classes_.tolist(),
    )
    names = model.sensors_.names
    bought = [
        " ".join(name for name, has in zip(names, row, strict=True) if has)
        for row in model.acquired(X)
    ]
    return {
        "answer": model.predict(X).tolist(),
        **_referred(model, X),
        **{f"probability_{c}": said[:, i].tolist() for i, c in enumerate(classes)},
        **({} if classes else {"spread": said[:, 1].tolist()}),
        "cost": model.acquisition_cost(X).tolist(),
        "leaf": model.apply(X).tolist(),
        "sensors": bought,
    }


def _referred(model: Any, X: Any) -> dict[str, list[bool]]:
    """Who is handed over to a person, of a model that hands over anybody."""
    if model.policy_.referral is None:
        return {}
    return {"referred": model.referred(X).tolist()}


def _as_csv(head: Any, rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(head), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def explain(
    model: options.Model,
    data: options.Data,
    line: Annotated[
        int | None,
        typer.Option(
            "--line",
            metavar="N",
            min=1,
            show_default=False,
            help="Line of the file, as messages and `predict` number it: 2 is the first "
            "below the header. In a Parquet file, the row from 1. By default the first "
            "that can be used.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="HTML",
            help="Page with the row's way drawn.",
            show_default=False,
        ),
    ] = None,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Scores, contributions and margins in place of plain words.",
        ),
    ] = False,
    force: options.Force = False,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    strict: options.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Say why one row buys what it buys, and what it could have bought."""
    from sensortree.cli.data_file import read_data
    from sensortree.cli.layout import Layout
    from sensortree.cli.models import (
        open_model,
        problems_of,
        rows_as_lines,
        table_for,
    )

    if output is not None:
        check_free(output, force)
    policy = open_model(model, strict)
    table = read_data(data, Layout(delimiter, encoding, decimal, thousands))
    read = table_for(policy, table)
    problems = problems_of(policy, table, read)
    if line is None:
        usable = (at for i, at in enumerate(table.lines) if i not in problems)
        line = next(usable, table.lines[0])
    if line not in table.lines:
        raise typer.BadParameter(
            f"there is no row in {table.unit} {line}; rows are from {table.lines[0]} to "
            f"{table.lines[-1]}.",
            param_hint="--line",
        )
    row = table.lines.index(line)
    if row in problems:
        raise DataError(f"{table.place(row)}: {problems[row]}.")
    _tell(table, (*table.notes, *read.notes), {})
    with rows_as_lines(table, [row]):
        explanation = policy.explain(read.X[row : row + 1])
    if output is not None:
        write(output, explanation.to_html())
    text = explanation.details if details else str(explanation)
    emit("explain", {table.unit: line, **explanation.to_dict()}, text, as_json)
