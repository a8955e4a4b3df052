"""The rows of a block: what is known of them, where they stand, what they ask for next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError
from sensortree.policy.batch import Walk, next_sensors
from sensortree.policy.policy import Policy
from sensortree.policy.session import Stand, retrace
from sensortree.policy.session_input import check_names
from sensortree.sensors.market import check_price_array
from sensortree.sensors.seen import Unseen
from sensortree.sensors.table import NUMERIC, Table, columns_of
from sensortree.text import listed
from sensortree.tree.paths import path_bill
from sensortree.types import Array, Mask, Rows
from sensortree.waves.ledger import (
    PAID,
    Because,
    Order,
    Stop,
    exact,
    read_reading,
    total,
)

# cut into parts ---------------------------------------------------------------------------


def is_dask_frame(rows: Any) -> bool:
    """Whether rows are a Dask data frame."""
    dask = type(rows).__module__.startswith("dask")
    return dask and hasattr(rows, "to_delayed") and hasattr(rows, "columns")


def parts_of(rows: Any, size: int) -> Iterator[Any]:
    """Rows in parts: frames or lists of keys of so many rows, or a cluster's partitions."""
    if is_dask_frame(rows):
        yield from rows.to_delayed()
    elif Table.holds(rows):
        yield from pieces_of(rows, size)
    else:
        keys = iter(rows)
        while part := list(islice(keys, size)):
            yield part


def pieces_of(part: Any, size: int) -> Iterator[Any]:
    """A part in pieces of at most so many rows."""
    whole = nw.from_native(part, eager_only=True, pass_through=True)
    for start in range(0, len(part), size):
        yield nw.to_native(whole[start : start + size], pass_through=True)


# what is where ----------------------------------------------------------------------------


def known_sensors(
    rows: Any,
    policy: Policy,
    key: str | None,
    known: Iterable[str] | None,
    prices: Mapping[str, str],
) -> tuple[str, ...]:
    """Sensors that are known for free; an error names what rows lack.

    These are the sensors that are named, or all whose columns are in rows.
    """
    sensors, columns = policy.sensors, column_names(rows)
    if columns is not None and key is not None and key not in columns:
        raise DataError(
            f"rows have no column {key!r} for the keys; they have {listed(columns)}."
        )
    if columns is not None and key is None and not hasattr(rows, "index"):
        raise DataError("rows have no index; name the column of their keys with key=.")
    there = set(columns or ())
    for name, column in prices.items():
        check_names([name], "prices", sensors)
        if column not in there:
            raise DataError(
                f"rows have no column {column!r} for the price of sensor {name!r}."
            )
    for name, terms in zip(sensors.names, sensors.terms, strict=True):
        column_at = terms.price_column
        if column_at is not None and sensors.column_names[column_at] not in there:
            raise DataError(
                f"sensor {name!r} is sold at the price in column "
                f"{sensors.column_names[column_at]!r}, which rows do not have; prices "
                f"are known before anything is bought."
            )
    named = None if known is None else check_names(known, "known", sensors)
    found = []
    for name, at in zip(sensors.names, sensors.columns, strict=True):
        own = [sensors.column_names[c] for c in at]
        lacking = [column for column in own if column not in there]
        if (named is not None and name not in named) or not own:
            continue
        if not lacking:
            found.append(name)
        elif named is not None or len(lacking) < len(own):
            raise DataError(
                f"rows lack column {lacking[0]!r} of sensor {name!r}; give all of its "
                f"columns, or say with known= which sensors are known."
            )
    return tuple(found)


