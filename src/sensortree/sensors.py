"""`Sensor` and `SensorSet`: which columns a sensor reads and what a reading costs.

A `Sensor` is what a user declares; a `SensorSet` is what the declaration means for
one table: names, column positions and prices, checked and in a fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """

    group: str | None = None
    surcharge: float = 0.0
    after: frozenset[str] = frozenset()
    one_of: str | None = None
    varies: bool = False
    price_column: int | None = None


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
    terms : tuple of Terms
        Groups, prerequisites and the like of each sensor; none by default.

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
    terms: tuple[Terms, ...] = ()

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
        if not self.terms:
            object.__setattr__(self, "terms", (Terms(),) * len(self.names))
        self._check_that_columns_belong_to_one_sensor()
        self._check_terms()

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
        for name, terms in zip(self.names, self.terms, strict=True):
            if terms.price_column in owner:
                raise SensorError(
                    f"the price of sensor {name!r} is column "
                    f"{self._column(terms.price_column)}, which sensor "
                    f"{owner[terms.price_column]!r} claims too; a price is known before "
                    f"anything is acquired, so its column belongs to no sensor."
                )
        priced = {terms.price_column for terms in self.terms}
        orphans = [
            c
            for c in range(len(self.column_names))
            if c not in owner and c not in priced
        ]
        if orphans:
            listed = ", ".join(self._column(c) for c in orphans[:5])
            more = f" and {len(orphans) - 5} more" if len(orphans) > 5 else ""
            one = len(orphans) == 1
            said, it = (
                ("column {} belongs", "it") if one else ("columns {} belong", "them")
            )
            raise SensorError(
                f"{said.format(listed + more)} to no sensor; add {it} to a sensor or drop "
                f"{it} from X."
            )

    def _check_terms(self) -> None:
        """Refuse prerequisites that are unknown, circular, or excluded."""
        for name, terms in zip(self.names, self.terms, strict=True):
            for other in sorted(terms.after):
                if other not in self.names:
                    raise SensorError(
                        f"sensor {name!r} comes after {other!r}, which is not a sensor; "
                        f"the sensors are {listed(self.names)}."
                    )
        for name in self.names:
            needed = frozenset().union(
                *(self.closure(other) for other in self._terms(name).after)
            )
            if name in needed:
                raise SensorError(
                    f"sensor {name!r} must come after itself, through "
                    f"{listed(sorted(needed - {name}) or [name])}; remove one 'after'."
                )
            if not self.admissible(self.closure(name)):
                raise SensorError(
                    f"sensor {name!r} can never be acquired: what must come before it "
                    f"includes two sensors of which at most one may be acquired; change "
                    f"its 'after' or a 'one_of'."
                )

    def _column(self, position: int | None) -> str:
        """Name a column in a message."""
        assert position is not None
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
            and self.terms == other.terms
        )

    # Not hashable, since it holds an array; mypy wants __hash__ to be a function.
    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """Position of a sensor in the declared order."""
        if name not in self._positions:
            raise SensorError(
                f"{name!r} is not a sensor; the sensors are {listed(self.names)}."
            )
        return self._positions[name]

    def in_order(self, subset: Iterable[str]) -> tuple[str, ...]:
        """List a subset's names in the declared order."""
        subset = frozenset(subset)
        return tuple(name for name in self.names if name in subset)

    def mask(self, subset: Iterable[str]) -> NDArray[np.bool_]:
        """Mark a subset's members, shape (n_sensors,)."""
        subset = frozenset(subset)
        return np.array([name in subset for name in self.names], dtype=bool)

    def _terms(self, name: str) -> Terms:
        return self.terms[self.index(name)]

    @cached_property
    def has_groups(self) -> bool:
        """Whether some sensor costs less when another is known."""
        return any(terms.surcharge for terms in self.terms)

    @cached_property
    def varying(self) -> NDArray[np.intp]:
        """Positions of the sensors of which every example has a price of its own."""
        return np.flatnonzero([terms.varies for terms in self.terms])

    def with_varying(self, varies: Iterable[Any]) -> SensorSet:
        """Give the same sensors, some of which have a price for every example."""
        terms = tuple(
            replace(t, varies=t.varies or bool(v))
            for t, v in zip(self.terms, varies, strict=True)
        )
        return replace(self, terms=terms)

    def cost_of(
        self,
        subset: Iterable[str],
        known: Iterable[str] = (),
        prices: NDArray[np.float64] | None = None,
    ) -> Any:
        """Price of acquiring all sensors of a subset.

        Parameters
        ----------
        subset : iterable of str
        known : iterable of str, default=()
            What was acquired before: it costs nothing more, and its groups are open.
        prices : ndarray of shape (n_rows, n_sensors), default=None
            Prices of each example instead of `costs`.

        Returns
        -------
        cost : float, or ndarray of shape (n_rows,) if there are `prices`
        """
        known = frozenset(known)
        bought = frozenset(subset) - known
        costs = self.costs if prices is None else prices
        total = costs[..., self.mask(bought)].sum(axis=-1)
        if self.has_groups:
            total = total - self._discount(bought, known)
        return float(total) if prices is None else total

    def _discount(self, bought: frozenset[str], known: frozenset[str]) -> float:
        """Surcharges that are not paid, since they are not the first of their group."""
        saved = 0.0
        groups = {self._terms(name).group for name in known}
        for name in self.purchase_order(bought):
            terms = self._terms(name)
            if terms.group is not None and terms.group in groups:
                saved += terms.surcharge
            groups.add(terms.group)
        return saved

    def purchase_order(self, bought: Iterable[str]) -> tuple[str, ...]:
        """Order in which sensors bought together are acquired.

        What others come after is first; then the one with the least surcharge, so that
        the first of a group is the one that adds least; then the declared order.
        """
        waiting = list(self.in_order(bought))
        waiting.sort(key=lambda name: self._terms(name).surcharge)
        order: list[str] = []
        while waiting:
            free = [n for n in waiting if not (self._terms(n).after & set(waiting))]
            order.append(free[0] if free else waiting[0])
            waiting.remove(order[-1])
        return tuple(order)

    def closure(self, name: str) -> frozenset[str]:
        """A sensor with everything that must be known before it."""
        needed: set[str] = set()
        ahead = [name]
        while ahead:
            one = ahead.pop()
            if one not in needed:
                needed.add(one)
                ahead.extend(self._terms(one).after)
        return frozenset(needed)

    def admissible(self, subset: Iterable[str]) -> bool:
        """Whether a subset may be known: prerequisites within, no two alternatives."""
        subset = frozenset(subset)
        labels = [self._terms(name).one_of for name in subset]
        used = [label for label in labels if label is not None]
        return len(set(used)) == len(used) and all(
            self._terms(name).after <= subset for name in subset
        )

    def extension(self, known: frozenset[str], name: str) -> frozenset[str] | None:
        """What is known after buying one more sensor; None if it may not be bought.

        Its prerequisites are bought with it.
        """
        extended = known | self.closure(name)
        return extended if self.admissible(extended) else None

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


def listed(names: Iterable[str]) -> str:
    """Show some names in a message."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")
