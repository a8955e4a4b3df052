"""Order, folds and groups of rows: what is held out together, whatever row came first."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sensortree.exceptions import DataError, FewRowsWarning
from sensortree.types import Array, Mask, Rows

if TYPE_CHECKING:
    from sensortree.leaves.task import Task


class FoldedRows:
    """Rows that engines fit all folds of as one job.

    y are classes as integers, or numbers. A row of weight 0 is judged, and not learned
    from; without weights all are 1. The fold is what a row is held out with; -1 for a row
    that never is, as all are without folds. All are (n_samples,).
    """

    def __init__(
        self, y: NDArray[Any], weight: Array | None = None, fold: Rows | None = None
    ):
        self.y, self.given_weight = y, weight
        self.weight = np.ones(len(y)) if weight is None else weight
        self.taught = self.weight > 0
        self.fold = np.full(len(y), -1) if fold is None else np.asarray(fold)
        self.folds = [int(f) for f in np.unique(self.fold) if f >= 0]


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


def assign_folds(
    stratum: Rows,
    reading: Rows,
    n_folds: int,
    group: Rows | None = None,
    classes: NDArray[Any] | None = None,
    random_state: Any = 0,
) -> Rows:
    """Deal rows out to folds, stratum by stratum; rows of one group go together.

    A stratum is a class, or a level of numbers. Within it rows come in an order that is
    drawn, and folds take turns: every fold has as many rows of a class as any other, but
    for one. Equal readings fall where they may: were they dealt out evenly too, other
    folds would foretell how many of them are of which class, and noise would look as if
    something could be learned from it. Groups come first, the large ones before the small
    ones; each goes to the fold that has least of what it holds. Equal rows of one group
    count once.

    The only row, or group, of a class is never held out (-1), since nothing could be
    learned about the class without it; `classes` names strata of which that holds. All
    are -1 where there is nothing to learn from without the others.
    """
    rng = check_random_state(random_state)
    what = "row" if group is None else "group"
    if group is None:
        group = unit = np.arange(len(stratum))
    else:  # a row for each reading and stratum of each group
        order = np.lexsort([stratum, reading, group])
        columns = (c[order] for c in (group, reading, stratum))
        pieces = order[first_of_runs(columns, len(group))]
        unit, stratum = group[pieces], stratum[pieces]
    n_groups, n_strata = int(group.max()) + 1, int(stratum.max()) + 1
    kept = np.zeros(n_groups, dtype=bool)
    if classes is not None:
        kept = _alone(unit, stratum, classes, what)
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
        fold[many] = _deal_groups(counts, of_all, drawn, held, classes is not None)
        for code in range(n_strata):
            single = np.flatnonzero(free & (size[unit] == 1) & (stratum == code))
            if not single.size:
                continue
            turn = _in_turn(held[:, code], held[:, -1], len(single))
            fold[unit[rng.permutation(single)]] = turn
            for column in (code, -1):
                held[:, column] += np.bincount(turn, minlength=n_folds)
    return np.asarray(fold[group])


def _alone(unit: Rows, stratum: Rows, classes: NDArray[Any], what: str) -> Mask:
    """Groups that hold all rows of a class, (n_groups,); says so."""
    alone = np.zeros(int(unit.max()) + 1, dtype=bool)
    order = np.lexsort([unit, stratum])
    pairs = first_of_runs((c[order] for c in (stratum, unit)), len(order))
    unit, stratum = unit[order][pairs], stratum[order][pairs]
    only = np.bincount(stratum, minlength=len(classes)) == 1
    alone[unit[only[stratum]]] = True
    for name in classes[only].tolist():
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

    Groups are dealt in an order by their `counts`, rows of each stratum and of all,
    (n_groups, n_strata + 1); `of_all` is the sum of these. `held` is what folds hold,
    (n_folds, n_strata + 1), and is added to. `whole` says whether a fold that would hold
    all of a stratum is avoided.
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


def by_content(group: Rows, cell: Rows, weight: Array) -> Rows:
    """Groups numbered by what they hold, whatever they are called, (n_rows,).

    `cell` is equal for rows that are equal: copies of a row in a group are one row of
    their weight.
    """
    order = np.lexsort([cell, group])
    group_, cell_ = group[order], cell[order]
    first = first_of_runs([group_, cell_], len(order))
    counted = np.add.reduceat(weight[order], first)
    held = list(zip(cell_[first].tolist(), counted.tolist(), strict=True))
    starts = first_of_runs([group_[first]], len(first)).tolist()
    contents = [held[a:b] for a, b in pairwise([*starts, len(first)])]
    ranked = sorted(range(len(contents)), key=contents.__getitem__)
    number = np.empty(len(contents), dtype=np.intp)
    number[ranked] = np.arange(len(contents))
    return np.asarray(number[np.unique(group, return_inverse=True)[1]])


@dataclass(frozen=True, eq=False)
class Arranged:
    """Where rows stood, their folds, and their groups; None if each row is a group."""

    order: Rows
    fold: Rows
    group: Rows | None

    def take(self, rows: Rows) -> Arranged:
        """The same in another order."""
        group = None if self.group is None else self.group[rows]
        return Arranged(self.order[rows], self.fold[rows], group)


@dataclass(frozen=True, eq=False)
class Dealing:
    """How rows are dealt out to folds; there are no classes where numbers are learned."""

    task: Task
    n_folds: int
    random_state: Any
    classes: NDArray[Any]

    def folds(
        self, codes: NDArray[Any], weight: Array, reading: Rows, group: Rows | None
    ) -> Rows:
        """Folds of sorted rows; says where there are fewer groups."""
        n_groups = len(codes) if group is None else len(np.unique(group))
        if group is not None and n_groups < 2:
            raise DataError(
                "groups puts all rows into one group, so that none can be held out; give "
                "labels that tell some rows apart, or cv=None."
            )
        if group is not None and n_groups < self.n_folds:
            warnings.warn(
                f"there are {n_groups} groups for {self.n_folds} folds; each group is a "
                f"fold of its own. cv={n_groups} asks for this.",
                FewRowsWarning,
                stacklevel=2,
            )
        stratum = self.task.levels(codes, weight)
        named = self.classes if len(self.classes) else None
        return assign_folds(
            stratum, reading, self.n_folds, group, named, self.random_state
        )


def arrange(
    read: Sequence[Array],
    own: Sequence[NDArray[Any]],
    weight: Array,
    held: Arranged,
    dealing: Dealing | None,
) -> Arranged:
    """Sort rows by what they hold, and deal them out to folds.

    Equal rows that are held out together stand side by side. Groups are numbered by what
    they hold.

    `read` are the columns that are read, the one that counts most first; `own` is what else
    belongs to a row, such as its prices, and at last its class, or number. `held` are rows
    as they stand, with folds and groups that were given; without `dealing`, the folds are
    kept.
    """
    n_rows = len(weight)
    order = order_of_rows([*read, *own], n_rows)
    reading = run_numbers((column[order] for column in read), n_rows)
    cell = run_numbers([reading, *(column[order] for column in own)], n_rows)
    weight, rows = weight[order], held.take(order)
    if rows.group is not None:
        rows = replace(rows, group=by_content(rows.group, cell, weight))

    def again() -> Rows:
        group = [] if rows.group is None else [rows.group]
        return np.lexsort([weight, *group, rows.fold, cell])

    sort = again()
    weight, rows = weight[sort], rows.take(sort)
    reading, cell = reading[sort], cell[sort]
    if dealing is None:
        return rows
    codes = own[-1][rows.order]
    rows = replace(rows, fold=dealing.folds(codes, weight, reading, rows.group))
    return rows.take(again())