def column_names(rows: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame; None if rows are keys."""
    if is_dask_frame(rows):
        return tuple(rows.columns)
    if isinstance(rows, np.ndarray) and rows.ndim != 1:
        raise DataError(
            f"rows must be a data frame or keys, got an array of shape {rows.shape}; put "
            f"what is known into a frame, with column names and keys."
        )
    if Table.holds(rows):
        return Table(rows).column_names or ()
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise DataError(
            f"rows must be a data frame or keys, got {type(rows).__name__}; give a list "
            f"of keys if nothing is known."
        )
    return None


def _check_keys(keys: Sequence[Any]) -> list[Any]:
    """Keys as plain whole numbers or text, all alike and each once."""
    plain = [key.item() if isinstance(key, np.generic) else key for key in keys]
    kinds = {type(key) for key in plain}
    if not kinds <= {int} and not kinds <= {str}:
        odd = next((k for k in plain if type(k) not in (int, str)), None)
        raise DataError(
            f"{odd!r} is no key; keys are whole numbers or text, and none is missing."
            if odd is not None or None in plain
            else "some keys are numbers and others text; make all of them text."
        )
    if "" in plain:
        raise DataError("'' is no key; keys are whole numbers or text, none missing.")
    if len(set(plain)) < len(plain):
        twice, _ = Counter(plain).most_common(1)[0]
        raise DataError(
            f"key {twice!r} is that of two rows; keys must be unique. Give the rows of a "
            f"key once, or make keys of what tells them apart."
        )
    return plain


# where they stand -------------------------------------------------------------------------


class Wish(NamedTuple):
    """Rows that ask for the same sensor next, and what each would pay."""

    sensor: str
    rows: list[int]
    prices: list[Decimal]


@dataclass(eq=False)
class BlockRows:
    """Where the rows of a block stand.

    Rows that got everything they asked for walk together, by the rules of batch prediction.
    Rows for which a sensor was unavailable, and all rows of a policy that limits what an
    example spends, are led one by one, as sessions are.
    """

    policy: Policy
    kind: str  # what keys are: "int" or "str"
    keys: list[str]  # as the ledger has them
    columns: dict[int, NDArray[Any]]  # what is known, by its position, (n_rows,)
    known: Mask  # what can be read, (n_rows, n_sensors)
    free: tuple[str, ...]  # sensors that were known for free
    prices: Array | None  # (n_rows, n_sensors)
    beside: Array | None  # prices that were given beside the columns, of the same shape
    spent: list[Decimal]
    unavailable: dict[int, dict[str, str | None]] = field(default_factory=dict)
    # Rows that ask for what they cannot get for now: "money" or "unsettled".
    waiting: dict[int, Because] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.position = {key: row for row, key in enumerate(self.keys)}

    @classmethod
    def read(
        cls,
        part: Any,
        policy: Policy,
        key: str | None,
        free: tuple[str, ...],
        own_prices: Mapping[str, str],
    ) -> BlockRows:
        """Rows of a part, before anything is bought; see `acquire`."""
        sensors, columns = policy.sensors, dict[int, NDArray[Any]]()
        beside = None
        if not Table.holds(part):
            keys = _check_keys(list(part))
        else:
            table = Table(part)
            at = {name: i for i, name in enumerate(table.column_names or ())}

            def column(name: str) -> NDArray[Any]:
                (found,) = columns_of(table.take(slice(None), [at[name]]))
                return found

            def known(name: str) -> NDArray[Any]:
                """A column as numbers if it has a type of numbers, else as objects."""
                found = column(name)
                return found.astype(float if found.dtype.kind in NUMERIC else object)

            own = part.index if key is None else column(key)
            keys = _check_keys(own.tolist())
            wanted = [c for n in free for c in sensors.columns[sensors.index(n)]]
            priced = [t.price_column for t in sensors.terms]
            wanted += [c for c in priced if c is not None]
            columns = {c: known(sensors.column_names[c]) for c in wanted}
            if own_prices:
                beside = np.full((len(keys), len(sensors)), np.nan)
                for name, named in own_prices.items():
                    beside[:, sensors.index(name)] = known(named)
                beside = check_price_array(beside, len(keys), sensors)
        n_rows = len(keys)
        return cls(
            policy,
            type(keys[0]).__name__,
            [str(each) for each in keys],
            columns,
            np.tile(sensors.mask(free), (n_rows, 1)),
            free,
            policy.reader.prices(table_of(policy, columns, n_rows, beside)),
            beside,
            [Decimal(0)] * n_rows,
        )

    # what comes to be known ---------------------------------------------------------------

    def recall(self, orders: Iterable[Order]) -> None:
        """Take over what the ledger says of the rows."""
        bought: dict[str, tuple[list[int], list[list[Any]]]] = {}
        for order in orders:
            row = self.position[order.key]
            if order.state in PAID:
                self.spent[row] = total((self.spent[row], order.price))
            if order.state == "bought":
                rows, values = bought.setdefault(order.sensor, ([], []))
                rows.append(row)
                values.append(read_reading(order.reading or "[]"))
            elif order.state != "ordered":
                self.unavailable.setdefault(row, {})[order.sensor] = order.reason
        sensors, n_rows = self.policy.sensors, len(self.keys)
        for sensor, (rows, values) in bought.items():
            at = sensors.index(sensor)
            self.known[rows, at] = True
            read = zip(*values, strict=True)
            for c, column in zip(sensors.columns[at], read, strict=True):
                self.columns[c] = _with(self.columns.get(c), rows, column, n_rows)

    def wait(self, keys: Iterable[str], because: Because) -> None:
        """Let rows wait for what they cannot get for now."""
        for key in keys:
            self.waiting[self.position[key]] = because

    # where they stand ---------------------------------------------------------------------

    def wishes(self, rows: Rows) -> list[Wish]:
        """What rows that go on ask for next, by sensor in declared order."""
        wishes = {name: Wish(name, [], []) for name in self.policy.sensors.names}
        usual, odd = self._apart(rows)
        if usual.size:
            known = self.known[usual]
            action = next_sensors(Walk(self.policy, self._table(usual), known), known)
            for sensor, wish in enumerate(wishes.values()):
                asking = usual[action == sensor + 1]
                wish.rows.extend(asking.tolist())
                wish.prices.extend(self._prices_of(sensor, asking))
        for row in odd.tolist():
            stand = self._lead(row)
            if stand.sensor is not None:
                wishes[stand.sensor].rows.append(row)
                wishes[stand.sensor].prices.append(exact(stand.price))
        return [wish for wish in wishes.values() if wish.rows]

    def stops(self, rows: Rows) -> Iterator[Stop]:
        """Where rows have stopped, or wait for now, with the outputs of the policy."""
        usual, odd = self._apart(rows)
        if usual.size:
            walk = Walk(self.policy, self._table(usual), self.known[usual])
            posterior = walk.posterior()
            refers = self.policy.hands_over(walk.place, posterior)
            for i, row in enumerate(usual.tolist()):
                yield Stop(
                    self.keys[row],
                    int(walk.place[i]),
                    self.waiting.get(row, "policy"),
                    None,
                    int(refers[i]),
                    self.spent[row],
                    posterior[i].tobytes(),
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
                self.columns[c].item(row) for c in sensors.columns[s]
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
            price = self.prices[row, s] if at is None else self.columns[at][row]
            told[name] = float(price)
        return told


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

    Each reading is in column order.
    """
    if not values:
        return {}, []
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
