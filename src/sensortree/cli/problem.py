"""`Problem`: a data file and a sensors.toml, as what the library takes.

Columns go in as an array, so that a model that was learned here needs no library of
frames where it is used; `name_parts` then tells the model what they are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.formats import PLAIN_FORMAT, ColumnFormat
from sensortree.cells.words import MISSING
from sensortree.cli.columns import read_column, sensor_of
from sensortree.cli.data_file import DataFile, beside, class_finder, columns_note
from sensortree.cli.doubts import doubt
from sensortree.cli.sensors_file import SensorsFile, toml_key
from sensortree.cli.target import levels_of_target, read_target
from sensortree.exceptions import DataError, SensorError
from sensortree.learning.settings import Settings, cost_weight_of
from sensortree.learning.worth import never_pay, price_advice
from sensortree.sensors.declaration import resolve_sensors
from sensortree.sensors.market import Market
from sensortree.sensors.reader import read_prices
from sensortree.sensors.sensor import Sensor
from sensortree.sensors.table import Table
from sensortree.text import listed


@dataclass(frozen=True, eq=False)
class Problem:
    """What is learned from.

    Attributes
    ----------
    data : DataFile
    file : SensorsFile
    columns : tuple of str
        Names of the columns of `X`.
    X : ndarray of shape (n_rows, n_columns), of numbers, or of objects if some are text
    y : ndarray of shape (n_rows,), of int or str, or of float where a number is learned
    sensors : dict of str to Sensor
    notes : tuple of str
        How the table was read, where that is not plain.
    reading : dict of column to ColumnFormat
        How numbers and dates are written, where that is not plain.
    group_column : str
        Column of the groups; "" for none.
    groups : ndarray of shape (n_rows,) or None
        Which rows belong together.
    """

    data: DataFile
    file: SensorsFile
    columns: tuple[str, ...]
    X: NDArray[Any]
    y: NDArray[Any]
    sensors: dict[str, Sensor]
    notes: tuple[str, ...] = ()
    reading: Mapping[str, ColumnFormat] = field(default_factory=dict)
    group_column: str = ""
    groups: NDArray[Any] | None = None

    @property
    def numbers(self) -> bool:
        """Whether a number is learned, rather than classes."""
        return bool(self.y.dtype.kind == "f")

    @property
    def unused(self) -> list[str]:
        """Columns of the file that nobody reads."""
        read = {*self.columns, self.file.target, self.group_column}
        return [name for name in self.data.columns if name not in read]

    @property
    def loss(self) -> dict[Any, Any] | None:
        """The losses, by class."""
        return _losses(self)

    def settings(
        self,
        cost_weight: float | None = None,
        max_cost: float | None = None,
        mistake_cost: float | None = None,
        risk: str | None = None,
        refer_cost: float | None = None,
    ) -> dict[str, Any]:
        """Parameters of an estimator; what is given wins over what the file says."""
        file = self.file
        if self.numbers:
            if refer_cost is not None or file.refer_cost is not None:
                raise SensorError(
                    f"{file.path}: handing over (refer_cost) is for classes, and the "
                    f"target {file.target!r} is a number; leave it out."
                )
            return _number_settings(self, cost_weight, max_cost, mistake_cost, risk)
        cost = file.mistake_cost if mistake_cost is None else mistake_cost
        loss = self.loss if cost is None else cost
        risk = file.risk if risk is None else risk
        weight = file.cost_weight if cost_weight is None else cost_weight
        return {
            "sensors": self.sensors,
            "risk": risk,
            "loss": loss,
            "refer_cost": file.refer_cost if refer_cost is None else refer_cost,
            "cost_weight": cost_weight_of(
                "auto" if weight is None else weight, in_money=loss is not None
            ),
            "max_cost": file.max_cost if max_cost is None else max_cost,
            "unit": file.unit,
        }


def _number_settings(
    problem: Problem,
    cost_weight: float | None,
    max_cost: float | None,
    mistake_cost: float | None,
    risk: str | None,
) -> dict[str, Any]:
    """Parameters of a regressor."""
    file = problem.file
    priced = [mistake_cost, file.mistake_cost]
    if file.loss or any(cost is not None for cost in priced):
        raise SensorError(
            f"{file.path}: the target {file.target!r} is a number, and no number is simply "
            f"wrong; leave mistake_cost and [loss] out, or pass --task classification."
        )
    risk = risk or file.risk
    if risk in ("brier", "log_loss"):
        raise SensorError(
            f"{file.path}: risk {risk!r} is of classes, and the target {file.target!r} is "
            f"a number; take squared or absolute, or pass --task classification."
        )
    weight = file.cost_weight if cost_weight is None else cost_weight
    return {
        "sensors": problem.sensors,
        "risk": "squared" if risk == "error" else str(risk),
        "cost_weight": "auto" if weight is None else weight,
        "max_cost": file.max_cost if max_cost is None else max_cost,
        "unit": file.unit,
    }


def pose(
    data: DataFile,
    file: SensorsFile,
    target: str | None,
    task: str = "auto",
    groups: str | None = None,
) -> Problem:
    """Put a data file and a declaration of sensors together."""
    task = file.task if task == "auto" else task
    target = target or file.target
    if target is None:
        raise SensorError(
            f'{file.path} names no target; add target = "..." or pass --target.'
        )
    if target in file.columns:
        raise SensorError(
            f"{file.path}: column {target!r} is the target and belongs to a sensor too; "
            f"a model that sees the answer learns nothing else."
        )
    data = data.whole().knowing(file.known)
    data, labels, notes = read_target(data, target, task)
    columns = file.columns
    for name, sensor in file.sensors.items():
        for column in sensor.columns:
            data.require(column, f"[sensors.{name}] of {file.path}")
        if isinstance(sensor.cost, str):
            data.require(sensor.cost, f"the cost of [sensors.{name}] of {file.path}")
    read = {column: read_column(data, file, column) for column in columns}
    sensors = {
        name: sensor_of(sensor, columns) for name, sensor in file.sensors.items()
    }
    said = columns_note({column: found.notes for column, found in read.items()})
    return Problem(
        data,
        replace(file, target=target),
        columns,
        beside([found.values for found in read.values()]),
        labels,
        sensors,
        (*data.notes, *notes, *said),
        {c: found.form for c, found in read.items() if found.form != PLAIN_FORMAT},
        groups or "",
        None if groups is None else _groups(data, file, target, groups),
    )


def _groups(
    data: DataFile, file: SensorsFile, target: str, column: str
) -> NDArray[Any]:
    """Which rows belong together, by a column that is no reading."""
    cells = data.require(column, "--groups")
    if column in file.columns or column == target:
        owner = "is the target" if column == target else "belongs to a sensor"
        raise SensorError(
            f"{file.path}: column {column!r} says which rows belong together, and "
            f"{owner} too; take another column, or take it from the sensor."
        )
    for row, cell in enumerate(cells):
        if cell in MISSING:
            raise DataError(
                f"{data.place(row, column)}: the cell is empty, so that nobody knows what "
                f"the row belongs to; give a row that belongs to no other a label of its "
                f"own."
            )
    return data.texts(column)


def _losses(problem: Problem) -> dict[Any, Any] | None:
    """Losses by class rather than by the class's text."""
    declared, path = problem.file.loss, problem.file.path
    if declared is None:
        return None
    classes = {str(label): label for label in np.unique(problem.y).tolist()}

    look_up = class_finder(classes)

    def find(name: str) -> Any:
        found = look_up(name)
        if found is None:
            raise SensorError(
                f"{path}, [loss]: {name!r} is not a class of the target "
                f"{problem.file.target!r}; its classes are {listed(classes)}."
            )
        return found

    losses = {
        find(name): {find(answer): cost for answer, cost in value.items()}
        if isinstance(value, Mapping)
        else value
        for name, value in declared.items()
    }
    for name, label in classes.items():
        if label not in losses:
            raise SensorError(
                f"{path}, [loss]: class {name!r} is missing; add {toml_key(name)} = ..."
            )
    return losses


