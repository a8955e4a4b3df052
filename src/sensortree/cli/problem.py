"""`Problem`: a table and a sensors.toml, in the form that the library takes.

Columns become an array, so that models learned here need no data-frame library where they
are used; `name_parts` gives the model the names of columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.words import (
    PLAIN_FORMAT,
    ColumnFormat,
    cut,
    date_form,
    day_numbers,
    exact_number,
    is_nothing,
    no_answers,
    one_spelling,
)
from sensortree.cli.sensors_file import Declared, SensorsFile, toml_key
from sensortree.cli.tables import (
    DataFile,
    as_objects,
    class_finder,
    columns_note,
    left_out_note,
    stacked,
)
from sensortree.exceptions import DataError, SensorError
from sensortree.learning.settings import Settings, cost_weight_of
from sensortree.learning.worth import never_pay, price_advice
from sensortree.sensors.market import Market, read_prices
from sensortree.sensors.sensor import Sensor, resolve_sensors
from sensortree.sensors.table import Table
from sensortree.text import listed

RARE = 5  # rows; categories with fewer share one column
MAX_LEVELS = 20  # columns of one category, the rarest sharing the last
MAX_CLASSES = 1000
# More different values than this, few rows each, are an amount rather than classes.
FEW_CLASSES, ROWS_OF_A_CLASS = 30, 5
# More different numbers than this, whole or not, may be an amount: then we ask.
FEW_NUMBERS, FEW_FRACTIONS = 12, 2


@dataclass(frozen=True, eq=False)
class Problem:
    """What is learned from."""

    data: DataFile
    file: SensorsFile
    columns: tuple[str, ...]  # names of the columns of `X`
    X: NDArray[Any]  # (n_rows, n_columns); of objects if some columns are text
    y: NDArray[Any]  # (n_rows,), of int or str; of float where a number is learned
    sensors: dict[str, Sensor]
    notes: tuple[str, ...] = ()  # how the table was read, where that is not plain
    # How numbers and dates are written, by column, where that is not plain.
    reading: Mapping[str, ColumnFormat] = field(default_factory=dict)
    group_column: str = ""  # "" for none
    groups: NDArray[Any] | None = None  # which rows belong together, (n_rows,)

    @property
    def numbers(self) -> bool:
        """Whether the target is a number rather than classes."""
        return bool(self.y.dtype.kind == "f")

    @property
    def unused(self) -> list[str]:
        """Columns of the table that are not used."""
        used = {*self.columns, self.file.target, self.group_column}
        return [name for name in self.data.columns if name not in used]

    def settings(self, **given: Any) -> dict[str, Any]:
        """Parameters of an estimator; what is given, and not None, wins over the file."""
        given = {name: value for name, value in given.items() if value is not None}
        file = replace(self.file, **given)
        weight = "auto" if file.cost_weight is None else file.cost_weight
        common = {
            "sensors": self.sensors,
            "max_cost": file.max_cost,
            "unit": file.unit,
        }
        if self.numbers:
            risk = _risk_of_numbers(file)
            return {**common, "risk": risk, "cost_weight": weight}
        loss = _losses(self, file.loss) if isinstance(file.loss, dict) else file.loss
        return {
            **common,
            "risk": file.risk,
            "cost_weight": cost_weight_of(weight, in_money=loss is not None),
            "loss": loss,
            "refer_cost": file.refer_cost,
        }


def _risk_of_numbers(file: SensorsFile) -> str:
    """The risk of a number; refuse what is only for classes."""
    if file.refer_cost is not None:
        raise SensorError(
            f"{file.path}: referring (refer_cost) is for classes, and the target "
            f"{file.target!r} is a number; leave it out."
        )
    if file.loss is not None:
        raise SensorError(
            f"{file.path}: the target {file.target!r} is a number, and no number is simply "
            f"wrong; leave loss out, or pass --task classification."
        )
    if file.risk in ("brier", "log_loss"):
        raise SensorError(
            f"{file.path}: risk {file.risk!r} is for classes, and the target "
            f"{file.target!r} is a number; take squared or absolute, or pass --task "
            f"classification."
        )
    return "squared" if file.risk == "error" else file.risk


def _losses(problem: Problem, declared: Mapping[str, Any]) -> dict[Any, Any]:
    """Losses by class rather than by the class's text."""
    path = problem.file.path
    classes = {str(label): label for label in np.unique(problem.y).tolist()}
    class_of = class_finder(classes)

    def find(name: str) -> Any:
        found = class_of(name)
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


