"""Fit: training rows → policy, as the paper's abstract tells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sensortree.learning.baselines import fit_baselines
from sensortree.learning.calibrating import Calibrated, calibrate_leaves
from sensortree.learning.choose import Chosen, choose_recipe
from sensortree.learning.detours import learn_detours
from sensortree.learning.held_out import nothing_bought, outcome_of, rehearse
from sensortree.learning.joint import certificate_speaks_of
from sensortree.learning.learned import Learned, Learner
from sensortree.learning.pose import Posed, answers, costs_of_leaves, losses, pose
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings
from sensortree.learning.timing import Mark
from sensortree.learning.worth import never_pay, price_advice
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.compiling import compile_classifier
from sensortree.logs.continuing import sets_beyond
from sensortree.policy.comparison import NOTHING, ONE_SET, Comparison
from sensortree.policy.decisions import DecisionFunction
from sensortree.policy.flow import measure_flow
from sensortree.policy.policy import Policy
from sensortree.program.routing import RoutingProblem
from sensortree.progress import Stopwatch
from sensortree.sensors.loss import Loss
from sensortree.sensors.market import Market
from sensortree.structure import prune, with_exits
from sensortree.structure.report import StructureReport
from sensortree.tree.tree import Leaf, Node, SensorTree
from sensortree.types import Rows

Chooser = Callable[[Prepared, Settings, Learner], Chosen]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit gives.

    Attributes
    ----------
    policy : Policy
    structure_report : StructureReport
    evidence : mapping of str to object
        What else the method shows of it, by the name of the attribute.
    """

    policy: Policy
    structure_report: StructureReport
    evidence: Mapping[str, Any]


def fit_policy(
    prepared: Prepared,
    settings: Settings,
    learn: Learner,
    choose: Chooser = choose_recipe,
    learn_less: Learner | None = None,
) -> Fitted:
    """Structure, leaf classifiers, risk, decisions, policy: the story of a fit.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
    learn : Learner
        Learns decisions on a tree.
    choose : callable
        Chooses the tree, and the kind of its leaves.
    learn_less : Learner, default=None
        Learns decisions that are only compared, on a part of the rows; by default as
        those that are kept.
    """
    progress = prepared.progress
    watch, mark = progress.watch, Mark.now(progress.watch)
    learn_less = counted(learn if learn_less is None else learn_less, watch)
    chosen = choose(prepared, settings, learn_less)
    leaves = chosen.leaves or prepared.leaves
    progress.expect(left=2)
    with watch.stage("decisions"):
        tree = with_exits(chosen.tree) if leaves.data.may_refer else chosen.tree
        posed = pose(tree, leaves, settings)
        progress.step("leaf classifiers")
        learned = counted(learn, watch)(posed.problem, posed.observed)
    progress.step("decisions")
    return finish(prepared, settings, chosen, posed, learned, learn_less, mark)


