"""Rows in chunks to a policy: `fit_in_chunks` tells the story of such a fit.

Logistic leaf classifiers are fitted by sums over all rows, exactly; others are fitted to a
sample. Decisions and their certificate are of all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sensortree.constants import DECISION_RIDGE, LOGISTIC_TERMS
from sensortree.estimators.parameters import Program
from sensortree.learning.choose import Chosen
from sensortree.learning.fit import Fitted, Reporter, finish
from sensortree.learning.joint import ONE_LEAF, Learned, Learner, keep_best, refined
from sensortree.learning.pose import (
    Posed,
    Shown,
    believed_subsets,
    decision_parts,
    features_of,
    judged_subsets,
    leaf_risks,
    pose_with,
    seen_at,
    shown_by_all,
    shown_levels,
)
from sensortree.learning.prepare import Prepared
from sensortree.learning.settings import Settings
from sensortree.leaves.boosting import BoostedTrees
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.compiling import compile_classifier
from sensortree.leaves.logistic import (
    Fewer,
    LogisticEngine,
    RidgeLogisticRegression,
    Solution,
)
from sensortree.leaves.ridge import NONE, FoldedLabels, RidgePart, RidgeProblem
from sensortree.leaves.standardising import check_readings, n_terms_of, usable_scale
from sensortree.outofcore.chunk import FitRows
from sensortree.outofcore.readings import Ordered
from sensortree.policy.decisions import DecisionFeatures
from sensortree.program.chunks import Chunks, Within, total, totals
from sensortree.program.solution import solve_rows
from sensortree.tree.tree import SensorTree
from sensortree.types import Array, Rows

Subset = frozenset[str]
Coef = list[Array]


@dataclass(frozen=True, eq=False)
class Sample:
    """What was learned from some of the rows."""

    prepared: Prepared  # the rows, in their order, and their leaf classifiers
    chosen: Chosen  # the tree, and how it was found
    numbers: Rows  # where each row of the sample stands among all, (n_sample,)
    report: Reporter  # on what was done since the fit began

    @property
    def tree(self) -> SensorTree:
        """The tree that is learned on all rows."""
        return self.chosen.tree

    @property
    def leaves(self) -> LeafClassifiers:
        """Leaves of the sample, of the kind that was chosen."""
        return self.chosen.leaves or self.prepared.leaves


def fit_in_chunks(
    rows: Chunks,
    ordered: Ordered,
    sample: Sample,
    settings: Settings,
    program: Program,
    learn_less: Learner,
) -> Fitted:
    """Leaf classifiers, risks, decisions and certificate of all rows; then a policy.

    `rows` are chunks of FitRows. `learn_less` learns decisions that are only compared, on
    the sample.
    """
    tree, watch = sample.tree, sample.prepared.progress.watch
    needed = [*judged_subsets(tree), *believed_subsets(tree, settings)]
    with watch.stage("leaf classifiers"):
        classifiers = judge_leaves(rows, needed, sample.leaves, ordered)
    with watch.stage("decisions"):
        best = trusted_subset(rows, tree, settings, ordered)
        leaves = sampled_leaves(rows, sample, classifiers)
        features = {
            subset: fit_features(rows, subset, leaves, settings)
            for subset in dict.fromkeys(node.sensors for node in tree.nodes)
        }
        rows.note(FitRows.pose, tree, settings, features, best)
        weight, spread = total(rows.ask(FitRows.spreads)).tolist()
        automatic = DECISION_RIDGE * spread / weight
        ridge = automatic if program.l2 == "auto" else float(program.l2)
        rows.note(FitRows.open_program, program.savings)
        opened = Within(rows, "program")
        solved = solve_rows(opened, program.tol, ridge, program.l1)
        rows.note(FitRows.close_program)
        watch.counts["learned"] += bool(tree.n_nodes)
        belief = None if best is None else leaves.posteriors[best]
        risks = leaf_risks(tree, leaves, settings, belief)
        posed = pose_with(tree, leaves, settings, features, risks)
        learned = keep(rows, posed, solved.coef, ridge, weight, program)
    visits, paid = totals(rows.ask(FitRows.visits, learned.coef))
    evidence = {
        **learned.evidence,
        "certificate": solved.certificate,
        "training_cost": float(paid) / weight,
    }
    return finish(
        sample.prepared,
        settings,
        replace(sample.chosen, leaves=leaves),
        posed,
        Learned(learned.coef, evidence),
        learn_less,
        sample.report,
        visits,
    )


def trusted_subset(
    rows: Chunks, tree: SensorTree, settings: Settings, ordered: Ordered
) -> Subset | None:
    """The subset whose posterior has the least log-loss; None if the prior beats it."""
    if settings.errors != "smoothed" or not (ordered.fold >= 0).any():
        return None
    subsets = believed_subsets(tree, settings)
    lost = total(rows.ask(FitRows.log_losses, subsets))
    counts = np.bincount(ordered.y, ordered.weight)
    counts = counts[counts > 0]
    of_prior = -float(counts @ np.log(counts / counts.sum()))
    best = int(np.argmin(lost))
    return subsets[best] if lost[best] < of_prior else None


def sampled_leaves(
    rows: Chunks, sample: Sample, classifiers: dict[Subset, Any]
) -> LeafClassifiers:
    """Leaf classifiers of all rows, and what they say of the sample's, out of fold."""
    data, classifier = sample.leaves.data, sample.leaves.classifier
    parts = list(rows.ask(FitRows.posteriors, np.sort(sample.numbers)))
    judged = {s: np.concatenate([part[s] for part in parts]) for s in parts[0]}
    return LeafClassifiers(
        data,
        classifier,
        None,
        classifiers,
        judged,
        watch=sample.prepared.progress.watch,
    )


