"""A test of drift that may be read at any time: bets against "as in training".

To test that bounded values x_t in [0, 1] have a mean of at most m, a gambler who starts
with 1 bets the share λ_t of the current wealth on each next value:

    K_t = K_{t-1} (1 + λ_t (x_t - m)),    0 <= λ_t < 1 / m,

where λ_t depends on earlier values only. If the mean is at most m, K is a nonnegative
supermartingale, and by Ville's inequality it ever reaches 1/α with probability α at most,
however often it is read. (I. Waudby-Smith and A. Ramdas, *Estimating means of
bounded random variables by betting*, JRSS B 86, 2024; λ_t is their aGRAPA bet.) Means that
are too low are tested by 1 - x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri

from sensortree.types import Array

# Rows that the mean and variance of training count for in the first bets.
PRIOR_ROWS = 20.0
BOLDEST = 0.75  # of what may be staked without a loss of everything


@dataclass(frozen=True)
class Expected:
    """A bounded quantity in training, as far as its rows can tell."""

    mean: float  # of the quantity on a scale from 0 to 1
    variance: float
    low: float  # the true mean of training's population is between these two,
    high: float  # but for a small chance


@dataclass(frozen=True)
class Bets:
    """The state of the bets on one quantity."""

    rows: int = 0
    total: float = 0.0  # sum of the values
    squares: float = 0.0  # and of their squares
    # Log of what is won by betting that the mean is above `Expected.high`, and below `low`.
    above: float = 0.0
    below: float = 0.0
    alarm: int | None = None  # row at which one of them first won enough


def after(bets: Bets, value: float, expected: Expected, enough: float) -> Bets:
    """Bets after one more value; `enough` is the log of a win that raises the alarm."""
    mean, variance = believed(bets.rows, bets.total, bets.squares, expected)
    up = float(stake(mean, variance, expected.high))
    down = float(stake(1 - mean, variance, 1 - expected.low))
    above = bets.above + math.log1p(up * (value - expected.high))
    below = bets.below + math.log1p(down * (expected.low - value))
    rows = bets.rows + 1
    alarm = bets.alarm
    if alarm is None and max(above, below) >= enough:
        alarm = rows
    return replace(
        bets,
        rows=rows,
        total=bets.total + value,
        squares=bets.squares + value * value,
        above=above,
        below=below,
        alarm=alarm,
    )


def believed(rows: Any, total: Any, squares: Any, expected: Expected) -> Array:
    """Mean and variance of the values so far, at first those of training."""
    n = rows + PRIOR_ROWS
    mean = (total + PRIOR_ROWS * expected.mean) / n
    second = squares + PRIOR_ROWS * (expected.variance + expected.mean**2)
    return np.asarray((mean, np.maximum(second / n - mean**2, 1e-6)))


def stake(mean: Array, variance: Array, most: float) -> Array:
    """Share to bet that the mean is above `most`; 0 if it does not seem so."""
    if most >= 1:  # no mean is above it
        return np.zeros_like(mean)
    gap = mean - most
    wanted = gap / (variance + gap**2)
    return np.clip(wanted, 0.0, BOLDEST / max(most, 1e-9))


# how sure training is ---------------------------------------------------------------------


def expected_rate(share: float, rows: float, risk: float) -> Expected:
    """A share of training rows, with the interval of Clopper and Pearson."""
    hits = share * rows
    low = betaincinv(hits, rows - hits + 1, risk / 2) if hits > 0 else 0.0
    high = betaincinv(hits + 1, rows - hits, 1 - risk / 2) if hits < rows else 1.0
    return Expected(share, share * (1 - share), float(low), float(high))


def expected_mean(values: Array, shares: Array, rows: float, risk: float) -> Expected:
    """A mean of values in [0, 1] over training rows, with the usual interval.

    The interval of the central limit theorem is not exact, but bounds that are, such as
    Bernstein's, are half as wide again, and hide drift that there is; how often alarms
    are false all the same is simulated (``python -m benchmarks.watch``).
    """
    mean = float(shares @ values)
    variance = float(shares @ (values - mean) ** 2)
    slack = float(-ndtri(risk / 2)) * math.sqrt(variance / max(rows - 1, 1.0))
    return Expected(mean, variance, max(mean - slack, 0.0), min(mean + slack, 1.0))
