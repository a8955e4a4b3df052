"""Rows to be answered: their keys, what is known of them for nothing, their prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import islice
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.policy.policy import Policy
from sensortree.policy.values import check_names
from sensortree.sensors.columns import NUMERIC, columns_of
from sensortree.sensors.reader import check_price_array
from sensortree.sensors.sensor_set import SensorSet
from sensortree.sensors.table import Table
from sensortree.text import listed
from sensortree.types import Array


@dataclass(frozen=True)
class Naming:
    """What is where in the rows that were given.

    Attributes
    ----------
    key : str or None
        Column of the keys; None for the index of a pandas frame, or bare keys.
    known : tuple of str
        Sensors whose columns are known for nothing.
    prices : mapping of sensor to column
        Columns with the prices of each row, of sensors that are not sold by a column.
    """

    key: str | None
    known: tuple[str, ...]
    prices: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a block of rows before anything is bought.

    Attributes
    ----------
    keys : list of int or of str
    columns : dict of int to ndarray of shape (n_rows,)
        Columns by their position in the policy's tables.
    prices : ndarray of shape (n_rows, n_sensors) or None
        Prices that are not among the columns.
    """

    keys: list[Any]
    columns: dict[int, NDArray[Any]]
    prices: Array | None

    @property
    def kind(self) -> str:
        """What the keys are, as the ledger notes it."""
        return type(self.keys[0]).__name__


# cut into parts ---------------------------------------------------------------------------


def is_dask_frame(rows: Any) -> bool:
    """Whether rows are a Dask data frame."""
    dask = type(rows).__module__.startswith("dask")
    return dask and hasattr(rows, "to_delayed") and hasattr(rows, "columns")


def parts_of(rows: Any, size: int) -> Iterator[Any]:
    """Rows in parts: frames or lists of keys of so many rows, or a cluster's partitions."""
    if is_dask_frame(rows):
        yield from rows.to_delayed()
    elif Table.holds(rows):
        yield from pieces_of(rows, size)
    else:
        keys = iter(rows)
        while part := list(islice(keys, size)):
            yield part


def pieces_of(part: Any, size: int) -> Iterator[Any]:
    """A part in pieces of at most so many rows."""
    frame = Table.holds(part) and not isinstance(part, np.ndarray)
    for start in range(0, len(part), size):
        if frame and not nw.dependencies.is_pandas_dataframe(part):
            yield nw.from_native(part, eager_only=True)[
                start : start + size
            ].to_native()
        else:
            yield (part.iloc if frame else part)[start : start + size]


def count_of(rows: Any) -> int | None:
    """How many rows there are, where that is known without looking at them."""
    counted = isinstance(rows, Sized) and not is_dask_frame(rows)
    return len(rows) if counted else None


# what is where ----------------------------------------------------------------------------


def naming(
    rows: Any,
    policy: Policy,
    key: str | None,
    known: Iterable[str] | None,
    prices: Mapping[str, str] | None,
) -> Naming:
    """Find what is where in rows, or say what is not there."""
    sensors, columns = policy.sensors, column_names(rows)
    if columns is not None and key is not None and key not in columns:
        raise DataError(
            f"rows have no column {key!r} for the keys; they have {listed(columns)}."
        )
    if columns is not None and key is None and not hasattr(rows, "index"):
        raise DataError("rows have no index; name the column of their keys with key=.")
    there = set(columns or ())
    found = _known_sensors(sensors, there, known)
    given = dict(prices or {})
    for name, column in given.items():
        check_names([name], "prices", sensors)
        if column not in there:
            raise DataError(
                f"rows have no column {column!r} for the price of sensor {name!r}."
            )
    for name, terms in zip(sensors.names, sensors.terms, strict=True):
        column_at = terms.price_column
        if column_at is not None and sensors.column_names[column_at] not in there:
            raise DataError(
                f"sensor {name!r} is sold at the price in column "
                f"{sensors.column_names[column_at]!r}, which rows do not have; prices "
                f"are known before anything is bought."
            )
    return Naming(key, found, given)


