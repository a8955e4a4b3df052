"""Learning the structure: rows to search on, the searches by name, and their report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.constants import (
    ELIMINATED_PART,
    ELIMINATED_SINGLY,
    EPS,
    SEARCH_LEAVES,
    SEARCH_LEAVES_SLOW,
    SEARCH_ROWS,
    TINY,
)
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.coding import Coded, Coding, side_by_side
from sensortree.leaves.fitting import is_linear
from sensortree.leaves.sklearn_private import boosted_rounds
from sensortree.progress import TextProgress
from sensortree.sensors.sensor import SensorSet
from sensortree.structure.algorithm1 import (
    Growth,
    Search,
    Subset,
    forward_chain,
    greedy_subsets,
)
from sensortree.structure.branching import GrowthData, Vertex, grow_branches
from sensortree.structure.losses import SubsetLosses
from sensortree.structure.planning import grow_plan, plan_for
from sensortree.structure.trees import chain_tree, cluster_subsets
from sensortree.text import PlainForm
from sensortree.tree.tree import Leaf, Node, SensorTree
from sensortree.types import Array, Rows

# A tree, and the steps of the search that found it.
Grown = tuple[SensorTree, list[Growth]]
# Boosted trees for a target and so many rows and columns, not fitted yet.
Trees = Callable[[NDArray[Any], tuple[int, ...], Coding], Any]


@dataclass(frozen=True, eq=False)
class StructureSearch:
    """Where the searches look, how far they may go, and when they must end."""

    subsets: SubsetLosses  # searches share what they worked out
    rows: Rows  # the training rows that are looked at
    n_leaves: int | str  # leaves at most; "auto" leaves that to each search
    # Extensions compared with their own classifier at each step; None for all, 0 if the
    # screen's word is good enough.
    n_exact: int | None
    progress: TextProgress  # is told of each step, and may say stop

    def most_leaves(self, name: str) -> int:
        """Leaves that a search may have; fewer where each takes long to learn."""
        if not isinstance(self.n_leaves, str):
            return self.n_leaves
        most, quick = SEARCH_LEAVES[name], is_linear(self.subsets.leaves.classifier)
        return most if quick else min(most, SEARCH_LEAVES_SLOW)

    def out_of_time(self) -> bool:
        """Tell of a step; whether the user's time is over, or a callback says stop."""
        if not self.progress.stopped:
            self.progress.step(
                "structure",
                f"{self.subsets.n_screened} subsets screened, "
                f"{len(self.subsets.leaves.posteriors)} with their classifier",
            )
        return self.progress.stopped is not None

    def comparison(self, cost_weight: float) -> Search:
        """How extensions are compared when a unit of cost is worth this much error."""
        subsets = self.subsets

        def priced(errors: Array, compared: Sequence[Subset]) -> Array:
            if not cost_weight:
                return errors
            cost = [np.broadcast_to(subsets.cost(s), len(errors)) for s in compared]
            return errors + cost_weight * np.column_stack(cost)

        # Where a masked booster screens, its word is good enough, unless all are trained.
        trusted = self.n_exact == 0 or (subsets.masked and self.n_exact is not None)
        exact = subsets.screen if trusted else subsets.exact
        return Search(
            len(subsets.names),
            lambda compared: priced(exact(compared), compared),
            lambda compared: priced(subsets.screen(compared), compared),
            None if self.n_exact is None else max(self.n_exact, 1),
            subsets.data.weight,
            self.out_of_time,
            subsets.extend,
        )

    def growth_data(self, cost_weight: float) -> GrowthData:
        """What branching learns from, and what may be bought at what price."""
        subsets = self.subsets
        data = subsets.data
        rows, weight = subsets.glanced

        def price(more: Subset, known: Subset) -> Any:
            cost = np.asarray(subsets.cost(more, known))
            return cost_weight * (cost[rows] if cost.ndim else cost)

        return GrowthData(
            subsets.gram,
            price,
            subsets.extend,
            weight,
            data.loss.at_stake(data.y[rows], len(data.classes)),
            self.out_of_time,
            subsets.weighed(cost_weight),
        )