def fit_features(
    rows: Chunks, subset: Subset, leaves: LeafClassifiers, settings: Settings
) -> DecisionFeatures:
    """Centre, scale and missingness of what a node sees, of all distinct rows.

    A transformer of the user's own is fitted to the sample.
    """
    readings, likely, _ = seen_at(subset, leaves)
    first, _ = leaves.data.distinct()

    def shown() -> Shown:
        return shown_by_all(rows.ask(FitRows.shown_levels, subset))

    parts = decision_parts(settings, readings, leaves.data.y[first], shown)
    weight, added, missing = totals(rows.ask(FitRows.column_sums, subset, parts))
    weight = np.maximum(weight, np.finfo(float).tiny)
    center = added / weight
    squares = total(rows.ask(FitRows.column_squares, subset, parts, center))
    scale = usable_scale(center, np.sqrt(squares / weight))
    return features_of(parts, center, scale, missing > 0, readings, likely)


def keep(
    rows: Chunks,
    posed: Posed,
    coef: Coef,
    ridge: float,
    weight: float,
    program: Program,
) -> Learned:
    """Keep the program's decisions, refined ones, or one leaf for all.

    Decisions are refined on the sample, and all are judged on all rows. Refined ones are
    kept unless their risk is higher there than that of the program, which it cannot be
    where the sample is all rows.
    """
    tree, learned = posed.problem.tree, {"linear program": coef}
    if program.refine:
        share = posed.problem.weight.sum() / weight
        learned["refined"] = refined(posed.problem, coef, share * ridge)
    leaf = int(np.argmin(total(rows.ask(FitRows.constant_risks))))
    coefs = {**learned, ONE_LEAF: posed.observed.constant_coef(leaf)}
    risks = total(rows.ask(FitRows.risks, list(coefs.values()))) / weight
    observed, own = (dict(zip(coefs, risk.tolist(), strict=True)) for risk in risks.T)
    best = min(reversed(learned), key=own.__getitem__)
    return keep_best(
        tree, coefs, best, leaf, observed, own.__getitem__, ridge, program.fallback
    )


def widths_of(
    tree: SensorTree, sample: LeafClassifiers, settings: Settings
) -> Sequence[int]:
    """How many coefficients nodes will have by the sample, without those of gaps."""
    widths = []
    for node in tree.nodes:
        readings, _, _ = seen_at(node.sensors, sample)
        likely = np.full((1, sample.data.n_outputs), 1.0 / sample.data.n_outputs)
        first, weight = sample.data.distinct()
        shown = partial(shown_levels, readings, weight)
        parts = decision_parts(settings, readings, sample.data.y[first], shown)
        own = sum(p(readings[:1], likely).shape[1] for p in parts)
        widths.append(1 + own + sample.data.varying_prices().shape[1])
    return widths


# leaf classifiers -----------------------------------------------------------------------


@dataclass(frozen=True)
class Columns:
    """The columns of a subset, which are elsewhere."""

    subset: Subset
    shape: tuple[int, int]


