"""Learn detours: where examples are best sent that a missing sensor holds up.

With a sensor s out of reach, an example follows the policy as far as that leads without
s. From there it could take the best leaf that is left to it, or stop: knowing nothing, if
s is bought first. A detour is a tree without s for exactly these examples, whose decisions
are learned as all others are, with what they know already for nothing. It is taken if its
risk on rows that it was not learned from is lower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.learning.held_out import held_out_parts
from sensortree.learning.learned import Learner
from sensortree.learning.pose import (
    Posed,
    answers,
    believed_subsets,
    costs_of_leaves,
    losses,
    pose,
    worst_risk,
)
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.compiling import compile_classifier
from sensortree.leaves.fitting import is_linear
from sensortree.leaves.rows import TrainingRows
from sensortree.policy.decisions import DecisionFunction
from sensortree.policy.detours import NOWHERE, START, Detour, Detours, turning_node
from sensortree.policy.flow import measure_flow
from sensortree.policy.outages import Outage, OutageReport
from sensortree.policy.policy import Policy
from sensortree.policy.walk import best_place
from sensortree.program.routing import RoutingProblem
from sensortree.sensors.market import within
from sensortree.structure import prune, with_exits
from sensortree.structure.search import run_search
from sensortree.tree.paths import Path, path_cost, vertex_paths
from sensortree.tree.tree import Leaf, Node, SensorTree
from sensortree.types import Array, Rows

# Examples that must be held up before a detour is learned for them.
MIN_ROWS = 25
# Leaves of a detour that is searched for, and of a tree of which the rest is tried.
CHAIN, REST = 8, 16
# Folds that are held out where a screen says which tree to try, if so many rows are.
GLANCES, MANY_ROWS = 2, 250
# With outages="auto": sensors that detours are learned for; the work on new classifiers,
# as a share of that on the policy's own, or this much where it is quickly done; and their
# coefficients, as a multiple of the policy's own, or this many.
SENSORS, SHARE, QUICK = 5, 0.35, 5e6
SIZE, SMALL = 4, 20_000


@dataclass(frozen=True, eq=False)
class Travellers:
    """Training rows on their way through a policy.

    Attributes
    ----------
    leaves : LeafClassifiers
        Judges of the rows: those of the policy, or what stands in for them.
    policy : Policy
    leaf : ndarray of shape (n_rows,)
        Where each distinct row goes.
    """

    leaves: LeafClassifiers
    policy: Policy
    leaf: Rows

    @property
    def data(self) -> TrainingRows:
        """The rows."""
        return self.leaves.data

    def held_up(self, sensor: str) -> HeldUp:
        """Who turns where without a sensor."""
        tree, leaf = self.policy.tree, self.leaf
        turns = np.array([turning_node(tree, k, sensor) for k in range(tree.n_leaves)])
        rows = np.flatnonzero(turns[leaf] != NOWHERE)
        passed = np.ones(tree.n_nodes, dtype=bool)
        for k in np.flatnonzero(turns != NOWHERE):
            passed &= tree.path_signs[k] != 0
            passed[turns[k] + 1 :] = False
        common = np.flatnonzero(passed)
        last = int(common[-1]) if len(common) else START
        return HeldUp(self, sensor, rows, turns[leaf[rows]], last)


@dataclass(frozen=True, eq=False)
class HeldUp:
    """Training rows that a missing sensor holds up.

    Attributes
    ----------
    travellers : Travellers
    sensor : str
    rows : ndarray of shape (n_rows,)
        Their places among the distinct rows.
    node : ndarray of shape (n_rows,)
        The node where each turns, or `START`.
    last : int
        The last node that all who may turn have come by, or `START`.
    """

    travellers: Travellers
    sensor: str
    rows: Rows
    node: Rows
    last: int

    @property
    def examples(self) -> Rows:
        """Where these rows stand in the training rows."""
        return self.travellers.data.distinct()[0][self.rows]

    @property
    def weight(self) -> Array:
        """How much each counts."""
        return self.travellers.data.distinct()[1][self.rows]

    def answers(self, vertices: Sequence[Leaf | Node]) -> NDArray[Any]:
        """Answers at some vertices, out of fold, (n_rows, n_vertices)."""
        self.travellers.leaves.judge(vertex.sensors for vertex in vertices)
        return answers(vertices, self.travellers.leaves)[self.examples]

    def losses(self, vertices: Sequence[Leaf | Node]) -> Array:
        """What predictions there lose, out of fold, (n_rows, n_vertices)."""
        self.travellers.leaves.judge(vertex.sensors for vertex in vertices)
        return losses(vertices, self.travellers.leaves)[self.examples]

    def fares(self, paths: Iterable[Path]) -> tuple[Array, Array]:
        """What each pays for a path, (n_rows, n_paths), and has paid, (n_rows, 1)."""
        policy, prices, paths = self.policy, self.travellers.data.prices, tuple(paths)
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

    @property
    def policy(self) -> Policy:
        """What they were following."""
        return self.travellers.policy


@dataclass(frozen=True, eq=False)
class Tried:
    """A tree for rows that are held up, and its risk where it was not learned from.

    Attributes
    ----------
    posed : Posed
        Of these rows only, with what they know for nothing.
    decided : float
        Risk of decisions.
    single : float
        Risk of one leaf for all: few rows say which, but not who should go where.
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
        coef = learn(problem, self.posed.observed).coef
        leaf = problem.tree.route(problem.margins(coef))
        visits = np.bincount(leaf, minlength=problem.tree.n_leaves)
        visits[self.best_leaf] += 1
        return prune(problem.tree, visits)[0]


