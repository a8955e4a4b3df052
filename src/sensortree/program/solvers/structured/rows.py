"""`Rows`: some examples as circuits, and one Newton step of theirs at a time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import (
    Array,
    astype,
    like,
    namespace,
    numbers,
    on_device_of,
    to_numpy,
)
from sensortree.program.solvers.structured.shape import (
    Cut,
    TreeShape,
    fill_drops,
    outflow,
)

Vector = NDArray[np.float64]


def multiply(X: Array, weight: Array, out: Array) -> None:
    """Multiply each row of X, (m, n_rows), by a weight for each of its entries."""
    if isinstance(out, np.ndarray):
        np.multiply(X, weight, out=out)
    else:
        out[...] = X * weight


def _places(columns: list[slice]) -> Any:
    """Index that takes coefficients of some nodes from all, one row for each node."""
    if len(columns) == 1:
        return (None, columns[0])
    return np.stack([np.arange(mine.start, mine.stop) for mine in columns])


# circuits -----------------------------------------------------------------------------

WITH, WITHOUT = 0, 1  # the margin: the two rows of an edge
NEARLY = 0.3  # how well the flow is conserved at a first point
MOST_SECOND_ORDER = 5.0  # in units of s z
WIDE = 10.0  # how much smaller or larger than mu a product s z may well be
PRODUCT_ROWS = 1 << 11  # rows that are multiplied at a time
# OpenBLAS multiplies small matrices as they lie, which is faster where one of them is
# narrow: a result of so many entries, and so many products in all. Fewer do not pay.
NARROW = 64
MOST_ENTRIES, LEAST_ENTRIES = 1200, 200
MOST_PRODUCTS = 10**6


class Weights(NamedTuple):
    """Factors of the entries of M, each (n_nodes, n_rows).

    For k below one side of j, M_jk is with_side_j times the source of k as j's child sees
    it. For k and l below different sides of j, M_kl is across_j times both sources. On its
    way up a source is multiplied by the shares of the branches that it comes through.
    """

    diagonal: Array
    with_side: Array  # (2, n_nodes, n_rows)
    across: Array
    source: Array
    share: Array  # (2, n_nodes, n_rows)


@dataclass(frozen=True, eq=False)
class Bounds:
    """What some rows say of the present point; sums over rows."""

    sums: Vector  # (3,): surrogate, dual objective, and s z
    coupling: Vector  # (p,)
    aim: Vector  # (p,): the predictor's right-hand side, which reads the same features

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(
            self.sums + other.sums,
            self.coupling + other.coupling,
            self.aim + other.aim,
        )


@dataclass(frozen=True, eq=False)
class Speeds:
    """How fast a direction meets s = 0 and z = 0, and sums of s z r and s z r²."""

    most: Vector
    sums: Vector

    def __add__(self, other: Speeds) -> Speeds:
        return Speeds(np.maximum(self.most, other.most), self.sums + other.sums)


class Rows:
    """Some examples: their data, their point (m, s, z), and one Newton step at a time.

    `m` is (n_nodes, n_rows); what belongs to edges has the two sides before that,
    what belongs to rows of the program (s, z) the two rows of an edge before the sides:
    (2, 2, n_nodes, n_rows). `features` are (D_j, n_rows). `slope` is ∂s/∂m of the row
    with the margin, a or -b, and `weight` its size, the a or b on the right.
    """

    def __init__(self, tree: TreeShape, features: list[Array], a: Array, b: Array):
        self._lay(tree, features, namespace(a).stack([a, b]))
        self.slope = self.xp.stack([a, -b])

    def _lay(self, tree: TreeShape, features: list[Array], weight: Array) -> None:
        """Have all that is not worth writing down, but for the slope."""
        self.tree, self.features, self.weight = tree, features, weight
        self.xp = xp = namespace(weight)
        self.n_nodes, self.n_rows = weight.shape[1:]
        shared: dict[int, tuple[Array, list[int]]] = {}
        for j, phi in enumerate(features):
            shared.setdefault(id(phi), (phi, []))[1].append(j)
        # Coefficients (len(nodes), D) of the nodes of an array; of one node, a slice.
        self.shared = [
            (phi, nodes, _places([tree.columns[j] for j in nodes]))
            for phi, nodes in shared.values()
        ]
        self.where = [like(np.array(nodes), phi) for phi, nodes, _ in self.shared]
        self.keep = False  # whether products of pairs are kept once they are worked out
        self.kept: Array | None = None
        self.rough: list[Array] = []  # features in single precision, once needed
        self.best: Array = None  # multipliers of the best point so far
        self.settled = False  # whether the point is all there is to know
        self.resting = False  # whether only the point is known
        self.from_file = False  # whether that cannot be written to
        at_once = PRODUCT_ROWS if xp is np else self.n_rows
        n_parts = -(-self.n_rows // at_once)
        ends = [k * self.n_rows // n_parts for k in range(n_parts + 1)]
        self.parts = [slice(*between) for between in pairwise(ends)]

    def __getstate__(self) -> dict[str, Any]:
        """What cannot be computed anew, where the rows stand at a point."""
        kept = (self.tree, self.features, self.weight, self.keep)
        return {"data": kept, "point": (self.m, self.s, self.z, self.best)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        tree, features, weight, keep = state["data"]
        self._lay(tree, features, weight)
        self.keep = keep
        self.m, self.s, self.z, self.best = state["point"]
        self.settled = self.resting = self.from_file = True

    def rise(self) -> None:
        """Compute anew what a copy does not hold, unless it is there."""
        if not self.resting:
            return
        self.resting = False
        self.slope = self.xp.stack([self.weight[0, ...], -self.weight[1, ...]])
        self.product = self.s * self.z
        self._aim_of_predictor()

    # margins Φθ, and what is pulled back to θ; nodes that share features go together ---

    def margins(self, theta: Vector) -> Array:
        """Margins of given coefficients, (n_nodes, n_rows)."""
        margins: Array = None
        for phi, nodes, columns in self.shared:
            together = like(theta[columns], phi) @ phi
            if len(nodes) == self.n_nodes:
                return together
            if margins is None:
                margins = self._empty(self.n_nodes, self.n_rows)
            for k, j in enumerate(nodes):
                margins[j, :] = together[k, :]
        return margins

    def to_theta(self, *pulls: Array) -> list[Vector]:
        """Adjoint of `margins`, of some pulls (n_nodes, n_rows) in one go."""
        xp, k = self.xp, len(pulls)
        pull = xp.stack(pulls) if k > 1 else pulls[0][None, ...]
        theta = np.empty((k, self.tree.n_coef))
        for (phi, nodes, columns), where in zip(self.shared, self.where, strict=True):
            if len(nodes) == 1:
                theta[:, columns[1]] = to_numpy(pull[:, nodes[0], :] @ phi.T)
                continue
            mine = pull if len(nodes) == self.n_nodes else xp.take(pull, where, axis=1)
            mine = xp.reshape(mine, (k * len(nodes), phi.shape[1])) @ phi.T
            theta[:, columns] = to_numpy(mine).reshape(k, *columns.shape)
        return list(theta)

    def pairs(self) -> Array:
        """φ_d φ_e, d <= e, of features that all nodes share, (D (D + 1) / 2, n_rows)."""
        if self.kept is not None:
            return self.kept
        phi = self.features[0]
        n, n_rows = phi.shape
        products = self._empty(n_pairs(n), n_rows)
        start = 0
        for d in range(n):
            end = start + n - d
            multiply(phi[d:, :], phi[d, :], products[start:end, :])
            start = end
        if self.keep:
            self.kept = products
        return products

    # where the rows stand -------------------------------------------------------------

    def stand(self, theta: Vector) -> float:
        """Stand at given coefficients; return their surrogate."""
        self.m, self.from_file = self.margins(theta), False
        self.settled = False
        return float(self.xp.sum(self._values(0.0)[0, :]))

    def center(self, mu: float) -> Bounds:
        """Find v and z with s z = mu and the flow conserved, nearly.

        Margins held still, examples are apart: each takes its own Newton steps in v.
        """
        xp = self.xp
        v = self._values(4 * mu)
        for _ in range(50):
            self.s = self._rows(v, self.m)
            self.s[WITH, ...] -= self.weight
            self.z = mu / self.s
            currents = outflow(self.tree, self.z[WITH, ...] + self.z[WITHOUT, ...])
            currents[0, :] -= 1.0
            if float(xp.max(xp.abs(currents))) < NEARLY:
                break
            self.connect()
            dv = self._solve_laplacian(currents)
            drops = fill_drops(self.tree, dv, xp.empty_like(self.weight))
            speed = xp.max(-drops / xp.min(self.s, axis=0), axis=(0, 1))
            v = v + dv * (0.9 / xp.maximum(speed, 0.9 + 0 * speed))
        self.product = self.s * self.z
        return self._bounds()

    def _values(self, slack: float) -> Array:
        """V of every node at the present margins, plus a slack per level."""
        xp, tree = self.xp, self.tree
        hinges = self.weight - self.slope * self.m
        sides = xp.maximum(hinges, xp.zeros_like(hinges))
        values = xp.empty_like(self.m)
        for level, edges in tree.upwards:
            for edge in edges:
                sides[edge.side, edge.parents, :] += values[edge.children, :]
            values[level, :] = slack + xp.maximum(
                sides[0, level, :], sides[1, level, :]
            )
        return values

    def _rows(self, v: Array, m: Array) -> Array:
        """The linear part of the rows at (v, m)."""
        rows = self._empty(2, *self.weight.shape)
        drops = fill_drops(self.tree, v, rows[WITHOUT, ...])
        rows[WITH, ...] = self.slope * m
        rows[WITH, ...] += drops
        return rows

    # the Newton step ------------------------------------------------------------------

    def connect(self) -> None:
        """Compute the circuit of the present point: conductances, shares, sources."""
        xp, tree = self.xp, self.tree
        D = self.z / self.s
        q = D[WITH, ...] + D[WITHOUT, ...]
        self.pushed = self.slope * D[WITH, ...]  # q w
        self.w = self.pushed / q
        extra = self.slope * self.w * D[WITHOUT, ...]
        self.extra = extra[0, ...] + extra[1, ...]
        g = q + 0.0
        self.G = G = xp.empty_like(self.extra)
        self.transfer = transfer = xp.empty_like(G)
        self.inverse = inverse = xp.empty_like(G)
        for level, edges in tree.upwards:
            for edge in edges:  # in series with what is below it
                here, below = (edge.side, edge.parents), edge.children
                inverse[below, :] = 1.0 / (q[*here, :] + G[below, :])
                transfer[below, :] = q[*here, :] * inverse[below, :]
                g[*here, :] = G[below, :] * transfer[below, :]
            G[level, :] = g[0, level, :] + g[1, level, :]
        self.share = g / G
        self.kappa = g[0, ...] * self.share[1, ...]

    def _weights(self) -> Weights:
        """Factors of which the entries of M are products."""
        above = self.xp.zeros_like(self.kappa)  # sum over ancestors of κ times shares²
        for edge in self.tree.downwards:
            share = self.share[edge.side, edge.parents, :]
            above[edge.children, :] = (
                share * share * above[edge.parents, :] + self.kappa[edge.parents, :]
            )
        low, high = self.share[0, ...], self.share[1, ...]
        source = low * self.w[0, ...] + high * self.w[1, ...]
        y = self.w[0, ...] - self.w[1, ...]
        up, own = above * source, self.kappa * y
        return Weights(
            diagonal=self.extra + own * y + up * source,
            with_side=self.xp.stack([own + up * low, up * high - own]),
            across=above * low * high - self.kappa,
            source=source,
            share=self.share,
        )

    def add_matrix(self, S: Array) -> None:
        """Add Φᵀ M Φ of these rows to the upper triangle of S, (p, p)."""
        self._add_matrix(S, self.features, self._weights())

    def add_rough_matrix(self, S: Array) -> None:
        """Add Φᵀ M Φ to S by products in single precision, in about half the time."""
        single = self.xp.float32
        if not self.rough:
            copies = {id(phi): astype(phi, single) for phi in self.features}
            self.rough = [copies[id(phi)] for phi in self.features]
        weights = Weights(*(astype(w, single) for w in self._weights()))
        self._add_matrix(S, self.rough, weights)

    def _add_matrix(self, S: Array, features: list[Array], weights: Weights) -> None:
        tree = self.tree
        for part in self.parts:
            phis = [phi[:, part] for phi in features]
            some = Weights(*(w[..., part] for w in weights))
            factors = self.xp.empty_like(some.source)
            kind = {"dtype": factors.dtype, **on_device_of(factors)}
            U = self.xp.empty((S.shape[0], factors.shape[1]), **kind)
            for j, (phi, mine) in enumerate(zip(phis, tree.columns, strict=True)):
                weighted = U[: phi.shape[0], :]
                multiply(phi, some.diagonal[j, :], weighted)
                add_product(S[mine, mine], weighted, phi)
            for cut in tree.cuts:
                self._fill_factors(cut, some, factors)
                end = 0  # small cuts use little of U, which stays in a cache
                for at in range(cut.above.start, cut.below.stop):
                    phi = phis[tree.nodes[at]]
                    start, end = end, end + phi.shape[0]
                    multiply(phi, factors[at, :], U[start:end, :])
                height = cut.rows.stop - cut.rows.start
                add_product(S[cut.rows, cut.columns], U[:height, :], U[height:end, :])

    def _fill_factors(self, cut: Cut, weights: Weights, factors: Array) -> None:
        """Fill in, by place, of which M_kl of k above a cut and l below is the product."""
        place, share, source = self.tree.place, weights.share, weights.source
        passed: dict[int, Array] = {}  # what a source is multiplied by on its way
        up: Array = 1.0
        for step, other in cut.climb:
            j, side = step.parent, step.side
            factors[place[j], :] = weights.with_side[side, j, :] * up
            if other >= 0:
                passed[other] = weights.across[j, :] * up
                factors[place[other], :] = source[other, :] * passed[other]
            up = share[side, j, :] * up
        passed[cut.node] = 1.0
        factors[place[cut.node], :] = source[cut.node, :]
        for step in (*cut.aside, *cut.down):
            j, k = step.parent, step.child
            passed[k] = share[step.side, j, :] * passed[j]
            factors[place[k], :] = source[k, :] * passed[k]

    def add_pairs(self, S: Array) -> None:
        """Add M times products of features to S, (pairs of nodes, pairs of features).

        Where all nodes share their features this is Φᵀ M Φ at half the work: one product
        of a matrix of all M_jk, j <= k by place, and one of all φ_d φ_e, d <= e.
        """
        tree, weights = self.tree, self._weights()
        M = self._empty(S.shape[0], self.n_rows)
        first = _first_pairs(self.n_nodes)
        for at, j in enumerate(tree.nodes):
            M[first[at], :] = weights.diagonal[j, :]
        factors = self.xp.empty_like(weights.source)
        for cut in tree.cuts:
            self._fill_factors(cut, weights, factors)
            below = factors[cut.below, :]
            for at in range(cut.above.start, cut.above.stop):
                start = first[at] - at + cut.below.start
                multiply(below, factors[at, :], M[start : start + below.shape[0], :])
        S += M @ self.pairs().T

    def _empty(self, *shape: int) -> Array:
        kind = {"dtype": self.weight.dtype, **on_device_of(self.weight)}
        return self.xp.empty(shape, **kind)

    def apply(self, theta: Vector) -> Vector:
        """Φᵀ M Φ θ of these rows, without the matrix: up the tree, and down."""
        tree = self.tree
        m = self.margins(theta)
        sources = self.w * m  # of the branches
        u = self.xp.empty_like(m)
        for level, edges in tree.upwards:
            for edge in edges:
                sources[edge.side, edge.parents, :] += u[edge.children, :]
            at = self.share[:, level, :] * sources[:, level, :]
            u[level, :] = at[0, ...] + at[1, ...]
        flow = self.kappa * (sources[0, ...] - sources[1, ...])
        flow = self.xp.stack([flow, -flow])
        for edge in tree.downwards:
            into = flow[edge.side, edge.parents, :]
            flow[:, edge.children, :] += self.share[:, edge.children, :] * into
        pull = self.w * flow
        return self.to_theta(self.extra * m + pull[0, ...] + pull[1, ...])[0]

    def _solve_laplacian(self, currents: Array) -> Array:
        """Potentials dv that draw these currents, which are overwritten."""
        transfer, inverse = self.transfer, self.inverse
        for _, edges in self.tree.upwards:
            for edge in edges:
                below = edge.children
                currents[edge.parents, :] += transfer[below, :] * currents[below, :]
        currents[0, :] /= self.G[0, :]
        for edge in self.tree.downwards:
            below = edge.children
            currents[below, :] *= inverse[below, :]
            currents[below, :] += transfer[below, :] * currents[edge.parents, :]
        return currents

    # With r = ds / s and a step to complementarity s z t the multipliers change by
    # dz = z u, u = t - 1 - r: all of a step is read off r. The predictor has t = 0.

    def aim_at(self, mu: float) -> Vector:
        """Right-hand side (p,) of Mehrotra's corrector to s z = mu.

        It aims at mu - ds dz of the predictor, that is t = mu / s z + r (1 + r), where the
        second term is cut: it is large for the few rows that the predictor would take far
        beyond 0, which it does not.
        """
        t = self.r + 1.0
        t *= self.r
        t = self.xp.clip(t, None, MOST_SECOND_ORDER)
        t += mu / self.product
        return self._aim(t)

    def aim_beside(self, mu: float, primal: float, dual: float) -> Vector:
        """Right-hand side (p,) of Gondzio's corrector of the present direction."""
        return self._aim(recentred(self.product, self.r, self.t, mu, primal, dual))

    def _aim(self, t: Array) -> Vector:
        """Right-hand side (p,) of a step to s z t."""
        self.t = t
        tau = self.z * t
        self.currents = outflow(self.tree, tau[WITH, ...] + tau[WITHOUT, ...])
        self.currents[0, :] -= 1.0
        dv = self._solve_laplacian(self.currents + 0.0)
        pull = fill_drops(self.tree, dv, self.xp.empty_like(self.pushed))
        pull *= self.pushed
        pull -= self.slope * tau[WITH, ...]
        return -self.to_theta(pull[0, ...] + pull[1, ...])[0]

    def follow(self, theta: Vector) -> Speeds:
        """Complete the predictor for dθ; what is needed to choose mu."""
        xp = self.xp
        self._complete(theta)
        self.settled = False
        changes = self.product * self.r
        found = numbers(
            -xp.min(self.r),
            1.0 + xp.max(self.r),
            xp.sum(changes),
            xp.sum(changes * self.r),
        )
        return Speeds(found[:2], found[2:])

    def follow_corrected(self, theta: Vector) -> Speeds:
        """Complete the corrector for dθ; how fast it meets s = 0 and z = 0."""
        self._complete(theta)
        self.t -= 1.0
        self.t -= self.r  # u
        most = numbers(-self.xp.min(self.r), -self.xp.min(self.t))
        return Speeds(most, np.zeros(0))

    def keep_products(self) -> None:
        """Keep products of pairs of features once they are worked out."""
        self.keep = True

    def hold_direction(self) -> None:
        """Remember the present direction: what `move` follows."""
        self.turned_from: tuple[Array, ...] = (self.dm, self.r, self.t)

    def turn_back(self) -> None:
        """Take the direction up again that was held."""
        self.dm, self.r, self.t = self.turned_from

    def hold_point(self) -> None:
        """Remember the present multipliers; a step replaces arrays, and writes to none."""
        self.best = self.z

    def _complete(self, theta: Vector) -> None:
        """Find dm, dv and r of a step for dθ."""
        self.dm = self.margins(theta)
        currents = self.currents - outflow(self.tree, self.pushed * self.dm)
        self.r = self._rows(self._solve_laplacian(currents), self.dm)
        self.r /= self.s

    def move(self, primal: float, dual: float) -> Bounds:
        """Take the corrector's step."""
        if self.from_file:
            self.m, self.s, self.from_file = self.m + 0.0, self.s + 0.0, False
        self.m += primal * self.dm
        self.r *= primal
        self.r += 1.0
        self.s *= self.r
        self.t *= dual
        self.t += 1.0
        self.z = self.z * self.t  # the old one may be part of the best point so far
        self.product = self.s * self.z
        return self._bounds()

    def _bounds(self) -> Bounds:
        self.settled = True
        total = self.xp.sum
        pulls = self.slope * self.z[WITH, ...]
        low, high = pulls[0, ...], pulls[1, ...]
        value, product = total(self._values(0.0)[0, :]), total(self.product)
        coupling, aim = self.to_theta(low + high, self._aim_of_predictor())
        return Bounds(numbers(value, total(low - high), product), coupling, aim)

    def _aim_of_predictor(self) -> Array:
        """Pulls (n_nodes, n_rows) that the predictor aims at."""
        self.connect()
        dv = self.xp.empty_like(self.m)  # what a unit current into the root does
        dv[0, :] = 1.0 / self.G[0, :]
        for edge in self.tree.downwards:
            below = edge.children
            dv[below, :] = self.transfer[below, :] * dv[edge.parents, :]
        self.currents = self.xp.zeros_like(self.m)
        self.currents[0, :] = -1.0
        pull = fill_drops(self.tree, dv, self.xp.empty_like(self.pushed))
        pull *= self.pushed
        return pull[0, ...] + pull[1, ...]


