"""Leaf classifiers of rows in chunks: logistic ones by sums over all rows, exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sensortree.constants import LOGISTIC_TERMS
from sensortree.dask.fit_rows import FitRows
from sensortree.dask.readings import Ordered
from sensortree.leaves.boosting import BoostedTrees
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.compiling import compile_classifier
from sensortree.leaves.engine import Fewer, LogisticEngine, Solution
from sensortree.leaves.logistic import RidgeLogisticRegression
from sensortree.leaves.ridge import NONE, FoldedLabels, RidgeProblem
from sensortree.leaves.standardising import check_readings, n_terms_of, usable_scale
from sensortree.program.chunks import Chunks, total, totals
from sensortree.types import Array, Rows

Subset = frozenset[str]


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
        self.rows = rows
        self._count(columns.shape[1], degree, labels, compared_only)
        self.center, self.scale = _moments(rows, columns.subset)
        moments, single = (self.center, self.scale), self.dtype is np.float32
        rows.note(FitRows.open_ridge, columns.subset, degree, labels.C, moments, single)

    def losses(
        self, C: float | Array, coef: Array, held_out: Rows
    ) -> tuple[Array, Array]:
        """Penalised losses without each fold, and their gradients."""
        value, gradient = self.penalties(C, coef, held_out)
        lost, slope = totals(self.rows.ask(FitRows.ridge_losses, coef, held_out))
        return value + lost, gradient + slope

    def unsure_products(self, coef: Array) -> Array:
        """Sum of x x' weighted by how unsure the row is."""
        return total(self.rows.ask(FitRows.ridge_products, coef))

    def hessian(self, coef: Array, out: int = NONE) -> Array:
        """Second derivatives of the loss outside a fold."""
        return total(self.rows.ask(FitRows.ridge_hessian, coef, out))


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

    Parameters
    ----------
    rows : Chunks
        Of FitRows.
    subsets : iterable of subsets
    sampled : LeafClassifiers
        Of the sample.
    ordered : Ordered
        All rows.
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
