"""`Newton`: the factored Newton matrix of a point; `Penalties`: l2 and l1 as more rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

from sensortree.exceptions import SolverError
from sensortree.program.arrays import Array, astype, like, namespace, to_numpy
from sensortree.program.solvers.structured.rows import recentred

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


# penalties ----------------------------------------------------------------------------


class Penalties:
    """The penalties as one more set of rows: ridge R, and t >= ±θ at the price `lasso`.

    Rows: t - θ >= 0 (z1), t + θ >= 0 (z2), with z1 + z2 = lasso. Coefficients without an
    l1 penalty have no rows.
    """

    def __init__(self, ridge: Vector, lasso: Vector):
        self.ridge, self.lasso = ridge, lasso
        self.some = np.flatnonzero(lasso)
        self.n_values = 2 * self.some.size

    def start(self, theta: Vector, mu: float) -> None:
        """Stand at given coefficients, with s z = mu and z1 + z2 = lasso."""
        self.theta = theta.copy()
        here, price = theta[self.some], self.lasso[self.some]
        t = mu / price + np.sqrt((mu / price) ** 2 + here**2)
        self.s = np.stack([t - here, t + here])
        self.z = mu / self.s
        self.r: Vector = np.zeros_like(self.s)  # ds / s
        self.u: Vector = np.zeros_like(self.s)  # dz / z

    def curvature(self) -> Vector:
        """What the penalties add to the diagonal of the Newton matrix."""
        if not self.n_values:
            return self.ridge
        self.D = self.z / self.s
        added = self.ridge.copy()
        added[self.some] += 4 * self.D[0] * self.D[1] / (self.D[0] + self.D[1])
        return added

    def aim(self, mu: float | None) -> Vector:
        """Right-hand side (p,) of the predictor, or of Mehrotra's corrector to `mu`."""
        if not self.n_values:
            return -self.ridge * self.theta
        if mu is None:
            t = np.zeros_like(self.s)
        else:
            t = mu / (self.s * self.z) + self.r * (1.0 + self.r)
        return self._aim(t)

    def aim_beside(self, mu: float, primal: float, dual: float) -> Vector:
        """Right-hand side (p,) of Gondzio's corrector of the present direction."""
        if not self.n_values:
            return -self.ridge * self.theta
        return self._aim(recentred(self.s * self.z, self.r, self.u, mu, primal, dual))

    def _aim(self, t: Vector) -> Vector:
        """Right-hand side (p,) of a step to s z t."""
        self.t = t
        rhs = -self.ridge * self.theta
        tau, D = self.z * self.t, self.D
        # stationarity in t: tau1 + tau2 - lasso = (D1 + D2) dt - (D1 - D2) dθ
        self.pushed = (tau[0] + tau[1] - self.lasso[self.some]) / (D[0] + D[1])
        rhs[self.some] += tau[1] - tau[0] + (D[0] - D[1]) * self.pushed
        return rhs

    def follow(self, d: Vector) -> Vector:
        """Complete the step for dθ; return how fast it meets s = 0 and z = 0."""
        self.d = d
        if not self.n_values:
            return np.zeros(2)
        here, D = d[self.some], self.D
        dt = self.pushed + (D[0] - D[1]) / (D[0] + D[1]) * here
        self.r = np.stack([dt - here, dt + here]) / self.s
        self.u = self.t - 1.0 - self.r
        return np.array([-self.r.min(), -self.u.min()])

    @property
    def direction(self) -> tuple[Vector, ...]:
        """What `move` follows."""
        return self.d, self.r, self.u

    @direction.setter
    def direction(self, direction: tuple[Vector, ...]) -> None:
        self.d, self.r, self.u = direction

    def changes(self) -> Vector:
        """Sums of s z r and s z r², from which μ after the predictor follows."""
        if not self.n_values:
            return np.zeros(2)
        changes = self.s * self.z * self.r
        return np.array([changes.sum(), (changes * self.r).sum()])

    def move(self, primal: float, dual: float) -> None:
        """Take the step."""
        self.theta = self.theta + primal * self.d
        if self.n_values:
            self.s = self.s * (1.0 + primal * self.r)
            self.z = self.z * (1.0 + dual * self.u)

    def value(self) -> float:
        """The penalties of θ."""
        return self.conjugate() + float(self.lasso @ np.abs(self.theta))

    def conjugate(self) -> float:
        """What the ridge takes from the dual objective."""
        return 0.5 * float(self.theta @ (self.ridge * self.theta))

    def pull(self) -> Vector:
        """Gradient of the penalties that the multipliers stand for."""
        pull = self.ridge * self.theta
        pull[self.some] += self.z[0] - self.z[1]
        return pull