def finish(
    prepared: Prepared,
    settings: Settings,
    chosen: Chosen,
    posed: Posed,
    learned: Learned,
    learn_less: Learner,
    mark: Mark,
    visits: Rows | None = None,
) -> Fitted:
    """Prune what no row reaches, calibrate, learn detours, and put the policy together.

    Parameters
    ----------
    prepared : Prepared
    settings : Settings
    chosen : Chosen
    posed : Posed
        The tree with its problem.
    learned : Learned
    learn_less : Learner
        Learns decisions that are only compared.
    mark : Mark
        When the fit began.
    visits : ndarray of shape (n_leaves,), default=None
        How many rows reach each leaf, where these are more than the problem has.
    """
    leaves, watch = chosen.leaves or prepared.leaves, prepared.progress.watch
    tree = posed.problem.tree
    with watch.stage("finishing"):
        posed, learned = without_unreached(posed, learned, settings, visits)
        left = posed.problem.tree
        learned = said_of_certificate(learned, tree, left)
        compared = of_delivered(chosen, left, leaves, settings, learn_less)
        calibrated = None
        if settings.calibrate_leaves:
            calibrated = calibrate_leaves(leaves, posed, learned)
            said = calibrated.report
            if compared is not None and compared.held_out is not None and said:
                score = said.carried_over(compared.held_out)
                compared = replace(compared, held_out=score)
        policy = assemble(leaves, posed, learned, settings, calibrated)
        too_dear = never_pay(*at_stake(leaves, settings), settings.cost_weight)
        log = leaves.data.continued
        beyond = [] if log is None else sets_beyond(log)
        report = replace(
            chosen.report,
            pruned=tree.n_leaves - left.n_leaves if settings.learns_structure else 0,
            never_pay=list(too_dear),
            out_of_reach=beyond,
        )
    outages = None
    if settings.outages and prepared.winners is None:
        with watch.stage("detours"):
            here = prepared.with_leaves(leaves)
            leaf = left.route(posed.problem.margins(learned.coef))
            detours, outages = learn_detours(here, policy, leaf, settings, learn_less)
            policy = replace(policy, detours=detours)
    evidence = {
        "training_cost": training_cost(leaves, posed, learned),
        **learned.evidence,
        "outage_report": outages,
        "comparison": compared,
        "calibration_report": calibrated.report if calibrated else None,
        "fit_report": mark.report(watch, len(policy.classifiers)),
    }
    return Fitted(policy, report, evidence)


def of_delivered(
    chosen: Chosen,
    left: SensorTree,
    leaves: LeafClassifiers,
    settings: Settings,
    learn: Learner,
) -> Comparison | None:
    """What was compared, with the score of the tree that is left.

    If one leaf is left of a tree that was chosen, that is one set for all, or nothing.
    """
    compared = chosen.comparison
    if compared is None or left.n_nodes or not chosen.tree.n_nodes:
        return compared
    known = left.root.sensors
    outcome = outcome_of(rehearse(left, leaves, settings, learn), leaves)
    nothing = known == nothing_bought(leaves, settings)
    return replace(
        compared,
        chosen=NOTHING if nothing else ONE_SET,
        held_out=outcome.score(compared.optimism),
    )


def said_of_certificate(
    learned: Learned, certified: SensorTree, kept: SensorTree
) -> Learned:
    """Let a certificate say which decisions it speaks of."""
    certificate = learned.evidence.get("certificate")
    report = learned.evidence.get("decision_report")
    if certificate is None or report is None:
        return learned
    speaks = certificate_speaks_of(certified, kept, report)
    evidence = {
        **learned.evidence,
        "certificate": replace(certificate, speaks_of=speaks),
    }
    return Learned(learned.coef, evidence)


def at_stake(leaves: LeafClassifiers, settings: Settings) -> tuple[Market, Loss, int]:
    """What may be bought, what mistakes cost, and how many classes there are."""
    data = leaves.data
    return data.market(settings.max_cost), data.loss, len(data.classes)


def said_of_prices(
    fitted: Fitted, leaves: LeafClassifiers, settings: Settings
) -> str | None:
    """What a user should know of sensors too dear to pay, or of a model that buys none.

    None if there is nothing to say. A tree of the user's own may well buy nothing.
    """
    market, loss, n_classes = at_stake(leaves, settings)
    free = market.free()
    nothing = settings.learns_structure and fitted.policy.tree.sensors <= free
    compared = fitted.evidence.get("comparison")
    return price_advice(
        market,
        loss,
        n_classes,
        settings.cost_weight,
        buys_nothing=nothing and len(free) < len(market.sensors),
        informative=compared is None or compared.informative,
    )


def counted(learn: Learner, watch: Stopwatch) -> Learner:
    """Count how often decisions are learned; a lone leaf has none."""

    def learn_and_count(problem: RoutingProblem, observed: RoutingProblem) -> Learned:
        watch.counts["learned"] += bool(problem.tree.n_nodes)
        return learn(problem, observed)

    return learn_and_count


