"""`Certificate`: how far coefficients are from the optimum, proved from the data.

Any coefficients give an upper bound: evaluate the objective there. Any dual point that
is feasible gives a lower bound. What a solver returns is only nearly feasible, so we
make it so: signs are clipped, flow is conserved, pulls are cut to their capacity, and
the coupling

    sum_i (pull_negative - pull_positive)_ij φ_j(x_i) = l2 θ_j      for every node j

is restored by moving the pulls within their capacities. With l2 > 0 a remaining residual
r costs r²/(2 l2) exactly. Without it rounding leaves a residual near 1e-14, and the bound
is that of all coefficients within `REACH` times the returned ones (and at least REACH, on
columns scaled to size 1): there a residual costs at most sum_d reach_d |r_d|.
Nothing is taken on a solver's word; a wrong dual point gives a poor bound, not a wrong
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sensortree.program.surrogate import Array, DualPoint, SurrogateProblem


REACH = 1e3


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
        Largest entry of the coupling that was left after the repair.

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
    coef: Sequence[ArrayLike],
    dual: DualPoint,
    *,
    tol: float = 1e-6,
    l2: float = 0.0,
) -> Certificate:
    """Bound the optimum from both sides, whatever `coef` and `dual` are.

    Parameters
    ----------
    problem : SurrogateProblem
    coef : list of array-likes of shape (D_j,)
    dual : DualPoint
    tol : float, default=1e-6
    l2 : float, default=0.0
        Weight of the ridge penalty (l2/2) |θ|².
    """
    upper = problem.value(coef, l2)
    dual = DualPoint(*(np.nan_to_num(part) for part in _parts(dual)))
    capacity_negative, capacity_positive = _capacities(problem, dual)
    signed_pull = np.clip(dual.pull_negative, 0, capacity_negative) - np.clip(
        dual.pull_positive, 0, capacity_positive
    )
    lower, residual = 0.0, 0.0
    for j, (features, theta) in enumerate(zip(problem.features, coef, strict=True)):
        theta = np.asarray(theta, float)
        scale = np.abs(features).max(axis=0, initial=0.0)
        scale = np.where(scale > 0, scale, 1.0)
        low, high = -capacity_positive[:, j], capacity_negative[:, j]
        pull = _restore_coupling(
            features, scale, signed_pull[:, j], low, high, l2 * theta
        )
        left = features.T @ pull
        # For a given difference of the two pulls their largest sum fills one of them.
        lower += float(np.minimum(2 * high - pull, pull - 2 * low).sum())
        if l2 > 0:
            lower -= float(left @ left) / (2 * l2)
        else:
            reach = REACH * np.maximum(1.0, np.abs(theta * scale))
            lower -= float(reach @ np.abs(left / scale))
        residual = max(
            residual, float(np.abs((left - l2 * theta) / scale).max(initial=0))
        )
    return Certificate(
        upper=upper,
        # All terms of the objective are at least 0, so 0 is always a lower bound.
        lower=max(lower, 0.0),
        tol=tol,
        reach=np.inf if l2 > 0 else REACH,
        sign_violation=_most_negative(dual),
        residual=residual,
    )


def _parts(dual: DualPoint) -> tuple[Array, Array, Array, Array]:
    flows = (dual.flow_negative, dual.flow_positive)
    return *flows, dual.pull_negative, dual.pull_positive


def _most_negative(dual: DualPoint) -> float:
    return 0.0 + max(-float(part.min(initial=0.0)) for part in _parts(dual))


def _capacities(problem: SurrogateProblem, dual: DualPoint) -> tuple[Array, Array]:
    """Make the flow a unit flow and return a · flow_negative, b · flow_positive."""
    n_nodes = problem.n_nodes
    inflow = np.zeros((problem.n_samples, n_nodes + 1))  # last column: leaves
    inflow[:, :1] = 1.0
    capacity_negative = np.empty((problem.n_samples, n_nodes))
    capacity_positive = np.empty((problem.n_samples, n_nodes))
    for j in range(n_nodes):
        down = np.maximum(dual.flow_negative[:, j], 0.0)
        up = np.maximum(dual.flow_positive[:, j], 0.0)
        total = down + up
        share = np.divide(down, total, out=np.full_like(total, 0.5), where=total > 0)
        flow_negative = inflow[:, j] * share
        flow_positive = inflow[:, j] - flow_negative
        inflow[:, problem.negative[j]] += flow_negative
        inflow[:, problem.positive[j]] += flow_positive
        capacity_negative[:, j] = problem.lost_if_negative[:, j] * flow_negative
        capacity_positive[:, j] = problem.lost_if_positive[:, j] * flow_positive
    return capacity_negative, capacity_positive


def _restore_coupling(
    features: Array, scale: Array, pull: Array, low: Array, high: Array, target: Array
) -> Array:
    """Move `pull` within [low, high] until features.T @ pull = target, nearly.

    Alternating projections: each step is the least-squares correction in which examples
    move in proportion to the room they have, then a cut to the bounds. Since pull = 0 is
    feasible for target 0, the bounds and the coupling always meet there.
    """
    columns = features / scale
    target = target / scale
    best, best_residual = pull, np.inf
    for _ in range(30):
        residual = columns.T @ pull - target
        largest = float(np.abs(residual).max(initial=0.0))
        if largest < best_residual:
            best, best_residual = pull, largest
        if largest <= 1e-15 * float(np.abs(pull).sum()):
            break
        room = np.maximum(np.minimum(high - pull, pull - low), 1e-4 * (high - low))
        weighted = columns * (room**2)[:, None]
        gram = columns.T @ weighted
        # Columns of rare or settled examples weigh little: give each the same weight.
        size = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
        step = np.linalg.lstsq(gram * np.outer(size, size), size * residual, 1e-13)[0]
        pull = np.clip(pull - weighted @ (size * step), low, high)
    return best
