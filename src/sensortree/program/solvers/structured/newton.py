"""`Newton`: the factored Newton matrix of a point, and solutions of its systems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

from sensortree.exceptions import SolverError
from sensortree.program.arrays import Array, astype, like, namespace, to_numpy

Vector = NDArray[np.float64]
Solve = Callable[[Vector], Vector]

MAX_REFINEMENTS = 12
# Ratio of the largest pivot to the smallest from which solutions are refined.
DOUBTFUL = 1e4


class Newton:
    """The factored Newton matrix of a point, and solutions of its systems.

    Parameters
    ----------
    S : Array of shape (p, p)
        What the rows add to the matrix, overwritten. It is factored in its own precision.
    added : ndarray of shape (p,)
        What is added to its diagonal.
    apply : callable
        S times a vector, exactly.
    """

    def __init__(self, S: Array, added: Vector, apply: Solve):
        diagonal = _diagonal(S).astype(float)
        self.added, self._apply_rows = added, apply
        self.size = np.sqrt(np.maximum(diagonal + added, np.finfo(float).tiny))
        unit = astype(like(1.0 / self.size, S), S.dtype)
        S *= unit
        S *= unit[:, None]
        self._solve, pivots = _factor(S)
        self.condition = float(pivots.max() / pivots.min())

    def predict(self, rhs: Vector) -> Vector:
        """Solve by the factor alone: near enough for a direction that is not taken."""
        return self._solve(rhs / self.size) / self.size

    def solve(self, rhs: Vector) -> Vector:
        """Solve by the factor, refined by conjugate gradients where it is doubtful."""
        d = self.predict(rhs)
        if self.condition < DOUBTFUL:
            return d
        residual = rhs - self._apply(d)
        enough = 1e-9 * np.abs(rhs / self.size).max()
        direction, slope = np.zeros_like(d), 1.0
        for step in range(MAX_REFINEMENTS):
            if np.abs(residual / self.size).max() <= enough:
                break
            downhill = self.predict(residual)
            last_slope, slope = slope, float(residual @ downhill)
            direction = downhill + (slope / last_slope if step else 0.0) * direction
            image = self._apply(direction)
            curvature = float(direction @ image)
            if not (curvature > 0 and slope > 0):  # nothing left but rounding
                break
            d = d + slope / curvature * direction
            residual = residual - slope / curvature * image
        return d

    def _apply(self, d: Vector) -> Vector:
        return self._apply_rows(d) + self.added * d


def _diagonal(S: Array) -> Vector:
    """Copy the diagonal to NumPy, which before 2.1 takes over nothing that is read-only."""
    return to_numpy(namespace(S).linalg.diagonal(S) + 0.0)


def _factor(S: Array) -> tuple[Solve, Vector]:
    """Factor a matrix, its diagonal set to 1, as little perturbed as makes it definite.

    Only the upper triangle is read. Returns what solves its systems, and its pivots.
    """
    factor = _factor_numpy if isinstance(S, np.ndarray) else _factor_there
    for nudge in (1e-15, 1e-13, 1e-11, 1e-9, 1e-6):
        factored = factor(S, 1.0 + nudge)
        if factored is not None:
            return factored
    raise SolverError("the Newton matrix of the structured solver is not a number.")


def _factor_numpy(S: Vector, diagonal: float) -> tuple[Solve, Vector] | None:
    """Factor by LAPACK; None if S is not definite."""
    potrf, potrs = (spotrf, spotrs) if S.dtype == np.float32 else (dpotrf, dpotrs)
    S.flat[:: len(S) + 1] = diagonal
    # What is the upper triangle by rows is the lower one by columns, as LAPACK reads it.
    factor, failed = potrf(S.T, lower=True, clean=False)
    if failed:
        return None

    def solve(rhs: Vector) -> Vector:
        solved = potrs(factor, rhs, lower=True)[0]
        return np.asarray(solved, float)

    return solve, factor.diagonal()


def _factor_there(S: Array, diagonal: float) -> tuple[Solve, Vector] | None:
    """Factor where the matrix is; None if S is not definite.

    The array standard does not solve with triangles, so the factor is inverted.
    """
    xp = namespace(S)
    upper = xp.triu(S, k=1)
    one = xp.eye(S.shape[0], dtype=S.dtype, device=S.device)
    try:
        factor = xp.linalg.cholesky(upper + upper.T + diagonal * one)
    except (ValueError, RuntimeError):  # what libraries derive their LinAlgError from
        return None
    pivots = _diagonal(factor)
    if not np.all(np.isfinite(pivots)):
        return None
    inverse = xp.linalg.inv(factor)

    def solve(rhs: Vector) -> Vector:
        solved = inverse.T @ (inverse @ astype(like(rhs, S), S.dtype))
        return np.asarray(to_numpy(solved), float)

    return solve, pivots
