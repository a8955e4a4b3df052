"""Learning the structure: the named searches, and what they report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.fitting import is_linear
from sensortree.progress import TextProgress
from sensortree.sensors.sensor_set import SensorSet
from sensortree.structure import (
    Evidence,
    Growth,
    LeastSquaresScreen,
    Search,
    Vertex,
    chain_tree,
    cluster_subsets,
    forward_chain,
    greedy_subsets,
    grow_tree,
)
from sensortree.tree.tree import Leaf, Node, SensorTree
from sensortree.types import Array

Subset = frozenset[int]
EPS = float(np.finfo(float).eps)

# A search looks at this many rows at most; leaf classifiers are fitted on all.
SEARCH_ROWS = 12_000


@dataclass(frozen=True)
class StructureReport:
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
        screened: by least squares for logistic leaves, else by a light copy of the
        classifier.
    n_rows : int
        Rows that the search looked at.
    validated : dict of str to float
        Risk of each candidate on rows that its decisions were not learned from, where
        several were compared.
    pruned : int
        Leaves that no training example reached, and that were taken out.
    moves : list of dict
        With ``improve``, the moves that were made, with the validated risk before and
        after each.
    """

    structure: str
    subsets: list[list[str]]
    steps: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = "the tree is given"
    n_classifiers: int = 0
    n_screened: int = 0
    n_rows: int = 0
    validated: dict[str, float] = field(default_factory=dict)
    pruned: int = 0
    moves: list[dict[str, Any]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"structure {self.structure!r}: {len(self.subsets)} leaves"]
        if self.pruned:
            lines[0] += f", {self.pruned} of them pruned since no example reached them"
        if self.validated:
            ranked = sorted(self.validated.items(), key=lambda item: item[1])
            shown = ", ".join(f"{name} {risk:.4f}" for name, risk in ranked)
            lines.append(f"validated risk: {shown}")
        lines += [
            f"step {number}: + {step['added']} -> {', '.join(step['subset'])}; "
            f"loss {step['loss']:.4f}"
            for number, step in enumerate(self.steps, 1)
        ]
        lines += [
            f"improved: {move['move']}; validated risk {move['before']:.4f} -> "
            f"{move['after']:.4f}"
            for move in self.moves
        ]
        if self.n_rows:
            lines.append(
                f"searched on {self.n_rows} rows: {self.n_screened} subsets screened, "
                f"{self.n_classifiers} with their classifier; {self.stopped}"
            )
        return "\n".join(lines)


def built(name: str, tree: SensorTree, sensors: SensorSet) -> StructureReport:
    """Report of a tree that was not searched for."""
    leaves = [list(sensors.in_order(leaf.sensors)) for leaf in tree.leaves]
    return StructureReport(name, leaves)


