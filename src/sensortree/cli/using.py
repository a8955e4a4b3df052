"""`evaluate`, `report`, `predict`, `explain`, `inspect`, `plot`, `verify`: ask a model."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sensortree.cli import options
from sensortree.cli.console import check_free, emit, picture, say, working, write
from sensortree.exceptions import DataError

if TYPE_CHECKING:
    from sensortree.cli.data_file import DataFile
    from sensortree.cli.models import Labels
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
        _evaluate_log(
            policy,
            table,
            target,
            read_log(log, table, policy.sensors_.names, id_column),
            label_influenced_buying,
            as_json,
        )
        return
    rows, X, y, problems = _answered(policy, table, target)
    with working("evaluate"), rows_as_lines(table, rows):
        report = policy.report(X, y)
    document = {**report.to_dict(), "rows_left_out": len(table) - len(y)}
    emit("evaluate", document, str(report), as_json)
    if problems:
        raise typer.Exit(INCOMPLETE)


def _evaluate_log(
    model: SavedModel,
    table: DataFile,
    target: str | None,
    acquired: Any,
    label_influenced_buying: bool,
    as_json: bool,
) -> None:
    """Report what a model would have spent on rows for which another rule bought."""
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
    document = {**judged.to_dict(), "rows_left_out": len(table) - len(rows)}
    emit("evaluate-log", document, str(judged), as_json)
    if problems:
        raise typer.Exit(INCOMPLETE)


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
    from sensortree.cli.models import open_model, rows_as_lines

    check_free(output, force)
    policy = open_model(model)
    table = read_data(data, Layout(delimiter, encoding, decimal, thousands))
    rows, X, y, problems = _answered(policy, table, target)
    with working("report"), rows_as_lines(table, rows):
        page = policy.report_page(X, y, data=data.name, title=title)
    write(output, page)
    document = {"output": str(output), "rows_left_out": len(table) - len(y)}
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
    proba, classes = model.predict_proba(X), model.classes_.tolist()
    names = model.sensors_.names
    bought = [
        " ".join(name for name, has in zip(names, row, strict=True) if has)
        for row in model.acquired(X)
    ]
    return {
        "answer": model.predict(X).tolist(),
        **_referred(model, X),
        **{f"probability_{c}": proba[:, i].tolist() for i, c in enumerate(classes)},
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


def inspect(model: options.Model, as_json: options.Json = False) -> None:
    """Show what a model is about: data, prices, tree, held-out score, certificate."""
    from sensortree.cli.models import open_model

    document = described(open_model(model))
    emit("inspect", document, _described_text(document), as_json)


def described(model: Any) -> dict[str, Any]:
    """A model in plain values."""
    sensors, policy = model.sensors_, model.policy_
    seen, outages, curve = policy.reader.seen, model.outage_report_, model.curve_
    listed = [
        {
            "sensor": name,
            "cost": float(sensors.costs[i]),
            "varies": sensors.terms[i].varies,
            "columns": [sensors.column_names[c] for c in sensors.columns[i]],
            "seen": None if seen is None else [asdict(s) for s in seen[i]],
            "seen_text": None if seen is None else list(map(str, seen[i])),
            "group": sensors.terms[i].group,
            "surcharge": sensors.terms[i].surcharge,
            "discounted_cost": float(sensors.costs[i]) - sensors.terms[i].surcharge,
            "after": sorted(sensors.terms[i].after),
            "one_of": sensors.terms[i].one_of,
        }
        for i, name in enumerate(sensors.names)
    ]
    return {
        "about": asdict(model.about_),
        "about_text": str(model.about_),
        "classes": model.classes_.tolist(),
        "sensors": listed,
        "cost_weight": policy.cost_weight,
        "max_cost": policy.max_cost,
        "risk": policy.loss.name,
        "mistake_cost": policy.loss.per_mistake,
        "loss": policy.loss.matrix,
        "referral": None if policy.referral is None else asdict(policy.referral),
        "referral_text": None if policy.referral is None else str(policy.referral),
        "tree": model.tree_.to_dict(),
        "tree_text": str(model.tree_),
        "certificate": model.certificate_,
        "decisions": model.decision_report_,
        "outages": outages.to_dict() if outages is not None else None,
        "outages_text": "" if outages is None else str(outages),
        "curve": None if curve is None else curve.to_dict(),
        "curve_text": "" if curve is None else f"{curve}\n{model.chosen_}",
        "digest": policy.digest,
    }


def _described_text(document: dict[str, Any]) -> str:
    from sensortree.text import aligned

    lines = [
        [
            s["sensor"],
            "varies" if s["varies"] else f"{s['cost']:g}",
            _terms_text(s),
            ", ".join(s["columns"]),
        ]
        for s in document["sensors"]
    ]
    proof = document["certificate"]
    certificate = "none"
    if proof is not None:
        limit = f" over coefficients up to {proof['reach']:.0e}"
        certificate = (
            f"optimum{limit if isfinite(proof['reach']) else ''} in "
            f"[{proof['lower']:.6g}, {proof['upper']:.6g}], to {proof['tol']:.2g}"
        )
    cap, unit = document["max_cost"], document["about"]["unit"]
    cost = f"cost ({unit})" if unit else "cost"
    return "\n".join(
        [
            *([document["about_text"], ""] if document["about_text"] else []),
            aligned(("sensor", cost, "terms", "columns"), lines, "left"),
            "",
            *_seen_text(document["sensors"]),
            document["tree_text"],
            "",
            f"classes: {', '.join(map(str, document['classes']))}",
            f"cost_weight: {document['cost_weight']:g}; max_cost: "
            f"{'none' if cap is None else format(cap, 'g')}; "
            f"{_mistakes_text(document)}",
            *([document["referral_text"]] if document["referral_text"] else []),
            f"certificate of the linear program: {certificate}",
            *_part("if a sensor cannot be had (risk)", document["outages_text"]),
            *_part("picked from, on held-out folds", document["curve_text"]),
            f"digest: {document['digest']}",
        ]
    )


def _part(title: str, text: str) -> list[str]:
    """A part with its heading; none if there is nothing to say."""
    return [f"\n{title}:", text, ""] if text else []


def _mistakes_text(document: dict[str, Any]) -> str:
    """What wrong answers cost, or how probabilities are judged."""
    if document["risk"] not in ("error", "loss"):
        return f"probabilities are judged by {document['risk']}"
    if document["loss"] is None:
        return "a wrong answer counts 1"
    unit = f" {document['about']['unit']}" if document["about"]["unit"] else ""
    if document["mistake_cost"] is not None:
        return f"a wrong answer costs {document['mistake_cost']:g}{unit}"
    classes, rows = document["classes"], document["loss"].tolist()
    said = [
        f"{true} for {answer}: {cost:g}{unit}"
        for true, row in zip(classes, rows, strict=True)
        for answer, cost in zip(classes, row, strict=True)
        if cost
    ]
    return f"mistaking {', '.join(said[:6])}{', ...' if len(said) > 6 else ''}"


def _seen_text(sensors: list[dict[str, Any]]) -> list[str]:
    """What training saw of each column, if the model remembers."""
    from sensortree.text import aligned

    lines = [
        [column, said]
        for sensor in sensors
        for column, said in zip(
            sensor["columns"], sensor["seen_text"] or (), strict=False
        )
    ]
    return [aligned(("column", "training had"), lines, "left"), ""] if lines else []


def _terms_text(sensor: dict[str, Any]) -> str:
    """What a sensor's price and purchase depend on."""
    said = []
    if sensor["group"] is not None and sensor["surcharge"]:
        cheaper = "less" if sensor["varies"] else "in all"
        price = sensor["surcharge" if sensor["varies"] else "discounted_cost"]
        said.append(f"{price:g} {cheaper} after another of {sensor['group']}")
    elif sensor["group"] is not None:
        said.append(f"of {sensor['group']}")
    if sensor["after"]:
        said.append(f"needs {', '.join(sensor['after'])}")
    if sensor["one_of"] is not None:
        said.append(f"one of {sensor['one_of']}")
    return "; ".join(said) or "–"


