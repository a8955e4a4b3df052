"""`Followed`: how far a policy can be followed through a log, round by round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensortree.logs.purchases import Purchases
from sensortree.policy.batch import Walk, send
from sensortree.policy.policy import Policy
from sensortree.reports.report_sums import bills
from sensortree.sensors.table import Table
from sensortree.types import Array, Mask, Rows

UNKNOWN = -1  # round after which the whole way is known, of rows whose log ends before


class Stand(NamedTuple):
    """Where rows stand whose way is not known to its end after some rounds.

    Attributes
    ----------
    rows : ndarray of shape (n_standing,)
        Rows whose log does not end before.
    ahead : ndarray of shape (n_standing,)
        The place that each is going to, and lacks a sensor for.
    belief : ndarray of shape (n_standing, n_classes)
        Posterior with what is known.
    """

    rows: Rows
    ahead: Rows
    belief: Array


@dataclass(frozen=True, eq=False)
class Followed:
    """Rows on their way through a policy, as far as a log knows them.

    Attributes
    ----------
    purchases : Purchases
    n_needed : ndarray of shape (n_rows,)
        Number of rounds after which a row's whole way is known (τ); `UNKNOWN` where the
        log ends before.
    stands : tuple of Stand
        After 0, 1, ... rounds.
    names : tuple of (str, str or int)
        What is measured: error, loss and cost; whether a sensor is acquired, and what is
        spent on it; whether a row stops at a place, and is wrong there.
    outcomes : ndarray of shape (n_rows, n_measures)
        Measures of rows whose way is known; NaN of others.
    so_far : ndarray of shape (n_rows, 3)
        Error, loss and cost if the policy answers with what was bought in the log.
    """

    purchases: Purchases
    n_needed: Rows
    stands: tuple[Stand, ...]
    names: tuple[tuple[str, str | int], ...]
    outcomes: Array
    so_far: Array

    @property
    def complete(self) -> Mask:
        """Rows whose whole way is known, (n_rows,)."""
        return np.asarray(self.n_needed != UNKNOWN)

    def column(self, what: str, of: str | int = "") -> int:
        """Position of a measure among the outcomes."""
        return self.names.index((what, of))


def follow(policy: Policy, table: Table, purchases: Purchases, truth: Rows) -> Followed:
    """Send rows through a policy with what was known after 0, 1, ... rounds."""
    end = send(policy, table, purchases.bought)
    belief = end.posterior()
    n_needed = np.full(table.shape[0], UNKNOWN, dtype=np.intp)
    stands, under_way, after = [], np.arange(table.shape[0]), 0
    while under_way.size:
        known = purchases.known_after(after, under_way)
        walk = Walk(policy, rows_of(table, under_way), known)
        stands_still = walk.ahead != walk.place
        n_needed[under_way[~stands_still]] = after
        rows = under_way[stands_still]
        likely = walk.posterior()[stands_still]
        stands.append(Stand(rows, walk.ahead[stands_still], likely))
        under_way, after = rows[purchases.n_rounds[rows] > after], after + 1
    prices = policy.reader.prices(table)
    places = np.unique(end.place[n_needed != UNKNOWN])
    others = [int(place) for place in places[::-1] if place < 0]
    names, outcomes = _measured(policy, end.place, others, belief, truth, prices)
    so_far = outcomes[:, :3].copy()
    so_far[:, 2] = purchases.cost(prices)
    outcomes[n_needed == UNKNOWN] = np.nan
    return Followed(purchases, n_needed, tuple(stands), names, outcomes, so_far)


def rows_of(table: Table, rows: Rows) -> Table:
    """Some rows of a table, none of whose cells is looked at."""
    data = table.take(rows, range(table.shape[1]))
    prices = None if table.prices is None else table.prices[rows]
    return replace(table, data=data, prices=prices)


def _measured(
    policy: Policy,
    place: Rows,
    others: list[int],
    belief: Array,
    truth: Rows,
    prices: Array | None,
) -> tuple[tuple[tuple[str, str | int], ...], Array]:
    """All that is measured of rows that stop at the leaves, and at other places."""
    answer = policy.loss.answer(belief)
    wrong = (answer != truth).astype(np.float64)
    spend, acquired = bills(policy, place, prices)
    names = policy.sensors.names
    places = [*range(policy.tree.n_leaves), *others]
    columns: dict[tuple[str, str | int], NDArray[Any]] = {
        ("error", ""): wrong,
        ("loss", ""): policy.loss.judge(truth, belief),
        ("cost", ""): spend.sum(axis=1),
    }
    columns |= {("acquires", name): acquired[:, s] for s, name in enumerate(names)}
    columns |= {("spends", name): spend[:, s] for s, name in enumerate(names)}
    columns |= {("stops", p): place == p for p in places}
    columns |= {("errs", p): wrong * (place == p) for p in places}
    return tuple(columns), np.stack(list(columns.values()), axis=1).astype(np.float64)
