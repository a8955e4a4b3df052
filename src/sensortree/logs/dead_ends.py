"""Logs without their dead ends.

Who has bought "x-ray" without "blood" may never go back to blood. Rows that are there have
no chance of what a policy asks, and yet went on once. Their log is ended before that step:
they then stopped where others, who knew the same, went on to blood. Which sensors are known
decides where a log is ended, and never what they read, so that stopping depends on no more
than before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sensortree.logs.following import UNKNOWN, Followed, Stand
from sensortree.logs.purchases import NEVER, Purchases
from sensortree.types import Rows

SELDOM = 0.05  # share of rows that go on, below which sensors are a dead end
ENOUGH = 20  # rows that are there, of which that can be said
SOME = 5  # rows that are there, of which it can be said if none at all goes on


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
    return replace(
        followed,
        purchases=Purchases(purchases.sensors, rounds),
        n_needed=n_needed,
        outcomes=outcomes,
        stands=_stands(followed, end),
    )


def _ends(followed: Followed) -> Rows:
    """Round after which each log ends without dead ends, (n_rows,).

    Whether sensors are a dead end is said by rows that are asked for more; then all rows
    end before them, also those that they are enough for: else who is left would be told
    apart by what was read.
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


def _stands(followed: Followed, end: Rows) -> tuple[Stand, ...]:
    """Where rows stand, as far as their logs go now."""
    cut = []
    reached = followed.stands[: int(end.max(initial=0)) + 1]
    for after, (rows, ahead, belief) in enumerate(reached):
        left = end[rows] >= after
        cut.append(Stand(rows[left], ahead[left], belief[left]))
    return tuple(cut)
