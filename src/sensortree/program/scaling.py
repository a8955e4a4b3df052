"""Scaling: a problem as a solver sees it, of size 1, whatever the user's units are.

Columns that nearly repeat each other are turned into orthogonal ones. Two columns that are
equal up to 1e-8 span the same as one of them and their difference, but coefficients of 1e8
are needed to say so, and no solver with an ordinary tolerance sees the second direction. A
linear program without penalties only depends on what the columns span, so that
coefficients can be turned back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, like, namespace, to_numpy
from sensortree.program.chunks import Chunks, largest, totals
from sensortree.program.solvers import Candidate
from sensortree.program.surrogate import Coef, DualPoint, SurrogateProblem

Vector = NDArray[np.float64]

# what columns say apart from each other -----------------------------------------------

# Columns with a condition number up to this are left as they are.
WELL_CONDITIONED = 1e3
# Directions that are smaller than this, against the largest, are rounding: coefficients
# that use them could not be written in double precision.
RESOLVED = 1e-12
# Numbers that are multiplied at a time, so that they fit a cache.
BLOCK_VALUES = 1 << 14
BLOCK_VALUES_FOREIGN = 1 << 24


def column_sizes(array: Array) -> NDArray[np.float64]:
    """Largest absolute value of each column; 0 for a column of zeros, or of no rows."""
    xp = namespace(array)
    if not array.shape[0]:
        return np.zeros(array.shape[1])
    return to_numpy(xp.max(xp.abs(array), axis=0))


def as_scale(sizes: Vector) -> Vector:
    """What to divide columns of these sizes by; 1 for a column of zeros."""
    return np.where(sizes > 0, sizes, 1.0)


def gram_of(columns: Array) -> Vector:
    """Products of columns with each other, (D, D)."""
    return to_numpy(columns.T @ columns)


def triangle(columns: Array) -> Vector:
    """R of the factorisation QR of some columns, (min(N, D), D)."""
    if isinstance(columns, np.ndarray):
        return np.asarray(np.linalg.qr(columns, mode="r"))
    return to_numpy(namespace(columns).linalg.qr(columns)[1])


def joined_triangle(triangles: Sequence[Vector]) -> Vector:
    """R of columns of which R of several parts of the rows are known."""
    some = [R for R in triangles if R.size]
    return some[0] if len(some) == 1 else triangle(np.concatenate(some))


def spread(
    gram: Vector, rows: Chunks, triangle_of: Callable[..., Vector], k: int
) -> tuple[Vector, Vector, Vector]:
    """Norms of some columns, and singular values and vectors of the columns / norms.

    `gram` has the products of the columns, (D, D). `triangle_of` is the task that gives R
    of the columns that go by the number `k`, divided by norms.
    """
    norms = as_scale(np.sqrt(gram.diagonal()))
    squares, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
    if squares[0] > 1e-4 * squares[-1]:  # squaring has cost no digit that matters
        return norms, np.sqrt(squares[::-1]), vectors.T[::-1]
    whole = joined_triangle(list(rows.ask(triangle_of, k, norms)))
    _, sizes, turn = np.linalg.svd(whole, full_matrices=True)
    return norms, np.r_[sizes, np.zeros(norms.size - sizes.size)], turn


def exact_parts(columns: Array, weights: Array) -> tuple[Vector, Vector]:
    """Xᵀ w of some rows (1, D), and what rounding took from it.

    Products are split into value and error (Dekker), sums are taken in pairs with their
    errors (Knuth).
    """
    n_rows, n_columns = columns.shape
    if not n_rows:
        return np.zeros((1, n_columns)), np.zeros((1, n_columns))
    values = BLOCK_VALUES if isinstance(columns, np.ndarray) else BLOCK_VALUES_FOREIGN
    at_once = max(1, values // n_columns)
    blocks = [slice(at, min(at + at_once, n_rows)) for at in range(0, n_rows, at_once)]
    sums = [_sum(*_products(columns[rows, :], weights[rows, None])) for rows in blocks]
    xp = namespace(columns)
    value, error = _sum(*(xp.concat(list(parts)) for parts in zip(*sums, strict=True)))
    return to_numpy(value), to_numpy(error)


def exact_total(parts: Iterable[tuple[Vector, Vector]]) -> Vector:
    """Xᵀ w (D,) by its parts, as if computed in twice the precision and rounded once."""
    values, errors = zip(*parts, strict=True)
    value, error = _sum(np.concatenate(values), np.concatenate(errors))
    return np.asarray((value + error)[0])


def _products(columns: Array, weights: Array) -> tuple[Array, Array]:
    """Products, and what rounding took from each."""
    value = columns * weights
    (a, b), (c, d) = _halves(columns), _halves(weights)
    return value, b * d - (((value - a * c) - b * c) - a * d)


def _sum(value: Array, error: Array) -> tuple[Array, Array]:
    """Sum over rows, (1, D), and what rounding took from it, `error` included."""
    while value.shape[0] > 1:
        half = value.shape[0] // 2
        one, other = value[:half, :], value[half : 2 * half, :]
        total = one + other
        part = total - one
        lost = (one - (total - part)) + (other - part)
        lost = lost + error[:half, :] + error[half : 2 * half, :]
        if value.shape[0] % 2:
            xp = namespace(value)
            total = xp.concat([total, value[-1:, :]])
            lost = xp.concat([lost, error[-1:, :]])
        value, error = total, lost
    return value, error


def _halves(array: Array) -> tuple[Array, Array]:
    """Split numbers into two of half the digits each (Veltkamp)."""
    large = array * 134217729.0  # 2**27 + 1
    high = large - (large - array)
    return high, array - high


# rows whose columns are scaled, and perhaps turned ------------------------------------


class ColumnRows:
    """Some rows, whose columns are divided by a scale and perhaps combined."""

    scale: list[Vector]  # (D,), of each distinct array of features
    turned: list[
        Array | None
    ]  # (n_rows, k): combinations of its scaled columns, if any

    def __init__(self, problem: SurrogateProblem):
        self.problem = problem

    def sizes(self) -> list[Vector]:
        """The largest saving, (1,); largest absolute values of all distinct columns."""
        sizes = [column_sizes(array) for array in self.problem.arrays]
        return [np.array([self.problem.largest_loss()]), *sizes]

    def set_scale(self, scale: list[Vector]) -> None:
        """Divide distinct columns by these; they are not turned."""
        self.scale = scale
        self.turned = [None] * len(scale)

    def grams(self) -> list[Vector]:
        """Products of scaled columns with each other, by distinct array."""
        return [
            gram_of(array) / np.outer(scale, scale)
            for array, scale in zip(self.problem.arrays, self.scale, strict=True)
        ]

    def scaled_triangle(self, k: int) -> Vector:
        """R of scaled columns of a distinct array."""
        return triangle(self.scaled(k))

    def combined_sizes(self, k: int, combined: Vector) -> Vector:
        """Largest absolute values of combinations of scaled columns."""
        array = self.scaled(k)
        return column_sizes(array @ like(combined, array))

    def set_turn(self, k: int, turn: Vector) -> None:
        """Move pulls along combinations of scaled columns."""
        array = self.scaled(k)
        self.turned[k] = array @ like(turn, array)

    def scaled(self, k: int) -> Array:
        """The columns X of a distinct array."""
        array = self.problem.arrays[k]
        return array * like(1.0 / self.scale[k], array)


def find_turns(rows: Chunks, n_arrays: int) -> list[Vector | None]:
    """Replace scaled columns that nearly depend on each other by orthogonal ones.

    Gives, for each distinct array of features, combinations (D, k) that are of size 1 as
    columns; None where columns are independent enough, and kept. What they leave out of
    the span is below `RESOLVED`.
    """
    turns: list[Vector | None] = [None] * n_arrays
    for k, gram in enumerate(totals(rows.ask(ColumnRows.grams))):
        norms = as_scale(np.sqrt(gram.diagonal()))
        squares = np.linalg.eigvalsh(gram / np.outer(norms, norms))
        if squares[0] * WELL_CONDITIONED**2 >= squares[-1]:
            continue
        whole = joined_triangle(list(rows.ask(ColumnRows.scaled_triangle, k)))
        _, sizes, turn = np.linalg.svd(whole / norms, full_matrices=False)
        kept = sizes > RESOLVED * sizes[0]
        combined: Vector = (turn[kept] / sizes[kept, None] / norms).T
        found = rows.ask(ColumnRows.combined_sizes, k, combined)
        turns[k] = combined / as_scale(largest([each] for each in found)[0])
    for k, made in enumerate(turns):
        if made is not None:
            rows.note(ColumnRows.set_turn, k, made)
    return turns


# a problem of size 1 ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scaling:
    """How columns and savings are brought to size 1, and what penalties then are."""

    shared: tuple[int, ...]  # which of the distinct arrays of features each node has
    scale: list[Vector]  # what columns of each distinct array are divided by
    # How columns that nearly repeat each other are then combined: a program without
    # penalties only depends on what columns span, but for directions that double
    # precision does not resolve.
    turns: list[Vector | None]
    size: float  # what savings are divided by
    ridge: Vector  # (p,): penalties of the coefficients
    lasso: Vector

    @classmethod
    def of(cls, rows: Chunks, shared: Sequence[int], l2: float, l1: float) -> Scaling:
        """Scale columns and savings of ColumnRows; without penalties, turn columns too."""
        (most, *sizes) = largest(rows.ask(ColumnRows.sizes))
        size = float(most[0]) or 1.0
        scale = [as_scale(each) for each in sizes]
        rows.note(ColumnRows.set_scale, scale)
        turns: list[Vector | None] = [None] * len(scale)
        if l2 or l1:  # coefficients have a price: columns stay what they are
            flat = np.concatenate([scale[k] for k in shared])
            ridge, lasso = l2 / size / flat**2, l1 / size / flat
        else:
            turns = find_turns(rows, len(scale))
            widths = [
                each.size if turn is None else turn.shape[1]
                for each, turn in zip(scale, turns, strict=True)
            ]
            ridge = lasso = np.zeros(sum(widths[k] for k in shared))
        return cls(tuple(shared), scale, turns, size, ridge, lasso)

    def applied(self, problem: SurrogateProblem) -> SurrogateProblem:
        """A problem of size 1: any rows of the one that this was made for."""
        arrays = []
        for array, scale, turn in zip(
            problem.arrays, self.scale, self.turns, strict=True
        ):
            scaled = array * like(1.0 / scale, array)
            arrays.append(scaled if turn is None else scaled @ like(turn, array))
        return problem.with_arrays(arrays, self.size)

    def coef_back(self, coef: Coef) -> Coef:
        """Give coefficients in the user's units."""
        turned = (self.turns[k] for k in self.shared)
        return [
            (theta if turn is None else turn @ theta) / self.scale[k]
            for theta, turn, k in zip(coef, turned, self.shared, strict=True)
        ]

    def back(self, candidate: Candidate) -> tuple[Coef, DualPoint]:
        """Give coefficients and pulls in the user's units."""
        dual = replace(
            candidate.dual,
            pull_negative=candidate.dual.pull_negative * self.size,
            pull_positive=candidate.dual.pull_positive * self.size,
        )
        return self.coef_back(candidate.coef), dual
