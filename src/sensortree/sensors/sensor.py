"""`Sensor`: columns that are bought together, and the terms they are sold on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any

from sensortree.exceptions import SensorError


@dataclass(frozen=True)
class Sensor:
    """Columns that are bought together at one price.

    Parameters
    ----------
    columns : str, int, slice, list, boolean mask, callable or selector
        The columns this sensor reads: by name, by position, by slice of either, by a
        callable that is given the table and returns one of these, or by a selector
        (scikit-learn's ``make_column_selector``, polars, narwhals, skrub).
    cost : float or str, default=1.0
        Price of one reading (c_m in the paper), in any unit; finite, at least 0. A string
        names the column of X that holds the price of each example; that column belongs
        to no sensor, is known from the start, and decisions may look at it.
    transformer : scikit-learn transformer, default=None
        Turns this sensor's columns into numbers. It never sees another sensor's
        columns, and at prediction it runs only on rows that acquired the sensor.
    group : str, default=None
        Sensors of one group share what has to be paid once: blood is drawn once.
    discounted_cost : float, default=None
        Price when another sensor of the group has been acquired before; `cost` is then
        the price of the first.
    fee : float, default=None
        The other way to say it: paid once, on top of `cost`, by the first sensor of the
        group.
    after : iterable of str, default=()
        Sensors that must be known before this one may be acquired.
    one_of : str, default=None
        At most one of the sensors that carry the same label is acquired.

    Examples
    --------
    >>> from sensortree import Sensor
    >>> Sensor(["wbc", "crp"], cost=12.0)
    Sensor(columns=['wbc', 'crp'], cost=12.0)
    >>> Sensor("glucose", cost=17.61, discounted_cost=15.51, group="blood").surcharge
    2.1
    >>> Sensor("glucose", cost=15.51, fee=2.10, group="blood").surcharge
    2.1
    """

    columns: Any
    cost: float | str = 1.0
    transformer: Any = None
    group: str | None = None
    discounted_cost: float | None = None
    fee: float | None = None
    after: Any = ()
    one_of: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.cost, str):
            check_cost(self.cost, "a sensor's cost")
        if self.transformer is not None and not hasattr(self.transformer, "transform"):
            raise SensorError(
                f"a sensor's transformer must have a 'transform' method, got "
                f"{self.transformer!r}; give a scikit-learn transformer or None."
            )
        for field_name in ("group", "one_of"):
            label = getattr(self, field_name)
            if label is not None and (not isinstance(label, str) or not label):
                raise SensorError(
                    f"a sensor's {field_name} must be a non-empty string or None, got "
                    f"{label!r}."
                )
        names = self.after
        if isinstance(names, (str, Mapping)) or not isinstance(names, Iterable):
            raise SensorError(
                f"a sensor's 'after' must list names of sensors, got {names!r}; write "
                f"after=['blood']."
            )
        self._check_group_price()

    def _check_group_price(self) -> None:
        if self.discounted_cost is None and self.fee is None:
            return
        if self.discounted_cost is not None and self.fee is not None:
            raise SensorError(
                "a sensor has both discounted_cost and fee; give the price of the first "
                "and the discounted one, or the price and the fee."
            )
        if self.group is None:
            what = "fee" if self.discounted_cost is None else "discounted_cost"
            raise SensorError(
                f"a sensor has a {what} but no group; name the group that shares it."
            )
        if self.fee is not None:
            check_cost(self.fee, "a sensor's fee")
            return
        check_cost(self.discounted_cost, "a sensor's discounted_cost")
        if isinstance(self.cost, str):
            raise SensorError(
                "a sensor whose price is a column cannot have a discounted_cost; give "
                "what is paid once as its fee."
            )
        assert self.discounted_cost is not None
        if self.discounted_cost > self.cost:
            raise SensorError(
                f"a sensor's discounted_cost {self.discounted_cost!r} is above its cost "
                f"{self.cost!r}; the first of a group pays the full cost."
            )

    @property
    def surcharge(self) -> float:
        """The part of the price that only the first of its group costs."""
        if self.discounted_cost is not None:
            # Prices are decimal numbers: 17.61 - 15.51 is meant to be 2.1.
            return round(float(self.cost) - self.discounted_cost, 12)
        return float(self.fee or 0.0)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if f.name in ("columns", "cost") or getattr(self, f.name) != f.default
        )
        return f"Sensor({shown})"


@dataclass(frozen=True)
class Terms:
    """On which terms a sensor is sold, besides its price.

    Attributes
    ----------
    group : str or None
    surcharge : float
        The part of the price that only the first of its group costs.
    after : frozenset of str
        Sensors that must be known before.
    one_of : str or None
        At most one sensor with the same label is acquired.
    varies : bool
        Whether every example has a price of its own.
    price_column : int or None
        Column of the table that holds it.
    own_price : float or None
        The price that was declared, where examples may have one of their own and `cost`
        is the mean of what was paid in training; None where they are the same.
    """

    group: str | None = None
    surcharge: float = 0.0
    after: frozenset[str] = frozenset()
    one_of: str | None = None
    varies: bool = False
    price_column: int | None = None
    own_price: float | None = field(default=None, metadata={"digest": "if set"})


def check_cost(cost: object, what: str) -> None:
    """Raise `SensorError` unless `cost` is a finite number that is at least 0."""
    if isinstance(cost, bool) or not isinstance(cost, Real):
        raise SensorError(f"{what} must be a number, got {cost!r}; write it as 12.5.")
    if not _is_finite(cost) or cost < 0:
        raise SensorError(
            f"{what} must be finite and at least 0, got {cost!r}; a sensor that is free "
            f"costs 0, one that must never be bought is left out."
        )


def _is_finite(number: Real) -> bool:
    """Whether a number is finite, and no integer beyond all that can be reckoned with."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False
