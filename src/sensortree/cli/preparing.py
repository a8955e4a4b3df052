"""`init` and `check`: from a table to a declaration of sensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensortree.cli import options
from sensortree.cli.console import check_free, emit, say, write
from sensortree.cli.options import option, output_file
from sensortree.cli.sensors_file import (
    CONTROLS,
    Task,
    read_sensors_file,
    toml_key,
    toml_string,
)
from sensortree.exceptions import DataError
from sensortree.text import aligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sensortree.cli.column_warnings import ColumnWarning
    from sensortree.cli.problem import Problem
    from sensortree.cli.tables import DataFile

MANY = 5_000_000  # rows times sensors, above which a fit takes more than a minute
HEAD = """\
# Sensors and prices for {path}.
# A sensor is a group of columns that are bought together at one price. Merge sections
# whose columns come together, remove those that are not to be used, and set the prices.

target = {target}
{reading}# unit = "dollars"       # what prices are counted in
{losses}

# Further keys of a sensor:
#   cost = "price_mri"       each example has its own price, in that column
#   group = "blood draw"     sensors that share what is paid once, with either
#   discounted_cost = 15.51    the price when another of the group was bought before, or
#   fee = 2.10                 what the first of the group pays on top
#   after = ["history"]      sensors that must be known before
#   one_of = "imaging"       at most one sensor with this label is bought
#   transformer = "impute"   "one-hot", "date", "impute", "scale", a list of them, or by
#                            column: {{ city = "one-hot", seen = "date" }}
"""
# What answers lose, where they are classes.
OF_CLASSES = """\
# loss = 500             # what one wrong answer costs, in that unit: set it if prices are
#                        # money
# cost_weight = 0.01     # error that one unit of cost is worth; larger buys less
# max_cost = 100         # no example ever spends more

# In place of loss = ..., where classes differ: what it costs to mistake each. With
# either, cost_weight is 1 unless you set it.
# [loss]
{each}"""
# The same of numbers.
OF_NUMBERS = """\
# risk = "absolute"      # the distance from the truth is made small; else its square
# cost_weight = 1        # of that, what one unit of cost is worth; larger buys less. With
#                        # prices and {target} in one unit, and "absolute", it is 1
# max_cost = 100         # no example ever spends more"""
LEFT_OUT = "# Left out, with the reason. To use one of them, remove its marks.\n"


