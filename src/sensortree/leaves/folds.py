"""Folds that rows are held out with: equal readings go together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError, FewRowsWarning
from sensortree.types import Array, Mask, Rows

# Rows of equal readings, as a multiple of the folds, that are not held out together.
FREQUENT = 3
# Distinct readings up to which equal ones of one class are not taken for copies.
FEW_READINGS = 16


def first_of_runs(columns: Iterable[NDArray[Any]], n_rows: int) -> Rows:
    """First row of each run of equal rows; NaN equals NaN."""
    again = np.arange(1, n_rows)  # rows that equal the one above them so far
    for column in columns:
        above, here = column[again - 1], column[again]
        again = again[(above == here) | (np.isnan(above) & np.isnan(here))]
        if not again.size:
            break
    return np.delete(np.arange(n_rows), again)


def order_of_rows(columns: Iterable[NDArray[Any]], n_rows: int) -> Rows:
    """Order of rows by their columns, of which the first counts most; NaN comes last.

    Equal rows stay in their order. A column is looked at only where all before it are
    equal, which they seldom are.
    """
    order = np.arange(n_rows)
    tied = np.arange(n_rows)  # places whose rows are not told apart yet, in runs
    run = np.zeros(n_rows, dtype=np.intp)
    for column in columns:
        rows = order[tied]
        rows = rows[np.lexsort([column[rows], run])]
        order[tied] = rows
        first = first_of_runs([run, column[rows]], len(rows))
        length = np.diff(np.r_[first, len(rows)])
        left = np.repeat(length > 1, length)
        tied, run = tied[left], np.repeat(np.arange(len(first)), length)[left]
        if not tied.size:
            break
    return order


def frequent_readings(values: Array, y: NDArray[Any], n_folds: int) -> Mask:
    """Whether a row's readings are those of many rows, (n_samples,).

    Such rows say what is true of these readings, rather than repeat each other. Copies
    are known by this: all that are equal are of one class, and there are many readings.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_columns)
        Readings, sorted, so that equal ones are neighbours.
    y : ndarray of shape (n_samples,)
    n_folds : int
    """
    first = first_of_runs(values.T, len(values))
    lengths = np.diff(np.r_[first, len(values)])
    many = lengths >= FREQUENT * n_folds
    mixed = np.minimum.reduceat(y, first) < np.maximum.reduceat(y, first)
    copies = not (many & mixed).any() and len(first) > FEW_READINGS
    return np.repeat(many & (not copies), lengths)


def assign_folds(values: Array, y: Rows, n_folds: int, classes: NDArray[Any]) -> Rows:
    """Deal sorted rows out to folds, class by class; equal readings go together.

    Equal readings of very many rows, no copies, are dealt out row by row: without them in
    the other folds nothing could be learned from readings that are few, such as yes and no.
    Of others, those that several classes share are dealt with the rarest of these, and
    count for all of them. Where a class has readings of its own only, folds take turns.

    The only readings of a class are never held out (-1), since nothing could be learned
    about it without them.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_columns)
        Readings, sorted, so that equal ones are neighbours.
    y : ndarray of shape (n_samples,)
        Positions in `classes`.
    n_folds : int
    classes : ndarray of shape (n_classes,)

    Returns
    -------
    fold : ndarray of shape (n_samples,)
    """
    frequent = frequent_readings(values, y, n_folds)
    begins = frequent.copy()
    begins[first_of_runs(values.T, len(values))] = True
    first = np.flatnonzero(begins)
    lengths = np.diff(np.r_[first, len(values)])
    has = np.zeros((len(first), len(classes)), dtype=bool)
    has[np.repeat(np.arange(len(first)), lengths), y] = True
    n_readings = has.sum(axis=0)
    alone = n_readings == 1
    for name in classes[alone].tolist():
        warnings.warn(
            f"class {name!r} has a single distinct row; that row cannot be held out, "
            f"and is judged by a classifier that has seen it.",
            FewRowsWarning,
            stacklevel=2,
        )
    dealt_with = np.where(has, n_readings, len(first) + 1).argmin(axis=1)
    dealt_with[has[:, alone].any(axis=1)] = -1
    rng = np.random.default_rng(0)
    single = frequent[first]
    order = [
        rng.permutation(np.flatnonzero((dealt_with == c) & ~single))
        for c in range(len(alone))
    ]
    deal = evenly if (has.sum(axis=1) > 1).any() else in_turn
    fold = np.full(len(first), -1)
    fold[np.concatenate(order)] = deal(order, has, n_folds)
    for c in range(len(alone)):
        rows = np.flatnonzero((dealt_with == c) & single)
        fold[rows] = (np.arange(len(rows)) + c) % n_folds
    return np.repeat(fold, lengths)


def deal_numbers(values: Array, y: Array, n_folds: int) -> Rows:
    """Deal sorted rows out to folds, low and high numbers alike; equal readings together.

    Readings are sorted by the middle of their numbers; of as many neighbours as there are
    folds, each goes to another, at random. Equal readings of very many rows, no copies,
    are dealt out row by row, as classes are.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_columns)
        Readings, sorted, so that equal ones are neighbours.
    y : ndarray of shape (n_samples,)
    n_folds : int

    Returns
    -------
    fold : ndarray of shape (n_samples,)
        All -1 where there is one reading only.
    """
    begins = frequent_readings(values, y, n_folds)
    begins[first_of_runs(values.T, len(values))] = True
    first = np.flatnonzero(begins)
    if len(first) < 2:
        return np.full(len(values), -1)
    middle = (np.minimum.reduceat(y, first) + np.maximum.reduceat(y, first)) / 2
    rng = np.random.default_rng(0)
    n_rounds = -(-len(first) // n_folds)
    dealt = np.concatenate([rng.permutation(n_folds) for _ in range(n_rounds)])
    fold = np.empty(len(first), dtype=np.intp)
    fold[np.argsort(middle, kind="stable")] = dealt[: len(first)]
    if len(first) < n_folds:  # every fold that is named has a row
        fold = np.unique(fold, return_inverse=True)[1]
    return np.repeat(fold, np.diff(np.r_[first, len(values)]))


def in_turn(order: list[Rows], has: Mask, n_folds: int) -> Rows:
    """Fold of readings, one after another; right where no classes share any."""
    return np.arange(sum(map(len, order))) % n_folds


def evenly(order: list[Rows], has: Mask, n_folds: int) -> Rows:
    """Fold of readings: that with the fewest of the class, and of equals the next in turn.

    A fold that would hold all of a class is avoided; then, of folds with as few of the
    reading's own class, that with the fewest of the other classes that share it is taken.

    Parameters
    ----------
    order : list of n_classes arrays
        The readings that are dealt with each class, in the order that they are dealt.
    has : ndarray of bool of shape (n_readings, n_classes)
        Whether a class has a reading.
    n_folds : int

    Returns
    -------
    fold : ndarray of shape (number of readings in `order`,)
    """
    counts = np.zeros((n_folds, has.shape[1]), dtype=int)
    dealt: list[int] = []
    for code, readings in enumerate(order):
        for reading in readings:
            shared = counts[:, has[reading]]
            holds_all = (shared > 0) & (shared == shared.sum(axis=0))
            after = (np.arange(n_folds) - len(dealt)) % n_folds
            keys = [after, shared.sum(axis=1), counts[:, code], holds_all.sum(axis=1)]
            best = np.lexsort(keys)[0]  # the last key counts most
            counts[best] += has[reading]
            dealt.append(best)
    return np.array(dealt, dtype=np.intp)


def folds_of_splits(
    splits: Iterable[tuple[Rows, Rows]], n_samples: int, rows: Rows
) -> Rows:
    """Fold of those rows that count, each of which must be held out once.

    Parameters
    ----------
    splits : iterable of (train, test)
        Positions among all rows.
    n_samples : int
        The number of all rows.
    rows : ndarray of shape (n_rows,)
        Those that count; whether others are held out does not matter.

    Returns
    -------
    fold : ndarray of shape (n_rows,)
    """
    fold = np.full(n_samples, -1)
    times = np.zeros(n_samples, dtype=int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
        np.add.at(times, test, 1)
    wrong = rows[times[rows] != 1]
    if wrong.size:
        raise DataError(
            f"cv holds row {wrong[0]} out {times[wrong[0]]} times; each row must be held "
            f"out exactly once, as by KFold or StratifiedKFold."
        )
    return fold[rows]
