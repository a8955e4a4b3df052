"""Centre and scale of columns, and the polynomial basis that leaves are fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from sensortree.constants import BASIS_BLOCK, LEAST_RELATIVE_SPREAD, LEAST_SPREAD, TINY
from sensortree.exceptions import DataError, WideBasisWarning
from sensortree.policy.classifiers import quadratic_terms
from sensortree.types import Array


def moments(columns: Array, weight: Array) -> tuple[Array, Array]:
    """Weighted mean of columns and their scale, (width,) each, NaN left out.

    The scale is as in `usable_scale`.

    Examples
    --------
    >>> import numpy as np
    >>> columns = np.array([[1.0, 5.0], [3.0, np.nan]])
    >>> moments(columns, np.ones(2))
    (array([2., 5.]), array([1., 1.]))
    """
    missing = np.isnan(columns)
    weight = np.where(missing, 0.0, weight[:, None])
    total = np.maximum(weight.sum(axis=0), TINY)
    known = np.where(missing, 0.0, columns)
    center = (weight * known).sum(axis=0) / total
    spread = np.sqrt((weight * (known - center) ** 2).sum(axis=0) / total)
    return center, usable_scale(center, spread)


def usable_scale(center: Array, spread: Array) -> Array:
    """What to divide columns by: their standard deviation, or 1 where they do not vary.

    Examples
    --------
    >>> import numpy as np
    >>> usable_scale(np.array([5.0, 5.0, 0.0]), np.array([2.0, 1e-16, 1e-90]))
    array([2., 1., 1.])
    """
    least = np.maximum(LEAST_RELATIVE_SPREAD * np.abs(center), LEAST_SPREAD)
    return np.where(spread > least, spread, 1.0)


def n_terms_of(width: int, degree: int) -> int:
    """Terms of the basis of so many columns, without the one that is always 1."""
    return width if degree == 1 else width * (width + 3) // 2


def degree_of(width: int, degree: int, most: int, leaf: str, kind: str) -> int:
    """The degree that can be afforded; says so where it is less than was asked for."""
    n_terms = n_terms_of(width, degree)
    if degree == 1 or n_terms <= most:
        return degree
    warnings.warn(
        f"the degree-2 basis of {width} columns has {n_terms} terms, above {most}; the "
        f"{leaf} these sensors is linear in their readings. Give a sensor of so many "
        f"columns a transformer, or choose another {kind}.",
        WideBasisWarning,
        stacklevel=3,
    )
    return 1


def basis_of(linear: Array, degree: int) -> Array:
    """The basis of standardised columns, ones at the end, (n_terms + 1, n_rows).

    Columns are given as (width, n_rows).
    """
    linear = np.ascontiguousarray(linear)
    width, n_rows = linear.shape
    terms = np.empty((n_terms_of(width, degree) + 1, n_rows), linear.dtype)
    if degree == 1:
        terms[:-1] = linear
    else:
        quadratic_terms(linear, terms[:-1])
    terms[-1] = 1.0
    return terms


def in_blocks(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Where blocks of rows begin and end whose basis is made at a time."""
    n_blocks = -(-(end - begin) // BASIS_BLOCK)
    return pairwise(np.linspace(begin, end, n_blocks + 1).astype(int).tolist())


def check_readings(finite: Any, leaf: str, kind: str) -> None:
    """Refuse readings that are not all finite."""
    if not finite:
        raise DataError(
            f"a leaf {leaf} was given readings that are NaN or infinite; give the "
            f"sensor a transformer that fills them in, or a {kind} that accepts them."
        )