@options.grouped
def init(
    data: options.Data,
    layout: options.Layout,
    target: str = option("--target COLUMN", "Column of the right answers.", ...),
    task: Task = option("--task TASK", options.TASK, "auto"),
    output: Path = output_file("TOML", "Where to write it.", Path("sensors.toml")),
    group_by_prefix: str | None = option(
        "--group-by-prefix SEPARATOR",
        "One sensor for columns that begin alike: `_` puts blood_wbc and blood_crp "
        "together.",
    ),
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a first sensors.toml from the columns of a table."""
    from sensortree.cli.column_warnings import column_warning
    from sensortree.cli.problem import read_target
    from sensortree.cli.tables import columns_note, read_data

    check_free(output, force)
    table, labels, notes = read_target(read_data(data, layout).whole(), target, task)
    found = {c: column_warning(table, c, labels) for c in table.columns if c != target}
    warned = {c: warning for c, warning in found.items() if warning is not None}
    left_out = {c: warning.reason for c, warning in warned.items() if warning.leave_out}
    columns = [column for column in found if column not in left_out]
    if not columns:
        raise DataError(
            f"{data} has no column that could be a sensor: "
            + "; ".join(f"{column} {why}" for column, why in left_out.items())
        )
    numbers = [c for c in columns if not table.is_text(c)]
    notes += columns_note({c: table.read(c).notes() for c in numbers})
    for note in (*table.notes, *notes):
        say(note)
    for column, why in left_out.items():
        say(f"{column} is left out: it {why}.")
    for column, warning in warned.items():
        if not warning.leave_out:
            say(f"column {column!r} {warning.reason}", "warning")
    sensors = grouped(columns, group_by_prefix)
    if len(table) * len(sensors) > MANY:
        say(
            f"{len(table):,} rows of {len(sensors)} sensors may take minutes to fit: pass "
            f"--max-time 60 to `fit`, or put columns that are bought together into one "
            f"sensor (--group-by-prefix).",
            "warning",
        )
    write(output, first_sensors_file(table, target, labels, warned, sensors))
    emit(
        "init",
        {"output": str(output), "sensors": sensors, "left_out": left_out},
        f"{output}: {len(sensors)} sensors of cost 1, {len(left_out)} columns left out; "
        f"now set the prices.",
        as_json,
    )


def grouped(columns: Iterable[str], separator: str | None) -> dict[str, list[str]]:
    """Columns by sensor: one each, or those that share a name before a separator."""
    groups: dict[str, list[str]] = {}
    for column in columns:
        prefix = column.partition(separator)[0] if separator else column
        groups.setdefault(prefix or column, []).append(column)
    return groups


def first_sensors_file(
    data: DataFile,
    target: str,
    labels: NDArray[Any],
    warned: Mapping[str, ColumnWarning],
    sensors: Mapping[str, list[str]],
) -> str:
    """The text of a first sensors.toml, for a person to go on with.

    Columns of `warned` are left out, or stay with a comment.
    """
    top, by_column = _reading(
        data, [c for columns in sensors.values() for c in columns]
    )
    if labels.dtype.kind == "f":
        head = toml_string(target) + '\ntask = "regression"'
        losses = OF_NUMBERS.format(target=_commented(target))
    else:
        classes = sorted({*map(str, labels.tolist())})
        head = toml_string(target)
        each = (f"# {toml_key(label)} = 1.0" for label in classes[:20])
        losses = OF_CLASSES.format(each="\n".join(each))
    sections = [_section(data, *sensor, warned) for sensor in sensors.items()]
    left_out = [
        _marked(data, column, warning)
        for column, warning in warned.items()
        if warning.leave_out
    ]
    return "\n".join(
        [
            HEAD.format(
                path=_commented(data.path.name), target=head, losses=losses, reading=top
            ),
            *by_column,
            *sections,
            *([LEFT_OUT, *left_out] if left_out else []),
        ]
    )


def _reading(data: DataFile, columns: Iterable[str]) -> tuple[str, list[str]]:
    """How numbers are written: keys for most columns, and a section for the rest."""
    from sensortree.cells.numbers import PLAIN_STYLE, Style

    styles = {
        column: Style(data.read(column).form.decimal, data.read(column).form.thousands)
        for column in columns
        if not data.is_text(column) and _shows_style(data, column)
    }
    if set(styles.values()) <= {PLAIN_STYLE}:
        return "", []
    usual = Counter(styles.values()).most_common(1)[0][0]
    top = ""
    if usual != PLAIN_STYLE:
        top = (
            f"decimal = {toml_string(usual.decimal)}           # in the cells of numbers\n"
            f"thousands = {toml_string(usual.thousands)}\n"
        )
    others = [
        f"{toml_key(column)} = {{ decimal = {toml_string(style.decimal)}, thousands = "
        f"{toml_string(style.thousands)} }}"
        for column, style in styles.items()
        if style != usual
    ]
    if not others:
        return top, []
    lines = ["[reading]  # columns whose numbers are written in another way", *others]
    return top, ["\n".join(lines) + "\n"]


def _shows_style(data: DataFile, column: str) -> bool:
    """Whether cells of a column have a decimal mark, or thousands."""
    found = data.read(column)
    if found.example or found.doubtful:
        return True
    return bool((found.values % 1 > 0).any())


def _section(
    data: DataFile, name: str, columns: list[str], warned: Mapping[str, ColumnWarning]
) -> str:
    """The section of one sensor, with a summary of its columns."""
    listed = ", ".join(map(toml_string, columns))
    lines = [
        f"# Careful: {_commented(c)} {_commented(warned[c].reason)}"
        for c in columns
        if c in warned
    ]
    lines += [
        f"[sensors.{toml_key(name)}]",
        f"columns = [{listed}]  # {_commented(_seen(data, columns))}",
        "cost = 1.0",
    ]
    return "\n".join(lines) + "\n"


def _marked(data: DataFile, column: str, warning: ColumnWarning) -> str:
    """A sensor that is left out, as comments."""
    lines = _section(data, column, [column], {}).splitlines()
    if "date" in warning.reason:
        lines.append('transformer = "date"')
    lines.insert(0, _commented(f"{column} {warning.reason}"))
    return "\n".join(f"# {line}" for line in lines) + "\n"


def _commented(text: str) -> str:
    """Text without characters that a comment cannot hold: control ones, surrogates."""
    return text.encode("utf-8", "replace").decode().translate(CONTROLS)


def _seen(data: DataFile, columns: list[str]) -> str:
    """A summary of columns in a few words."""
    words = []
    for column in columns[:4]:
        missing = data.missing(column)
        if data.is_text(column):
            kind = f"text, {len(set(data.columns[column]))} different"
        else:
            unit = data.read(column).form.unit
            kind = f"numbers in {unit}" if unit else "numbers"
        words.append(kind + (f", {missing} missing" if missing else ""))
    if len(columns) > 1 and len(set(words)) == 1:
        words = words[:1]
    return "; ".join(words)


@options.grouped
def check(
    data: options.Data,
    sensors: options.Sensors,
    layout: options.Layout,
    target: options.Target = None,
    as_json: options.Json = False,
) -> None:
    """Check that a table and a sensors file fit together."""
    from sensortree.cli.problem import pose, summarise
    from sensortree.cli.tables import read_data

    problem = pose(read_data(data, layout), read_sensors_file(sensors), target)
    rows = list(zip(*problem.data.columns.values(), strict=True))
    found = {
        **summarise(problem),
        "doubts": _column_warnings(problem),
        "copies": len(rows) - len(set(rows)),
    }
    for note in found["notes"]:
        say(note)
    for line in found["doubts"]:
        say(line, "warning")
    if found["copies"]:
        say(
            f"rows that are copies of others, in all columns: {found['copies']}. If they "
            f"are no examples of their own, take them out.",
            "warning",
        )
    if found["unused_columns"]:
        say(f"not used: {', '.join(found['unused_columns'])}", "warning")
    if found.get("price_advice") is not None:
        say(found["price_advice"], "warning")
    emit("check", found, _summary_text(found, problem.file.unit), as_json)


def _column_warnings(problem: Problem) -> list[str]:
    """Warnings about columns that sensors read."""
    from sensortree.cli.column_warnings import column_warning

    lines = []
    for name, sensor in problem.file.sensors.items():
        for column in sensor.columns:
            if "date" in sensor.steps.get(column, ()):
                continue
            warning = column_warning(problem.data, column, problem.y)
            if warning is not None:
                line = f"column {column!r} of sensor {name!r} {warning.reason}."
                lines.append(line.replace("?.", "?"))
    return lines


def _summary_text(found: dict[str, Any], unit: str) -> str:
    lines = [
        [name, str(s["cost"]), str(s["missing"]), ", ".join(s["columns"])]
        for name, s in found["sensors"].items()
    ]
    if "numbers" in found:
        of = found["numbers"]
        about = f"{of['mean']:.4g} ± {of['deviation']:.2g}, "
        about += f"from {of['low']:.4g} to {of['high']:.4g}"
    else:
        about = ", ".join(f"{name} ({n})" for name, n in found["classes"].items())
    everything, weight = found["everything"], found["cost_weight"]
    total = "differs between rows" if everything is None else f"{everything:g} {unit}"
    table = aligned(("sensor", "cost", "missing", "columns"), lines, "left")
    return (
        f"{found['rows']} rows; target {found['target']}: {about}\n\n{table}\n\n"
        f"everything costs: {total.strip()}\n"
        f"{_loss_text(found, unit)}\n"
        f"cost_weight {weight if isinstance(weight, str) else format(weight, 'g')}, "
        f"max_cost {found['max_cost'] or 'none'}\n"
        f"the table and the sensors fit together."
    )


def _loss_text(found: dict[str, Any], unit: str) -> str:
    """What a wrong answer loses: for all classes, or a line for each."""
    loss, words = found.get("loss"), f" {unit}".rstrip()
    if "numbers" in found:
        return f"loss: {found['risk']} distance from the right number"
    if loss is None:
        measured = {"error": "1 for a wrong answer"}.get(found["risk"], found["risk"])
        return f"loss: {measured}"
    if not isinstance(loss, dict):
        return f"loss: {loss:g}{words} for a wrong answer"
    lines = [
        [name, str(answer), f"{cost:g}"]
        for name, costs in loss.items()
        for answer, cost in (
            costs.items() if isinstance(costs, dict) else [("any other", costs)]
        )
    ]
    heads = ("class", "answered as", f"loses{words}")
    return f"loss:\n\n{aligned(heads, lines, 'left')}\n"
