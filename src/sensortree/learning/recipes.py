"""Recipes: which structures are compared with which leaves, and the trees they stand for.

A recipe is a structure and a kind of leaf. `TreeFinder` gives the tree of a structure: it
is given, built, or searched for. A search that can grow on is asked for twice as many
leaves while that lowers the risk on held-out rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sensortree.constants import (
    COMPARED_EXHAUSTIVE_LEAVES,
    GLANCED_FOLDS,
    GROWN_FIRST_LEAVES,
)
from sensortree.exceptions import ParameterError
from sensortree.learning.held_out import (
    Outcome,
    decide_held_out,
    nothing_bought,
    outcome_of,
)
from sensortree.learning.joint import Learner
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings, named_root
from sensortree.sensors.market import Market
from sensortree.sensors.sensor import SensorSet
from sensortree.structure.algorithm1 import Subset
from sensortree.structure.search import (
    StructureReport,
    find_root,
    report_of_built,
    run_search,
)
from sensortree.structure.trees import (
    cascade_tree,
    check_tree_fits,
    exhaustive_leaves,
    exhaustive_tree,
)
from sensortree.tree.paths import check_tree_is_allowed
from sensortree.tree.tree import SensorTree

Found = tuple[SensorTree, StructureReport]


class Recipe(NamedTuple):
    """How a tree is found, and what its leaves are."""

    structure: str
    leaf: str

    def __str__(self) -> str:
        return f"{self.structure}, {self.leaf}" if self.leaf else self.structure

    @classmethod
    def named(cls, name: str) -> Recipe:
        """The recipe of a name."""
        structure, _, leaf = name.partition(", ")
        return cls(structure, leaf)


def structures_of(prepared: Prepared, settings: Settings) -> tuple[str, ...]:
    """Structures that ``structure="auto"`` compares.

    An exhaustive tree of few sensors has all chains within it. Where nothing is held
    out, nothing says how large a tree may be.
    """
    search = prepared.search
    validates = bool((prepared.leaves.data.fold >= 0).any())
    few = exhaustive_root(prepared, settings) is not None
    if not validates:
        return ("exhaustive",) if few else ("chain",)
    chain = own_chain("boosted" if search.subsets.masked else "")
    many = len(prepared.leaves.data.sensors) > search.most_leaves("chain")
    cascade = () if many else ("cascade",)
    return ("exhaustive" if few else chain, "planned", "branched", *cascade)


def own_chain(kind: str) -> str:
    """The chain that suits a kind of leaf.

    Boosted trees see what tells only together: their sensors are dropped, not added.
    """
    return "backward" if kind == "boosted" else "chain"


def exhaustive_root(prepared: Prepared, settings: Settings) -> frozenset[str] | None:
    """What an exhaustive tree that is compared begins with; None if it is too large.

    With what is free; or, if that leaves one sensor too many, with the best.
    """
    data = prepared.leaves.data
    start = nothing_bought(prepared.leaves, settings)
    others = len(data.sensors) - len(start)
    if exhaustive_leaves(others) <= COMPARED_EXHAUSTIVE_LEAVES:
        return start
    named = named_root(settings, data.market(settings.max_cost)) is not None
    if named or exhaustive_leaves(others - 1) > COMPARED_EXHAUSTIVE_LEAVES:
        return None
    search = prepared.search
    found = search.subsets.named(find_root(search, settings.cost_weight))
    return found if len(found) > len(start) else None


@dataclass(eq=False)
class TreeFinder:
    """The trees that structures stand for on some rows, each found once."""

    prepared: Prepared
    settings: Settings
    learn: Learner  # learns decisions that are only compared
    found: dict[str, Found] = field(default_factory=dict)

    @property
    def market(self) -> Market:
        """What may be bought."""
        return self.prepared.leaves.data.market(self.settings.max_cost)

    @property
    def root(self) -> Subset | None:
        """Sensors that the user wants known at the root, by number."""
        named = named_root(self.settings, self.market)
        numbered = self.prepared.leaves.data.sensors.index
        return None if named is None else frozenset(map(numbered, named))

    def find(self, structure: str) -> Found:
        """The tree of a structure, and how it was found."""
        if structure not in self.found:
            with self.prepared.progress.watch.stage("search"):
                self.found[structure] = self._find(structure)
        return self.found[structure]

    def _find(self, structure: str) -> Found:
        if structure == "branched":
            return self._grown(structure)
        if structure not in ("exhaustive", "cascade"):
            return self._run(structure)
        market, root = self.market, cheap_root(self.settings, self.market)
        if structure == "exhaustive":
            found = exhaustive_root(self.prepared, self.settings)
            assert found is not None  # else it is not among the structures
            root = found
        tree = built_tree(structure, market, root)
        return tree, report_of_built(structure, tree, market.sensors)

    def _run(self, structure: str, n_leaves: int | None = None) -> Found:
        search = self.prepared.search
        if n_leaves is not None:
            search = replace(search, n_leaves=n_leaves)
        return run_search(search, structure, self.settings.cost_weight, self.root)

    def _grown(self, structure: str) -> Found:
        """Ask for twice as many leaves while that lowers the risk on held-out rows."""
        most = self.prepared.search.most_leaves(structure)
        asked = min(GROWN_FIRST_LEAVES, most)
        found = self._run(structure, asked)
        if not (self.prepared.leaves.data.fold >= 0).any():
            return found
        least = None
        while asked < most and 2 * found[0].n_leaves > asked:
            if self.prepared.progress.stopped:
                break
            asked = min(2 * asked, most)
            more = self._run(structure, asked)
            if more[0].n_leaves <= found[0].n_leaves:
                break
            if least is None:
                least = float(self.glanced(found[0]).risk.mean())
            risk = float(self.glanced(more[0]).risk.mean())
            if risk >= least:
                break
            found, least = more, risk
        return found

    def glanced(self, tree: SensorTree) -> Outcome:
        """What a tree is worth on some held-out rows, by stand-ins for its leaves."""
        leaves = self.prepared.search.subsets.stand_ins or self.prepared.leaves
        glanced = slice(GLANCED_FOLDS)
        seen = decide_held_out(tree, leaves, self.settings, self.learn, glanced)
        return outcome_of(seen, leaves, self.settings)


def given_structure(settings: Settings, sensors: SensorSet) -> SensorTree:
    """Give the user's own tree, once it fits the sensors."""
    given = isinstance(settings.structure, SensorTree)
    tree = settings.structure if given else SensorTree.from_dict(settings.structure)
    check_tree_fits(tree, sensors)
    if settings.refer_cost is None and any(leaf.refers for leaf in tree.leaves):
        raise ParameterError(
            "the structure given has a leaf that refers, but nothing says what a person "
            "costs; give refer_cost, or leave 'refers' out."
        )
    if settings.root_sensors != "auto":
        raise ParameterError(
            "root_sensors is for trees that are built; the structure given is a tree, "
            "whose root says what is known there: leave root_sensors at 'auto'."
        )
    return tree


