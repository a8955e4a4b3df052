"""`LeafClassifiers`: classifiers of sensor subsets, each fitted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.leaves.boosting import BoostedEngine
from sensortree.leaves.fitting import (
    each_of,
    engine_of,
    fit_one,
    judge_leaf_classifiers,
    screen_leaf_classifiers,
)
from sensortree.leaves.logistic import QuadraticLogisticRegression, Solution
from sensortree.leaves.rows import TrainingRows
from sensortree.progress import Stopwatch
from sensortree.types import Array, Rows

Subset = frozenset[str]
Subsets = Iterable[Subset]


@dataclass(frozen=True, eq=False)
class LeafClassifiers:
    """Classifiers of sensor subsets, each fitted once, when it is first asked for."""

    data: TrainingRows
    classifier: Any
    n_jobs: int | None
    classifiers: dict[Subset, Any] = field(default_factory=dict)
    # Out of fold, (n_samples, n_classes) each.
    posteriors: dict[Subset, Array] = field(default_factory=dict)
    # Where fits to all rows set out from.
    starts: dict[Subset, Any] = field(default_factory=dict)
    watch: Stopwatch = field(default_factory=Stopwatch)  # of the time that they take
    # What posteriors say: by question and subset, the posterior and the answer to it.
    _read_off: dict[tuple[str, Subset], tuple[Array, Any]] = field(
        init=False, default_factory=dict
    )

    def take(self, rows: Rows) -> LeafClassifiers:
        """LeafClassifiers of some of the rows, who learn from those rows alone."""
        part = self.data.take(rows)
        return LeafClassifiers(part, self.classifier, self.n_jobs, watch=self.watch)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count the time that is taken, and how many subsets are judged."""
        before = len(self.posteriors)
        with self.watch.stage("leaf classifiers"):
            yield
        self.watch.counts["judged"] += len(self.posteriors) - before

    def judge(self, subsets: Subsets) -> None:
        """Find the posteriors of those subsets that have none yet."""
        with self._timed():
            self._find(subsets)

    def _find(self, subsets: Subsets) -> None:
        new = [s for s in dict.fromkeys(subsets) if s not in self.posteriors]
        self.posteriors.update(self._judge(new, self.data))

    def _judge(self, subsets: Subsets, rows: TrainingRows) -> dict[Subset, Array]:
        """Posteriors of subsets on the rows that their leaves learn from, out of fold."""
        engine = self._engine(rows, rows.fold)
        if engine is not None:
            read = {s: (X,) for s, X in self._read(engine, rows, subsets).items()}
            judged = each_of(engine.judge, read, self.n_jobs)
            self.starts.update({subset: start for subset, (_, start) in judged.items()})
            return {subset: proba for subset, (proba, _) in judged.items()}
        return judge_leaf_classifiers(
            self.classifier,
            {subset: rows.features(subset) for subset in subsets},
            rows.y,
            rows.n_outputs,
            rows.weight if self.data.weighted else None,
            rows.fold,
            self.n_jobs,
            rows.weight > 0,
        )

    def fit(self, subsets: Subsets) -> dict[Subset, Any]:
        """Give the classifiers of some subsets, fitting those that are not fitted yet."""
        wanted = list(subsets)
        new = [s for s in dict.fromkeys(wanted) if s not in self.classifiers]
        with self._timed():
            self.classifiers.update(self._fit_new(new))
        return {subset: self.classifiers[subset] for subset in wanted}

    def _fit_new(self, subsets: Subsets) -> dict[Subset, Any]:
        return self._fit(subsets, self.data)

    def _fit(self, subsets: Subsets, rows: TrainingRows) -> dict[Subset, Any]:
        """Fit the classifiers of some subsets to rows."""
        engine = self._engine(rows, None)
        if engine is not None:  # it sets out from where judging left it
            read = self._read(engine, rows, subsets).items()
            tasks = {s: (X, self.starts.get(s)) for s, X in read}
            fitted = each_of(engine.fit, tasks, self.n_jobs)
            scorers = {
                s: f.scorer for s, f in fitted.items() if isinstance(f, Solution)
            }
            return {**fitted, **scorers}
        if self.data.continued is not None:  # weights may not be taken, but for 0
            rows = rows.take(np.flatnonzero(rows.weight))
        weight = rows.weight if self.data.weighted else None
        fit = partial(fit_one, self.classifier, rows.y, weight)
        return each_of(fit, {s: (rows.features(s),) for s in subsets}, self.n_jobs)

    def _engine(
        self, rows: TrainingRows, fold: Rows | None, C: float | None = None
    ) -> Any:
        """What fits all folds as one job; a quadratic leaf where the penalty is given."""
        kind = self.classifier if C is None else QuadraticLogisticRegression(C)
        weight = rows.weight if rows.weighted else None
        return engine_of(kind, rows.y, rows.n_outputs, weight, fold)

    def _read(
        self, engine: Any, rows: TrainingRows, subsets: Subsets
    ) -> dict[Subset, Any]:
        """What an engine is given of each subset: trees get categories as codes."""
        read = rows.coded if isinstance(engine, BoostedEngine) else rows.features
        return {subset: read(subset) for subset in subsets}

    def lost(self, subset: Subset, likely: Array | None = None) -> Array:
        """What answers with a subset lose, (n_samples,); of a log, doubly robust.

        `likely` are predictions; None stands for the posteriors, judged before.
        """
        if likely is None:
            found = self._once("lost", subset, lambda own: self.lost(subset, own))
            return np.asarray(found)
        lost, log = self.data.judge(likely), self.data.continued
        return lost if log is None else log.put_right(lost, subset)

    def answer(self, subset: Subset) -> NDArray[Any]:
        """Answers with a subset, judged before, out of fold, (n_samples,)."""
        return np.asarray(self._once("answer", subset, self.data.loss.answer))

    def _once(self, question: str, subset: Subset, read: Callable[[Array], Any]) -> Any:
        """What a posterior says; trees that are compared ask the same again and again."""
        posterior = self.posteriors[subset]
        had, found = self._read_off.get((question, subset), (None, None))
        if had is not posterior:
            found = read(posterior)
            self._read_off[question, subset] = posterior, found
        return found

    def screen(self, subsets: Subsets) -> dict[Subset, Array]:
        """Posteriors of light copies of the classifiers of some subsets."""
        data, weight = self.data, self.data.weight if self.data.weighted else None
        with self._timed():
            read = {subset: data.features(subset) for subset in subsets}
            given = self.classifier, read, data.y, data.n_outputs, data.fold, weight
            return screen_leaf_classifiers(*given, self.n_jobs)
