"""`Problem`: a data file and a sensors.toml, as what the library takes.

Columns go in as an array, so that a model that was learned here needs no library of
frames where it is used; `name_parts` then tells the model what they are called.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.dates import date_form, day_numbers
from sensortree.cells.formats import PLAIN_FORMAT, ColumnFormat
from sensortree.cells.words import MISSING, cut, exact_number, one_spelling
from sensortree.cli.data_file import DataFile, beside, class_finder, columns_note
from sensortree.cli.doubts import doubt
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
# More different values than this, few rows each, are an amount rather than classes.
FEW_CLASSES, ROWS_OF_A_CLASS = 30, 5
# More different numbers than this, whole ones or not, may be an amount: who knows says so.
FEW_NUMBERS, FEW_FRACTIONS = 12, 2
RARE = 5  # rows; categories with fewer share one column
MAX_LEVELS = 20  # columns of one category, the rarest sharing the last


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
    """

    data: DataFile
    file: SensorsFile
    columns: tuple[str, ...]
    X: NDArray[Any]
    y: NDArray[Any]
    sensors: dict[str, Sensor]
    notes: tuple[str, ...] = ()
    reading: Mapping[str, ColumnFormat] = field(default_factory=dict)

    @property
    def numbers(self) -> bool:
        """Whether a number is learned, rather than classes."""
        return bool(self.y.dtype.kind == "f")

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
        loss = self.loss if mistake_cost is None else None
        cost = file.mistake_cost if mistake_cost is None else mistake_cost
        risk = file.risk if risk is None else risk
        weight = file.cost_weight if cost_weight is None else cost_weight
        priced = loss is not None or cost is not None
        return {
            "sensors": self.sensors,
            "risk": risk,
            "mistake_cost": cost,
            "loss": loss,
            "refer_cost": file.refer_cost if refer_cost is None else refer_cost,
            "cost_weight": cost_weight_of(
                "auto" if weight is None else weight, in_money=priced
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


def read_target(
    data: DataFile, target: str, task: str
) -> tuple[DataFile, NDArray[Any], list[str]]:
    """The rows that have an answer; their classes or numbers; what was done.

    Parameters
    ----------
    data : DataFile
    target : str
    task : {"auto", "classification", "regression"}
    """
    if task == "classification":
        return read_labels(data, target)
    data.require(target, "the target")
    answered, notes = _answered(data, target)
    remedy = "correct it, or pass --task classification."
    if task == "regression":
        return answered, answered.numbers(target, remedy), notes
    try:
        numbers = answered.numbers(target, remedy)
    except DataError:
        return read_labels(data, target)  # words are classes
    n_rows, n_values = len(numbers), len(np.unique(numbers))
    whole = bool((numbers == np.round(numbers)).all())
    if _is_amount(n_values, n_rows):
        said = f"target {target}: {n_values} different numbers, taken for an amount."
        return answered, numbers, [*notes, said]
    if n_values > (FEW_NUMBERS if whole else FEW_FRACTIONS):
        raise DataError(
            f"{data.path}: the target {target!r} has {n_values} different numbers in "
            f"{n_rows} rows, which may be classes or an amount; pass "
            f"--task classification or --task regression."
        )
    return read_labels(data, target)


def _is_amount(n_values: int, n_rows: int) -> bool:
    """Whether values are so many, of few rows each, that they are no classes."""
    few = n_values <= FEW_CLASSES or n_values * ROWS_OF_A_CLASS <= n_rows
    return n_values > MAX_CLASSES or not few


def pose(
    data: DataFile,
    file: SensorsFile,
    target: str | None,
    task: str = "auto",
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
    read = {column: _column(data, file, column) for column in columns}
    sensors = {name: _sensor(sensor, columns) for name, sensor in file.sensors.items()}
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
    )


def read_labels(
    data: DataFile, target: str
) -> tuple[DataFile, NDArray[Any], list[str]]:
    """The rows that have a class; their classes; what was done about the others.

    A class is as it is written: int if that says all, text otherwise.
    """
    data.require(target, "the target")
    data, notes = _answered(data, target)
    labels, merged = _one_spelling(data, target)
    if len(set(labels)) > 1:
        _check_spelling(data, target)
    different = np.unique(labels.astype(str))
    if all(map(_is_plain_integer, different.tolist())):
        labels = labels.astype(np.int64)
    else:
        labels = labels.astype(str)
    n_rows, n_classes = len(labels), len(different)
    if _is_amount(n_classes, n_rows):
        raise DataError(
            f"{data.path}: the target {target!r} has {n_classes} different values in "
            f"{n_rows} rows; a classifier needs a column of classes. Is it another "
            f"column? If it is an amount, make classes of it first, such as above and "
            f"below a limit."
        )
    return data, labels, [*notes, *merged]


def _answered(data: DataFile, target: str) -> tuple[DataFile, list[str]]:
    """The rows whose class is known, and a sentence about the others."""
    cells = data.columns[target]
    empty = np.array([cell == "" for cell in cells])
    words = np.array([cell in MISSING for cell in cells])
    # NA is a class like others where without it there would be nothing to tell apart.
    classes = {cell for cell, gone in zip(cells, words, strict=True) if not gone}
    left_out = words if len(classes) > 1 else empty
    if left_out.all():
        raise DataError(
            f"{data.path}: the target {target!r} is empty in all rows; it must say the "
            f"right answer."
        )
    if not left_out.any():
        return data, []
    counts = Counter(str(c) for c, out in zip(cells, left_out, strict=True) if out)
    said = " or ".join(cut(cell) if cell else "empty" for cell in sorted(counts))
    note = f"{left_out.sum()} rows are left out: their {target} is {said}."
    return data.rows(~left_out), [note]


def _one_spelling(data: DataFile, target: str) -> tuple[NDArray[Any], list[str]]:
    """Classes of the rows as text, one for those that differ in capitals and spaces."""
    texts = data.texts(target)
    best = one_spelling(texts)
    notes = [
        f"target {target}: {cut(text)} is read as {cut(chosen)}, from which it differs in "
        f"capitals or spaces only; rename one if they are two classes."
        for text, chosen in best.items()
        if text != chosen
    ]
    labels = np.empty(len(texts), dtype=object)
    labels[:] = [best[text] for text in texts]
    return labels, notes


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


class Read(NamedTuple):
    """A column as a model takes it: values, how they were written, what to say."""

    values: NDArray[Any]
    form: ColumnFormat = PLAIN_FORMAT
    notes: Sequence[str] = ()


def _column(data: DataFile, file: SensorsFile, column: str) -> Read:
    """Read a column of a sensor, or of prices."""
    owner = {c: name for name, s in file.sensors.items() for c in s.columns}
    if column not in owner:
        values = _prices(data, file, column)
        return Read(values, data.read(column).form, data.read(column).notes())
    sensor = owner[column]
    steps = file.sensors[sensor].steps.get(column, ())
    if "date" in steps:
        return _dates(data, column, sensor, file)
    if _is_category(data, column, steps):
        return _texts(data, column)
    remedy = (
        f"correct it, or take {' and '.join(steps)} from [sensors.{sensor}] of "
        f"{file.path}, which is for numbers."
    )
    values = data.numbers(column, remedy)
    return Read(values, data.read(column).form, data.read(column).notes())


def _is_category(data: DataFile, column: str, steps: tuple[str, ...]) -> bool:
    """Whether a column is read as text."""
    if "one-hot" in steps:  # codes, of which no digit must be lost
        codes = data.is_blurred(column) or bool(data.read(column).strays)
        return codes or data.is_text(column)
    return not steps and data.is_text(column)


def _texts(data: DataFile, column: str) -> Read:
    """A column of categories, one for those that differ in capitals and spaces."""
    texts = data.texts(column)
    best = one_spelling(texts)
    values = np.empty(len(texts), dtype=object)
    values[:] = [best[text] for text in texts]
    pairs = [f"{cut(t)} is read as {cut(b)}" for t, b in best.items() if t != b]
    more = f" and {len(pairs) - 3} more like this" if len(pairs) > 3 else ""
    notes = [", ".join(pairs[:3]) + more] if pairs else []
    if data.read(column).has_two_units:
        notes.append(
            f"numbers in two units are read as text; {_two_units(data, column)}"
        )
    return Read(values, notes=notes)


def _two_units(data: DataFile, column: str) -> str:
    other = next(iter(data.read(column).other_units))
    usual = data.read(column).form.unit
    return f"bring {cut(other)} and its like to {usual!r}"


def _dates(data: DataFile, column: str, sensor: str, file: SensorsFile) -> Read:
    """A column of dates as days after 1970-01-01."""
    form = date_form(data.columns[column])
    if not form:
        raise DataError(
            f"{data.path}: column {column!r} holds no dates that can be read, such as "
            f'2024-12-31; take transformer = "date" from [sensors.{sensor}] of '
            f"{file.path}."
        )
    values = day_numbers(data.columns[column], form)
    notes = [f"dates {form} are read as days after 1970-01-01"]
    return Read(values, ColumnFormat(date=form), notes)


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
    """The transformer of a sensor; one for all columns, or one for each kind of them.

    Dates are numbers by now.
    """
    kinds: dict[tuple[str, ...], list[int]] = {}
    for position, column in enumerate(declared.columns):
        steps = declared.steps.get(column, ())
        kinds.setdefault(tuple(s for s in steps if s != "date"), []).append(position)
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
        "one-hot": OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=RARE,
            max_categories=MAX_LEVELS,
            sparse_output=False,
        ),
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


def levels_of_target(y: NDArray[Any]) -> NDArray[Any]:
    """Classes as they are; numbers in four groups of about as many rows."""
    if y.dtype.kind != "f":
        return y
    return np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), y)


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
        Settings(
            **{name: settings[name] for name in ("risk", "loss", "mistake_cost")}
        ).losses(classes, np.zeros(0, np.intp), np.zeros(0)),
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
        "mistake_cost": settings["mistake_cost"],
        "refer_cost": settings["refer_cost"],
        "cost_weight": settings["cost_weight"],
        "max_cost": settings["max_cost"],
        "never_pay": list(never_pay(*stake)),
        "price_advice": price_advice(*stake),
    }
