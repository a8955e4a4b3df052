"""`Sensor` and `SensorSet`: what can be bought, at what price and on which terms.

`resolve_sensors` turns your declaration into the sensors of one table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np

from sensortree.exceptions import SensorError
from sensortree.sensors.table import Table
from sensortree.text import listed
from sensortree.types import Array, Mask, Rows


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
    """The terms on which a sensor is sold, besides its price.

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
    try:
        value = float(cost)
    except OverflowError:  # an integer beyond all that can be reckoned with
        value = math.inf
    if not 0 <= value < math.inf:
        raise SensorError(
            f"{what} must be finite and at least 0, got {cost!r}; a sensor that is free "
            f"costs 0, one that must never be bought is left out."
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
    costs: Array
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
        _check_that_columns_belong_to_one_sensor(self)
        _check_terms(self)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SensorSet):
            return NotImplemented
        mine = self.names, self.columns, self.column_names, self.terms
        theirs = other.names, other.columns, other.column_names, other.terms
        return mine == theirs and np.array_equal(self.costs, other.costs)

    # Not hashable, since it holds an array.
    __hash__ = None  # type: ignore[assignment]  # mypy wants a function

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

    def mask(self, subset: Iterable[str]) -> Mask:
        """Mark a subset's members, shape (n_sensors,)."""
        marked = np.zeros(len(self.names), dtype=bool)
        marked[[self._positions[name] for name in subset]] = True
        return marked

    def _terms(self, name: str) -> Terms:
        return self.terms[self.index(name)]

    @cached_property
    def has_groups(self) -> bool:
        """Whether some sensor costs less when another is known."""
        return any(terms.surcharge for terms in self.terms)

    @cached_property
    def varying(self) -> Rows:
        """Positions of the sensors of which every example has a price of its own."""
        return np.flatnonzero([terms.varies for terms in self.terms])

    @cached_property
    def own_costs(self) -> Array:
        """Price of each sensor for an example that has no price of its own."""
        own = [terms.own_price for terms in self.terms]
        return np.array(
            [c if p is None else p for c, p in zip(self.costs, own, strict=True)]
        )

    def with_varying(self, varies: Iterable[Any]) -> SensorSet:
        """Give the same sensors, some of which have a price for every example."""
        terms = tuple(
            replace(t, varies=True, own_price=float(cost)) if v else t
            for t, v, cost in zip(self.terms, varies, self.costs, strict=True)
        )
        return replace(self, terms=terms)

    def cost_of(
        self,
        subset: Iterable[str],
        known: Iterable[str] = (),
        prices: Array | None = None,
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
        if self.has_groups:  # only the first of a group pays its surcharge
            saved, groups = 0.0, {self._terms(name).group for name in known}
            for name in self.purchase_order(bought):
                terms = self._terms(name)
                if terms.group is not None and terms.group in groups:
                    saved += terms.surcharge
                groups.add(terms.group)
            total = total - saved
        return float(total) if prices is None else total

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


def default_names(n_columns: int) -> tuple[str, ...]:
    """Name the columns of an array as scikit-learn does: x0, x1, ..."""
    return tuple(f"x{column}" for column in range(n_columns))


def _check_that_columns_belong_to_one_sensor(sensors: SensorSet) -> None:
    owner: dict[int, str] = {}
    for name, columns in zip(sensors.names, sensors.columns, strict=True):
        if not columns:
            raise SensorError(
                f"sensor {name!r} has no columns; name at least one, or remove the "
                f"sensor."
            )
        for column in columns:
            shown = repr(sensors.column_names[column])
            if owner.get(column) == name:
                raise SensorError(
                    f"sensor {name!r} lists column {shown} twice; list each column once."
                )
            if column in owner:
                raise SensorError(
                    f"sensors {owner[column]!r} and {name!r} both claim column {shown}; "
                    f"each column belongs to one sensor."
                )
            owner[column] = name
    for name, terms in zip(sensors.names, sensors.terms, strict=True):
        priced = terms.price_column
        if priced is not None and priced in owner:
            raise SensorError(
                f"the price of sensor {name!r} is column {sensors.column_names[priced]!r}, "
                f"which sensor {owner[priced]!r} claims too; a price is known before "
                f"anything is acquired, so its column belongs to no sensor."
            )
    claimed = {*owner, *(terms.price_column for terms in sensors.terms)}
    orphans = [name for i, name in enumerate(sensors.column_names) if i not in claimed]
    if orphans:
        shown = ", ".join(map(repr, orphans[:5]))
        more = f" and {len(orphans) - 5} more" if len(orphans) > 5 else ""
        noun, verb, it = "columns", "belong", "them"
        if len(orphans) == 1:
            noun, verb, it = "column", "belongs", "it"
        raise SensorError(
            f"{noun} {shown}{more} {verb} to no sensor; add {it} to a sensor or drop {it} "
            f"from X."
        )


def _check_terms(sensors: SensorSet) -> None:
    """Refuse prerequisites that are unknown, circular, or excluded."""
    for name, terms in zip(sensors.names, sensors.terms, strict=True):
        for other in sorted(terms.after):
            if other not in sensors.names:
                raise SensorError(
                    f"sensor {name!r} comes after {other!r}, which is not a sensor; "
                    f"the sensors are {listed(sensors.names)}."
                )
    for name in sensors.names:
        needed = frozenset().union(
            *(sensors.closure(other) for other in sensors._terms(name).after)
        )
        if name in needed:
            raise SensorError(
                f"sensor {name!r} must come after itself, through "
                f"{listed(sorted(needed - {name}) or [name])}; remove one 'after'."
            )
        if not sensors.admissible(sensors.closure(name)):
            raise SensorError(
                f"sensor {name!r} can never be acquired: what must come before it "
                f"includes two sensors of which at most one may be acquired; change "
                f"its 'after' or a 'one_of'."
            )


def resolve_sensors(
    sensors: Mapping[str, Any] | None, costs: Mapping[str, float] | None, table: Table
) -> tuple[SensorSet, dict[str, Any]]:
    """Say what a declaration means for a table: its sensors, and declared transformers.

    `sensors` gives a `Sensor` or its columns by name; None makes every column a sensor of
    its own. `costs` are prices of those declared by their columns alone, 1.0 if not listed.
    """
    _, n_columns = table.shape
    column_names = table.column_names or default_names(n_columns)
    declared = _declare(sensors, costs, column_names)
    resolve = _ColumnResolver(table, column_names)
    columns = {name: resolve(name, sensor.columns) for name, sensor in declared.items()}
    prices, all_terms = [], []
    for name, sensor in declared.items():
        price_column = None
        if isinstance(sensor.cost, str):  # what an example pays is not known yet
            what = f"the price of sensor {name!r} is"
            hint = " A price is a number or the name of a column."
            price_column = resolve.position(what, sensor.cost, hint)
            prices.append(sensor.surcharge)
        else:  # of the first of its group
            prices.append(float(sensor.cost) + float(sensor.fee or 0.0))
        all_terms.append(
            Terms(
                sensor.group,
                sensor.surcharge,
                frozenset(sensor.after),
                sensor.one_of,
                varies=price_column is not None,
                price_column=price_column,
            )
        )
    sensor_set = SensorSet(
        tuple(declared),
        tuple(columns.values()),
        np.array(prices),
        column_names,
        tuple(all_terms),
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
        each = list(columns)
        if not each or not all(isinstance(c, (bool, np.bool_)) for c in each):
            what = f"sensor {sensor!r} names"
            return tuple(self.position(what, column) for column in each)
        if len(each) != len(self.column_names):
            raise SensorError(
                f"the mask of sensor {sensor!r} has {len(each)} entries but X has "
                f"{len(self.column_names)} columns; give one entry per column."
            )
        return tuple(np.flatnonzero(each).tolist())

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
        what = f"sensor {sensor!r} names"
        start = 0 if columns.start is None else self.position(what, columns.start)
        last = -1 if columns.stop is None else columns.stop
        return range(start, self.position(what, last) + 1, columns.step or 1)

    def position(self, what: str, column: Any, hint: str = "") -> int:
        """Position of one column, by its name or a position from either end."""
        n_columns = len(self.column_names)
        if isinstance(column, str):
            if column not in self.column_names:
                raise SensorError(
                    f"{what} column {column!r}, which X does not have; its columns are "
                    f"{listed(self.column_names)}.{hint}"
                )
            return self.column_names.index(column)
        if isinstance(column, Integral) and not isinstance(column, bool):
            position = int(column)
            if not -n_columns <= position < n_columns:
                raise SensorError(
                    f"{what} column {column}, but X has columns 0 to {n_columns - 1}."
                )
            return position % n_columns
        raise SensorError(
            f"{what} column {column!r}; a column is a name or a position."
        )
