"""`init` and `check`: from a table to a declaration of sensors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sensortree.cli import options
from sensortree.cli.console import check_free, emit, say, write


def init(
    data: options.Data,
    target: options.Truth,
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
    delimiter: options.Delimiter = ",",
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a first sensors.toml from the columns of a table."""
    from sensortree.cli.data_file import read_data
    from sensortree.cli.starter import grouped, starter

    check_free(output, force)
    table = read_data(data, delimiter)
    table.require(target, "--target")
    columns = [name for name in table.columns if name != target]
    sensors = dict(grouped(columns, group_by_prefix))
    write(output, starter(table, target, group_by_prefix))
    text = f"{output}: {len(sensors)} sensors of cost 1; now set the prices."
    emit("init", {"output": str(output), "sensors": sensors}, text, as_json)


def check(
    data: options.Data,
    sensors: options.Sensors,
    target: options.Target = None,
    delimiter: options.Delimiter = ",",
    as_json: options.Json = False,
) -> None:
    """Say whether a table and a sensors file fit together."""
    from sensortree.cli.data_file import read_data
    from sensortree.cli.problem import pose, summarise
    from sensortree.cli.sensors_file import read_sensors_file

    file = read_sensors_file(sensors)
    problem = pose(read_data(data, delimiter), file, target, allow_missing=True)
    found = summarise(problem)
    if found["unused_columns"]:
        say(f"not used: {', '.join(found['unused_columns'])}", "warning")
    if found["price_advice"] is not None:
        say(found["price_advice"], "warning")
    emit("check", found, _summary_text(found, problem.file.unit), as_json)


def _summary_text(found: dict[str, Any], unit: str) -> str:
    from sensortree.text import aligned

    lines = [
        [name, str(s["cost"]), str(s["missing"]), ", ".join(s["columns"])]
        for name, s in found["sensors"].items()
    ]
    classes = ", ".join(f"{name} ({n})" for name, n in found["classes"].items())
    everything = found["everything"]
    total = "differs between rows" if everything is None else f"{everything:g} {unit}"
    table = aligned(("sensor", "cost", "missing", "columns"), lines, "left")
    return (
        f"{found['rows']} rows; target {found['target']}: {classes}\n\n{table}\n\n"
        f"everything costs: {total.strip()}\n"
        f"mistake_cost {found['mistake_cost'] or 'none'}, "
        f"cost_weight {found['cost_weight']:g}, "
        f"max_cost {found['max_cost'] or 'none'}\n"
        f"the table and the sensors fit together."
    )
