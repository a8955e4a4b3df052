"""`TrainingReader`: checks X, y and weights against the sensors, once and for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    column_or_1d,
    validate_data,
)

from sensortree.exceptions import DataError
from sensortree.leaves.compiling import compile_transformer
from sensortree.leaves.fitting import accepts_nan, resolve_classifier
from sensortree.leaves.rows import TrainingRows, assign_folds, folds_of_splits
from sensortree.sensors.declaration import resolve_sensors
from sensortree.sensors.loss import resolve_loss
from sensortree.sensors.reader import check_price_array, fit_reader, read_prices
from sensortree.sensors.sensor import Sensor
from sensortree.sensors.sensor_set import SensorSet
from sensortree.sensors.table import Table


class TrainingReader:
    """Methods that turn what `fit` is given into `TrainingRows`."""

    sensors: Any
    costs: Any
    classifier: Any
    cv: Any
    loss: Any

    def _read(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        prices: ArrayLike | None,
    ) -> TrainingRows:
        """Validate the data once and for all, and read every sensor."""
        table, sensors, transformers = self._resolve(X)
        target = self._check_target(y, table)
        weight = _check_sample_weight(
            sample_weight, table.data, dtype=np.float64, ensure_non_negative=True
        )
        rows = np.flatnonzero(weight > 0)
        y, weight = target[rows], weight[rows]
        classes, codes = _encode(y)
        loss = resolve_loss(self.loss, classes)
        weighted = sample_weight is not None
        sensors, paid = _with_prices(sensors, table, prices, rows, weight)
        reader, blocks = fit_reader(
            sensors,
            {name: clone(transformer) for name, transformer in transformers.items()},
            table,
            rows,
            y,
            weight if weighted else None,
            accepts_nan(resolve_classifier(self.classifier)),
        )
        plain = {n: compile_transformer(t) for n, t in reader.transformers.items()}
        reader = replace(reader, transformers=plain)
        fold = self._split(table, target, rows)
        own = np.empty((len(rows), 0)) if paid is None else paid[:, sensors.varying]
        values = np.hstack([*blocks, own, codes[:, None], fold[:, None]])
        order = np.lexsort([weight, *values.T[::-1]])  # the last key counts most
        blocks = [block[order] for block in blocks]
        codes, fold = codes[order], fold[order]
        if isinstance(self.cv, Integral):
            fold = assign_folds(np.hstack(blocks), codes, int(self.cv), classes)
        return TrainingRows(
            reader,
            blocks,
            codes,
            classes,
            weight[order],
            weighted,
            fold,
            None if paid is None else paid[order],
            loss,
            rows[order],
        )

    def _split(
        self, table: Table, y: NDArray[Any], rows: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Fold of each row by the user's splitter; -1 where there is none."""
        if self.cv is None or isinstance(self.cv, Integral):
            return np.full(len(rows), -1)
        splits = check_cv(self.cv, y, classifier=True).split(table.data, y)
        return folds_of_splits(splits, len(y))[rows]

    def _check_target(self, y: Any, table: Table) -> NDArray[Any]:
        """Give y as one class per row."""
        if y is None:
            raise DataError(
                f"requires y to be passed, but the target y is None; "
                f"{type(self).__name__} learns from labelled data."
            )
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_consistent_length(table.data, y)
        check_classification_targets(y)
        return np.asarray(y)

    def _resolve(self, X: Any) -> tuple[Table, SensorSet, dict[str, Any]]:
        """Check X and the declaration of sensors against each other."""
        declared = self.sensors.values() if isinstance(self.sensors, Mapping) else ()
        own_types = any(
            isinstance(s, Sensor) and s.transformer is not None for s in declared
        )
        if own_types and Table.holds(X):
            validate_data(self, X, skip_check_array=True)
            table = Table(X)
            if 0 in table.shape:
                raise DataError(
                    f"X has {table.shape[0]} rows and {table.shape[1]} columns; give at "
                    f"least one of each."
                )
            return table, *resolve_sensors(self.sensors, self.costs, table)
        named = Table(X) if Table.holds(X) and Table(X).is_frame else None
        if named is not None:
            sensors, transformers = resolve_sensors(self.sensors, self.costs, named)
            _check_numeric(named, sensors)
        array = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        table = Table(array)
        if named is None:
            sensors, transformers = resolve_sensors(self.sensors, self.costs, table)
        return table, sensors, transformers


def _with_prices(
    sensors: SensorSet,
    table: Table,
    prices: ArrayLike | None,
    rows: NDArray[np.intp],
    weight: NDArray[np.float64],
) -> tuple[SensorSet, NDArray[np.float64] | None]:
    """Prices of each row, if they differ; a sensor's own cost is then their mean."""
    if prices is not None:
        given = check_price_array(prices, table.shape[0], sensors)
        sensors = sensors.with_varying(np.logical_not(np.isnan(given).all(axis=0)))
        table = Table(table.data, given)
    paid = read_prices(table, sensors)
    if paid is None:
        return sensors, None
    paid = paid[rows]
    mean = np.average(paid, axis=0, weights=weight)
    costs = np.where([t.varies for t in sensors.terms], mean, sensors.costs)
    return replace(sensors, costs=costs), paid


def _encode(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Give the classes, and y as positions among them."""
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"y has one class only, {classes.tolist()[0]!r}; a classifier needs rows of "
            f"at least two classes (with a weight above 0)."
        )
    return classes, codes


def _check_numeric(table: Table, sensors: SensorSet) -> None:
    """Refuse text in a frame's column whose sensor has no transformer, by name."""
    frame = nw.from_native(table.data, eager_only=True)
    for name, columns in zip(sensors.names, sensors.columns, strict=True):
        for column in columns:
            dtype = frame[:, column].dtype
            if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object, nw.Unknown)):
                raise DataError(
                    f"column {sensors.column_names[column]!r} of sensor {name!r} holds "
                    f"{dtype} rather than numbers; give the sensor a transformer: "
                    f"Sensor([...], transformer=OneHotEncoder())."
                )
