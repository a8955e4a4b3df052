"""What a session is given: values of a sensor, a limit, prices and a key; checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from sensortree.exceptions import DataError, SensorError, SessionError
from sensortree.sensors.market import invalid_prices, price_rule
from sensortree.sensors.sensor import SensorSet, check_cost
from sensortree.text import listed
from sensortree.types import Array

MISSING = float("nan")
KEY_BYTES = 16  # at least

# values of a sensor -----------------------------------------------------------------------


def check_known(known: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is known by sensor; nothing by default."""
    if known is None:
        return {}
    if not isinstance(known, Mapping):
        raise DataError(
            f"what is known must be a mapping of sensors to their values, got "
            f"{type(known).__name__}; write known={{'blood': [4.1, 0.3]}}."
        )
    return dict(known)


def check_names(names: Iterable[str], what: str, sensors: SensorSet) -> tuple[str, ...]:
    """Names of sensors, all of them declared."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise SensorError(
            f"{what} must list names of sensors, got {type(names).__name__}; write "
            f"{what}=[{sensors.names[0]!r}]."
        )
    return tuple(sensors.names[index_of(name, sensors)] for name in names)


def index_of(sensor: object, sensors: SensorSet) -> int:
    """Position of a sensor, by whatever was given as its name."""
    if not isinstance(sensor, str):
        raise SensorError(
            f"a sensor is given by its name, got {type(sensor).__name__}; the sensors are "
            f"{listed(sensors.names)}."
        )
    return sensors.index(sensor)


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
    else:
        ordered = _in_given_order(sensor, values)
    if len(ordered) != len(columns):
        raise DataError(
            f"sensor {sensor!r} was told {len(ordered)} values, but reads "
            f"{len(columns)} columns: {listed(columns)}."
        )
    return tuple(_plain(sensor, value) for value in ordered)


def _in_given_order(sensor: str, values: Any) -> list[Any]:
    """Values as a list; a value that stands alone is a list of one."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 1:
        raise DataError(
            f"sensor {sensor!r} was told a table of shape {shape}; tell the values of one "
            f"example, one for each column."
        )
    if isinstance(values, Set):
        raise DataError(
            f"sensor {sensor!r} was told a set, which has no order; tell a list, or a "
            f"mapping by column name."
        )
    if (
        shape == ()
        or isinstance(values, (str, bytes))
        or not isinstance(values, Iterable)
    ):
        return [values]
    return list(values)


def _plain(sensor: str, value: Any) -> Any:
    """A number as Python's int or float, what is missing as NaN, the rest as it is."""
    if isinstance(value, np.generic) or getattr(value, "shape", None) == ():
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return MISSING
    if isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, (Real, Decimal)):
        try:
            number = float(value)
        except (ArithmeticError, ValueError) as error:
            raise DataError(
                f"sensor {sensor!r} was told a number that is too large; tell one below "
                f"1e308."
            ) from error
        return value if isinstance(value, int) else number
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        raise DataError(
            f"sensor {sensor!r} was told a {type(value).__name__} for one of its columns; "
            f"tell one value for each column."
        )
    return value


def same_values(before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    """Whether values are equal; NaN equals NaN."""
    return all(
        a == b or (a != a and b != b) for a, b in zip(before, after, strict=True)
    )


# money ------------------------------------------------------------------------------------


def check_prices(
    prices: Mapping[str, float | None] | None, sensors: SensorSet
) -> dict[str, float | None]:
    """Prices that were given for one example, by sensor; None is the sensor's own."""
    if prices is None and not sensors.varying.size:
        return {}
    if prices is not None and not isinstance(prices, Mapping):
        raise SensorError(
            f"prices must be a mapping of sensors to prices, got "
            f"{type(prices).__name__}; write prices={{{sensors.names[0]!r}: 12.5}}."
        )
    given: dict[str, float | None] = {}
    for name, price in (prices or {}).items():
        own = price is None or (isinstance(price, Real) and price != price)
        what = f"the price of sensor {sensors.names[index_of(name, sensors)]!r}"
        given[str(name)] = None if own else check_amount(price, what)
    for sensor in map(int, sensors.varying):
        name = sensors.names[sensor]
        by_column = sensors.terms[sensor].price_column is not None
        if name not in given or (by_column and given[name] is None):
            or_own = "" if by_column else " (None for its own price)"
            raise SensorError(
                f"the price of sensor {name!r} differs between examples; give "
                f"prices={{{name!r}: ...}}{or_own}."
            )
    return given


def price_row(given: Mapping[str, float | None], sensors: SensorSet) -> Array | None:
    """Prices of one example, (n_sensors,); None if it has none of its own.

    A price that stands for a column does not include the surcharge, others do.
    """
    if not given:
        return None
    row = sensors.own_costs.copy()
    for name, price in given.items():
        sensor, terms = sensors.index(name), sensors.terms[sensors.index(name)]
        if price is not None:
            fee = terms.surcharge if terms.price_column is not None else 0.0
            row[sensor] = price + fee
    for sensor in np.flatnonzero(invalid_prices(row, sensors)).tolist():
        raise SensorError(
            f"the price of sensor {sensors.names[sensor]!r} is {row[sensor]}; "
            f"{price_rule(sensors, sensor)}."
        )
    return row


def check_amount(amount: Any, what: str) -> float:
    """An amount of money as a float, finite and at least 0."""
    if isinstance(amount, bool) or not isinstance(amount, Real):
        raise SensorError(
            f"{what} must be a number, got {type(amount).__name__}; write it as 12.5."
        )
    try:
        number = float(amount)
    except OverflowError:
        number = math.inf
    check_cost(number, what)
    return number


# its key ----------------------------------------------------------------------------------


def check_key(key: bytes | str | None) -> bytes | None:
    """A key as bytes, long enough; None for none."""
    if key is None:
        return None
    if not isinstance(key, (bytes, str)):
        raise SessionError(
            f"the key of a session must be bytes or text, got {type(key).__name__}; make "
            f"one with secrets.token_bytes(32)."
        )
    found = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
    if len(found) < KEY_BYTES:
        raise SessionError(
            f"the key of a session must have at least {KEY_BYTES} bytes, got "
            f"{len(found)}; make one with secrets.token_bytes(32)."
        )
    return found
