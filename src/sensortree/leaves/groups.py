"""Rows that belong together: repeated visits of one patient, copies of one row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from sensortree.exceptions import DataError
from sensortree.sensors.columns import is_missing
from sensortree.types import Array, Rows


def read_groups(groups: Any, n_rows: int, rows: Rows) -> Rows:
    """Number of the group of each of those rows that count, (n_counted,).

    Parameters
    ----------
    groups : array-like of shape (n_rows,)
        Labels of any kind.
    n_rows : int
        Rows of X.
    rows : ndarray of shape (n_counted,)
        Those that count.
    """
    try:
        labels = column_or_1d(np.asarray(groups))
    except ValueError as error:
        raise DataError(
            f"groups must be one label for each row of X: {error}"
        ) from error
    if len(labels) != n_rows:
        raise DataError(
            f"groups has {len(labels)} labels for {n_rows} rows of X; give one for each "
            f"row."
        )
    labels = labels[rows]
    listed = labels.tolist()
    gaps = np.isnat(labels) if labels.dtype.kind in "mM" else map(is_missing, listed)
    for row, gap in zip(rows.tolist(), gaps, strict=True):
        if gap:
            raise DataError(
                f"groups has a gap in row {row}; give a row that belongs to no other a "
                f"label of its own."
            )
    numbers: dict[Any, int] = {}
    try:
        found = [numbers.setdefault(label, len(numbers)) for label in listed]
    except TypeError as error:
        raise DataError(
            f"groups holds a label that cannot be compared: {error}; give numbers or text."
        ) from error
    return np.array(found, dtype=np.intp)


def by_content(group: Rows, cell: Rows, weight: Array) -> Rows:
    """Groups numbered by what they hold, whatever they are called, (n_rows,).

    Parameters
    ----------
    group : ndarray of shape (n_rows,)
    cell : ndarray of shape (n_rows,)
        Equal for rows that are equal.
    weight : ndarray of shape (n_rows,)
        Copies of a row in a group are one row of their weight.
    """
    order = np.lexsort([cell, group])
    group_, cell_ = group[order], cell[order]
    begins = np.r_[True, (np.diff(group_) != 0) | (np.diff(cell_) != 0)]
    first = np.flatnonzero(begins)
    held = list(
        zip(
            cell_[first].tolist(),
            np.add.reduceat(weight[order], first).tolist(),
            strict=True,
        )
    )
    starts = np.flatnonzero(np.r_[True, np.diff(group_[first]) != 0])
    ends = np.r_[starts[1:], len(first)]
    contents = [held[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    ranked = sorted(range(len(contents)), key=contents.__getitem__)
    number = np.empty(len(contents), dtype=np.intp)
    number[ranked] = np.arange(len(contents))
    return np.asarray(number[np.unique(group, return_inverse=True)[1]])


def check_whole(fold: Rows, group: Rows, rows: Rows) -> None:
    """Refuse folds of the user's own that take a group apart."""
    held: dict[int, int] = {}
    seen: NDArray[Any] = np.column_stack([group, fold, rows])
    for name, own, row in seen.tolist():
        if held.setdefault(name, own) != own:
            raise DataError(
                f"cv holds row {row} out with fold {own}, and others of its group with "
                f"fold {held[name]}; take a splitter that keeps groups whole, such as "
                f"GroupKFold or StratifiedGroupKFold, or a number."
            )


def few_groups(group: Rows, n_folds: int) -> str:
    """What to say where there are fewer groups than folds; "" where there are enough."""
    n_groups = len(np.unique(group))
    if n_groups < 2:
        raise DataError(
            "groups puts all rows into one group, so that none can be held out; give "
            "labels that tell some rows apart, or cv=None."
        )
    if n_groups >= n_folds:
        return ""
    return (
        f"there are {n_groups} groups for {n_folds} folds; each group is a fold of its "
        f"own. cv={n_groups} asks for this."
    )
