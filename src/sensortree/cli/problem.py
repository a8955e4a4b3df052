"""`Problem`: a data file and a sensors.toml, as what the library takes.

Columns go in as an array, so that a model that was learned here needs no library of
frames where it is used; `name_parts` then tells the model what they are called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.cli.data_file import DataFile, class_finder, exact_number
from sensortree.cli.sensors_file import Declared, SensorsFile, toml_key
from sensortree.exceptions import DataError, SensorError
from sensortree.learning.settings import Settings, cost_weight_of
from sensortree.learning.worth import never_pay, price_advice
from sensortree.sensors.declaration import resolve_sensors
from sensortree.sensors.market import Market
from sensortree.sensors.reader import read_prices
from sensortree.sensors.sensor import Sensor
from sensortree.sensors.table import Table
from sensortree.text import listed

MAX_CLASSES = 1000


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
    y : ndarray of shape (n_rows,), of int or str
    sensors : dict of str to Sensor
    """

    data: DataFile
    file: SensorsFile
    columns: tuple[str, ...]
    X: NDArray[Any]
    y: NDArray[Any]
    sensors: dict[str, Sensor]

    @property
    def unused(self) -> list[str]:
        """Columns of the file that nobody reads."""
        read = {*self.columns, self.file.target}
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
    ) -> dict[str, Any]:
        """Parameters of an estimator; what is given wins over what the file says."""
        file = self.file
        loss = self.loss if mistake_cost is None else None
        cost = file.mistake_cost if mistake_cost is None else mistake_cost
        weight = file.cost_weight if cost_weight is None else cost_weight
        priced = loss is not None or cost is not None
        return {
            "sensors": self.sensors,
            "mistake_cost": cost,
            "loss": loss,
            "cost_weight": cost_weight_of(
                "auto" if weight is None else weight, in_money=priced
            ),
            "max_cost": file.max_cost if max_cost is None else max_cost,
            "unit": file.unit,
        }


def pose(
    data: DataFile, file: SensorsFile, target: str | None, allow_missing: bool
) -> Problem:
    """Put a data file and a declaration of sensors together.

    `allow_missing` says that the leaf classifiers can take missing numbers.
    """
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
    labels = read_labels(data, target)
    columns = file.columns
    for name, sensor in file.sensors.items():
        for column in sensor.columns:
            data.require(column, f"[sensors.{name}] of {file.path}")
        if isinstance(sensor.cost, str):
            data.require(sensor.cost, f"the cost of [sensors.{name}] of {file.path}")
    X = _table(data, file, allow_missing)
    sensors = {name: _sensor(sensor, columns) for name, sensor in file.sensors.items()}
    return Problem(data, replace(file, target=target), columns, X, labels, sensors)


def read_labels(data: DataFile, target: str) -> NDArray[Any]:
    """Classes of the rows, as they are written: int if that says all, text otherwise."""
    cells = data.require(target, "the target")
    for row, cell in enumerate(cells):
        if cell == "":
            raise DataError(
                f"{data.place(row, target)} is empty; the target must say the right "
                f"answer of every row."
            )
    _check_spelling(data, target)
    labels = data.texts(target).astype(str)
    if all(map(_is_plain_integer, np.unique(labels).tolist())):
        labels = labels.astype(np.int64)
    if len(np.unique(labels)) > MAX_CLASSES:
        raise DataError(
            f"{data.path}: the target {target!r} has more than {MAX_CLASSES} different "
            f"values; a classifier needs a column of classes."
        )
    return labels


def _is_plain_integer(text: str) -> bool:
    """Whether a number of 64 bits, written out, is this very text."""
    is_one = re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) is not None
    return is_one and -(2**63) <= int(text) < 2**63


def _check_spelling(data: DataFile, target: str) -> None:
    """Refuse a target of numbers that writes one of them in two ways."""
    texts = data.texts(target)
    seen: dict[Decimal, int] = {}
    for row, cell in enumerate(data.columns[target]):
        number = exact_number(cell)
        if number is None:
            return  # names, some of which may look like numbers
        first = seen.setdefault(number, row)
        if texts[first] != texts[row]:
            raise DataError(
                f"{data.place(row, target)}: {texts[row]!r} is the number that "
                f"{data.unit} {data.lines[first]} writes as {texts[first]!r}; write a "
                f"class in one way, or two classes with a letter before."
            )


