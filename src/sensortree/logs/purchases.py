"""`Purchases`: what a log says was bought for each row, round by round.

`acquired_from_events` says it by a long table, with a line for each purchase.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError, ParameterError
from sensortree.sensors.market import Market
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.sensor import SensorSet
from sensortree.sensors.table import Table, columns_of, is_missing
from sensortree.text import listed
from sensortree.tree.paths import path_bill
from sensortree.types import Array, Mask, Rows

NEVER = np.iinfo(np.int32).max  # round of a sensor that was not bought

# Sensors one after another; those in brackets are bought together.
Order: TypeAlias = Sequence[str | Sequence[str]]
# What a value does that X holds of a sensor which was not bought.
Unbought: TypeAlias = Literal["ignore", "refuse"]


@dataclass(frozen=True, eq=False)
class Log:
    """What a user says of a log, not checked yet; see `SensorTreeClassifier.fit`."""

    acquired: Any
    order: Order | None = None
    label_influenced_buying: bool = False
    unbought: Unbought = "ignore"

    def __post_init__(self) -> None:
        if self.unbought not in ("ignore", "refuse"):
            raise ParameterError(
                f"unbought must be 'ignore' or 'refuse', got {self.unbought!r}."
            )

    def purchases(
        self,
        table: Table,
        sensors: SensorSet,
        prices: Array | None,
        reader: SensorReader | None = None,
    ) -> Purchases:
        """What was bought, checked against the values that a table has of it."""
        n_rows = table.shape[0]
        found = read_purchases(self.acquired, self.order, sensors, n_rows, prices)
        if self.unbought == "refuse":
            check_nothing_unbought(found, table)
        check_values(found, table, reader)
        return found


def log_of(
    acquired: Any,
    order: Order | None,
    label_influenced_buying: bool,
    unbought: Unbought,
) -> Log | None:
    """What a user says of a log; None if there is none, and everything was bought."""
    if acquired is not None:
        return Log(acquired, order, label_influenced_buying, unbought)
    if order is not None or label_influenced_buying:
        raise ParameterError(
            "order and label_influenced_buying say how a log came about, but there is "
            "none; give acquired, or leave them out."
        )
    return None


@dataclass(frozen=True, eq=False)
class Purchases:
    """What was bought for each row, round by round."""

    sensors: SensorSet
    # Round in which each sensor was bought, counted from 1 without gaps; 0 of what is free,
    # and so known at once; `NEVER` of what was not bought, (n_rows, n_sensors).
    round: NDArray[np.int32]

    @cached_property
    def n_rounds(self) -> Rows:
        """Number of rounds after which the log of each row ends, (n_rows,)."""
        bought = np.where(self.round == NEVER, 0, self.round)
        return np.asarray(bought.max(axis=1, initial=0), dtype=np.intp)

    def known_after(self, n_rounds: int, rows: Any = slice(None)) -> Mask:
        """What is known of some rows after so many rounds, (n_rows, n_sensors)."""
        return np.asarray(self.round[rows] <= n_rounds)

    @property
    def bought(self) -> Mask:
        """What is known of each row when its log ends, (n_rows, n_sensors)."""
        return np.asarray(self.round != NEVER)

    def cost(self, prices: Array | None) -> Array:
        """Price of what was bought for each row, in its order, (n_rows,)."""
        if not self.sensors.has_groups:  # no price depends on what was bought before
            each = np.asarray(self.sensors.costs) if prices is None else prices
            return np.asarray(np.where(self.bought, each, 0.0).sum(axis=1))
        total = np.zeros(len(self.round))
        ways, way_of = np.unique(self.round, axis=0, return_inverse=True)
        for way, rounds in enumerate(ways):
            rows = np.flatnonzero(way_of.ravel() == way)
            path = [
                frozenset(
                    name
                    for name, when in zip(self.sensors.names, rounds, strict=True)
                    if when <= last
                )
                for last in range(int(self.n_rounds[rows[0]]) + 1)
            ]
            own = None if prices is None else prices[rows]
            total[rows] = sum(path_bill(path, self.sensors, own).values())
        return total


def read_purchases(
    acquired: Any,
    order: Order | None,
    sensors: SensorSet,
    n_rows: int,
    prices: Array | None = None,
) -> Purchases:
    """Check what a log says was bought, and bring it to rounds.

    `acquired` and `order` are as in `evaluate_from_log`; nothing is as 0. The prices of
    each row, (n_rows, n_sensors), say what is free.
    """
    given = _as_array(acquired, sensors)
    if given.shape != (n_rows, len(sensors)):
        raise DataError(
            f"acquired has shape {given.shape}, expected ({n_rows}, {len(sensors)}): a "
            f"row for each row of X, a column for each sensor in the order "
            f"{listed(sensors.names)}."
        )
    if given.dtype == bool:
        position = _in_order(given, order, sensors)
    else:
        if order is not None:
            raise DataError(
                "acquired holds positions, which say in what order sensors were bought; "
                "leave order out, or give acquired > 0."
            )
        position = _positions(given, sensors)
        _check_not_a_mask(position, sensors)
    free = sensors.mask(Market(sensors, prices).free())
    purchases = Purchases(sensors, _rounds(position, free))
    _check_terms(purchases)
    return purchases


def _as_array(acquired: Any, sensors: SensorSet) -> NDArray[Any]:
    """Columns in the order of the sensors; those of a frame are found by name."""
    if not nw.dependencies.is_into_dataframe(acquired):
        return np.asarray(acquired)
    names = Table(acquired).column_names
    if names is None or set(names) != set(sensors.names) or len(names) != len(sensors):
        found = "names that are not text" if names is None else listed(names)
        raise DataError(
            f"acquired has the columns {found}, expected one for each sensor: "
            f"{listed(sensors.names)}."
        )
    columns = columns_of(acquired)
    chosen = [columns[names.index(name)] for name in sensors.names]
    return np.stack(chosen, axis=1) if chosen else np.empty((len(acquired), 0))


def _in_order(
    bought: Mask, order: Order | None, sensors: SensorSet
) -> NDArray[np.int64]:
    """Positions of what was bought in one order, (n_rows, n_sensors)."""
    if order is None:
        raise DataError(
            "acquired says what was bought, but not in what order, so nobody can tell what "
            "was known when buying ended; give the position of each purchase, or order=, "
            "if sensors were always bought in the same order."
        )
    if isinstance(order, str):
        raise DataError(f"order must be a sequence of sensors, got {order!r}.")
    place = np.zeros(len(sensors), dtype=np.int64)
    for at, together in enumerate(order):
        for name in (together,) if isinstance(together, str) else together:
            sensor = sensors.index(name)
            if place[sensor]:
                raise DataError(f"order names sensor {name!r} twice; name it once.")
            place[sensor] = at + 1
    lost = np.argwhere(bought & (place == 0))
    if lost.size:
        row, sensor = lost[0]
        raise DataError(
            f"sensor {sensors.names[sensor]!r} was bought in row {row}, but order does "
            f"not name it; add it where it was bought."
        )
    return np.asarray(bought * place)


def _positions(given: NDArray[Any], sensors: SensorSet) -> NDArray[np.int64]:
    """Positions as whole numbers, 0 for never; an error names the first that is none."""
    numbers = np.zeros(given.shape)
    if given.dtype.kind in "iuf":
        numbers = np.where(np.isnan(given), 0, given).astype(np.float64)
    else:
        for (row, sensor), value in np.ndenumerate(given):
            try:
                numbers[row, sensor] = 0.0 if is_missing(value) else float(value)
            except (TypeError, ValueError):
                raise _no_position(value, row, sensor, sensors) from None
    bad = np.argwhere(~np.isfinite(numbers) | (numbers < 0) | (numbers % 1 != 0))
    if bad.size:
        row, sensor = bad[0]
        raise _no_position(given[row, sensor], row, sensor, sensors)
    return numbers.astype(np.int64)


def _no_position(value: Any, row: int, sensor: int, sensors: SensorSet) -> DataError:
    return DataError(
        f"acquired is {_shown(value)} in row {row} for sensor "
        f"{sensors.names[sensor]!r}; it must be the position of the purchase, 1 for the "
        f"first, or 0 for never."
    )


def _shown(value: Any) -> str:
    """A value as a user would write it."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def _check_not_a_mask(position: NDArray[np.int64], sensors: SensorSet) -> None:
    """Refuse zeros and ones that are a mask written as numbers."""
    several = (position > 0).sum(axis=1)
    if position.max(initial=0) > 1 or several.max(initial=0) < 2 or position.all():
        return
    row = int(np.flatnonzero(several > 1)[0])
    together = listed(sensors.names[s] for s in np.flatnonzero(position[row]))
    raise DataError(
        f"acquired holds only 0 and 1, so in row {row} {together} would have been bought "
        f"at the same moment, as in all other rows. If it says what was bought, write "
        f"acquired.astype(bool) and give order=; what is bought together stands in "
        f"brackets there."
    )


