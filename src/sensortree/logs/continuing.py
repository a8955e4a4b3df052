"""`continue_rows`: who stands in for rows whose log ended, and how far a log reaches.

A row i whose log ended when R was known lacks the readings of other sensors. Among the rows
of its class and fold for which more was bought, the most similar one stands in for it. What
is similar is judged by what was known of both, in three parts that count alike:

    prognosis    what R says about the label;
    propensity   how likely buying goes on, given R;
    readings     of R.

Buying ended for no reason but what was known, so that who is similar in R, and of the same
label, is as likely to have read anything that comes next. Prognosis and propensity are both
there in case one of them is learned wrongly; matching by both is not proved to help. A row
counts once for itself, and once for each row that it stands in for; these are the weights
of the log.

A row goes on with its own readings and, where it has none, with those of its stand-in,
moved to where the row is (`Gaussians.moved`). What the two were known by is kept, so that
what leaves lose can be put right by how they differ (`Continued.put_right`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from sensortree.leaves.logistic import LogisticEngine
from sensortree.leaves.rows import Continued, owner_of
from sensortree.leaves.standardising import moments
from sensortree.logs.estimate import LEAST_SHARE, effective_size
from sensortree.logs.gaussians import learn_gaussians, patterns_of
from sensortree.sensors.reader import joined_readings
from sensortree.sensors.sensor import SensorSet
from sensortree.types import Array, Mask, Rows

# Effective number of rows that a set of sensors wants, beside `LEAST_SHARE` of all.
LEAST_ROWS = 30
# Columns up to which products of them count.
PRODUCTS = 12
# Probability that a logarithm takes for the least.
LEAST_LIKELY = 1e-3
N_PREDICTED = 3  # numbers that are predicted of a row

Subset = frozenset[str]


@dataclass(frozen=True, eq=False)
class LogRows:
    """Rows of a log, as far as they were read."""

    sensors: SensorSet
    blocks: list[Array]  # of each sensor, NaN where nothing was bought, (n_rows, width)
    bought: Mask  # (n_rows, n_sensors)
    level: Rows  # the class, or the group that a number belongs to, (n_rows,)
    fold: Rows  # (n_rows,)
    label_influenced_buying: bool

    def has(self, subset: Iterable[str]) -> Mask:
        """Rows for which all of a subset was bought, (n_rows,)."""
        return np.asarray(self.bought[:, self.sensors.mask(subset)].all(axis=1))

    @property
    def least(self) -> float:
        """Effective number of rows that is enough; what all rows have always is."""
        n_rows = len(self.level)
        return max(LEAST_SHARE * n_rows, min(LEAST_ROWS, n_rows))


def continue_rows(log: LogRows, free: Subset) -> Continued:
    """Find out how far a log reaches, and who stands in for whom.

    `free` are the sensors that are known of all rows.
    """
    reach: list[Subset] = []
    found: list[StandIns] = []
    # The set that has most, then for each sensor that is not in it the one that has most
    # beside that sensor.
    wanted = [free, *(log.sensors.closure(name) | free for name in log.sensors.names)]
    for needed in wanted:
        if any(needed <= within for within in reach):
            continue
        most = _most_beside(needed, log)
        if most is not None and not any(most[0] <= within for within in reach):
            reach.append(most[0])
            found.append(most[1])
    return Continued(
        log.sensors,
        tuple(filled_blocks(log, *each) for each in zip(reach, found, strict=True)),
        tuple(reach),
        log.bought,
        log.level,
        len(log.level),
        np.arange(len(log.level)),
        np.stack([each.other for each in found]),
        np.stack([each.predicted for each in found]),
        log.label_influenced_buying,
    )


def filled_blocks(log: LogRows, subset: Subset, found: StandIns) -> list[Array]:
    """Readings of the sensors of a set, filled where nothing was bought.

    Of other sensors no columns.
    """
    sensors = log.sensors
    values = joined_readings(log.blocks, sensors, subset, np.arange(len(log.level)))
    owner = owner_of(log.blocks, sensors, subset)
    known = np.asarray(log.bought[:, owner])
    patterns = [(pattern[owner], rows) for pattern, rows in found.patterns]
    n_levels = int(log.level.max()) + 1
    gaussians = learn_gaussians(values, known, log.level, n_levels, patterns)
    moved = gaussians.moved(values, found.other, patterns, log.level)
    filled = np.where(known, values, moved)
    return [
        np.ascontiguousarray(filled[:, owner == sensor])
        for sensor in range(len(sensors))
    ]


def _most_beside(needed: Subset, log: LogRows) -> tuple[Subset, StandIns] | None:
    """The largest set with some sensors that enough rows have, and who stands in for whom.

    The sensor that most rows lack goes first; None if even those needed are too rare.
    """
    sensors = log.sensors
    kept = frozenset(sensors.names)
    while True:
        if sensors.admissible(kept) and log.has(kept).sum() >= log.least:
            found = stand_ins(log, kept)
            if effective_size(np.bincount(found.other).astype(float)) >= log.least:
                return kept, found
        left = [name for name in sensors.names if name in kept - needed]
        if not left:
            return None
        rows = {name: int(log.has(kept - {name}).sum()) for name in left}
        kept = kept - {max(reversed(left), key=rows.__getitem__)}


@dataclass(frozen=True, eq=False)
class StandIns:
    """Which row stands in for each row within a set of sensors, and why."""

    # Where the row stands that stands in for each; itself if it has all, (n_rows,).
    other: Rows
    # What was predicted of a row by what was known of it, and of its stand-in by the same,
    # (n_rows, 2, n_predicted).
    predicted: Array
    # Sensors that count as known, (n_sensors,), and the rows of which.
    patterns: list[tuple[Mask, Rows]]


def stand_ins(log: LogRows, subset: Subset) -> StandIns:
    """Find who stands in for whom."""
    complete = log.has(subset)
    n_rows = len(complete)
    found, predicted = np.arange(n_rows), np.zeros((n_rows, 2, N_PREDICTED))
    members = log.sensors.mask(subset)
    patterns = patterns_of(log.bought & members, ~complete)
    for pattern, rows in patterns:
        names = np.array(log.sensors.names)[pattern].tolist()
        there = log.has(names)
        columns, outlook = likeness(log, frozenset(names), there, complete)
        similar = np.full((n_rows, columns.shape[1]), np.nan)
        similar[there] = columns
        _match(similar, rows, np.flatnonzero(complete), log, found)
        likely = np.empty((n_rows, N_PREDICTED))
        likely[there] = outlook
        predicted[rows, 0], predicted[rows, 1] = likely[rows], likely[found[rows]]
    return StandIns(found, predicted, patterns)


def likeness(
    log: LogRows, known: Subset, there: Mask, complete: Mask
) -> tuple[Array, Array]:
    """Columns by which rows that know some sensors are similar, and predictions of each.

    The columns are prognosis, propensity and readings, each of a variance of 1 in all,
    (n_there, n_columns). What is predicted: how likely the row's own label is, by the
    prognosis: the probability, and its logarithm; and the logarithm of how likely buying
    goes on, (n_there, 3).
    """
    rows = np.flatnonzero(there)
    X = joined_readings(log.blocks, log.sensors, known, rows)
    center, scale = moments(X, np.ones(len(X)))
    X = np.where(np.isnan(X), 0.0, (X - center) / scale)
    level, fold = log.level[rows], log.fold[rows]
    goes_on = complete[rows].astype(np.intp)
    degree = 2 if X.shape[1] <= PRODUCTS else 1

    def likely(target: Rows, seen: Array) -> Array:
        """What is likely, by what was learned without a row's fold; the same if nothing."""
        n_classes = int(target.max()) + 1
        if n_classes < 2 or not seen.shape[1]:
            share = np.bincount(target, minlength=n_classes) / len(target)
            return np.tile(np.maximum(share, LEAST_LIKELY), (len(target), 1))
        engine = LogisticEngine(target, n_classes, None, fold, "evidence", degree)
        return np.maximum(engine.judge(seen)[0], LEAST_LIKELY)

    label = np.eye(int(level.max()) + 1)[level]
    seen = np.hstack([X, label]) if log.label_influenced_buying else X
    prognosis, propensity = likely(level, X), likely(goes_on, seen)
    own = prognosis[np.arange(len(rows)), level]
    outlook = np.column_stack([own, np.log(own), np.log(propensity[:, -1])])
    parts = [np.log(prognosis[:, 1:]), np.log(propensity[:, 1:]), X]
    parts = [part for part in parts if np.ptp(part, axis=0).any()]
    columns = [_as_one(part) for part in parts]
    return np.hstack([np.empty((len(rows), 0)), *columns]), outlook


