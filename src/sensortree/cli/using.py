"""`evaluate`, `report`, `predict` and `explain`: what a model does with a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from sensortree.cli import options
from sensortree.cli.console import as_csv, check_free, emit, say, working, write
from sensortree.cli.options import flag, option, output_file
from sensortree.exceptions import DataError

if TYPE_CHECKING:
    from sensortree.cli.models import ModelTable
    from sensortree.cli.tables import DataFile
    from sensortree.logs import LogEvaluation
    from sensortree.persistence.saved import SavedModel

INCOMPLETE = 3  # exit code: done, but for rows that cannot be used
PROBLEMS_SHOWN = 5  # on stderr; the table has them all


@options.grouped
def evaluate(
    model: options.Model,
    data: options.Data,
    purchases: options.Purchases,
    layout: options.Layout,
    target: options.Learned = None,
    strict: options.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Report what a model spends on a table, and what it gets right."""
    from sensortree.cli.models import rows_as_lines

    policy, table = _opened(model, data, layout, strict)
    if data.name == policy.about_.data:
        say(
            f"the model was learned from a file of this name, {data.name}; if it is the "
            f"same, expect less of new rows.",
            "warning",
        )
    known = _examples(policy, table, target, purchases)
    found: Any
    with working("evaluate"), rows_as_lines(table, known.rows):
        if known.acquired is None:
            name, found = "evaluate", policy.report(known.X, known.y)
        else:
            found = _judged(policy, known, purchases)
            name = "evaluate-log"
    document = {**found.to_dict(), "rows_left_out": len(table) - len(known.rows)}
    emit(name, document, str(found), as_json)
    if known.problems:
        raise typer.Exit(INCOMPLETE)


