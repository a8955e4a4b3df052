"""Judge decisions on rows that they were not learned from, and prefer to buy less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from sensortree.learning.learned import Learner
from sensortree.learning.pose import (
    Posed,
    answers,
    costs_of_leaves,
    costs_of_persons,
    losses,
    pose,
)
from sensortree.learning.settings import Settings, named_root
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.observations import Observations
from sensortree.leaves.task import Measure
from sensortree.policy.about import HeldOut
from sensortree.structure import prune, with_exits
from sensortree.tree.tree import Leaf, SensorTree
from sensortree.types import Array, Mask, Rows

# Rows that decisions are learned from at most, where they are only compared.
LEARNED_ROWS = 4_000
# Standard errors by which what buys more must be better.
CLEARLY = 1.0


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """Decisions on a tree that were learned without some of the rows, and judged on them.

    Attributes
    ----------
    posed : Posed
    parts : list of (rows, coef)
        The distinct rows that were held out, and the coefficients learned without them.
    observations : Observations
        How many each distinct row stands for.
    """

    posed: Posed
    parts: list[tuple[Rows, list[Array]]]
    observations: Observations

    def risks(self) -> Array:
        """Observed risks, times weight, of all that was held out, one per observation."""
        observed = self.posed.observed
        risks = [observed.take(test).risks(coef) for test, coef in self.parts]
        return self.per_observation(np.concatenate(risks))

    def on_leaves(self, leaves: Mask) -> Rehearsed:
        """The same on the tree that is left of some leaves."""
        tree, nodes = prune(self.posed.problem.tree, leaves.astype(int))
        posed = Posed(
            [self.posed.features[j] for j in nodes],
            self.posed.problem.on_subtree(tree, nodes, leaves),
            self.posed.observed.on_subtree(tree, nodes, leaves),
        )
        parts = [(test, [coef[j] for j in nodes]) for test, coef in self.parts]
        return Rehearsed(posed, parts, self.observations)

    def per_observation(self, values: Array) -> Array:
        """Values of held-out rows, times weight, as one for each observation."""
        tests = np.concatenate([test for test, _ in self.parts])
        return self.observations.take(tests).each(values)


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
    return rehearse_posed(pose(tree, leaves, settings), leaves, learn, n_parts)


def rehearse_posed(
    posed: Posed, leaves: LeafClassifiers, learn: Learner, n_parts: int | None = None
) -> Rehearsed:
    """As `rehearse`, where it was said what decisions see and risk."""
    return Rehearsed(
        posed,
        [
            (test, learn(*posed.taken(train)).coef)
            for train, test in islice(held_out_parts(leaves), n_parts)
        ],
        leaves.data.observations(),
    )


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
        if len(train) > LEARNED_ROWS:
            order = np.random.default_rng(0).permutation(len(train))
            train = np.sort(train[order[:LEARNED_ROWS]])
        yield train, test


@dataclass(frozen=True)
class Compared:
    """What was compared on rows that nothing was learned from.

    Attributes
    ----------
    risk : dict of str to float
        Mean risk of each candidate: the decisions that were learned, the single leaf of
        the least risk, and, where the structure was learned, buying nothing.
    cost : dict of str to float
        Mean price of what each buys.
    error : dict of str to float
        Standard error of the difference to the least risk.
    informative : bool
        Whether what can be bought says more about the class than is known for nothing.
    kept : str
        The cheapest within one standard error of the least risk; "nothing" if nothing
        that can be bought is informative.
    held_out : HeldOut or None
        Risk, error and cost of what was kept, each with its standard error.
    """

    risk: dict[str, float]
    cost: dict[str, float]
    error: dict[str, float]
    informative: bool
    kept: str
    held_out: HeldOut | None = None

    def __str__(self) -> str:
        shown = ", ".join(
            f"{name} {risk:.4f} (costs {self.cost[name]:.4g})"
            for name, risk in self.risk.items()
        )
        why = "" if self.informative else "; nothing that can be bought is informative"
        return f"on rows not learned from: {shown}{why}"


def compare_with_less(
    rehearsed: Rehearsed, leaves: LeafClassifiers, settings: Settings, learn: Learner
) -> Compared | None:
    """Judge decisions beside what buys the same for all; None if nothing is held out.

    Buying nothing is compared where the structure was learned: a tree of the user's own
    is not taken away.
    """
    if not rehearsed.parts:
        return None
    posed = rehearsed.posed
    tree = posed.problem.tree
    costs = costs_of_leaves(tree, leaves)
    person = costs_of_persons(tree, leaves)
    risks: dict[str, list[Array]] = {"decisions": [], "one leaf": []}
    spent: dict[str, list[Array]] = {"decisions": [], "one leaf": []}
    persons: dict[str, list[Array]] = {"decisions": [], "one leaf": []}
    reached: dict[str, list[Rows]] = {"decisions": [], "one leaf": []}
    for test, learned in rehearsed.parts:
        judged = posed.observed.take(test)
        rest = _others(test, len(costs))
        weight, risk = posed.observed.weight, posed.observed.leaf_risk
        best = int(np.argmin(weight[rest] @ risk[rest]))
        for name, coef in (
            ("decisions", learned),
            ("one leaf", posed.observed.constant_coef(best)),
        ):
            risks[name].append(judged.risks(coef))
            leaf = tree.route(judged.margins(coef))
            share = judged.weight / judged.weight.mean()
            spent[name].append(share * costs[test, leaf])
            persons[name].append(share * person[test, leaf])
            reached[name].append(leaf)
    joined = {
        name: rehearsed.per_observation(np.concatenate(parts))
        for name, parts in risks.items()
    }
    cost = {name: float(np.concatenate(c).mean()) for name, c in spent.items()}
    informative = True
    if settings.learns_structure:
        nothing = nothing_bought(leaves, settings)
        less = rehearse(nothing, leaves, settings, learn)
        free = less.posed.observed
        joined["nothing"] = less.risks()
        costs = costs_of_leaves(nothing, leaves)[:, 0]
        cost["nothing"] = float(np.average(costs, weights=free.weight))
        known = nothing.root.sensors
        bought = [leaf.sensors for leaf in tree.leaves if leaf.sensors != known]
        informative = not bought or any(tells_more(s, known, leaves) for s in bought)
        reached["nothing"] = [
            nothing.route(free.take(test).margins(coef)) for test, coef in less.parts
        ]
        person = costs_of_persons(nothing, leaves)
        persons["nothing"] = [
            free.weight[test] / free.weight[test].mean() * person[test, leaf]
            for (test, _), leaf in zip(less.parts, reached["nothing"], strict=True)
        ]
    handed = {name: float(np.concatenate(p).mean()) for name, p in persons.items()}
    compared = _cheapest_of_the_best(
        joined, cost, handed, settings.cost_weight, informative
    )
    kept = compared.kept
    score = score_of_ways(
        nothing_bought(leaves, settings) if kept == "nothing" else tree,
        reached[kept],
        joined[kept],
        rehearsed,
        leaves,
    )
    return replace(compared, held_out=score)


def score_of_ways(
    tree: SensorTree,
    reached: list[Rows],
    risks: Array,
    rehearsed: Rehearsed,
    leaves: LeafClassifiers,
) -> HeldOut:
    """Loss, error and cost of held-out rows at the leaves they reached, and the risks.

    Parameters
    ----------
    tree : SensorTree
    reached : list of arrays
        The leaf of each row of each part that was held out.
    risks : ndarray of shape (n_observations,)
    rehearsed : Rehearsed
    leaves : LeafClassifiers
    """
    data = leaves.data
    distinct, weight = data.distinct()
    tests = [test for test, _ in rehearsed.parts]
    rows, leaf = np.concatenate(tests), np.concatenate(reached)
    share = np.concatenate([weight[test] / weight[test].mean() for test in tests])
    y = data.y[distinct][rows]
    given = answers(tree.leaves, leaves)[distinct][rows, leaf]
    lost = losses(tree.leaves, leaves)[distinct][rows, leaf]

    def mean(values: Array) -> tuple[float, float]:
        """Mean over observations, and its standard error."""
        error = float(values.std() / np.sqrt(len(values)))
        return float(values.mean()), error

    def mean_of(values: Array) -> tuple[float, float]:
        return mean(rehearsed.per_observation(share * values))

    return HeldOut(
        *mean(risks),
        *mean_of(lost),
        *mean_of(data.loss.error(y, given)),
        *mean_of(costs_of_leaves(tree, leaves)[rows, leaf]),
        len(risks),
    )


def _others(rows: Rows, n_rows: int) -> Rows:
    """All rows but these."""
    left = np.ones(n_rows, dtype=bool)
    left[rows] = False
    return np.flatnonzero(left)


def nothing_bought(leaves: LeafClassifiers, settings: Settings) -> SensorTree:
    """The tree that stops with what is free, or with what the user wants known."""
    market = leaves.data.market(settings.max_cost)
    named = named_root(settings, market)
    tree = SensorTree(Leaf(market.free() if named is None else named))
    return with_exits(tree) if leaves.data.may_refer else tree


def tells_more(
    known: frozenset[str], free: frozenset[str], leaves: LeafClassifiers
) -> bool:
    """Whether sensors say clearly more about the target than those that are free.

    Of classes, by log-loss out of fold; or, since a classifier that is too sure of itself
    may err seldom and yet have a large log-loss, very clearly by the Brier score. Errors
    alone see too little: the best of many sensors that say nothing errs less by chance.
    """
    data = leaves.data
    rows, weight = data.distinct()
    y = data.y[rows]
    share = weight / weight.mean()
    less, more = leaves.posteriors[free][rows], leaves.posteriors[known][rows]

    def leads(loss: Measure) -> float:
        """Mean lead in standard errors."""
        lead = share * (loss(less) - loss(more))
        lead = data.observations().each(lead)
        error = float(lead.std() / np.sqrt(len(lead)))
        return float(lead.mean()) / error if error else 0.0

    return any(leads(loss) > asked for loss, asked in data.task.tells(y, data.loss))


def _cheapest_of_the_best(
    risks: dict[str, Array],
    cost: dict[str, float],
    handed: dict[str, float],
    cost_weight: float,
    informative: bool,
) -> Compared:
    """The cheapest candidate whose risk is within one standard error of the least.

    Cheap is who spends little, on sensors and on persons.
    """
    risk = {name: float(r.mean()) for name, r in risks.items()}
    best = min(risk, key=lambda name: (risk[name], cost[name]))
    error = {
        name: float((r - risks[best]).std() / np.sqrt(len(r)))
        for name, r in risks.items()
    }
    good = [n for n in risk if risk[n] - risk[best] <= CLEARLY * error[n]]
    kept = "nothing"
    if informative:
        spent = {name: cost_weight * cost[name] + handed[name] for name in good}
        kept = min(good, key=lambda name: (spent[name], cost[name]))
    return Compared(risk, cost, error, informative, kept)
