"""`SensorReader`: turns a sensor's columns into numbers, for the rows that bought it.

`fit_default_encoding` makes the transform of a sensor that was declared without one.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.sensors.market import priced, read_prices
from sensortree.sensors.seen import Seen, Unseen, find_unseen, in_order, median, seen_in
from sensortree.sensors.sensor import SensorSet, default_names
from sensortree.sensors.table import (
    MANY_LEVELS,
    MISSING,
    NUMERIC,
    Kind,
    NotNumberError,
    Table,
    as_numbers,
    as_text,
    check_levels,
    columns_of,
    is_missing,
    kind_of,
    one_row,
    typed_table,
)
from sensortree.sensors.transforms import (
    Imputer,
    InTurn,
    OneHot,
    Passthrough,
    SideBySide,
    Transform,
    Typed,
)
from sensortree.types import Array, Mask, Rows

# A larger reading is as good as an infinity, and a column of smaller ones as good as
# zeros: the square of their ratio might be no number that a computer can write down.
LARGEST, SMALLEST = 1e70, 1e-60


@dataclass(frozen=True, eq=False)
class SensorReader:
    """The sensors of a fitted model, ready to read any table with the same columns."""

    sensors: SensorSet
    transformers: Mapping[str, Any]  # fitted, by sensor name
    widths: tuple[int, ...]  # number of values in one reading of each sensor
    allow_nan: bool  # whether a reading may hold NaN (a missing value)
    frame: str | None = (
        None  # library of what transformers were fitted on; None: arrays
    )
    # What training saw of each sensor's columns; None if that is not known.
    seen: tuple[tuple[Seen, ...], ...] | None = field(
        default=None, metadata={"digest": "if set"}
    )

    def prices(self, table: Table) -> Array | None:
        """Prices of each row, (n_rows, n_sensors); None if all rows pay the same."""
        return read_prices(table, self.sensors)

    def read(self, table: Table, sensor: int, rows: Rows) -> tuple[Array, list[Unseen]]:
        """Read one sensor for some rows, (n_rows, width); and what training never saw."""
        return self._read(table.take(rows, self.sensors.columns[sensor]), sensor, rows)

    def read_one(
        self, sensor: int, values: Sequence[Any]
    ) -> tuple[Array, list[Unseen]]:
        """Read one sensor of one row from the values of its columns; see `read`."""
        transformer = self.transformers.get(self.sensors.names[sensor])
        if transformer is None:
            try:
                row = np.array([values], dtype=np.float64)
            except (TypeError, ValueError, OverflowError):
                row = one_row((), values, None)  # the error is raised below
            else:
                if self.seen is not None and _all_between(
                    row[0].tolist(), self._reach_of_one[sensor]
                ):
                    return row, []
            return self._read(row, sensor, None)
        # Plain transforms take columns by position, and know types by themselves.
        library = None if isinstance(transformer, Transform) else self.frame
        names = [self.sensors.column_names[c] for c in self.sensors.columns[sensor]]
        return self._read(one_row(names, values, library), sensor, None)

    def _read(
        self, columns: Any, sensor: int, rows: Rows | None
    ) -> tuple[Array, list[Unseen]]:
        """Turn columns into numbers, and say what training never saw of them."""
        # One layout, so that what sums rows up does so in one order.
        values = np.ascontiguousarray(self.transform(columns, sensor, rows))
        if self.seen is None:
            self.check(values, sensor, rows)
            return values, []
        own = self.sensors.names[sensor] not in self.transformers
        if own:
            low, high = self._reach[sensor]
            if ((values >= low) & (values <= high)).all():
                return values, []
        raw = list(values.T) if own else columns_of(columns)
        unseen = find_unseen(raw, self.seen[sensor], self.sensors, sensor, rows)
        if own and not self.allow_nan:
            values = np.where(np.isnan(values), self._middle[sensor], values)
        self.check(values, sensor, rows)
        return values, unseen

    @property
    def seen_by_column(self) -> dict[int, Seen]:
        """What training saw of a column, by its position in the table."""
        found: dict[int, Seen] = {}
        for at, seen in zip(self.sensors.columns, self.seen or (), strict=False):
            found |= dict(zip(at, seen, strict=True))
        return found

    @cached_property
    def _reach(self) -> list[tuple[Array, Array]]:
        """Between which numbers each sensor's columns are as in training."""
        bounds = [np.array([s.reach for s in seen]) for seen in self.seen or ()]
        clipped = [np.clip(b.reshape(-1, 2), -LARGEST, LARGEST) for b in bounds]
        return [(each[:, 0], each[:, 1]) for each in clipped]

    @cached_property
    def _reach_of_one(self) -> list[list[tuple[float, float]]]:
        """The same as plain numbers, which are quicker for one row."""
        return [
            list(zip(low.tolist(), high.tolist(), strict=True))
            for low, high in self._reach
        ]

    @cached_property
    def _middle(self) -> list[Array]:
        """What a missing number of each sensor's columns becomes."""
        return [
            np.array([np.nan if s.middle is None else s.middle for s in seen])
            for seen in self.seen or ()
        ]

    def transform(self, columns: Any, sensor: int, rows: Rows | None) -> Array:
        """Turn a sensor's columns into numbers."""
        name = self.sensors.names[sensor]
        try:
            if name in self.transformers:
                return _numbers(self.transformers[name].transform(columns), name)
            if isinstance(columns, np.ndarray) and columns.dtype == np.float64:
                return columns
            read = [as_numbers(c, i) for i, c in enumerate(columns_of(columns))]
            return np.stack(read, axis=1) if read else np.empty((len(columns), 0))
        except NotNumberError as error:
            at = self.sensors.columns[sensor][error.column]
            raise DataError(
                f"{error.value!r}{_in_row(rows, error.row)} of sensor {name!r}, column "
                f"{self.sensors.column_names[at]!r}, is not a number, as all were in "
                f"training; correct it, or give NaN if it is missing."
            ) from error

    def check(self, values: Array, sensor: int, rows: Rows | None) -> None:
        """Refuse what is too large, and NaN where the leaf classifiers cannot take it."""
        if np.vdot(values, values) <= LARGEST**2:
            return  # none can be larger, or else look at each
        bad = np.abs(values) > LARGEST
        if not self.allow_nan:
            bad |= np.isnan(values)
        if not bad.any():
            return
        row, column = np.argwhere(bad)[0]
        value, name = values[row, column], self.sensors.names[sensor]
        if np.isnan(value):
            found = "NaN"
            remedy = (
                "leave out its transformer, since gaps are then filled, or use a "
                "classifier that accepts NaN, such as HistGradientBoostingClassifier()."
            )
        elif np.isinf(value):
            found = "infinity"
            remedy = "replace it by a finite number, or by NaN if it is missing."
        else:
            found = f"{value:g}"
            remedy = (
                f"a reading is at most {LARGEST:g} in size; replace it by the right "
                f"number, or by NaN if it is missing."
            )
        of_column = self._of_column(sensor, int(column), values.shape[1])
        raise DataError(
            f"{found}{_in_row(rows, row)} of sensor {name!r}{of_column}; {remedy}"
        )

    def check_unit(self, values: Array, sensor: int) -> None:
        """Refuse columns of nothing but tiny readings."""
        largest = np.max(np.abs(values), axis=0, initial=0.0, where=~np.isnan(values))
        tiny = np.flatnonzero((largest > 0) & (largest < SMALLEST))
        if tiny.size:
            of_column = self._of_column(sensor, int(tiny[0]), values.shape[1])
            raise DataError(
                f"no reading of sensor {self.sensors.names[sensor]!r}{of_column} is larger "
                f"than {largest[tiny[0]]:g}, and some must be at least {SMALLEST:g} in "
                f"size; give the readings in a smaller unit."
            )

    def _of_column(self, sensor: int, column: int, width: int) -> str:
        columns = self.sensors.columns[sensor]
        if width != len(columns):
            return " after its transformer"
        return f", column {self.sensors.column_names[columns[column]]!r}"


