"""From what a user declares to the sensors of one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from sensortree.exceptions import SensorError
from sensortree.sensors.sensor import Sensor, Terms, check_cost
from sensortree.sensors.sensor_set import SensorSet, default_names
from sensortree.sensors.table import Table
from sensortree.text import listed


def resolve_sensors(
    sensors: Mapping[str, Any] | None, costs: Mapping[str, float] | None, table: Table
) -> tuple[SensorSet, dict[str, Any]]:
    """Say what a declaration means for a table.

    Parameters
    ----------
    sensors : mapping of name to `Sensor` or columns, or None
        None makes every column a sensor of its own.
    costs : mapping of name to float, or None
        Prices of sensors that were declared by their columns alone; 1.0 if not listed.
    table : Table

    Returns
    -------
    sensor_set : SensorSet
    transformers : dict of name to transformer
        Those that were declared, not yet fitted.
    """
    _, n_columns = table.shape
    column_names = table.column_names or default_names(n_columns)
    declared = _declare(sensors, costs, column_names)
    resolve = _ColumnResolver(table, column_names)
    columns = {name: resolve(name, sensor.columns) for name, sensor in declared.items()}
    sensor_set = SensorSet(
        tuple(declared),
        tuple(columns.values()),
        np.array([_list_price(sensor) for sensor in declared.values()]),
        column_names,
        tuple(_terms(name, sensor, resolve) for name, sensor in declared.items()),
    )
    transformers = {
        name: sensor.transformer
        for name, sensor in declared.items()
        if sensor.transformer is not None
    }
    return sensor_set, transformers


def _list_price(sensor: Sensor) -> float:
    """Price of the first of its group; 0 for now where every example has its own."""
    if isinstance(sensor.cost, str):
        return sensor.surcharge
    return float(sensor.cost) + float(sensor.fee or 0.0)


def _terms(name: str, sensor: Sensor, resolve: _ColumnResolver) -> Terms:
    varies = isinstance(sensor.cost, str)
    return Terms(
        sensor.group,
        sensor.surcharge,
        frozenset(sensor.after),
        sensor.one_of,
        varies,
        resolve.price(name, str(sensor.cost)) if varies else None,
    )


def _declare(
    sensors: Mapping[str, Any] | None,
    costs: Mapping[str, float] | None,
    column_names: tuple[str, ...],
) -> dict[str, Sensor]:
    """Bring every accepted form of declaration to name -> `Sensor`."""
    if sensors is None:
        sensors = {name: [i] for i, name in enumerate(column_names)}
    if not isinstance(sensors, Mapping):
        raise SensorError(
            f"sensors must be a mapping of names to columns or Sensor objects, or None, "
            f"got {type(sensors).__name__}; write {{'blood': ['wbc', 'crp']}}."
        )
    if costs is not None and not isinstance(costs, Mapping):
        raise SensorError(
            f"costs must be a mapping of sensor names to prices, or None, got "
            f"{type(costs).__name__}; write {{'blood': 12.0}}."
        )
    prices = dict(costs or {})
    for name in prices:
        if name not in sensors:
            raise SensorError(
                f"costs names {name!r}, which is not a sensor; the sensors are "
                f"{listed(sensors)}."
            )
    declared = {}
    for name, value in sensors.items():
        if not isinstance(name, str) or not name:
            raise SensorError(
                f"a sensor's name must be a non-empty string, got {name!r}."
            )
        if isinstance(value, Sensor):
            if name in prices:
                raise SensorError(
                    f"sensor {name!r} is priced twice, by Sensor(cost={value.cost!r}) "
                    f"and by costs; keep one of them."
                )
            declared[name] = value
        else:
            price = prices.get(name, 1.0)
            if not isinstance(price, str):
                check_cost(price, f"the cost of sensor {name!r}")
            declared[name] = Sensor(value, price)
    return declared


@dataclass(frozen=True, eq=False)
class _ColumnResolver:
    """Turns any accepted way of naming columns into their positions."""

    table: Table
    column_names: tuple[str, ...]

    def __call__(self, sensor: str, columns: Any) -> tuple[int, ...]:
        columns = self._ask(columns)
        if isinstance(columns, slice):
            columns = self._from_slice(sensor, columns)
        elif isinstance(columns, (str, Integral)):
            columns = [columns]
        elif not isinstance(columns, Iterable):
            raise SensorError(
                f"the columns of sensor {sensor!r} must be names, positions, a slice, a "
                f"mask, a callable or a selector, got {columns!r}."
            )
        listed = list(columns)
        if listed and all(isinstance(c, (bool, np.bool_)) for c in listed):
            return self._from_mask(sensor, listed)
        return tuple(self._position(sensor, column) for column in listed)

    def price(self, sensor: str, column: str) -> int:
        """Position of the column that holds a sensor's prices."""
        if column not in self.column_names:
            raise SensorError(
                f"the price of sensor {sensor!r} is column {column!r}, which X does not "
                f"have; its columns are {listed(self.column_names)}. A price is a number "
                f"or the name of a column."
            )
        return self.column_names.index(column)

    def _ask(self, columns: Any) -> Any:
        """Let selectors and callables name columns for themselves."""
        package = type(columns).__module__.partition(".")[0]
        if package == "narwhals":
            import narwhals as nw

            return nw.from_native(self.table.data).select(columns).columns
        if package == "polars" and hasattr(columns, "meta"):
            return self.table.data.select(columns).columns
        expand: Callable[[Any], Any] | None = getattr(columns, "expand", None)
        if callable(expand):
            return expand(self.table.data)
        return columns(self.table.data) if callable(columns) else columns

    def _from_slice(self, sensor: str, columns: slice) -> Iterable[int]:
        """Read a slice of positions, or of names with the last one included."""
        if not isinstance(columns.start, str) and not isinstance(columns.stop, str):
            return range(*columns.indices(len(self.column_names)))
        start = 0 if columns.start is None else self._position(sensor, columns.start)
        last = -1 if columns.stop is None else columns.stop
        return range(start, self._position(sensor, last) + 1, columns.step or 1)

    def _from_mask(self, sensor: str, mask: list[bool]) -> tuple[int, ...]:
        if len(mask) != len(self.column_names):
            raise SensorError(
                f"the mask of sensor {sensor!r} has {len(mask)} entries but X has "
                f"{len(self.column_names)} columns; give one entry per column."
            )
        return tuple(int(i) for i in np.flatnonzero(mask))

    def _position(self, sensor: str, column: Any) -> int:
        n_columns = len(self.column_names)
        if isinstance(column, str):
            if column not in self.column_names:
                raise SensorError(
                    f"sensor {sensor!r} names column {column!r}, which X does not have; "
                    f"its columns are {listed(self.column_names)}."
                )
            return self.column_names.index(column)
        if isinstance(column, Integral) and not isinstance(column, bool):
            position = int(column)
            if not -n_columns <= position < n_columns:
                raise SensorError(
                    f"sensor {sensor!r} names column {column}, but X has columns 0 to "
                    f"{n_columns - 1}."
                )
            return position % n_columns
        raise SensorError(
            f"sensor {sensor!r} names column {column!r}; a column is a name or a "
            f"position."
        )
