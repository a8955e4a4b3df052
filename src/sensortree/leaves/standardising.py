"""`moments`: centre and scale of columns, as everything that is learned uses them."""

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
    varies = spread > 1e-12 * np.abs(center)
    return center, np.where(varies, spread, 1.0)
