"""`StructureChooser`: the tree that `structure` and `root_sensors` stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import ParameterError, SensorError
from sensortree.learning.improvement import improve_structure
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.program.routing import RoutingProblem
from sensortree.sensors.market import Market
from sensortree.sensors.sensor_set import SensorSet
from sensortree.structure import (
    cascade_tree,
    check_tree_fits,
    exhaustive_leaves,
    exhaustive_tree,
)
from sensortree.structure.search import (
    SEARCHES,
    StructureReport,
    StructureSearch,
    built,
)
from sensortree.tree.paths import check_tree_is_allowed
from sensortree.tree.tree import Leaf, SensorTree
from sensortree.types import Array

LEARNED = ("auto", *SEARCHES)
# structure="auto" is exhaustive up to this many leaves.
EXHAUSTIVE = 16
# Rows up to which structures are compared on all folds.
FEW_ROWS = 3000


class StructureChooser:
    """Methods that give a tree: built, given by the user, or learned and compared."""

    structure: Any
    root_sensors: Any
    cost_weight: float
    n_leaves: int
    improve: int
    max_cost: float | None

    def _pose(
        self, tree: SensorTree, leaves: LeafClassifiers
    ) -> tuple[Any, RoutingProblem, RoutingProblem]:
        raise NotImplementedError  # the estimator's

    def _fit_decisions(
        self, problem: RoutingProblem, observed: RoutingProblem
    ) -> list[Array]:
        raise NotImplementedError  # the method's

    def _choose_structure(
        self, leaves: LeafClassifiers, search: StructureSearch
    ) -> tuple[SensorTree, StructureReport]:
        """Give the tree that `structure` and `root_sensors` stand for."""
        sensors = leaves.data.sensors
        if self._learns_structure():
            market = leaves.data.market(self.max_cost)
            named = self._named_root(market)
            found = self._learn_structure(leaves, search)
            fixed = market.free() if named is None else named
            return improve_structure(self, *found, fixed, leaves, search)
        if isinstance(self.structure, str):
            tree = self._build_structure(leaves.data.market(self.max_cost))
        else:
            tree = self._given_structure(sensors)
            check_tree_is_allowed(tree, leaves.data.market(self.max_cost))
        name = self.structure if isinstance(self.structure, str) else "given"
        return tree, built(name, tree, sensors)

    def _learns_structure(self) -> bool:
        return isinstance(self.structure, str) and self.structure in LEARNED

    def _given_structure(self, sensors: SensorSet) -> SensorTree:
        given = isinstance(self.structure, SensorTree)
        tree = self.structure if given else SensorTree.from_dict(self.structure)
        check_tree_fits(tree, sensors)
        if self.root_sensors != "auto":
            raise ParameterError(
                "root_sensors is for trees that are built; the structure given is a tree, "
                "whose root says what is known there: leave root_sensors at 'auto'."
            )
        return tree

    def _build_structure(self, market: Market) -> SensorTree:
        root = self._cheap_root(market)
        if self.structure == "exhaustive":
            return exhaustive_tree(market.sensors.names, root, market.next_ones)
        return cascade_tree(_cheapest_order(market, root), root)

    def _cheap_root(self, market: Market) -> frozenset[str]:
        """Sensors named by the user, or else the free ones, or else the cheapest."""
        named = self._named_root(market)
        if named is not None:
            return named
        free = market.free()
        return free or frozenset(_cheapest_order(market, frozenset())[:1])

    def _named_root(self, market: Market) -> frozenset[str] | None:
        """Sensors that the user wants known at the root; None for "auto"."""
        if isinstance(self.root_sensors, str):
            return None
        sensors = market.sensors
        for name in self.root_sensors:
            if name not in sensors.names:
                raise SensorError(
                    f"root_sensors names {name!r}, which is not a sensor; the sensors are "
                    f"{', '.join(map(repr, sensors.names))}."
                )
        root = frozenset(self.root_sensors)
        if not sensors.admissible(root):
            raise SensorError(
                f"root_sensors {sorted(root)} may not be known together, by the sensors' "
                f"'after' and 'one_of'; name what they need, and no two alternatives."
            )
        if not market.allows(root):
            raise ParameterError(
                f"root_sensors cost {float(np.min(market.cost(root))):g}, above "
                f"max_cost={self.max_cost:g}; name fewer, or raise max_cost."
            )
        return root

    def _learn_structure(
        self, leaves: LeafClassifiers, search: StructureSearch
    ) -> tuple[SensorTree, StructureReport]:
        """Run the search asked for, or several, of which the least validated risk wins."""
        sensors = leaves.data.sensors
        market = leaves.data.market(self.max_cost)
        named = self._named_root(market)
        root = None if named is None else frozenset(map(sensors.index, named))
        worth_most = leaves.data.loss.largest
        if named is None and self.cost_weight * market.least_price() >= worth_most:
            return only_leaf(self.structure, market)
        if self.structure != "auto":
            return search.run(self.structure, self.cost_weight, root)
        found: dict[str, tuple[SensorTree, StructureReport]] = {}
        if exhaustive_leaves(len(sensors) - (len(named) if named else 1)) <= EXHAUSTIVE:
            start = search.root(self.cost_weight) if root is None else root
            known = [sensors.names[j] for j in start]
            tree = exhaustive_tree(sensors.names, known, market.next_ones)
            return tree, built("exhaustive", tree, sensors)
        expected = search.expected_winner(self.cost_weight)
        for name in ("chain", "grown"):
            if expected in (None, name):
                found[name] = search.run(name, self.cost_weight, root)
        if len(sensors) <= self.n_leaves and expected in (None, "cascade"):
            cheap = self._cheap_root(market)
            cascade = cascade_tree(_cheapest_order(market, cheap), cheap)
            found["cascade"] = cascade, built("cascade", cascade, sensors)
        if expected in found:
            return found[expected]
        risks = {
            name: self._validated_risk(tree, leaves)
            for name, (tree, _) in found.items()
        }
        validated = {name: float(risk.mean()) for name, risk in risks.items()}
        winner = min(validated, key=validated.__getitem__)
        if "cascade" in found and winner != "cascade":
            # An order that was not learned is left only for what is clearly better.
            lead = risks["cascade"] - risks[winner]
            if lead.mean() < lead.std() / np.sqrt(len(lead)):
                winner = "cascade"
        if search.learns_winners:
            search.winners[self.cost_weight] = winner
        tree, report = found[winner]
        return tree, replace(report, validated=validated)

    def _validated_risk(self, tree: SensorTree, leaves: LeafClassifiers) -> Array:
        """Observed risks, times weight, on rows that decisions were not learned from.

        Each fold in turn is held out; of many rows, two folds together once.
        """
        _, problem, observed = self._pose(tree, leaves)
        rows, _ = leaves.data.distinct()
        fold = leaves.data.fold[rows]
        folds = np.unique(fold[fold >= 0])
        few = len(rows) <= FEW_ROWS
        parts = [fold == f for f in folds] if few else [np.isin(fold, folds[:2])]
        risks = []
        for held_out in parts:
            train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
            if not (len(train) and len(test)):
                continue
            coef = self._fit_decisions(problem.take(train), observed.take(train))
            risks.append(observed.take(test).risks(coef))
        if not risks:  # nothing is held out: what was learned from must do
            risks = [observed.risks(self._fit_decisions(problem, observed))]
        return np.concatenate(risks)

    def _routed(self, tree: SensorTree, leaves: LeafClassifiers) -> NDArray[np.intp]:
        """The leaf that each training row reaches when decisions are learned from all."""
        _, problem, observed = self._pose(tree, leaves)
        leaf = tree.route(problem.margins(self._fit_decisions(problem, observed)))
        first, _ = leaves.data.distinct()
        return np.repeat(leaf, np.diff(np.r_[first, len(leaves.data.y)]))


def only_leaf(name: str, market: Market) -> tuple[SensorTree, StructureReport]:
    """The tree that buys nothing, where no sensor can save as much as it costs."""
    tree = SensorTree(Leaf(market.free()))
    report = built(name, tree, market.sensors)
    return tree, replace(report, stopped="no sensor can be worth its price")


def _cheapest_order(market: Market, known: frozenset[str]) -> list[str]:
    """Sensors by increasing cost, as far as they may be bought one after another."""
    order: list[str] = []
    while names := market.next_ones(known):
        order.append(
            min(names, key=lambda n: market.sensors.costs[market.sensors.index(n)])
        )
        known |= {order[-1]}
    return order
