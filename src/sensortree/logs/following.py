"""`Followed`: how far a policy can be followed through a log, round by round.

A log is followed without its dead ends. Who has bought "x-ray" without "blood" may never go
back to blood: such rows have no chance of what a policy asks, and yet went on once. Their
log is ended before that step, as if they had stopped where others, who knew the same, went
on to blood. Which sensors are known decides where a log is ended, and never what they read,
so that stopping depends on no more than before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensortree.logs.purchases import NEVER, Purchases
from sensortree.policy.batch import Walk, send
from sensortree.policy.policy import Policy
from sensortree.reports.report_sums import bills
from sensortree.sensors.table import Table
from sensortree.types import Array, Mask, Rows

UNKNOWN = -1  # round after which the whole way is known, of rows whose log ends before

# Sensors are a dead end if less than a share of the rows there go on, of enough rows; or of
# a few rows, if none does.
SELDOM, ENOUGH, SOME = 0.05, 20, 5


class RowsUnderWay(NamedTuple):
    """Rows whose way is not fully known after some rounds, and where they stand."""

    rows: Rows  # whose log does not end before, (n_standing,)
    ahead: (
        Rows  # the place that each is going to, and lacks a sensor for, (n_standing,)
    )
    belief: Array  # posterior with what is known, (n_standing, n_classes)


@dataclass(frozen=True, eq=False)
class Followed:
    """Rows on their way through a policy, as far as a log knows them."""

    purchases: Purchases
    # Number of rounds after which a row's whole way is known (τ); `UNKNOWN` where the log
    # ends before, (n_rows,).
    n_needed: Rows
    stands: tuple[RowsUnderWay, ...]  # after 0, 1, ... rounds
    # What is measured: error, loss and cost; whether a sensor is acquired, and what is
    # spent on it; whether a row stops at a place, and is wrong there.
    names: tuple[tuple[str, str | int], ...]
    # Measures of rows whose way is known, NaN of others, (n_rows, n_measures).
    outcomes: Array
    # Error, loss and cost if the policy answers with what was bought, (n_rows, 3).
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
        stands.append(RowsUnderWay(rows, walk.ahead[stands_still], likely))
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
    """Some rows of a table; no cell is looked at."""
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


# dead ends ------------------------------------------------------------------------------


def without_dead_ends(followed: Followed) -> Followed:
    """End the log of rows before what is a dead end to the policy."""
    end = _ends(followed)
    purchases = followed.purchases
    if np.array_equal(end, purchases.n_rounds):
        return followed
    rounds = np.where(purchases.round > end[:, None], NEVER, purchases.round)
    n_needed = np.where(followed.n_needed > end, UNKNOWN, followed.n_needed)
    outcomes = followed.outcomes.copy()
    outcomes[n_needed == UNKNOWN] = np.nan
    stands = []
    reached = followed.stands[: int(end.max(initial=0)) + 1]
    for after, (rows, ahead, belief) in enumerate(reached):
        left = end[rows] >= after
        stands.append(RowsUnderWay(rows[left], ahead[left], belief[left]))
    return replace(
        followed,
        purchases=Purchases(purchases.sensors, rounds),
        n_needed=n_needed,
        outcomes=outcomes,
        stands=tuple(stands),
    )


def _ends(followed: Followed) -> Rows:
    """Round after which each log ends without dead ends, (n_rows,).

    Rows that are asked for more decide whether sensors are a dead end; then all rows end
    before them, also those that they are enough for: else what was read would decide who
    is left.
    """
    purchases = followed.purchases
    end = purchases.n_rounds.copy()
    rows, after = np.nonzero(np.arange(1, end.max(initial=0) + 1) <= end[:, None])
    after += 1
    asked = np.zeros((len(end), end.max(initial=0) + 1), dtype=bool)
    for number, stand in enumerate(followed.stands):
        asked[stand.rows, number] = True
    known = purchases.round[rows] <= after[:, None]
    sets, set_of = np.unique(known, axis=0, return_inverse=True)
    set_of = set_of.ravel()
    for one in np.argsort(-sets.sum(axis=1), kind="stable"):  # the largest first
        here = np.flatnonzero(set_of == one)
        here = here[end[rows[here]] >= after[here]]  # not cut off already
        more = here[asked[rows[here], after[here]]]
        n_on = int((end[rows[more]] > after[more]).sum())
        if len(more) >= (ENOUGH if n_on else SOME) and n_on < SELDOM * len(more):
            end[rows[here]] = after[here] - 1
    return end
