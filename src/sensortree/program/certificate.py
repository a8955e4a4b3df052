"""`Certificate`: how far coefficients are from the optimum, proved from the data.

Any coefficients give an upper bound: evaluate the objective there. Any dual point that
is feasible gives a lower bound. What a solver returns is only nearly feasible, so we
make it so: signs are clipped, flow is conserved, pulls are cut to their capacity. Then,
with r_j = sum_i (pull_negative - pull_positive)_ij φ_j(x_i), the bound is the sum of all
pulls minus what coefficients could gain from r,

    l2 > 0:        sum_d (|r_d| - l1)_+² / (2 l2),
    l2 = 0:        sum_d reach_d (|r_d| - l1)_+  for coefficients |θ_d| <= reach_d.

Moving the pulls within their capacities brings r to where that costs least: l2 θ with a
ridge penalty, 0 (or inside [-l1, l1]) without. Rounding then leaves |r| near 1e-14, and
reach_d is `REACH` times the returned coefficient, at least REACH, on columns scaled to
size 1. Nothing is taken on a solver's word; a wrong dual point gives a poor bound, not a
wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, like, namespace, to_numpy
from sensortree.program.surrogate import (
    DualPoint,
    Penalty,
    SurrogateProblem,
    column_sizes,
)

REACH = 100.0


@dataclass(frozen=True)
class Certificate:
    """Proved bounds of the optimum of a surrogate problem.

    Attributes
    ----------
    upper : float
        The objective at the returned coefficients.
    lower : float
        No coefficients (within `reach`) have a smaller objective.
    tol : float
        The gap that was asked for.
    reach : float
        The lower bound speaks of all coefficients up to `reach` times the returned ones,
        and at least `reach`, on columns scaled to size 1. Infinite with a ridge penalty.
    sign_violation : float
        The most negative multiplier of the solver, as it came (0 if none was negative).
    residual : float
        Largest entry of the coupling r that was left after the repair and that no
        penalty explains.

    Examples
    --------
    >>> from sensortree import Certificate
    >>> proof = Certificate(upper=10.0, lower=9.999999, tol=1e-6)
    >>> proof.converged
    True
    """

    upper: float
    lower: float
    tol: float
    reach: float = np.inf
    sign_violation: float = 0.0
    residual: float = 0.0

    @property
    def gap(self) -> float:
        """(upper - lower) / max(1, |upper|)."""
        return (self.upper - self.lower) / max(1.0, abs(self.upper))

    @property
    def converged(self) -> bool:
        """Whether the gap is at most the tolerance."""
        return bool(self.gap <= self.tol)

    def __str__(self) -> str:
        state = "certified" if self.converged else "NOT certified"
        return (
            f"{state} to a gap of {self.gap:.1e} (asked for {self.tol:.0e}): the optimum "
            f"lies in [{self.lower:.10g}, {self.upper:.10g}]"
        )


def certify(
    problem: SurrogateProblem,
    coef: Sequence[Any],
    dual: DualPoint,
    *,
    tol: float = 1e-6,
    penalty: Penalty | None = None,
) -> Certificate:
    """Bound the optimum from both sides, whatever `coef` and `dual` are.

    Parameters
    ----------
    problem : SurrogateProblem
    coef : list of array-likes of shape (D_j,)
    dual : DualPoint
    tol : float, default=1e-6
    penalty : Penalty, default=None
        What is added to the surrogate.
    """
    penalty = penalty or Penalty()
    certificate = Certificate(
        upper=problem.value(coef, penalty),
        lower=0.0,  # all terms of the objective are at least 0
        tol=tol,
        reach=np.inf if penalty.l2 > 0 else REACH,
        sign_violation=_most_negative(dual),
        residual=np.inf,
    )
    # A little flow on every edge makes room for the repair, and costs as little.
    for least in (0.0, 0.03 * tol):
        lower, residual = _lower_bound(problem, coef, dual, penalty, least)
        if lower >= certificate.lower:
            certificate = replace(certificate, lower=lower, residual=residual)
        if certificate.converged:
            break
    return certificate


def _lower_bound(
    problem: SurrogateProblem,
    coef: Sequence[Any],
    dual: DualPoint,
    penalty: Penalty,
    least: float,
) -> tuple[float, float]:
    """The dual objective after the repair, and the residual that was left."""
    capacities = _capacities(problem, dual, least)
    lower, residual = 0.0, 0.0
    for j, (features, theta) in enumerate(zip(problem.features, coef, strict=True)):
        bound, left = _node_bound(
            features,
            np.asarray(theta, float),
            _number(dual.pull_negative[:, j]),
            _number(dual.pull_positive[:, j]),
            *capacities[j],
            penalty,
        )
        lower += bound
        residual = max(residual, left)
    return lower, residual


def _node_bound(
    features: Array,
    theta: NDArray[np.float64],
    pull_negative: Array,
    pull_positive: Array,
    high: Array,
    low: Array,
    penalty: Penalty,
) -> tuple[float, float]:
    """A node's part of the lower bound, and the residual left in its coupling.

    `high` and `low` are the capacities of the pulls on the negative and positive edge.
    """
    xp = namespace(features)
    scale = column_sizes(features)
    zero = xp.zeros_like(high)
    pull = xp.minimum(xp.maximum(pull_negative, zero), high) - xp.minimum(
        xp.maximum(pull_positive, zero), low
    )
    pull = _restore_coupling(features, scale, pull, -low, high, theta, penalty)
    # For a given difference of the two pulls their largest sum fills one of them.
    bound = float(xp.sum(xp.minimum(2 * high - pull, pull + 2 * low)))
    excess = np.maximum(np.abs(to_numpy(features.T @ pull)) - penalty.l1, 0.0)
    if penalty.l2 > 0:
        bound -= float(excess @ excess) / (2 * penalty.l2)
        left = np.abs(excess - penalty.l2 * np.abs(theta)) / scale
    else:
        left = excess / scale
        bound -= REACH * float(np.maximum(1.0, np.abs(theta * scale)) @ left)
    return bound, float(left.max(initial=0.0))


def _number(array: Array) -> Array:
    """Replace NaN by 0."""
    xp = namespace(array)
    return xp.where(xp.isfinite(array), array, xp.zeros_like(array))


def _most_negative(dual: DualPoint) -> float:
    parts = (
        dual.flow_negative,
        dual.flow_positive,
        dual.pull_negative,
        dual.pull_positive,
    )
    least = (
        float(namespace(part).min(_number(part))) for part in parts if part.shape[1]
    )
    return max(0.0, -min(least, default=0.0))


def _capacities(
    problem: SurrogateProblem, dual: DualPoint, least: float
) -> list[tuple[Any, Any]]:
    """Make the flow a unit flow; return a · flow_negative, b · flow_positive by node.

    Each edge gets at least the share `least` of what comes to its node.
    """
    xp = namespace(problem.lost_if_negative)
    capacities = []
    inflow: dict[int, Array] = {}
    for j in range(problem.n_nodes):
        down, up = _number(dual.flow_negative[:, j]), _number(dual.flow_positive[:, j])
        zero = xp.zeros_like(down)
        down, up = xp.maximum(down, zero), xp.maximum(up, zero)
        total = down + up
        known = total > 0
        share = xp.where(known, down / xp.where(known, total, zero + 1), zero + 0.5)
        share = xp.clip(share, least, 1 - least)
        flow = inflow.pop(j, zero + 1)
        flow_negative = flow * share
        flow_positive = flow - flow_negative
        inflow[int(problem.negative[j])] = flow_negative  # -1: a leaf, not asked again
        inflow[int(problem.positive[j])] = flow_positive
        capacities.append(
            (
                problem.lost_if_negative[:, j] * flow_negative,
                problem.lost_if_positive[:, j] * flow_positive,
            )
        )
    return capacities


def _restore_coupling(
    features: Array,
    scale: NDArray[np.float64],
    pull: Array,
    low: Array,
    high: Array,
    theta: NDArray[np.float64],
    penalty: Penalty,
) -> Array:
    """Move `pull` within [low, high] until its coupling is where the bound wants it.

    Alternating projections: each step is the least-squares correction in which examples
    move in proportion to the room they have, then a cut to the bounds. Since pull = 0 has
    coupling 0, the bounds and a coupling of 0 always meet.
    """
    xp = namespace(features)
    weight = like(1.0 / scale, features)
    columns = features * weight
    best, best_size = pull, np.inf
    for _ in range(30):
        coupling = to_numpy(columns.T @ pull)
        slack = penalty.l1 / scale  # coupling that the l1 penalty takes for nothing
        wanted = np.clip(coupling - penalty.l2 * theta / scale, -slack, slack)
        residual = coupling - penalty.l2 * theta / scale - wanted
        size = float(np.abs(residual).max(initial=0.0))
        if size < best_size:
            best, best_size = pull, size
        if size <= 1e-15 * float(xp.sum(xp.abs(pull))):
            break
        room = xp.maximum(xp.minimum(high - pull, pull - low), 1e-4 * (high - low))
        weighted = columns * (room * room)[:, None]
        gram = to_numpy(columns.T @ weighted)
        if not np.all(np.isfinite(gram)):
            break
        # Columns of rare or settled examples weigh little: give each the same weight.
        unit = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
        step = np.linalg.lstsq(gram * np.outer(unit, unit), unit * residual, 1e-13)[0]
        moved = pull - weighted @ like(unit * step, features)
        pull = xp.minimum(xp.maximum(moved, low), high)
    return best
