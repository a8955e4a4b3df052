"""`Standing`: where the rows of a block stand, and what they ask for next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sensortree.dask.entries import (
    PAID,
    Because,
    Order,
    Stop,
    exact,
    read_reading,
    total,
)
from sensortree.dask.rows import Known
from sensortree.policy.batch import Walk
from sensortree.policy.masked import next_sensors
from sensortree.policy.policy import Policy
from sensortree.policy.session import Stand, retrace
from sensortree.sensors.seen import Unseen
from sensortree.sensors.table import Table
from sensortree.tree.paths import path_bill
from sensortree.types import Array, Mask, Rows


class Wish(NamedTuple):
    """Rows that ask for the same sensor next, and what each would pay."""

    sensor: str
    rows: Rows
    prices: list[Decimal]


@dataclass(eq=False)
class Standing:
    """Where the rows of a block stand.

    Rows to which everything came that they asked for walk together, by the rules of batch
    prediction. Rows that something was unavailable to, and those of a policy that limits
    what an example spends, are led one by one as sessions are.

    Attributes
    ----------
    policy : Policy
    keys : list of str
        As the ledger has them.
    columns : dict of int to ndarray of shape (n_rows,)
        What is known, by the column's position.
    known : ndarray of bool of shape (n_rows, n_sensors)
        What can be read.
    free : tuple of str
        Sensors that were known for nothing.
    prices : ndarray of shape (n_rows, n_sensors) or None
    beside : ndarray of shape (n_rows, n_sensors) or None
        Prices that were given beside the columns.
    spent : list of Decimal
    unavailable : dict of row to dict of sensor to reason
    waiting : dict of row to {"money", "unsettled"}
        Rows that ask for what they cannot get for now.
    """

    policy: Policy
    keys: list[str]
    columns: dict[int, NDArray[Any]]
    known: Mask
    free: tuple[str, ...]
    prices: Array | None
    beside: Array | None
    spent: list[Decimal]
    unavailable: dict[int, dict[str, str | None]] = field(default_factory=dict)
    waiting: dict[int, Because] = field(default_factory=dict)

    # what comes to be known ---------------------------------------------------------------

    def recall(self, orders: Iterable[Order], position: dict[str, int]) -> None:
        """Know what the ledger says of the rows."""
        bought: dict[str, tuple[list[int], list[list[Any]]]] = {}
        for order in orders:
            row = position[order.key]
            if order.state in PAID:
                self.spent[row] = total((self.spent[row], order.price))
            if order.state == "bought":
                rows, values = bought.setdefault(order.sensor, ([], []))
                rows.append(row)
                values.append(read_reading(order.reading or "[]"))
            elif order.state != "ordered":
                self.unavailable.setdefault(row, {})[order.sensor] = order.reason
        for sensor, (rows, values) in bought.items():
            self._learn(sensor, rows, values)

    def _learn(
        self, sensor: str, rows: Sequence[int], values: Sequence[Sequence[Any]]
    ) -> None:
        """Know the values of a sensor for some rows."""
        at = self.policy.sensors.index(sensor)
        self.known[rows, at] = True
        told = zip(*values, strict=True)
        for c, column in zip(self.policy.sensors.columns[at], told, strict=True):
            self.columns[c] = _with(self.columns.get(c), rows, column, len(self.keys))

    # where they stand ---------------------------------------------------------------------

    def wishes(self, rows: Rows) -> Iterator[Wish]:
        """What rows ask for next, by sensor in declared order; who has stopped, nothing."""
        names = self.policy.sensors.names
        usual, odd = self._apart(rows)
        asks: list[tuple[Rows, list[Decimal]]] = [
            (np.empty(0, dtype=np.intp), []) for _ in names
        ]
        if usual.size:
            known = self.known[usual]
            action = next_sensors(Walk(self.policy, self._table(usual), known), known)
            for sensor in range(len(names)):
                asking = usual[action == sensor + 1]
                asks[sensor] = asking, self._prices_of(sensor, asking)
        led: dict[str, list[tuple[int, Decimal]]] = {}
        for row in odd.tolist():
            stand = self._lead(row)
            if stand.sensor is not None:
                led.setdefault(stand.sensor, []).append((row, exact(stand.price)))
        for name, (asking, prices) in zip(names, asks, strict=True):
            more = led.get(name, [])
            if asking.size or more:
                others = np.array([row for row, _ in more], dtype=np.intp)
                yield Wish(
                    name,
                    np.concatenate((asking, others)),
                    prices + [price for _, price in more],
                )

    def stops(self, rows: Rows) -> Iterator[Stop]:
        """Where rows have stopped, or wait for now, and what is said there."""
        usual, odd = self._apart(rows)
        if usual.size:
            walk = Walk(self.policy, self._table(usual), self.known[usual])
            said = walk.posterior()
            refers = self.policy.hands_over(walk.place, said)
            for i, row in enumerate(usual.tolist()):
                because = self.waiting.get(row, "policy")
                yield Stop(
                    self.keys[row],
                    int(walk.place[i]),
                    because,
                    None,
                    int(refers[i]),
                    self.spent[row],
                    said[i].tobytes(),
                )
        for row in odd.tolist():
            stand = self._lead(row)
            yield Stop(
                self.keys[row],
                stand.place,
                self.waiting.get(row, stand.because),
                stand.around,
                int(stand.referred),
                self.spent[row],
                np.asarray(stand.said, np.float64).tobytes(),
            )

    def _apart(self, rows: Rows) -> tuple[Rows, Rows]:
        """Rows that walk together, and those that are led one by one."""
        if self.policy.max_cost is not None:
            return rows[:0], rows
        odd = np.isin(rows, np.fromiter(self.unavailable, np.intp))
        return rows[~odd], rows[odd]

    def _lead(self, row: int) -> Stand:
        """Where a row stands that is led alone."""
        sensors = self.policy.sensors
        told = {
            sensors.names[s]: tuple(
                _plain(self.columns[c][row]) for c in sensors.columns[s]
            )
            for s in np.flatnonzero(self.known[row]).tolist()
        }
        free = {name: told.pop(name) for name in self.free}
        return retrace(
            self.policy,
            free,
            told,
            self.unavailable.get(row, {}),
            self._told_prices(row),
        )

    def _table(self, rows: Rows) -> Table:
        """What is known of rows, as a table."""
        taken = {c: column[rows] for c, column in self.columns.items()}
        prices = None if self.beside is None else self.beside[rows]
        return table_of(self.policy, taken, len(rows), prices)

    # money --------------------------------------------------------------------------------

    def _prices_of(self, sensor: int, rows: Rows) -> list[Decimal]:
        """What each row pays for a sensor, by what it knows already."""
        sensors, prices = self.policy.sensors, [Decimal(0)] * len(rows)
        if not rows.size:
            return prices
        path = (frozenset((sensors.names[sensor],)),)
        patterns, which = np.unique(self.known[rows], axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            at = np.flatnonzero(which.ravel() == number)
            own = None if self.prices is None else self.prices[rows[at]]
            names = frozenset(sensors.names[s] for s in np.flatnonzero(pattern))
            (price,) = path_bill(path, sensors, own, names).values()
            charged = np.broadcast_to(price, at.shape).tolist()
            for i, amount in zip(at.tolist(), charged, strict=True):
                prices[i] = exact(amount)
        return prices

    def _told_prices(self, row: int) -> dict[str, float | None] | None:
        """Prices of a row as a session is told them: a column's without the fee."""
        if self.prices is None:
            return None
        sensors = self.policy.sensors
        told: dict[str, float | None] = {}
        for s, name in enumerate(sensors.names):
            at = sensors.terms[s].price_column
            full = float(self.prices[row, s])
            told[name] = full if at is None else float(self.columns[at][row])
        return told


