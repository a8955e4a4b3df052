"""What stopping in a cell loses: learned from one half of its rows, judged on the other.

What half a cell says depends on which half. The loss here is the mean over all halves, by
what is known of random halves: each class has half of its rows in one, N_c / 2, give or
take sqrt(N_c) / 2. So it is the same in whatever order rows, sensors or classes come, and
cells of few rows, or of an answer that is in doubt, look as bad as they are. Each half is
shrunk to all rows by `STOPPING_PRIOR` of them.

Cells are told by sums over their rows: weights of the classes, or of levels of a number;
for squared loss weights, numbers and squares. Sums stand first, (n_sums, ...).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from sensortree.constants import STOPPING_PRIOR, STOPPING_SURE, TINY
from sensortree.leaves.rows import TrainingRows
from sensortree.sensors.loss import Loss
from sensortree.sensors.number_loss import NumberLoss, weighted_quantile
from sensortree.types import Array, Rows

# The normal density at 0.
NORMAL = 1 / np.sqrt(2 * np.pi)


class Stopping(Protocol):
    """What stopping loses in cells that are told by sums over their rows."""

    @property
    def sums(self) -> Array:
        """What each row adds to the sums of its cell, (n_rows, n_sums)."""

    def risk(self, cells: Array) -> Array:
        """Loss of all rows of each cell, (n_sums, ...) to (...)."""


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
class Answers:
    """A loss of answers, of which a half takes the one that seems the cheapest.

    Only the best two answers are thought to be in doubt. With D, by how much the first
    loses more than the second, a half of the rows sees D / 2, give or take sigma, a normal
    variable; and of what is larger there, the other half has less.

    Attributes
    ----------
    sums : ndarray of shape (n_rows, n_classes)
    loss : ndarray of shape (n_classes, n_answers)
        Of at least two answers.
    """

    sums: Array
    loss: Array

    @cached_property
    def prior(self) -> Array:
        """Shares of the classes, (n_classes,)."""
        return np.asarray(self.sums.sum(axis=0) / self.sums.sum())

    def risk(self, cells: Array) -> Array:
        """Loss of all rows of each cell, (n_classes, ...) to (...)."""
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

    Parameters
    ----------
    more : ndarray
        By how much the second loses more.
    seen : ndarray
        The same with the rows of the whole, by which a half goes.
    doubt : ndarray
        Sum of squares of how much the answers are apart for each row.
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
class Scores:
    """A loss of probabilities, which are those of a half.

    Halves stand at points of the same mean and spread: each class in turn has more rows
    in one half.

    Attributes
    ----------
    sums : ndarray of shape (n_rows, n_classes)
    loss : Loss
    refer : ndarray of shape (n_classes,)
        What a person costs; infinite if there is none.
    """

    sums: Array
    loss: Loss
    refer: Array

    @cached_property
    def prior(self) -> Array:
        """Shares of the classes, (n_classes,)."""
        return np.asarray(self.sums.sum(axis=0) / self.sums.sum())

    def risk(self, cells: Array) -> Array:
        """Loss of all rows of each cell, (n_classes, ...) to (...)."""
        each = cells.reshape(len(cells), -1).T
        total = np.zeros(len(each))
        for c in range(len(cells)):
            more = np.minimum(np.sqrt(len(cells) * each[:, c]), each[:, c]) / 2
            for sign in (-1, 1):
                half = each / 2
                half[:, c] += sign * more
                said = half + STOPPING_PRIOR * self.prior
                said /= said.sum(axis=1, keepdims=True)
                total += self.loss.expect(each - half, said) / len(cells)
        if np.isfinite(self.refer).all():
            total = np.minimum(total, each @ self.refer)
        return total.reshape(cells.shape[1:])


@dataclass(frozen=True, eq=False)
class Squares:
    """Squared loss of the mean of a half.

    Attributes
    ----------
    sums : ndarray of shape (n_rows, 3)
        Weight, weighted number and weighted square.
    """

    sums: Array

    def risk(self, cells: Array) -> Array:
        """Loss of all rows of each cell, (3, ...) to (...)."""
        prior = self.sums[:, 1].sum() / self.sums[:, 0].sum()
        n = cells[0]
        mean = cells[1] / np.maximum(n, TINY)
        spread = np.maximum(cells[2] / np.maximum(n, TINY) - mean**2, 0)
        # the mean of a half is off by as much as that of the other, the other way
        off = spread / np.maximum(n - 1, 1)
        own = n / (n + 2 * STOPPING_PRIOR)
        far = ((1 - own) * (mean - prior)) ** 2
        return np.asarray(n * (spread - off + far + (1 + own) ** 2 * off))