def learn_detours(
    prepared: Prepared, policy: Policy, leaf: Rows, settings: Settings, learn: Learner
) -> tuple[Detours | None, OutageReport]:
    """Detours around the sensors of a policy that are better than to stop short.

    Parameters
    ----------
    prepared : Prepared
    policy : Policy
    leaf : ndarray of shape (n_rows,)
        Where each distinct training row goes.
    settings : Settings
        With ``outages="auto"`` the work is bounded.
    learn : Learner
    """
    leaves, sensors = prepared.leaves, policy.sensors
    travellers = Travellers(leaves, policy, leaf)
    held = {s: travellers.held_up(s) for s in sensors.in_order(policy.tree.sensors)}
    held = {s: turned for s, turned in held.items() if len(turned.rows)}
    outages = {s: outage_without(turned) for s, turned in held.items()}
    missed = {s: o.share * (o.turning - o.usual) for s, o in outages.items()}
    bounded = settings.outages == "auto"
    missed = missed if (leaves.data.fold >= 0).any() else {}  # nothing tells otherwise
    left = work_allowed(policy, leaves) if bounded else np.inf
    glanced = at_a_glance(travellers, prepared) if settings.learns_structure else None
    known = frozenset(policy.classifiers)
    around: dict[str, Detour] = {}
    for sensor in sorted(missed, key=lambda s: -missed[s])[
        : SENSORS if bounded else None
    ]:
        if prepared.progress.stopped or len(held[sensor].rows) < MIN_ROWS:
            continue
        tree = tree_without(held[sensor], glanced, prepared, settings, learn)
        tree = within_work(tree, left, known, leaves, settings)
        more = judged_for(tree, leaves, settings) - known
        left, known = left - work_on(more, leaves), known | more
        tried = try_tree(tree, held[sensor], settings, learn)
        if tried is not None:
            outages[sensor] = replace(outages[sensor], detour=tried.risk)
            if outages[sensor].taken:
                around[sensor] = settle(tried, held[sensor], learn)
    report = OutageReport(outages)
    if not around:
        return None, report
    ways = {sensor: around[sensor] for sensor in sensors.in_order(around)}
    needed = [vertex.sensors for way in ways.values() for vertex in vertices(way.tree)]
    fitted = leaves.fit([s for s in needed if s not in policy.classifiers])
    return Detours(ways, {s: compile_classifier(f) for s, f in fitted.items()}), report


def vertices(tree: SensorTree) -> list[Leaf | Node]:
    """Leaves and nodes of a tree."""
    return [*tree.leaves, *tree.nodes]


