"""Which search gives the best tree: all are judged on rows not learned from, cheaply first.

Where a screen can stand in for the leaf classifiers, trees are first compared by what it
says; only those that are not very clearly worse get classifiers of their own. For boosted
leaves of few rows the screen's word is final.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np

from sensortree.learning.learned import Learner
from sensortree.learning.pose import pose
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings, named_root
from sensortree.learning.trimming import trim
from sensortree.learning.validated import Rehearsed, rehearse
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.fitting import is_linear
from sensortree.sensors.market import Market
from sensortree.structure import (
    cascade_tree,
    exhaustive_leaves,
    exhaustive_tree,
    prune,
)
from sensortree.structure.algorithm1 import Subset
from sensortree.structure.report import StructureReport, report_of_built
from sensortree.structure.search import (
    StructureSearch,
    find_root,
    run_search,
)
from sensortree.structure.shop import Breadth
from sensortree.tree.tree import Node, SensorTree
from sensortree.types import Array, Rows

# Searches whose trees are compared; an exhaustive tree is too, up to this many leaves.
# Where no screen is fair, none can order a chain either. Where sensors are too many for
# a chain of all and rows few, an order by another kind of classifier is soon compared too.
CANDIDATES = ("chain", "grown", "branched")
UNSCREENED = ("backward", "grown", "branched")
FEW_ROWS = 2_000
EXHAUSTIVE = 16
# Trees that are larger than most data can pay for.
TRIMMED = ("branched", "exhaustive")
# Standard errors by which a tree must be better, and by which the screen's word is taken.
CLEARLY, VERY_CLEARLY = 1.0, 5.0
# Standard errors by which the screen must find a decision to lower the risk: what it finds
# to do little harm is for the classifiers to judge.
HARMFUL = -0.5
# Folds that are held out to see whether a tree is worth growing; standard errors by which
# one that is behind a rival of no more leaves is not.
GLANCES, FAR_BEHIND = 2, 3.0
# What each branch must add in a narrow tree, and its leaves at most, where it is compared
# with a wide one; the same in wider trees than that, each compared if the last was better.
NARROW, SMALL = Breadth(4.0, share=0.05), 16
WIDER = (Breadth(2.0), Breadth(1.0))
# Parts of the prices at which trees are grown where hardly anything is bought at them, and
# leaves that are hardly any.
CHEAPER, HARDLY_ANY = (0.75, 0.5, 0.25), 2

Found = dict[str, tuple[SensorTree, StructureReport]]


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


def best_of_searches(
    prepared: Prepared, settings: Settings, learn: Learner, root: Subset | None
) -> Chosen:
    """The tree of the least validated risk among those of several searches."""
    search, subsets = prepared.search, prepared.search.subsets
    quick, masked, fair = subsets.stand_ins, subsets.masked, subsets.fair
    winners = prepared.neighbours and prepared.neighbours.searches
    expected = winners.expected(settings.cost_weight) if winners else frozenset[str]()
    glances = quick is not None and not masked and search.n_exact is not None
    first = replace(search, n_exact=0) if glances else search
    found = searched(first, prepared, settings, learn, root, expected)
    if not found:  # what won beside is no candidate at this cost weight
        expected = frozenset()
        found = searched(first, prepared, settings, learn, root, expected)
    if glances and quick is not None and not prepared.progress.stopped:
        found = promising(found, quick, prepared, settings, learn)
        if "chain" in found:  # with its own classifiers its order may be much better
            found["chain"] = run_search(search, "chain", settings.cost_weight, root)
    if expected and len(found) == 1:
        return Chosen(*found.popitem()[1])
    if not subsets.screens and quick is not None and not prepared.progress.stopped:
        screened = {name: pair for name, pair in found.items() if name != "backward"}
        unscreened = {name: pair for name, pair in found.items() if name == "backward"}
        left = promising(screened, quick, prepared, settings, learn)
        found = unscreened | {
            name: (without_unreached(tree, quick, settings, learn), report)
            for name, (tree, report) in left.items()
        }
    rehearsed: dict[str, Rehearsed] = {}
    judged = judges(prepared)
    for name, (tree, _) in found.items():
        if prepared.progress.stopped:
            break
        with prepared.progress.watch.stage("comparing candidates"):
            each = rehearse(tree, judged, settings, learn)
            rehearsed[name] = trim(each) if name in TRIMMED else each
        prepared.progress.step("comparing", name)
    if not rehearsed:  # no time to compare
        return Chosen(*found[next(iter(found))])
    winner, validated = least_validated(
        {name: judged_risks(each, learn) for name, each in rehearsed.items()},
        TRIMMED if masked else (*TRIMMED, "backward"),
    )
    if winners:
        winners.add(settings.cost_weight, winner)
    report = replace(found[winner][1], validated=validated)
    tree = rehearsed[winner].posed.problem.tree
    if fair:  # what stood in for the classifiers is no longer good enough
        tree = without_unreached(tree, judged, settings, learn)
    own = judged is prepared.leaves
    return Chosen(tree, report, rehearsed[winner] if own else None)


def judges(prepared: Prepared) -> LeafClassifiers:
    """What trees are compared by: their classifiers, or what is quicker and fair.

    Boosted leaves take long: of very many rows, those that searches look at must do.
    """
    subsets = prepared.search.subsets
    if subsets.stand_ins is not None and subsets.fair:
        return subsets.stand_ins
    return subsets.leaves if subsets.masked else prepared.leaves


def searched(
    search: StructureSearch,
    prepared: Prepared,
    settings: Settings,
    learn: Learner,
    root: Subset | None,
    expected: frozenset[str],
) -> Found:
    """Trees of all searches, or of those expected to win, as far as time allows.

    Where nothing is held out, nothing says how large a tree may be: few sensors then have
    the exhaustive tree, and no tree that branches is grown.
    """
    sensors = prepared.leaves.data.sensors
    market = prepared.leaves.data.market(settings.max_cost)
    validates = bool((prepared.leaves.data.fold >= 0).any())
    found: Found = {}

    def wanted(name: str) -> bool:
        return not expected or name in expected

    every = exhaustive_candidate(search, settings, root, market)
    if every is not None and not validates:
        return {"exhaustive": (every, report_of_built("exhaustive", every, sensors))}
    # The exhaustive tree has all chains within it, and all that grow from its root.
    names: tuple[str, ...] = CANDIDATES if search.subsets.screens else UNSCREENED
    few = len(search.subsets.data.distinct()[0]) <= FEW_ROWS
    many = len(sensors) > search.most_leaves("chain")
    if validates and few and many and is_linear(search.subsets.leaves.classifier):
        names = (*names, "backward")
    for name in names if every is None else ("branched",):
        if not wanted(name) or (name == "branched" and not validates):
            continue
        if found and prepared.progress.stopped:
            return found
        rivals = [tree for tree, _ in found.values()]
        found[name] = grow(name, search, prepared, settings, learn, root, rivals)
    if every is not None and wanted("exhaustive"):
        found["exhaustive"] = every, report_of_built("exhaustive", every, sensors)
    if wanted("cascade") and not many:
        cheap = cheap_root(settings, market)
        cascade = cascade_tree(cheapest_order(market, cheap), cheap)
        found["cascade"] = cascade, report_of_built("cascade", cascade, sensors)
    return found


def exhaustive_candidate(
    search: StructureSearch, settings: Settings, root: Subset | None, market: Market
) -> SensorTree | None:
    """The tree of all orders, if sensors are few: of all, or of those after the best."""
    names = market.sensors.names
    start = search.subsets.numbered(market.free()) if root is None else root
    one_less = exhaustive_leaves(len(names) - 1) <= EXHAUSTIVE
    many = exhaustive_leaves(len(names) - len(start)) > EXHAUSTIVE
    if root is None and many and one_less:
        start = find_root(search, settings.cost_weight)
    if exhaustive_leaves(len(names) - len(start)) > EXHAUSTIVE:
        return None
    return exhaustive_tree(names, [names[j] for j in start], market.next_ones)


def grow(
    name: str,
    search: StructureSearch,
    prepared: Prepared,
    settings: Settings,
    learn: Learner,
    root: Subset | None,
    rivals: Sequence[SensorTree] = (),
) -> tuple[SensorTree, StructureReport]:
    """Run a search; one that branches at a price that shows what pays in the end.

    If hardly anything is bought, trees are grown as if prices were lower: they are judged
    at the prices there are. None is grown on that is far behind a smaller rival.
    """
    weight = settings.cost_weight
    if name != "branched":
        return run_search(search, name, weight, root)

    glance = Glance(prepared, settings, learn, tuple(rivals))

    def at_price(part: float) -> tuple[float, tuple[SensorTree, StructureReport]]:
        return as_wide_as_pays(search, part * weight, glance, root)

    least, grown = at_price(1.0)
    # What pays only after many purchases is not seen two purchases ahead.
    for part in CHEAPER:
        if grown[0].n_leaves > HARDLY_ANY or prepared.progress.stopped:
            break
        risk, found = at_price(part)
        if risk < least:
            least, grown = risk, found
    return grown


def as_wide_as_pays(
    search: StructureSearch, price: float, glance: Glance, root: Subset | None
) -> tuple[float, tuple[SensorTree, StructureReport]]:
    """Grow a tree that branches while its risk on held-out rows falls; and that risk.

    A tree of many branches must be better than a small one of few; if it is, one of more
    branches is grown, and so on.
    """
    few = min(SMALL, search.most_leaves("branched"))

    @cache
    def to_beat() -> float:
        small = replace(search, breadth=NARROW, n_leaves=few)
        tree, _ = run_search(small, "branched", price, root)
        return float(glance.risks(tree).mean())

    def grown_by(
        breadth: Breadth, goes_on: Callable[[Sized, SensorTree], bool]
    ) -> tuple[Array, tuple[SensorTree, StructureReport]]:
        asked = replace(
            search, breadth=breadth, goes_on=partial(goes_on, Sized(glance))
        )
        found = run_search(asked, "branched", price, root)
        return glance.risks(found[0]), found

    def beats_narrow(sized: Sized, tree: SensorTree) -> bool:
        too_wide = tree.n_leaves >= few and branches(tree)
        return sized.falls(tree) and not (too_wide and sized.last > to_beat())

    risks, grown = grown_by(search.breadth, beats_narrow)
    least = float(risks.mean())
    if not branches(grown[0]) or glance.far_behind(grown[0], risks) or glance.stopped:
        return least, grown
    if least > to_beat():
        risks, grown = grown_by(NARROW, Sized.falls)
        return float(risks.mean()), grown
    for breadth in WIDER:
        risks, found = grown_by(breadth, Sized.falls)
        if risks.mean() >= least or glance.stopped:
            break
        least, grown = float(risks.mean()), found
    return least, grown


@dataclass(eq=False)
class Glance:
    """Trees judged on some held-out rows, by what stands in for their classifiers.

    Attributes
    ----------
    prepared : Prepared
    settings : Settings
    learn : Learner
    rivals : tuple of SensorTree
        Trees that were found otherwise.
    """

    prepared: Prepared
    settings: Settings
    learn: Learner
    rivals: tuple[SensorTree, ...] = ()

    @property
    def stopped(self) -> bool:
        """Whether time has run out."""
        return bool(self.prepared.progress.stopped)

    @cached_property
    def of_rivals(self) -> list[tuple[int, Array]]:
        """Leaves and risks of the rivals."""
        return [(tree.n_leaves, self.risks(tree)) for tree in self.rivals]

    def risks(self, tree: SensorTree) -> Array:
        """Risks of a tree, trimmed."""
        leaves = self.prepared.search.subsets.stand_ins or self.prepared.leaves
        with self.prepared.progress.watch.stage("comparing candidates"):
            rehearsed = rehearse(tree, leaves, self.settings, self.learn, GLANCES)
            return judged_risks(trim(rehearsed), self.learn)

    def far_behind(self, tree: SensorTree, risks: Array) -> bool:
        """Whether a rival of no more leaves is clearly better than a tree of such risks."""
        return any(
            leaves <= tree.n_leaves and standard_errors(risks - rival) > FAR_BEHIND
            for leaves, rival in self.of_rivals
        )


@dataclass(eq=False)
class Sized:
    """Whether a tree that grows is worth growing.

    Attributes
    ----------
    glance : Glance
    last : float
        Risk of the tree that was shown last.
    """

    glance: Glance
    last: float = np.inf

    def falls(self, tree: SensorTree) -> bool:
        """Whether the risk is below that of the tree that was shown before."""
        if self.glance.stopped:
            return False
        risks = self.glance.risks(tree)
        before, self.last = self.last, float(risks.mean())
        return self.last < before and not self.glance.far_behind(tree, risks)


def branches(tree: SensorTree) -> bool:
    """Whether different purchases follow each other at some vertex."""
    return any(
        node.negative.sensors != node.sensors or isinstance(node.negative, Node)
        for node in tree.nodes
    )


def promising(
    found: Found,
    quick: LeafClassifiers,
    prepared: Prepared,
    settings: Settings,
    learn: Learner,
) -> Found:
    """Candidates that the screen does not find very clearly worse than the best."""
    rehearsed: dict[str, Rehearsed] = {}
    with prepared.progress.watch.stage("comparing candidates"):
        for name, (tree, _) in found.items():
            each = rehearse(tree, quick, settings, learn)
            rehearsed[name] = trim(each, HARMFUL) if name in TRIMMED else each
    risks = {name: judged_risks(each, learn) for name, each in rehearsed.items()}
    best = min(risks, key=lambda name: float(risks[name].mean()))
    behind = {name: standard_errors(risks[name] - risks[best]) for name in found}
    return {
        name: (rehearsed[name].posed.problem.tree, found[name][1])
        for name in found
        if behind[name] <= VERY_CLEARLY
    }


def standard_errors(lead: Array) -> float:
    """Mean of what one risk leads another by, in standard errors."""
    error = float(lead.std() / np.sqrt(len(lead)))
    return float(lead.mean()) / error if error else 0.0


def trimmed_branches(
    prepared: Prepared, settings: Settings, learn: Learner, root: Subset | None
) -> Chosen:
    """Grow a tree that branches, and trim it to what pays on held-out rows."""
    tree, report = grow("branched", prepared.search, prepared, settings, learn, root)
    subsets = prepared.search.subsets
    if prepared.progress.stopped:
        return Chosen(tree, report)
    judged = judges(prepared)
    with prepared.progress.watch.stage("comparing candidates"):
        if subsets.stand_ins is not None:
            quick = trim(rehearse(tree, subsets.stand_ins, settings, learn), HARMFUL)
            tree = quick.posed.problem.tree
        grown = rehearse(tree, judged, settings, learn)
        kept = trim(grown)
    risks = {"grown": grown, "trimmed": kept}
    validated = {n: float(judged_risks(r, learn).mean()) for n, r in risks.items()}
    report = replace(report, validated=validated)
    own = judged is prepared.leaves
    return Chosen(kept.posed.problem.tree, report, kept if own else None)


def least_validated(
    risks: dict[str, Array], doubted: tuple[str, ...] = TRIMMED
) -> tuple[str, dict[str, float]]:
    """The candidate of the least mean risk, and all of their means.

    What was trimmed on the same rows looks better than it is, and an order that another
    kind of classifier found is one more chance to look good: what is doubted must be
    clearly better than what is not. So must all be than an order that was not learned,
    "cascade".
    """
    validated = {name: float(risk.mean()) for name, risk in risks.items()}
    winner = min(validated, key=validated.__getitem__)
    learned = [name for name in risks if name not in (*doubted, "cascade")]
    for rivals in (learned if winner in doubted else [], ["cascade"]):
        among = [name for name in rivals if name in risks]
        if among:
            rival = min(among, key=validated.__getitem__)
            lead = standard_errors(risks[rival] - risks[winner])
            winner = winner if lead >= CLEARLY else rival
    return winner, validated


def judged_risks(rehearsed: Rehearsed, learn: Learner) -> Array:
    """Risks of held-out rows; if none are, of those that decisions are learned from."""
    if rehearsed.parts:
        return rehearsed.risks()
    posed = rehearsed.posed
    risks = posed.observed.risks(learn(posed.problem, posed.observed).coef)
    return rehearsed.observations.each(risks)


def without_unreached(
    tree: SensorTree, leaves: LeafClassifiers, settings: Settings, learn: Learner
) -> SensorTree:
    """Take leaves out that no row reaches, unless all rows reach the same one.

    Whether one leaf does for all is for the classifiers themselves to say.
    """
    visits = np.bincount(routed(tree, leaves, settings, learn), minlength=tree.n_leaves)
    return prune(tree, visits)[0] if (visits > 0).sum() > 1 else tree


def routed(
    tree: SensorTree, leaves: LeafClassifiers, settings: Settings, learn: Learner
) -> Rows:
    """The leaf that each training row reaches when decisions are learned from all."""
    posed = pose(tree, leaves, settings)
    coef = learn(posed.problem, posed.observed).coef
    leaf = tree.route(posed.problem.margins(coef))
    first, _ = leaves.data.distinct()
    return np.repeat(leaf, np.diff(np.r_[first, len(leaves.data.y)]))


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
