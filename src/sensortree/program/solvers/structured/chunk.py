"""`Chunk`: examples in blocks that fit a cache; `Blocks`: sums over all chunks.

The interior point sees examples only through these sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import (
    Array,
    is_foreign,
    like,
    namespace,
    on_device_of,
    to_numpy,
)
from sensortree.program.chunks import Chunks, InMemory, cut, total
from sensortree.program.solvers.base import Candidate
from sensortree.program.solvers.structured.rows import Rows, n_pairs
from sensortree.program.solvers.structured.shape import TreeShape
from sensortree.program.surrogate import Coef, DualPoint, SurrogateProblem

Vector = NDArray[np.float64]

# one chunk ----------------------------------------------------------------------------

BLOCK_VALUES = 1 << 14  # rows x nodes of a NumPy block, so that its arrays fit a cache
BLOCK_ROWS = 1 << 10  # but no fewer rows: a call costs as much as a few hundred of them
BLOCK_VALUES_FOREIGN = 1 << 24


class Chunk:
    """Some examples of a scaled problem, in blocks; some decision matters for each."""

    def __init__(self, problem: SurrogateProblem):
        tree = TreeShape.of(problem)
        self.n_samples, self.order = problem.n_samples, tree.order
        self.by_pairs = by_pairs(problem)
        n_pairs_of = (n_pairs(problem.n_nodes), n_pairs(problem.n_features[0]))
        self.shape = n_pairs_of if self.by_pairs else (tree.n_coef, tree.n_coef)
        xp = namespace(problem.lost_if_negative)
        rows = np.arange(0)
        if problem.n_samples:
            lost = xp.max(problem.lost_if_negative + problem.lost_if_positive, axis=1)
            # An example for which no decision matters costs nothing, wherever it goes.
            rows = np.flatnonzero(to_numpy(lost) > 0)
        n_blocks = max(1, -(-rows.size // rows_at_once(problem)))
        ends = [k * rows.size // n_blocks for k in range(n_blocks + 1)]
        self.parts = [
            rows[slice(*each)] for each in pairwise(ends) if each[0] < each[1]
        ]
        self.blocks = [_block(problem, tree, part) for part in self.parts]

    @property
    def settled(self) -> bool:
        """Whether the point is all there is to know."""
        return all(rows.settled for rows in self.blocks)

    def n_rows(self) -> int:
        """How many examples there are for which a decision matters."""
        return sum(part.size for part in self.parts)

    def each(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Do a task of `Rows` to each block."""
        for rows in self.blocks:
            task(rows, *arguments)

    def sum(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """What a task of `Rows` gives, added up; None if there are no blocks."""
        if not self.blocks:
            return None
        self.each(Rows.rise)
        return total(task(rows, *arguments) for rows in self.blocks)

    def newton(self, roughly: bool) -> Array:
        """Sum of Φᵀ M Φ, of which the upper triangle is filled in; see `Blocks.newton`."""
        if not self.blocks:
            return None
        self.each(Rows.rise)
        task = Rows.add_rough_matrix if roughly else Rows.add_matrix
        task = Rows.add_pairs if self.by_pairs else task
        weight = self.blocks[0].weight
        xp = namespace(weight)
        kind = xp.float32 if task is Rows.add_rough_matrix else weight.dtype
        S = xp.zeros(self.shape, dtype=kind, **on_device_of(weight))
        self.each(task, S)
        return S

    def dual(self, problem: SurrogateProblem, best: bool) -> DualPoint:
        """The dual point of the best multipliers, or of the present ones.

        In the order of nodes and examples of a problem: the one this was made of.
        """
        z = [rows.best if best else rows.z for rows in self.blocks]
        (z1, z3), (z2, z4) = self._by_sample(problem, z)
        return DualPoint(
            z1 + z2,
            z3 + z4,
            problem.lost_if_negative * z1,
            problem.lost_if_positive * z3,
        )

    def _by_sample(
        self, problem: SurrogateProblem, blocks: list[Array]
    ) -> list[list[Array]]:
        """Multipliers by row of an edge, then by side, each (n_samples, n_nodes)."""
        back = [int(k) for k in np.argsort(self.order)]
        if blocks and self.n_rows() == self.n_samples:
            xp = namespace(blocks[0])
            z = blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=3)
            return [
                [
                    xp.stack([z[row, side, j, :] for j in back], axis=1)
                    for side in (0, 1)
                ]
                for row in (0, 1)
            ]
        whole = np.zeros((2, 2, len(back), self.n_samples))
        for part, block in zip(self.parts, blocks, strict=True):
            whole[..., part] = to_numpy(block)[:, :, back]
        return [[like(z.T, problem.lost_if_negative) for z in row] for row in whole]


