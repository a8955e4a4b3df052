"""Leaf classifiers that held-out folds share.

A classifier fitted without the folds f and g judges the rows of g when f is held out, and
the rows of f when g is; one fitted without f alone answers for f, and judges the rows of f
in a fit on all rows. With five folds, a subset of sensors takes fifteen fits for all of
them, where five separate fits take thirty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.descent import Curvature
from sensortree.leaves.fitting import each_of, fit_one
from sensortree.leaves.logistic import LogisticEngine, Solution, posterior_of
from sensortree.leaves.ridge import RidgeProblem, most_evident
from sensortree.leaves.rows import TrainingRows
from sensortree.policy.classifiers import posterior
from sensortree.types import Array, Rows

Subset = frozenset[str]
Folds = frozenset[int]


@dataclass(frozen=True, eq=False)
class SharedClassifiers:
    """Classifiers of subsets fitted without some folds, each once for all who ask."""

    data: TrainingRows  # all rows, with the folds that are held out
    classifier: Any
    n_jobs: int | None
    # By subset and the folds that are left out.
    fitted: dict[tuple[Subset, Folds], Any] = field(default_factory=dict)

    def without(self, subsets: Iterable[Subset], out: Folds) -> dict[Subset, Any]:
        """Classifiers of some subsets, fitted on the rows of all folds but these."""
        wanted = list(dict.fromkeys(subsets))
        new = [subset for subset in wanted if (subset, out) not in self.fitted]
        if new:
            kept = np.flatnonzero(~np.isin(self.data.fold, sorted(out)))
            data = self.data.take(kept)
            weight = data.weight if data.weighted else None
            fit = partial(fit_one, self.classifier, data.y, weight)
            made = each_of(fit, {s: (data.features(s),) for s in new}, self.n_jobs)
            self.fitted.update({(s, out): made[s] for s in new})
        return {subset: self.fitted[subset, out] for subset in wanted}


class PairedEngine(LogisticEngine):
    """Ridge logistic regressions without each fold and without each two folds."""

    def judge_without_each(self, X: Array) -> dict[int, tuple[Array, Solution]]:
        """What `judge` gives on the rows outside each fold, for all folds at once.

        Fits without two folds, and without one, go side by side on one basis. Columns are
        standardised by all rows, which says nothing about their classes; the penalty, which
        does, is chosen without each fold: one for all would have seen the rows that are
        left out. Where two folds want different penalties, their pair is fitted with both.

        The posterior is of all rows, (n_samples, n_classes), NaN for those of the fold.
        """
        problem = self._problem(X, compared=True) if X.shape[1] else None
        if problem is None or len(self.folds) < 3:
            return {a: self._judge_rest(X, a) for a in self.folds}
        alone = self._without_each(problem)
        out = np.array([(a, b) for a in self.folds for b in self.folds if a < b])
        tasks = {(a, b, alone[c][0]): c for a, b in out.tolist() for c in (a, b)}
        fits = dict(zip(tasks, self._fit_pairs(problem, tasks, alone), strict=True))
        judged = {a: np.full((len(self.y), self.n_classes), np.nan) for a in alone}
        for rows, fold, terms in problem.blocks():
            for a, (C, coef, _) in alone.items():
                if a == fold:
                    continue
                pair = (min(a, fold), max(a, fold), C)
                judged[a][rows] = posterior_of(coef if fold < 0 else fits[pair], terms)
        found = {}
        for a, (C, coef, _) in alone.items():
            self._without_a_class(judged[a], a)
            found[a] = self._in_order(judged[a]), Solution(problem.scorer(coef), C)
        return found

    def _judge_rest(self, X: Array, out: int) -> tuple[Array, Solution]:
        """What `judge` gives on the rows outside one fold."""
        rest, C = self.fold != out, self.labels.C
        own = self.weight[rest], self.fold[rest]
        engine = LogisticEngine(self.y[rest], self.n_classes, *own, C, self.degree)
        posterior = np.full((len(rest), self.n_classes), np.nan)
        posterior[rest], solution = engine.judge(X[rest])
        return posterior, solution

    def _without_each(
        self, problem: RidgeProblem
    ) -> dict[int, tuple[float, Array, Curvature]]:
        """As `_roughly`, without each fold: penalty, coefficients and curvature."""
        C, coef, curvature = self._roughly(problem)
        power = round(np.log(C) / np.log(3.0)) if problem.wants_evidence else 0
        starts = {a: self._start(problem, coef, (a,)) for a in self.folds}
        few = {a: problem.wants_evidence_on(self.labels.fold != a) for a in self.folds}
        found = {
            a: most_evident(problem, starts[a], a, power) for a in self.folds if few[a]
        }
        if many := [a for a in self.folds if not few[a]]:
            penalty = np.array([C] * len(many))
            if problem.wants_choice:  # by folds other than the one that is left out
                first, second = self._judged_folds()
                products = problem.unsure_products(coef)
                by_first, by_second = (
                    self._held_out_penalty(problem, coef, folds, products)
                    for folds in (first, second)
                )
                penalty = np.array(
                    [by_second if a in first else by_first for a in many]
                )
            start = np.array([starts[a] for a in many])
            fitted, _ = problem.minimise(
                penalty, start, np.array(many), curvature, problem.unseen
            )
            found |= {
                a: (float(penalty[k]), fitted[k], curvature) for k, a in enumerate(many)
            }
        return found

    def _fit_pairs(
        self,
        problem: RidgeProblem,
        tasks: Mapping[tuple[int, int, float], int],
        alone: Mapping[int, tuple[float, Array, Curvature]],
    ) -> Array:
        """Coefficients without two folds each, from those without one of the two."""
        starts = [
            self._start(problem, alone[c][1], (a, b)) for (a, b, _), c in tasks.items()
        ]
        curvature = alone[self.folds[0]][2]
        penalty = np.array([C for _, _, C in tasks])
        held_out = np.array([(a, b) for a, b, _ in tasks])
        fitted, _ = problem.minimise(
            penalty, np.array(starts), held_out, curvature, problem.unseen
        )
        return fitted


@dataclass(frozen=True, eq=False)
class FoldClassifiers(LeafClassifiers):
    """Classifiers of the rows outside one fold, shared with the other folds."""

    out: Folds = field(kw_only=True)

    def take(self, rows: Rows) -> LeafClassifiers:
        """LeafClassifiers of some of the rows; of at least half, those of all.

        With k folds, classifiers of their own would be k (k - 1) fits to m rows; those
        shared are half as many, to all n, and trees need them too. If no fold is left
        out, this is a fit like any other, and searches like any other.
        """
        if not self.out or 2 * len(rows) < len(self.data.y):
            return super().take(rows)
        sample = self.data.take(rows)
        return SampleClassifiers(
            sample, self.classifier, self.n_jobs, leaves=self, rows=rows
        )


@dataclass(frozen=True, eq=False)
class FittedForFolds(FoldClassifiers):
    """Of any kind: fitted without one fold or two."""

    shared: SharedClassifiers = field(kw_only=True)

    def judge(self, subsets: Iterable[Subset]) -> None:
        """Find the posteriors of those subsets that have none yet."""
        data, n_classes = self.data, len(self.data.classes)
        new = [s for s in dict.fromkeys(subsets) if s not in self.posteriors]
        features = {s: data.features(s) for s in new}
        known = [s for s in new if features[s].shape[1]]
        found = {s: np.empty((len(data.y), n_classes)) for s in new}
        for fold in np.unique(data.fold):
            rows = data.fold == fold
            left_out = self.out if fold < 0 else self.out | {int(fold)}
            for subset, fitted in self.shared.without(known, left_out).items():
                own = features[subset][rows]
                found[subset][rows] = posterior(fitted, own, n_classes)
        nothing = [s for s in new if not features[s].shape[1]]
        for subset, fitted in self.shared.without(nothing, self.out).items():
            found[subset] = posterior(fitted, features[subset], n_classes)
        self.posteriors.update(found)

    def fit(self, subsets: Iterable[Subset]) -> dict[Subset, Any]:
        """Give the classifiers of some subsets, fitted on all rows outside the fold."""
        return self.shared.without(subsets, self.out)


@dataclass(frozen=True, eq=False)
class LogisticFold(FoldClassifiers):
    """Logistic leaves: judged for all folds in one job, and kept at their own minimum."""

    # All rows, with the folds that are held out.
    every: TrainingRows = field(kw_only=True)
    # What `PairedEngine.judge_without_each` gives; shared by all folds.
    judged: dict[Subset, dict[int, tuple[Array, Solution]]] = field(kw_only=True)

    def judge(self, subsets: Iterable[Subset]) -> None:
        """Find the posteriors of those subsets that have none yet."""
        every, own = self.every, self.classifier
        new = [s for s in dict.fromkeys(subsets) if s not in self.posteriors]
        features = {s: (every.features(s),) for s in new if s not in self.judged}
        weight = every.weight if every.weighted else None
        rows = every.y, len(every.classes), weight, every.fold
        judge = PairedEngine(*rows, own.C, own._degree).judge_without_each
        self.judged.update(each_of(judge, features, self.n_jobs))
        (out,) = self.out
        rest = every.fold != out
        for subset in new:
            judged, start = self.judged[subset][out]
            self.posteriors[subset], self.starts[subset] = judged[rest], start


@dataclass(frozen=True, eq=False)
class SampleClassifiers(LeafClassifiers):
    """What classifiers on more rows say of some of them."""

    leaves: LeafClassifiers = field(kw_only=True)
    rows: Rows = field(kw_only=True)

    def judge(self, subsets: Iterable[Subset]) -> None:
        """Find the posteriors of those subsets that have none yet."""
        new = [s for s in subsets if s not in self.posteriors]
        self.leaves.judge(new)
        self.posteriors.update({s: self.leaves.posteriors[s][self.rows] for s in new})
