"""Means over a log, doubly robust, and how sure they are.

For a row i whose log ends after T rounds, and whose way is known after τ rounds::

    w_t = Π_{s<t} 1 / (1 − λ(H_s))
    φ   = q(H_0) + Σ_{t=1}^{min(T, τ)} w_t [q(H_t) − q(H_{t−1})]

The mean of φ is right if λ is, or if q is. Its variance is taken twice, once from the
contributions and once from what was likely, and the larger counts: see `likely_variance`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sensortree.logs.following import Followed
from sensortree.logs.stopping import Stopping
from sensortree.reports.measures import DEVIATIONS
from sensortree.types import Array


@dataclass(frozen=True)
class Estimate:
    """A mean, with its 95 % interval; NaN where it cannot be told."""

    value: float
    low: float
    high: float


FEW = 5  # rows of a kind that is too rare for the normal interval of its share
UNTOLD = Estimate(float("nan"), float("nan"), float("nan"))


def weights(followed: Followed, stopping: Stopping, odds: float = 1.0) -> Array:
    """Weight w of each row after 0, 1, ... rounds, (n_rounds + 1, n_rows).

    It stays as it is from the round on that makes a row's way known; 0 after a log that
    ended before.

    Parameters
    ----------
    followed : Followed
    stopping : Stopping
    odds : float, default=1.0
        By how much the odds of stopping are multiplied.
    """
    n_rows = len(followed.n_needed)
    weight = np.ones((len(followed.stands), n_rows))
    for after in range(1, len(followed.stands)):
        weight[after] = weight[after - 1]
        rows = followed.stands[after - 1].rows
        goes_on = followed.purchases.n_rounds[rows] >= after
        chance = stopping.chance[rows[goes_on], after - 1]
        weight[after, rows[goes_on]] *= 1 + odds * chance / (1 - chance)
        weight[after, rows[~goes_on]] = 0.0
    return weight


def contributions(weight: Array, outlook: Array) -> Array:
    """φ of each row and measure, (n_rows, n_measures)."""
    value: Array = outlook[0].copy()
    for after in range(1, len(outlook)):
        step = weight[after][:, None] * (outlook[after] - outlook[after - 1])
        value += np.where(weight[after][:, None] > 0, step, 0.0)
    return value


def likely_variance(
    followed: Followed, stopping: Stopping, weight: Array, outlook: Array
) -> Array:
    """Variance of φ by how likely rows were to go on, (n_measures,).

    Steps from one round to the next have mean 0 if q is right. Given what was known after
    t rounds, a row goes on with a chance of 1 - λ and then counts 1 / (1 - λ) times, so

        Var φ = Var q(H_0) + Σ_t E[ w_t² v_t / (1 − λ(H_t)) ]
        v_t   = E[ (q(H_{t+1}) − q(H_t))² ]

    over rows that are there after t rounds, those whose log ends there too. The variance
    of the contributions is the same in the long run; but it says nothing of rows that had
    a small chance and were not lucky, and of a few lucky ones too much. v_t is the weighted
    mean of squared steps that were taken. 0 if no log ended too early: the contributions
    say all.

    Parameters
    ----------
    followed : Followed
    stopping : Stopping
    weight : ndarray of shape (n_rounds + 1, n_rows)
    outlook : ndarray of shape (n_rounds + 1, n_rows, n_measures)
    """
    n_rows = len(followed.n_needed)
    if followed.complete.all():
        return np.zeros(outlook.shape[-1])
    variance: Array = outlook[0].var(axis=0, ddof=min(1, n_rows - 1))
    for after in range(len(followed.stands) - 1):
        rows = followed.stands[after].rows
        on = rows[followed.purchases.n_rounds[rows] > after]
        if not on.size:
            continue
        step = outlook[after + 1, on] - outlook[after, on]
        counts = weight[after + 1, on]
        square = counts @ step**2 / counts.sum()
        stays = 1 - stopping.chance[rows, after]
        variance = variance + square * (weight[after, rows] ** 2 / stays).sum() / n_rows
    return variance


def mean_estimate(contribution: Array, variance: float = 0.0) -> Estimate:
    """Mean of what rows contribute, with its normal interval.

    Parameters
    ----------
    contribution : ndarray of shape (n_rows,)
    variance : float, default=0.0
        The least that their variance is taken to be.
    """
    n_rows = len(contribution)
    mean = float(contribution.mean())
    if n_rows < 2:
        return Estimate(mean, float("nan"), float("nan"))
    variance = float(max(variance, contribution.var(ddof=1)))
    spread = DEVIATIONS * (variance / n_rows) ** 0.5
    return Estimate(mean, mean - spread, mean + spread)


def as_share(estimate: Estimate, n_rare: int, size: float) -> Estimate:
    """A share, whose interval ends at 0 and 1, and is wide enough where rows are few.

    Of 30 right answers and no wrong one the normal interval has no width. Where hardly a
    row is of the rarer kind it has at least that of Agresti and Coull.

    Parameters
    ----------
    estimate : Estimate
    n_rare : int
        Rows that speak and are of the rarer kind.
    size : float
        Number of equal rows that those are worth that speak.
    """
    value, low, high = estimate.value, estimate.low, estimate.high
    if n_rare < FEW:
        middle = (size * min(max(value, 0.0), 1.0) + 2) / (size + 4)
        spread = DEVIATIONS * (middle * (1 - middle) / (size + 4)) ** 0.5
        low, high = min(low, middle - spread), max(high, middle + spread)
    return Estimate(value, min(max(low, 0.0), value), max(min(high, 1.0), value))


def ratio_estimate(part: Array, whole: Array) -> Estimate:
    """Ratio of two means, with its interval by the delta method; NaN of nothing."""
    total = float(whole.mean())
    if total <= 0:
        return UNTOLD
    ratio = float(part.mean()) / total
    about = mean_estimate((part - ratio * whole) / total)
    return Estimate(ratio, ratio + about.low, ratio + about.high)
