"""Judge decisions on rows that neither they nor their leaves were learned from.

`Outcomes` is one matrix with the risk of every candidate on the same held-out rows. The
candidate of the least mean is taken; buying nothing is kept unless that lead is clear. The
risk that is reported of the winner is corrected for its having been chosen: the mean of the
best of several is too good, by as much as choosing on resampled rows shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sensortree.constants import COMPARED_ROWS, OPTIMISM_SAMPLES, OPTIMISM_SUMS, SURELY
from sensortree.learning.joint import Learner
from sensortree.learning.pose import answers, costs_of_leaves, losses, pose
from sensortree.learning.settings import Settings, named_root
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.policy.about import NOTHING, Comparison, HeldOut
from sensortree.sensors.market import Market
from sensortree.tree.tree import Leaf, SensorTree
from sensortree.types import Array, Mask, Rows


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a candidate was worth on each held-out observation, (n_observations,) each.

    Risk is loss plus weighted cost.
    """

    risk: Array
    loss: Array
    error: Array
    cost: Array

    def score(self, optimism: float = 0.0) -> HeldOut:
        """Means and their standard errors; what is lost is corrected for choosing."""

        def mean(values: Array, more: float = 0.0) -> tuple[float, float]:
            error = float(values.std() / np.sqrt(len(values)))
            return float(values.mean()) + more, error

        lost, wrong = float(self.loss.mean()), optimism
        if lost > 0:  # as a share of wrong answers: in proportion to what they lose
            wrong = optimism * float(self.error.mean()) / lost
        return HeldOut(
            *mean(self.risk, optimism),
            *mean(self.loss, optimism),
            *mean(self.error, wrong),
            *mean(self.cost),
            len(self.risk),
        )


@dataclass(eq=False)
class Outcomes:
    """The matrix: outcomes of all candidates on the same observations, by name."""

    of: dict[str, Outcome] = field(default_factory=dict)

    def best(self, among: Iterable[str] | None = None) -> str:
        """The candidate of the least mean risk; of equals the one that spends least."""
        names = list(self.of if among is None else among)

        def rank(name: str) -> tuple[float, float]:
            found = self.of[name]
            return round(float(found.risk.mean()), 12), float(found.cost.mean())

        return str(min(names, key=rank))

    def lead(self, name: str, other: str) -> tuple[float, float]:
        """By how much one risk is below another, and the paired standard error of that."""
        ahead = self.of[other].risk - self.of[name].risk
        return float(ahead.mean()), float(ahead.std() / np.sqrt(len(ahead)))

    def behind(self, name: str, other: str) -> float:
        """Paired standard errors by which a candidate is behind another."""
        lead, error = self.lead(other, name)
        return lead / error if error else np.inf * np.sign(lead) if lead else 0.0

    @cached_property
    def optimism(self) -> float:
        """How much too good the least of the mean risks is."""
        return optimism_of([found.risk for found in self.of.values()])

    def choice(self) -> str:
        """The best candidate, or nothing if the lead over it is not clear."""
        best = self.best()
        if NOTHING not in self.of or best == NOTHING:
            return best
        lead, error = self.lead(best, NOTHING)
        return best if lead - self.optimism > SURELY * error else NOTHING


def optimism_of(columns: Sequence[Array]) -> float:
    """How much too good the least of the means is, by choosing on resampled rows.

    What is best on a resample is worth more there than on all rows.
    """
    risks = np.column_stack(columns)
    if risks.shape[1] < 2:
        return 0.0
    n_sums = min(OPTIMISM_SUMS, len(risks))
    rng = np.random.default_rng(0)
    place = rng.permutation(len(risks)) % n_sums
    sums = np.stack([np.bincount(place, column, n_sums) for column in risks.T])
    drawn = rng.multinomial(n_sums, np.full(n_sums, 1 / n_sums), size=OPTIMISM_SAMPLES)
    means = drawn @ sums.T / len(risks)
    # equal but for rounding is equal, whatever risks are counted in
    best = np.round(means / (np.abs(risks).mean() or 1.0), 9).argmin(axis=1)
    on_all = risks.mean(axis=0)[best]
    return float(max(0.0, np.mean(on_all - means[np.arange(OPTIMISM_SAMPLES), best])))


def comparison_of(
    outcomes: Outcomes,
    chosen: str,
    optimism: float,
    delivered: Outcome,
    removed: tuple[str, ...],
    not_compared: Mapping[str, str],
) -> Comparison:
    """Sum a matrix up.

    `delivered` is of the model that is delivered: the chosen one, less what it can do
    without.
    """
    best = outcomes.best()
    return Comparison(
        chosen,
        {name: float(found.risk.mean()) for name, found in outcomes.of.items()},
        {name: float(found.cost.mean()) for name, found in outcomes.of.items()},
        {name: outcomes.lead(best, name)[1] for name in outcomes.of},
        optimism,
        len(delivered.risk),
        removed,
        dict(not_compared),
        delivered.score(optimism),
    )


class HeldOutDecisions(NamedTuple):
    """Where some held-out rows end by decisions that were learned without them."""

    tree: SensorTree
    rows: Rows  # distinct ones, (n_rows,)
    stop: Rows  # place among `stops_of` the tree, (n_rows,)


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


def decide_held_out(
    trees: SensorTree | Sequence[SensorTree],
    leaves: LeafClassifiers,
    settings: Settings,
    learn: Learner,
    which: slice = slice(None),
) -> list[HeldOutDecisions]:
    """Learn decisions on a tree without each part of the rows that is held out.

    Trees are one for all parts, or one for each; `which` are the parts to hold out.
    """
    parts = list(held_out_parts(leaves))[which]
    trees = [trees] * len(parts) if isinstance(trees, SensorTree) else trees[which]
    posed = {tree: pose(tree, leaves, settings) for tree in dict.fromkeys(trees)}
    found = []
    for tree, (train, test) in zip(trees, parts, strict=True):
        problem = posed[tree].observed
        coef = learn(*posed[tree].taken(train)).coef
        stop = tree.route(problem.take(test).margins(coef))
        if settings.max_cost is not None:
            mean = problem.take(train).constant_risk()
            market = leaves.data.market(settings.max_cost)
            can_pay = market.affordable(costs_of_stops(tree, leaves, market))
            stop = best_payable(stop, mean, np.asarray(can_pay)[test])
        found.append(HeldOutDecisions(tree, test, stop))
    return found


def stops_of(tree: SensorTree, market: Market) -> list[Leaf]:
    """Leaves; then the root, and what is free, for rows that can pay for none of them."""
    return [*tree.leaves, Leaf(tree.root.sensors), Leaf(market.free())]


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
    parts: Iterable[HeldOutDecisions], leaves: LeafClassifiers, settings: Settings
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
    certain = [np.broadcast_to(one, (len(rows), len(sure))) for one in sure]
    observed = data.observations()
    return [observed.each(data.loss.judge(data.y[rows], each)) for each in certain]


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
