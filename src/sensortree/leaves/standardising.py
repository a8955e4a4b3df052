"""Centre and scale of columns, as everything that is learned uses them."""

from __future__ import annotations

import numpy as np

from sensortree.types import Array


def moments(columns: Array, weight: Array) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of columns, NaN left out.

    What rounding leaves of a constant column is no spread; such a column has scale 1.

    Parameters
    ----------
    columns : ndarray of shape (n_rows, width)
    weight : ndarray of shape (n_rows,)

    Returns
    -------
    center, scale : ndarray of shape (width,)

    Examples
    --------
    >>> import numpy as np
    >>> columns = np.array([[1.0, 5.0], [3.0, np.nan]])
    >>> moments(columns, np.ones(2))
    (array([2., 5.]), array([1., 1.]))
    """
    missing = np.isnan(columns)
    weight = np.where(missing, 0.0, weight[:, None])
    total = np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    known = np.where(missing, 0.0, columns)
    center = (weight * known).sum(axis=0) / total
    spread = np.sqrt((weight * (known - center) ** 2).sum(axis=0) / total)
    return center, usable_scale(center, spread)


def usable_scale(center: Array, spread: Array) -> Array:
    """What to divide columns by: their standard deviation, or 1 where they do not vary.

    A deviation of 1e-12 of the mean is what rounding leaves of a constant; divided by one
    of less than 1e-70, readings that are allowed might be too large to be squared.

    Examples
    --------
    >>> import numpy as np
    >>> usable_scale(np.array([5.0, 5.0, 0.0]), np.array([2.0, 1e-16, 1e-90]))
    array([2., 1., 1.])
    """
    least = np.maximum(1e-12 * np.abs(center), 1e-70)
    return np.where(spread > least, spread, 1.0)
