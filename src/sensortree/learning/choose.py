"""Choose the tree: given by the user, built, or learned and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sensortree.exceptions import ParameterError
from sensortree.learning.candidates import (
    CANDIDATES,
    Chosen,
    best_of_searches,
    cheap_root,
    cheapest_order,
    judged_risks,
    routed,
    trimmed_branches,
)
from sensortree.learning.improvement import NEIGHBOURS, improve_structure
from sensortree.learning.learned import Learner
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings, named_root
from sensortree.learning.validated import rehearse
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.sensors.market import Market
from sensortree.sensors.sensor_set import SensorSet
from sensortree.structure import (
    cascade_tree,
    check_tree_fits,
    exhaustive_tree,
)
from sensortree.structure.report import StructureReport, report_of_built
from sensortree.structure.search import most_steps as most_search_steps
from sensortree.structure.search import run_search
from sensortree.tree.paths import check_tree_is_allowed
from sensortree.tree.tree import Leaf, SensorTree
from sensortree.types import Array


def choose_structure(prepared: Prepared, settings: Settings, learn: Learner) -> Chosen:
    """Give the tree that `structure` and `root_sensors` stand for."""
    data = prepared.leaves.data
    market = data.market(settings.max_cost)
    if settings.learns_structure:
        chosen = learn_structure(prepared, settings, learn)
        if not settings.improve:
            return chosen
        named = named_root(settings, market)
        tree, report = improve_structure(
            chosen.tree,
            chosen.report,
            market.free() if named is None else named,
            prepared.search,
            settings,
            lambda tree: validated_risk(tree, prepared.leaves, settings, learn),
            lambda tree: routed(tree, prepared.leaves, settings, learn),
        )
        return Chosen(tree, report)
    if isinstance(settings.structure, str):
        tree = build_structure(settings, market)
        return Chosen(tree, report_of_built(settings.structure, tree, data.sensors))
    tree = given_structure(settings, data.sensors)
    check_tree_is_allowed(tree, market)
    return Chosen(tree, report_of_built("given", tree, data.sensors))


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
    if settings.order is not None:
        check_order(settings.order, market.sensors.names)
        tree = cascade_tree(list(settings.order), named_root(settings, market))
        check_tree_is_allowed(tree, market)
        return tree
    root = cheap_root(settings, market)
    if settings.structure == "exhaustive":
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


def learn_structure(prepared: Prepared, settings: Settings, learn: Learner) -> Chosen:
    """Run the search asked for, or several, of which the least validated risk wins."""
    leaves, cost_weight = prepared.leaves, settings.cost_weight
    sensors = leaves.data.sensors
    market = leaves.data.market(settings.max_cost)
    named = named_root(settings, market)
    root = None if named is None else frozenset(map(sensors.index, named))
    worth_most = leaves.data.largest_loss
    if named is None and cost_weight * market.least_price() >= worth_most:
        return Chosen(*only_leaf(settings.structure, market))
    if settings.structure == "auto":
        return best_of_searches(prepared, settings, learn, root)
    if settings.structure == "branched":
        return trimmed_branches(prepared, settings, learn, root)
    return Chosen(*run_search(prepared.search, settings.structure, cost_weight, root))


def most_steps(settings: Settings, n_sensors: int) -> int:
    """Steps that choosing a tree may tell of."""
    if not settings.learns_structure:
        return 0
    every = (*CANDIDATES, "backward")
    searches = every if settings.structure == "auto" else (settings.structure,)
    own = sum(most_search_steps(s, n_sensors, settings.n_leaves) for s in searches)
    compared = len(every) + 2 if settings.structure == "auto" else 0
    return own + compared + settings.improve * NEIGHBOURS


def validated_risk(
    tree: SensorTree, leaves: LeafClassifiers, settings: Settings, learn: Learner
) -> Array:
    """Observed risks, times weight, on rows that decisions were not learned from."""
    return judged_risks(rehearse(tree, leaves, settings, learn), learn)


def only_leaf(name: str, market: Market) -> tuple[SensorTree, StructureReport]:
    """The tree that buys nothing, where no sensor can save as much as it costs."""
    tree = SensorTree(Leaf(market.free()))
    report = report_of_built(name, tree, market.sensors)
    return tree, replace(report, stopped="no sensor can be worth its price")
