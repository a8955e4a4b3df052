"""`Penalties`: l2 and l1 as one more set of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sensortree.program.solvers.structured.rows import recentred

Vector = NDArray[np.float64]


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
