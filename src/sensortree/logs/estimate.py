"""Means over a log, doubly robust, and how sure they are.

For a row i whose log ends after T rounds, and whose way is known after τ rounds::

    w_t = Π_{s<t} 1 / (1 − λ(H_s))
    φ   = q(H_0) + Σ_{t=1}^{min(T, τ)} w_t [q(H_t) − q(H_{t−1})]

The mean of φ is right if λ is, or if q is. Its variance is taken twice, once from the
contributions and once from what was likely, and the larger counts: see `likely_variance`.
`Support` says how much of the log counts, and so whether there is an estimate at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sensortree.logs.following import Followed
from sensortree.reports.report_sums import DEVIATIONS
from sensortree.reports.words import percent
from sensortree.types import Array


@dataclass(frozen=True)
class Estimate:
    """A mean, with its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float


FEW = 5  # rows of a kind that is too rare for the normal interval of its share

LEAST_SHARE = 0.01  # least effective size for an estimate, as a share of the rows
LEAST_ROWS = 10  # and as a number of rows
CERTAIN = 0.95  # chance of stopping from which a row had hardly another
MOST_UNREACHED = 0.1  # largest share of rows without a chance for an estimate
MOST_OFF = 2.0  # factor by which the mean weight may differ from 1


def weights(followed: Followed, stopping: Array, odds: float = 1.0) -> Array:
    """Weight w of each row after 0, 1, ... rounds, (n_rounds + 1, n_rows).

    It stays as it is from the round on that makes a row's way known; 0 after a log that
    ended before. `stopping` is λ, (n_rows, n_rounds + 1), whose odds are multiplied by
    `odds`.
    """
    n_rows = len(followed.n_needed)
    weight = np.ones((len(followed.stands), n_rows))
    for after in range(1, len(followed.stands)):
        weight[after] = weight[after - 1]
        rows = followed.stands[after - 1].rows
        goes_on = followed.purchases.n_rounds[rows] >= after
        chance = stopping[rows[goes_on], after - 1]
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
    followed: Followed, stopping: Array, weight: Array, outlook: Array
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
    say all. `outlook` is q, (n_rounds + 1, n_rows, n_measures).
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
        stays = 1 - stopping[rows, after]
        variance = variance + square * (weight[after, rows] ** 2 / stays).sum() / n_rows
    return variance


def mean_estimate(contribution: Array, variance: float = 0.0) -> Estimate:
    """Mean of what rows contribute, with its normal interval.

    `variance` is the least that theirs is taken to be.
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
    row is of the rarer kind (`n_rare`), it has at least that of Agresti and Coull. `size`
    is the number of equal rows that those are worth that speak.
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
        return Estimate(float("nan"), float("nan"), float("nan"))
    ratio = float(part.mean()) / total
    about = mean_estimate((part - ratio * whole) / total)
    return Estimate(ratio, ratio + about.low, ratio + about.high)


# how much of the log speaks -------------------------------------------------------------


@dataclass(frozen=True)
class Support:
    """What a judgement from a log rests on."""

    n_rows: int
    n_complete: int  # rows for which the log holds all that the policy asks
    effective_size: float  # number of equal rows that weighted ones are worth
    effective_share: float  # the same as a share of all rows
    # Of complete rows, others 0; about 1 if the chances of stopping are right and every
    # kind of row has one.
    mean_weight: float
    largest_weight: float  # share of the row that weighs most in all weight
    # Share of the rounds before the policy's way is known after which the logger stops with
    # a chance above 95 %.
    certain: float
    # Share of rows whose log ended, with such a chance, before the policy's way was known:
    # the log holds hardly a row like them that went on.
    unreached: float


def effective_size(weight: Array) -> float:
    """Number of equal rows that weighted ones are worth, (Σw)² / Σw²; 0 of none."""
    total = float(weight.sum())
    return total**2 / float(weight @ weight) if total else 0.0


def support_of(followed: Followed, stopping: Array, weight: Array) -> Support:
    """Measure what a judgement rests on."""
    last = np.where(followed.complete, weight[-1], 0.0)
    total, n_rows = float(last.sum()), len(last)
    size = effective_size(last)
    n_certain = n_asked = 0
    unreached = 0.0
    for after, (rows, _, _) in enumerate(followed.stands):
        certain = stopping[rows, after] > CERTAIN
        ends = followed.purchases.n_rounds[rows] == after
        n_certain, n_asked = n_certain + int(certain.sum()), n_asked + len(rows)
        unreached += float(weight[after, rows[certain & ends]].sum())
    return Support(
        n_rows=n_rows,
        n_complete=int(followed.complete.sum()),
        effective_size=size,
        effective_share=size / n_rows,
        mean_weight=total / n_rows,
        largest_weight=float(last.max()) / total if total else 0.0,
        certain=n_certain / n_asked if n_asked else 0.0,
        unreached=unreached / n_rows,
    )


def reason_to_refuse(support: Support) -> str | None:
    """Why a log cannot tell, with the figures; None if it can."""
    rows, worth = f"{support.n_rows:,}", f"{support.effective_size:.1f}"
    share = support.effective_share
    if share < LEAST_SHARE or support.effective_size < LEAST_ROWS:
        return (
            f"the log holds all that the policy asks for {support.n_complete:,} of its "
            f"{rows} rows, worth {worth} equal ones ({100 * share:.2f} %); at least "
            f"{100 * LEAST_SHARE:.0f} % and {LEAST_ROWS} rows are needed. Judge a policy "
            f"that asks less, or log more rows for which the rest is bought too."
        )
    short = 1 - support.mean_weight
    spread = 1 / support.effective_size - 1 / support.n_rows
    noise = 3 * max(spread, 0.0) ** 0.5  # three standard errors of the mean weight
    if support.unreached > MOST_UNREACHED and short > support.unreached / 2 + noise:
        unreached, weight = percent(support.unreached), f"{support.mean_weight:.2f}"
        return (
            f"for {unreached} of the rows the logger stopped, with a chance above "
            f"{100 * CERTAIN:.0f} %, before all that the policy asks was bought, and rows "
            f"like them are missing among the others (mean weight {weight}, expected 1); "
            f"at most {100 * MOST_UNREACHED:.0f} % may be. Judge a policy that asks for no "
            f"more there, or let some such rows go on."
        )
    mean = support.mean_weight
    if not 1 / MOST_OFF <= mean <= MOST_OFF and abs(short) > noise:
        return (
            f"the rows for which the log holds all that the policy asks weigh {mean:.2f} "
            f"in the mean, where 1 is expected: from this log it cannot be learned how "
            f"likely buying goes on so far. Judge a policy that asks less, or log more "
            f"rows for which the rest is bought too."
        )
    return None
