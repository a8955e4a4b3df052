"""Judge decisions on rows that neither they nor their leaves were learned from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sensortree.constants import COMPARED_ROWS
from sensortree.learning.comparison import Outcome
from sensortree.learning.joint import Learner
from sensortree.learning.pose import (
    answers,
    costs_of_leaves,
    losses,
    pose,
)
from sensortree.learning.settings import Settings, named_root
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.sensors.market import Market
from sensortree.structure import with_exits
from sensortree.tree.tree import Leaf, SensorTree
from sensortree.types import Array, Mask, Rows

Folds = list[tuple[Rows, Rows]]


class Rehearsed(NamedTuple):
    """Where some held-out rows end by decisions that were learned without them.

    Attributes
    ----------
    tree : SensorTree
    rows : ndarray of shape (n_rows,)
        Distinct rows.
    stop : ndarray of shape (n_rows,)
        Place among `stops_of` the tree.
    """

    tree: SensorTree
    rows: Rows
    stop: Rows


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
    trees: SensorTree | Sequence[SensorTree],
    leaves: LeafClassifiers,
    settings: Settings,
    learn: Learner,
    n_parts: int | None = None,
) -> list[Rehearsed]:
    """Learn decisions on a tree without each part of the rows that is held out.

    Parameters
    ----------
    trees : SensorTree or sequence of SensorTree
        One for all parts, or one for each.
    leaves : LeafClassifiers
    settings : Settings
    learn : Learner
    n_parts : int, default=None
        Folds that are held out, each in turn; None for all.
    """
    parts = list(held_out_parts(leaves))[:n_parts]
    trees = [trees] * len(parts) if isinstance(trees, SensorTree) else trees
    posed = {tree: pose(tree, leaves, settings) for tree in dict.fromkeys(trees)}
    found = []
    for tree, (train, test) in zip(trees, parts, strict=True):
        problem = posed[tree].observed
        coef = learn(*posed[tree].taken(train)).coef
        stop = tree.route(problem.take(test).margins(coef))
        if settings.max_cost is not None:
            mean = problem.take(train).constant_risk()
            can_pay = payable(tree, leaves, settings)[test]
            stop = best_payable(stop, mean, can_pay)
        found.append(Rehearsed(tree, test, stop))
    return found


def stops_of(tree: SensorTree, market: Market) -> list[Leaf]:
    """Leaves; then the root, and what is free, for rows that can pay for none of them."""
    return [*tree.leaves, Leaf(tree.root.sensors), Leaf(market.free())]


def payable(tree: SensorTree, leaves: LeafClassifiers, settings: Settings) -> Mask:
    """Whether distinct rows can pay for each stop, (n_rows, n_leaves + 2)."""
    market = leaves.data.market(settings.max_cost)
    return np.asarray(market.affordable(costs_of_stops(tree, leaves, market)))


def costs_of_stops(tree: SensorTree, leaves: LeafClassifiers, market: Market) -> Array:
    """Price of the way to each stop, of distinct rows, (n_rows, n_leaves + 2)."""
    others = [SensorTree(stop) for stop in stops_of(tree, market)[-2:]]
    return np.hstack([costs_of_leaves(each, leaves) for each in (tree, *others)])


def best_payable(stop: Rows, mean_risk: Array, can_pay: Mask) -> Rows:
    """Where rows stop that cannot pay for the leaf that was decided, as in the policy.

    At the best leaf that each can pay for, by the mean risk of training rows; if there is
    none, at the root, or with what is free.
    """
    rows = np.arange(len(stop))
    ranked = np.r_[mean_risk, np.inf, np.inf]
    order = np.argsort(ranked, kind="stable")
    best = order[can_pay[:, order].argmax(axis=1)]
    return np.where(can_pay[rows, stop], stop, best)


def outcome_of(
    parts: Iterable[Rehearsed], leaves: LeafClassifiers, settings: Settings
) -> Outcome:
    """Risk, loss, error and cost of held-out rows where they stop."""
    data = leaves.data
    distinct, _ = data.distinct()
    tests, lost, wrong, paid = [], [], [], []
    for tree, rows, stop in parts:
        stops, costs = list(tree.leaves), costs_of_leaves(tree, leaves)
        if (stop >= tree.n_leaves).any():  # some rows can pay for none of them
            market = data.market(settings.max_cost)
            stops = stops_of(tree, market)
            costs = costs_of_stops(tree, leaves, market)
            leaves.judge(each.sensors for each in stops)
        numbers, at = distinct[rows], (np.arange(len(rows)), stop)
        given = answers(stops, leaves)[numbers][at]
        tests.append(rows)
        lost.append(losses(stops, leaves)[numbers][at])
        wrong.append(data.loss.error(data.y[numbers], given))
        paid.append(costs[rows, stop])
    each = data.observations().take(np.concatenate(tests)).each
    loss, error, cost = (each(np.concatenate(c)) for c in (lost, wrong, paid))
    return Outcome(loss + settings.cost_weight * cost, loss, error, cost)


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