def standing(policy: Policy, rows: Known, free: tuple[str, ...]) -> Standing:
    """Rows of a block before anything is bought."""
    n, sensors = len(rows.keys), policy.sensors
    known = np.tile(sensors.mask(free), (n, 1))
    prices = policy.reader.prices(table_of(policy, rows.columns, n, rows.prices))
    return Standing(
        policy,
        [str(key) for key in rows.keys],
        dict(rows.columns),
        known,
        free,
        prices,
        rows.prices,
        [Decimal(0)] * n,
    )


# tables -----------------------------------------------------------------------------------


def table_of(
    policy: Policy,
    columns: dict[int, NDArray[Any]],
    n_rows: int,
    prices: Array | None = None,
) -> Table:
    """Columns by position as a table as wide as those of training, the rest missing."""
    names = policy.sensors.column_names
    library: Any = policy.reader.frame
    if library is not None:
        missing = np.full(n_rows, np.nan)
        data = {name: columns.get(c, missing) for c, name in enumerate(names)}
        whole = {
            name: column if column.dtype != object else column.tolist()
            for name, column in data.items()
        }
        return Table(nw.from_dict(whole, backend=library).to_native(), prices)
    objects = any(column.dtype == object for column in columns.values())
    array = np.full((n_rows, len(names)), np.nan, dtype=object if objects else float)
    for c, column in columns.items():
        array[:, c] = column
    return Table(array, prices)


def unusable(
    policy: Policy, sensor: str, values: Sequence[Sequence[Any]]
) -> tuple[dict[int, str], list[Unseen]]:
    """Readings that a sensor cannot use, and why; and what training never saw of others.

    Parameters
    ----------
    policy : Policy
    sensor : str
    values : sequence of readings
        Each in column order.
    """
    at = policy.sensors.index(sensor)
    columns = {
        c: _with(None, range(len(values)), column, len(values))
        for c, column in zip(
            policy.sensors.columns[at], zip(*values, strict=True), strict=True
        )
    }
    try:
        table = table_of(policy, columns, len(values))
        _, unseen = policy.reader.read(table, at, np.arange(len(values)))
        if not (unseen and policy.strict):
            return {}, [replace(one, row=None) for one in unseen]
    except Exception as error:  # a transformer may raise anything
        if len(values) == 1:
            return {0: f"{type(error).__name__}: {error}"}, []
    if len(values) == 1:
        return {0: "values that training never saw"}, []
    # Some are of no use: halves find them soon, where they are few.
    half = len(values) // 2
    bad, unseen = unusable(policy, sensor, values[:half])
    more, others = unusable(policy, sensor, values[half:])
    return bad | {half + row: why for row, why in more.items()}, unseen + others


def _with(
    column: NDArray[Any] | None,
    rows: Sequence[int] | range,
    values: Sequence[Any],
    n_rows: int,
) -> NDArray[Any]:
    """A column in which some rows have values, of numbers as long as all of them are."""
    if column is None:
        column = np.full(n_rows, np.nan)
    numbers = not any(isinstance(value, str) for value in values)
    if numbers:
        try:
            made = np.array(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            numbers = False
    if not numbers:
        made = np.empty(len(values), dtype=object)
        made[:] = values
        column = column.astype(object)
    column[rows] = made
    return column


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
