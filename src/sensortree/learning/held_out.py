"""Judge decisions on rows that neither they nor their leaves were learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sensortree.constants import COMPARED_ROWS
from sensortree.learning.comparison import Outcome
from sensortree.learning.joint import Learner
from sensortree.learning.pose import (
    Posed,
    answers,
    costs_of_leaves,
    losses,
    pose,
)
from sensortree.learning.settings import Settings, named_root
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.structure import with_exits
from sensortree.tree.tree import Leaf, SensorTree
from sensortree.types import Array, Rows

Folds = list[tuple[Rows, Rows]]


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """Decisions on a tree that were learned without some of the rows, and judged on them.

    Attributes
    ----------
    posed : Posed
    parts : list of (rows, coef)
        The distinct rows that were held out, and the coefficients learned without them.
    """

    posed: Posed
    parts: list[tuple[Rows, list[Array]]]

    def risks(self) -> Array:
        """Observed risks, times weight, of all distinct rows that were held out."""
        observed = self.posed.observed
        risks = [observed.take(test).risks(coef) for test, coef in self.parts]
        return np.concatenate(risks) if risks else np.empty(0)


def held_out_parts(leaves: LeafClassifiers) -> Iterator[tuple[Rows, Rows]]:
    """Distinct rows to learn from and to judge on, for each fold in turn.

    Of many rows a sample is learned from.
    """
    rows, _ = leaves.data.distinct()
    fold = leaves.data.fold[rows]
    for held_out in [fold == f for f in np.unique(fold[fold >= 0])]:
        train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        if not (len(train) and len(test)):
            continue
        if len(train) > COMPARED_ROWS:
            order = np.random.default_rng(0).permutation(len(train))
            train = np.sort(train[order[:COMPARED_ROWS]])
        yield train, test


def rehearse(
    tree: SensorTree,
    leaves: LeafClassifiers,
    settings: Settings,
    learn: Learner,
    n_parts: int | None = None,
) -> Rehearsed:
    """Learn decisions on a tree without each part of the rows that is held out.

    Parameters
    ----------
    tree : SensorTree
    leaves : LeafClassifiers
    settings : Settings
    learn : Learner
    n_parts : int, default=None
        Folds that are held out, each in turn; None for all.
    """
    posed = pose(tree, leaves, settings)
    parts = list(held_out_parts(leaves))[:n_parts]
    return Rehearsed(
        posed, [(test, learn(*posed.taken(train)).coef) for train, test in parts]
    )


def outcome_of(rehearsed: Rehearsed, leaves: LeafClassifiers) -> Outcome:
    """What decisions were worth on the rows that they were not learned from."""
    posed = rehearsed.posed
    tree = posed.problem.tree
    reached = [
        (test, tree.route(posed.observed.take(test).margins(coef)))
        for test, coef in rehearsed.parts
    ]
    return outcome_of_ways(
        [(test, tree, leaf) for test, leaf in reached], rehearsed.risks(), leaves
    )


def outcome_of_ways(
    ways: list[tuple[Rows, SensorTree, Rows]], risks: Array, leaves: LeafClassifiers
) -> Outcome:
    """Loss, error and cost of held-out rows at the leaves that they reached.

    Parameters
    ----------
    ways : list of (rows, tree, leaf)
        For each part, its distinct rows, the tree, and the leaf that each row reached.
    risks : ndarray
        Observed risks, times weight, of the distinct rows of all parts.
    leaves : LeafClassifiers
    """
    data = leaves.data
    distinct, weight = data.distinct()
    lost, wrong, paid = [], [], []
    for rows, tree, leaf in ways:
        numbers = distinct[rows]
        at = np.arange(len(rows)), leaf
        given = answers(tree.leaves, leaves)[numbers][at]
        lost.append(losses(tree.leaves, leaves)[numbers][at])
        wrong.append(data.loss.error(data.y[numbers], given))
        paid.append(costs_of_leaves(tree, leaves)[rows, leaf])
    tests = np.concatenate([rows for rows, _, _ in ways])
    counted = [weight[rows] / weight[rows].mean() for rows, _, _ in ways]
    risks = risks / np.concatenate(counted)
    each = data.observations().take(tests).each
    columns = (risks, *map(np.concatenate, (lost, wrong, paid)))
    return Outcome(*map(each, columns))


def nothing_bought(leaves: LeafClassifiers, settings: Settings) -> frozenset[str]:
    """What is known without buying: what is free, or what the user wants known."""
    market = leaves.data.market(settings.max_cost)
    named = named_root(settings, market)
    return market.free() if named is None else named


def one_leaf(subset: frozenset[str], leaves: LeafClassifiers) -> SensorTree:
    """The tree that buys the same for all; a person may still be asked."""
    tree = SensorTree(Leaf(subset))
    return with_exits(tree) if leaves.data.may_refer else tree


def answers_to_all(leaves: LeafClassifiers) -> list[Array]:
    """What it loses to answer one class whatever is read, of each observation, by class.

    Folds have the classes in the same shares, so that which answer seems best is known of
    the rows that are held out too. Of probabilities, and of numbers, that matters little.
    """
    data = leaves.data
    rows, _ = data.distinct()
    if data.loss.numbers or data.loss.score is not None:
        return [np.zeros(len(rows))]
    sure = np.eye(len(data.classes))
    said = [np.broadcast_to(one, (len(rows), len(sure))) for one in sure]
    observed = data.observations()
    return [observed.each(data.loss.judge(data.y[rows], each)) for each in said]


def tells_more(
    known: frozenset[str], free: frozenset[str], leaves: LeafClassifiers
) -> bool:
    """Whether sensors say clearly more about the target than those that are free.

    Of classes, by log-loss out of fold; or, since a classifier that is too sure of itself
    may err seldom and yet have a large log-loss, very clearly by the Brier score. Errors
    alone see too little: the best of many sensors that say nothing errs less by chance.
    """
    data = leaves.data
    rows, _ = data.distinct()
    y, observed = data.y[rows], data.observations()
    less, more = leaves.posteriors[free][rows], leaves.posteriors[known][rows]
    for loss, asked in data.task.tells(y, data.loss):
        lead = observed.each(loss(less) - loss(more))
        if lead.mean() > asked * lead.std() / np.sqrt(len(lead)):
            return True
    return False
