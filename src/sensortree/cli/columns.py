"""Columns of a data file as sensors take them: numbers, text, dates, prices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.dates import date_form, day_numbers
from sensortree.cells.formats import PLAIN_FORMAT, ColumnFormat
from sensortree.cells.words import cut, one_spelling
from sensortree.cli.data_file import DataFile
from sensortree.cli.sensors_file import Declared, SensorsFile
from sensortree.exceptions import DataError
from sensortree.sensors.sensor import Sensor

RARE = 5  # rows; categories with fewer share one column
MAX_LEVELS = 20  # columns of one category, the rarest sharing the last


class Read(NamedTuple):
    """A column as a model takes it: values, how they were written, what to say."""

    values: NDArray[Any]
    form: ColumnFormat = PLAIN_FORMAT
    notes: Sequence[str] = ()


def read_column(data: DataFile, file: SensorsFile, column: str) -> Read:
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


def sensor_of(declared: Declared, columns: Sequence[str]) -> Sensor:
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