def _table(data: DataFile, file: SensorsFile, allow_missing: bool) -> NDArray[Any]:
    """Columns of all sensors, and of prices, beside each other."""
    owner = {c: name for name, s in file.sensors.items() for c in s.columns}
    read: list[NDArray[Any]] = []
    for column in file.columns:
        if column not in owner:  # a price
            read.append(_prices(data, file, column))
            continue
        sensor = file.sensors[owner[column]]
        steps = sensor.steps.get(column, ())
        if "one-hot" in steps and (data.is_text(column) or data.is_blurred(column)):
            read.append(data.texts(column))
            continue
        remedy = (
            f"correct it, or give [sensors.{owner[column]}] of {file.path} transformer = "
            f'"one-hot".'
        )
        values = data.numbers(column, remedy)
        if not allow_missing and not {"one-hot", "impute"} & set(steps):
            _check_present(data, column, values, owner[column], file)
        read.append(values)
    objects = any(values.dtype == object for values in read)
    return np.stack([v.astype(object) if objects else v for v in read], axis=1)


def _prices(data: DataFile, file: SensorsFile, column: str) -> NDArray[np.float64]:
    priced = next(name for name, s in file.sensors.items() if s.cost == column)
    values = data.numbers(column, f"it is the price of sensor {priced!r}.")
    bad = np.flatnonzero(~(values >= 0))
    if bad.size:
        raise DataError(
            f"{data.place(int(bad[0]), column)}: the price of sensor {priced!r} must be "
            f"a number of at least 0."
        )
    return values


def _check_present(
    data: DataFile,
    column: str,
    values: NDArray[np.float64],
    sensor: str,
    file: SensorsFile,
) -> None:
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        raise DataError(
            f"{data.place(int(missing[0]), column)} is empty ({missing.size} of the column "
            f'are); give [sensors.{sensor}] of {file.path} transformer = "impute", or '
            f"use --classifier boosted."
        )


def _sensor(declared: Declared, columns: Sequence[str]) -> Sensor:
    """The library's sensor, with columns by position."""
    cost = declared.cost
    if isinstance(cost, str):
        cost = f"x{columns.index(cost)}"  # the name that an array's column has
    return Sensor(
        [columns.index(column) for column in declared.columns],
        cost,
        _transformer(declared),
        **declared.terms,
    )


def _transformer(declared: Declared) -> Any:
    """The transformer of a sensor; one for all columns, or one for each kind of them."""
    kinds: dict[tuple[str, ...], list[int]] = {}
    for position, column in enumerate(declared.columns):
        kinds.setdefault(declared.steps.get(column, ()), []).append(position)
    if not any(kinds):
        return None
    if len(kinds) == 1:
        return _pipeline(next(iter(kinds)))
    from sklearn.compose import ColumnTransformer

    parts = [("+".join(s) or "rest", _pipeline(s), at) for s, at in kinds.items()]
    return ColumnTransformer(parts)


def _pipeline(steps: tuple[str, ...]) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    if not steps:
        return "passthrough"
    kinds = {
        "one-hot": OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        "impute": SimpleImputer(add_indicator=True),
        "scale": StandardScaler(),
    }
    made = [kinds[step] for step in steps]
    return made[0] if len(made) == 1 else make_pipeline(*made)


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
    """Tell a fitted model what its columns, its target and its data are called."""
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
    return model


def summarise(problem: Problem) -> dict[str, Any]:
    """What a problem is made of; the library looks at the declaration once more."""
    _ = problem.loss
    try:
        resolved, _ = resolve_sensors(problem.sensors, None, Table(problem.X))
    except SensorError as error:
        raise SensorError(f"{problem.file.path}: {error}") from error
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
        Settings(loss=settings["loss"], mistake_cost=settings["mistake_cost"]).losses(
            classes
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
        "mistake_cost": settings["mistake_cost"],
        "cost_weight": settings["cost_weight"],
        "max_cost": settings["max_cost"],
        "never_pay": list(never_pay(*stake)),
        "price_advice": price_advice(*stake),
    }
