"""How good answers are, and how sure that is: shares, ranks and means with intervals.

Weights sum to 1. By Kish, weighted rows are worth as many equal ones as keep the variance
of a mean: ``1 / sum(weight**2)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensortree.sensors.loss import SCORES
from sensortree.types import Array

Interval = tuple[float, float]
MEASURES = ("error", "loss", "cost", "total")
COVERAGE = 0.95
MANY = 10_000  # rows from which a mean is as good as normal
DEVIATIONS = 1.959963984540054  # of a normal variable that hold 95 %


def wilson(right: NDArray[np.bool_], weight: Array) -> Interval:
    """Wilson's interval of a share; it is right of 0 and of 1 too. NaN without rows."""
    total = float(weight.sum())
    if not total:
        return float("nan"), float("nan")
    share = min(max(float(weight @ right) / total, 0.0), 1.0)
    n_rows = total**2 / float(weight @ weight)
    squared = DEVIATIONS**2 / n_rows
    middle = (share + squared / 2) / (1 + squared)
    spread = np.sqrt(squared * (share * (1 - share) + squared / 4)) / (1 + squared)
    return max(0.0, float(middle - spread)), min(1.0, float(middle + spread))


def mean_intervals(
    values: Array, weight: Array, n_draws: int, random_state: int
) -> list[Interval]:
    """Interval of the mean of each column.

    Percentiles of means over rows that are drawn anew, the same for every column; of many
    rows the normal interval, which is then the same.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
    weight : ndarray of shape (n_rows,)
    n_draws, random_state : int
    """
    if len(weight) > MANY:
        mean = weight @ values
        errors = np.sqrt((weight**2) @ (values - mean) ** 2)
        low, high = mean - DEVIATIONS * errors, mean + DEVIATIONS * errors
    else:
        tails = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
        means = _drawn(values, weight, n_draws, random_state)
        low, high = np.quantile(means, tails, axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _drawn(values: Array, weight: Array, n_draws: int, random_state: int) -> Array:
    """Means over rows that are drawn anew, (n_draws, n_columns)."""
    rng = np.random.default_rng(random_state)
    n_rows = len(weight)
    means = np.empty((n_draws, values.shape[1]))
    for draw in range(n_draws):
        times = np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)
        drawn = times * weight
        means[draw] = drawn @ values / drawn.sum()
    return means


@dataclass(frozen=True)
class NumberFit:
    """How well numbers are predicted.

    Attributes
    ----------
    r2 : float
        Share of the variance that is explained; NaN if there is none.
    rmse : float
        Root of the mean squared distance from the truth.
    """

    r2: float
    rmse: float


def number_fit(y: Array, answer: Array, weight: Array) -> NumberFit:
    """R² and root mean squared error of answers."""
    squared = float(weight @ (y - answer) ** 2)
    variance = float(weight @ (y - weight @ y) ** 2)
    share = 1 - squared / variance if variance > 0 else float("nan")
    return NumberFit(share, float(np.sqrt(squared)))


def scores(belief: Array, truth: NDArray[np.intp]) -> Array:
    """Brier score and log-loss of each row, (n_rows, 2); see `sensors.loss`."""
    judged = [SCORES[name].judge(truth, belief) for name in ("brier", "log_loss")]
    return np.stack(judged, axis=1)


def metrics(
    belief: Array, answer: NDArray[np.intp], truth: NDArray[np.intp], weight: Array
) -> dict[str, float]:
    """Every metric of `sensors.loss` over some rows, by what is said and is right."""
    brier, log_loss = (weight @ scores(belief, truth)).tolist()
    return {
        "accuracy": float(weight @ (answer == truth)),
        "auroc": auroc(belief, truth, weight)[1],
        "brier": brier,
        "log_loss": log_loss,
    }


def auroc(
    belief: Array, truth: NDArray[np.intp], weight: Array
) -> tuple[Array, float, Interval]:
    """Areas under the ROC curves, one class against the others.

    Parameters
    ----------
    belief : ndarray of shape (n_rows, n_classes)
    truth : ndarray of shape (n_rows,)
    weight : ndarray of shape (n_rows,)

    Returns
    -------
    areas : ndarray of shape (n_classes,)
        NaN of a class that no row, or every row, has.
    mean : float
        Over the classes that have one.
    interval : (float, float)
        Normal, by DeLong's variance: every row's share in the mean, added up.
    """
    found = [_area(belief[:, c], truth == c, weight) for c in range(belief.shape[1])]
    areas = np.array([area for area, _ in found])
    told = ~np.isnan(areas)
    if not told.any():
        return areas, float("nan"), (float("nan"), float("nan"))
    mean = float(areas[told].mean())
    parts = np.mean([part for _, part in found if part is not None], axis=0)
    spread = DEVIATIONS * float(np.sqrt(((weight * parts) ** 2).sum()))
    return areas, mean, (max(0.0, mean - spread), min(1.0, mean + spread))


def _area(
    score: Array, positive: NDArray[np.bool_], weight: Array
) -> tuple[float, Array | None]:
    """Share of pairs in which the positive has the larger score, and each row's part."""
    ours, others = weight * positive, weight * ~positive
    share = float(ours.sum())
    if not share or not others.sum():
        return float("nan"), None
    _, level = np.unique(score, return_inverse=True)
    with_ours = np.bincount(level, ours) / ours.sum()
    with_others = np.bincount(level, others) / others.sum()
    below = np.cumsum(with_others) - with_others / 2  # of others; half of equals
    above = 1 - np.cumsum(with_ours) + with_ours / 2
    area = float(with_ours @ below)
    part = np.where(
        positive, (below[level] - area) / share, (above[level] - area) / (1 - share)
    )
    return area, part
