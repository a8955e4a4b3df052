"""What a session is told: values of a sensor, a limit, prices; checked and put in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sensortree.exceptions import DataError, SensorError
from sensortree.sensors.sensor import check_cost
from sensortree.sensors.sensor_set import SensorSet
from sensortree.text import listed
from sensortree.types import Array


def in_column_order(
    sensor: str, columns: tuple[str, ...], values: Any
) -> tuple[Any, ...]:
    """Values of a sensor's columns, from a mapping or a sequence; None is NaN."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == float:
        if len(values) == len(columns):
            return tuple(values.tolist())
        ordered = values.tolist()
    elif isinstance(values, Mapping):
        unknown = [name for name in values if name not in columns]
        lacking = [name for name in columns if name not in values]
        if unknown or lacking:
            wrong = (
                f"column {unknown[0]!r}, which it does not read"
                if unknown
                else f"nothing for column {lacking[0]!r}"
            )
            raise DataError(
                f"sensor {sensor!r} was told {wrong}; its columns are {listed(columns)}."
            )
        ordered = [values[name] for name in columns]
    elif isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        ordered = [values]
    else:
        ordered = list(values)
    if len(ordered) != len(columns):
        raise DataError(
            f"sensor {sensor!r} was told {len(ordered)} values, but reads "
            f"{len(columns)} columns: {listed(columns)}."
        )
    return tuple(_plain(value) for value in ordered)


def _plain(value: Any) -> Any:
    """A NumPy scalar as Python's; None as NaN."""
    if value is None:
        return float("nan")
    return value.item() if isinstance(value, np.generic) else value


def same_values(before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    """Whether values are equal; NaN equals NaN."""
    return all(
        a == b or (a != a and b != b) for a, b in zip(before, after, strict=True)
    )


def check_limit(limit: float | None, max_cost: float | None) -> float | None:
    """The most that may be spent: the session's limit or the policy's; None for neither."""
    if limit is not None:
        check_cost(limit, "the limit of a session")
    limits = [float(value) for value in (limit, max_cost) if value is not None]
    return min(limits) if limits else None


def check_prices(
    prices: Mapping[str, float] | None, sensors: SensorSet
) -> Array | None:
    """Prices of one example, (n_sensors,); None where all examples pay the same."""
    varying = [sensors.names[j] for j in sensors.varying]
    given = dict(prices or {})
    for name in given:
        if name not in varying:
            raise SensorError(
                f"prices names {name!r}, whose price is the same for every example; give "
                f"prices of {listed(varying) or 'no sensor'}."
            )
    lacking = [name for name in varying if name not in given]
    if lacking:
        raise SensorError(
            f"the price of sensor {lacking[0]!r} differs between examples; give "
            f"prices={{{lacking[0]!r}: ...}}."
        )
    if not varying:
        return None
    row = sensors.costs.copy()
    for name, price in given.items():
        check_cost(price, f"the price of sensor {name!r}")
        index = sensors.index(name)
        from_column = sensors.terms[index].price_column is not None
        row[index] = price + (sensors.terms[index].surcharge if from_column else 0.0)
    return row