def outage_without(turned: HeldUp) -> Outage:
    """What the rows that are held up risk with the sensor, and on what is left."""
    policy, tree, weight = turned.policy, turned.policy.tree, turned.weight
    at_leaf, at_node = turned.losses(tree.leaves), turned.losses(tree.nodes)
    more, spent = turned.fares(policy.paths[: tree.n_leaves])
    each = np.arange(len(weight))
    leaf = turned.travellers.leaf[turned.rows]
    usual = at_leaf[each, leaf] + policy.cost_weight * more[each, leaf]
    reachable = np.array([turned.sensor not in end.sensors for end in tree.leaves])
    reachable = np.broadcast_to(reachable, more.shape)
    if policy.max_cost is not None:
        reachable = reachable & within(spent + more, policy.max_cost)
    start = Leaf(frozenset(), refers=False)
    risk = turned.losses([start])[:, 0]  # of who turns at the start
    for node in np.unique(turned.node[turned.node != START]):
        here = np.flatnonzero(turned.node == node)
        best = best_place(policy, int(node), more[here], reachable[here])
        reached = at_leaf[here, best] + policy.cost_weight * more[here, best]
        risk[here] = np.where(best < 0, at_node[here, node], reached)
    return Outage(
        float(weight.sum() / turned.travellers.data.weight.sum()),
        float(np.average(usual, weights=weight)),
        float(np.average(risk, weights=weight)),
    )


def work_allowed(policy: Policy, leaves: LeafClassifiers) -> float:
    """Work on new classifiers that outages="auto" allows.

    It depends on the policy alone, not on what else was judged on the way to it.
    """
    own = work_on(policy.classifiers, leaves)
    time = max(SHARE * own, QUICK if is_linear(leaves.classifier) else 0.0)
    return min(time, max(SIZE * own, float(SMALL * len(leaves.data.y))))


def work_on(subsets: Iterable[frozenset[str]], leaves: LeafClassifiers) -> float:
    """Numbers that classifiers of subsets read: rows times terms times outputs."""
    data, total = leaves.data, 0
    width = dict(
        zip(data.sensors.names, (b.shape[1] for b in data.blocks), strict=True)
    )
    for subset in subsets:
        columns = sum(map(width.__getitem__, subset))
        total += columns * (columns + 3) // 2
    n_outputs = data.task.n_trees(len(data.classes))
    return float(total * n_outputs * len(data.y))


def judged_for(
    tree: SensorTree, leaves: LeafClassifiers, settings: Settings
) -> frozenset[frozenset[str]]:
    """Subsets that a tree needs a classifier of."""
    needed = believed_subsets(tree, settings, leaves.data.continued)
    return frozenset(needed) | {vertex.sensors for vertex in vertices(tree)}


def within_work(
    tree: SensorTree,
    most: float,
    known: frozenset[frozenset[str]],
    leaves: LeafClassifiers,
    settings: Settings,
) -> SensorTree:
    """What is left of a tree if leaves that take most work are cut until it is little."""
    while tree.n_leaves > 1:
        new = judged_for(tree, leaves, settings) - known
        if work_on(new, leaves) <= most:
            break
        own = [work_on({leaf.sensors} - known, leaves) for leaf in tree.leaves]
        kept = np.ones(tree.n_leaves, dtype=np.intp)
        kept[int(np.argmax(own))] = 0
        tree, _ = prune(tree, kept)
    return tree


def tree_without(
    turned: HeldUp,
    glanced: Travellers | None,
    prepared: Prepared,
    settings: Settings,
    learn: Learner,
) -> SensorTree:
    """The tree that promises most to rows that are held up.

    Where a screen stands in for the classifiers it says which, and which leaves nobody
    would go to; else what is left of the tree is tried first.
    """
    trees = list(trees_without(turned, prepared, settings))
    if glanced is None:
        return trees[0]
    seen = glanced.held_up(turned.sensor)
    n_parts = GLANCES if len(seen.rows) >= MANY_ROWS else None
    tried = [try_tree(tree, seen, settings, learn, n_parts) for tree in trees]
    risks = [np.inf if each is None else each.risk for each in tried]
    best = tried[int(np.argmin(risks))]
    return trees[0] if best is None else best.reached(learn)


def at_a_glance(travellers: Travellers, prepared: Prepared) -> Travellers | None:
    """The same rows by what a screen says of new subsets; None if that is not fair.

    Of what the policy knows its own classifiers say: it is by them that rows are held up.
    """
    search = prepared.search
    if search.subsets.stand_ins is None:
        return None
    own = travellers.leaves.posteriors
    said = {
        subset: own[subset][search.rows] for subset in travellers.policy.classifiers
    }
    quick = replace(search.subsets.stand_ins, posteriors=said)
    first, _ = travellers.data.distinct()
    leaf = np.repeat(travellers.leaf, np.diff(np.r_[first, len(travellers.data.y)]))
    seen = leaf[search.rows][quick.data.distinct()[0]]
    return Travellers(quick, travellers.policy, seen)