def _rounds(position: NDArray[np.int64], free: Mask) -> NDArray[np.int32]:
    """Rounds without gaps: 0 of what is free, `NEVER` of what was not bought."""
    paid = np.where(free, 0, position)
    order = np.argsort(paid, axis=1, kind="stable")
    ascending = np.take_along_axis(paid, order, axis=1)
    before = np.concatenate([np.zeros((len(paid), 1), np.int64), ascending], axis=1)
    number = np.cumsum(ascending != before[:, :-1], axis=1)
    rounds = np.empty(paid.shape, dtype=np.int32)
    np.put_along_axis(rounds, order, number.astype(np.int32), axis=1)
    return np.where(free, 0, np.where(paid == 0, NEVER, rounds)).astype(np.int32)


def _check_terms(purchases: Purchases) -> None:
    """Refuse purchases that the sensors' 'after' or 'one_of' forbid."""
    sensors, rounds = purchases.sensors, purchases.round
    alternatives: dict[str, list[int]] = {}
    for sensor, terms in enumerate(sensors.terms):
        bought = rounds[:, sensor] != NEVER
        for other in sorted(terms.after):
            early = bought & (rounds[:, sensors.index(other)] > rounds[:, sensor])
            if early.any():
                raise DataError(
                    f"in row {np.flatnonzero(early)[0]} sensor {sensors.names[sensor]!r} "
                    f"was bought before {other!r}, which it comes after; correct the log, "
                    f"or declare the sensor without 'after'."
                )
        if terms.one_of is not None:
            alternatives.setdefault(terms.one_of, []).append(sensor)
    for label, members in alternatives.items():
        several = (rounds[:, members] != NEVER).sum(axis=1) > 1
        if several.any():
            row = int(np.flatnonzero(several)[0])
            both = [sensors.names[s] for s in members if rounds[row, s] != NEVER]
            raise DataError(
                f"in row {row} {listed(both)} were bought, of which one_of={label!r} "
                f"allows one; correct the log, or declare the sensors without 'one_of'."
            )


