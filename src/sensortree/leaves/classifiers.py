"""`LeafClassifiers`: classifiers of sensor subsets, each fitted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np

from sensortree.constants import LOG_PULL_ROWS, LOG_PULLS, LOG_SHARES
from sensortree.leaves.boosting import BoostedEngine
from sensortree.leaves.continued import Drawn
from sensortree.leaves.engine import Fewer, LogisticEngine
from sensortree.leaves.fitting import (
    each_subset,
    engine_of,
    fit_by_engine,
    fit_leaf_classifiers,
    judge_leaf_classifiers,
    screen_leaf_classifiers,
)
from sensortree.leaves.logistic import (
    QuadraticLogisticRegression,
    RidgeLogisticRegression,
)
from sensortree.leaves.ridge import NONE
from sensortree.leaves.rows import TrainingRows
from sensortree.policy.classifiers import posterior
from sensortree.progress import Stopwatch
from sensortree.types import Array, Rows

Asked = TypeVar("Asked")

Subset = frozenset[str]
Subsets = Iterable[Subset]


def timed(
    method: Callable[[LeafClassifiers, Subsets], Asked],
) -> Callable[[LeafClassifiers, Subsets], Asked]:
    """Count the time of a method, and how many subsets it has judged."""

    @wraps(method)
    def timed_method(leaves: LeafClassifiers, subsets: Subsets) -> Asked:
        before = len(leaves.posteriors)
        with leaves.watch.stage("leaf classifiers"):
            found = method(leaves, subsets)
        leaves.watch.counts["judged"] += len(leaves.posteriors) - before
        return found

    return timed_method


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
    # Of a log, the fewer sensors whose classifier that of a subset is pulled towards.
    pulled: dict[Subset, Subset] = field(default_factory=dict)
    # Of a log, by how much rows count in leaves for each sensor that they did not buy,
    # within each set of sensors that it reaches.
    shares: dict[int, float] = field(default_factory=dict)
    watch: Stopwatch = field(default_factory=Stopwatch)  # of the time that they take

    def take(self, rows: Rows) -> LeafClassifiers:
        """LeafClassifiers of some of the rows, who learn from those rows alone."""
        part = self.data.take(rows)
        return LeafClassifiers(part, self.classifier, self.n_jobs, watch=self.watch)

    @cached_property
    def drawn(self) -> Drawn:
        """Rows of a log, drawn where nothing was bought."""
        return Drawn(self.data)

    @timed
    def judge(self, subsets: Subsets) -> None:
        """Find the posteriors of those subsets that have none yet."""
        self._find(subsets)

    def _find(self, subsets: Subsets) -> None:
        new = [s for s in dict.fromkeys(subsets) if s not in self.posteriors]
        if self.data.continued is None:
            self.posteriors.update(self._judge(new, self.data))
            return
        for subset in new:
            share = self._share(subset)
            if subset not in self.posteriors:  # to choose the share, some were judged
                self.posteriors[subset] = self._judge_logged(subset, share)

    def _share(self, subset: Subset) -> float:
        """By how much rows count for each sensor of a subset that they did not buy.

        As lowers the log-loss of rows that were held out, and bought all that is looked at
        with the subset. Only of logistic regressions whose penalty is not given.
        """
        log = self.data.continued
        assert log is not None
        within = log.within(subset)
        if within in self.shares:
            return self.shares[within]
        self.shares[within] = 0.0
        whole, kind = log.reach[within], self.classifier
        judged = log.has(whole) & (self.data.fold >= 0)
        choosable = isinstance(kind, RidgeLogisticRegression) and kind.C == "evidence"
        choosable &= not log.counts_others and not log.has(whole).all()
        if not choosable or not judged.any():
            return 0.0
        weight, least = self.data.weight * judged, np.inf
        for share in LOG_SHARES:
            shares = {**self.shares, within: share}
            found = replace(self, posteriors={}, starts={}, pulled={}, shares=shares)
            said = found._judge_logged(whole, share)
            lost = self.data.task.compared(said, self.data.y, self.data.loss)
            if float(weight @ lost) < least:
                least, kept = float(weight @ lost), found
                found.posteriors[whole] = said
        self.shares.update(kept.shares)
        self.posteriors.update(kept.posteriors)
        self.starts.update(kept.starts)
        self.pulled.update(kept.pulled)
        return self.shares[within]

    def _taught(self, subset: Subset) -> TrainingRows:
        """Rows with the weights that the leaf of a subset learns with; 0 of the others."""
        data, log = self.data, self.data.continued
        assert log is not None
        weight = log.taught(subset, data.weight)
        return replace(data, weight=weight, weighted=True)

    def _judge_logged(self, subset: Subset, share: float) -> Array:
        """Posteriors of a subset by rows that bought it, and by others as a share says."""
        if share:
            return self._judge_drawn(subset, share)
        rows, fewer = self._taught(subset), self._fewer(subset)
        if fewer is not None:
            return self._judge_pulled(subset, fewer, rows)
        return self._judge([subset], rows)[subset]

    def _judge_drawn(self, subset: Subset, share: float) -> Array:
        """Posteriors of a subset by classifiers that were taught by drawn readings too.

        The one of all rows comes first: its penalty is that of the others, which set out
        from it.
        """
        data = self.data
        engine, X = self._drawn_engine(subset, share, NONE)
        self.starts[subset] = solution = engine.fit(X)
        X, said = data.features(subset), np.empty((len(data.y), data.n_outputs))
        for fold in np.unique(data.fold):
            out, own = np.flatnonzero(data.fold == fold), solution
            if fold >= 0:
                engine, taught = self._drawn_engine(subset, share, int(fold))
                own = engine.refit(taught, solution)
            said[out] = posterior(own.scorer, X[out], data.n_outputs)
        return said

    def _drawn_engine(
        self, subset: Subset, share: float, out: int
    ) -> tuple[LogisticEngine, Array]:
        """What fits the classifier of a subset without a fold, and the readings it fits to.

        Some of these are drawn.
        """
        X, y, weight = self.drawn.without(subset, share, out)
        engine = engine_of(self.classifier, y, self.data.n_outputs, weight)
        assert isinstance(engine, LogisticEngine)
        return engine, X

    def _judge_pulled(self, subset: Subset, fewer: Subset, rows: TrainingRows) -> Array:
        """Posteriors of a subset whose classifier is pulled towards one of fewer sensors.

        As strongly as lowers the log-loss of rows that were held out.
        """
        start = self.starts[fewer]
        pull = self._pull(subset, fewer, {**start.without, NONE: start.scorer})
        self.pulled[subset] = fewer
        X, said, least = rows.features(subset), np.empty((0, 0)), np.inf
        for C in LOG_PULLS:
            told, found = self._engine(rows, rows.fold, C).judge(X, pull)
            loss = float(rows.weight @ rows.task.compared(told, rows.y, rows.loss))
            if loss >= least:
                break
            said, least, self.starts[subset] = told, loss, found
        return said

    def _fewer(self, subset: Subset) -> Subset | None:
        """The subset with a sensor less that most rows bought, judged.

        None if hardly more did, and where the classifier is of another kind, or has a
        penalty that was given.
        """
        log, kind = self.data.continued, self.classifier
        assert log is not None
        pullable = isinstance(kind, QuadraticLogisticRegression)
        if not pullable or kind.C != "evidence" or len(subset) < 2:
            return None
        rows = {
            name: int(log.has(subset - {name}).sum())
            for name in self.data.sensors.in_order(subset)
        }
        name = max(rows, key=rows.__getitem__)
        fewer = subset - {name}
        if rows[name] < LOG_PULL_ROWS * int(log.has(subset).sum()):
            return None
        self._find([fewer])
        return fewer if self.starts[fewer].without else None

    def _pull(self, subset: Subset, fewer: Subset, given: dict[int, Any]) -> Fewer:
        """Classifiers of fewer sensors, by fold, that one of a subset is pulled towards."""
        assert self.data.continued is not None
        return Fewer(self.data.continued.columns_of(fewer, subset), given)

    def _judge(self, subsets: Subsets, rows: TrainingRows) -> dict[Subset, Array]:
        """Posteriors of subsets on the rows that their leaves learn from, out of fold."""
        engine = self._engine(rows, rows.fold)
        if engine is not None:
            read = self._read(engine, rows, subsets)
            judged = each_subset(engine.judge, read, self.n_jobs)
            self.starts.update({subset: start for subset, (_, start) in judged.items()})
            return {subset: said for subset, (said, _) in judged.items()}
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

    @timed
    def fit(self, subsets: Subsets) -> dict[Subset, Any]:
        """Give the classifiers of some subsets, fitting those that are not fitted yet."""
        wanted = list(subsets)
        new = [s for s in dict.fromkeys(wanted) if s not in self.classifiers]
        if self.data.continued is None:
            self.classifiers.update(self._fit(new, self.data))
        else:
            for subset in new:
                self.classifiers[subset] = self._fit_logged(subset)
        return {subset: self.classifiers[subset] for subset in wanted}

    def _fit_logged(self, subset: Subset) -> Any:
        """Fit the classifier of a subset to all rows of a log that bought it."""
        self._find([subset])  # how it is learned is found by judging
        share = self._share(subset)
        if share:
            return self.starts[subset].scorer
        rows = self._taught(subset)
        if subset not in self.pulled:
            return self._fit([subset], rows)[subset]
        fewer = self.pulled[subset]
        pull = self._pull(subset, fewer, {NONE: self.fit([fewer])[fewer]})
        start = self.starts[subset]
        engine = self._engine(rows, None, start.C)
        return engine.fit(rows.features(subset), start, pull).scorer

    def _fit(self, subsets: Subsets, rows: TrainingRows) -> dict[Subset, Any]:
        """Fit the classifiers of some subsets to rows."""
        engine = self._engine(rows, None)
        if engine is not None:
            read = self._read(engine, rows, subsets)
            return fit_by_engine(engine, read, self.starts, self.n_jobs)
        if self.data.continued is not None:  # weights may not be taken, but for 0
            rows = rows.take(np.flatnonzero(rows.weight))
        features = {subset: rows.features(subset) for subset in subsets}
        weight = rows.weight if self.data.weighted else None
        return fit_leaf_classifiers(
            self.classifier, features, rows.y, weight, self.n_jobs
        )

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

        `likely` is what is said; None stands for the posteriors, judged before.
        """
        data = self.data
        lost = data.judge(self.posteriors[subset] if likely is None else likely)
        log = data.continued
        return lost if log is None else log.put_right(lost, subset)

    @timed
    def screen(self, subsets: Subsets) -> dict[Subset, Array]:
        """Posteriors of light copies of the classifiers of some subsets."""
        data = self.data
        return screen_leaf_classifiers(
            self.classifier,
            {subset: data.features(subset) for subset in subsets},
            data.y,
            data.n_outputs,
            data.fold,
            data.weight if data.weighted else None,
            self.n_jobs,
        )
