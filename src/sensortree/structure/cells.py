"""Cells: readings of each sensor as a few values, told from training rows alone.

A sensor of few distinct readings has a cell for each; so has a category, whose rare levels
share one. Other numbers are cut where wide gaps are between them, such as between levels
that are measured with a little noise, or else at their quantiles; readings of several
columns are put into clusters. Where nothing was read is a cell of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sensortree.constants import (
    CELL_CLUSTER_ROUNDS,
    CELL_LEVELS,
    CELL_ROWS,
    CELL_SHARE,
    CELL_WIDE_GAP,
    FEWEST_CELLS,
    MOST_CELLS,
)
from sensortree.leaves.folds import first_of_runs, order_of_rows
from sensortree.leaves.rows import TrainingRows
from sensortree.leaves.standardising import moments
from sensortree.sensors.levels import Levels, levels_of
from sensortree.types import Array, Rows


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
    block: Array, weight: Array, levels: Levels = (), number: int = MOST_CELLS
) -> Rows:
    """The cell of each reading of one sensor, (n_rows,).

    Parameters
    ----------
    block : ndarray of shape (n_rows, width)
    weight : ndarray of shape (n_rows,)
    levels : tuple of tuples of int
        Columns that are the levels of one category.
    number : int
        Cells that other numbers are cut into; clusters are twice as many.

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
    first = first_of_runs(block[order].T, len(block))
    number = np.empty(len(block), dtype=np.intp)
    number[order] = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(block)]))
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
            return (
                cuts
                if ratio[n_gaps - 1] > CELL_WIDE_GAP
                else np.empty(0, dtype=np.intp)
            )
    return np.empty(0, dtype=np.intp)


def _clusters(block: Array, weight: Array, number: int) -> Rows:
    """Clusters of like readings: the widest is split along its axis, then all settle."""
    center, scale = moments(block, weight)
    points = np.nan_to_num((block - center) / scale)
    cluster = np.zeros(len(points), dtype=np.intp)
    for new in range(1, number):
        spread = _spread(points, cluster, weight, new)
        widest = np.flatnonzero(cluster == spread.argmax())
        if not spread.max() > 0:
            break
        inner = points[widest] - np.average(points[widest], 0, weight[widest])
        axis = np.linalg.eigh((inner * weight[widest, None]).T @ inner)[1][:, -1]
        cluster[widest[inner @ axis > 0]] = new
    for _ in range(CELL_CLUSTER_ROUNDS):
        centers = _centers(points, cluster, weight)
        away = (centers**2).sum(axis=1) - 2 * points @ centers.T
        cluster = np.unique(away.argmin(axis=1), return_inverse=True)[1]
    return cluster


def _centers(points: Array, cluster: Rows, weight: Array) -> Array:
    """Weighted mean of each cluster, (n_clusters, width)."""
    member = np.eye(cluster.max() + 1)[cluster] * weight[:, None]
    return np.asarray((member.T @ points) / member.sum(axis=0)[:, None])


def _spread(points: Array, cluster: Rows, weight: Array, number: int) -> Any:
    """Weighted squared distance from the center in each cluster, (n_clusters,)."""
    away = ((points - _centers(points, cluster, weight)[cluster]) ** 2).sum(axis=1)
    return np.asarray(np.bincount(cluster, weight * away, number), dtype=np.float64)


def joint(codes: Rows, sensors: Sequence[int], rows: Rows) -> list[Rows]:
    """Rows that agree in the cells of some sensors, in the order of these cells."""
    number = np.zeros(len(rows), dtype=np.intp)
    for j in sensors:
        number = np.unique(
            number * (codes[:, j].max() + 1) + codes[rows, j], return_inverse=True
        )[1]
    order = np.argsort(number, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(number[order])) + 1)
