"""Our own solver: a primal-dual interior point that uses the tree.

The compact rows of `linear_program.compact_form`, per node j and example,

    s1 = v_j - v_neg + a m_j - a,  s2 = v_j - v_neg,      multipliers z1, z2
    s3 = v_j - v_pos - b m_j - b,  s4 = v_j - v_pos,      multipliers z3, z4

make a Newton step with D = z / s the minimum of a quadratic in (dv, dm) per example. Read
it as a circuit. The two rows of an edge add up to

    q (dv_j - dv_child + w dm_j)² + extra dm_j²,
    q = D1 + D2, w =  a D1 / q, extra = a² D1 D2 / q     on the negative edge,
    q = D3 + D4, w = -b D3 / q, extra = b² D3 D4 / q     on the positive edge:

a conductance q with a source w dm_j. A subtree seen from its root c is one conductance
G_c with a source u_c, linear in the margins below: series and parallel connections, only
sums of positive terms. With g1, g2 the conductances of a node's two branches and
ω = g / (g1 + g2) their shares, eliminating all dv leaves

    M = diag(extra) + sum_j κ_j y_j y_jᵀ,   κ_j = g1 g2 / (g1 + g2),   y_j = o1 - o2,

where o = w dm_j + u_child is the source of a branch. Hence for k, l below different sides
of j the entry M_kl is a product of one factor per side, and the p x p Newton matrix
S = sum_i Φ_iᵀ M_i Φ_i is built from a few large matrix products per node, from the leaves
up. Everything else is elementwise on node-major (n_nodes, n_rows) arrays, in row blocks
that fit a cache, summed in a fixed order. Where S is close to singular, its solutions are
refined by conjugate gradients with the exact operator, which needs no matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from sensortree.exceptions import SolverError
from sensortree.program.arrays import Array, like, namespace, to_numpy
from sensortree.program.certificate import REACH
from sensortree.program.solvers.base import (
    Candidate,
    Options,
    Progress,
    RawSolution,
    Solver,
)
from sensortree.program.surrogate import DualPoint, SurrogateProblem

Vector = NDArray[np.float64]
Result = TypeVar("Result")

MAX_ITERATIONS = 300
STEP_TO_BOUNDARY = 0.98  # 0.995 took a tenth more iterations on the largest problem
BLOCK_VALUES = 1 << 14  # rows x nodes of a NumPy block, so that its arrays fit a cache
BLOCK_VALUES_FOREIGN = 1 << 24
# Sum of s z at the first point, as a multiple of the objective there. The smallest saves
# iterations; where its first step is short the next one is tried.
STARTS = (0.7, 5.0, 50.0)
CLOSER = (
    0.3  # the solver's own estimate of the gap is to be this much below the tolerance
)
# Curvature added to each coefficient, in units of tol · objective / p. A coefficient that
# no example holds back any more then moves slowly; the optimum stays where it is.
DRAG = 1e-3
PATIENCE = 20  # iterations without a smaller gap
MAX_REFINEMENTS = 12
ROOM_FOR_PRODUCTS = 1 << 25  # numbers: 256 MiB
ROOM_FOR_PRODUCTS_FOREIGN = 1 << 30
CHUNKS = 16  # sums over blocks are sums of this many, however many threads there are


@dataclass(frozen=True, eq=False)
class _Tree:
    """The tree, renumbered depth first, so that a subtree's columns are contiguous."""

    order: list[int]  # our node -> the problem's node
    negative: list[int]  # -1 for a leaf
    positive: list[int]
    parent: list[int]
    is_negative: list[bool]  # whether a node is its parent's negative child
    columns: list[slice]  # of each node's coefficients
    below: list[slice]  # of the coefficients of each node's subtree, itself included
    size: list[int]  # number of nodes in each node's subtree

    def nodes_below(self, node: int) -> range:
        """The nodes of a subtree; none for a leaf."""
        return range(node, node + self.size[node]) if node >= 0 else range(0)

    @classmethod
    def of(cls, problem: SurrogateProblem) -> _Tree:
        order: list[int] = []
        stack = [0]
        while stack:
            node = stack.pop()
            order.append(node)
            children = (int(problem.positive[node]), int(problem.negative[node]))
            stack += [child for child in children if child >= 0]
        place = {node: ours for ours, node in enumerate(order)} | {-1: -1}
        negative = [place[int(problem.negative[node])] for node in order]
        positive = [place[int(problem.positive[node])] for node in order]
        parent, size = [-1] * len(order), [1] * len(order)
        for j in reversed(range(len(order))):
            for child in (negative[j], positive[j]):
                if child >= 0:
                    parent[child] = j
                    size[j] += size[child]
        ends = np.cumsum([0] + [problem.n_features[node] for node in order]).tolist()
        return cls(
            order,
            negative,
            positive,
            parent,
            [p >= 0 and negative[p] == j for j, p in enumerate(parent)],
            [slice(ends[j], ends[j + 1]) for j in range(len(order))],
            [slice(ends[j], ends[j + size[j]]) for j in range(len(order))],
            size,
        )


