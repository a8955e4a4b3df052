"""`Sensor` and `SensorSet`: which columns a sensor reads and what a reading costs.

A `Sensor` is what a user declares; a `SensorSet` is what the declaration means for
one table: names, column positions and prices, checked and in a fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import SensorError
from sensortree.table import Table


@dataclass(frozen=True)
class Sensor:
    """Columns that are bought together at one price.

    Parameters
    ----------
    columns : str, int, slice, list, boolean mask, callable or selector
        The columns this sensor reads: by name, by position, by slice of either, by a
        callable that is given the table and returns one of these, or by a selector
        (scikit-learn's ``make_column_selector``, polars, narwhals, skrub).
    cost : float, default=1.0
        Price of one reading (c_m in the paper), in any unit; finite, at least 0.
    transformer : scikit-learn transformer, default=None
        Turns this sensor's columns into numbers. It never sees another sensor's
        columns, and at prediction it runs only on rows that acquired the sensor.

    Examples
    --------
    >>> from sensortree import Sensor
    >>> Sensor(["wbc", "crp"], cost=12.0)
    Sensor(columns=['wbc', 'crp'], cost=12.0, transformer=None)
    """

    columns: Any
    cost: float = 1.0
    transformer: Any = None

    def __post_init__(self) -> None:
        check_cost(self.cost, "a sensor's cost")
        if self.transformer is not None and not hasattr(self.transformer, "transform"):
            raise SensorError(
                f"a sensor's transformer must have a 'transform' method, got "
                f"{self.transformer!r}; give a scikit-learn transformer or None."
            )


@dataclass(frozen=True, eq=False)
class SensorSet:
    """The sensors of one table, in their declared order.

    Parameters
    ----------
    names : tuple of str
    columns : tuple of tuples of int
        Column positions of each sensor.
    costs : array-like of shape (n_sensors,)
        Price of each sensor (c_m in the paper).
    column_names : tuple of str
        Name of every column of the table, for messages and reports.

    Examples
    --------
    >>> from sensortree import SensorSet
    >>> tests = SensorSet(("vitals", "xray"), ((0, 1), (2,)), (0.0, 45.0))
    >>> tests.cost_of({"vitals", "xray"})
    45.0
    >>> tests.in_order({"xray", "vitals"})
    ('vitals', 'xray')
    """

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    costs: NDArray[np.float64]
    column_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.names:
            raise SensorError("there are no sensors; declare at least one.")
        if not len(self.names) == len(self.columns) == len(self.costs):
            raise SensorError(
                f"{len(self.names)} names, {len(self.columns)} column lists and "
                f"{len(self.costs)} costs were given; each sensor needs one of each."
            )
        for name, cost in zip(self.names, self.costs, strict=True):
            check_cost(cost, f"the cost of sensor {name!r}")
        costs = np.array(self.costs, dtype=np.float64)
        costs.flags.writeable = False
        object.__setattr__(self, "costs", costs)
        if not self.column_names:
            width = 1 + max((c for cs in self.columns for c in cs), default=-1)
            object.__setattr__(self, "column_names", default_names(width))
        self._check_that_columns_belong_to_one_sensor()

    def _check_that_columns_belong_to_one_sensor(self) -> None:
        owner: dict[int, str] = {}
        for name, columns in zip(self.names, self.columns, strict=True):
            if not columns:
                raise SensorError(
                    f"sensor {name!r} has no columns; name at least one, or remove the "
                    f"sensor."
                )
            for column in columns:
                if owner.get(column) == name:
                    raise SensorError(
                        f"sensor {name!r} lists column {self._column(column)} twice; "
                        f"list each column once."
                    )
                if column in owner:
                    raise SensorError(
                        f"sensors {owner[column]!r} and {name!r} both claim column "
                        f"{self._column(column)}; each column belongs to one sensor."
                    )
                owner[column] = name
        orphans = [c for c in range(len(self.column_names)) if c not in owner]
        if orphans:
            listed = ", ".join(self._column(c) for c in orphans[:5])
            more = f" and {len(orphans) - 5} more" if len(orphans) > 5 else ""
            raise SensorError(
                f"column {listed}{more} belongs to no sensor; add it to a sensor or "
                f"drop it from X."
            )

    def _column(self, position: int) -> str:
        """Name a column in a message."""
        return repr(self.column_names[position])

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SensorSet):
            return NotImplemented
        return (
            self.names == other.names
            and self.columns == other.columns
            and self.column_names == other.column_names
            and bool(np.array_equal(self.costs, other.costs))
        )

    # Not hashable, since it holds an array; mypy wants __hash__ to be a function.
    __hash__ = None  # type: ignore[assignment]

    def index(self, name: str) -> int:
        """Position of a sensor in the declared order."""
        return self.names.index(name)

    def in_order(self, subset: Iterable[str]) -> tuple[str, ...]:
        """List a subset's names in the declared order."""
        subset = frozenset(subset)
        return tuple(name for name in self.names if name in subset)

    def mask(self, subset: Iterable[str]) -> NDArray[np.bool_]:
        """Mark a subset's members, shape (n_sensors,)."""
        subset = frozenset(subset)
        return np.array([name in subset for name in self.names], dtype=bool)

    def cost_of(self, subset: Iterable[str]) -> float:
        """Price of acquiring all sensors of a subset."""
        return float(self.costs[self.mask(subset)].sum())

    def cheapest_first(self) -> tuple[str, ...]:
        """List all names by increasing cost, ties to the lowest index."""
        return tuple(self.names[i] for i in np.argsort(self.costs, kind="stable"))


def check_cost(cost: object, what: str) -> None:
    """Raise `SensorError` unless `cost` is a finite number that is at least 0."""
    if isinstance(cost, bool) or not isinstance(cost, Real):
        raise SensorError(f"{what} must be a number, got {cost!r}; write it as 12.5.")
    if not math.isfinite(cost) or cost < 0:
        raise SensorError(
            f"{what} must be finite and at least 0, got {cost!r}; a sensor that is free "
            f"costs 0, one that must never be bought is left out."
        )


def default_names(n_columns: int) -> tuple[str, ...]:
    """Name the columns of an array as scikit-learn does: x0, x1, ..."""
    return tuple(f"x{column}" for column in range(n_columns))


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
    sensor_set = SensorSet(
        tuple(declared),
        tuple(resolve(name, sensor.columns) for name, sensor in declared.items()),
        np.array([sensor.cost for sensor in declared.values()], dtype=np.float64),
        column_names,
    )
    transformers = {
        name: sensor.transformer
        for name, sensor in declared.items()
        if sensor.transformer is not None
    }
    return sensor_set, transformers


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
                f"{_listed(sensors)}."
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
            check_cost(prices.get(name, 1.0), f"the cost of sensor {name!r}")
            declared[name] = Sensor(value, prices.get(name, 1.0))
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
                    f"its columns are {_listed(self.column_names)}."
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


def _listed(names: Iterable[str]) -> str:
    """Show some names in a message."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")