def name_parts(model: Any, problem: Problem) -> Any:
    """Tell a fitted model what its parts are called, and how its cells are written."""
    columns, reader = problem.columns, model.policy_.reader
    sensors = replace(reader.sensors, column_names=tuple(columns))
    about = replace(
        model.policy_.about,
        target=problem.file.target or "",
        data=problem.data.path.name,
    )
    model.policy_ = replace(
        model.policy_, reader=replace(reader, sensors=sensors), about=about
    )
    model.sensors_ = sensors
    model.feature_names_in_ = np.array(columns, dtype=object)
    model.reading_ = problem.reading
    return model


def _number_summary(problem: Problem, varies: bool) -> dict[str, Any]:
    """What a problem is made of whose target is a number."""
    y = problem.y
    listed_sensors = {
        name: {
            "columns": list(sensor.columns),
            "cost": sensor.cost,
            "missing": sum(map(problem.data.missing, sensor.columns)),
        }
        for name, sensor in problem.file.sensors.items()
    }
    resolved, _ = resolve_sensors(problem.sensors, None, Table(problem.X))
    settings = problem.settings()
    return {
        "rows": len(y),
        "target": problem.file.target,
        "numbers": {
            "mean": float(y.mean()),
            "deviation": float(y.std()),
            "low": float(y.min()),
            "high": float(y.max()),
        },
        "sensors": listed_sensors,
        "everything": None if varies else float(resolved.cost_of(resolved.names)),
        "unused_columns": problem.unused,
        "notes": list(problem.notes),
        "cost_weight": settings["cost_weight"],
        "max_cost": settings["max_cost"],
    }


