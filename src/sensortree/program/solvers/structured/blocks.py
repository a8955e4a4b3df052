"""`Blocks`: all examples, in blocks of rows, on several threads if wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sensortree.program.arrays import Array, like, namespace, on_device_of, to_numpy
from sensortree.program.solvers.base import Candidate, RawSolution
from sensortree.program.solvers.structured.rows import Rows, n_pairs
from sensortree.program.solvers.structured.shape import TreeShape
from sensortree.program.surrogate import DualPoint, SurrogateProblem

Vector = NDArray[np.float64]
Result = TypeVar("Result")

BLOCK_VALUES = 1 << 14  # rows x nodes of a NumPy block, so that its arrays fit a cache
BLOCK_ROWS = 1 << 10  # but no fewer rows: a call costs as much as a few hundred of them
BLOCK_VALUES_FOREIGN = 1 << 24
ROOM_FOR_PRODUCTS = 1 << 25  # numbers: 256 MiB
ROOM_FOR_PRODUCTS_FOREIGN = 1 << 30
# Sums over blocks are sums of this many, however many threads there are; of matrices, of
# as many as there is room for.
CHUNKS = 16
ROOM_FOR_MATRICES = 1 << 25


@dataclass(frozen=True, eq=False)
class Point:
    """Coefficients and multipliers, in our own order; enough for an answer."""

    theta: Vector
    z: list[Array]


class Blocks:
    """All rows, in blocks; every sum is taken in the same order."""

    def __init__(self, problem: SurrogateProblem, n_jobs: int):
        self.problem, self.n_jobs = problem, n_jobs
        self.tree = TreeShape.of(problem)
        self.n_coef = self.tree.n_coef
        self.xp = xp = namespace(problem.lost_if_negative)
        weight = xp.max(problem.lost_if_negative + problem.lost_if_positive, axis=1)
        # An example for which no decision matters costs nothing, wherever it goes.
        rows = np.flatnonzero(to_numpy(weight) > 0)
        limit = BLOCK_VALUES if xp is np else BLOCK_VALUES_FOREIGN
        at_once = max(BLOCK_ROWS, limit // problem.n_nodes)
        n_blocks = max(1, -(-rows.size // at_once))
        self.parts = [part for part in np.array_split(rows, n_blocks) if part.size]
        self.blocks = [self._block(part) for part in self.parts]
        self.n_values = 4 * problem.n_nodes * rows.size
        room = ROOM_FOR_PRODUCTS if xp is np else ROOM_FOR_PRODUCTS_FOREIGN
        for block in self.blocks:
            block.products.keep = rows.size * n_pairs(problem.n_features[0]) <= room
        numbers = np.arange(len(self.blocks))
        n_chunks = min(CHUNKS, numbers.size, ROOM_FOR_MATRICES // self.n_coef**2)
        self._chunks = np.array_split(numbers, max(1, n_chunks))
        # Whether all nodes share their features, and products are made pair by pair.
        self.by_pairs = (
            len({id(phi) for phi in problem.features}) == 1 < problem.n_nodes
        )
        self._unpacked: Array | None = None
        self._pool: ThreadPoolExecutor | None = None

    def _block(self, rows: NDArray[np.intp]) -> Rows:
        problem, order = self.problem, self.tree.order
        where = like(rows, problem.lost_if_negative)
        copies: dict[int, Array] = {}
        for array in problem.features:
            if id(array) not in copies:
                copies[id(array)] = _transposed(array, where)
        a = _transposed(problem.lost_if_negative, where)
        b = _transposed(problem.lost_if_positive, where)
        return Rows(
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
        return list(self._run(task, self.blocks, *arguments))

    def _run(
        self, task: Callable[..., Result], *arguments: Iterable[Any]
    ) -> Iterator[Result]:
        """Map a task, on the threads if there are any.

        Where rounding is all that is left, numbers overflow; `run` sees and stops.
        """
        if self._pool is None:
            return map(task, *arguments)

        def quietly(*each: Any) -> Result:
            with np.errstate(all="ignore"):
                return task(*each)

        return self._pool.map(quietly, *arguments)

    def newton(self, roughly: bool) -> Array:
        """The matrix S = sum of Φᵀ M Φ, (p, p), at the present point.

        It stays where the rows are; its upper triangle is filled in. `roughly` allows for
        products in single precision.
        """
        n_nodes, n_features = self.problem.n_nodes, self.problem.n_features[0]
        pairs = self.by_pairs
        n_coef = self.n_coef
        shape = (n_pairs(n_nodes), n_pairs(n_features)) if pairs else (n_coef, n_coef)

        def add_up(chunk: NDArray[np.intp]) -> Array:
            sample = self.blocks[0].weight
            kind = self.xp.float32 if roughly and not pairs else sample.dtype
            S = self.xp.zeros(shape, dtype=kind, **on_device_of(sample))
            for k in chunk:
                rows = self.blocks[k]
                if pairs:
                    rows.add_pairs(S)
                elif roughly:
                    rows.add_rough_matrix(S)
                else:
                    rows.add_matrix(S)
            return S

        parts = self._run(add_up, self._chunks)
        S = next(parts)
        for part in parts:  # in order, and no more of them alive than need be
            S += part
        if not pairs:
            return S
        if self._unpacked is None:
            self._unpacked = like(_unpacked(n_nodes, n_features), S)
        xp = self.xp
        S = xp.take(xp.reshape(S, (-1,)), self._unpacked)
        return xp.reshape(S, (n_coef, n_coef))

    def apply(self, d: Vector) -> Vector:
        """S @ d without the matrix."""
        applied: Vector = add_up_in_order(self.map(lambda rows: rows.apply(d)))
        return applied

    def solution(self, points: Sequence[Point], iterations: int) -> RawSolution:
        """Points in the problem's own order of nodes and examples."""
        return RawSolution([self._candidate(point) for point in points], iterations)

    def _candidate(self, point: Point) -> Candidate:
        problem = self.problem
        coef: list[Vector] = [point.theta] * problem.n_nodes
        for ours, node in enumerate(self.tree.order):
            coef[node] = point.theta[self.tree.columns[ours]].copy()
        (z1, z3), (z2, z4) = self._by_sample(point.z)
        dual = DualPoint(
            z1 + z2,
            z3 + z4,
            problem.lost_if_negative * z1,
            problem.lost_if_positive * z3,
        )
        return Candidate(coef, dual)

    def _by_sample(self, blocks: list[Array]) -> list[list[Array]]:
        """Multipliers by row of an edge, then by side, each (n_samples, n_nodes)."""
        problem, xp = self.problem, self.xp
        back = [int(k) for k in np.argsort(self.tree.order)]
        if sum(part.size for part in self.parts) == problem.n_samples:
            z = blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=3)
            return [
                [
                    xp.stack([z[row, side, j, :] for j in back], axis=1)
                    for side in (0, 1)
                ]
                for row in (0, 1)
            ]
        whole = np.zeros((2, 2, problem.n_nodes, problem.n_samples))
        for part, block in zip(self.parts, blocks, strict=True):
            whole[..., part] = to_numpy(block)[:, :, back]
        return [[like(z.T, problem.lost_if_negative) for z in row] for row in whole]


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


def add_up_in_order(parts: Sequence[Array]) -> Array:
    """Sum of some arrays, the first one first: the same bits each time."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _transposed(array: Array, rows: Array) -> Array:
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array[rows].T)
    turned = namespace(array).take(array, rows, axis=0).T
    return turned.contiguous() if hasattr(turned, "contiguous") else turned + 0.0
