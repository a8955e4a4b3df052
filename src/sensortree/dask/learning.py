"""Rows in chunks to a policy: `fit_in_chunks` tells the story of such a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sensortree.constants import DECISION_RIDGE
from sensortree.dask.fit_rows import FitRows
from sensortree.dask.leaves import judge_leaves
from sensortree.dask.readings import Ordered
from sensortree.learning.choose import Chosen
from sensortree.learning.fit import Fitted, Mark, finish
from sensortree.learning.joint import DecisionReport, Learned, Learner, refined
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
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.standardising import usable_scale
from sensortree.policy.decisions import DecisionFeatures
from sensortree.program.chunks import Chunks, Within, total, totals
from sensortree.program.in_chunks import solve_rows
from sensortree.tree.tree import SensorTree
from sensortree.types import Array, Rows

Subset = frozenset[str]
Coef = list[Array]


@dataclass(frozen=True, eq=False)
class Sample:
    """What was learned from some of the rows.

    Attributes
    ----------
    prepared : Prepared
        The rows, in their order, and their leaf classifiers.
    chosen : Chosen
        The tree, and how it was found.
    numbers : ndarray of shape (n_sample,)
        Where each row of the sample stands among all.
    mark : Mark
        When the fit began.
    """

    prepared: Prepared
    chosen: Chosen
    numbers: Rows
    mark: Mark

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
    ways: Mapping[str, Any],
    learn_less: Learner,
) -> Fitted:
    """Leaf classifiers, risks, decisions and certificate of all rows; then a policy.

    Parameters
    ----------
    rows : Chunks
        Of FitRows.
    ordered : Ordered
    sample : Sample
    settings : Settings
    ways : mapping
        Parameters of the program and of its refinement.
    learn_less : Learner
        Learns decisions that are only compared, on the sample.
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
        l2 = ways["l2"]
        ridge = DECISION_RIDGE * spread / weight if l2 == "auto" else float(l2)
        rows.note(FitRows.open_program, ways["savings"])
        program = Within(rows, "program")
        solved = solve_rows(program, ways["tol"], ridge, ways["l1"])
        rows.note(FitRows.close_program)
        watch.counts["learned"] += bool(tree.n_nodes)
        belief = None if best is None else leaves.posteriors[best]
        risks = leaf_risks(tree, leaves, settings, belief)
        posed = pose_with(tree, leaves, settings, features, risks)
        learned = keep(rows, posed, solved.coef, ridge, weight, ways)
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
        sample.mark,
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
    said = {s: np.concatenate([part[s] for part in parts]) for s in parts[0]}
    return LeafClassifiers(
        data, classifier, None, classifiers, said, watch=sample.prepared.progress.watch
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
    ways: Mapping[str, Any],
) -> Learned:
    """Keep the program's decisions, refined ones, or one leaf for all.

    Decisions are refined on the sample. All are judged on all rows: refined ones are kept
    if their risk is lower there, and one leaf if its risk is lower still.
    """
    tree, names, learned = posed.problem.tree, ["linear program"], [coef]
    if ways["refine"] and tree.n_nodes:
        share = posed.problem.weight.sum() / weight
        names.append("refined")
        learned.append(refined(posed.problem, coef, share * ridge))
    leaf = int(np.argmin(total(rows.ask(FitRows.constant_risks))))
    names.append("one leaf")
    learned.append(posed.observed.constant_coef(leaf))
    observed, own = (total(rows.ask(FitRows.risks, learned)) / weight).T
    kept = int(np.argmin(observed[:-1]))
    if ways["fallback"] and observed[-1] < observed[kept]:
        kept = len(names) - 1
    single = names[kept] == "one leaf"
    stops = tuple(sorted(tree.leaves[leaf].sensors)) if single else None
    risk = dict(zip(names, observed.tolist(), strict=True))
    report = DecisionReport(names[kept], risk, stops, ridge, float(own[kept]))
    evidence = {"fallback_leaf": leaf if single else None, "decision_report": report}
    return Learned(learned[kept], evidence)


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
