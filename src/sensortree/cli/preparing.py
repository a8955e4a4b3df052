"""`init` and `check`: from a table to a declaration of sensors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sensortree.cli import options
from sensortree.cli.console import check_free, emit, say, write
from sensortree.exceptions import DataError

MANY = 5_000_000  # rows times sensors, above which a fit takes more than a minute


def init(
    data: options.Data,
    target: options.Truth,
    task: options.TargetTask = options.Task.auto,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="TOML", help="Where to write it.")
    ] = Path("sensors.toml"),
    group_by_prefix: Annotated[
        str | None,
        typer.Option(
            "--group-by-prefix",
            metavar="SEPARATOR",
            show_default=False,
            help="One sensor for columns that begin alike: `_` puts blood_wbc and "
            "blood_crp together.",
        ),
    ] = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a first sensors.toml from the columns of a table."""
    from sensortree.cli.data_file import columns_note, read_data
    from sensortree.cli.layout import Layout
    from sensortree.cli.starter import doubts_of, grouped, starter, used_columns
    from sensortree.cli.target import levels_of_target, read_target

    check_free(output, force)
    layout = Layout(delimiter, encoding, decimal, thousands)
    table = read_data(data, layout).whole()
    table, labels, notes = read_target(table, target, task.value)
    doubts = doubts_of(table, target, levels_of_target(labels))
    columns = used_columns(table, target, doubts)
    left_out = {c: found.reason for c, found in doubts.items() if found.leave_out}
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
    for column, found in doubts.items():
        if not found.leave_out:
            say(f"column {column!r} {found.reason}", "warning")
    sensors = dict(grouped(columns, group_by_prefix))
    if len(table) * len(sensors) > MANY:
        say(
            f"{len(table):,} rows of {len(sensors)} sensors may take minutes to fit: pass "
            f"--max-time 60 to `fit`, or put columns that are bought together into one "
            f"sensor (--group-by-prefix).",
            "warning",
        )
    write(output, starter(table, target, labels, doubts, group_by_prefix))
    document = {"output": str(output), "sensors": sensors, "left_out": left_out}
    text = (
        f"{output}: {len(sensors)} sensors of cost 1, {len(left_out)} columns left out; "
        f"now set the prices."
    )
    emit("init", document, text, as_json)


def check(
    data: options.Data,
    sensors: options.Sensors,
    target: options.Target = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    as_json: options.Json = False,
) -> None:
    """Say whether a table and a sensors file fit together."""
    from sensortree.cli.data_file import read_data
    from sensortree.cli.layout import Layout
    from sensortree.cli.problem import count_copies, doubts_about, pose, summarise
    from sensortree.cli.sensors_file import read_sensors_file

    file = read_sensors_file(sensors)
    table = read_data(data, Layout(delimiter, encoding, decimal, thousands))
    problem = pose(table, file, target)
    found = summarise(problem)
    found["doubts"] = doubts_about(problem)
    found["copies"] = count_copies(problem)
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


def _summary_text(found: dict[str, Any], unit: str) -> str:
    from sensortree.text import aligned

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
    everything = found["everything"]
    total = "differs between rows" if everything is None else f"{everything:g} {unit}"
    table = aligned(("sensor", "cost", "missing", "columns"), lines, "left")
    return (
        f"{found['rows']} rows; target {found['target']}: {about}\n\n{table}\n\n"
        f"everything costs: {total.strip()}\n"
        f"mistake_cost {found.get('mistake_cost') or 'none'}, "
        f"cost_weight {_short(found['cost_weight'])}, "
        f"max_cost {found['max_cost'] or 'none'}\n"
        f"the table and the sensors fit together."
    )


def _short(number: float | str) -> str:
    """A number in few digits; a word as it is."""
    return number if isinstance(number, str) else f"{number:g}"