def plot(
    model: options.Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="SVG",
            help="Picture; .svg, .html, .txt, .png or .pdf.",
        ),
    ] = Path("tree.svg"),
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="TEXT",
            show_default=False,
            help="What prices are counted in; by default what the model says.",
        ),
    ] = None,
    leaves: Annotated[
        int,
        typer.Option(
            "--leaves",
            metavar="N",
            min=1,
            help="In a larger tree, fold what few rows reach until N lines are left.",
        ),
    ] = 32,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Draw the tree, with the training rows that took each way."""
    from sensortree.cli.models import open_model
    from sensortree.display import TreeDisplay

    check_free(output, force)
    display = TreeDisplay.from_estimator(
        open_model(model), unit=unit, max_leaves=leaves
    )
    kind = output.suffix.lower()
    texts: dict[str, Callable[[], str]] = {
        ".svg": display.to_svg,
        ".html": display.to_html,
        ".txt": lambda: display.to_text() + "\n",
    }
    if kind in texts:
        write(output, texts[kind]())
    else:
        kinds = ".svg, .html, .txt, .png or .pdf"
        write(output, picture(display.plot().figure_, output, kinds))
    emit("plot", {"output": str(output)}, f"{output} written.", as_json)


def verify(model: options.Model, as_json: options.Json = False) -> None:
    """Check a model file, and that it agrees with itself."""
    from sensortree.cli.models import open_model
    from sensortree.cli.selfcheck import check_answers

    loaded = open_model(model)  # limits, version, digest, and that all parts fit
    n_rows = check_answers(loaded)
    document = {
        "size": model.stat().st_size,
        "digest": loaded.policy_.digest,
        "checked": ["limits", "format version", "digest", "parts", "answers"],
        "rows_asked": n_rows,
    }
    text = (
        f"{model}: {document['size']:,} bytes, within all limits, of a known version; "
        f"digest right; all parts fit;\n{n_rows} made-up rows are answered alike at once "
        f"and step by step.\ndigest: {document['digest']}"
    )
    emit("verify", document, text, as_json)
