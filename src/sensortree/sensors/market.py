"""`Market`: which sensors can be bought next, and at what price; prices of each row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sensortree.exceptions import DataError
from sensortree.sensors.sensor import SensorSet
from sensortree.sensors.table import Table, cost_column
from sensortree.types import Array, Mask

# What is added up in another order, or in binary numbers, differs in the last digits.
ROUNDING = 1e-12


def within(cost: Any, cap: float) -> Any:
    """Whether a cost, or each of an array, is no more than may be spent.

    Money that adds up to the cap on paper is within it: .1 and .2 are within .3.
    """
    return cost <= cap * (1 + ROUNDING)


def on_paper(amount: float) -> float:
    """An amount of money to fifteen digits, so that 0.1 and 0.2 add up to 0.3."""
    return float(f"{amount:.15g}")


@dataclass(frozen=True, eq=False)
class Market:
    """Which sensors can be bought next, and at what price."""

    sensors: SensorSet
    # (n_rows, n_sensors): of each example, where some have prices of their own.
    prices: Array | None = None
    max_cost: float | None = None  # no example may spend more
    weight: Array | None = None  # how often each example counts in a mean
    # Only what lies within one of these may be known together; None for anything.
    reach: tuple[frozenset[str], ...] | None = None

    @cached_property
    def unbound(self) -> bool:
        """Whether any sensors may be bought, one after another and all together."""
        bound = any(terms.after or terms.one_of for terms in self.sensors.terms)
        return self.max_cost is None and self.reach is None and not bound

    def cost(self, subset: Iterable[str], known: Iterable[str] = ()) -> Any:
        """Price of a subset: a number, or one for each example."""
        return self.sensors.cost_of(subset, known, self.prices)

    def mean_cost(self, subset: Iterable[str], known: Iterable[str] = ()) -> float:
        """Mean price of a subset."""
        cost = self.cost(subset, known)
        weight = self.weight if np.ndim(cost) else None
        return float(np.average(cost, weights=weight))

    def extension(self, known: frozenset[str], name: str) -> frozenset[str] | None:
        """What is known after buying one more; None if no example may, or can afford it."""
        extended = self.sensors.extension(known, name)
        return extended if extended is not None and self.allows(extended) else None

    def allows(self, subset: frozenset[str]) -> bool:
        """Whether some example may know this and can afford it."""
        if not self.sensors.admissible(subset) or not self.reaches(subset):
            return False
        return bool(np.any(self.affordable(self.cost(subset))))

    def reaches(self, subset: frozenset[str]) -> bool:
        """Whether anything can be learned about a subset."""
        return self.reach is None or any(subset <= within for within in self.reach)

    def free(self) -> frozenset[str]:
        """Sensors that cost nothing, with all that must come before them."""
        known: frozenset[str] = frozenset()
        for name in self.sensors.names:
            extended = self.sensors.extension(known, name)
            if extended is not None and not np.any(self.cost(extended)):
                known = extended
        return known

    def discounted(self) -> Array:
        """Price of each sensor with all discounts: (n_sensors,), or for each row."""
        prices = self.sensors.costs if self.prices is None else self.prices
        surcharges = [terms.surcharge for terms in self.sensors.terms]
        return np.asarray(prices - np.array(surcharges), dtype=np.float64)

    def least_price(self) -> float:
        """Lowest price, with all discounts, of a sensor that is not free."""
        free = self.free()
        paid = [name not in free for name in self.sensors.names]
        return float(np.min(self.discounted()[..., paid], initial=np.inf))

    def next_ones(self, known: frozenset[str]) -> list[str]:
        """Sensors that may be bought next, their prerequisites known, as declared."""
        return [
            name
            for name in self.sensors.names
            if name not in known
            and self.sensors.closure(name) <= known | {name}
            and self.allows(known | {name})
        ]

    def affordable(self, costs: Array) -> Mask:
        """Which costs are within the cap."""
        if self.max_cost is None:
            return np.ones(np.shape(costs), dtype=bool)
        return np.asarray(within(np.asarray(costs), self.max_cost))


def invalid_prices(prices: Array, sensors: SensorSet) -> Mask:
    """Which prices are invalid, (..., n_sensors).

    A price is finite, and at least the surcharge that the second of a group does not pay.
    NaN is valid: it stands for the sensor's own price.
    """
    least = np.array([terms.surcharge for terms in sensors.terms])
    return np.asarray(np.isinf(prices) | (prices < least))


def price_rule(sensors: SensorSet, sensor: int) -> str:
    """The rule for the price of a sensor, in words."""
    least = sensors.terms[sensor].surcharge
    return (
        f"a price is finite and at least {least:g}{', its surcharge' if least else ''}"
    )


def read_prices(table: Table, sensors: SensorSet) -> Array | None:
    """Prices of each row, (n_rows, n_sensors); None if all pay the same.

    They stand in price columns, or come with the table. What comes with it counts, even if
    the sensor had a fixed price in training; NaN stands for the sensor's own price.
    """
    given = table.prices
    if not sensors.varying.size and (given is None or np.isnan(given).all()):
        return None
    prices = np.tile(sensors.own_costs, (table.shape[0], 1))
    if given is not None:
        prices = np.where(np.isnan(given), prices, given)
    for sensor in map(int, sensors.varying):
        terms = sensors.terms[sensor]
        if terms.price_column is not None:
            name = sensors.names[sensor]
            column = f"column {sensors.column_names[terms.price_column]!r}"
            if given is not None and not np.isnan(given[:, sensor]).all():
                row = int(np.argmin(np.isnan(given[:, sensor])))
                raise DataError(
                    f"prices gives {given[row, sensor]:g} in row {row} for sensor "
                    f"{name!r}, whose price is {column} of X; leave NaN there."
                )
            what = f"{column}, the price of sensor {name!r},"
            own = cost_column(table, terms.price_column, what)
            prices[:, sensor] = own + terms.surcharge
        elif given is None:
            raise DataError(
                f"the price of sensor {sensors.names[sensor]!r} is different for every "
                f"example; give prices=, an array of shape (n_samples, {len(sensors)})."
            )
    return prices


def priced(table: Table, prices: Any, sensors: SensorSet) -> Table:
    """A table with the prices of each row that were given beside it, if any, checked."""
    if prices is None:
        return table
    own = check_price_array(prices, table.shape[0], sensors)
    return replace(table, prices=own)


def check_price_array(prices: Any, n_rows: int, sensors: SensorSet) -> Array:
    """Prices that were given beside X, (n_rows, n_sensors); NaN for a sensor's own."""
    try:
        values = np.asarray(prices, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"prices must be an array of numbers ({error}).") from error
    if values.shape != (n_rows, len(sensors)):
        raise DataError(
            f"prices has shape {values.shape}, expected ({n_rows}, {len(sensors)}): one "
            f"row per example, one column per sensor in the order "
            f"{', '.join(sensors.names[:5])}{', ...' if len(sensors) > 5 else ''}."
        )
    bad = np.argwhere(invalid_prices(values, sensors))
    if bad.size:
        row, sensor = bad[0]
        raise DataError(
            f"the price of sensor {sensors.names[sensor]!r} in row {row} of prices is "
            f"{values[row, sensor]}; {price_rule(sensors, sensor)}."
        )
    return values