def recentred(
    product: Array, r: Array, u: Array, mu: float, primal: float, dual: float
) -> Array:
    """Give t of a step that also brings back what it would leave far from mu.

    Products s z of which the step to (1 + primal r) s and (1 + dual u) z makes less or
    more than mu, by a factor of `WIDE`, are to end there (Gondzio).
    """
    xp = namespace(product)
    t = r + u
    there = (primal * r + 1.0) * (dual * u + 1.0) * product
    back = xp.clip(there, mu / WIDE, WIDE * mu) - there
    t += xp.clip(back, -WIDE * mu, None) / product
    t += 1.0
    return t


def add_product(S: Array, X: Array, Y: Array) -> None:
    """Add X Yᵀ, (m, k), to S; a narrow one tile by tile, which BLAS need not pack."""
    (m, n_rows), k = X.shape, Y.shape[0]
    area = min(MOST_ENTRIES, MOST_PRODUCTS // n_rows)
    if min(m, k) > NARROW or area < LEAST_ENTRIES or not isinstance(S, np.ndarray):
        S += X @ Y.T
        return
    height = min(m, isqrt(area))
    width = area // height
    for i in range(0, m, height):
        for j in range(0, k, width):
            S[i : i + height, j : j + width] += X[i : i + height] @ Y[j : j + width].T


def n_pairs(n: int) -> int:
    """Count the pairs j <= k of n things."""
    return n * (n + 1) // 2


def _first_pairs(n: int) -> list[int]:
    """Position of the pair (j, j) among all pairs j <= k, row by row."""
    return [j * n - n_pairs(j - 1) if j else 0 for j in range(n)]
