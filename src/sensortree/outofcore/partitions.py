"""Rows that a fit is given, wherever Dask has them, and what is known of all of them.

`Partitions` are read one at a time. `Digests` hold the few numbers of each row that are in
memory here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.leaves.rows import TrainingRows
from sensortree.sensors.market import check_price_array, read_prices
from sensortree.sensors.reader import SensorReader, float_table
from sensortree.sensors.sensor import SensorSet
from sensortree.sensors.table import Table, typed_table
from sensortree.types import Array, Mask, Rows


@dataclass(frozen=True, eq=False)
class Partitions:
    """Parts of what a fit is given, as Dask's delayed values; nothing is computed yet."""

    X: list[Any]
    y: list[Any]
    weight: list[Any]  # of None if rows have no weights
    prices: list[Any]  # of None if rows have no prices of their own
    target: str  # name of y; "" if it has none

    @property
    def given(self) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """X, y, weights and prices of each partition."""
        return self.X, self.y, self.weight, self.prices

    @classmethod
    def of(
        cls, X: Any, y: Any, sample_weight: Any = None, prices: Any = None
    ) -> Partitions:
        """Take apart what a user gives to `DaskSensorTreeClassifier.fit`."""
        if isinstance(X, str | os.PathLike):
            import dask.dataframe as dd

            X = dd.read_parquet(Path(X))
        X, y = _taken_out(X, y, "y")
        X, sample_weight = _taken_out(X, sample_weight, "sample_weight")
        if hasattr(X, "rechunk") and len(X.chunks) == 2:
            X = X.rechunk({1: -1})
        if not hasattr(X, "to_delayed") or not hasattr(y, "to_delayed"):
            raise DataError(
                f"X and y must be collections of Dask, or X the path of a folder of "
                f"Parquet files and y the name of a column; got {type(X).__name__} and "
                f"{type(y).__name__}. For rows in memory there is SensorTreeClassifier."
            )
        name = getattr(y, "name", "")
        return cls(
            _parts(X),
            parts_beside(X, y, "y", "class"),
            parts_beside(X, sample_weight, "sample_weight", "weight"),
            parts_beside(X, prices, "prices", "row of prices"),
            name if isinstance(name, str) and not hasattr(y, "chunks") else "",
        )


def _taken_out(X: Any, given: Any, what: str) -> tuple[Any, Any]:
    """X without the column that is named, and the column."""
    if not isinstance(given, str):
        return X, given
    if given not in X.columns:
        raise DataError(
            f"{what} names column {given!r}, which X does not have; its columns are "
            f"{', '.join(map(repr, X.columns))}."
        )
    return X.drop(columns=[given]), X[given]


def _parts(collection: Any) -> list[Any]:
    """Delayed values of a collection's partitions."""
    # Optimised apart, columns of one file may come in other partitions than the rest.
    of_arrays = hasattr(collection, "chunks")
    return list(np.ravel(collection.to_delayed(optimize_graph=of_arrays)))


def parts_beside(X: Any, given: Any, what: str, each: str) -> list[Any]:
    """Partitions of what is given for the rows of X, cut as those are; None for nothing."""
    if given is None:
        return [None] * X.npartitions
    if not hasattr(given, "to_delayed"):
        raise DataError(
            f"{what} must be a collection of Dask as X is, got {type(given).__name__}."
        )
    if hasattr(given, "rechunk") and hasattr(X, "rechunk"):
        rows = X.chunks[0]
        if not np.isnan([*rows, *given.chunks[0]]).any():
            if sum(given.chunks[0]) != sum(rows):
                raise DataError(
                    f"X has {sum(rows)} rows and {what} {sum(given.chunks[0])}; give "
                    f"one {each} for each row."
                )
            given = given.rechunk({0: rows})
        if len(given.chunks) == 2:
            given = given.rechunk({1: -1})
    parts = _parts(given)
    if len(parts) != X.npartitions:
        raise DataError(
            f"X has {X.npartitions} partitions and {what} {len(parts)}; take both from "
            f"one collection."
        )
    return parts


class Digests(NamedTuple):
    """What is known here of all rows that count, in the order of the partitions."""

    lengths: Rows  # rows of each partition, (n_partitions,)
    numbers: NDArray[np.uint64]  # one for each row, that its content decides, (n_rows,)
    labels: NDArray[Any]  # (n_rows,)
    weight: Array  # (n_rows,)
    priced: Mask | None  # whether a row was given a price for a sensor, (n_sensors,)

    def check_prices(self, sensors: SensorSet) -> None:
        """Refuse prices of sensors for which no row of the sample has any."""
        if self.priced is None:
            return
        unknown = np.setdiff1d(np.flatnonzero(self.priced), sensors.varying)
        if unknown.size:
            raise DataError(
                f"so few rows have a price for sensor {sensors.names[unknown[0]]!r} that "
                f"none of the sample has; set a larger sample_rows."
            )