def open_search(
    leaves: LeafClassifiers,
    n_leaves: int | str,
    n_exact: int | None,
    max_cost: float | None,
    progress: TextProgress,
) -> StructureSearch:
    """Choose the rows that searches look at."""
    n_rows = len(leaves.data.y)
    rows = np.arange(n_rows)
    if n_rows > SEARCH_ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(n_rows)[:SEARCH_ROWS])
        leaves = leaves.take(rows)
    subsets = SubsetLosses(leaves, max_cost)
    return StructureSearch(subsets, rows, n_leaves, n_exact, progress)


def find_root(search: StructureSearch, cost_weight: float) -> Subset:
    """Of the sensors worth their price the one worth most of it, with the free ones."""
    subsets, market = search.subsets, search.subsets.market
    free = subsets.numbered(market.free())
    comparison = search.comparison(0.0)
    nothing = comparison.loss(free)

    def rate(risk: Array, extended: Sequence[Subset]) -> Array:
        """Error saved per unit of cost, as a negative number; nobody is left out."""
        prices = np.array([subsets.mean_cost(more, free) for more in extended])
        within = [market.affordable(subsets.cost(m)).all() for m in extended]
        saved = (comparison.mean(risk) - nothing) / np.maximum(prices, EPS)
        return np.where(within, saved, np.inf)

    found = comparison.best_extension(free, rate)
    worth_it = found is not None and -found[2] > cost_weight
    return found[1] if found and worth_it else free


def greedy(search: StructureSearch, cost_weight: float, root: Subset) -> Grown:
    """Algorithm 1, then clustering by common sensors."""
    comparison = search.comparison(cost_weight)
    found, steps = greedy_subsets(comparison, search.most_leaves("greedy"), root)
    return cluster_subsets(search.subsets.named(s) for s in found), steps


def chain(search: StructureSearch, cost_weight: float, root: Subset) -> Grown:
    """Forward selection per unit of cost, with an exit after each sensor."""
    price, n_stages = search.subsets.mean_cost, search.most_leaves("chain") - 1
    steps = forward_chain(search.comparison(0.0), price, n_stages, root)
    stages = [root, *(step.subset for step in steps)]
    return chain_tree([search.subsets.named(stage) for stage in stages]), steps


def backward(search: StructureSearch, cost_weight: float, root: Subset) -> Grown:
    """The chain that is left when boosted trees drop what they need least."""
    subsets, data = search.subsets, search.subsets.data
    others = [j for j in range(len(subsets.names)) if j not in root]
    rows, weight = data.distinct()
    order = elimination_order(
        [data.coded_blocks[j].take(rows) for j in others],
        data.y[rows],
        weight,
        data.task.eliminator,
        np.array([subsets.mean_cost(frozenset((j,)), root) for j in others]),
        search.out_of_time,
    )
    comparison = search.comparison(0.0)
    stages, steps = [root], []
    for sensor in (others[k] for k in order):
        known = subsets.extend(stages[-1], sensor)
        if len(stages) == search.most_leaves("backward"):
            break
        if sensor not in stages[-1] and known is not None:
            stages.append(known)
            loss = float(comparison.mean(subsets.screen([known]))[0])
            steps.append(Growth(known, sensor, loss))
    return chain_tree([subsets.named(stage) for stage in stages]), steps


def elimination_order(
    blocks: Sequence[Array | Coded],
    y: NDArray[Any],
    weight: Array,
    trees: Trees,
    prices: Array,
    out_of_time: Callable[[], bool],
) -> list[int]:
    """Positions of sensors, the one that was left out last first.

    Trees are boosted on all sensors, those that lower the loss least for their price are
    left out, and so on with the rest: sensors that tell something only together stay. What
    is left when time is over is in declared order.
    """
    left, gone = list(range(len(blocks))), []
    while len(left) > 1 and not out_of_time():
        saved = loss_saved([blocks[j] for j in left], y, weight, trees)
        rate = saved / np.maximum(prices[left], TINY)
        n_gone = 1 if len(left) <= ELIMINATED_SINGLY else len(left) // ELIMINATED_PART
        # Of equals the last goes first, so that the first is kept.
        least = np.lexsort((-np.arange(len(left)), rate))[:n_gone].tolist()
        gone += [left[k] for k in least]
        left = [j for k, j in enumerate(left) if k not in least]
    return left + gone[::-1]