def by_pairs(problem: SurrogateProblem) -> bool:
    """Whether all nodes share their features, and products are made pair by pair."""
    return len(set(problem.shared)) == 1 < problem.n_nodes


def rows_at_once(problem: SurrogateProblem) -> int:
    """Rows of a block of a problem."""
    if isinstance(problem.lost_if_negative, np.ndarray):
        return block_rows(problem.n_nodes)
    return max(BLOCK_ROWS, BLOCK_VALUES_FOREIGN // problem.n_nodes)


def block_rows(n_nodes: int) -> int:
    """Rows of a NumPy block of a tree of so many nodes."""
    return max(BLOCK_ROWS, BLOCK_VALUES // n_nodes)


def _block(problem: SurrogateProblem, tree: TreeShape, rows: NDArray[np.intp]) -> Rows:
    where = like(rows, problem.lost_if_negative)
    copies = [_transposed(array, where) for array in problem.arrays]
    a = _transposed(problem.lost_if_negative, where)
    b = _transposed(problem.lost_if_positive, where)
    xp = namespace(a)
    return Rows(
        tree,
        [copies[problem.shared[node]] for node in tree.order],
        xp.stack([a[node, :] for node in tree.order]),
        xp.stack([b[node, :] for node in tree.order]),
    )


def _transposed(array: Array, rows: Array) -> Array:
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array[rows].T)
    turned = namespace(array).take(array, rows, axis=0).T
    return turned.contiguous() if hasattr(turned, "contiguous") else turned + 0.0


# all of them --------------------------------------------------------------------------

ROOM_FOR_PRODUCTS = 1 << 25  # numbers: 256 MiB
ROOM_FOR_PRODUCTS_FOREIGN = 1 << 30
# Products of one Newton matrix, about a second's work, from which threads are opened
# unasked. Below it, visits to blocks are so short that threads wait for each other: two
# were no faster on 100,000 rows of 147 coefficients; they were 1.6 times as fast on 60,000
# rows of 825.
MUCH_WORK = 2e10


class Blocks:
    """All rows, in chunks of `Chunk`; every sum is taken in the same order.

    `frame` is the scaled problem, or any rows of it, even none: its tree, and which nodes
    share their features.
    """

    def __init__(self, rows: Chunks, frame: SurrogateProblem):
        self.rows, self.frame = rows, frame
        self.tree = TreeShape.of(frame)
        self.n_coef = self.tree.n_coef
        self.n_rows = int(total(rows.ask(Chunk.n_rows)))
        self.n_values = 4 * frame.n_nodes * self.n_rows
        self.by_pairs = by_pairs(frame)
        foreign = is_foreign(frame.lost_if_negative)
        room = ROOM_FOR_PRODUCTS_FOREIGN if foreign else ROOM_FOR_PRODUCTS
        if self.by_pairs and self.n_rows * n_pairs(frame.n_features[0]) <= room:
            self.note(Rows.keep_products)
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
        S = _added(self.rows.ask(Chunk.newton, roughly))
        if not self.by_pairs:
            return S
        if self._unpacked is None:
            places = _unpacked(self.frame.n_nodes, self.frame.n_features[0])
            self._unpacked = like(places, S)
        xp = namespace(S)
        S = xp.take(xp.reshape(S, (-1,)), self._unpacked)
        return xp.reshape(S, (self.n_coef, self.n_coef))

    def apply(self, d: Vector) -> Vector:
        """S @ d without the matrix."""
        return np.asarray(_added(self.rows.ask(Chunk.sum, Rows.apply, d)))

    def tell(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """What a task of `Rows` that changes them says, added up."""
        return _added(self.rows.tell(Chunk.sum, task, *arguments))

    def note(self, task: Callable[..., Any]) -> None:
        """Have all rows changed by a task of `Rows` that says nothing."""
        self.rows.note(Chunk.each, task)

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


def _added(parts: Iterable[Any]) -> Any:
    """Sum over chunks, of which those without blocks give None."""
    return total(part for part in parts if part is not None)


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
