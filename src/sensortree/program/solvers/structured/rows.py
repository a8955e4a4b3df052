"""`Rows`: some examples as circuits, and one Newton step of theirs at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, like, namespace, on_device_of, to_numpy
from sensortree.program.solvers.structured.shape import TreeShape

Vector = NDArray[np.float64]


class Weights(NamedTuple):
    """Factors of the entries of M, each (n_nodes, n_rows).

    For k below j's negative side, M_jk is with_low_j times the source of k as j's child
    sees it; likewise with_high on the positive side. For k and l below different sides of
    j, M_kl is across_j times both sources.
    """

    diagonal: Array
    with_low: Array
    with_high: Array
    across: Array
    source: Array


class Rows:
    """Some examples: their data, their point (v, s, z), and one Newton step at a time.

    `a`, `b`, `v`, `m` are (n_nodes, n_rows); `s`, `z` are (4, n_nodes, n_rows);
    `features` are (D_j, n_rows).
    """

    def __init__(self, tree: TreeShape, features: list[Array], a: Array, b: Array):
        self.tree, self.features, self.a, self.b = tree, features, a, b
        self.xp = namespace(a)
        self.n_nodes, self.n_rows = a.shape
        # Nodes that share features are multiplied together.
        self.shared: dict[int, tuple[Array, list[int]]] = {}
        for j, phi in enumerate(features):
            self.shared.setdefault(id(phi), (phi, []))[1].append(j)
        self.keep_products = False
        self.kept_products: Array | None = None

    # where the rows stand -------------------------------------------------------------

    def stand(self, theta: list[Vector]) -> float:
        """Stand at given coefficients; return their surrogate."""
        self.m = self._margins(theta)
        return float(self.xp.sum(self._bound(0.0)[0]))

    def center(self, mu: float) -> None:
        """Find v and z with s z = mu and the flow conserved, nearly.

        Margins held still, examples are apart: each takes its own Newton steps in v.
        """
        xp = self.xp
        self.v = xp.stack(self._bound(4 * mu)[:-1])
        for _ in range(50):
            self._set_slacks()
            self.z = mu / self.s
            flow = (self.z[0, ...] + self.z[1, ...], self.z[2, ...] + self.z[3, ...])
            currents = self._to_v(*flow)
            currents[0, :] -= 1.0
            if float(xp.max(xp.abs(currents))) < 1e-4:
                break
            self.connect()
            dv = self._solve_laplacian(currents)
            speed = xp.max(xp.max(-self._rows(dv, None) / self.s, axis=0), axis=0)
            self.v = self.v + dv * (0.9 / xp.maximum(speed, 0.9 + 0 * speed))

    def _margins(self, theta: list[Vector]) -> Array:
        margins: list[Array] = [None] * self.n_nodes
        for phi, nodes in self.shared.values():
            together = like(np.stack([theta[j] for j in nodes]), phi) @ phi
            if len(nodes) == self.n_nodes:
                return together
            for k, j in enumerate(nodes):
                margins[j] = together[k, :]
        return self.xp.stack(margins)

    def _bound(self, slack: float) -> list[Array]:
        """V of every node at the present margins, plus a slack per level; then a 0."""
        xp, tree = self.xp, self.tree
        zero = xp.zeros_like(self.a[0, :])
        below = self.a * xp.maximum(1.0 - self.m, xp.zeros_like(self.m))
        above = self.b * xp.maximum(1.0 + self.m, xp.zeros_like(self.m))
        value = [zero] * (self.n_nodes + 1)
        for j in reversed(range(self.n_nodes)):
            value[j] = slack + xp.maximum(
                below[j, :] + value[tree.negative[j]],
                above[j, :] + value[tree.positive[j]],
            )
        return value

    def _set_slacks(self) -> None:
        self.s = self._rows(self.v, self.m)
        self.s[0, ...] -= self.a
        self.s[2, ...] -= self.b

    def _rows(self, v: Array, m: Array | None) -> Array:
        """The linear part of the rows at (v, m)."""
        low, high = self._drops(v)
        if m is None:
            return self.xp.stack([low, low, high, high])
        return self.xp.stack([low + self.a * m, low, high - self.b * m, high])

    def _drops(self, v: Array) -> tuple[Array, Array]:
        """Drops v_j - v_child over the two edges of each node; v of a leaf is 0."""
        low, high = v + 0.0, v + 0.0
        for j, (n, p) in enumerate(
            zip(self.tree.negative, self.tree.positive, strict=True)
        ):
            if n >= 0:
                low[j, :] -= v[n, :]
            if p >= 0:
                high[j, :] -= v[p, :]
        return low, high

    def _to_v(self, low: Array, high: Array) -> Array:
        """Adjoint of `_drops`: what flows out of each node, less what flows in."""
        total = low + high
        for j in range(1, self.n_nodes):
            edge = low if self.tree.is_negative[j] else high
            total[j, :] -= edge[self.tree.parent[j], :]
        return total

    # the Newton step ------------------------------------------------------------------

    def connect(self) -> None:
        """Compute the circuit of the present point: conductances, shares, sources."""
        xp, tree = self.xp, self.tree
        D = self.z / self.s
        q = xp.stack([D[0, ...] + D[1, ...], D[2, ...] + D[3, ...]])
        w = xp.stack([self.a * D[0, ...] / q[0, ...], -self.b * D[2, ...] / q[1, ...]])
        g = q + 0.0
        G = xp.empty_like(self.a)
        transfer, inverse = xp.empty_like(self.a), xp.empty_like(self.a)
        for j in reversed(range(self.n_nodes)):
            for side, child in enumerate((tree.negative[j], tree.positive[j])):
                if child >= 0:  # the edge in series with what is below it
                    edge = q[side, j, :]
                    inverse[child, :] = 1.0 / (edge + G[child, :])
                    transfer[child, :] = edge * inverse[child, :]
                    g[side, j, :] = G[child, :] * transfer[child, :]
            G[j, :] = g[0, j, :] + g[1, j, :]
        self.share = g / G
        self.kappa = g[0, ...] * self.share[1, ...]
        self.extra = self.a * w[0, ...] * D[1, ...] - self.b * w[1, ...] * D[3, ...]
        self.D, self.q, self.w = D, q, w
        self.G, self.transfer, self.inverse = G, transfer, inverse

    def _weights(self) -> Weights:
        """Factors of which the entries of M are products."""
        xp, tree = self.xp, self.tree
        above = xp.zeros_like(self.a)  # sum over ancestors of κ times shares²
        for j in range(1, self.n_nodes):
            p = tree.parent[j]
            share = self.share[0 if tree.is_negative[j] else 1, p, :]
            above[j, :] = share * share * above[p, :] + self.kappa[p, :]
        low, high = self.share[0, ...], self.share[1, ...]
        source = low * self.w[0, ...] + high * self.w[1, ...]
        y = self.w[0, ...] - self.w[1, ...]
        up, own = above * source, self.kappa * y
        return Weights(
            diagonal=self.extra + own * y + up * source,
            with_low=own + up * low,
            with_high=up * high - own,
            across=above * low * high - self.kappa,
            source=source,
        )

    def add_matrix(self, S: Array) -> None:
        """Add Φᵀ M Φ of these rows to the upper triangle of S, (p, p)."""
        xp, tree, weights = self.xp, self.tree, self._weights()
        U = xp.empty(
            (S.shape[0], self.n_rows), dtype=self.a.dtype, **on_device_of(self.a)
        )
        for j in reversed(range(self.n_nodes)):
            phi, mine = self.features[j], tree.columns[j]
            S[mine, mine] += (phi * weights.diagonal[j, :]) @ phi.T
            n, p = tree.negative[j], tree.positive[j]
            if n >= 0:
                left = U[tree.below[n], :]
                S[mine, tree.below[n]] += (phi * weights.with_low[j, :]) @ left.T
            if p >= 0:
                right = U[tree.below[p], :]
                S[mine, tree.below[p]] += (phi * weights.with_high[j, :]) @ right.T
                if n >= 0:
                    crossed = (left * weights.across[j, :]) @ right.T
                    S[tree.below[n], tree.below[p]] += crossed
            if j > 0:  # what the parent sees of this subtree
                if n >= 0:
                    left *= self.share[0, j, :]
                if p >= 0:
                    right *= self.share[1, j, :]
                U[mine, :] = phi * weights.source[j, :]

    def add_pairs(self, S: Array) -> None:
        """Add M times products of features to S, (pairs of nodes, pairs of features).

        Where all nodes share their features this is Φᵀ M Φ at half the work: one product
        of a matrix of all M_jk, j <= k, and one of all φ_d φ_e, d <= e.
        """
        tree, weights = self.tree, self._weights()
        M = self.xp.empty(
            (S.shape[0], self.n_rows), dtype=self.a.dtype, **on_device_of(self.a)
        )
        first = _first_pairs(self.n_nodes)
        seen = weights.source  # sources of each subtree as its root's parent sees them
        for j in reversed(range(self.n_nodes)):
            M[first[j], :] = weights.diagonal[j, :]
            n, p = (
                tree.nodes_below(tree.negative[j]),
                tree.nodes_below(tree.positive[j]),
            )
            for side, with_side in ((n, weights.with_low), (p, weights.with_high)):
                start = first[j] - j + side.start
                M[start : start + len(side), :] = (
                    with_side[j, :] * seen[side.start : side.stop, :]
                )
            if p:
                right = weights.across[j, :] * seen[p.start : p.stop, :]
                for k in n:
                    start = first[k] - k + p.start
                    M[start : start + len(p), :] = seen[k, :] * right
            seen[n.start : n.stop, :] *= self.share[0, j, :]
            seen[p.start : p.stop, :] *= self.share[1, j, :]
        S += M @ self._feature_products().T

    def _feature_products(self) -> Array:
        """φ_d φ_e, d <= e, (D (D + 1) / 2, n_rows); kept if there is room."""
        if self.kept_products is not None:
            return self.kept_products
        phi = self.features[0]
        products = self.xp.concat([phi[d, :] * phi[d:, :] for d in range(phi.shape[0])])
        if self.keep_products:
            self.kept_products = products
        return products

    def apply(self, theta: list[Vector]) -> Vector:
        """Φᵀ M Φ θ of these rows, without the matrix: up the tree, and down."""
        xp, tree = self.xp, self.tree
        m = self._margins(theta)
        zero = xp.zeros_like(self.a[0, :])
        low, high = self.w[0, ...] * m, self.w[1, ...] * m  # sources of the branches
        u = [zero] * (self.n_nodes + 1)
        for j in reversed(range(self.n_nodes)):
            if tree.negative[j] >= 0:
                low[j, :] += u[tree.negative[j]]
            if tree.positive[j] >= 0:
                high[j, :] += u[tree.positive[j]]
            u[j] = self.share[0, j, :] * low[j, :] + self.share[1, j, :] * high[j, :]
        flow = self.kappa * (low - high)
        low, high = flow, -flow
        for j in range(self.n_nodes):
            if tree.parent[j] >= 0:
                into = (low if tree.is_negative[j] else high)[tree.parent[j], :]
                low[j, :] += self.share[0, j, :] * into
                high[j, :] += self.share[1, j, :] * into
        return self._to_theta(
            self.extra * m + self.w[0, ...] * low + self.w[1, ...] * high
        )

    def _to_theta(self, pull: Array) -> Vector:
        parts: list[Any] = [None] * self.n_nodes
        for phi, nodes in self.shared.values():
            if len(nodes) < self.n_nodes:
                together = self.xp.stack([pull[j, :] for j in nodes]) @ phi.T
            else:
                together = pull @ phi.T
            for j, part in zip(nodes, to_numpy(together), strict=True):
                parts[j] = part
        return np.concatenate(parts)

    def _solve_laplacian(self, currents: Array) -> Array:
        """Potentials dv that draw these currents, which are overwritten."""
        parents = self.tree.parent
        for j in reversed(range(1, self.n_nodes)):
            currents[parents[j], :] += self.transfer[j, :] * currents[j, :]
        currents[0, :] /= self.G[0, :]
        for j in range(1, self.n_nodes):
            currents[j, :] *= self.inverse[j, :]
            currents[j, :] += self.transfer[j, :] * currents[parents[j], :]
        return currents

    def aim(self, target: Array | None) -> Vector:
        """Right-hand side (p,) of a step to complementarity `target`; None is 0."""
        xp = self.xp
        if target is None:
            self.tau = None
            currents = xp.zeros_like(self.a)
        else:
            self.tau = tau = target / self.s
            currents = self._to_v(tau[0, ...] + tau[1, ...], tau[2, ...] + tau[3, ...])
        currents[0, :] -= 1.0
        self.currents = currents
        low, high = self._drops(self._solve_laplacian(currents + 0.0))
        pull = -(
            self.w[0, ...] * self.q[0, ...] * low
            + self.w[1, ...] * self.q[1, ...] * high
        )
        if target is not None:
            pull = pull + self.a * tau[0, ...] - self.b * tau[2, ...]
        return self._to_theta(pull)

    def follow(self, theta: list[Vector]) -> tuple[float, float]:
        """Complete the step for dθ; return how fast it meets s = 0 and z = 0."""
        xp = self.xp
        self.dm = self._margins(theta)
        pushed = self.q * self.w * self.dm
        currents = self.currents - self._to_v(pushed[0, ...], pushed[1, ...])
        self.dv = self._solve_laplacian(currents)
        self.ds = self._rows(self.dv, self.dm)
        self.dz = -self.D * self.ds - self.z
        if self.tau is not None:
            self.dz = self.dz + self.tau
        return float(xp.max(-self.ds / self.s)), float(xp.max(-self.dz / self.z))

    def products(self) -> Vector:
        """Sums of s z, s dz, z ds, ds dz, from which μ of any step follows."""
        total = self.xp.sum
        pairs = (
            (self.s, self.z),
            (self.s, self.dz),
            (self.ds, self.z),
            (self.ds, self.dz),
        )
        return np.array([float(total(x * y)) for x, y in pairs])

    def second_order(self, mu: float) -> Array:
        """Complementarity that Mehrotra's corrector aims at."""
        return mu - self.ds * self.dz

    def move(self, primal: float, dual: float) -> None:
        """Take the step."""
        self.v = self.v + primal * self.dv
        self.m = self.m + primal * self.dm
        self.s = self.s + primal * self.ds
        self.z = self.z + dual * self.dz

    def bounds(self) -> tuple[float, float, Vector]:
        """Surrogate of these rows, their dual objective, and the coupling (p,)."""
        total = self.xp.sum
        low, high = self.a * self.z[0, ...], self.b * self.z[2, ...]
        value = float(total(self._bound(0.0)[0]))
        return value, float(total(low) + total(high)), self._to_theta(low - high)


def n_pairs(n: int) -> int:
    """Count the pairs j <= k of n things."""
    return n * (n + 1) // 2


def _first_pairs(n: int) -> list[int]:
    """Position of the pair (j, j) among all pairs j <= k, row by row."""
    return [j * n - n_pairs(j - 1) if j else 0 for j in range(n)]