def loss_saved(
    blocks: Sequence[Array | Coded], y: NDArray[Any], weight: Array, trees: Trees
) -> Array:
    """How much splits on each sensor lower the loss of boosted trees, (n_sensors,)."""
    X, owner = side_by_side(blocks)
    saved = np.zeros(len(blocks))
    if (y == y[0]).all():
        return saved
    # Bins take much longer with weights.
    own = None if (weight == weight[0]).all() else weight
    boosted = trees(y, X.shape, X.coding).fit(X.values, y, own)
    for nodes in (tree for each in boosted_rounds(boosted) for tree in each):
        splits = nodes[nodes["is_leaf"] == 0]
        np.add.at(saved, owner[splits["feature_idx"]], splits["gain"])
    return saved


def branched(search: StructureSearch, cost_weight: float, root: Subset) -> Grown:
    """Growth that looks ahead, and branches as often as that pays."""
    vertex, steps = grow_branches(
        search.growth_data(cost_weight), search.most_leaves("branched"), root
    )
    return SensorTree(_built(vertex, search.subsets)), steps


def planned(search: StructureSearch, cost_weight: float, root: Subset) -> Grown:
    """Growth by plans of up to three purchases on cells of readings."""
    subsets = search.subsets
    planner = plan_for(subsets, cost_weight, root)
    if not planner.sensors:
        return SensorTree(Leaf(subsets.named(root))), []
    most = search.most_leaves("planned")
    vertex, steps = grow_plan(planner, most, search.out_of_time)
    return SensorTree(_built(vertex, subsets)), steps


def _built(vertex: Vertex, subsets: SubsetLosses) -> Leaf | Node:
    """A vertex as nodes: who stops, and who buys what, one after another.

    In the order of a number that parts them, if there is one, so that each node need only
    ask whether it is large; else first who stops, then the most.
    """
    known = subsets.named(vertex.subset)
    if not vertex.children:
        return Leaf(known)
    bought = np.concatenate([child.rows for child in vertex.children])
    stops = [(Leaf(known), np.setdiff1d(vertex.rows, bought))] if vertex.stops else []
    ranked = sorted(vertex.children, key=lambda child: -len(child.rows))
    ways = [*stops, *((_built(child, subsets), child.rows) for child in ranked)]
    order = _parted(
        [rows for _, rows in ways], [subsets.data.blocks[j] for j in vertex.subset]
    )
    *others, onward = [ways[k][0] for k in order]
    for way in reversed(others):
        sides = (way, onward) if isinstance(way, Leaf) else (onward, way)
        onward = Node(known, *sides)
    return onward


def _parted(groups: Sequence[Rows], blocks: Sequence[Array]) -> list[int]:
    """Groups of rows in the order of a column that parts them, or as they are."""
    as_they_are = list(range(len(groups)))
    if min(map(len, groups)) == 0:
        return as_they_are
    for column in np.hstack(blocks).T if blocks else ():
        least = np.array([column[rows].min() for rows in groups])
        most = np.array([column[rows].max() for rows in groups])
        order = np.argsort(least, kind="stable")
        if (most[order][:-1] < least[order][1:]).all():
            return [int(k) for k in order]
    return as_they_are


SEARCHES: dict[str, Callable[[StructureSearch, float, Subset], Grown]] = {
    "chain": chain,
    "backward": backward,
    "greedy": greedy,
    "branched": branched,
    "planned": planned,
}
# Searches that begin with nothing: the first purchase is theirs.
FROM_NOTHING = ("planned", "branched", "backward")