def fit_reader(
    sensors: SensorSet,
    transformers: Mapping[str, Any],
    table: Table,
    rows: Rows,
    y: NDArray[Any],
    sample_weight: Array | None,
    allow_nan: bool,
    kinds: Sequence[Sequence[Kind | None]],
    keeps_nan: bool,
    bought: Mask | None = None,
) -> tuple[SensorReader, list[Array]]:
    """Fit the transformers, and read every sensor for the training rows.

    A sensor without a transformer is given one by the kinds of its columns, if need be.
    With `bought`, (n_rows, n_sensors), a sensor is read for the rows that bought it, and
    its block, (n_rows, width), is NaN for others.
    """
    fitted = dict(transformers)
    none_read = (0,) * len(sensors)
    reader = SensorReader(sensors, fitted, none_read, allow_nan, table.library)
    blocks, seen = [], []
    for sensor, (name, at, held) in enumerate(
        zip(sensors.names, sensors.columns, kinds, strict=True)
    ):
        own = np.arange(len(rows))
        if bought is not None:
            own = np.flatnonzero(bought[:, sensor])
        there = rows[own]
        columns = table.take(there, at)
        weight = None if sample_weight is None else sample_weight[own]
        if name in transformers:
            accepted = inspect.signature(fitted[name].fit).parameters
            weighted = weight is not None and "sample_weight" in accepted
            more = {"sample_weight": weight} if weighted else {}
            fitted[name].fit(columns, y[own], **more)
        else:
            plain = fit_default_encoding(columns, held, weight, keeps_nan)
            fitted |= {} if plain is None else {name: plain}
        found = tuple(
            Seen() if kind is None else seen_in(column, kind, weight)
            for column, kind in zip(columns_of(columns), held, strict=True)
        )
        if name not in transformers and found and all(s.missing == 1 for s in found):
            raise DataError(
                f"sensor {name!r} holds nothing but NaN; leave it out, since there is "
                f"nothing to learn from it."
            )
        block = reader.transform(columns, sensor, there)
        reader.check(block, sensor, there)
        reader.check_unit(block, sensor)
        if bought is not None:
            whole = np.full((len(rows), block.shape[1]), np.nan)
            whole[own] = block
            block = whole
        seen.append(found)
        blocks.append(block)
    widths = tuple(block.shape[1] for block in blocks)
    return replace(reader, widths=widths, seen=tuple(seen)), blocks


