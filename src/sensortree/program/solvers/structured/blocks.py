"""`Blocks`: all examples as the interior point sees them, by sums over chunks of them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, is_foreign, like, namespace
from sensortree.program.chunks import Chunks, InMemory, cut, total
from sensortree.program.solvers.base import Candidate
from sensortree.program.solvers.structured.chunk import Chunk, by_pairs, rows_at_once
from sensortree.program.solvers.structured.rows import n_pairs
from sensortree.program.solvers.structured.shape import TreeShape
from sensortree.program.surrogate import Coef, DualPoint, SurrogateProblem

Vector = NDArray[np.float64]

ROOM_FOR_PRODUCTS = 1 << 25  # numbers: 256 MiB
ROOM_FOR_PRODUCTS_FOREIGN = 1 << 30
# Products of one Newton matrix, about a second's work, from which threads are opened
# unasked. Below it, visits to blocks are so short that threads wait for each other: two
# were no faster on 100,000 rows of 147 coefficients; they were 1.6 times as fast on 60,000
# rows of 825.
MUCH_WORK = 2e10


class Blocks:
    """All rows, in chunks; every sum is taken in the same order.

    Parameters
    ----------
    rows : Chunks
        Of `Chunk`.
    frame : SurrogateProblem
        The scaled problem, or any rows of it, even none: its tree, and which nodes share
        their features.
    """

    def __init__(self, rows: Chunks, frame: SurrogateProblem):
        self.rows, self.frame = rows, frame
        self.tree = TreeShape.of(frame)
        self.n_coef = self.tree.n_coef
        self.n_rows = int(total(rows.ask(_count)))
        self.n_values = 4 * frame.n_nodes * self.n_rows
        self.by_pairs = by_pairs(frame)
        foreign = is_foreign(frame.lost_if_negative)
        room = ROOM_FOR_PRODUCTS_FOREIGN if foreign else ROOM_FOR_PRODUCTS
        if self.by_pairs and self.n_rows * n_pairs(frame.n_features[0]) <= room:
            rows.note(Chunk.keep_products)
        self._unpacked: Array | None = None

    @classmethod
    def of_problem(cls, problem: SurrogateProblem, n_jobs: int | None) -> Blocks:
        """Blocks of a problem in memory, on several threads if wanted, or of use."""
        products = problem.n_samples * sum(problem.n_features) ** 2.0
        if n_jobs is None and products < MUCH_WORK:
            n_jobs = 1
        chunks = [Chunk(problem.part(rows)) for rows in parts_of(problem)]
        return cls(InMemory(chunks, n_jobs), problem)

    def newton(self, roughly: bool) -> Array:
        """The matrix S = sum of Φᵀ M Φ, (p, p), at the present point.

        It stays where the rows are; its upper triangle is filled in. `roughly` allows for
        products in single precision.
        """
        n_nodes, n_features = self.frame.n_nodes, self.frame.n_features[0]
        n_coef = self.n_coef
        S = total(self.rows.ask(Chunk.newton, roughly))
        if not self.by_pairs:
            return S
        if self._unpacked is None:
            self._unpacked = like(_unpacked(n_nodes, n_features), S)
        xp = namespace(S)
        S = xp.take(xp.reshape(S, (-1,)), self._unpacked)
        return xp.reshape(S, (n_coef, n_coef))

    def apply(self, d: Vector) -> Vector:
        """S @ d without the matrix."""
        return total(self.rows.ask(Chunk.apply, d))

    def coef_of(self, theta: Vector) -> Coef:
        """Coefficients in the problem's own order of nodes."""
        coef: Coef = [theta] * self.frame.n_nodes
        for ours, node in enumerate(self.tree.order):
            coef[node] = theta[self.tree.columns[ours]].copy()
        return coef

    def candidate(
        self, theta: Vector, problem: SurrogateProblem, best: bool
    ) -> Candidate:
        """Coefficients, and the best or the last dual point, of a problem in memory."""
        assert isinstance(self.rows, InMemory)
        duals = [
            chunk.dual(problem.part(rows), best)
            for chunk, rows in zip(self.rows.chunks, parts_of(problem), strict=True)
        ]
        return Candidate(self.coef_of(theta), DualPoint.joined(duals))


def parts_of(problem: SurrogateProblem) -> list[slice]:
    """Chunks of a problem's rows; a device wants all of them at once."""
    if is_foreign(problem.lost_if_negative):
        return [slice(0, problem.n_samples)]
    return cut(problem.n_samples, rows_at_once(problem), sum(problem.n_features))


def _count(chunk: Chunk) -> int:
    return chunk.n_rows


@lru_cache(maxsize=8)
def _unpacked(n_nodes: int, n_features: int) -> NDArray[np.intp]:
    """Place of each entry of (p, p) among (pairs of nodes, pairs of features)."""

    def pairs(n: int) -> NDArray[np.intp]:
        places = np.empty((n, n), dtype=np.intp)
        j, k = np.triu_indices(n)
        places[j, k] = places[k, j] = np.arange(n_pairs(n))
        return places

    of_nodes = pairs(n_nodes)[:, None, :, None]
    return (of_nodes * n_pairs(n_features) + pairs(n_features)[:, None, :]).ravel()