# what X holds of it -----------------------------------------------------------------------


def check_values(
    purchases: Purchases, table: Table, reader: SensorReader | None = None
) -> None:
    """Refuse a sensor that was bought, of which X holds nothing.

    Where training met such gaps, as a reader knows, they are readings as any other.
    """
    paid = (purchases.round != NEVER) & (purchases.round > 0)
    for sensor, name in enumerate(purchases.sensors.names):
        seen = () if reader is None or reader.seen is None else reader.seen[sensor]
        if seen and all(column.missing > 0 for column in seen):
            continue
        rows = np.flatnonzero(paid[:, sensor])
        empty = _empty(table, purchases.sensors.columns[sensor], rows)
        if empty.any():
            row = rows[np.flatnonzero(empty)[0]]
            raise DataError(
                f"sensor {name!r} was bought in row {row}, in round "
                f"{purchases.round[row, sensor]}, but X holds no value of it; give the "
                f"value, or 0 in acquired if it never came ({empty.sum():,} such rows)."
            )


def check_nothing_unbought(purchases: Purchases, table: Table) -> None:
    """Refuse a value of a sensor that was not bought."""
    for sensor, name in enumerate(purchases.sensors.names):
        rows = np.flatnonzero(purchases.round[:, sensor] == NEVER)
        columns = purchases.sensors.columns[sensor]
        for column in columns:
            there = ~_empty(table, (column,), rows)
            if there.any():
                row = rows[np.flatnonzero(there)[0]]
                raise DataError(
                    f"row {row} holds {_shown(table.value(int(row), column))} of sensor "
                    f"{name!r}, column {purchases.sensors.column_names[column]!r}, which "
                    f"was not bought ({there.sum():,} such rows); correct acquired, or "
                    f"have such values passed over: unbought='ignore'."
                )


