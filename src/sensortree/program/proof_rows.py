"""`ProofRows`: some rows of a problem, their dual point, and what the proof makes of it.

What a solver returns is only nearly feasible. Signs are clipped, flow is conserved, pulls
are cut to their capacity; what is left is to move them within their capacities. All that
is read of rows is sums over them.

With columns F of a node, scale s and perhaps a turn T, the proof speaks of X = F / s, and
moves pulls along X T. Scales are powers of 2, so that X need not be written down: no digit
of a column is changed by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, like, namespace, to_numpy
from sensortree.program.scaling import ColumnRows, exact_parts, gram_of, triangle
from sensortree.program.surrogate import Coef, DualPoint, SurrogateProblem

Vector = NDArray[np.float64]
Exact = tuple[Vector, Vector]


class ProofRows(ColumnRows):
    """Some rows, and pulls of theirs, (n_rows,) by node, that a bound is computed from."""

    high: list[Array]  # capacities of the two pulls of each node
    low: list[Array]
    pull: list[Array]  # their difference
    best: list[Array]

    def __init__(self, problem: SurrogateProblem, dual: DualPoint):
        super().__init__(problem)
        self.dual = dual

    # what the problem is --------------------------------------------------------------

    def most_negative(self) -> float:
        """Size of the most negative multiplier, 0 if none is negative."""
        least = (
            float(namespace(part).min(_number(part)))
            for part in self.dual.arrays
            if 0 not in part.shape
        )
        return max(0.0, -min(least, default=0.0))

    def n_rows(self) -> int:
        """How many rows there are."""
        return self.problem.n_samples

    def lost(self) -> Vector:
        """Savings that decisions can lose, of all rows, (n_nodes,)."""
        problem = self.problem
        both = problem.lost_if_negative + problem.lost_if_positive
        return to_numpy(namespace(both).sum(both, axis=0))

    def value(self, coef: Coef) -> float:
        """The surrogate of some coefficients."""
        return self.problem.value(coef) if self.problem.n_samples else 0.0

    def exact_value(self, coef: Coef) -> float:
        """The same, margins in twice the precision."""
        problem = self.problem
        if not problem.n_samples:
            return 0.0
        xp = namespace(problem.lost_if_negative)
        margins = []
        for features, theta in zip(problem.features, coef, strict=True):
            value, error = exact_parts(features.T, like(theta, features))
            margins.append(like((value + error)[0], features))
        return float(xp.sum(problem.values(xp.stack(margins, axis=1))))

    # pulls within their capacities ----------------------------------------------------

    def begin(self, least: float) -> None:
        """Take the solver's pulls, its flow made a unit flow.

        Each edge gets at least the share `least` of what comes to its node. Pulls are cut
        to their capacities, a · flow_negative and b · flow_positive.
        """
        problem, dual = self.problem, self.dual
        xp = namespace(problem.lost_if_negative)
        self.high, self.low, self.pull = [], [], []
        inflow: dict[int, Array] = {}

        def cut(part: Array, most: Array) -> Array:
            return xp.minimum(xp.maximum(_number(part), 0.0 * most), most)

        for j in range(problem.n_nodes):
            down = _number(dual.flow_negative[:, j])
            up = _number(dual.flow_positive[:, j])
            zero = xp.zeros_like(down)
            down, up = xp.maximum(down, zero), xp.maximum(up, zero)
            total = down + up
            known = total > 0
            share = xp.where(known, down / xp.where(known, total, zero + 1), zero + 0.5)
            share = xp.clip(share, least, 1 - least)
            flow = inflow.pop(j, zero + 1)
            flow_negative = flow * share
            flow_positive = flow - flow_negative
            inflow[int(problem.negative[j])] = flow_negative  # -1: a leaf, never asked
            inflow[int(problem.positive[j])] = flow_positive
            high = problem.lost_if_negative[:, j] * flow_negative
            low = problem.lost_if_positive[:, j] * flow_positive
            self.high.append(high)
            self.low.append(low)
            self.pull.append(
                cut(dual.pull_negative[:, j], high) - cut(dual.pull_positive[:, j], low)
            )
        self.best = list(self.pull)

    def drop_small(self, small: float) -> None:
        """Set pulls that are near 0 to 0, where they often must be."""
        xp = namespace(self.problem.lost_if_negative)
        self.pull = [
            xp.where(xp.abs(pull) <= small, xp.zeros_like(pull), pull)
            for pull in self.pull
        ]
        self.best = list(self.pull)

    def couplings(self, nodes: Sequence[int]) -> list[Vector]:
        """Sums of |pull| of some nodes, and Xᵀ pull of each."""
        sums, found = [], []
        for j in nodes:
            pull, k = self.pull[j], self.problem.shared[j]
            xp = namespace(pull)
            coupling = to_numpy(self.problem.features[j].T @ pull) / self.scale[k]
            sums.append(float(xp.sum(xp.abs(pull))))
            found.append(coupling)
        return [np.array(sums), *found]

    def exact_coupling(self, j: int) -> Exact:
        """Xᵀ pull in twice the precision, and what rounding took from it."""
        return exact_parts(self.scaled(self.problem.shared[j]), self.pull[j])

    def keep(self, nodes: Sequence[int]) -> None:
        """Remember the pulls of some nodes as their best."""
        for j in nodes:
            self.best[j] = self.pull[j]

    def take_best(self) -> None:
        """Take up the best pulls, and forget the others."""
        self.pull = list(self.best)

    def room(self, j: int) -> Array:
        """How far pulls of a node may move, but for a small share of their range."""
        pull, high, low = self.pull[j], self.high[j], self.low[j]
        xp = namespace(pull)
        free = xp.minimum(high - pull, pull + low)
        return xp.maximum(free, 1e-4 * (high + low))

    def _along(self, j: int) -> tuple[Array, Vector | None]:
        """Columns along which pulls move, and what these are still to be divided by."""
        k = self.problem.shared[j]
        turned = self.turned[k]
        if turned is None:
            return self.problem.features[j], self.scale[k]
        return turned, None

    def room_grams(self, nodes: Sequence[int]) -> list[Vector]:
        """Products of room X T, of some nodes."""
        found = []
        for j in nodes:
            columns, scale = self._along(j)
            gram = to_numpy(columns.T @ (columns * (self.room(j) ** 2)[:, None]))
            found.append(gram if scale is None else gram / np.outer(scale, scale))
        return found

    def room_triangle(self, j: int, norms: Vector) -> Vector:
        """R of room X T / norms."""
        columns, scale = self._along(j)
        unit = 1.0 / norms if scale is None else 1.0 / (norms * scale)
        return triangle(columns * self.room(j)[:, None] * like(unit, columns))

    def move(self, steps: Mapping[int, Vector]) -> None:
        """Move pulls by -room² X T step, and cut them to their capacities."""
        for j, step in steps.items():
            columns, scale = self._along(j)
            step = step if scale is None else step / scale
            pull, room = self.pull[j], self.room(j)
            xp = namespace(pull)
            moved = pull - room * room * (columns @ like(step, columns))
            self.pull[j] = xp.minimum(xp.maximum(moved, -self.low[j]), self.high[j])

    # bounds ---------------------------------------------------------------------------

    def shrink(self, factors: Sequence[float]) -> None:
        """Multiply all pulls of each node by a number."""
        self.pull = [
            pull * factor for pull, factor in zip(self.pull, factors, strict=True)
        ]

    def dual_values(self) -> list[Vector]:
        """Sums of each node's pulls, and its unscaled coupling Fᵀ pull.

        For a given difference the largest sum of two pulls fills one.
        """
        sums, found = [], []
        for j, (pull, high, low) in enumerate(
            zip(self.pull, self.high, self.low, strict=True)
        ):
            xp = namespace(pull)
            filled = xp.minimum(2 * high - pull, pull + 2 * low)
            sums.append(float(xp.sum(filled)))
            found.append(to_numpy(self.problem.features[j].T @ pull))
        return [np.array(sums), *found]

    def free_room(self, j: int) -> Array:
        """How far pulls of a node may move."""
        pull = self.pull[j]
        return namespace(pull).minimum(self.high[j] - pull, pull + self.low[j])

    def free_grams(self) -> list[Vector]:
        """Sums of room², and products of room X, of each node."""
        squares, grams = [], []
        for j, features in enumerate(self.problem.features):
            room, scale = self.free_room(j), self.scale[self.problem.shared[j]]
            weighted = features * room[:, None]
            squares.append(float(namespace(room).sum(room * room)))
            grams.append(gram_of(weighted) / np.outer(scale, scale))
        return [np.array(squares), *grams]

    def free_triangle(self, j: int, norms: Vector) -> Vector:
        """R of room X / norms."""
        features, scale = self.problem.features[j], self.scale[self.problem.shared[j]]
        weighted = features * self.free_room(j)[:, None]
        return triangle(weighted * like(1.0 / (scale * norms), features))


def _number(array: Any) -> Array:
    """Replace NaN by 0."""
    xp = namespace(array)
    return xp.where(xp.isfinite(array), array, xp.zeros_like(array))
