"""Directions: what columns that nearly repeat each other say apart from each other.

Two columns that are equal up to 1e-8 span the same as one of them and their difference,
but coefficients of 1e8 are needed to say so, and no solver with an ordinary tolerance sees
the second direction. A linear program without penalties only depends on what the columns
span. So such columns are turned into orthogonal ones, and coefficients turned back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sensortree.program.arrays import Array, like, namespace, to_numpy

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
    """Largest absolute value of each column; 1 for a column of zeros."""
    xp = namespace(array)
    sizes = to_numpy(xp.max(xp.abs(array), axis=0))
    return np.where(sizes > 0, sizes, 1.0)


def directions(columns: Array) -> NDArray[np.float64] | None:
    """Combinations of columns (D, k) that are orthogonal, and of size 1 as columns.

    None if the columns are independent enough as they are. What they leave out of the
    span is below `RESOLVED`.
    """
    gram = to_numpy(columns.T @ columns)
    norms = np.sqrt(gram.diagonal())
    norms = np.where(norms > 0, norms, 1.0)
    spread = np.linalg.eigvalsh(gram / np.outer(norms, norms))
    if spread[0] * WELL_CONDITIONED**2 >= spread[-1]:
        return None
    _, sizes, turn = np.linalg.svd(triangle(columns) / norms, full_matrices=False)
    kept = sizes > RESOLVED * sizes[0]
    combined: NDArray[np.float64] = (turn[kept] / sizes[kept, None] / norms).T
    return combined / column_sizes(columns @ like(combined, columns))


def triangle(columns: Array) -> NDArray[np.float64]:
    """R of the factorisation QR of some columns, (min(N, D), D)."""
    if isinstance(columns, np.ndarray):
        return np.asarray(np.linalg.qr(columns, mode="r"))
    return to_numpy(namespace(columns).linalg.qr(columns)[1])


def spread(columns: Array, room: Array) -> tuple[Vector, Vector, Vector]:
    """Norms of the columns of room X, and singular values and vectors of room X / norms."""
    weighted = columns * room[:, None]
    gram = to_numpy(weighted.T @ weighted)
    norms = np.sqrt(gram.diagonal())
    norms = np.where(norms > 0, norms, 1.0)
    squares, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
    if squares[0] > 1e-4 * squares[-1]:  # squaring has cost no digit that matters
        return norms, np.sqrt(squares[::-1]), vectors.T[::-1]
    C = triangle(weighted * like(1.0 / norms, weighted))
    _, sizes, turn = np.linalg.svd(C, full_matrices=True)
    return norms, np.r_[sizes, np.zeros(norms.size - sizes.size)], turn


def exact_product(columns: Array, weights: Array) -> NDArray[np.float64]:
    """Xᵀ w (D,), as if computed in twice the precision and rounded once.

    Products are split into value and error (Dekker), sums are taken in pairs with their
    errors (Knuth).
    """
    values = BLOCK_VALUES if isinstance(columns, np.ndarray) else BLOCK_VALUES_FOREIGN
    n_rows = columns.shape[0]
    at_once = max(1, values // columns.shape[1])
    blocks = [slice(at, min(at + at_once, n_rows)) for at in range(0, n_rows, at_once)]
    sums = [_sum(*_products(columns[rows, :], weights[rows, None])) for rows in blocks]
    xp = namespace(columns)
    value, error = _sum(*(xp.concat(list(parts)) for parts in zip(*sums, strict=True)))
    return to_numpy((value + error)[0, :])


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
