"""`Newton`: the factored Newton matrix of a point, and solutions of its systems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sensortree.exceptions import SolverError
from sensortree.program.solvers.structured.blocks import Blocks
from sensortree.program.solvers.structured.penalties import Penalties

Vector = NDArray[np.float64]

MAX_REFINEMENTS = 12


class Newton:
    """The factored Newton matrix of a point, and solutions of its systems."""

    def __init__(self, blocks: Blocks, penalties: Penalties, drag: float):
        self.blocks = blocks
        S = blocks.matrix()
        self.added = penalties.curvature() + drag
        diagonal = S.diagonal() + self.added
        self.size = np.sqrt(np.maximum(diagonal, np.finfo(float).tiny))
        S /= self.size
        S /= self.size[:, None]
        self.factor = _factor(S)
        pivots = np.abs(self.factor[0].diagonal())
        self.doubtful = bool(pivots.min() < 1e-4 * pivots.max())

    def solve(self, rhs: Vector) -> Vector:
        """Solve by the factor, refined by conjugate gradients where it is doubtful."""
        d = self._by_factor(rhs)
        if not self.doubtful:
            return d
        residual = rhs - self._apply(d)
        enough = 1e-9 * np.abs(rhs / self.size).max()
        direction, slope = np.zeros_like(d), 1.0
        for step in range(MAX_REFINEMENTS):
            if np.abs(residual / self.size).max() <= enough:
                break
            downhill = self._by_factor(residual)
            last_slope, slope = slope, float(residual @ downhill)
            direction = downhill + (slope / last_slope if step else 0.0) * direction
            image = self._apply(direction)
            curvature = float(direction @ image)
            if not (curvature > 0 and slope > 0):  # nothing left but rounding
                break
            d = d + slope / curvature * direction
            residual = residual - slope / curvature * image
        return d

    def _by_factor(self, rhs: Vector) -> Vector:
        solved: Vector = cho_solve(self.factor, rhs / self.size, check_finite=False)
        return solved / self.size

    def _apply(self, d: Vector) -> Vector:
        return self.blocks.apply(d) + self.added * d


def _factor(S: Vector) -> Any:
    """Factor a matrix of unit diagonal, as little perturbed as makes it definite."""
    for nudge in (1e-15, 1e-13, 1e-11, 1e-9, 1e-6):
        S.flat[:: len(S) + 1] = 1.0 + nudge
        try:
            return cho_factor(S, check_finite=False)  # reads the upper triangle
        except LinAlgError:
            continue
    raise SolverError("the Newton matrix of the structured solver is not a number.")