def column_names(rows: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame; None if rows are keys."""
    if is_dask_frame(rows):
        return tuple(rows.columns)
    if isinstance(rows, np.ndarray) and rows.ndim != 1:
        raise DataError(
            f"rows must be a data frame or keys, got an array of shape {rows.shape}; put "
            f"what is known into a frame, with column names and keys."
        )
    if Table.holds(rows):
        return Table(rows).column_names or ()
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise DataError(
            f"rows must be a data frame or keys, got {type(rows).__name__}; give a list "
            f"of keys if nothing is known."
        )
    return None


def _known_sensors(
    sensors: SensorSet, there: set[str], known: Iterable[str] | None
) -> tuple[str, ...]:
    """Sensors that are known for nothing: those named, or all whose columns are there."""
    named = None if known is None else check_names(known, "known", sensors)
    found = []
    for name, at in zip(sensors.names, sensors.columns, strict=True):
        columns = [sensors.column_names[c] for c in at]
        lacking = [column for column in columns if column not in there]
        if (named is not None and name not in named) or not columns:
            continue
        if not lacking:
            found.append(name)
        elif named is not None or len(lacking) < len(columns):
            raise DataError(
                f"rows lack column {lacking[0]!r} of sensor {name!r}; give all of its "
                f"columns, or say with known= which sensors are known."
            )
    return tuple(found)


# read -------------------------------------------------------------------------------------


def read_known(part: Any, policy: Policy, where: Naming) -> Known:
    """Keys, known columns and prices of a part of the rows."""
    sensors = policy.sensors
    if not Table.holds(part):
        return Known(_check_keys(list(part)), {}, None)
    table = Table(part)
    at = {name: i for i, name in enumerate(table.column_names or ())}

    def column(name: str) -> NDArray[Any]:
        (found,) = columns_of(table.take(slice(None), [at[name]]))
        return as_known(found)

    keys = (
        part.index.tolist()
        if where.key is None
        else columns_of(table.take(slice(None), [at[where.key]]))[0].tolist()
    )
    wanted = [c for n in where.known for c in sensors.columns[sensors.index(n)]]
    wanted += [t.price_column for t in sensors.terms if t.price_column is not None]
    prices = None
    if where.prices:
        prices = np.full((len(keys), len(sensors)), np.nan)
        for name, named in where.prices.items():
            prices[:, sensors.index(name)] = column(named)
        prices = check_price_array(prices, len(keys), sensors)
    return Known(
        _check_keys(keys), {c: column(sensors.column_names[c]) for c in wanted}, prices
    )


def as_known(column: NDArray[Any]) -> NDArray[Any]:
    """A column as numbers if it has a type of numbers, else as objects."""
    numeric = column.dtype.kind in NUMERIC
    return column.astype(np.float64 if numeric else object)


def _check_keys(keys: Sequence[Any]) -> list[Any]:
    """Keys as plain whole numbers or text, all alike and each once."""
    plain = [key.item() if isinstance(key, np.generic) else key for key in keys]
    kinds = {type(key) for key in plain}
    if not kinds <= {int} and not kinds <= {str}:
        odd = next((k for k in plain if type(k) not in (int, str)), None)
        raise DataError(
            f"{odd!r} is no key; keys are whole numbers or text, and none is missing."
            if odd is not None or None in plain
            else "some keys are numbers and others text; make all of them text."
        )
    if "" in plain:
        raise DataError("'' is no key; keys are whole numbers or text, none missing.")
    if len(set(plain)) < len(plain):
        twice, _ = Counter(plain).most_common(1)[0]
        raise DataError(
            f"key {twice!r} is that of two rows; keys must be unique. Give the rows of a "
            f"key once, or make keys of what tells them apart."
        )
    return plain
