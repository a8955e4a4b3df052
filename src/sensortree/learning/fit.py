"""Fit: training rows → policy, as the paper's abstract tells it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sensortree.learning.calibrating import Calibrated, calibrate_leaves
from sensortree.learning.choose import Chosen, choose_recipe
from sensortree.learning.detours import learn_detours
from sensortree.learning.held_out import decide_held_out, nothing_bought, outcome_of
from sensortree.learning.joint import Learned, Learner, with_scope
from sensortree.learning.pose import (
    Posed,
    answers,
    costs_of_leaves,
    judged_subsets,
    losses,
    posable,
    pose,
)
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings
from sensortree.learning.worth import never_pay, price_advice, same_answers_advice
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.compiling import compile_classifier
from sensortree.leaves.logistic import Solution
from sensortree.logs.continuing import sets_beyond
from sensortree.policy.about import (
    EVERYTHING,
    FIXED,
    NOTHING,
    ONE_SET,
    Baseline,
    Comparison,
)
from sensortree.policy.decisions import DecisionFunction
from sensortree.policy.flow import measure_flow
from sensortree.policy.policy import Policy
from sensortree.program.risk import RoutingProblem
from sensortree.progress import OUT_OF_TIME, TOLD_TO_STOP, Stopwatch
from sensortree.sensors.loss import Loss
from sensortree.sensors.market import Market
from sensortree.structure.search import StructureReport
from sensortree.structure.trees import prune
from sensortree.text import PlainForm, aligned
from sensortree.tree.tree import SensorTree
from sensortree.types import Rows

# From the number of classifiers that are kept.
Reporter = Callable[[int], "FitReport"]

STAGES = (
    "reading",
    "leaf choice",
    "leaf classifiers",
    "search",
    "comparing candidates",
    "decisions",
    "finishing",
    "detours",
)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit gives; `evidence` becomes attributes of the model, by their names."""

    policy: Policy
    structure_report: StructureReport
    evidence: Mapping[str, Any]


def fit_policy(
    prepared: Prepared,
    settings: Settings,
    learn: Learner,
    choose: Callable[[Prepared, Settings, Learner], Chosen] = choose_recipe,
    learn_less: Learner | None = None,
) -> Fitted:
    """Structure, leaf classifiers, risk, decisions, policy: the story of a fit.

    `choose` takes the tree, and the kind of its leaves. `learn` learns decisions on it;
    `learn_less` those that are only compared, on a part of the rows, if that is enough.
    """
    progress = prepared.progress
    watch, report = progress.watch, report_from_now(progress.watch)
    learn_less = counted(learn if learn_less is None else learn_less, watch)
    chosen = choose(prepared, settings, learn_less)
    leaves = chosen.leaves or prepared.leaves
    progress.expect(left=2)
    with watch.stage("decisions"):
        posed = pose(posable(chosen.tree, leaves), leaves, settings)
        progress.step("leaf classifiers")
        learned = counted(learn, watch)(posed.problem, posed.observed)
    progress.step("decisions")
    return finish(prepared, settings, chosen, posed, learned, learn_less, report)