def all_digests(parts: Iterable[Digests]) -> Digests:
    """What all partitions say of their rows."""
    *columns, priced = zip(*parts, strict=True)
    lengths, numbers, labels, weight = map(np.concatenate, columns)
    if not lengths.sum():
        raise DataError(
            "X has no rows of a weight above 0; give at least two, of two classes."
        )
    some = None if priced[0] is None else np.any(priced, axis=0)
    return Digests(lengths, numbers, labels, weight, some)


def digests(X: Any, y: Any, weight: Any, prices: Any) -> Digests:
    """What a partition says of its rows that count."""
    import pandas as pd

    frame = X if hasattr(X, "columns") else pd.DataFrame(np.asarray(X))
    for what, beside in (("y", y), ("sample_weight", weight), ("prices", prices)):
        if beside is not None and len(frame) != len(beside):
            raise DataError(
                f"a partition of X has {len(frame)} rows and that of {what} "
                f"{len(beside)}; take both from one collection."
            )
    rows, weights = counted(weight, len(frame))
    numbers = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    priced = None
    if prices is not None:
        priced = np.logical_not(np.isnan(np.asarray(prices, float)[rows]).all(axis=0))
    return Digests(
        np.array([len(rows)]), numbers[rows], np.asarray(y)[rows], weights, priced
    )


def counted(weight: Any, n_rows: int) -> tuple[Rows, Array]:
    """Rows of a partition that count, those of a weight above 0, and their weights."""
    if weight is None:
        return np.arange(n_rows), np.ones(n_rows)
    weights = np.asarray(weight, dtype=np.float64)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        raise DataError(
            f"sample_weight holds {weights[wrong[0]]}; weights are finite and at least 0."
        )
    rows = np.flatnonzero(weights > 0)
    return rows, weights[rows]


def some_rows(
    X: Any, y: Any, weight: Any, prices: Any, below: int
) -> tuple[Any, Array | None]:
    """Rows that count whose number is at most so much, and their prices."""
    numbers = digests(X, y, weight, prices).numbers
    rows, _ = counted(weight, len(X))
    chosen = np.zeros(len(X), dtype=bool)
    chosen[rows[numbers <= np.uint64(below)]] = True
    own = None if prices is None else np.asarray(prices, float)[chosen]
    return X[chosen], own


def joined(tables: Sequence[Any]) -> Any:
    """Tables one below the other."""
    if not hasattr(tables[0], "columns"):
        return np.concatenate(tables)
    import pandas as pd

    return pd.concat(list(tables), ignore_index=True)


def read_part(X: Any, weight: Any, prices: Any, reader: SensorReader) -> Array:
    """Readings of all sensors of a partition's rows that count, (n_rows, width).

    Prices of all sensors come behind them, where rows have their own.
    """
    table = typed_table(X)
    if table is None:
        table = Table(np.asarray(X, dtype=np.float64))
    elif not reader.transformers:
        table = float_table(table, reader.sensors)
    rows, _ = counted(weight, table.shape[0])
    sensors = reader.sensors
    read = [reader.read(table, sensor, rows)[0] for sensor in range(len(sensors))]
    if prices is not None:
        own = check_price_array(prices, table.shape[0], sensors)
        table = Table(table.data, own)
    paid = read_prices(table, sensors)
    return np.hstack(read if paid is None else [*read, paid[rows]])


def priced_by_all(
    taken: TrainingRows, column: Callable[[int], Array], weight: Array
) -> TrainingRows:
    """Rows of a sample that know the mean and the highest prices of all rows.

    `column` gives a column of all readings; prices of sensors come behind these. `weight`
    is that of all rows.
    """
    sensors = taken.sensors
    first = sum(taken.reader.widths)
    costs, varies = sensors.costs.copy(), sensors.mask(())
    total = np.zeros(len(weight))
    for sensor in map(int, sensors.varying):
        own = column(first + sensor)
        costs[sensor], varies[sensor] = np.average(own, weights=weight), True
        total += own
    dearest = float(total.max()) + float(sensors.own_costs[~varies].sum())
    reader = replace(taken.reader, sensors=replace(sensors, costs=costs))
    return replace(taken, reader=reader, dearest=dearest)
