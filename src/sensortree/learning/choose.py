"""Choose the tree: given by the user, built, or learned and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import ParameterError
from sensortree.learning.improvement import NEIGHBOURS, improve_structure
from sensortree.learning.learned import Learner
from sensortree.learning.pose import pose
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings, named_root
from sensortree.learning.sizing import cut_back
from sensortree.learning.validated import Rehearsed, per_observation, rehearse
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.sensors.market import Market
from sensortree.sensors.sensor_set import SensorSet
from sensortree.structure import (
    cascade_tree,
    check_tree_fits,
    exhaustive_leaves,
    exhaustive_tree,
    prune,
)
from sensortree.structure.report import StructureReport, report_of_built
from sensortree.structure.search import find_root, run_search
from sensortree.structure.search import most_steps as most_search_steps
from sensortree.tree.paths import check_tree_is_allowed
from sensortree.tree.tree import Leaf, SensorTree
from sensortree.types import Array

# structure="auto" is exhaustive up to this many leaves; else these are searched for, and
# compared with a cascade.
EXHAUSTIVE = 16
CANDIDATES = ("chain", "grown")


@dataclass(frozen=True, eq=False)
class Chosen:
    """The tree, how it was found, and its decisions on held-out rows, if they were judged.

    Attributes
    ----------
    tree : SensorTree
    report : StructureReport
    rehearsed : Rehearsed or None
    """

    tree: SensorTree
    report: StructureReport
    rehearsed: Rehearsed | None = None


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


def cheap_root(settings: Settings, market: Market) -> frozenset[str]:
    """Sensors named by the user, or else the free ones, or else the cheapest."""
    named = named_root(settings, market)
    if named is not None:
        return named
    free = market.free()
    return free or frozenset(cheapest_order(market, frozenset())[:1])


def learn_structure(prepared: Prepared, settings: Settings, learn: Learner) -> Chosen:
    """Run the search asked for, or several, of which the least validated risk wins."""
    leaves, cost_weight = prepared.leaves, settings.cost_weight
    sensors = leaves.data.sensors
    market = leaves.data.market(settings.max_cost)
    named = named_root(settings, market)
    root = None if named is None else frozenset(map(sensors.index, named))
    worth_most = leaves.data.loss.largest
    if named is None and cost_weight * market.least_price() >= worth_most:
        return Chosen(*only_leaf(settings.structure, market))
    search = prepared.search
    if settings.structure == "branched":
        return cut_to_size(prepared, settings, learn, root)
    if settings.structure != "auto":
        return Chosen(*run_search(search, settings.structure, cost_weight, root))
    if exhaustive_leaves(len(sensors) - (len(named) if named else 1)) <= EXHAUSTIVE:
        start = find_root(search, cost_weight) if root is None else root
        known = [sensors.names[j] for j in start]
        tree = exhaustive_tree(sensors.names, known, market.next_ones)
        return Chosen(tree, report_of_built("exhaustive", tree, sensors))
    winners = prepared.neighbours and prepared.neighbours.searches
    expected = winners.expected(cost_weight) if winners else frozenset()
    found: dict[str, tuple[SensorTree, StructureReport]] = {}
    for name in CANDIDATES:
        if found and prepared.progress.stopped:
            return Chosen(*found.popitem()[1])
        if not expected or name in expected:
            found[name] = run_search(search, name, cost_weight, root)
    cascades = not expected or "cascade" in expected
    if len(sensors) <= settings.n_leaves and cascades:
        cheap = cheap_root(settings, market)
        cascade = cascade_tree(cheapest_order(market, cheap), cheap)
        found["cascade"] = cascade, report_of_built("cascade", cascade, sensors)
    if expected and len(found) == 1:
        return Chosen(*found.popitem()[1])
    masked = search.subsets.masked
    compared = search.subsets.stand_ins if masked else leaves
    rehearsed: dict[str, Rehearsed] = {}
    for name, (tree, _) in found.items():
        if prepared.progress.stopped:
            break
        with prepared.progress.watch.stage("comparing candidates"):
            rehearsed[name] = rehearse(tree, compared, settings, learn)
        prepared.progress.step("comparing", name)
    if not rehearsed:  # no time to compare
        return Chosen(*found[next(iter(found))])
    winner, validated = least_validated(
        {name: judged_risks(each, learn) for name, each in rehearsed.items()}
    )
    if winners:
        winners.add(cost_weight, winner)
    tree, report = found[winner]
    report = replace(report, validated=validated)
    if masked:  # what stood in for the classifiers is no longer good enough
        return Chosen(without_unreached(tree, compared, settings, learn), report)
    return Chosen(tree, report, rehearsed[winner])


def cut_to_size(
    prepared: Prepared,
    settings: Settings,
    learn: Learner,
    root: frozenset[int] | None,
) -> Chosen:
    """Grow a tree that branches, and cut it back to what pays on held-out rows."""
    search = prepared.search
    tree, report = run_search(search, settings.structure, settings.cost_weight, root)
    if prepared.progress.stopped:
        return Chosen(tree, report)
    masked = search.subsets.masked
    compared = search.subsets.stand_ins if masked else prepared.leaves
    with prepared.progress.watch.stage("comparing candidates"):
        grown = rehearse(tree, compared, settings, learn)
        kept = cut_back(grown)
    risks = {"grown": grown, "cut back": kept}
    validated = {n: float(judged_risks(r, learn).mean()) for n, r in risks.items()}
    report = replace(report, validated=validated)
    left = kept.posed.problem.tree
    return Chosen(left, report, None if masked else kept)


def most_steps(settings: Settings, n_sensors: int) -> int:
    """Steps that choosing a tree may tell of."""
    if not settings.learns_structure:
        return 0
    searches = CANDIDATES if settings.structure == "auto" else (settings.structure,)
    own = sum(most_search_steps(s, n_sensors, settings.n_leaves) for s in searches)
    compared = len(CANDIDATES) + 1 if settings.structure == "auto" else 0
    return own + compared + settings.improve * NEIGHBOURS


def validated_risk(
    tree: SensorTree, leaves: LeafClassifiers, settings: Settings, learn: Learner
) -> Array:
    """Observed risks, times weight, on rows that decisions were not learned from."""
    return judged_risks(rehearse(tree, leaves, settings, learn), learn)


def judged_risks(rehearsed: Rehearsed, learn: Learner) -> Array:
    """Risks of held-out rows; if none are, of those that decisions are learned from."""
    if rehearsed.parts:
        return rehearsed.risks()
    posed = rehearsed.posed
    risks = posed.observed.risks(learn(posed.problem, posed.observed).coef)
    return per_observation(risks, rehearsed.observations)


def without_unreached(
    tree: SensorTree, leaves: LeafClassifiers, settings: Settings, learn: Learner
) -> SensorTree:
    """Take leaves out that no row reaches, unless all rows reach the same one.

    Whether one leaf does for all is for the classifiers themselves to say.
    """
    visits = np.bincount(routed(tree, leaves, settings, learn), minlength=tree.n_leaves)
    return prune(tree, visits)[0] if (visits > 0).sum() > 1 else tree


def least_validated(risks: dict[str, Array]) -> tuple[str, dict[str, float]]:
    """The candidate of the least mean risk, and all of their means.

    An order that was not learned, "cascade", is left only for what is clearly better.
    """
    validated = {name: float(risk.mean()) for name, risk in risks.items()}
    winner = min(validated, key=validated.__getitem__)
    if "cascade" in risks and winner != "cascade":
        lead = risks["cascade"] - risks[winner]
        if lead.mean() < lead.std() / np.sqrt(len(lead)):
            winner = "cascade"
    return winner, validated


def routed(
    tree: SensorTree, leaves: LeafClassifiers, settings: Settings, learn: Learner
) -> NDArray[np.intp]:
    """The leaf that each training row reaches when decisions are learned from all."""
    posed = pose(tree, leaves, settings)
    coef = learn(posed.problem, posed.observed).coef
    leaf = tree.route(posed.problem.margins(coef))
    first, _ = leaves.data.distinct()
    return np.repeat(leaf, np.diff(np.r_[first, len(leaves.data.y)]))


def only_leaf(name: str, market: Market) -> tuple[SensorTree, StructureReport]:
    """The tree that buys nothing, where no sensor can save as much as it costs."""
    tree = SensorTree(Leaf(market.free()))
    report = report_of_built(name, tree, market.sensors)
    return tree, replace(report, stopped="no sensor can be worth its price")


def cheapest_order(market: Market, known: frozenset[str]) -> list[str]:
    """Sensors by increasing cost, as far as they may be bought one after another."""
    order: list[str] = []
    while names := market.next_ones(known):
        order.append(
            min(names, key=lambda n: market.sensors.costs[market.sensors.index(n)])
        )
        known |= {order[-1]}
    return order