def finish(
    prepared: Prepared,
    settings: Settings,
    chosen: Chosen,
    posed: Posed,
    learned: Learned,
    learn_less: Learner,
    report: Reporter,
    visits: Rows | None = None,
) -> Fitted:
    """Prune what no row reaches, calibrate, learn detours, and put the policy together.

    `report` is that of `report_from_now` when the fit began; `visits` says how many rows
    reach each leaf, where these are more than the problem has.
    """
    leaves, watch = chosen.leaves or prepared.leaves, prepared.progress.watch
    tree = posed.problem.tree
    with watch.stage("finishing"):
        posed, learned = without_unreached(posed, learned, settings, visits)
        left = posed.problem.tree
        learned = with_scope(learned, tree, left)
        compared = of_delivered(chosen, left, leaves, settings, learn_less)
        calibrated = None
        if settings.calibrate_leaves:
            calibrated = calibrate_leaves(leaves, posed, learned)
            found = calibrated.report
            if compared is not None and compared.held_out is not None and found:
                score = found.carried_over(compared.held_out)
                compared = replace(compared, held_out=score)
        policy = assemble(leaves, posed, learned, settings, calibrated)
        problem, leaf = posed.problem, posed.problem.route(learned.coef)
        paid = costs_of_leaves(left, leaves)[np.arange(len(leaf)), leaf]
        too_dear = never_pay(*at_stake(leaves, settings), settings.cost_weight)
        log = leaves.data.continued
        beyond = [] if log is None else sets_beyond(log)
        pruned = tree.n_leaves - left.n_leaves if settings.learns_structure else 0
        structure_report = replace(
            chosen.report,
            pruned=chosen.report.pruned + pruned,
            never_pay=list(too_dear),
            out_of_reach=beyond,
        )
    outages = None
    if settings.outages and prepared.winners is None:
        with watch.stage("detours"):
            here = prepared.with_leaves(leaves)
            detours, outages = learn_detours(here, policy, leaf, settings, learn_less)
            policy = replace(policy, detours=detours)
    evidence = {
        # of the ways that training rows take, judged out of fold
        "training_cost": float(np.average(paid, weights=problem.weight)),
        **learned.evidence,
        "outage_report": outages,
        "comparison": compared,
        "calibration_report": calibrated.report if calibrated else None,
        "fit_report": report(len(policy.classifiers)),
    }
    return Fitted(policy, structure_report, evidence)


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
    seen = decide_held_out(left, leaves, settings, learn)
    outcome = outcome_of(seen, leaves, settings)
    nothing = left.root.sensors == nothing_bought(leaves, settings)
    return replace(
        compared,
        chosen=NOTHING if nothing else ONE_SET,
        held_out=outcome.score(compared.optimism),
    )


def at_stake(leaves: LeafClassifiers, settings: Settings) -> tuple[Market, Loss, int]:
    """What may be bought, what mistakes cost, and how many classes there are."""
    data = leaves.data
    return data.market(settings.max_cost), data.loss, len(data.classes)


def ended_early(
    report: StructureReport | None, compared: Comparison | None
) -> str | None:
    """Why a search ended before it was through, or some trees were not compared."""
    found = [] if report is None else [report.stopped]
    found += [] if compared is None else compared.not_compared.values()
    return next((why for why in (OUT_OF_TIME, TOLD_TO_STOP) if why in found), None)