def most_steps(name: str, n_sensors: int, n_leaves: int | str) -> int:
    """Steps that a search may tell of: its root's, and those of its own."""
    n_leaves = SEARCH_LEAVES[name] if isinstance(n_leaves, str) else n_leaves
    stages = min(n_sensors, n_leaves)
    blocks = 2 * n_sensors.bit_length()
    own = {
        "chain": stages + blocks + 1,
        "backward": n_sensors,
        "branched": 4 * n_leaves,  # asked for twice as many, again and again
        "planned": 4 * n_leaves,
        "greedy": n_leaves * (n_sensors + 1),
    }
    return 1 + own[name]


def run_search(
    search: StructureSearch, name: str, cost_weight: float, root: Subset | None
) -> tuple[SensorTree, StructureReport]:
    """Run one search by name, from a root that is given or found."""
    start = root
    if start is None:
        free = search.subsets.numbered(search.subsets.market.free())
        begins = bool(free) or name in FROM_NOTHING
        start = free if begins else find_root(search, cost_weight)
    tree, steps = SEARCHES[name](search, cost_weight, start)
    if search.progress.stopped is not None:
        stopped = search.progress.stopped
    elif tree.n_leaves >= (most := search.most_leaves(name)):
        stopped = f"{most} leaves were reached"
    else:
        stopped = "nothing more lowered the loss"
    subsets = search.subsets
    order = subsets.data.sensors.in_order
    shown = [
        {
            "added": subsets.names[step.added],
            "subset": order(subsets.named(step.subset)),
            "loss": step.loss,
        }
        for step in steps
    ]
    report = StructureReport(
        name,
        [list(order(leaf.sensors)) for leaf in tree.leaves],
        shown,
        stopped,
        len(subsets.leaves.posteriors),
        subsets.n_screened,
        len(subsets.data.y),
    )
    return tree, report


@dataclass(frozen=True)
class StructureReport(PlainForm):
    """How the structure of a tree was found.

    Attributes
    ----------
    structure : str
        The search whose tree was taken.
    subsets : list of list of str
        Sensors of each leaf, before pruning.
    steps : list of dict
        What was added in each step, to which sensors, and the search's loss after it.
    stopped : str
        Why the search ended.
    n_classifiers, n_screened : int
        Subsets whose classifier was trained during the search, and subsets that were
        screened: by least squares for logistic leaves, by a masked booster for boosted
        ones, else by a light copy of the classifier.
    n_rows : int
        Rows that the search looked at.
    pruned : int
        Leaves that no training example reached, and that were taken out.
    never_pay : list of str
        Sensors that cost no less, at this cost weight, than any reading can be worth.
    out_of_reach : list of list of str
        Sensors, and sets of two or three, that a log holds of too few rows for a tree to
        buy them (together).
    """

    structure: str
    subsets: list[list[str]]
    steps: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = "the tree is given"
    n_classifiers: int = 0
    n_screened: int = 0
    n_rows: int = 0
    pruned: int = 0
    never_pay: list[str] = field(default_factory=list)
    out_of_reach: list[list[str]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"structure {self.structure!r}: {len(self.subsets)} leaves"]
        if self.pruned:
            lines[0] += f", {self.pruned} of them pruned since no example reached them"
        lines += [
            f"step {number}: + {step['added']} -> {', '.join(step['subset'])}; "
            f"loss {step['loss']:.4f}"
            for number, step in enumerate(self.steps, 1)
        ]
        if self.n_rows:
            lines.append(
                f"searched on {self.n_rows} rows: {self.n_screened} subsets screened, "
                f"{self.n_classifiers} with their classifier; {self.stopped}"
            )
        if self.never_pay:
            lines.append(f"too dear to ever pay: {', '.join(self.never_pay)}")
        if self.out_of_reach:
            sets = "; ".join(" with ".join(names) for names in self.out_of_reach)
            lines.append(f"bought for too few rows of the log: {sets}")
        return "\n".join(lines)


def report_of_built(name: str, tree: SensorTree, sensors: SensorSet) -> StructureReport:
    """Report of a tree that was not searched for."""
    leaves = [list(sensors.in_order(leaf.sensors)) for leaf in tree.leaves]
    return StructureReport(name, leaves)
