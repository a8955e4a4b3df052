"""Logs without their dead ends.

Who has bought "x-ray" without "blood" may never go back to blood. Rows that are there have
no chance of what a policy asks, and yet went on once. Their log is ended before that step:
they then stopped where others, who knew the same, went on to blood. Which sensors are known
decides where a log is ended, and never what they read, so that stopping depends on no more
than before. A set with which the way of some rows is known at last is no dead end: what was
read decides there who needs more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sensortree.logs.following import UNKNOWN, Followed, Stand
from sensortree.logs.purchases import NEVER, Purchases
from sensortree.types import Rows

SELDOM = 0.05  # share of rows that go on, below which sensors are a dead end
ENOUGH = 20  # rows that are there, of which that can be said


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
    """Round after which each log ends without dead ends, (n_rows,)."""
    end = followed.purchases.n_rounds.copy()
    rows = np.concatenate([stand.rows for stand in followed.stands[1:]] or [end[:0]])
    after = np.concatenate(
        [
            np.full(len(stand.rows), number, dtype=np.intp)
            for number, stand in enumerate(followed.stands[1:], start=1)
        ]
        or [end[:0]]
    )
    known = followed.purchases.round[rows] <= after[:, None]
    sets, set_of = np.unique(known, axis=0, return_inverse=True)
    set_of = set_of.ravel()
    arrived = _sets_of_arrival(followed)
    for one in np.argsort(-sets.sum(axis=1), kind="stable"):  # the largest first
        if sets[one].tobytes() in arrived:  # who stands there depends on what was read
            continue
        here = np.flatnonzero(set_of == one)
        here = here[end[rows[here]] >= after[here]]  # not cut off already
        goes_on = end[rows[here]] > after[here]
        if len(here) >= ENOUGH and goes_on.mean() < SELDOM:
            end[rows[here]] = after[here] - 1
    return end


def _sets_of_arrival(followed: Followed) -> set[bytes]:
    """Sets of sensors with which the way of some row was known at last."""
    rows = np.flatnonzero(followed.n_needed > 0)
    known = followed.purchases.round[rows] <= followed.n_needed[rows, None]
    return {one.tobytes() for one in np.unique(known, axis=0)}


def _stands(followed: Followed, end: Rows) -> tuple[Stand, ...]:
    """Where rows stand, as far as their logs go now."""
    cut = []
    last = int(end.max(initial=0))  # after which no log goes on
    for after, (rows, ahead, belief) in enumerate(followed.stands[: last + 1]):
        left = end[rows] >= after
        cut.append(Stand(rows[left], ahead[left], belief[left]))
    return tuple(cut)