def without_unreached(
    posed: Posed, learned: Learned, settings: Settings, visits: Rows | None = None
) -> tuple[Posed, Learned]:
    """Take leaves out that no training example reaches, and nodes with one way left.

    A tree of the user's own keeps its leaves, less the exits to a person that nobody
    takes.
    """
    reached = visits_of(posed, learned) if visits is None else visits
    if not settings.learns_structure:
        own = [not leaf.refers for leaf in posed.problem.tree.leaves]
        reached = reached + own
    return with_leaves(posed, learned, reached)


def visits_of(posed: Posed, learned: Learned) -> Rows:
    """How many distinct training examples reach each leaf, (n_leaves,)."""
    problem = posed.problem
    leaf = problem.tree.route(problem.margins(learned.coef))
    return np.bincount(leaf, minlength=problem.tree.n_leaves)


def with_leaves(posed: Posed, learned: Learned, visits: Rows) -> tuple[Posed, Learned]:
    """Keep the leaves that are visited, and the nodes that are left between them."""
    problem = posed.problem
    pruned, nodes = prune(problem.tree, visits)
    evidence = dict(learned.evidence)
    if evidence.get("fallback_leaf") is not None and not len(nodes):
        evidence["fallback_leaf"] = 0  # the only leaf that is left
    return (
        Posed(
            [posed.features[j] for j in nodes],
            problem.on_subtree(pruned, nodes, visits > 0),
            posed.observed.on_subtree(pruned, nodes, visits > 0),
        ),
        Learned([learned.coef[j] for j in nodes], evidence),
    )


def assemble(
    leaves: LeafClassifiers,
    posed: Posed,
    learned: Learned,
    settings: Settings,
    calibrated: Calibrated | None = None,
) -> Policy:
    """Put tree, decisions and leaf classifiers together, with where examples went."""
    data, tree = leaves.data, posed.problem.tree
    rows, weight = data.distinct()
    needed = judged_subsets(tree)
    leaves.judge(needed)
    leaf_answers = answers(tree.leaves, leaves)[rows]
    leaf_losses = losses(tree.leaves, leaves)[rows]
    if calibrated is not None and calibrated.leaves is not None:
        said, y = calibrated.judged, data.y[rows]
        leaf_answers = np.stack([data.loss.answer(p) for p in said], axis=1)
        answered = np.stack([data.loss.judge(y, p) for p in said], axis=1)
        refers = np.array([bool(leaf.refers) for leaf in tree.leaves])
        leaf_losses = np.where(refers, leaf_losses, answered)
    flow = measure_flow(
        tree,
        posed.problem.margins(learned.coef),
        leaf_answers,
        answers(tree.nodes, leaves)[rows],
        leaf_losses,
        losses(tree.nodes, leaves)[rows],
        data.y[rows],
        len(data.classes),
        weight,
    )
    fitted = leaves.fit(needed)
    classifiers = {subset: compile_classifier(fitted[subset]) for subset in fitted}
    return Policy(
        data.reader,
        tree,
        tuple(map(DecisionFunction, posed.features, learned.coef)),
        classifiers,
        data.classes,
        flow,
        data.loss,
        float(settings.cost_weight),
        None if settings.max_cost is None else float(settings.max_cost),
        calibration=None if calibrated is None else calibrated.leaves,
        baselines=fit_baselines(leaves, settings, classifiers),
        referral=data.referral,
    )


def training_cost(leaves: LeafClassifiers, posed: Posed, learned: Learned) -> float:
    """Mean price of the ways that training rows take, judged out of fold."""
    problem = posed.problem
    leaf = problem.tree.route(problem.margins(learned.coef))
    paid = costs_of_leaves(problem.tree, leaves)[np.arange(len(leaf)), leaf]
    return float(np.average(paid, weights=problem.weight))


def judged_subsets(tree: SensorTree) -> list[frozenset[str]]:
    """Subsets that need a classifier: of leaves, of nodes, and of nothing at all."""
    vertices: list[Leaf | Node] = [*tree.leaves, *tree.nodes]
    known = [vertex.sensors for vertex in vertices]
    return list(dict.fromkeys([*known, frozenset()]))
