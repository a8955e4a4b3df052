"""Pose the routing problem: what each decision of a tree sees, and what it risks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sensortree.constants import (
    CELL_LEVELS,
    DECISION_GLANCE_ROWS,
    DECISION_LEVEL_SHARE,
    DECISION_LEVELS,
    DECISION_READINGS,
    DECISION_SPREAD,
)
from sensortree.learning.settings import Settings
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.compiling import compile_transformer
from sensortree.leaves.rows import Continued, TrainingRows
from sensortree.leaves.standardising import moments
from sensortree.policy.decisions import (
    DecisionFeatures,
    Part,
    Posterior,
    Predicted,
    Raw,
    Transformed,
    feature_columns,
)
from sensortree.program.risk import RoutingProblem, leaf_risk, max_risk
from sensortree.sensors.transforms import Levels
from sensortree.structure.trees import with_exits
from sensortree.tree.paths import leaf_costs
from sensortree.tree.tree import Leaf, Node, SensorTree
from sensortree.types import Array, Mask, Rows

# Decision features that see the levels of a reading: the defaults.
BY_LEVEL = ("posterior+raw", "prediction+raw")

# Levels of readings, with the weight of the rows that show them; None of many levels.
Shown = list[dict[float, float] | None]


@dataclass(frozen=True, eq=False)
class Posed:
    """A routing problem on distinct training rows, and what its numbers stand for."""

    features: list[DecisionFeatures]  # what the decision function of each node looks at
    problem: RoutingProblem  # to learn from: its errors may be smoothed
    observed: RoutingProblem  # the same with the errors that were made

    def taken(self, rows: Rows) -> tuple[RoutingProblem, RoutingProblem]:
        """Both problems on some of the rows."""
        part = self.problem.take(rows)
        return part, part.with_risk(self.observed.leaf_risk[rows])


def posable(tree: SensorTree, leaves: LeafClassifiers) -> SensorTree:
    """The tree with an exit to a person wherever one may be asked."""
    return with_exits(tree) if leaves.data.may_refer else tree


def pose(tree: SensorTree, leaves: LeafClassifiers, settings: Settings) -> Posed:
    """Say what each node sees, on distinct rows, and what each leaf would cost."""
    data = leaves.data
    rows, weight = data.distinct()
    known = believed_subsets(tree, settings, data.continued)
    leaves.judge(known)
    features = {}
    for subset in dict.fromkeys(node.sensors for node in tree.nodes):
        readings, likely, prices = seen_at(subset, leaves)
        shown = partial(shown_levels, readings, weight)
        parts = decision_parts(settings, readings, data.y[rows], shown)
        features[subset] = fit_decision_features(
            parts, readings, likely, prices, weight
        )
    belief = None
    if settings.errors == "smoothed" and (data.fold >= 0).any():
        belief = data.task.trusted({s: leaves.posteriors[s] for s in known}, data)
    risks = leaf_risks(tree, leaves, settings, belief)
    return pose_with(tree, leaves, settings, features, risks)


def seen_at(
    subset: frozenset[str], leaves: LeafClassifiers
) -> tuple[Array, Array | None, Array]:
    """Readings, posterior and prices of distinct rows where a subset is known."""
    data = leaves.data
    rows, _ = data.distinct()
    judged = leaves.posteriors.get(subset)
    likely = None if judged is None else judged[rows]
    return data.features(subset)[rows], likely, data.varying_prices()[rows]


def pose_with(
    tree: SensorTree,
    leaves: LeafClassifiers,
    settings: Settings,
    features: Mapping[frozenset[str], DecisionFeatures],
    risks: tuple[Array, Array],
) -> Posed:
    """The routing problem, once features of nodes and risks of leaves are known."""
    data = leaves.data
    rows, weight = data.distinct()
    risk, observed = risks
    values = {s: features[s](*seen_at(s, leaves)) for s in features}
    problem = RoutingProblem(
        tree,
        tuple(values[node.sensors] for node in tree.nodes),
        risk[rows],
        weight,
        worst_risk(data, settings),
        len(data.classes),
    )
    bases = [features[node.sensors] for node in tree.nodes]
    return Posed(bases, problem, problem.with_risk(observed[rows]))


def believed_subsets(
    tree: SensorTree, settings: Settings, log: Continued | None = None
) -> list[frozenset[str]]:
    """Subsets whose classifiers say how likely an error is: of this tree only.

    Of all that the tree may buy too, which knows most, if a log reaches as far; what else
    was judged on the way must not matter.
    """
    vertices: list[Leaf | Node] = [*tree.leaves]
    vertices += tree.nodes if settings.decides_by_posterior else ()
    subsets = [vertex.sensors for vertex in vertices]
    if settings.errors == "smoothed" and (log is None or log.reaches(tree.sensors)):
        subsets.append(tree.sensors)
    return list(dict.fromkeys(subsets))


def judged_subsets(tree: SensorTree) -> list[frozenset[str]]:
    """Subsets that need a classifier: of leaves, of nodes, and of nothing at all."""
    vertices: list[Leaf | Node] = [*tree.leaves, *tree.nodes]
    known = [vertex.sensors for vertex in vertices]
    return list(dict.fromkeys([*known, frozenset()]))


def leaf_risks(
    tree: SensorTree, leaves: LeafClassifiers, settings: Settings, belief: Array | None
) -> tuple[Array, Array]:
    """Leaf risks (R_k) to learn from, and as observed, (n_samples, n_leaves).

    The former are the mean of what was observed and of what a belief expects, if any.
    """
    data, cost_weight = leaves.data, settings.cost_weight
    market = data.market(settings.max_cost)
    costs = leaf_costs(tree, data.sensors, data.prices)
    observed = leaf_risk(losses(tree.leaves, leaves), costs, cost_weight)
    risk = observed
    if belief is not None:
        each = [expected_loss(leaf, belief, leaves) for leaf in tree.leaves]
        expected = leaf_risk(np.stack(each, axis=1), costs, cost_weight)
        risk = 0.5 * (observed + expected)
    # No decision may lead where an example cannot pay.
    ruled_out = ~market.affordable(costs)
    worst = worst_risk(data, settings)
    if data.continued is not None:  # what was put right may be above what can be lost
        risk, observed = np.minimum(risk, worst), np.minimum(observed, worst)
    return np.where(ruled_out, worst, risk), np.where(ruled_out, worst, observed)


def costs_of_leaves(tree: SensorTree, leaves: LeafClassifiers) -> Array:
    """Price of the way to each leaf, of distinct rows, (n_rows, n_leaves)."""
    data = leaves.data
    rows, _ = data.distinct()
    prices = None if data.prices is None else data.prices[rows]
    costs = leaf_costs(tree, data.sensors, prices)
    return np.asarray(np.broadcast_to(costs, (len(rows), tree.n_leaves)))


def worst_risk(data: TrainingRows, settings: Settings) -> float:
    """R_max: everything bought at the highest prices, and the worst answer."""
    highest = data.dearest
    if highest is None:
        costs = data.sensors.costs if data.prices is None else data.prices
        highest = float(np.max(costs.sum(axis=-1)))
    return max_risk(highest, settings.cost_weight, data.largest_loss)


def losses(vertices: Sequence[Leaf | Node], leaves: LeafClassifiers) -> Array:
    """What stopping at each vertex loses, out of fold, (n_samples, n_vertices).

    By what is predicted there; at a leaf that refers, what a person costs.
    """
    data = leaves.data

    def lost(vertex: Leaf | Node) -> Array:
        if isinstance(vertex, Leaf) and vertex.refers:
            return data.handed_over()
        return leaves.lost(vertex.sensors)

    each = list(map(lost, vertices))
    return np.stack(each, axis=1) if each else np.empty((len(data.y), 0))


def expected_loss(leaf: Leaf, belief: Array, leaves: LeafClassifiers) -> Array:
    """What stopping at a leaf is expected to lose if classes are so likely, (n_samples,).

    As in `losses`.
    """
    data = leaves.data
    if leaf.refers:
        assert data.refer_costs is not None  # examples may be handed over
        return np.asarray((belief * data.refer_costs).sum(axis=1))
    if data.loss.numbers or data.loss.score is not None:
        return data.loss.expect(belief, leaves.posteriors[leaf.sensors])
    return data.loss.expected(belief, leaves.answer(leaf.sensors)[:, None])[:, 0]


def answers(vertices: Sequence[Leaf | Node], leaves: LeafClassifiers) -> NDArray[Any]:
    """Answer at each vertex, out of fold, (n_samples, n_vertices)."""
    each = [leaves.answer(vertex.sensors) for vertex in vertices]
    return (
        np.stack(each, axis=1) if each else np.empty((len(leaves.data.y), 0), np.intp)
    )


def decision_parts(
    settings: Settings, readings: Array, y: NDArray[Any], shown: Callable[[], Shown]
) -> tuple[Part, ...]:
    """Parts of the decision features; a transformer is fitted on its own copy.

    `shown` says which levels the readings have, if that is asked for.
    """
    if not readings.shape[1]:  # nothing is known, and the prior is the same for all
        return (Raw(),)
    if isinstance(settings.decision_features, str):
        parts = settings.task.parts[settings.decision_features]
        if readings.shape[1] > DECISION_READINGS and settings.decides_by_posterior:
            return tuple(part for part in parts if not isinstance(part, Raw))
        if settings.decision_features in BY_LEVEL:
            return (*parts, *level_parts(shown()))
        return parts
    fitted = clone(settings.decision_features).fit(readings, y)
    return (Transformed(compile_transformer(fitted)),)


def shown_levels(readings: Array, weight: Array) -> Shown:
    """Levels of each reading, with the weight of the rows that show them."""
    return [_levels(values, weight) for values in readings.T]


def _levels(values: Array, weight: Array) -> dict[float, float] | None:
    for n_rows in (DECISION_GLANCE_ROWS, len(values)):
        known = ~np.isnan(values[:n_rows])
        levels, at = np.unique(values[:n_rows][known], return_inverse=True)
        if len(levels) > CELL_LEVELS:
            return None
    shares = np.bincount(at, weight[known], len(levels))
    return dict(zip(levels.tolist(), shares.tolist(), strict=True))


def shown_by_all(parts: Iterable[Shown]) -> Shown:
    """The same of all rows, from some of them each, the first ones first."""
    found = iter(parts)
    shown = next(found)
    for part in found:
        for at, (ours, theirs) in enumerate(zip(shown, part, strict=True)):
            if ours is None or theirs is None or len({**ours, **theirs}) > CELL_LEVELS:
                shown[at] = None
                continue
            for level, weight in theirs.items():
                ours[level] = ours.get(level, 0.0) + weight
    return shown


def level_parts(shown: Shown) -> tuple[Part, ...]:
    """The part that sees common levels of readings that have few; none without such.

    A number may be a code, and what to do need not rise or fall with it.
    """
    found = [
        (at, level)
        for at, weights in enumerate(shown)
        if weights is not None and len(weights) >= DECISION_LEVELS
        for level in sorted(weights)
        if weights[level] >= DECISION_LEVEL_SHARE * sum(weights.values())
    ]
    if not found or len(shown) + len(found) > DECISION_READINGS:
        return ()
    columns, levels = zip(*found, strict=True)
    return (Transformed(Levels(len(shown), columns, np.array(levels))),)


def fit_decision_features(
    parts: tuple[Part, ...],
    readings: Array,
    posterior: Array | None,
    prices: Array,
    weight: Array,
) -> DecisionFeatures:
    """Learn centre, scale and missingness from training rows, NaN left out.

    A posterior that hardly varies is not stretched to the spread of the others: rows of
    each fold have one of their own, and what they differ by would be taken for a reading.
    """
    columns = feature_columns(parts, readings, posterior, prices)
    missing = np.asarray(np.isnan(columns).any(axis=0))
    return features_of(parts, *moments(columns, weight), missing, readings, posterior)


def features_of(
    parts: tuple[Part, ...],
    center: Array,
    scale: Array,
    missing: Mask,
    readings: Array,
    posterior: Array | None,
) -> DecisionFeatures:
    """The same, once moments are known; of readings and posterior one row is enough.

    Levels of one reading are stretched as all columns are. Those of several are stretched
    that many times less: together they would fit what few rows happen to show.
    """
    scale = scale.copy()
    last = parts[-1]
    if isinstance(last, Transformed) and isinstance(last.transformer, Levels):
        one = readings[:1], None if posterior is None else posterior[:1]
        start = sum(part(*one).shape[1] for part in parts[:-1])
        own = slice(start, start + last.transformer.width)
        missing = missing.copy()  # the reading itself has a column that says so
        missing[own] = False
        scale[own] *= len(set(last.transformer.readings))
    if posterior is not None and isinstance(parts[0], Posterior):
        n_classes = posterior.shape[1]
        own = slice(0, parts[0](readings[:1], posterior[:1]).shape[1])
        least = np.full(len(center[own]), DECISION_SPREAD)
        likely = center[: n_classes - 1]
        least[: n_classes - 1] = 2 * DECISION_SPREAD * np.sqrt(likely * (1 - likely))
        scale[own] = np.maximum(scale[own], least)
    if posterior is not None and isinstance(parts[0], Predicted):
        part_of_spread = DECISION_SPREAD * center[1]
        scale[:2] = np.maximum(scale[:2], part_of_spread)
    return DecisionFeatures(parts, center, scale, missing)
