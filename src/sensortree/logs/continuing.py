"""`continue_rows`: who stands in for rows whose log ended, and how far a log reaches.

A row i whose log ended when R was known lacks the readings of other sensors. Among the rows
of its class and fold for which more was bought, the most similar one stands in for it. What
is similar is said by what was known of both, in three parts that count alike:

    prognosis    what R says about the label;
    propensity   how likely buying goes on, given R;
    readings     of R.

Buying ended for no reason but what was known, so that who is similar in R, and of the same
label, is as likely to have read anything that comes next. Prognosis and propensity are both
there in case one of them is learned wrongly; matching by both is not proved to help. A row
counts once for itself, and once for each row that it stands in for; these are the weights
of the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from sensortree.leaves.continued import Continued, effective_size
from sensortree.leaves.engine import LogisticEngine
from sensortree.leaves.standardising import moments
from sensortree.logs.support import LEAST_SHARE
from sensortree.sensors.reader import together
from sensortree.sensors.sensor_set import SensorSet
from sensortree.types import Array, Mask, Rows

# Effective number of rows that a set of sensors wants, beside `LEAST_SHARE` of all.
LEAST_ROWS = 30
# Sets of known sensors of which similarity is learned; rows with rarer ones count as if
# less was known. Columns up to which products of them count.
PATTERNS, PRODUCTS = 48, 12
# Probability that a logarithm takes for the least.
LEAST_LIKELY = 1e-3

Subset = frozenset[str]


@dataclass(frozen=True, eq=False)
class Logged:
    """Rows of a log, as far as they were read.

    Attributes
    ----------
    sensors : SensorSet
    blocks : list of n_sensors arrays of shape (n_rows, width)
        NaN where nothing was bought.
    bought : ndarray of bool of shape (n_rows, n_sensors)
    level : ndarray of shape (n_rows,)
        The class, or the group that a number belongs to.
    fold : ndarray of shape (n_rows,)
    label_influenced_buying : bool
    """

    sensors: SensorSet
    blocks: list[Array]
    bought: Mask
    level: Rows
    fold: Rows
    label_influenced_buying: bool

    def has(self, subset: Iterable[str]) -> Mask:
        """Rows for which all of a subset was bought, (n_rows,)."""
        return np.asarray(self.bought[:, self.sensors.mask(subset)].all(axis=1))

    @property
    def least(self) -> float:
        """Effective number of rows that is enough; what all rows have always is."""
        n_rows = len(self.level)
        return max(LEAST_SHARE * n_rows, min(LEAST_ROWS, n_rows))


def continue_rows(log: Logged, free: Subset) -> Continued:
    """Find out how far a log reaches, and who stands in for whom.

    Parameters
    ----------
    log : Logged
    free : set of str
        Sensors that are known of all rows.
    """
    reach: list[Subset] = []
    others: list[Rows] = []
    # The set that has most, then for each sensor that is not in it the one that has most
    # beside that sensor.
    wanted = [free, *(log.sensors.closure(name) | free for name in log.sensors.names)]
    for needed in wanted:
        if any(needed <= within for within in reach):
            continue
        found = _most_beside(needed, log)
        if found is not None and not any(found[0] <= within for within in reach):
            reach.append(found[0])
            others.append(found[1])
    return Continued(
        log.sensors,
        log.blocks,
        tuple(reach),
        log.bought,
        np.arange(len(log.level)),
        np.stack(others),
        log.label_influenced_buying,
    )


def _most_beside(needed: Subset, log: Logged) -> tuple[Subset, Rows] | None:
    """The largest set with some sensors that enough rows have, and who stands in for whom.

    The sensor that most rows lack goes first; None if even those needed are too rare.
    """
    sensors = log.sensors
    kept = frozenset(sensors.names)
    while True:
        if sensors.admissible(kept) and log.has(kept).sum() >= log.least:
            others = stand_ins(log, kept)
            if effective_size(others, len(others)) >= log.least:
                return kept, others
        left = [name for name in sensors.names if name in kept - needed]
        if not left:
            return None
        rows = {name: int(log.has(kept - {name}).sum()) for name in left}
        kept = kept - {max(reversed(left), key=rows.__getitem__)}


def stand_ins(log: Logged, subset: Subset) -> Rows:
    """Where the row stands that stands in for each, (n_rows,); itself if it has all."""
    complete = log.has(subset)
    found = np.arange(len(complete))
    members = log.sensors.mask(subset)
    known = log.bought & members
    for pattern, rows in _patterns(known, ~complete):
        names = np.array(log.sensors.names)[pattern].tolist()
        there = log.has(names)
        columns = likeness(log, frozenset(names), there, complete)
        similar = np.full((len(complete), columns.shape[1]), np.nan)
        similar[there] = columns
        _match(similar, rows, np.flatnonzero(complete), log, found)
    return found


def _patterns(known: Mask, lacking: Mask) -> list[tuple[Mask, Rows]]:
    """Sets of known sensors, and the rows that count as if just these were known."""
    rows = np.flatnonzero(lacking)
    sets, set_of = np.unique(known[rows], axis=0, return_inverse=True)
    set_of = set_of.ravel()
    size = np.bincount(set_of, minlength=len(sets))
    frequent = np.sort(np.argsort(-size, kind="stable")[:PATTERNS])
    nothing: Mask = np.asarray(known.all(axis=0))  # what is known of everybody
    kept = np.unique(np.vstack([sets[frequent], nothing[None]]), axis=0)
    inside = (kept[None] <= sets[:, None]).all(axis=2)  # (n_sets, n_kept)
    counts_as = np.where(inside, kept.sum(axis=1), -1).argmax(axis=1)
    found = []
    for number, pattern in enumerate(kept):
        own = rows[counts_as[set_of] == number]
        if own.size:
            found.append((pattern, own))
    return found


def likeness(log: Logged, known: Subset, there: Mask, complete: Mask) -> Array:
    """What rows are similar by that know some sensors, (n_there, n_columns).

    Prognosis, propensity and readings, each of them of a variance of 1 in all.
    """
    rows = np.flatnonzero(there)
    X = together(log.blocks, log.sensors, known, rows)
    center, scale = moments(X, np.ones(len(X)))
    X = np.where(np.isnan(X), 0.0, (X - center) / scale)
    level, fold = log.level[rows], log.fold[rows]
    goes_on = complete[rows].astype(np.intp)
    degree = 2 if X.shape[1] <= PRODUCTS else 1

    def told(target: Rows, seen: Array) -> Array:
        """Logarithms of what is likely, by what was learned without a row's fold."""
        n_classes = int(target.max()) + 1
        if n_classes < 2 or not seen.shape[1]:
            return np.zeros((len(target), 0))
        engine = LogisticEngine(target, n_classes, None, fold, "evidence", degree)
        said, _ = engine.judge(seen)
        return np.log(np.maximum(said[:, 1:], LEAST_LIKELY))

    label = np.eye(int(level.max()) + 1)[level]
    seen = np.hstack([X, label]) if log.label_influenced_buying else X
    parts = [told(level, X), told(goes_on, seen), X]
    return np.hstack([_as_one(part) for part in parts])


def _as_one(columns: Array) -> Array:
    """Columns whose variances sum to one; those that do not vary as they are."""
    total = float(columns.var(axis=0).sum())
    return columns / total**0.5 if total > 0 else columns


def _match(
    similar: Array, rows: Rows, complete: Rows, log: Logged, found: Rows
) -> None:
    """Set who stands in for some rows: of the same label, and the same fold if there is."""
    for level in np.unique(log.level[rows]):
        alike = complete[log.level[complete] == level]
        alike = alike if alike.size else complete
        for fold in np.unique(log.fold[rows]):
            asking = rows[(log.level[rows] == level) & (log.fold[rows] == fold)]
            if not asking.size:
                continue
            near = alike[log.fold[alike] == fold]
            near = near if near.size else alike
            if similar.shape[1]:
                nearest = pairwise_distances_argmin(similar[asking], similar[near])
            else:  # nothing is known of them: each in turn
                nearest = np.arange(len(asking)) % len(near)
            found[asking] = near[nearest]
