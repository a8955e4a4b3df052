"""`acquired_from_events`: positions of purchases from a long table of them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError
from sensortree.sensors.table import is_missing
from sensortree.text import listed


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
    row_of = _row_of(ids)
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
    return _ranks(first)


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
    return (
        list(series.to_list())
        if isinstance(series, nw.Series)
        else list(np.asarray(column, dtype=object).tolist())
    )


def _row_of(ids: ArrayLike) -> dict[Any, int]:
    """Row of each id; an error names one that is there twice."""
    found: dict[Any, int] = {}
    for row, one in enumerate(_values(ids)):
        if one in found:
            raise DataError(
                f"rows {found[one]} and {row} have the same id, {one!r}; each row needs "
                f"one of its own."
            )
        found[one] = row
    return found


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


def _ranks(first: NDArray[np.float64]) -> NDArray[np.int64]:
    """Position of each moment among those of its row, equal ones alike; 0 for never."""
    ranks = np.zeros(first.shape, dtype=np.int64)
    for row, moments in enumerate(first):
        bought = np.isfinite(moments)
        _, number = np.unique(moments[bought], return_inverse=True)
        ranks[row, bought] = number + 1
    return ranks