# What each column of each sensor holds; None where only a transformer can say.
Kinds = tuple[tuple[Kind | None, ...], ...]


def column_kinds(
    table: Table,
    sensors: SensorSet,
    transformers: Mapping[str, Any],
    bought: Mask | None = None,
) -> Kinds:
    """What the columns of each sensor hold; an error names one that is of no use.

    With `bought`, (n_rows, n_sensors), in the rows that bought it.
    """
    types = table.types
    kinds = []
    for sensor, (name, at) in enumerate(
        zip(sensors.names, sensors.columns, strict=True)
    ):
        rows = slice(None) if bought is None else np.flatnonzero(bought[:, sensor])
        columns = columns_of(table.take(rows, at))
        held: list[Kind | None] = []
        for column, position in zip(columns, at, strict=True):
            what = f"column {sensors.column_names[position]!r} of sensor {name!r}"
            dtype = None if types is None else types[position]
            try:
                kind: Kind | None = kind_of(column, dtype, what)
                if kind == "text" and name not in transformers:
                    check_levels(column, what)
            except DataError:
                if name not in transformers:
                    raise
                kind = None
            held.append(kind)
        kinds.append(tuple(held))
    return tuple(kinds)


def table_as_fitted(X: Any, prices: Any, sensors: SensorSet) -> Table:
    """X with prices, its columns those of training; no cell of X is looked at."""
    table = typed_table(X)
    if table is None:
        table = Table(_two_dimensional(X))
    expected, names = sensors.column_names, table.column_names
    if table.shape[1] != len(expected):
        raise DataError(
            f"X has {table.shape[1]} columns, but the model was fitted with "
            f"{len(expected)}; give all of them, with anything where they are unknown."
        )
    named = names is not None and expected != default_names(len(expected))
    for i, (name, wanted) in enumerate(zip(names or (), expected, strict=False)):
        if named and name != wanted:
            raise DataError(
                f"column {i} of X is {name!r}, expected {wanted!r}; give the columns "
                f"that the model was fitted with, in their order: "
                f"X[list(model.feature_names_in_)]."
            )
    return priced(table, prices, sensors)


def _two_dimensional(X: Any) -> NDArray[Any]:
    """Lists and the like as a two-dimensional array."""
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise DataError(f"X must be a table of rows and columns ({error}).") from error
    if array.ndim != 2:
        raise DataError(
            f"X must be two-dimensional, one row per example, got {array.ndim} "
            f"dimensions; a single row is X.reshape(1, -1)."
        )
    return array


def float_table(table: Table, sensors: SensorSet, bought: Mask | None = None) -> Table:
    """All columns as float64; NaN in columns that no sensor reads and that are no numbers.

    If a column that is read is no number, you get the table as it is: reading it raises
    the error. With `bought`, (n_rows, n_sensors), cells that were not bought are NaN too.
    """
    data = table.data
    if isinstance(data, np.ndarray) and data.dtype.kind in NUMERIC:
        return replace(table, data=data.astype(np.float64, copy=False))
    read = {at for columns in sensors.columns for at in columns}
    read |= {t.price_column for t in sensors.terms if t.price_column is not None}
    values = np.full(table.shape, np.nan)
    owner = {at: s for s, columns in enumerate(sensors.columns) for at in columns}
    for i, column in enumerate(columns_of(data)):
        rows: Any = slice(None)
        if bought is not None and i in owner:
            rows = np.flatnonzero(bought[:, owner[i]])
        try:
            values[rows, i] = as_numbers(column[rows], i)
        except NotNumberError:
            if i in read:
                return table
    return replace(table, data=values)


