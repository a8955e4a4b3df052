"""`SensorReader`: turns a sensor's columns into numbers, for the rows that bought it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.sensors import SensorSet
from sensortree.table import Table

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SensorReader:
    """The sensors of a fitted model, ready to read any table with the same columns.

    Attributes
    ----------
    sensors : SensorSet
    transformers : mapping of sensor name to fitted transformer
    widths : tuple of int
        Number of values in one reading of each sensor.
    allow_nan : bool
        Whether a reading may hold NaN (a missing value).
    """

    sensors: SensorSet
    transformers: Mapping[str, Any]
    widths: tuple[int, ...]
    allow_nan: bool

    def read(self, table: Table, sensor: int, rows: NDArray[np.intp]) -> Array:
        """Read one sensor for some rows, shape (n_rows, width)."""
        values = self.transform(table.take(rows, self.sensors.columns[sensor]), sensor)
        self.check(values, sensor, rows)
        return values

    def transform(self, columns: Any, sensor: int) -> Array:
        """Turn a sensor's columns into numbers."""
        name = self.sensors.names[sensor]
        if name in self.transformers:
            columns = self.transformers[name].transform(columns)
        return _numbers(columns, self.sensors, sensor)

    def check(self, values: Array, sensor: int, rows: NDArray[np.intp]) -> None:
        """Refuse infinities, and NaN where the leaf classifiers cannot take them."""
        bad = np.isinf(values) if self.allow_nan else ~np.isfinite(values)
        if not bad.any():
            return
        row, column = np.argwhere(bad)[0]
        found = "NaN" if np.isnan(values[row, column]) else "infinity"
        name = self.sensors.names[sensor]
        remedy = (
            "give the sensor a transformer, such as SimpleImputer(), or use a "
            "classifier that accepts NaN, such as HistGradientBoostingClassifier()."
            if found == "NaN"
            else "replace it by a finite number, or by NaN if it is missing."
        )
        raise DataError(
            f"{found} in row {rows[row]} of sensor {name!r}"
            f"{_of_column(self.sensors, sensor, int(column), values.shape[1])}; {remedy}"
        )


def fit_reader(
    sensors: SensorSet,
    transformers: Mapping[str, Any],
    table: Table,
    rows: NDArray[np.intp],
    y: NDArray[Any],
    sample_weight: Array | None,
    allow_nan: bool,
) -> tuple[SensorReader, list[Array]]:
    """Fit the transformers, and read every sensor for the training rows.

    Returns
    -------
    reader : SensorReader
    blocks : list of n_sensors arrays of shape (n_rows, width)
    """
    for name, transformer in transformers.items():
        columns = table.take(rows, sensors.columns[sensors.index(name)])
        accepts_weights = (
            "sample_weight" in inspect.signature(transformer.fit).parameters
        )
        if sample_weight is not None and accepts_weights:
            transformer.fit(columns, y, sample_weight=sample_weight)
        else:
            transformer.fit(columns, y)
    reader = SensorReader(sensors, transformers, (0,) * len(sensors), allow_nan)
    blocks = []
    for sensor, columns in enumerate(sensors.columns):
        block = reader.transform(table.take(rows, columns), sensor)
        _check_not_empty(block, sensors, sensor)
        reader.check(block, sensor, rows)
        blocks.append(block)
    widths = tuple(block.shape[1] for block in blocks)
    return SensorReader(sensors, transformers, widths, allow_nan), blocks


def together(
    blocks: Sequence[Array],
    sensors: SensorSet,
    subset: Iterable[str],
    rows: NDArray[np.intp],
) -> Array:
    """Put the readings of a subset side by side, in the declared order, for some rows."""
    chosen = [blocks[sensors.index(name)][rows] for name in sensors.in_order(subset)]
    return np.hstack(chosen) if chosen else np.empty((len(rows), 0))


def _numbers(columns: Any, sensors: SensorSet, sensor: int) -> Array:
    """Bring what a sensor read to a float array."""
    if hasattr(columns, "toarray"):
        columns = columns.toarray()
    try:
        values = np.asarray(columns, dtype=np.float64)
    except (TypeError, ValueError) as error:
        name = sensors.names[sensor]
        raise DataError(
            f"sensor {name!r} reads values that are not numbers ({error}); give it a "
            f"transformer, such as OneHotEncoder()."
        ) from error
    return values.reshape(len(values), -1)


def _check_not_empty(values: Array, sensors: SensorSet, sensor: int) -> None:
    if values.shape[1] and np.isnan(values).all():
        raise DataError(
            f"sensor {sensors.names[sensor]!r} holds nothing but NaN; leave it out, since "
            f"there is nothing to learn from it."
        )


def _of_column(sensors: SensorSet, sensor: int, column: int, width: int) -> str:
    columns = sensors.columns[sensor]
    if width != len(columns):
        return " after its transformer"
    return f", column {sensors.column_names[columns[column]]!r}"