class _Weights(NamedTuple):
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


class _Rows:
    """Some examples: their data, their point (v, s, z), and one Newton step at a time.

    `a`, `b`, `v`, `m` are (n_nodes, n_rows); `s`, `z` are (4, n_nodes, n_rows);
    `features` are (D_j, n_rows).
    """

    def __init__(self, tree: _Tree, features: list[Array], a: Array, b: Array):
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

    def _weights(self) -> _Weights:
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
        return _Weights(
            diagonal=self.extra + own * y + up * source,
            with_low=own + up * low,
            with_high=up * high - own,
            across=above * low * high - self.kappa,
            source=source,
        )

    def add_matrix(self, S: Array) -> None:
        """Add Φᵀ M Φ of these rows to the upper triangle of S, (p, p)."""
        xp, tree, weights = self.xp, self.tree, self._weights()
        U = xp.empty((S.shape[0], self.n_rows), dtype=self.a.dtype, **_on(self.a))
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
        M = self.xp.empty((S.shape[0], self.n_rows), dtype=self.a.dtype, **_on(self.a))
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


class _Penalties:
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


class _Blocks:
    """All rows, in blocks; every sum is taken in the same order."""

    def __init__(self, problem: SurrogateProblem, n_jobs: int):
        self.problem, self.n_jobs = problem, n_jobs
        self.tree = _Tree.of(problem)
        self.n_coef = self.tree.below[0].stop
        self.xp = xp = namespace(problem.lost_if_negative)
        weight = xp.max(problem.lost_if_negative + problem.lost_if_positive, axis=1)
        # An example for which no decision matters costs nothing, wherever it goes.
        rows = np.flatnonzero(to_numpy(weight) > 0)
        limit = BLOCK_VALUES if xp is np else BLOCK_VALUES_FOREIGN
        n_blocks = max(1, -(-rows.size * problem.n_nodes // limit))
        self.parts = [part for part in np.array_split(rows, n_blocks) if part.size]
        self.blocks = [self._block(part) for part in self.parts]
        self.n_values = 4 * problem.n_nodes * rows.size
        room = ROOM_FOR_PRODUCTS if xp is np else ROOM_FOR_PRODUCTS_FOREIGN
        for block in self.blocks:
            block.keep_products = rows.size * _n_pairs(problem.n_features[0]) <= room
        self._pool: ThreadPoolExecutor | None = None

    def _block(self, rows: NDArray[np.intp]) -> _Rows:
        problem, order = self.problem, self.tree.order
        where = like(rows, problem.lost_if_negative)
        copies: dict[int, Array] = {}
        for array in problem.features:
            if id(array) not in copies:
                copies[id(array)] = _transposed(array, where)
        a = _transposed(problem.lost_if_negative, where)
        b = _transposed(problem.lost_if_positive, where)
        return _Rows(
            self.tree,
            [copies[id(problem.features[node])] for node in order],
            self.xp.stack([a[node, :] for node in order]),
            self.xp.stack([b[node, :] for node in order]),
        )

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Use `n_jobs` threads inside; each then has one BLAS thread."""
        if self.n_jobs == 1 or self.xp is not np or len(self.blocks) == 1:
            yield
            return
        with threadpool_limits(1), ThreadPoolExecutor(self.n_jobs) as pool:
            self._pool = pool
            try:
                yield
            finally:
                self._pool = None

    def map(
        self, task: Callable[..., Result], *arguments: Iterable[Any]
    ) -> list[Result]:
        """Do a task for every block, results in order."""
        return self._run(task, self.blocks, *arguments)

    def _run(
        self, task: Callable[..., Result], *arguments: Iterable[Any]
    ) -> list[Result]:
        """Map a task, on the threads if there are any.

        Where rounding is all that is left, numbers overflow; `run` sees and stops.
        """
        if self._pool is None:
            return list(map(task, *arguments))

        def quietly(*each: Any) -> Result:
            with np.errstate(all="ignore"):
                return task(*each)

        return list(self._pool.map(quietly, *arguments))

    def split(self, theta: Vector) -> list[Vector]:
        """Cut all coefficients into those of each node."""
        return [theta[columns] for columns in self.tree.columns]

    def matrix(self) -> Vector:
        """S = sum of Φᵀ M Φ, (p, p), its upper triangle."""
        n_nodes, n_features = self.problem.n_nodes, self.problem.n_features[0]
        pairs = len(self.blocks[0].shared) == 1 and n_nodes > 1
        n_coef = self.n_coef
        shape = (_n_pairs(n_nodes), _n_pairs(n_features)) if pairs else (n_coef, n_coef)

        def add_up(chunk: NDArray[np.intp]) -> Vector:
            sample = self.blocks[0].a
            S = self.xp.zeros(shape, dtype=sample.dtype, **_on(sample))
            for k in chunk:
                self.blocks[k].connect()
                if pairs:
                    self.blocks[k].add_pairs(S)
                else:
                    self.blocks[k].add_matrix(S)
            return to_numpy(S)

        numbers = np.arange(len(self.blocks))
        S = _sum(self._run(add_up, np.array_split(numbers, min(CHUNKS, numbers.size))))
        return _unpacked(S, n_nodes, n_features) if pairs else S

    def apply(self, d: Vector) -> Vector:
        """S @ d without the matrix."""
        theta = self.split(d)
        return _sum(self.map(lambda rows: rows.apply(theta)))

    def follow(self, d: Vector) -> list[tuple[float, float]]:
        """Complete the step for dθ = d in every block."""
        theta = self.split(d)
        return self.map(lambda rows: rows.follow(theta))

    def solution(self, points: Sequence[_Point], iterations: int) -> RawSolution:
        """Points in the problem's own order of nodes and examples."""
        return RawSolution([self._candidate(point) for point in points], iterations)

    def _candidate(self, point: _Point) -> Candidate:
        problem, order = self.problem, self.tree.order
        coef: list[Vector] = [point.theta] * problem.n_nodes
        for ours, node in enumerate(order):
            coef[node] = point.theta[self.tree.columns[ours]].copy()
        z1, z2, z3, z4 = self._by_sample(point.z)
        dual = DualPoint(
            z1 + z2,
            z3 + z4,
            problem.lost_if_negative * z1,
            problem.lost_if_positive * z3,
        )
        return Candidate(coef, dual)

    def _by_sample(self, blocks: list[Array]) -> list[Array]:
        """Multipliers of the four kinds of rows, each (n_samples, n_nodes)."""
        problem, xp = self.problem, self.xp
        back = [int(k) for k in np.argsort(self.tree.order)]
        if sum(part.size for part in self.parts) == problem.n_samples:
            z = blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=2)
            return [
                xp.stack([z[kind, j, :] for j in back], axis=1) for kind in range(4)
            ]
        whole = np.zeros((4, problem.n_nodes, problem.n_samples))
        for part, block in zip(self.parts, blocks, strict=True):
            whole[:, :, part] = to_numpy(block)[:, back]
        return [like(part.T, problem.lost_if_negative) for part in whole]


class _Newton:
    """The factored Newton matrix of a point, and solutions of its systems."""

    def __init__(self, blocks: _Blocks, penalties: _Penalties, drag: float):
        self.blocks = blocks
        S = blocks.matrix()
        self.added = penalties.curvature()
        self.added += drag
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
        direction, slope = np.zeros_like(d), 1.0
        for step in range(MAX_REFINEMENTS):
            if (
                np.abs(residual / self.size).max()
                <= 1e-9 * np.abs(rhs / self.size).max()
            ):
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


class _InteriorPoint:
    """Mehrotra's predictor-corrector method on all rows and the penalties."""

    def __init__(self, problem: SurrogateProblem, options: Options):
        self.options = options
        self.blocks = _Blocks(problem, options.n_jobs)
        ends = np.cumsum([0, *problem.n_features])
        ours = np.concatenate(
            [np.arange(ends[k], ends[k + 1]) for k in self.blocks.tree.order]
        )
        self.penalties = _Penalties(options.ridge[ours], options.lasso[ours])
        self.n_values = self.blocks.n_values + self.penalties.n_values

    def start(self, multiple: float) -> None:
        """Stand at θ = 0, every example centred; the sum of s z is `multiple` values."""
        theta = np.zeros(self.blocks.n_coef)
        split = self.blocks.split(theta)
        value = sum(self.blocks.map(lambda rows: rows.stand(split)))
        mu = multiple * value / self.n_values
        self.blocks.map(lambda rows: rows.center(mu))
        self.penalties.start(theta, mu)

    def bounds(self) -> tuple[float, float, float]:
        """Objective, dual objective, and how wrong the latter may be."""
        parts = self.blocks.map(lambda rows: rows.bounds())
        penalties = self.penalties
        upper = sum(part[0] for part in parts) + penalties.value()
        lower = sum(part[1] for part in parts) - penalties.conjugate()
        coupling = _sum([part[2] for part in parts]) - penalties.pull()
        doubt = REACH * np.abs(coupling) @ np.maximum(1.0, np.abs(penalties.theta))
        return upper, lower, float(doubt)

    def complementarity(self) -> float:
        """Sum of s z: the gap, once the dual point is feasible."""
        parts = self.blocks.map(lambda rows: float(rows.xp.sum(rows.s * rows.z)))
        return sum(parts) + float((self.penalties.s * self.penalties.z).sum())

    def step(self, drag: float) -> float:
        """Predict, correct, move; return how far we moved, 1 being all the way.

        `drag` is added to the curvature of each coefficient.
        """
        blocks, penalties = self.blocks, self.penalties
        newton = _Newton(blocks, penalties, drag)
        primal, dual = self._direction(newton, [None] * len(blocks.blocks), None)
        products = _sum(blocks.map(lambda rows: rows.products())) + penalties.products()
        now, by_dual, by_primal, by_both = products.tolist()
        mu = now / self.n_values
        left = now + dual * by_dual + primal * by_primal + primal * dual * by_both
        mu *= (left / now) ** 3
        targets = blocks.map(lambda rows: rows.second_order(mu))
        primal, dual = self._direction(newton, targets, penalties.second_order(mu))
        primal, dual = (1.0 if x == 1 else STEP_TO_BOUNDARY * x for x in (primal, dual))
        blocks.map(lambda rows: rows.move(primal, dual))
        penalties.move(primal, dual)
        return min(primal, dual)

    def _direction(
        self, newton: _Newton, targets: Sequence[Array | None], target: Vector | None
    ) -> tuple[float, float]:
        """Find a direction; return how far it can be followed, primal and dual."""
        aims = self.blocks.map(lambda rows, target: rows.aim(target), targets)
        d = newton.solve(_sum(aims) + self.penalties.aim(target))
        speeds = [*self.blocks.follow(d), self.penalties.follow(d)]
        primal, dual = (1.0 / max(1.0, *each) for each in zip(*speeds, strict=True))
        if self.penalties.ridge.any():  # then the dual depends on θ: one step for both
            primal = dual = min(primal, dual)
        return primal, dual

    def point(self) -> _Point:
        """Where we stand; arrays are replaced by a step, never written to."""
        return _Point(self.penalties.theta, [rows.z for rows in self.blocks.blocks])


@dataclass(frozen=True, eq=False)
class _Point:
    theta: Vector
    z: list[Array]


def run(problem: SurrogateProblem, options: Options) -> RawSolution:
    """Iterate until the bounds meet, no progress is left, or the user stops us."""
    path = _InteriorPoint(problem, options)
    if not path.blocks.blocks:  # no decision matters to any example
        return path.blocks.solution((_Point(np.zeros(path.blocks.n_coef), []),), 0)
    with path.blocks.threads(), np.errstate(all="ignore"):
        starts = list(STARTS)
        path.start(starts.pop(0))
        best, least = path.point(), np.inf
        smallest_gap, last_progress, iteration = np.inf, 0, 0
        try:
            for iteration in range(MAX_ITERATIONS + 1):
                upper, lower, doubt = path.bounds()
                size = max(options.unit, abs(upper))
                gap = max(upper - lower, path.complementarity()) / size
                if gap < 0.9 * smallest_gap:
                    smallest_gap, last_progress = gap, iteration
                if gap + doubt / size < least:
                    best, least = path.point(), gap + doubt / size
                progress = Progress(iteration, upper, lower)
                stop = options.callback is not None and options.callback(progress)
                stalled = iteration - last_progress >= PATIENCE or not np.isfinite(gap)
                done = least <= CLOSER * options.tol or gap <= 1e-4 * options.tol
                if done or stop or stalled:
                    break
                length = path.step(DRAG * options.tol * size / path.blocks.n_coef)
                if (
                    length < 0.1
                    and starts
                    and len(STARTS) - len(starts) == iteration + 1
                ):
                    path.start(starts.pop(0))
        except KeyboardInterrupt:  # what we have is worth having, and will be certified
            pass
        except SolverError:
            if least == np.inf:
                raise
    return path.blocks.solution((best, path.point()), iteration)


def _n_pairs(n: int) -> int:
    return n * (n + 1) // 2


def _first_pairs(n: int) -> list[int]:
    """Position of the pair (j, j) among all pairs j <= k, row by row."""
    return [j * n - _n_pairs(j - 1) if j else 0 for j in range(n)]


@lru_cache(maxsize=8)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n)


def _unpacked(S: Vector, n_nodes: int, n_features: int) -> Vector:
    """Give (p, p) from (pairs of nodes, pairs of features)."""
    j, k = _pairs(n_nodes)
    d, e = _pairs(n_features)
    blocks = np.empty((len(j), n_features, n_features))
    blocks[:, d, e] = blocks[:, e, d] = S
    whole = np.zeros((n_nodes, n_features, n_nodes, n_features))
    whole[j, :, k, :] = blocks
    return whole.reshape(n_nodes * n_features, -1)


def _sum(parts: Sequence[Vector]) -> Vector:
    total = np.zeros_like(parts[0])
    for part in parts:
        total += part
    return total


def _transposed(array: Array, rows: Array) -> Array:
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array[rows].T)
    turned = namespace(array).take(array, rows, axis=0).T
    return turned.contiguous() if hasattr(turned, "contiguous") else turned + 0.0


def _on(array: Array) -> dict[str, Any]:
    return {} if isinstance(array, np.ndarray) else {"device": array.device}


SOLVERS = (Solver("structured", run, ridge=True),)
