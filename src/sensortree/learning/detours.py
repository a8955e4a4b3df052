"""Learn detours: where to send examples that a missing sensor blocks.

With a sensor s out of reach, an example follows the policy as far as that leads without
s. From there it could take the best leaf that is left to it, or stop: knowing nothing, if
s is bought first. A detour is a tree without s for exactly these examples, whose decisions
are learned as all others are, with what they know already for nothing. It is taken if its
risk on rows that it was not learned from is lower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from sensortree.constants import (
    DETOUR_GLANCED_ROWS,
    DETOUR_LEAVES,
    DETOUR_MIN_ROWS,
    DETOUR_REST_LEAVES,
    DETOUR_SENSORS,
    DETOUR_SIZE,
    DETOUR_SIZE_SMALL,
    DETOUR_WORK_QUICK,
    DETOUR_WORK_SHARE,
    GLANCED_FOLDS,
)
from sensortree.learning.held_out import held_out_parts
from sensortree.learning.joint import Learner
from sensortree.learning.pose import (
    Posed,
    answers,
    believed_subsets,
    costs_of_leaves,
    judged_subsets,
    losses,
    posable,
    pose,
    worst_risk,
)
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.compiling import compile_classifier
from sensortree.leaves.fitting import is_linear
from sensortree.policy.about import Outage, OutageReport
from sensortree.policy.decisions import DecisionFunction
from sensortree.policy.flow import (
    NOWHERE,
    START,
    Detour,
    Detours,
    measure_flow,
    turning_node,
)
from sensortree.policy.policy import Policy
from sensortree.policy.walk import best_place
from sensortree.program.risk import RoutingProblem
from sensortree.sensors.market import within
from sensortree.structure.search import run_search
from sensortree.structure.trees import prune
from sensortree.tree.paths import Path, path_cost, vertex_paths
from sensortree.tree.tree import Leaf, Node, SensorTree
from sensortree.types import Array, Rows


@dataclass(frozen=True, eq=False)
class BlockedRows:
    """Training rows that a missing sensor blocks on their way through a policy."""

    leaves: LeafClassifiers  # of the policy, or what stands in for them
    policy: Policy
    sensor: str
    rows: Rows  # places among the distinct rows, (n_rows,)
    leaf: Rows  # where each would go with the sensor, (n_rows,)
    node: Rows  # where each turns, or `START`, (n_rows,)
    last: int  # the last node that all who may turn have come by, or `START`

    @property
    def examples(self) -> Rows:
        """Where these rows stand in the training rows."""
        return self.leaves.data.distinct()[0][self.rows]

    @property
    def weight(self) -> Array:
        """How much each counts."""
        return self.leaves.data.distinct()[1][self.rows]

    def seen(self, read: Callable[..., Any], vertices: Sequence[Leaf | Node]) -> Any:
        """Their `answers` or `losses` at vertices, out of fold, (n_rows, n_vertices)."""
        self.leaves.judge(vertex.sensors for vertex in vertices)
        return read(vertices, self.leaves)[self.examples]

    def fares(self, paths: Iterable[Path]) -> tuple[Array, Array]:
        """What each pays for a path, (n_rows, n_paths), and has paid, (n_rows, 1)."""
        policy, prices, paths = self.policy, self.leaves.data.prices, tuple(paths)
        more = np.empty((len(self.rows), len(paths)))
        spent = np.empty((len(self.rows), 1))
        for node in np.unique(self.node):
            here = self.node == node
            own = None if prices is None else prices[self.examples[here]]
            way = () if node == START else policy.places[~node].path
            known = way[-1] if way else frozenset()
            for k, path in enumerate(paths):
                more[here, k] = path_cost(path, policy.sensors, own, known)
            spent[here, 0] = path_cost(way, policy.sensors, own)
        return more, spent


@dataclass(frozen=True, eq=False)
class Tried:
    """A tree for blocked rows, and its risk where it was not learned from.

    The problem is `posed` for these rows only, with what they know for nothing. Risk is
    that of decisions (`decided`), or of one leaf for all (`single`): few rows say which,
    but not who should go where.
    """

    posed: Posed
    decided: float
    single: float

    @property
    def risk(self) -> float:
        """The lower of the two."""
        return min(self.decided, self.single)

    def learned(self, learn: Learner) -> list[Array]:
        """Coefficients of what has the lower risk, learned from all of these rows."""
        if self.single <= self.decided:
            return self.posed.observed.constant_coef(self.best_leaf)
        return learn(self.posed.problem, self.posed.observed).coef

    @property
    def best_leaf(self) -> int:
        """The leaf of the least mean risk."""
        return int(np.argmin(self.posed.observed.constant_risk()))

    def reached(self, learn: Learner) -> SensorTree:
        """What is left of the tree without leaves that rows go to by no decisions."""
        problem = self.posed.problem
        visits = problem.visits(learn(problem, self.posed.observed).coef)
        visits[self.best_leaf] += 1
        return prune(problem.tree, visits)[0]


def blocked_by(
    sensor: str, policy: Policy, leaves: LeafClassifiers, leaf: Rows
) -> BlockedRows:
    """The rows that a missing sensor blocks, of those that go to some leaves."""
    tree = policy.tree
    turns = np.array([turning_node(tree, k, sensor) for k in range(tree.n_leaves)])
    rows = np.flatnonzero(turns[leaf] != NOWHERE)
    passed = np.ones(tree.n_nodes, dtype=bool)
    for k in np.flatnonzero(turns != NOWHERE):
        passed &= tree.path_signs[k] != 0
        passed[turns[k] + 1 :] = False
    common = np.flatnonzero(passed)
    last = int(common[-1]) if len(common) else START
    there = leaf[rows]
    return BlockedRows(leaves, policy, sensor, rows, there, turns[there], last)


def learn_detours(
    prepared: Prepared, policy: Policy, leaf: Rows, settings: Settings, learn: Learner
) -> tuple[Detours | None, OutageReport]:
    """Detours around the sensors of a policy that are better than to stop short.

    `leaf` is where each distinct training row goes. With ``outages="auto"`` the work is
    bounded.
    """
    leaves, sensors = prepared.leaves, policy.sensors
    bought = sensors.in_order(policy.tree.sensors)
    blocked = {s: blocked_by(s, policy, leaves, leaf) for s in bought}
    blocked = {s: rows for s, rows in blocked.items() if len(rows.rows)}
    outages = {s: outage_without(rows) for s, rows in blocked.items()}
    missed = {s: o.share * (o.turning - o.usual) for s, o in outages.items()}
    bounded = settings.outages == "auto"
    missed = missed if (leaves.data.fold >= 0).any() else {}  # nothing tells otherwise
    left = work_allowed(policy, leaves) if bounded else np.inf
    glance = at_a_glance(prepared, policy, leaf) if settings.learns_structure else None
    known = frozenset(policy.classifiers)
    around: dict[str, Detour] = {}
    worst_first = sorted(missed, key=lambda s: -missed[s])
    for sensor in worst_first[: DETOUR_SENSORS if bounded else None]:
        here = blocked[sensor]
        if prepared.progress.stopped or len(here.rows) < DETOUR_MIN_ROWS:
            continue
        tree = tree_without(here, glance, prepared, settings, learn)
        tree, more = within_work(tree, left, known, leaves, settings)
        left, known = left - work_on(more, leaves), known | more
        tried = try_tree(tree, here, settings, learn)
        if tried is not None:
            outages[sensor] = replace(outages[sensor], detour=tried.risk)
            if outages[sensor].taken:
                around[sensor] = settle(tried, here, learn)
    report = OutageReport(outages)
    if not around:
        return None, report
    ways = {sensor: around[sensor] for sensor in sensors.in_order(around)}
    needed = [subset for way in ways.values() for subset in judged_subsets(way.tree)]
    fitted = leaves.fit([s for s in needed if s not in policy.classifiers])
    return Detours(ways, {s: compile_classifier(f) for s, f in fitted.items()}), report


def outage_without(turned: BlockedRows) -> Outage:
    """What blocked rows risk with the sensor, and on what is left."""
    policy, tree, weight = turned.policy, turned.policy.tree, turned.weight
    at_leaf, at_node = (turned.seen(losses, at) for at in (tree.leaves, tree.nodes))
    more, spent = turned.fares(policy.paths[: tree.n_leaves])
    each = np.arange(len(weight))
    usual = at_leaf[each, turned.leaf] + policy.cost_weight * more[each, turned.leaf]
    reachable = np.array([turned.sensor not in end.sensors for end in tree.leaves])
    reachable = np.broadcast_to(reachable, more.shape)
    if policy.max_cost is not None:
        reachable = reachable & within(spent + more, policy.max_cost)
    start = Leaf(frozenset(), refers=False)
    risk = turned.seen(losses, [start])[:, 0]  # of who turns at the start
    for node in np.unique(turned.node[turned.node != START]):
        here = np.flatnonzero(turned.node == node)
        best = best_place(policy, int(node), more[here], reachable[here])
        reached = at_leaf[here, best] + policy.cost_weight * more[here, best]
        risk[here] = np.where(best < 0, at_node[here, node], reached)
    return Outage(
        float(weight.sum() / turned.leaves.data.weight.sum()),
        float(np.average(usual, weights=weight)),
        float(np.average(risk, weights=weight)),
    )


def work_allowed(policy: Policy, leaves: LeafClassifiers) -> float:
    """Work on new classifiers that outages="auto" allows.

    It depends on the policy alone, not on what else was judged on the way to it.
    """
    own = work_on(policy.classifiers, leaves)
    quick = DETOUR_WORK_QUICK if is_linear(leaves.classifier) else 0.0
    size = max(DETOUR_SIZE * own, float(DETOUR_SIZE_SMALL * len(leaves.data.y)))
    return min(max(DETOUR_WORK_SHARE * own, quick), size)


def work_on(subsets: Iterable[frozenset[str]], leaves: LeafClassifiers) -> float:
    """Numbers that classifiers of subsets read: rows times terms times outputs."""
    data, total = leaves.data, 0
    for subset in subsets:
        columns = sum(data.blocks[data.sensors.index(s)].shape[1] for s in subset)
        total += columns * (columns + 3) // 2
    n_outputs = data.task.n_trees(len(data.classes))
    return float(total * n_outputs * len(data.y))


def within_work(
    tree: SensorTree,
    most: float,
    known: frozenset[frozenset[str]],
    leaves: LeafClassifiers,
    settings: Settings,
) -> tuple[SensorTree, frozenset[frozenset[str]]]:
    """What is left of a tree if leaves that take most work are cut until it is little.

    And the subsets that it needs a new classifier of.
    """
    while True:
        needed = believed_subsets(tree, settings, leaves.data.continued)
        new = frozenset([*needed, *judged_subsets(tree)]) - known
        if tree.n_leaves == 1 or work_on(new, leaves) <= most:
            return tree, new
        own = [work_on({leaf.sensors} - known, leaves) for leaf in tree.leaves]
        kept = np.ones(tree.n_leaves, dtype=np.intp)
        kept[int(np.argmax(own))] = 0
        tree, _ = prune(tree, kept)


def tree_without(
    turned: BlockedRows,
    glance: tuple[LeafClassifiers, Rows] | None,
    prepared: Prepared,
    settings: Settings,
    learn: Learner,
) -> SensorTree:
    """The tree that promises most to blocked rows.

    Where a screen stands in for the classifiers it says which, and which leaves nobody
    would go to; else what is left of the tree is tried first.
    """
    trees = list(trees_without(turned, prepared, settings))
    if glance is None:
        return trees[0]
    seen = blocked_by(turned.sensor, turned.policy, *glance)
    n_parts = GLANCED_FOLDS if len(seen.rows) >= DETOUR_GLANCED_ROWS else None
    tried = [try_tree(tree, seen, settings, learn, n_parts) for tree in trees]
    risks = [np.inf if each is None else each.risk for each in tried]
    best = tried[int(np.argmin(risks))]
    return trees[0] if best is None else best.reached(learn)


def at_a_glance(
    prepared: Prepared, policy: Policy, leaf: Rows
) -> tuple[LeafClassifiers, Rows] | None:
    """What a screen says of new subsets, and where its rows go; None if it is not fair.

    Of what the policy knows its own classifiers say: it is by them that rows are blocked.
    """
    search, own = prepared.search, prepared.leaves
    if search.subsets.stand_ins is None:
        return None
    posteriors = {s: own.posteriors[s][search.rows] for s in policy.classifiers}
    quick = replace(search.subsets.stand_ins, posteriors=posteriors)
    first, _ = own.data.distinct()
    every = np.repeat(leaf, np.diff(np.r_[first, len(own.data.y)]))
    return quick, every[search.rows][quick.data.distinct()[0]]


def trees_without(
    turned: BlockedRows, prepared: Prepared, settings: Settings
) -> Iterator[SensorTree]:
    """What is left of the tree without a sensor, and a chain of all other sensors."""
    tree, sensors = turned.policy.tree, turned.policy.sensors
    gone = frozenset(n for n in sensors.names if turned.sensor in sensors.closure(n))
    top = tree.root if turned.last == START else tree.nodes[turned.last]
    left = SensorTree(reduced(top, gone))
    if left.n_leaves <= DETOUR_REST_LEAVES or not settings.learns_structure:
        yield left
    if settings.learns_structure:
        search = replace(
            prepared.search,
            subsets=prepared.search.subsets.without(gone),
            n_leaves=DETOUR_LEAVES,
            n_exact=0,
            progress=prepared.progress.part(),
        )
        root = frozenset(map(sensors.index, top.sensors - gone))
        chain = run_search(search, "chain", settings.cost_weight, root)[0]
        yield posable(chain, prepared.leaves)


def reduced(vertex: Leaf | Node, gone: frozenset[str]) -> Leaf | Node:
    """A vertex without some sensors; a decision between the same ways is none."""
    known = vertex.sensors - gone
    if isinstance(vertex, Leaf):
        return Leaf(known, vertex.refers)
    sides = reduced(vertex.negative, gone), reduced(vertex.positive, gone)
    if sides[0] == sides[1]:
        return sides[0]
    for one, other in (sides, sides[::-1]):
        if isinstance(other, Leaf) or other.sensors != known:
            continue
        if one in (other.negative, other.positive):
            return other
    return Node(known, *sides)


def try_tree(
    tree: SensorTree,
    turned: BlockedRows,
    settings: Settings,
    learn: Learner,
    n_parts: int | None = None,
) -> Tried | None:
    """Judge a tree by decisions that are learned without each fold; None without folds."""
    posed = pose_detour(tree, turned, settings)
    place = np.full(len(turned.leaves.data.distinct()[0]), -1)
    place[turned.rows] = np.arange(len(turned.rows))
    risk = np.full((len(turned.rows), 2), np.nan)
    for parts in islice(held_out_parts(turned.leaves), n_parts):
        train, test = (place[part][place[part] >= 0] for part in parts)
        if len(train) and len(test):
            (problem, seen), judged = posed.taken(train), posed.observed.take(test)
            leaf = judged.route(learn(problem, seen).coef)
            single = int(np.argmin(seen.constant_risk()))
            risk[test, 0] = judged.leaf_risk[np.arange(len(leaf)), leaf]
            risk[test, 1] = judged.leaf_risk[:, single]
    judged_rows = ~np.isnan(risk[:, 0])
    if not judged_rows.any():
        return None
    weight = turned.weight[judged_rows]
    decided, alone = np.average(risk[judged_rows], axis=0, weights=weight)
    return Tried(posed, float(decided), float(alone))


def pose_detour(tree: SensorTree, turned: BlockedRows, settings: Settings) -> Posed:
    """The routing problem of blocked rows: they pay for what they lack."""
    leaves, policy = turned.leaves, turned.policy
    posed = pose(tree, leaves, replace(settings, max_cost=None))
    more, spent = turned.fares(vertex_paths(tree)[1])
    saved = costs_of_leaves(tree, leaves)[turned.rows] - more
    worst = worst_risk(leaves.data, settings)

    def own(part: RoutingProblem) -> RoutingProblem:
        risk = part.leaf_risk - settings.cost_weight * saved
        if policy.max_cost is not None:
            risk = np.where(within(spent + more, policy.max_cost), risk, worst)
        return part.with_risk(risk)

    return Posed(posed.features, *map(own, posed.taken(turned.rows)))


def settle(tried: Tried, turned: BlockedRows, learn: Learner) -> Detour:
    """Learn the decisions of a detour from all blocked rows."""
    problem, data = tried.posed.problem, turned.leaves.data
    coef = tried.learned(learn)
    tree, nodes = prune(problem.tree, problem.visits(coef))
    flow = measure_flow(
        tree,
        problem.margins(coef)[:, nodes],
        turned.seen(answers, tree.leaves),
        turned.seen(answers, tree.nodes),
        turned.seen(losses, tree.leaves),
        turned.seen(losses, tree.nodes),
        data.y[turned.examples],
        len(data.classes),
        problem.weight,
    )
    usual = turned.seen(losses, turned.policy.tree.leaves)
    kept = usual[np.arange(len(usual)), turned.leaf]
    return Detour(
        tree,
        tuple(DecisionFunction(tried.posed.features[j], coef[j]) for j in nodes),
        flow,
        float(np.average(kept, weights=problem.weight)),
    )
