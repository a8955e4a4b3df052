"""`Newton`: the factored Newton matrix of a point, and solutions of its systems."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from sensortree.exceptions import SolverError
from sensortree.program.arrays import Array, like, namespace, to_numpy
from sensortree.program.solvers.structured.blocks import Blocks
from sensortree.program.solvers.structured.penalties import Penalties

Vector = NDArray[np.float64]

MAX_REFINEMENTS = 12


class Newton:
    """The factored Newton matrix of a point, and solutions of its systems."""

    def __init__(self, blocks: Blocks, penalties: Penalties, drag: float):
        self.blocks = blocks
        S = blocks.matrix()
        diagonal = to_numpy(namespace(S).linalg.diagonal(S))
        self.added = penalties.curvature() + drag
        self.size = np.sqrt(np.maximum(diagonal + self.added, np.finfo(float).tiny))
        unit = like(1.0 / self.size, S)
        self._solve, pivots = _factor(S * unit * unit[:, None])
        self.doubtful = bool(pivots.min() < 1e-4 * pivots.max())

    def predict(self, rhs: Vector) -> Vector:
        """Solve by the factor alone: near enough for a direction that is not taken."""
        return self._solve(rhs / self.size) / self.size

    def solve(self, rhs: Vector) -> Vector:
        """Solve by the factor, refined by conjugate gradients where it is doubtful."""
        d = self.predict(rhs)
        if not self.doubtful:
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
        return self.blocks.apply(d) + self.added * d


def _factor(S: Array) -> tuple[Callable[[Vector], Vector], Vector]:
    """Factor a matrix, its diagonal set to 1, as little perturbed as makes it definite.

    Only the upper triangle is read. Returns what solves its systems, and its pivots.
    """
    for nudge in (1e-15, 1e-13, 1e-11, 1e-9, 1e-6):
        try:
            return (
                _factor_numpy(S, nudge)
                if isinstance(S, np.ndarray)
                else _factor_there(S, nudge)
            )
        except (
            ValueError,
            RuntimeError,
        ):  # what libraries derive their LinAlgError from
            continue
    raise SolverError("the Newton matrix of the structured solver is not a number.")


def _factor_numpy(S: Vector, nudge: float) -> tuple[Callable[[Vector], Vector], Vector]:
    """Factor by SciPy, which solves with triangles."""
    S.flat[:: len(S) + 1] = 1.0 + nudge
    factor = cho_factor(S, check_finite=False)
    return partial(cho_solve, factor, check_finite=False), factor[0].diagonal()


def _factor_there(S: Array, nudge: float) -> tuple[Callable[[Vector], Vector], Vector]:
    """Factor where the matrix is; the array standard does not solve with triangles."""
    xp = namespace(S)
    upper = xp.triu(S, k=1)
    one = xp.eye(S.shape[0], dtype=S.dtype, device=S.device)
    L = xp.linalg.cholesky(upper + upper.T + (1.0 + nudge) * one)
    pivots = to_numpy(xp.linalg.diagonal(L))
    if not np.all(np.isfinite(pivots)):
        raise ValueError
    inverse = xp.linalg.inv(L)

    def solve(rhs: Vector) -> Vector:
        return to_numpy(inverse.T @ (inverse @ like(rhs, S)))

    return solve, pivots