def build_structure(settings: Settings, market: Market) -> SensorTree:
    """Build the exhaustive tree, or a cascade: the cheapest first, or in a given order."""
    if not isinstance(settings.structure, str):
        check_order(settings.structure, market.sensors.names)
        tree = cascade_tree(list(settings.structure), named_root(settings, market))
        check_tree_is_allowed(tree, market)
        return tree
    return built_tree(settings.structure, market, cheap_root(settings, market))


def built_tree(structure: str, market: Market, root: frozenset[str]) -> SensorTree:
    """The exhaustive tree, or a cascade of the cheapest first, from what is known."""
    if structure == "exhaustive":
        return exhaustive_tree(market.sensors.names, root, market.next_ones)
    return cascade_tree(cheapest_order(market, root), root)


def check_order(order: Sequence[str], names: Sequence[str]) -> None:
    """Raise `ParameterError` unless the order lists each sensor once."""
    for name in order:
        if name not in names:
            raise ParameterError(
                f"order names {name!r}, which is not a sensor; the sensors are "
                f"{', '.join(map(repr, names))}."
            )
    forgotten = [name for name in names if name not in order]
    if forgotten:
        raise ParameterError(
            f"order forgets sensor {forgotten[0]!r}; list every sensor, the first to buy "
            f"first."
        )


def cheap_root(settings: Settings, market: Market) -> frozenset[str]:
    """Sensors named by the user, or else the free ones, or else the cheapest."""
    named = named_root(settings, market)
    if named is not None:
        return named
    free = market.free()
    return free or frozenset(cheapest_order(market, frozenset())[:1])


def cheapest_order(market: Market, known: frozenset[str]) -> list[str]:
    """Sensors by increasing cost, as far as they may be bought one after another."""
    order: list[str] = []
    while names := market.next_ones(known):
        order.append(
            min(names, key=lambda n: market.sensors.costs[market.sensors.index(n)])
        )
        known |= {order[-1]}
    return order
