"""`LoggedClassifiers`: classifiers of sensor subsets that learn from a log.

The leaf of a subset learns from the rows that bought it. A quadratic leaf may also learn
from the others: what they did not buy is drawn given what they bought, or the leaf is
pulled towards one of fewer sensors (`Fewer`), which more rows bought. Held-out log-loss
chooses.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sensortree.constants import (
    DRAWN_ROWS,
    DRAWN_TIMES,
    LOG_PULL_ROWS,
    LOG_PULLS,
    LOG_SHARES,
)
from sensortree.leaves.classifiers import LeafClassifiers, Subset, Subsets
from sensortree.leaves.fitting import engine_of
from sensortree.leaves.logistic import (
    Fewer,
    LogisticEngine,
    QuadraticLogisticRegression,
    RidgeLogisticRegression,
)
from sensortree.leaves.ridge import NONE
from sensortree.leaves.rows import Continued, TrainingRows
from sensortree.logs.gaussians import learn_gaussians, patterns_of
from sensortree.policy.classifiers import posterior
from sensortree.types import Array, Rows


@dataclass(frozen=True, eq=False)
class LoggedClassifiers(LeafClassifiers):
    """Classifiers of sensor subsets, each fitted once, to rows of a log."""

    # The fewer sensors whose classifier that of a subset is pulled towards.
    pulled: dict[Subset, Subset] = field(default_factory=dict)
    # By how much rows count in leaves for each sensor that they did not buy, within each
    # set of sensors that the log reaches.
    shares: dict[int, float] = field(default_factory=dict)
    # What was drawn within a set without a fold, (n_times, n_rows, width).
    drawn: dict[tuple[int, int], Array] = field(default_factory=dict)

    def take(self, rows: Rows) -> LoggedClassifiers:
        """Classifiers of some of the rows, who learn from those rows alone."""
        part = self.data.take(rows)
        return LoggedClassifiers(part, self.classifier, self.n_jobs, watch=self.watch)

    @property
    def log(self) -> Continued:
        """How far the log reaches."""
        assert self.data.continued is not None
        return self.data.continued

    def _find(self, subsets: Subsets) -> None:
        for subset in dict.fromkeys(subsets):
            if subset in self.posteriors:
                continue
            share = self._share(subset)
            if subset not in self.posteriors:  # to choose the share, some were judged
                self.posteriors[subset] = self._judge_logged(subset, share)

    def _fit_new(self, subsets: Subsets) -> dict[Subset, Any]:
        return {subset: self._fit_logged(subset) for subset in subsets}

    def _share(self, subset: Subset) -> float:
        """By how much rows count for each sensor of a subset that they did not buy.

        As lowers the log-loss of rows that were held out, and bought all that is looked at
        with the subset. Only of logistic regressions whose penalty is not given.
        """
        log = self.log
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
            proba = found._judge_logged(whole, share)
            lost = self.data.task.compared(proba, self.data.y, self.data.loss)
            if float(weight @ lost) < least:
                least, kept = float(weight @ lost), found
                found.posteriors[whole] = proba
        self.shares.update(kept.shares)
        self.posteriors.update(kept.posteriors)
        self.starts.update(kept.starts)
        self.pulled.update(kept.pulled)
        return self.shares[within]

    def _taught(self, subset: Subset) -> TrainingRows:
        """Rows with the weights that the leaf of a subset learns with; 0 of the others."""
        weight = self.log.taught(subset, self.data.weight)
        return replace(self.data, weight=weight, weighted=True)

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
        data, n_outputs = self.data, self.data.n_outputs

        def taught_without(out: int) -> tuple[LogisticEngine, Array]:
            X, y, weight = self._teaching(subset, share, out)
            engine = engine_of(self.classifier, y, n_outputs, weight)
            assert isinstance(engine, LogisticEngine)
            return engine, X

        engine, X = taught_without(NONE)
        self.starts[subset] = solution = engine.fit(X)
        X, proba = data.features(subset), np.empty((len(data.y), n_outputs))
        for fold in np.unique(data.fold):
            out, own = np.flatnonzero(data.fold == fold), solution
            if fold >= 0:
                engine, taught = taught_without(int(fold))
                own = engine.refit(taught, solution)
            proba[out] = posterior(own.scorer, X[out], n_outputs)
        return proba

    def _judge_pulled(self, subset: Subset, fewer: Subset, rows: TrainingRows) -> Array:
        """Posteriors of a subset whose classifier is pulled towards one of fewer sensors.

        As strongly as lowers the log-loss of rows that were held out.
        """
        start = self.starts[fewer]
        pull = self._pull(subset, fewer, {**start.without, NONE: start.scorer})
        self.pulled[subset] = fewer
        X, proba, least = rows.features(subset), np.empty((0, 0)), np.inf
        for C in LOG_PULLS:
            own, found = self._engine(rows, rows.fold, C).judge(X, pull)
            loss = float(rows.weight @ rows.task.compared(own, rows.y, rows.loss))
            if loss >= least:
                break
            proba, least, self.starts[subset] = own, loss, found
        return proba

    def _fewer(self, subset: Subset) -> Subset | None:
        """The subset with a sensor less that most rows bought, judged.

        None if hardly more did, and where the classifier is of another kind, or has a
        penalty that was given.
        """
        log, kind = self.log, self.classifier
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
        return Fewer(self.log.columns_of(fewer, subset), given)

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

    def _teaching(
        self, subset: Subset, share: float, out: int
    ) -> tuple[Array, Rows, Array]:
        """Readings, classes and weights that teach the leaf of a subset without a fold.

        What was not bought of a row is drawn, several times; the row counts by a share for
        each sensor of the subset that it did not buy. Without any
        fold, `out` is a number that no fold has.
        """
        rows, log = self.data, self.log
        has, there = log.has(subset), rows.fold != out
        real, lacking = np.flatnonzero(has & there), np.flatnonzero(~has & there)
        drawn = self._draw(log.within(subset), out)
        whole = log.reach[log.within(subset)]
        own = drawn[:, lacking][:, :, log.columns_of(subset, whole)]
        n_lacking = (~log.bought[lacking][:, log.sensors.mask(subset)]).sum(axis=1)
        weight = rows.weight[lacking] * share**n_lacking / len(own)
        return (
            np.vstack([rows.features(subset)[real], *own]),
            np.concatenate([rows.y[real], np.tile(rows.y[lacking], len(own))]),
            np.concatenate([rows.weight[real], np.tile(weight, len(own))]),
        )

    def _draw(self, within: int, out: int) -> Array:
        """All readings of a set, drawn where nothing was bought, some times.

        They are drawn given what was bought of a row and its class, by `Gaussians` that
        are learned from the rows outside a fold.
        """
        if (within, out) in self.drawn:
            return self.drawn[within, out]
        log, whole = self.log, self.log.reach[within]
        values, owner = self.data.features(whole), log.owner(whole)
        known, lacking = log.bought[:, owner], ~log.has(whole)
        by_sensor = patterns_of(log.bought & log.sensors.mask(whole), lacking)
        patterns = [(pattern[owner], rows) for pattern, rows in by_sensor]
        there = np.flatnonzero(self.data.fold != out)
        place = np.full(len(values), -1)  # of a row among those
        place[there] = np.arange(len(there))
        own = [(pattern, place[rows][place[rows] >= 0]) for pattern, rows in patterns]
        gaussians = learn_gaussians(
            values[there],
            known[there],
            log.level[there],
            int(log.level.max()) + 1,
            [(pattern, rows) for pattern, rows in own if len(rows)],
        )
        times = int(np.clip(DRAWN_ROWS // max(1, lacking.sum()), 1, DRAWN_TIMES))
        drawn = [
            gaussians.drawn(values, patterns, log.level, seed) for seed in range(times)
        ]
        self.drawn[within, out] = np.where(known, values, np.stack(drawn))
        return self.drawn[within, out]