def _empty(table: Table, columns: Sequence[int], rows: Rows) -> Mask:
    """Whether all of some columns are missing in each of some rows, (n_rows,)."""
    empty = np.ones(len(rows), dtype=bool)
    if not rows.size:
        return empty
    for column in columns_of(table.take(rows, columns)):
        if column.dtype.kind == "f":
            empty &= np.isnan(column)
        elif column.dtype.kind in "biu":
            empty[:] = False
        else:
            empty &= np.array([is_missing(value) for value in column.tolist()])
    return empty


def check_labels_there(y: NDArray[Any], name: str = "y") -> None:
    """Refuse a label that is missing; an error names the row."""
    for row, label in enumerate(y.tolist()):
        if is_missing(label):
            raise DataError(
                f"{name} has no label in row {row}, and nothing can be judged by it; leave "
                f"such rows out, if nothing but chance decided who has a label."
            )


def labels_of(
    y: ArrayLike, classes: Sequence[Any], n_rows: int, name: str = "y"
) -> Rows:
    """Right answers as positions among some classes; a missing one is named."""
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise DataError(
            f"{name} has shape {labels.shape}, but X has {n_rows} rows; give one for each."
        )
    check_labels_there(labels, name)
    position = {label: i for i, label in enumerate(classes)}
    found = np.empty(n_rows, dtype=np.intp)
    for row, label in enumerate(labels.tolist()):
        if label not in position:
            raise DataError(
                f"{name} holds class {label!r} in row {row}, which the policy does not "
                f"know; its classes are {listed(map(str, classes))}."
            )
        found[row] = position[label]
    return found


# from a line for each purchase ------------------------------------------------------------