def trees_without(
    turned: HeldUp, prepared: Prepared, settings: Settings
) -> Iterator[SensorTree]:
    """What is left of the tree without a sensor, and a chain of all other sensors."""
    tree, sensors = turned.policy.tree, turned.policy.sensors
    gone = frozenset(n for n in sensors.names if turned.sensor in sensors.closure(n))
    top = tree.root if turned.last == START else tree.nodes[turned.last]
    left = SensorTree(reduced(top, gone))
    if left.n_leaves <= REST or not settings.learns_structure:
        yield left
    if settings.learns_structure:
        search = replace(
            prepared.search.without(gone),
            n_leaves=CHAIN,
            n_exact=0,
            progress=prepared.progress.part(),
        )
        root = frozenset(map(sensors.index, top.sensors - gone))
        chain = run_search(search, "chain", settings.cost_weight, root)[0]
        yield with_exits(chain) if prepared.leaves.data.may_refer else chain


def reduced(vertex: Leaf | Node, gone: frozenset[str]) -> Leaf | Node:
    """A vertex without some sensors; a decision between the same ways is none."""
    known = vertex.sensors - gone
    if isinstance(vertex, Leaf):
        return Leaf(known, vertex.refers)
    sides = reduced(vertex.negative, gone), reduced(vertex.positive, gone)
    if sides[0] == sides[1]:
        return sides[0]
    for one, other in (sides, sides[::-1]):
        if not isinstance(other, Node) or other.sensors != known:
            continue
        if one in (other.negative, other.positive):
            return other
    return Node(known, *sides)


def try_tree(
    tree: SensorTree,
    turned: HeldUp,
    settings: Settings,
    learn: Learner,
    n_parts: int | None = None,
) -> Tried | None:
    """Judge a tree by decisions that are learned without each fold; None without folds."""
    posed, leaves = pose_detour(tree, turned, settings), turned.travellers.leaves
    place = np.full(len(turned.travellers.leaf), -1)
    place[turned.rows] = np.arange(len(turned.rows))
    risk = np.full((len(turned.rows), 2), np.nan)
    for parts in islice(held_out_parts(leaves), n_parts):
        train, test = (place[part][place[part] >= 0] for part in parts)
        if len(train) and len(test):
            (problem, seen), judged = posed.taken(train), posed.observed.take(test)
            coef = learn(problem, seen).coef
            leaf = tree.route(judged.margins(coef))
            single = int(np.argmin(seen.constant_risk()))
            risk[test, 0] = judged.leaf_risk[np.arange(len(leaf)), leaf]
            risk[test, 1] = judged.leaf_risk[:, single]
    judged_rows = ~np.isnan(risk[:, 0])
    if not judged_rows.any():
        return None
    weight = turned.weight[judged_rows]
    decided, alone = np.average(risk[judged_rows], axis=0, weights=weight)
    return Tried(posed, float(decided), float(alone))


def pose_detour(tree: SensorTree, turned: HeldUp, settings: Settings) -> Posed:
    """The routing problem of rows that are held up: they pay for what they lack."""
    leaves, policy = turned.travellers.leaves, turned.policy
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


def settle(tried: Tried, turned: HeldUp, learn: Learner) -> Detour:
    """Learn the decisions of a detour from all rows that are held up."""
    problem, data = tried.posed.problem, turned.travellers.data
    coef = tried.learned(learn)
    margins = problem.margins(coef)
    visits = np.bincount(problem.tree.route(margins), minlength=problem.tree.n_leaves)
    tree, nodes = prune(problem.tree, visits)
    flow = measure_flow(
        tree,
        margins[:, nodes],
        turned.answers(tree.leaves),
        turned.answers(tree.nodes),
        turned.losses(tree.leaves),
        turned.losses(tree.nodes),
        data.y[turned.examples],
        len(data.classes),
        problem.weight,
    )
    usual = turned.losses(turned.policy.tree.leaves)
    leaf = turned.travellers.leaf[turned.rows]
    kept = usual[np.arange(len(leaf)), leaf]
    return Detour(
        tree,
        tuple(DecisionFunction(tried.posed.features[j], coef[j]) for j in nodes),
        flow,
        float(np.average(kept, weights=problem.weight)),
    )