def pose(
    data: DataFile,
    file: SensorsFile,
    target: str | None,
    task: str = "auto",
    groups: str | None = None,
) -> Problem:
    """Put a table and a declaration of sensors together."""
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
    read = {column: _read_column(data, file, column) for column in columns}
    return Problem(
        data,
        replace(file, target=target),
        columns,
        stacked([found.values for found in read.values()]),
        labels,
        {name: _as_sensor(sensor, columns) for name, sensor in file.sensors.items()},
        (
            *data.notes,
            *notes,
            *columns_note({column: found.notes for column, found in read.items()}),
        ),
        {c: found.form for c, found in read.items() if found.form != PLAIN_FORMAT},
        groups or "",
        None if groups is None else _groups(data, file, target, groups),
    )


def _groups(
    data: DataFile, file: SensorsFile, target: str, column: str
) -> NDArray[Any]:
    """Which rows belong together, by a column that no sensor reads."""
    cells = data.require(column, "--groups")
    if column in file.columns or column == target:
        owner = "is the target" if column == target else "belongs to a sensor"
        raise SensorError(
            f"{file.path}: column {column!r} says which rows belong together, and "
            f"{owner} too; take another column, or take it from the sensor."
        )
    for row, cell in enumerate(cells):
        if is_nothing(cell):
            raise DataError(
                f"{data.place(row, column)}: the cell is empty, so that nobody knows what "
                f"the row belongs to; give a row that belongs to no other a label of its "
                f"own."
            )
    return data.texts(column)


def name_parts(model: Any, problem: Problem) -> Any:
    """Give a fitted model the names of its columns, and how their cells are written."""
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


def summarise(problem: Problem) -> dict[str, Any]:
    """A summary of a problem; the library checks the declaration once more."""
    settings, y, file = problem.settings(), problem.y, problem.file
    table = Table(problem.X)
    try:
        resolved, _ = resolve_sensors(problem.sensors, None, table)
    except SensorError as error:
        raise SensorError(f"{file.path}: {error}") from error
    varies = bool(resolved.varying.size)
    about = {
        "sensors": {
            name: {
                "columns": list(sensor.columns),
                "cost": sensor.cost,
                "missing": sum(map(problem.data.missing, sensor.columns)),
            }
            for name, sensor in file.sensors.items()
        },
        "everything": None if varies else float(resolved.cost_of(resolved.names)),
        "unused_columns": problem.unused,
        "notes": list(problem.notes),
    }
    limits = {name: settings[name] for name in ("risk", "cost_weight", "max_cost")}
    head = {"rows": len(y), "target": file.target}
    if problem.numbers:
        numbers = {
            "mean": float(y.mean()),
            "deviation": float(y.std()),
            "low": float(y.min()),
            "high": float(y.max()),
        }
        return {**head, "numbers": numbers, **about, **limits}
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise DataError(
            f"{problem.data.path}: the target {file.target!r} has one class only, "
            f"{classes.tolist()[0]!r}; a classifier needs two."
        )
    stake = (
        Market(resolved, read_prices(table, resolved), settings["max_cost"]),
        Settings(risk=settings["risk"], loss=settings["loss"]).losses(
            classes, np.zeros(0, np.intp), np.zeros(0)
        ),
        len(classes),
        settings["cost_weight"],
    )
    return {
        **head,
        "classes": dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True)),
        **about,
        "loss": file.loss,
        "mistake_cost": None if isinstance(file.loss, dict) else file.loss,
        "refer_cost": settings["refer_cost"],
        **limits,
        "never_pay": list(never_pay(*stake)),
        "price_advice": price_advice(*stake),
    }


# columns of sensors -----------------------------------------------------------------------


class _Column(NamedTuple):
    """A column as a model takes it: values, how they were written, notes."""

    values: NDArray[Any]
    form: ColumnFormat = PLAIN_FORMAT
    notes: Sequence[str] = ()


def _read_column(data: DataFile, file: SensorsFile, column: str) -> _Column:
    """Read a column of a sensor, or of prices."""
    owner = {c: name for name, s in file.sensors.items() for c in s.columns}
    if column not in owner:
        values = _prices(data, file, column)
    else:
        sensor = owner[column]
        steps = file.sensors[sensor].steps.get(column, ())
        if "date" in steps:
            return _dates(data, column, sensor, file)
        is_text = data.is_text(column)
        if "one-hot" in steps:  # codes, of which no digit must be lost
            is_text |= data.is_blurred(column) or bool(data.read(column).strays)
        if is_text and (not steps or "one-hot" in steps):
            return _texts(data, column)
        remedy = (
            f"correct it, or take {' and '.join(steps)} from [sensors.{sensor}] of "
            f"{file.path}, which is for numbers."
        )
        values = data.numbers(column, remedy)
    return _Column(values, data.read(column).form, data.read(column).notes())