class RidgeInChunks(RidgeProblem):
    """The fits to the columns of one subset, of rows in chunks."""

    def __init__(
        self,
        rows: Chunks,
        columns: Columns,
        degree: int,
        labels: FoldedLabels,
        compared_only: bool,
    ):
        self.part = Within(rows, "ridge")
        self._count(columns.shape[1], degree, labels, compared_only)
        self.center, self.scale = _moments(rows, columns.subset)
        moments, single = (self.center, self.scale), self.dtype is np.float32
        rows.note(FitRows.open_ridge, columns.subset, degree, labels.C, moments, single)

    def losses(
        self, C: float | Array, coef: Array, held_out: Rows
    ) -> tuple[Array, Array]:
        """Penalised losses without each fold, and their gradients."""
        value, gradient = self.penalties(C, coef, held_out)
        without = self.part.ask(RidgePart.losses, np.inf, coef, held_out)
        lost, slope = totals(without)
        return value + lost, gradient + slope

    def unsure_products(self, coef: Array) -> Array:
        """Sum of x x' weighted by how unsure the row is."""
        return total(self.part.ask(RidgePart.unsure_products, coef))

    def hessian(self, coef: Array, out: int = NONE) -> Array:
        """Second derivatives of the loss outside a fold."""
        return total(self.part.ask(RidgePart.hessian, coef, out))


class EngineInChunks(LogisticEngine):
    """Ridge logistic regressions on any columns of rows in chunks."""

    rows: Chunks

    def _problem(
        self, X: Any, compared: bool = False, fewer: Fewer | None = None
    ) -> RidgeProblem | None:
        if self._one_class():
            return None
        width = X.shape[1]
        degree = self.degree if n_terms_of(width, 2) <= LOGISTIC_TERMS else 1
        return RidgeInChunks(self.rows, X, degree, self.labels, compared)

    def judge_in_place(self, X: Any) -> Solution:
        """Have posteriors found as `judge` does; the fit to all rows, kept.

        X is Columns.
        """
        problem = self._problem(X, compared=True) if X.shape[1] else None
        if problem is None:
            solution = self._prior()
            self.rows.note(FitRows.judge, X.subset, {-1: solution.scorer})
            return solution
        if not self.folds:
            solution = self.fit(X)
            self.rows.note(FitRows.judge, X.subset, {-1: solution.scorer})
            self.rows.note(FitRows.close_ridge)
            return solution
        C, coef, fits = self._fits(problem)
        only = self.only_classes()
        self.rows.note(FitRows.judge_ridge, X.subset, coef, fits, only)
        found = self.fit(X, Solution(problem.scorer(coef), C))
        self.rows.note(FitRows.close_ridge)
        return found


def _moments(rows: Chunks, subset: Subset) -> tuple[Array, Array]:
    """Mean and deviation of the columns of a subset, of all rows."""
    weight, added = totals(rows.ask(FitRows.sums, subset))
    center = added / weight
    wrong, squares = totals(rows.ask(FitRows.squares, subset, center))
    check_readings(not wrong, "classifier", "classifier")
    return center, usable_scale(center, np.sqrt(squares / weight))


def judge_leaves(
    rows: Chunks,
    subsets: Iterable[Subset],
    sampled: LeafClassifiers,
    ordered: Ordered,
) -> dict[Subset, Any]:
    """Have the posteriors of some subsets found in place; their classifiers.

    Logistic ones are fitted to all rows. Others are fitted to the rows of a sample, and
    judge each row by a fit without the rows of its fold.
    """
    y, fold, weight = ordered.y, ordered.fold, ordered.weight
    data, classifier = sampled.data, sampled.classifier
    wanted = list(dict.fromkeys(subsets))
    if isinstance(classifier, RidgeLogisticRegression):
        C, degree = classifier.C, classifier._degree
        engine = EngineInChunks(y, len(data.classes), weight, fold, C, degree)
        engine.rows = rows
        found = {}
        for subset in wanted:
            width = data.features(subset).shape[1]
            columns = Columns(subset, (len(y), width))
            found[subset] = engine.judge_in_place(columns).scorer
        return found
    sampled.judge(wanted)  # says how many rounds to boost
    found = {s: compile_classifier(c) for s, c in sampled.fit(wanted).items()}
    folds = [int(f) for f in np.unique(fold) if f >= 0]
    rest = {f: without_fold(sampled, f) for f in folds}
    for subset in wanted:
        scorers = {f: compile_classifier(rest[f].fit([subset])[subset]) for f in folds}
        rows.note(FitRows.judge, subset, {-1: found[subset], **scorers})
    return found


def without_fold(sampled: LeafClassifiers, fold: int) -> LeafClassifiers:
    """Leaf classifiers of the rows outside a fold, as large as those of all rows."""
    rest = sampled.take(np.flatnonzero(sampled.data.fold != fold))
    classifier = sampled.classifier
    if isinstance(classifier, BoostedTrees):
        classifier = BoostedTrees(classifier.size_for(len(sampled.data.y)))
    return replace(rest, classifier=classifier, starts=sampled.starts)