def price_message(
    fitted: Fitted, leaves: LeafClassifiers, settings: Settings
) -> str | None:
    """What a user should know of sensors too dear to pay, or of a model that buys none.

    None if there is nothing to say. A tree of the user's own may well buy nothing.
    """
    market, loss, n_classes = at_stake(leaves, settings)
    free = market.free()
    nothing = settings.learns_structure and fitted.policy.tree.sensors <= free
    nothing = nothing and len(free) < len(market.sensors)
    compared = fitted.evidence.get("comparison")
    informative = compared is None or compared.informative
    early = ended_early(fitted.structure_report, compared)
    same = None
    if nothing and informative and early is None:
        known = nothing_bought(leaves, settings)
        same = same_answers_advice(leaves, known, settings.cost_weight)
    given = market, loss, n_classes, settings.cost_weight
    return price_advice(*given, nothing, informative, same, early)


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
    problem = posed.problem
    reached = problem.visits(learned.coef) if visits is None else visits
    if not settings.learns_structure:
        reached = reached + [not leaf.refers for leaf in problem.tree.leaves]
    pruned, nodes = prune(problem.tree, reached)
    evidence = dict(learned.evidence)
    if evidence.get("fallback_leaf") is not None and not len(nodes):
        evidence["fallback_leaf"] = 0  # the only leaf that is left
    return (
        Posed(
            [posed.features[j] for j in nodes],
            problem.on_subtree(pruned, nodes, reached > 0),
            posed.observed.on_subtree(pruned, nodes, reached > 0),
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
        proba, y = calibrated.judged, data.y[rows]
        leaf_answers = np.stack([data.loss.answer(p) for p in proba], axis=1)
        answered = np.stack([data.loss.judge(y, p) for p in proba], axis=1)
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
    classifiers = {s: compile_classifier(c) for s, c in leaves.fit(needed).items()}
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


# what a policy is compared with -----------------------------------------------------------


def fit_baselines(
    leaves: LeafClassifiers,
    settings: Settings,
    classifiers: Mapping[frozenset[str], Any],
) -> tuple[Baseline, ...]:
    """Everything bought, the best fixed set, and nothing; fitted on all training rows.

    `classifiers` are those of the policy itself.
    """
    subsets = both_ends(leaves.data.market(None))
    nothing = subsets.pop(NOTHING)
    subsets |= {FIXED: best_fixed_set(leaves, settings), NOTHING: nothing}
    return tuple(
        Baseline(name, subset, classifiers.get(subset) or _near(leaves, subset))
        for name, subset in subsets.items()
    )


def _near(leaves: LeafClassifiers, subset: frozenset[str]) -> Any:
    """A subset's classifier as judging left it, if it did; that is enough to compare.

    What a classifier of the user's own has to complain of is no news: nobody asked for it.
    """
    start = leaves.starts.get(subset)
    if isinstance(start, Solution):
        return start.scorer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile_classifier(leaves.fit([subset])[subset])


def both_ends(market: Market) -> dict[str, frozenset[str]]:
    """What "everything" and "nothing" know, wherever a policy is compared with them.

    "Everything" is all sensors, if they may be bought together; "nothing" what is free.
    """
    everything = frozenset(market.sensors.names)
    subsets = {EVERYTHING: everything} if market.allows(everything) else {}
    return {**subsets, NOTHING: market.free()}


def best_fixed_set(leaves: LeafClassifiers, settings: Settings) -> frozenset[str]:
    """Of the subsets that the fit has judged, the one of the least risk out of fold.

    Nothing is judged for it: a fit takes no longer. Of equals, the cheapest; then the
    first to be judged.
    """
    data, market = leaves.data, leaves.data.market(settings.max_cost)
    weight = data.weight / data.weight.sum()

    def risk(subset: frozenset[str]) -> tuple[float, float]:
        cost = market.mean_cost(subset)
        loss = float(weight @ leaves.lost(subset))
        return float(np.round(loss + settings.cost_weight * cost, 12)), cost

    return min(filter(market.allows, leaves.posteriors), key=risk)


# where the time went ----------------------------------------------------------------------


@dataclass(frozen=True)
class FitReport(PlainForm):
    """Where the time of a fit went, by the clock on the wall.

    Attributes
    ----------
    seconds : dict of str to float
        By stage: "reading" the rows; "leaf choice", with ``classifier="auto"``; "leaf
        classifiers", fitted and judged whenever one is first asked for; "search" for a
        tree; "comparing candidates", on held-out rows; "decisions"; "finishing", the policy
        with its flow of examples; and "detours" for outages. For a model fitted at a
        budget, "curve" too: all that was measured on held-out folds.
    n_judged : int
        Subsets of sensors whose classifier was judged out of fold.
    n_kept : int
        Classifiers that the fitted model holds.
    n_learned : int
        How often the decisions of a tree were learned, by one linear program each where
        the method has one; most of them only to be compared.

    Examples
    --------
    >>> from sensortree.results import FitReport
    >>> print(FitReport({"reading": 0.25, "search": 1.5}, 12, 3, 8))
    stage    seconds
    reading     0.25
    search      1.50
    all         1.75
    12 classifiers judged, 3 kept; decisions learned 8 times
    """

    seconds: Mapping[str, float]
    n_judged: int
    n_kept: int
    n_learned: int

    def __str__(self) -> str:
        total = sum(self.seconds.values())
        lines = [
            [name, f"{s:.2f}"] for name, s in {**self.seconds, "all": total}.items()
        ]
        return (
            f"{aligned(('stage', 'seconds'), lines)}\n"
            f"{self.n_judged} classifiers judged, {self.n_kept} kept; "
            f"decisions learned {self.n_learned} times"
        )


def report_from_now(watch: Stopwatch) -> Reporter:
    """What reports on a fit that begins now: others may have used the stopwatch before."""
    seconds, counts = dict(watch.seconds), dict(watch.counts)
    for preparing in ("reading", "leaf choice"):  # was for this fit
        seconds.pop(preparing, None)

    def report(n_kept: int) -> FitReport:
        return FitReport(
            {s: float(watch.seconds[s] - seconds.get(s, 0.0)) for s in STAGES},
            watch.counts["judged"] - counts.get("judged", 0),
            n_kept,
            watch.counts["learned"] - counts.get("learned", 0),
        )

    return report