def doubts_about(problem: Problem) -> list[str]:
    """Columns of sensors that look as if they should not be, each with the reason."""
    said = []
    for name, sensor in problem.file.sensors.items():
        for column in sensor.columns:
            if "date" in sensor.steps.get(column, ()):
                continue
            found = doubt(problem.data, column, levels_of_target(problem.y))
            if found is not None:
                said.append(f"column {column!r} of sensor {name!r} {found.reason}.")
    return said


def count_copies(problem: Problem) -> int:
    """Rows that are the same as one before, in all columns of the file."""
    rows = list(zip(*problem.data.columns.values(), strict=True))
    return len(rows) - len(set(rows))


def summarise(problem: Problem) -> dict[str, Any]:
    """What a problem is made of; the library looks at the declaration once more."""
    _ = problem.loss
    try:
        resolved, _ = resolve_sensors(problem.sensors, None, Table(problem.X))
    except SensorError as error:
        raise SensorError(f"{problem.file.path}: {error}") from error
    if problem.numbers:
        return _number_summary(problem, bool(resolved.varying.size))
    classes, counts = np.unique(problem.y, return_counts=True)
    if len(classes) < 2:
        raise DataError(
            f"{problem.data.path}: the target {problem.file.target!r} has one class only, "
            f"{classes.tolist()[0]!r}; a classifier needs two."
        )
    varies = bool(resolved.varying.size)
    settings = problem.settings()
    stake = (
        Market(resolved, read_prices(Table(problem.X), resolved), settings["max_cost"]),
        Settings(risk=settings["risk"], loss=settings["loss"]).losses(
            classes, np.zeros(0, np.intp), np.zeros(0)
        ),
        len(classes),
        settings["cost_weight"],
    )
    return {
        "rows": len(problem.y),
        "target": problem.file.target,
        "classes": dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True)),
        "sensors": {
            name: {
                "columns": list(sensor.columns),
                "cost": sensor.cost,
                "missing": sum(map(problem.data.missing, sensor.columns)),
            }
            for name, sensor in problem.file.sensors.items()
        },
        "everything": None if varies else float(resolved.cost_of(resolved.names)),
        "unused_columns": problem.unused,
        "notes": list(problem.notes),
        "mistake_cost": None if problem.loss else settings["loss"],
        "refer_cost": settings["refer_cost"],
        "cost_weight": settings["cost_weight"],
        "max_cost": settings["max_cost"],
        "never_pay": list(never_pay(*stake)),
        "price_advice": price_advice(*stake),
    }
