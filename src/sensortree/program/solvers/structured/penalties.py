"""`Penalties`: l2 and l1 as one more set of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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

    def curvature(self) -> Vector:
        """What the penalties add to the diagonal of the Newton matrix."""
        self.D = self.z / self.s
        added = self.ridge.copy()
        added[self.some] += 4 * self.D[0] * self.D[1] / (self.D[0] + self.D[1])
        return added

    def aim(self, target: Vector | None) -> Vector:
        """Right-hand side (p,) of a step to complementarity `target`; None is 0."""
        self.tau = 0.0 * self.s if target is None else target / self.s
        rhs = -self.ridge * self.theta
        D = self.D
        # stationarity in t: tau1 + tau2 - lasso = (D1 + D2) dt - (D1 - D2) dθ
        self.pushed = (self.tau[0] + self.tau[1] - self.lasso[self.some]) / (
            D[0] + D[1]
        )
        rhs[self.some] += self.tau[1] - self.tau[0] + (D[0] - D[1]) * self.pushed
        return rhs

    def follow(self, d: Vector) -> tuple[float, float]:
        """Complete the step for dθ; return how fast it meets s = 0 and z = 0."""
        self.d = d
        here = d[self.some]
        dt = self.pushed + (self.D[0] - self.D[1]) / (self.D[0] + self.D[1]) * here
        self.ds = np.stack([dt - here, dt + here])
        self.dz = self.tau - self.z - self.D * self.ds
        speed = [-self.ds / self.s, -self.dz / self.z]
        return float(speed[0].max(initial=0.0)), float(speed[1].max(initial=0.0))

    def products(self) -> Vector:
        """Sums of s z, s dz, z ds, ds dz, from which μ of any step follows."""
        pairs = (
            (self.s, self.z),
            (self.s, self.dz),
            (self.ds, self.z),
            (self.ds, self.dz),
        )
        return np.array([float((x * y).sum()) for x, y in pairs])

    def second_order(self, mu: float) -> Vector:
        """Complementarity that Mehrotra's corrector aims at."""
        return np.asarray(mu - self.ds * self.dz)

    def move(self, primal: float, dual: float) -> None:
        """Take the step."""
        self.theta = self.theta + primal * self.d
        self.s = self.s + primal * self.ds
        self.z = self.z + dual * self.dz

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