def acquired_from_events(
    events: Any,
    ids: ArrayLike,
    sensors: Iterable[str],
    *,
    id: str = "id",
    sensor: str = "sensor",
    time: str = "time",
) -> NDArray[np.int64]:
    """Positions of purchases from a long table, a line for each purchase.

    What is bought at the same time is bought together; if a sensor is bought again, the
    first time counts. Lines of rows that are not asked for are passed over.

    Parameters
    ----------
    events : data frame, or mapping of column names to sequences
        pandas, polars or pyarrow.
    ids : array-like of shape (n_rows,)
        Which row of the table each row of X is; each once. A row without lines bought
        nothing.
    sensors : iterable of str
        Names of the sensors, in the order of the model: ``model.sensors_.names``.
    id, sensor, time : str, default="id", "sensor", "time"
        Columns of `events`. Times are numbers, dates, or text that is all numbers or all
        dates as in 2024-03-01T08:30; a number may as well be the position.

    Returns
    -------
    acquired : ndarray of int of shape (n_rows, n_sensors)
        1 for what a row bought first, 0 for never.

    Examples
    --------
    >>> import pandas as pd
    >>> from sensortree import acquired_from_events
    >>> orders = pd.DataFrame({
    ...     "id": ["b", "b", "a", "b"],
    ...     "sensor": ["x-ray", "blood", "blood", "urine"],
    ...     "time": [12.5, 8.0, 9.0, 8.0]})
    >>> acquired_from_events(orders, ["a", "b", "c"], ["blood", "urine", "x-ray"])
    array([[1, 0, 0],
           [1, 1, 2],
           [0, 0, 0]])
    """
    names = list(sensors)
    who, what, when = _columns(events, (id, sensor, time))
    row_of: dict[Any, int] = {}
    for row, one in enumerate(_values(ids)):
        if row_of.setdefault(one, row) != row:
            raise DataError(
                f"rows {row_of[one]} and {row} have the same id, {one!r}; each row needs "
                f"one of its own."
            )
    position = {name: at for at, name in enumerate(names)}
    mine = [at for at, one in enumerate(who) if one in row_of]
    if who and not mine:
        raise DataError(
            f"no line of events has an id of X: column {id!r} holds "
            f"{listed(map(str, who[:3]))}, ids {listed(map(str, list(row_of)[:3]))}; give "
            f"both as the same type, numbers or text."
        )
    moments = _moments([when[at] for at in mine], [who[at] for at in mine], time)
    first = np.full((len(row_of), len(names)), np.inf)
    for at, moment in zip(mine, moments, strict=True):
        if what[at] not in position:
            raise DataError(
                f"{what[at]!r} of id {who[at]!r} is not a sensor; the sensors are "
                f"{listed(names)}. Correct its name, or leave out such lines."
            )
        cell = row_of[who[at]], position[what[at]]
        first[cell] = min(first[cell], moment)
    ranks = np.zeros(first.shape, dtype=np.int64)
    for row, own in enumerate(first):
        bought = np.isfinite(own)
        _, number = np.unique(own[bought], return_inverse=True)
        ranks[row, bought] = number + 1
    return ranks


def _columns(events: Any, names: Sequence[str]) -> list[list[Any]]:
    """Columns of a frame or a mapping, as lists."""
    if isinstance(events, Mapping):
        there: Iterable[str] = events
    elif nw.dependencies.is_into_dataframe(events):
        events = nw.from_native(events, eager_only=True)
        there = events.columns
    else:
        raise DataError(
            f"events must be a data frame or a mapping of columns, got "
            f"{type(events).__name__}."
        )
    for name in names:
        if name not in there:
            raise DataError(
                f"events have no column {name!r}; their columns are "
                f"{listed(map(str, there))}. Say which holds the rows, the sensors and the "
                f"times: id=, sensor=, time=."
            )
    return [_values(events[name]) for name in names]


def _values(column: Any) -> list[Any]:
    """A column of a frame, a series or a sequence, as a list."""
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return list(series.to_list())
    return list(np.asarray(column, dtype=object).tolist())


def _moments(times: list[Any], who: list[Any], column: str) -> list[float]:
    """Times as numbers; an error names the first that is none."""
    if not times:
        return []
    for at, one in enumerate(times):
        if is_missing(one):
            raise DataError(
                f"column {column!r} of events is empty for id {who[at]!r}; without the "
                f"time nobody can tell what was known before."
            )
    wrong: Any = None
    for read in (_date, _number):
        try:
            return [read(wrong := one) for one in times]
        except (TypeError, ValueError, OverflowError):
            continue
    raise DataError(
        f"{wrong!r} in column {column!r} of events cannot be put in order with the others; "
        f"write numbers everywhere, or dates as in 2024-03-01T08:30."
    )


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _date(value: Any) -> float:
    """Seconds of a date, whatever its time zone."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip())
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return zoned.timestamp()
    if isinstance(value, datetime.date):
        return float(value.toordinal() * 86_400)
    raise TypeError
