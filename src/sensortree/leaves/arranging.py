"""`arrange`: an order of rows, and folds, that their first order does not decide."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import FewRowsWarning
from sensortree.leaves.folds import Dealt, assign_folds, order_of_rows, run_numbers
from sensortree.leaves.groups import by_content, few_groups
from sensortree.leaves.task import Task
from sensortree.types import Array, Rows


@dataclass(frozen=True, eq=False)
class Arranged:
    """Rows, their folds and their groups.

    Attributes
    ----------
    order : ndarray of shape (n_samples,)
        Where each row stood.
    fold : ndarray of shape (n_samples,)
        -1 for a row that is not held out.
    group : ndarray of shape (n_samples,) or None
        Numbers of groups; None where each row is one of its own.
    """

    order: Rows
    fold: Rows
    group: Rows | None

    def take(self, rows: Rows) -> Arranged:
        """The same in another order."""
        group = None if self.group is None else self.group[rows]
        return Arranged(self.order[rows], self.fold[rows], group)


@dataclass(frozen=True, eq=False)
class Dealing:
    """How rows are dealt out to folds.

    Attributes
    ----------
    task : Task
    n_folds : int
    random_state : int, RandomState instance or None
    classes : ndarray of shape (n_classes,)
        None of them where numbers are learned.
    """

    task: Task
    n_folds: int
    random_state: Any
    classes: NDArray[Any]

    def folds(
        self, codes: NDArray[Any], weight: Array, reading: Rows, group: Rows | None
    ) -> Rows:
        """Folds of sorted rows; says where there are fewer groups."""
        said = "" if group is None else few_groups(group, self.n_folds)
        if said:
            warnings.warn(said, FewRowsWarning, stacklevel=2)
        stratum = self.task.levels(codes, weight)
        named = self.classes if len(self.classes) else None
        dealt = Dealt(stratum, reading, group, named)
        return assign_folds(dealt, self.n_folds, self.random_state)


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

    Parameters
    ----------
    read : sequence of arrays of shape (n_samples,)
        Columns that are read, the one that counts most first.
    own : sequence of arrays of shape (n_samples,)
        What else belongs to a row, such as its prices; at last its class, or number.
    weight : ndarray of shape (n_samples,)
    held : Arranged
        Rows as they stand, with folds and groups that were given.
    dealing : Dealing or None
        None keeps the folds that were given.
    """
    n_rows = len(weight)
    order = order_of_rows([*read, *own], n_rows)
    reading = run_numbers((column[order] for column in read), n_rows)
    cell = run_numbers([reading, *(column[order] for column in own)], n_rows)
    weight, rows = weight[order], held.take(order)
    if rows.group is not None:
        rows = replace(rows, group=by_content(rows.group, cell, weight))

    def again() -> Rows:
        ties = (
            [weight, rows.fold]
            if rows.group is None
            else [weight, rows.group, rows.fold]
        )
        return np.lexsort([*ties, cell])

    sort = again()
    weight, rows, reading, cell = (
        weight[sort],
        rows.take(sort),
        reading[sort],
        cell[sort],
    )
    if dealing is None:
        return rows
    codes = own[-1][rows.order]
    fold = dealing.folds(codes, weight, reading, rows.group)
    rows = replace(rows, fold=fold)
    return rows.take(again())