class StructureSearch:
    """The searches for a structure on one data set, sharing what they computed.

    Parameters
    ----------
    leaves : LeafClassifiers
        Classifiers of subsets, on all rows.
    n_leaves : int
    n_exact : int or None
        Extensions compared with their own classifier at each step; None for all.
    deadline : float or None
        Value of ``time.monotonic`` at which a search must end.
    progress : TextProgress
        Is told of each step, and may say stop.
    max_cost : float or None
        No example may spend more.
    """

    def __init__(
        self,
        leaves: LeafClassifiers,
        n_leaves: int,
        n_exact: int | None,
        deadline: float | None,
        progress: TextProgress,
        max_cost: float | None,
    ):
        n_rows = len(leaves.data.y)
        self.leaves = leaves
        self.rows = np.arange(n_rows)
        if n_rows > SEARCH_ROWS:
            chosen = np.random.default_rng(0).permutation(n_rows)[:SEARCH_ROWS]
            self.rows = np.sort(chosen)
            self.leaves = leaves.take(self.rows)
        self.n_leaves, self.n_exact, self.deadline = n_leaves, n_exact, deadline
        self.progress = progress
        self.data = self.leaves.data
        self.names = self.data.sensors.names
        self.market = self.data.market(max_cost)
        self._screen: LeastSquaresScreen | None = None
        self._screened: dict[Subset, Array] = {}
        self._light: dict[Subset, Array] = {}
        self._costs: dict[tuple[Subset, Subset], Any] = {}
        # Which search won at which cost weight, where fits learn from each other.
        self.winners: dict[float, str] = {}
        self.learns_winners = False

    def expected_winner(self, cost_weight: float) -> str | None:
        """The search that won at the next cost weights below and above, if it is one."""
        won = self.winners
        below = [weight for weight in won if weight <= cost_weight]
        above = [weight for weight in won if weight >= cost_weight]
        if not (below and above):
            return None
        names = {won[max(below)], won[min(above)]}
        return names.pop() if len(names) == 1 else None

    def out_of_time(self) -> bool:
        """Tell of a step; whether the user's time is over, or a callback says stop."""
        if not self.progress.stopped:
            self.progress.step(
                "structure",
                f"{self.n_screened} subsets screened, {len(self.leaves.posteriors)} with "
                f"their classifier",
            )
        return self.stopped is not None

    @property
    def n_screened(self) -> int:
        """Subsets that were screened so far."""
        return len(self._screened) + len(self._light)

    @property
    def stopped(self) -> str | None:
        """Why a search must end with what it has; None if it need not."""
        if self.progress.stopped:
            return "a callback said stop"
        if self.deadline is not None and time.monotonic() > self.deadline:
            return "max_time was over"
        return None

    def scores(self, subset: Subset) -> Array:
        """Class scores of the least-squares screen, out of fold, (n_rows, n_classes)."""
        if self._screen is None:
            data = self.data
            self._screen = LeastSquaresScreen(
                data.blocks, data.y, data.weight, data.fold
            )
        return self._screen.scores(sorted(subset))

    def screened(self, subset: Subset) -> Array:
        """Losses of the least-squares screen; each subset is screened once."""
        if subset not in self._screened:
            self._screened[subset] = self._losses(self.scores(subset))
        return self._screened[subset]

    def _losses(self, posterior: Array) -> Array:
        """What the answers to these class probabilities, or scores, cost, (n_rows,)."""
        loss = self.data.loss
        return loss.of(self.data.y, loss.answer(posterior))

    def cost(self, subset: Subset, known: Subset = frozenset()) -> Any:
        """Price of a subset when another is known: a number, or one for each row."""
        if (subset, known) not in self._costs:
            named = self.named(subset), self.named(known)
            self._costs[subset, known] = self.market.cost(*named)
        return self._costs[subset, known]

    def mean_cost(self, subset: Subset, known: Subset = frozenset()) -> float:
        """Mean price of a subset when another is known."""
        return float(np.mean(self.cost(subset, known)))

    def extend(self, subset: Subset, sensor: int) -> Subset | None:
        """What is known after buying one more sensor; None if it may not be bought."""
        extended = self.market.extension(self.named(subset), self.names[sensor])
        return None if extended is None else self.numbered(extended)

    def allows(self, subset: Subset) -> bool:
        """Whether a subset may be known."""
        return self.market.allows(self.named(subset))

    def allows_tree(self, tree: SensorTree) -> bool:
        """Whether all that some vertex of a tree knows may be known."""
        known = {leaf.sensors for leaf in tree.leaves}
        known |= {node.sensors for node in tree.nodes}
        return all(map(self.market.allows, known))

    def exact_errors(self, subsets: Sequence[Subset]) -> Array:
        """Losses of the subsets' own classifiers, out of fold, (n_rows, n_subsets)."""
        named = [self.named(subset) for subset in subsets]
        self.leaves.judge(named)
        losses = [self._losses(self.leaves.posteriors[s]) for s in named]
        return np.column_stack(losses)

    def by_least_squares(self, subsets: Sequence[Subset]) -> Array:
        """Losses of the least-squares screen, (n_rows, n_subsets)."""
        return np.column_stack([self.screened(subset) for subset in subsets])

    def by_light_copies(self, subsets: Sequence[Subset]) -> Array:
        """Losses of light copies of the classifier; each subset is screened once."""
        new = {self.named(s): s for s in subsets if s not in self._light}
        for named, posterior in self.leaves.screen(new).items():
            self._light[new[named]] = self._losses(posterior)
        return np.column_stack([self._light[subset] for subset in subsets])

    def search(self, cost_weight: float) -> Search:
        """How extensions are compared when a unit of cost is worth this much error."""

        def priced(errors: Array, subsets: Sequence[Subset]) -> Array:
            if not cost_weight:
                return errors
            cost = [
                np.broadcast_to(self.cost(subset), len(errors)) for subset in subsets
            ]
            return errors + cost_weight * np.column_stack(cost)

        linear = is_linear(self.leaves.classifier)
        cheap = self.by_least_squares if linear else self.by_light_copies

        return Search(
            len(self.names),
            lambda subsets: priced(self.exact_errors(subsets), subsets),
            lambda subsets: priced(cheap(subsets), subsets),
            self.n_exact,
            self.data.weight,
            self.out_of_time,
            self.extend,
        )

    def root(self, cost_weight: float) -> Subset:
        """The free sensors, and of those worth their price the one worth most of it."""
        free = frozenset(map(self.data.sensors.index, self.market.free()))
        search = self.search(0.0)
        nothing = float(search.mean(search.exact([free]))[0])

        def rate(risk: Array, extended: Sequence[Subset]) -> Array:
            """Error saved per unit of cost, as a negative number; nobody is left out."""
            prices = np.array([self.mean_cost(more, free) for more in extended])
            within = [self.market.affordable(self.cost(m)).all() for m in extended]
            saved = (search.mean(risk) - nothing) / np.maximum(prices, EPS)
            return np.where(within, saved, np.inf)

        found = search.best_extension(free, rate)
        worth_it = found is not None and -found[2] > cost_weight
        return found[1] if found and worth_it else free

    def greedy(
        self, cost_weight: float, root: Subset
    ) -> tuple[SensorTree, list[Growth]]:
        """Algorithm 1, then clustering by common sensors."""
        subsets, steps = greedy_subsets(self.search(cost_weight), self.n_leaves, root)
        return cluster_subsets(self.named(s) for s in subsets), steps

    def chain(
        self, cost_weight: float, root: Subset
    ) -> tuple[SensorTree, list[Growth]]:
        """Forward selection per unit of cost, with an exit after each sensor."""
        steps = forward_chain(self.search(0.0), self.mean_cost, self.n_leaves - 1, root)
        stages = [root, *(step.subset for step in steps)]
        return chain_tree([self.named(stage) for stage in stages]), steps

    def grown(
        self, cost_weight: float, root: Subset
    ) -> tuple[SensorTree, list[Growth]]:
        """Top-down growth by the gain that can be predicted from what is known."""
        evidence = self.evidence()
        vertex, steps = grow_tree(evidence, cost_weight, self.n_leaves, root)
        return SensorTree(self._build(vertex)), steps

    def evidence(self) -> Evidence:
        """What growth learns from: losses and scores of the least-squares screen."""
        return Evidence(
            self.screened,
            self._features,
            len(self.names),
            self.cost,
            self.extend,
            self.allows,
            self.data.weight,
            self.data.fold,
            self.out_of_time,
        )

    def screened_risk(self, known: frozenset[str], cost_weight: float) -> Array:
        """Risk of each row by the least-squares screen, (n_rows,)."""
        subset = self.numbered(known)
        return np.asarray(self.screened(subset) + cost_weight * self.cost(subset))

    def _features(self, subset: Subset) -> Array:
        """Class scores, how far the largest leads, and the readings; NaN is the mean."""
        scores = self.scores(subset)
        ordered = np.sort(scores, axis=1)
        readings = [self.data.blocks[j] for j in sorted(subset)]
        columns = np.hstack(
            [scores, ordered[:, -1:], ordered[:, -1:] - ordered[:, -2:-1], *readings]
        )
        mean = np.nan_to_num(np.nanmean(columns, axis=0))
        return np.where(np.isnan(columns), mean, columns)

    def named(self, subset: Iterable[int]) -> frozenset[str]:
        """Names of sensors given by their numbers."""
        return frozenset(self.names[j] for j in subset)

    def numbered(self, known: Iterable[str]) -> Subset:
        """Numbers of sensors given by their names."""
        return frozenset(map(self.data.sensors.index, known))

    def _build(self, vertex: Vertex) -> Leaf | Node:
        known = self.named(vertex.subset)
        if not vertex.children:
            return Leaf(known)
        bought = [self._build(child) for child in vertex.children]
        onward = bought[0] if len(bought) == 1 else Node(known, bought[0], bought[1])
        return Node(known, Leaf(known), onward)

    def run(
        self, name: str, cost_weight: float, root: Subset | None
    ) -> tuple[SensorTree, StructureReport]:
        """Run one search by name, from a root that is given or found."""
        start = self.root(cost_weight) if root is None else root
        tree, steps = SEARCHES[name](self, cost_weight, start)
        if self.stopped is not None:
            stopped = self.stopped
        elif tree.n_leaves >= self.n_leaves:
            stopped = f"n_leaves={self.n_leaves} were reached"
        else:
            stopped = "nothing more lowered the loss"
        order = self.data.sensors.in_order
        shown = [
            {
                "added": self.names[step.added],
                "subset": order(self.named(step.subset)),
                "loss": step.loss,
            }
            for step in steps
        ]
        report = StructureReport(
            name,
            [list(order(leaf.sensors)) for leaf in tree.leaves],
            shown,
            stopped,
            len(self.leaves.posteriors),
            self.n_screened,
            len(self.data.y),
        )
        return tree, report


SEARCHES: dict[
    str, Callable[[StructureSearch, float, Subset], tuple[SensorTree, list[Growth]]]
] = {
    "chain": StructureSearch.chain,
    "grown": StructureSearch.grown,
    "greedy": StructureSearch.greedy,
}
