"""`Partitions`: rows that a fit is given, wherever Dask has them, one part at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.sensors.reader import SensorReader, float_table
from sensortree.sensors.table import Table, typed_table
from sensortree.types import Array, Rows


@dataclass(frozen=True, eq=False)
class Partitions:
    """Parts of X and y, as Dask's delayed values; nothing is computed yet.

    Attributes
    ----------
    X, y : list of delayed
    target : str
        Name of y; "" if it has none.
    """

    X: list[Any]
    y: list[Any]
    target: str

    @classmethod
    def of(cls, X: Any, y: Any) -> Partitions:
        """Take apart what the user gave.

        Parameters
        ----------
        X : dask DataFrame, dask Array, or path to a folder of Parquet files
        y : dask Series, dask Array, or name of a column of X
        """
        if isinstance(X, str | os.PathLike):
            import dask.dataframe as dd

            X = dd.read_parquet(Path(X))
        if isinstance(y, str):
            if y not in X.columns:
                raise DataError(
                    f"y names column {y!r}, which X does not have; its columns are "
                    f"{', '.join(map(repr, X.columns))}."
                )
            X, y = X.drop(columns=[y]), X[y]
        if hasattr(X, "rechunk") and len(X.chunks) == 2:
            X = X.rechunk({1: -1})
            known = not np.isnan(X.chunks[0]).any()
            if known and hasattr(y, "rechunk") and not np.isnan(y.chunks[0]).any():
                if sum(y.chunks[0]) != sum(X.chunks[0]):
                    raise DataError(
                        f"X has {sum(X.chunks[0])} rows and y {sum(y.chunks[0])}; give "
                        f"one class for each row."
                    )
                y = y.rechunk({0: X.chunks[0]})
        if not hasattr(X, "to_delayed") or not hasattr(y, "to_delayed"):
            raise DataError(
                f"X and y must be collections of Dask, or X the path of a folder of "
                f"Parquet files and y the name of a column; got {type(X).__name__} and "
                f"{type(y).__name__}. For rows in memory there is SensorTreeClassifier."
            )
        name = getattr(y, "name", "")
        is_array = hasattr(y, "chunks")
        # Optimised apart, columns of one file may come in other partitions than the rest.
        of_X, of_y = (
            list(np.ravel(each.to_delayed(optimize_graph=hasattr(each, "chunks"))))
            for each in (X, y)
        )
        if len(of_X) != len(of_y):
            raise DataError(
                f"X has {len(of_X)} partitions and y {len(of_y)}; take both from "
                f"one collection."
            )
        target = name if isinstance(name, str) and not is_array else ""
        return cls(of_X, of_y, target)


class OnThisMachine:
    """Partitions that are computed here, one at a time."""

    def map(
        self, function: Callable[..., Any], *arguments: Sequence[Any]
    ) -> Iterator[Any]:
        """What a function says of each partition."""
        from dask.base import compute

        for each in zip(*arguments, strict=True):
            yield function(*compute(*each, scheduler="synchronous"))


class OnCluster:
    """Partitions that are computed by the workers of a client, where they may stay."""

    def __init__(self, client: Any):
        self.client = client

    def stay(
        self, function: Callable[..., Any], *arguments: Sequence[Any]
    ) -> list[Any]:
        """Futures of what a function makes of each partition."""
        from dask.delayed import delayed

        task = delayed(function, pure=False)
        made = [task(*each) for each in zip(*arguments, strict=True)]
        return list(self.client.compute(made))

    def map(
        self, function: Callable[..., Any], *arguments: Sequence[Any]
    ) -> Iterator[Any]:
        """What a function says of each partition."""
        return iter(self.client.gather(self.stay(function, *arguments)))


def digests(X: Any, y: Any) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """A number for each row that its content decides, and the classes."""
    import pandas as pd

    frame = X if hasattr(X, "columns") else pd.DataFrame(np.asarray(X))
    values = np.asarray(y)
    if len(frame) != len(values):
        raise DataError(
            f"a partition of X has {len(frame)} rows and that of y {len(values)}; take "
            f"both from one collection."
        )
    return pd.util.hash_pandas_object(frame, index=False).to_numpy(), values


def some_rows(X: Any, y: Any, below: int) -> tuple[Any, NDArray[Any]]:
    """Rows whose digest is at most a number."""
    numbers, values = digests(X, y)
    chosen = numbers <= np.uint64(below)
    return (X[chosen], values[chosen])


def joined(tables: Sequence[Any]) -> Any:
    """Tables one below the other."""
    if not hasattr(tables[0], "columns"):
        return np.concatenate(tables)
    import pandas as pd

    return pd.concat(list(tables), ignore_index=True)


def read_part(X: Any, reader: SensorReader) -> Array:
    """Readings of all sensors of a partition, (n_rows, width)."""
    table = typed_table(X)
    if table is None:
        table = Table(np.asarray(X, dtype=np.float64))
    elif not reader.transformers:
        table = float_table(table, reader.sensors)
    rows = np.arange(table.shape[0])
    read = [
        reader.read(table, sensor, rows)[0] for sensor in range(len(reader.sensors))
    ]
    return np.hstack(read)


def column_of(readings: Array, column: int) -> Array:
    """One column of some readings."""
    return readings[:, column]


def pieces_of(readings: Array, wanted: Sequence[Rows]) -> list[Array]:
    """Some rows for each chunk."""
    return [readings[rows] for rows in wanted]
