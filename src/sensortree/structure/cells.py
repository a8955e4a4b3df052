"""Cells of the "planned" search: readings as a few values, and what stopping there loses.

Cells are told from training rows alone. A sensor of few distinct readings has a cell for
each; so has a category, whose rare levels share one. Other numbers are cut where wide gaps
are between them, such as between levels that are measured with a little noise, or else at
their quantiles; readings of several columns are put into clusters. Where nothing was read
is a cell of its own.

What stopping loses is learned from one half of a cell's rows and judged on the other. What
half a cell says depends on which half. The loss here is the mean over all halves, by what
is known of random halves: each class has half of its rows in one, N_c / 2, give or take
sqrt(N_c) / 2. So it is the same in whatever order rows, sensors or classes come, and cells
of few rows, or of an answer that is in doubt, look as bad as they are. Each half is shrunk
to all rows by `STOPPING_PRIOR` of them. Cells are described by sums over their rows:
weights of the classes, or of levels of a number; for squared loss weights, numbers and
squares. Sums stand first, (n_sums, ...).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from sensortree.constants import (
    CELL_CLUSTER_ROUNDS,
    CELL_LEVELS,
    CELL_ROWS,
    CELL_SHARE,
    CELL_WIDE_GAP,
    FEWEST_CELLS,
    MOST_CELLS,
    STOPPING_PRIOR,
    STOPPING_SURE,
    TINY,
)
from sensortree.leaves.folds import order_of_rows, run_numbers
from sensortree.leaves.rows import TrainingRows
from sensortree.leaves.standardising import moments
from sensortree.sensors.loss import Loss, NumberLoss, weighted_quantile
from sensortree.sensors.transforms import LevelColumns, levels_of
from sensortree.types import Array, Rows

# The normal density at 0.
NORMAL = 1 / np.sqrt(2 * np.pi)


def stopping_of(data: TrainingRows) -> Stopping:
    """How stopping is judged by the loss that is asked for."""
    loss, weight, y = data.loss, data.weight, data.y
    if isinstance(loss, NumberLoss) and loss.risk == "squared":
        return Squares(weight[:, None] * np.column_stack([np.ones(len(y)), y, y**2]))
    levels = data.task.levels(y, weight)
    if isinstance(loss, NumberLoss):
        levels = np.unique(levels, return_inverse=True)[1]
        sums = np.eye(levels.max() + 1)[levels] * weight[:, None]
        half = 0.5 if loss.quantile is None else loss.quantile
        at = [weighted_quantile(y[c > 0], weight[c > 0], half) for c in sums.T]
        lost = np.column_stack([loss.distance(y, np.full(len(y), a)) for a in at])
        return Answers(sums, sums.T @ lost / sums.sum(axis=0)[:, None])
    sums = np.eye(len(data.classes))[levels] * weight[:, None]
    refer = np.full(sums.shape[1], np.inf)
    if data.refer_costs is not None and data.may_refer:
        refer = sums.T @ data.handed_over() / np.maximum(sums.sum(axis=0), TINY)
    if loss.score is not None:
        return Scores(sums, loss, refer)
    matrix = 1.0 - np.eye(len(refer)) if loss.matrix is None else loss.matrix
    handed = refer[:, None] if np.isfinite(refer).all() else np.empty((len(refer), 0))
    return Answers(sums, np.hstack([matrix, handed]))


@dataclass(frozen=True, eq=False)
class Stopping(ABC):
    """What stopping loses in cells that are told by sums over their rows."""

    sums: Array  # what each row adds to the sums of its cell, (n_rows, n_sums)

    @cached_property
    def prior(self) -> Array:
        """Shares of the classes, (n_classes,)."""
        return np.asarray(self.sums.sum(axis=0) / self.sums.sum())

    @abstractmethod
    def risk(self, cells: Array) -> Array:
        """Loss of all rows of each cell, (n_sums, ...) to (...)."""


@dataclass(frozen=True, eq=False)
class Answers(Stopping):
    """A loss of answers, (n_classes, n_answers): a half takes that which seems cheapest.

    Only the best two answers are thought to be in doubt. With D, by how much the first
    loses more than the second, a half of the rows sees D / 2, give or take sigma, a normal
    variable; and of what is larger there, the other half has less. There are at least two
    answers.
    """

    loss: Array

    def risk(self, cells: Array) -> Array:
        """Loss of all rows of each cell, by class."""
        lost = np.tensordot(self.loss.T, cells, 1)
        known = STOPPING_PRIOR * (self.loss.T @ self.prior)
        apart = (self.loss[:, :, None] - self.loss[:, None, :]) ** 2
        if len(lost) == 2:
            more, doubt = lost[1] - lost[0], np.tensordot(apart[:, 0, 1], cells, 1)
            taken = _taken(more, more + 2 * (known[1] - known[0]), doubt)
            return np.asarray(lost[0] + taken)
        first, second = _least_two(
            lost / 2 + known.reshape(-1, *[1] * (cells.ndim - 1))
        )
        better = np.take_along_axis(lost, first[None], 0)[0]
        more = np.take_along_axis(lost, second[None], 0)[0] - better
        pair, doubt = first * len(lost) + second, np.zeros(cells.shape[1:])
        for each, weight in zip(apart, cells, strict=True):
            doubt += each.ravel()[pair] * weight
        taken = _taken(more, more + 2 * (known[second] - known[first]), doubt)
        return np.asarray(better + taken)


def _taken(more: Array, seen: Array, doubt: Array) -> Array:
    """What halves lose beyond the first of two answers, as some take the second.

    By how much the second loses `more`, and that as `seen` with the rows of the whole, by
    which a half goes; `doubt` sums squares of how far the answers are apart for each row.
    """
    spread = np.sqrt(np.maximum(doubt, TINY))
    sure = np.clip(seen / spread, -STOPPING_SURE, STOPPING_SURE)
    return np.asarray(more * ndtr(-sure) + spread * NORMAL * np.exp(-(sure**2) / 2))


def _least_two(values: Array) -> tuple[Rows, Rows]:
    """Places of the least and the next along the first axis."""
    first = values.argmin(axis=0)
    rest = values.copy()
    np.put_along_axis(rest, first[None], np.inf, 0)
    return first, rest.argmin(axis=0)


@dataclass(frozen=True, eq=False)
class Scores(Stopping):
    """A loss of probabilities, which are those of a half.

    Halves stand at points of the same mean and spread: each class in turn has more rows
    in one half.
    """

    loss: Loss
    refer: Array  # what a person costs, (n_classes,); infinite if there is none

    def risk(self, cells: Array) -> Array:
        """Loss of all rows of each cell, by class."""
        each = cells.reshape(len(cells), -1).T
        total = np.zeros(len(each))
        for c in range(len(cells)):
            more = np.minimum(np.sqrt(len(cells) * each[:, c]), each[:, c]) / 2
            for sign in (-1, 1):
                half = each / 2
                half[:, c] += sign * more
                proba = half + STOPPING_PRIOR * self.prior
                proba /= proba.sum(axis=1, keepdims=True)
                total += self.loss.expect(each - half, proba) / len(cells)
        if np.isfinite(self.refer).all():
            total = np.minimum(total, each @ self.refer)
        return total.reshape(cells.shape[1:])


@dataclass(frozen=True, eq=False)
class Squares(Stopping):
    """Squared loss of the mean of a half: sums are weight, number and square."""

    def risk(self, cells: Array) -> Array:
        """Loss of all rows of each cell."""
        prior = self.sums[:, 1].sum() / self.sums[:, 0].sum()
        n = cells[0]
        mean = cells[1] / np.maximum(n, TINY)
        spread = np.maximum(cells[2] / np.maximum(n, TINY) - mean**2, 0)
        # the mean of a half is off by as much as that of the other, the other way
        off = spread / np.maximum(n - 1, 1)
        own = n / (n + 2 * STOPPING_PRIOR)
        far = ((1 - own) * (mean - prior)) ** 2
        return np.asarray(n * (spread - off + far + (1 + own) ** 2 * off))


def cells_of(data: TrainingRows) -> Rows:
    """The cell of each reading, (n_rows, n_sensors); cells of a sensor count from 0."""
    number = cells_of_numbers(float(data.weight.sum()))
    coded = [
        cells(block, data.weight, levels_of(data.reader.transformers.get(name)), number)
        for name, block in zip(data.sensors.names, data.blocks, strict=True)
    ]
    return np.column_stack(coded)


def cells_of_numbers(n_rows: float) -> int:
    """Cells that numbers are cut into, so that those of two sensors are filled."""
    return int(np.clip((n_rows / CELL_ROWS) ** 0.5, FEWEST_CELLS, MOST_CELLS))


def cells(
    block: Array, weight: Array, levels: LevelColumns = (), number: int = MOST_CELLS
) -> Rows:
    """The cell of each reading of one sensor, (n_rows,).

    `levels` are columns that are the levels of one category. Other numbers are cut into
    `number` cells; clusters are twice as many.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree.structure.cells import cells
    >>> cells(np.array([[3.0], [1.0], [np.nan], [3.0]]), np.ones(4))
    array([1, 0, 2, 1])
    >>> cells(np.arange(12.0)[:, None], np.ones(12), number=3)
    array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    """
    distinct = _distinct(block)
    if distinct.max() < CELL_LEVELS:
        return distinct
    if len(levels) == 1 and len(levels[0]) == block.shape[1]:
        mass = np.bincount(distinct, weight)
        place = np.argsort(np.argsort(-mass, kind="stable"))
        return np.minimum(place, CELL_LEVELS - 1)[distinct]
    gap = np.isnan(block).all(axis=1)
    read, seen = np.zeros(len(block), dtype=np.intp), block[~gap]
    if seen.shape[1] == 1:
        read[~gap] = _cut(seen[:, 0], weight[~gap], number)
    else:
        read[~gap] = _clusters(seen, weight[~gap], min(2 * number, CELL_LEVELS))
    return np.where(gap, read.max() + 1, read) if gap.any() else read


def _distinct(block: Array) -> Rows:
    """Number of each row among the distinct ones, which are in order; NaN is last."""
    order = order_of_rows(block.T, len(block))
    number = np.empty(len(block), dtype=np.intp)
    number[order] = run_numbers(block[order].T, len(block))
    return number


def _cut(values: Array, weight: Array, number: int) -> Rows:
    """Numbers cut at wide gaps, or where the weight below is nearest to equal shares."""
    levels, at = np.unique(values, return_inverse=True)
    below = np.cumsum(np.bincount(at, weight), dtype=float)
    wide = _wide_gaps(np.diff(levels), below)
    if len(wide):
        return np.asarray(np.searchsorted(wide, at))
    shares = below[-1] * np.arange(1, number) / number
    cuts = np.abs(below[:-1, None] - shares).argmin(axis=0)
    return np.asarray(np.searchsorted(np.unique(cuts), at))


def _wide_gaps(gaps: Array, below: Array) -> Rows:
    """The gaps that part numbers into a few cells, in order; none if none are wide."""
    widest = np.argsort(-gaps, kind="stable")[:CELL_LEVELS]
    ratio = gaps[widest[:-1]] / gaps[widest[1:]]
    for n_gaps in np.argsort(-ratio, kind="stable") + 1:
        cuts = np.sort(widest[:n_gaps])
        shares = np.diff(np.r_[0.0, below[cuts], below[-1]]) / below[-1]
        if shares.min() >= CELL_SHARE:
            return cuts if ratio[n_gaps - 1] > CELL_WIDE_GAP else cuts[:0]
    return widest[:0]


def _clusters(block: Array, weight: Array, number: int) -> Rows:
    """Clusters of like readings: the widest is split along its axis, then all settle."""
    center, scale = moments(block, weight)
    points = np.nan_to_num((block - center) / scale)
    cluster = np.zeros(len(points), dtype=np.intp)
    for new in range(1, number):
        away = points - _centers(points, cluster, weight)[cluster]
        spread = np.bincount(cluster, weight * (away**2).sum(axis=1), new)
        widest = np.flatnonzero(cluster == spread.argmax())
        if not spread.max() > 0:
            break
        inner = points[widest] - np.average(points[widest], 0, weight[widest])
        axis = np.linalg.eigh((inner * weight[widest, None]).T @ inner)[1][:, -1]
        cluster[widest[inner @ axis > 0]] = new
    for _ in range(CELL_CLUSTER_ROUNDS):
        centers = _centers(points, cluster, weight)
        squares = (centers**2).sum(axis=1) - 2 * points @ centers.T
        cluster = np.unique(squares.argmin(axis=1), return_inverse=True)[1]
    return cluster


def _centers(points: Array, cluster: Rows, weight: Array) -> Array:
    """Weighted mean of each cluster, (n_clusters, width)."""
    member = np.eye(cluster.max() + 1)[cluster] * weight[:, None]
    return np.asarray((member.T @ points) / member.sum(axis=0)[:, None])


def joint(codes: Rows, sensors: Sequence[int], rows: Rows) -> list[Rows]:
    """Rows that agree in the cells of some sensors, in the order of these cells."""
    number = np.zeros(len(rows), dtype=np.intp)
    for j in sensors:
        number = np.unique(
            number * (codes[:, j].max() + 1) + codes[rows, j], return_inverse=True
        )[1]
    order = np.argsort(number, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(number[order])) + 1)
