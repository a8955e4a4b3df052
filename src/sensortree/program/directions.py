"""Directions: what columns that nearly repeat each other say apart from each other.

Two columns that are equal up to 1e-8 span the same as one of them and their difference,
but coefficients of 1e8 are needed to say so, and no solver with an ordinary tolerance sees
the second direction. A linear program without penalties only depends on what the columns
span. So such columns are turned into orthogonal ones, and coefficients turned back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, namespace, to_numpy

Vector = NDArray[np.float64]

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


def directions(
    gram: Vector,
    triangle_of_all: Callable[[], Vector],
    sizes_of: Callable[[Vector], Vector],
) -> Vector | None:
    """Combinations of columns (D, k) that are orthogonal, and of size 1 as columns.

    None if the columns are independent enough as they are. What they leave out of the
    span is below `RESOLVED`.

    Parameters
    ----------
    gram : ndarray of shape (D, D)
        Products of the columns.
    triangle_of_all : callable
        Gives R of their factorisation QR.
    sizes_of : callable
        Gives the largest absolute values of combinations (D, k) of them.
    """
    norms = as_scale(np.sqrt(gram.diagonal()))
    spread = np.linalg.eigvalsh(gram / np.outer(norms, norms))
    if spread[0] * WELL_CONDITIONED**2 >= spread[-1]:
        return None
    _, sizes, turn = np.linalg.svd(triangle_of_all() / norms, full_matrices=False)
    kept = sizes > RESOLVED * sizes[0]
    combined: Vector = (turn[kept] / sizes[kept, None] / norms).T
    return combined / as_scale(sizes_of(combined))


def spread(
    gram: Vector, triangle_over: Callable[[Vector], Vector]
) -> tuple[Vector, Vector, Vector]:
    """Norms of some columns, and singular values and vectors of the columns / norms.

    Parameters
    ----------
    gram : ndarray of shape (D, D)
        Products of the columns.
    triangle_over : callable
        Gives R of the factorisation QR of the columns divided by what it is given.
    """
    norms = as_scale(np.sqrt(gram.diagonal()))
    squares, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
    if squares[0] > 1e-4 * squares[-1]:  # squaring has cost no digit that matters
        return norms, np.sqrt(squares[::-1]), vectors.T[::-1]
    _, sizes, turn = np.linalg.svd(triangle_over(norms), full_matrices=True)
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