@options.grouped
def report(
    model: options.Model,
    data: options.Data,
    purchases: options.Purchases,
    layout: options.Layout,
    target: options.Learned = None,
    output: Path = output_file("HTML", "Where to write the page.", Path("report.html")),
    title: str = option("--title TEXT", "Heading of the page.", "", show_default=False),
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write one page: which tests each example gets, and what that saves."""
    from sensortree.cli.models import rows_as_lines
    from sensortree.logs import report_page_from_log

    check_free(output, force)
    policy, table = _opened(model, data, layout)
    known = _examples(policy, table, target, purchases)
    with working("report"), rows_as_lines(table, known.rows):
        if purchases.log is None:
            page = policy.report_page(known.X, known.y, data=data.name, title=title)
        else:
            judged = _judged(policy, known, purchases)
            page = report_page_from_log(
                policy, judged, data=purchases.log.name, title=title
            )
    write(output, page)
    document = {"output": str(output), "rows_left_out": len(table) - len(known.rows)}
    emit("report", document, f"{output} written.", as_json)
    if known.problems:
        raise typer.Exit(INCOMPLETE)


def _opened(
    model: Path, data: Path, layout: options.Layout, strict: bool = False
) -> tuple[SavedModel, DataFile]:
    """A model and a table, as they stand in their files."""
    from sensortree.cli.models import open_model
    from sensortree.cli.tables import read_data

    return open_model(model, strict), read_data(data, layout)


def _read(
    model: SavedModel, table: DataFile, acquired: Any = None
) -> tuple[ModelTable, dict[int, str]]:
    """What a model reads of a table, and rows that it cannot answer, each with why."""
    from sensortree.cli.models import problems_of, table_for

    read = table_for(model, table)
    return read, problems_of(model, table, read, acquired)


class Examples(NamedTuple):
    """Rows of a table that have a right answer and can be used."""

    rows: list[int]  # where they stand in the table
    X: Any  # what the model reads of them
    y: Any  # their right answers
    acquired: Any  # what the log says was bought for them, if there is one
    problems: Mapping[int, str]  # why other rows that have an answer cannot be used


def _examples(
    model: SavedModel,
    table: DataFile,
    target: str | None,
    purchases: options.Purchases,
) -> Examples:
    """Find the rows that can be used; say how they were read, and which cannot."""
    import numpy as np

    from sensortree.cli.models import labels_for, read_log

    acquired = None
    if purchases.log is not None:
        acquired = read_log(purchases, table, model.sensors_.names)
    (read, found), labels = (
        _read(model, table, acquired),
        labels_for(model, table, target),
    )
    asked = {*labels.rows.tolist(), *labels.unknown}
    problems = {**labels.unknown, **{r: why for r, why in found.items() if r in asked}}
    _tell(table, read, problems)
    for note in labels.notes:
        say(note)
    usable = ~np.isin(labels.rows, list(problems))
    if not usable.any():
        raise DataError(f"{table.path}: no row is left that can be used.")
    rows = labels.rows[usable]
    return Examples(
        rows.tolist(),
        read.X[rows],
        labels.classes[usable],
        None if acquired is None else acquired[rows],
        problems,
    )


def _judged(
    model: SavedModel, known: Examples, purchases: options.Purchases
) -> LogEvaluation:
    """What a model would have spent on rows for which another rule bought."""
    from sensortree.logs import evaluate_from_log

    return evaluate_from_log(
        model,
        known.X,
        known.y,
        acquired=known.acquired,
        label_influenced_buying=purchases.label_influenced_buying,
    )


def _tell(table: DataFile, read: ModelTable, problems: Mapping[int, str]) -> None:
    """Say how a table was read, and which of its rows cannot be used."""
    for note in (*table.notes, *read.notes):
        say(note)
    for row, why in list(problems.items())[:PROBLEMS_SHOWN]:
        say(f"{table.place(row)}: {why}", "warning")
    if problems:
        say(f"{len(problems)} of {len(table)} rows cannot be used.", "warning")


@options.grouped
def predict(
    model: options.Model,
    data: options.Data,
    layout: options.Layout,
    output: Path | None = output_file(
        "CSV", "Where to write the table; by default it is printed."
    ),
    keep: list[str] | None = option(
        "--keep COLUMN", "Column of DATA to write beside the answers; may be repeated."
    ),
    force: options.Force = False,
    strict: options.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Answer each row of a table: class, probabilities, cost."""
    from sensortree.cli.models import rows_as_lines

    if output is not None:
        check_free(output, force)
    policy, table = _opened(model, data, layout, strict)
    for name in keep or []:
        table.require(name, "--keep")
    read, problems = _read(policy, table)
    answered = [row for row in range(len(table)) if row not in problems]
    found: dict[str, list[Any]] = {}
    with working("predict"), rows_as_lines(table, answered):
        if answered:
            found = _answers(policy, read.X[answered])
    answer_of = {row: at for at, row in enumerate(answered)}
    answers: dict[str, list[Any]] = {table.unit: list(table.lines)}
    for name, values in found.items():
        answers[name] = [
            values[answer_of[row]] if row in answer_of else None
            for row in range(len(table))
        ]
    answers["problem"] = [problems.get(row, "") for row in range(len(table))]
    for name in keep or []:
        if name in answers:
            raise typer.BadParameter(
                f"the answers have a column {name!r} already; rename that of {data}, or "
                f"leave it out: {table.unit} says which row of {data} it is.",
                param_hint="--keep",
            )
    _tell(table, read, problems)
    answers = {**{name: table.texts(name).tolist() for name in keep or []}, **answers}
    rows = list(zip(*answers.values(), strict=True))
    text = as_csv(answers, rows)
    if output is not None:
        write(output, text)
        without = f", {len(problems)} of them without an answer" if problems else ""
        say(f"{output} written: {len(rows)} rows{without}.")
        text = ""
    if as_json:
        documents = [dict(zip(answers, row, strict=True)) for row in rows]
        emit("predict", {"rows": documents}, "", as_json)
    elif text:
        typer.echo(text, nl=False)
    if problems:
        raise typer.Exit(INCOMPLETE)


def _answers(model: Any, X: Any) -> dict[str, list[Any]]:
    """Columns of the answers to rows that have one."""
    posterior = model.policy_.outputs(model._table(X, None))
    classes, names = model.classes_.tolist(), model.sensors_.names
    bought = [
        " ".join(name for name, has in zip(names, row, strict=True) if has)
        for row in model.acquired(X)
    ]
    refers = model.policy_.referral is not None
    return {
        "answer": model.predict(X).tolist(),
        **({"referred": model.referred(X).tolist()} if refers else {}),
        **{f"probability_{c}": posterior[:, i].tolist() for i, c in enumerate(classes)},
        **({} if classes else {"spread": posterior[:, 1].tolist()}),
        "cost": model.acquisition_cost(X).tolist(),
        "leaf": model.apply(X).tolist(),
        "sensors": bought,
    }


@options.grouped
def explain(
    model: options.Model,
    data: options.Data,
    layout: options.Layout,
    line: int | None = option(
        "--line N",
        "Line of the file, as messages and `predict` number it: 2 is the first below "
        "the header. In a Parquet file, the row from 1. By default the first that can "
        "be used.",
        min=1,
    ),
    output: Path | None = output_file("HTML", "Draw the row's way on this page."),
    details: bool = flag(
        "--details", "Scores, contributions and margins in place of plain words."
    ),
    force: options.Force = False,
    strict: options.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Say why one row buys what it buys, and what it could have bought."""
    from sensortree.cli.models import rows_as_lines

    if output is not None:
        check_free(output, force)
    policy, table = _opened(model, data, layout, strict)
    read, problems = _read(policy, table)
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
    _tell(table, read, {})
    with rows_as_lines(table, [row]):
        explanation = policy.explain(read.X[row : row + 1])
    if output is not None:
        write(output, explanation.to_html())
    text = explanation.details if details else str(explanation)
    emit("explain", {table.unit: line, **explanation.to_dict()}, text, as_json)
