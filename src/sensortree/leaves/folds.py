"""Folds that rows are held out with: drawn, with classes spread evenly."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sensortree.exceptions import DataError, FewRowsWarning
from sensortree.types import Mask, Rows


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


def run_numbers(columns: Iterable[NDArray[Any]], n_rows: int) -> Rows:
    """Number of the run of equal rows that each row is in, from 0; NaN equals NaN."""
    first = first_of_runs(columns, n_rows)
    return np.repeat(np.arange(len(first)), np.diff(np.r_[first, n_rows]))


@dataclass(frozen=True, eq=False)
class Dealt:
    """What is dealt out to folds, in an order that does not depend on that of the rows.

    Attributes
    ----------
    stratum : ndarray of shape (n_samples,)
        Rows of each are dealt out evenly: classes, or levels of numbers.
    reading : ndarray of shape (n_samples,)
        Equal for equal readings.
    group : ndarray of shape (n_samples,) or None
        Rows of one group go together; None where each row goes by itself.
    classes : ndarray of shape (n_classes,) or None
        Names of strata that no fold may hold all rows of; None where that does not matter.
    """

    stratum: Rows
    reading: Rows
    group: Rows | None = None
    classes: NDArray[Any] | None = None


def assign_folds(dealt: Dealt, n_folds: int, random_state: Any = 0) -> Rows:
    """Deal rows out to folds, stratum by stratum; rows of one group go together.

    Within a stratum rows come in an order that is drawn, and folds take turns: every fold
    has as many rows of a class as any other, but for one. Equal readings fall where they
    may: were they dealt out evenly too, other folds would foretell how many of them are
    of which class, and noise would look as if something could be learned from it. Groups
    come first, the large ones before the small ones; each goes to the fold that has least
    of what it holds. Equal rows of one group count once.

    The only row, or group, of a class is never held out (-1), since nothing could be
    learned about the class without it.

    Parameters
    ----------
    dealt : Dealt
    n_folds : int
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    fold : ndarray of shape (n_samples,)
        All -1 where there is nothing to learn from without the others.
    """
    rng = check_random_state(random_state)
    group = dealt.group
    if group is None:
        group = np.arange(len(dealt.stratum))
    n_groups = int(group.max()) + 1
    pieces = _pieces(dealt, group)
    unit, stratum = group[pieces], dealt.stratum[pieces]
    n_strata = int(stratum.max()) + 1
    kept = _alone(dealt, unit, stratum)
    size = np.bincount(unit, minlength=n_groups)
    fold = np.full(n_groups, -1)
    n_folds = min(n_folds, n_groups - int(kept.sum()))
    if n_groups > 1 and n_folds > 0:
        held = np.zeros((n_folds, n_strata + 1), dtype=np.int64)
        several = ~kept & (size > 1)
        inside = several[unit]
        many, place = np.unique(unit[inside], return_inverse=True)
        counts = np.zeros((len(many), n_strata + 1), dtype=np.int64)
        np.add.at(counts, (place, stratum[inside]), 1)
        counts[:, -1] = size[many]
        free = ~kept[unit]
        of_all = np.bincount(stratum[free], minlength=n_strata)
        of_all = np.r_[of_all, of_all.sum()]
        drawn = rng.permutation(len(many))
        drawn = drawn[np.argsort(-counts[drawn, -1], kind="stable")]
        fold[many] = _deal_groups(
            counts, of_all, drawn, held, dealt.classes is not None
        )
        for code in range(n_strata):
            single = np.flatnonzero(free & (size[unit] == 1) & (stratum == code))
            if not single.size:
                continue
            turn = _in_turn(held[:, code], held[:, -1], len(single))
            fold[unit[rng.permutation(single)]] = turn
            for column in (code, -1):
                held[:, column] += np.bincount(turn, minlength=n_folds)
    return np.asarray(fold[group])


def _pieces(dealt: Dealt, group: Rows) -> Rows:
    """A row for each reading and stratum of each group."""
    if dealt.group is None:
        return group
    order = np.lexsort([dealt.stratum, dealt.reading, group])
    columns = (c[order] for c in (group, dealt.reading, dealt.stratum))
    first = first_of_runs(columns, len(group))
    return np.asarray(order[first])


def _alone(dealt: Dealt, unit: Rows, stratum: Rows) -> Mask:
    """Groups that hold all rows of a class, (n_groups,); says so."""
    alone = np.zeros(int(unit.max()) + 1, dtype=bool)
    if dealt.classes is None:
        return alone
    order = np.lexsort([unit, stratum])
    pairs = first_of_runs((c[order] for c in (stratum, unit)), len(order))
    unit, stratum = unit[order][pairs], stratum[order][pairs]
    only = np.bincount(stratum, minlength=len(dealt.classes)) == 1
    alone[unit[only[stratum]]] = True
    what = "row" if dealt.group is None else "group"
    for name in dealt.classes[only].tolist():
        warnings.warn(
            f"class {name!r} has a single {what}; that {what} cannot be held out, and is "
            f"judged by a classifier that has seen it.",
            FewRowsWarning,
            stacklevel=2,
        )
    return alone


def _deal_groups(
    counts: NDArray[Any], of_all: Rows, order: Rows, held: NDArray[Any], whole: bool
) -> Rows:
    """Fold of each group: where least is of what it holds, rare strata before others.

    Parameters
    ----------
    counts : ndarray of shape (n_groups, n_strata + 1)
        Rows of each stratum, and of all.
    of_all : ndarray of shape (n_strata + 1,)
        The same of all groups together.
    order : ndarray of shape (n_groups,)
        In which they are dealt.
    held : ndarray of shape (n_folds, n_strata + 1)
        What folds hold; is added to.
    whole : bool
        Whether a fold that would hold all of a stratum is avoided.
    """
    share = 1.0 / np.maximum(of_all, 1.0) ** 2
    fold = np.empty(len(counts), dtype=np.intp)
    for group in order:
        own = counts[group]
        crowded = held @ (share * own)
        takes_all = ((own > 0) & (held + own == of_all))[:, :-1].sum(axis=1) * whole
        best = np.lexsort([crowded, takes_all])[0]  # the last key counts most
        held[best] += own
        fold[group] = best
    return fold


def _in_turn(own: Rows, total: Rows, n_rows: int) -> Rows:
    """Folds of some rows of a stratum: those that hold least of it first, then in turn."""
    level = int(own.max()) + -(-n_rows // len(own))
    free = level - own
    fold = np.repeat(np.arange(len(own)), free)
    place = np.arange(len(fold)) - np.repeat(np.cumsum(free) - free, free)
    order = np.lexsort([fold, total[fold], own[fold] + place])
    return fold[order[:n_rows]]


def halves_of(fold: Rows, rng: np.random.Generator) -> Rows:
    """Half that each row is in, 0 or 1: whole folds, or what is drawn if there are none."""
    folds = np.unique(fold[fold >= 0])
    drawn = rng.permutation(len(fold)) % 2
    if len(folds) < 2:
        return drawn
    return np.where(fold >= 0, np.searchsorted(folds, fold) % 2, drawn)


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