def _as_one(columns: Array) -> Array:
    """Columns whose variances sum to one; those that do not vary as they are."""
    total = float(columns.var(axis=0).sum())
    return columns / total**0.5 if total > 0 else columns


def _match(
    similar: Array, rows: Rows, complete: Rows, log: LogRows, found: Rows
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


def blocks_seen(log: Continued, widths: Sequence[int]) -> list[Array]:
    """Readings of each sensor as a search looks at them; 0 of what is out of reach."""
    seen = []
    for sensor, name in enumerate(log.sensors.names):
        only = frozenset({name})
        nothing = np.zeros((len(log.own), widths[sensor]))
        seen.append(log.block(sensor, only) if log.reaches(only) else nothing)
    return seen


def sets_beyond(log: Continued) -> list[list[str]]:
    """Sensors, pairs and threes of them out of reach, none within another.

    Not those that 'one_of' forbids anyway.
    """
    sensors, names = log.sensors, log.sensors.names
    found: list[tuple[str, ...]] = []
    within: list[tuple[str, ...]] = [()]
    for _ in range(3):
        longer: list[tuple[str, ...]] = []
        for few in within:
            start = names.index(few[-1]) + 1 if few else 0
            for name in names[start:]:
                more = (*few, name)
                if any(set(less) <= set(more) for less in found):
                    continue
                (longer if log.reaches(frozenset(more)) else found).append(more)
        within = longer
    return [
        list(few)
        for few in found
        if sensors.admissible(frozenset[str]().union(*map(sensors.closure, few)))
    ]