def joined_readings(
    blocks: Sequence[Array],
    sensors: SensorSet,
    subset: Iterable[str],
    rows: Rows,
) -> Array:
    """Put the readings of a subset side by side, in the declared order, for some rows."""
    chosen = [blocks[sensors.index(name)][rows] for name in sensors.in_order(subset)]
    return np.hstack(chosen) if chosen else np.empty((len(rows), 0))


def _numbers(columns: Any, name: str) -> Array:
    """Bring what a sensor's transformer gives to a float array."""
    if hasattr(columns, "toarray"):
        columns = columns.toarray()
    try:
        values = np.asarray(columns, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"the transformer of sensor {name!r} gives values that are not numbers "
            f"({error}); give it one that does, such as OneHotEncoder()."
        ) from error
    return values.reshape(len(values), -1)


def _all_between(values: list[float], bounds: list[tuple[float, float]]) -> bool:
    for value, (low, high) in zip(values, bounds, strict=True):
        if not low <= value <= high:
            return False
    return True


def _in_row(rows: Rows | None, row: int) -> str:
    return "" if rows is None else f" in row {rows[row]}"


# where a sensor has no transformer -------------------------------------------------------

# Rows that a level of a text must be in, and one in how many of all, to have a column.
FEWEST, SHARE = 5, 200
# Levels of a text that have a column each, at most.
MOST = MANY_LEVELS


def fit_default_encoding(
    X: Any, kinds: Sequence[Kind | None], sample_weight: Array | None, keeps_nan: bool
) -> Transform | None:
    """Give the transform of a sensor's columns `X`; None if they are numbers as they are.

    Numbers stay as they are. Where some were missing in training, missing ones become the
    median, and another column says where they were. Text has one column for each level
    that is in at least `FEWEST` rows and in one of `SHARE`, at most the `MOST` most
    frequent; other levels, and those never seen, share one more column if there were such
    in training. Missing text is a level.

    `keeps_nan` says whether the leaf classifiers take a missing number as NaN.
    """
    columns = columns_of(X)
    number_at = tuple(i for i, kind in enumerate(kinds) if kind == "number")
    text_at = tuple(i for i, kind in enumerate(kinds) if kind == "text")
    numbers = [as_numbers(columns[i], i) for i in number_at]
    gaps = any(np.isnan(column).any() for column in numbers)
    if not text_at and (keeps_nan or not gaps):
        return None
    filled: Transform = Passthrough(len(number_at))
    if not keeps_nan:
        filled = _imputer(numbers, sample_weight)
    if not text_at:
        return filled
    parts: list[tuple[tuple[int, ...], Transform]] = []
    if number_at:
        parts.append((number_at, filled))
    parts.append((text_at, _one_hot([as_text(columns[i]) for i in text_at])))
    typed = Typed(tuple(kind == "text" for kind in kinds))
    return InTurn((typed, SideBySide(len(kinds), tuple(parts))))


def _imputer(columns: Sequence[Array], sample_weight: Array | None) -> Imputer:
    """Fills gaps with the median, and marks them in a column of their own."""
    missing = [np.isnan(column) for column in columns]
    empty = np.array([gaps.all() for gaps in missing], dtype=bool)
    some = np.array([gaps.any() for gaps in missing], dtype=bool)
    fill = [median(column, sample_weight) for column in columns]
    return Imputer(np.where(empty, 0.0, fill), ~empty, np.flatnonzero(some & ~empty))


def _one_hot(columns: Sequence[NDArray[Any]]) -> OneHot:
    """Columns for frequent levels, and one for the others."""
    levels, rare = [], []
    for column in columns:
        counts = Counter(MISSING if is_missing(v) else v for v in column.tolist())
        found = in_order(counts)
        least = max(FEWEST, -(-len(column) // SHARE))
        frequent = [level for level in found if counts[level] >= least]
        # Sorting is stable: of levels that are as frequent, the first in order are kept.
        kept = sorted(frequent, key=lambda level: -counts[level])[:MOST]
        own = {id(level) for level in kept}
        levels.append(tuple(found))
        rare.append(tuple(i for i, level in enumerate(found) if id(level) not in own))
    none = (None,) * len(columns)
    if not any(rare):
        return OneHot(tuple(levels), none, ignore_unknown=True)
    return OneHot(tuple(levels), none, True, tuple(rare), unknown_is_rare=True)