def _texts(data: DataFile, column: str) -> _Column:
    """A column of categories; spellings that differ in capitals or spaces are one."""
    texts = data.texts(column)
    best = one_spelling(texts)
    values = as_objects([best[text] for text in texts])
    pairs = [f"{cut(t)} is read as {cut(b)}" for t, b in best.items() if t != b]
    more = f" and {len(pairs) - 3} more like this" if len(pairs) > 3 else ""
    notes = [", ".join(pairs[:3]) + more] if pairs else []
    if data.read(column).has_two_units:
        other = cut(next(iter(data.read(column).other_units)))
        notes.append(
            f"numbers in two units are read as text; bring {other} and its like to "
            f"{data.read(column).form.unit!r}"
        )
    return _Column(values, notes=notes)


def _dates(data: DataFile, column: str, sensor: str, file: SensorsFile) -> _Column:
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
    return _Column(values, ColumnFormat(date=form), notes)


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


def _as_sensor(declared: Declared, columns: Sequence[str]) -> Sensor:
    """The library's sensor, with columns by position."""
    cost = declared.cost
    if isinstance(cost, str):
        cost = f"x{columns.index(cost)}"  # the name that an array's column has
    positions = [columns.index(column) for column in declared.columns]
    return Sensor(positions, cost, _transformer(declared), **declared.terms)


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


# the target -------------------------------------------------------------------------------


def read_target(
    data: DataFile, target: str, task: str
) -> tuple[DataFile, NDArray[Any], list[str]]:
    """The rows that have an answer; their classes or numbers; notes."""
    data.require(target, "the target")
    if task == "regression":
        return _amounts(data, target)
    if task == "classification" or data.is_text(target):  # words are classes
        return _labels(data, target)
    numbers = data.read(target).values
    numbers = numbers[~np.isnan(numbers)]
    n_rows, n_values = len(numbers), len(np.unique(numbers))
    whole = bool((numbers == np.round(numbers)).all())
    if _is_amount(n_values, n_rows):
        note = f"target {target}: {n_values} different numbers, taken for an amount."
        left, amounts, notes = _amounts(data, target)
        return left, amounts, [*notes, note]
    if n_values > (FEW_NUMBERS if whole else FEW_FRACTIONS):
        raise DataError(
            f"{data.path}: the target {target!r} has {n_values} different numbers in "
            f"{n_rows} rows, which may be classes or an amount; pass "
            f"--task classification or --task regression."
        )
    return _labels(data, target)


def _is_amount(n_values: int, n_rows: int) -> bool:
    """Whether there are too many values, of few rows each, to be classes."""
    few = n_values <= FEW_CLASSES or n_values * ROWS_OF_A_CLASS <= n_rows
    return n_values > MAX_CLASSES or not few


def _answered(
    data: DataFile, target: str, answered: NDArray[np.bool_]
) -> tuple[DataFile, list[str]]:
    """The rows whose answer is known, and a note on the others."""
    if not answered.any():
        raise DataError(
            f"{data.path}: the target {target!r} is empty in all rows; it must say the "
            f"right answer."
        )
    return data.rows(answered), left_out_note(data, target, ~answered)


def _amounts(
    data: DataFile, target: str
) -> tuple[DataFile, NDArray[np.float64], list[str]]:
    """Numbers of the rows that have one."""
    numbers = data.numbers(target, "correct it, or pass --task classification.")
    left, notes = _answered(data, target, ~np.isnan(numbers))
    return left, numbers[~np.isnan(numbers)], notes


def _labels(data: DataFile, target: str) -> tuple[DataFile, NDArray[Any], list[str]]:
    """Classes as they are written: int if no digit is lost, text otherwise.

    Spellings that differ in capitals or spaces are one class.
    """
    cells = data.columns[target]
    gaps = no_answers(cells)
    answered = np.array([cell not in gaps for cell in cells], dtype=bool)
    data, notes = _answered(data, target, answered)
    notes += [
        f"target {target}: {cut(cell)} is taken for a class, since without it there is "
        f"one class only."
        for cell in sorted(map(str, no_answers([*cells, "a", "b"]) - gaps))
    ]
    texts = data.texts(target)
    best = one_spelling(texts)
    merged = [
        f"target {target}: {cut(text)} is read as {cut(chosen)}, from which it differs in "
        f"capitals or spaces only; rename one if they are two classes."
        for text, chosen in best.items()
        if text != chosen
    ]
    labels = as_objects([best[text] for text in texts])
    if len(set(labels)) > 1:
        _check_spelling(data, target)
    different = np.unique(labels.astype(str))
    whole = all(map(_is_plain_integer, different.tolist()))
    labels = labels.astype(np.int64) if whole else labels.astype(str)
    if _is_amount(len(different), len(labels)):
        raise DataError(
            f"{data.path}: the target {target!r} has {len(different)} different values in "
            f"{len(labels)} rows; a classifier needs a column of classes. Is it another "
            f"column? If it is an amount, make classes of it first, such as above and "
            f"below a limit."
        )
    return data, labels, [*notes, *merged]


def _is_plain_integer(text: str) -> bool:
    """Whether text is exactly how a 64-bit integer is written."""
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
