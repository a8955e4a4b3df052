"""`SensorSet`: the sensors of one table, checked together and in a fixed order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import SensorError
from sensortree.sensors.sensor import Terms, check_cost
from sensortree.text import listed


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
        _check_that_columns_belong_to_one_sensor(self)
        _check_terms(self)

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

    @cached_property
    def own_costs(self) -> NDArray[np.float64]:
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
            if owner.get(column) == name:
                raise SensorError(
                    f"sensor {name!r} lists column {_column(sensors, column)} twice; "
                    f"list each column once."
                )
            if column in owner:
                raise SensorError(
                    f"sensors {owner[column]!r} and {name!r} both claim column "
                    f"{_column(sensors, column)}; each column belongs to one sensor."
                )
            owner[column] = name
    for name, terms in zip(sensors.names, sensors.terms, strict=True):
        if terms.price_column in owner:
            raise SensorError(
                f"the price of sensor {name!r} is column "
                f"{_column(sensors, terms.price_column)}, which sensor "
                f"{owner[terms.price_column]!r} claims too; a price is known before "
                f"anything is acquired, so its column belongs to no sensor."
            )
    priced = {terms.price_column for terms in sensors.terms}
    orphans = [
        c
        for c in range(len(sensors.column_names))
        if c not in owner and c not in priced
    ]
    if orphans:
        listed = ", ".join(_column(sensors, c) for c in orphans[:5])
        more = f" and {len(orphans) - 5} more" if len(orphans) > 5 else ""
        one = len(orphans) == 1
        said, it = ("column {} belongs", "it") if one else ("columns {} belong", "them")
        raise SensorError(
            f"{said.format(listed + more)} to no sensor; add {it} to a sensor or drop "
            f"{it} from X."
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


def _column(sensors: SensorSet, position: int | None) -> str:
    """Name a column in a message."""
    assert position is not None
    return repr(sensors.column_names[position])
