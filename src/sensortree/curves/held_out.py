"""`HeldOutFolds`: models fitted without a fold, and measured on it.

Many cost weights for few fits: folds share their leaf classifiers (`shared_leaves`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from sensortree.baselines.static import decide_nothing
from sensortree.constants import DEFAULT_FOLDS
from sensortree.curves.shared_leaves import (
    FittedForFolds,
    LogisticFold,
    SharedClassifiers,
)
from sensortree.estimators.validation import read_rows
from sensortree.exceptions import (
    DataError,
    FewRowsWarning,
    ParameterError,
    UnseenWarning,
)
from sensortree.learning.choose import Chosen
from sensortree.learning.fit import both_ends, fit_policy
from sensortree.learning.prepare import Prepared, Share, Winners, prepare
from sensortree.learning.settings import Settings
from sensortree.leaves.boosting import BoostedTrees
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.fitting import resolve_classifier
from sensortree.leaves.logistic import RidgeLogisticRegression
from sensortree.leaves.rows import Observations, TrainingRows
from sensortree.leaves.sklearn_private import rows_of
from sensortree.logs.purchases import Log
from sensortree.policy.classifiers import posterior
from sensortree.policy.policy import Policy
from sensortree.policy.walk import Place
from sensortree.progress import TextProgress
from sensortree.reports.report_sums import metrics
from sensortree.sensors.loss import NumberLoss
from sensortree.sensors.table import Table
from sensortree.structure.search import report_of_built
from sensortree.tree.paths import leaf_costs
from sensortree.tree.tree import Leaf, SensorTree
from sensortree.types import Array, Mask, Rows

# With fewer folds the others are too few rows to judge leaf classifiers on; with more
# there are more pairs of folds than classifiers in separate fits.
FEWEST_TO_SHARE, MOST_TO_SHARE = 4, 10


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured on the held-out rows of each fold."""

    means: Array  # over rows, of error, loss and cost, (n_folds, 3)
    # Standard errors of these means over all rows; a group is one observation, (3,).
    noise: Array
    weight: Array  # what each fold counts, (n_folds,)
    # Each of `sensors.loss.METRICS`, over the rows of all folds together; empty where
    # numbers are predicted.
    metrics: dict[str, float]

    @property
    def error(self) -> Array:
        """Mean loss (without a loss, the share of errors) of each fold, (n_folds,)."""
        return np.asarray(self.means[:, 1])

    @property
    def cost(self) -> Array:
        """Mean cost of each fold, (n_folds,)."""
        return np.asarray(self.means[:, 2])

    def mean(self) -> Array:
        """Means of error, loss and cost over all rows, (3,)."""
        return np.asarray(np.average(self.means, axis=0, weights=self.weight))

    @property
    def point(self) -> tuple[float, float]:
        """Mean cost and loss over all rows."""
        _, loss, cost = self.mean().tolist()
        return cost, loss


class HeldOutFolds:
    """Rows split into folds; models are fitted without a fold, and measured on it.

    What is given is as in the estimator's `fit`. The progress gets a line for each cost
    weight that was measured, and may stop the measuring. Sensors of a log are read once for
    all folds, and held-out rows are measured as fits look at them.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        cv: Any,
        sample_weight: ArrayLike | None,
        prices: ArrayLike | None,
        progress: TextProgress,
        log: Log | None = None,
        groups: ArrayLike | None = None,
    ):
        self.progress = progress
        self.estimator = clone(estimator)
        if "verbose" in self.estimator.get_params():
            # lines of fits would drown those of points
            self.estimator.set_params(verbose=False)
        self.estimator._check_parameters()
        own = self.estimator._settings().cv
        if not (own is None or isinstance(own, Integral) or hasattr(own, "split")):
            # splits of all rows do not fit a part
            self.estimator.set_params(cv=DEFAULT_FOLDS)
        reader = clone(self.estimator)
        self.cv = self.estimator._settings().cv
        cv = DEFAULT_FOLDS if cv is None else cv
        if isinstance(cv, Integral) and (isinstance(cv, bool) or int(cv) < 2):
            raise ParameterError(
                f"cv must be a number of folds from 2 on, got {cv!r}: rows are held out in "
                f"turn, and something must be left to learn from."
            )
        self.settings = replace(self.estimator._settings(), cv=cv)
        self.data = read_rows(
            reader, self.settings, X, y, sample_weight, prices, log, groups
        )
        self.settings = self.settings.priced_for(self.data.loss)
        self.numbers = [int(f) for f in np.unique(self.data.fold) if f >= 0]
        if len(self.numbers) < 2:
            raise DataError(
                f"n_samples = {len(self.data.y)} makes {len(self.numbers)} folds to hold "
                f"out; give at least two distinct rows, of a class if there are classes."
            )
        X = X if Table.holds(X) else np.asarray(X)
        self.given = X, y, sample_weight, prices
        self.groups = groups
        if groups is not None and self.cv is not None:
            rest = [self.data.unit[self._rows(f, held=False)] for f in self.numbers]
            if any(len(np.unique(unit)) < 2 for unit in rest):
                raise DataError(  # no other group would judge leaves
                    "groups leaves a single group where others are held out; give at least "
                    "three groups, so that leaves are judged on one that they have not "
                    "seen."
                )
        held_out = [self.data.take(self._rows(f, held=True)) for f in self.numbers]
        self.tests = [
            (rows_of(X, part.rows), _taken(prices, part.rows), part)
            for part in held_out
        ]
        self.weight = np.array([part.weight.sum() for part in held_out])
        self._reader = reader
        self._shared: SharedClassifiers | None = None
        self._folds = list(self._open())
        self._measured: dict[float, Measured] = {}
        self._baselines: dict[str, Measured] = {}

    def _rows(self, fold: int, held: bool) -> Rows:
        return np.flatnonzero((self.data.fold == fold) == held)

    def _shares(self) -> bool:
        """Whether a leaf classifier fitted for one fold is the one another would fit."""
        data, cv = self.data, self.cv
        if data.continued is not None:  # stand-ins are found on all rows
            return True
        if data.loss.numbers:  # regressions take no longer than to share them
            return False
        complete = all(
            len(np.unique(data.y[self._rows(f, held=False)])) == len(data.classes)
            for f in self.numbers
        )
        return (
            complete
            and not (self.settings.classifier == "auto" and self.settings.calibration)
            and not data.reader.transformers
            and data.prices is None
            and (cv is None or isinstance(cv, Integral))
            and FEWEST_TO_SHARE <= len(self.numbers) <= MOST_TO_SHARE
        )

    def _without_a_fold(self, settings: Settings) -> Settings:
        """Settings of a fit whose leaves must take the gaps of held-out rows too."""
        gaps = any(np.isnan(block).any() for block in self.data.blocks)
        if settings.classifier == "auto" and gaps:
            return replace(settings, classifier="boosted")
        return settings

    def _open(self) -> Iterator[tuple[Any, Prepared]]:
        """The rows outside each fold, prepared, and the estimator that has read them."""
        if not self._shares():
            X, y, sample_weight, prices = self.given
            for fold in self.numbers:
                rows = np.sort(self.data.rows[self._rows(fold, held=False)])
                given = (y, sample_weight, prices, None, self.groups)
                parts = [_taken(part, rows) for part in given]
                reader = clone(self.estimator)
                settings = self._without_a_fold(reader._settings())
                with warnings.catch_warnings():
                    # You were warned about all rows already.
                    warnings.simplefilter("ignore", FewRowsWarning)
                    read = read_rows(reader, settings, rows_of(X, rows), *parts)
                settings = settings.priced_for(read.loss)
                prepared = prepare(read, settings, self.progress.part())
                yield reader, replace(prepared, winners=Winners())
            return
        settings = self._without_a_fold(self.settings)
        shared: dict[type, dict[Any, Any]] = {}
        if settings.classifier != "auto" and self.data.continued is None:
            own = resolve_classifier(settings.classifier, settings.calibration)
            if not isinstance(own, (RidgeLogisticRegression, BoostedTrees)):
                self._shared = SharedClassifiers(self.data, own, settings.n_jobs)
        for fold in self.numbers:
            data = self.data.take(self._rows(fold, held=False))
            if self.cv is None:  # judged on the rows they were fitted on
                data = replace(data, fold=np.full(len(data.y), -1))
            share = self._sharing(fold, shared)
            prepared = prepare(data, settings, self.progress.part(), share)
            yield self._reader, replace(prepared, winners=Winners())

    def _sharing(self, fold: int, shared: dict[type, dict[Any, Any]]) -> Share:
        """Leaves that other folds learn from too, of each kind."""

        def share(leaves: LeafClassifiers) -> LeafClassifiers:
            task = leaves.data, leaves.classifier, leaves.n_jobs
            out, kind = frozenset({fold}), type(leaves.classifier)
            if self._shared is not None:
                return FittedForFolds(*task, out=out, shared=self._shared)
            alone = self.cv is None or self.data.continued is not None
            if alone or not issubclass(kind, RidgeLogisticRegression):
                return leaves
            judged = shared.setdefault(kind, {})
            return LogisticFold(*task, out=out, every=self.data, judged=judged)

        return share

    def settle(self) -> None:
        """Let later points learn nothing more, so that their order does not matter."""
        for _, prepared in self._folds:
            assert prepared.winners is not None
            prepared.winners.settled = True

    @cached_property
    def all_rows(self) -> Prepared:
        """All rows, prepared; classifiers that folds have fitted judge there.

        They judge the folds of this object, not those of the estimator's own `cv`. The
        fit on all rows is finished, whatever the time.
        """
        quiet, shared = TextProgress(verbose=False), self._shared
        if shared is None or self.cv is None or self.settings.classifier == "auto":
            return prepare(self.data, self.settings, quiet)
        task = self.data, shared.classifier, shared.n_jobs
        leaves = FittedForFolds(*task, shared=shared, out=frozenset())
        return Prepared(leaves, self.settings, quiet)

    def fit_on_all_rows(self, model: Any) -> Any:
        """Fit a copy of the estimator with another cost weight on all rows."""
        return model._fit_prepared(self.all_rows, self._reader)

    def measure(self, value: float) -> Measured | None:
        """Fit without each fold in turn; mean loss and cost on the fold.

        None if the time was over before; the first is measured whatever the time. The
        value is a cost weight, or of the parameter that traces the method.
        """
        if value in self._measured:
            return self._measured[value]
        found = []
        settings = {self.estimator._traced_by: value}
        for (reader, prepared), test in zip(self._folds, self.tests, strict=True):
            if self._measured and self.progress.stopped:
                return None
            model = clone(self.estimator).set_params(**settings)
            model._check_parameters()
            model._fit_prepared(prepared, reader)
            found.append(_judged(model, *test))
        if self._measured and self.progress.stopped:
            return None  # the last tree may have been cut short
        measured = self._told("a point", found)
        self._measured[value] = measured
        return measured

    def _told(self, what: str, found: list[tuple[Array, Array]]) -> Measured:
        """Put together what was measured on the folds, and report it."""
        parts = [part for _, _, part in self.tests]
        means = [
            np.average(values, axis=1, weights=part.weight)
            for (values, _), part in zip(found, parts, strict=True)
        ]
        every = Observations.of_rows(
            np.concatenate([part.unit for part in parts]),
            np.concatenate([part.weight for part in parts]),
        )
        noise = [
            every.noise(values) for values in np.hstack([values for values, _ in found])
        ]
        shown = {}
        if not self.data.loss.numbers:
            posterior = np.concatenate([own for _, own in found])
            truth = np.concatenate([part.y for part in parts])
            weight = np.concatenate([part.weight for part in parts])
            answer = self.data.loss.answer(posterior)
            shown = metrics(posterior, answer, truth, weight / weight.sum())
        measured = Measured(np.array(means), np.array(noise), self.weight, shown)
        cost, error = measured.point
        self.progress.step(what, f"mean cost {cost:.4g}, error {error:.4f}")
        return measured

    def measure_baseline(self, name: str) -> Measured | None:
        """What buying the same for every example gives: everything, or nothing.

        Leaf classifiers are those of the method, fitted without each fold in turn. None
        where not all sensors may be bought together, and of a method without leaf
        classifiers. The time is not looked at. The name is "everything" or "nothing".
        """
        subset = both_ends(self.data.market(None)).get(name)
        parameters = self.estimator.get_params(deep=False)
        if subset is None or not {"classifier", "regressor"} & set(parameters):
            return None
        if name not in self._baselines:
            settings = replace(self.settings, cost_weight=0.0, max_cost=None)
            tree = SensorTree(Leaf(subset, refers=False))
            built = Chosen(tree, report_of_built(name, tree, self.data.sensors))
            found = []
            for (reader, prepared), test in zip(self._folds, self.tests, strict=True):
                model = clone(self.estimator)
                fitted = fit_policy(
                    prepared, settings, decide_nothing, lambda *_: built
                )
                model._show_read(fitted, reader)
                found.append(_judged(model, *test))
            self._baselines[name] = self._told(f"buying {name}", found)
        return self._baselines[name]

    def automatic_ends(self) -> tuple[float, float]:
        """Cost weights beyond which nothing is bought, and all that saves any error.

        No purchase is worth more than the largest loss; and when all sensors of all rows
        together cost less than one error, prices no longer matter.
        """
        sensors = self.data.sensors
        prices = sensors.costs if self.data.prices is None else self.data.prices
        least = self.data.market(None).discounted()
        positive = np.r_[least[least > 0], prices[prices > 0]]
        if not positive.size:
            return 0.0, 0.0
        loss, most = self.data.loss, self.data.largest_loss
        if isinstance(loss, NumberLoss):
            most = loss.most_worth
        everything = len(self.data.distinct()[0]) * float(
            np.mean(np.sum(prices, axis=-1))
        )
        return float(most / positive.min()), float(most / everything)


def _judged(model: Any, X: Any, prices: Any, part: TrainingRows) -> tuple[Array, Array]:
    """Error, loss and cost of some rows, (3, n_rows), and their posterior."""
    if part.continued is not None:
        likely, error, lost, cost, referred = walk_through_log(model.policy_, part)
    else:
        with warnings.catch_warnings():
            # A fold may hold levels that the others do not have; that is no news.
            warnings.simplefilter("ignore", UnseenWarning)
            likely = model.policy_.outputs(model._table(X, prices))
            cost = model.acquisition_cost(X, prices)
            referred = model.referred(X, prices)
        error = part.loss.error(part.y, part.loss.answer(likely))
        lost = part.judge(likely)
    if part.refer_costs is not None:
        lost = np.where(referred, part.handed_over(), lost)
    return np.stack([error, lost, cost]), likely


def _taken(values: Any, rows: Rows) -> Any:
    return None if values is None else np.asarray(values)[rows]


def walk_through_log(
    policy: Policy, rows: TrainingRows
) -> tuple[Array, Array, Array, Array, Mask]:
    """Lead rows of a log through a policy, as a fit looks at them.

    At every place a row is looked at with its own readings and, where the log holds too
    little of it, with those that are filled in; what it loses is put right as in a fit.

    Posteriors, (n_rows, n_outputs); error and loss of each row, doubly robust; its cost;
    and whether it is referred to a person.
    """
    log = rows.continued
    assert log is not None
    tree, n_rows, prices = policy.tree, len(rows.y), rows.varying_prices()

    def posterior_at(place: Place) -> Array:
        X = rows.features(place.sensors)
        own = posterior(place.classifier, X, rows.n_outputs)
        return own if place.calibration is None else place.calibration(own)

    decisions = np.empty((n_rows, tree.n_nodes))
    for node in range(tree.n_nodes):
        place = policy.places[~node]
        decision = place.decision
        assert decision is not None  # a node
        seen = posterior_at(place) if decision.needs_posterior else None
        decisions[:, node] = decision(rows.features(place.sensors), seen, prices)
    leaf = tree.route(decisions)
    answered = np.empty((n_rows, rows.n_outputs))
    error, lost = np.empty(n_rows), np.empty(n_rows)
    for k in np.unique(leaf):
        place, here = policy.places[k], leaf == k
        own = posterior_at(place)
        answered[here] = own[here]
        wrong = rows.loss.error(rows.y, rows.loss.answer(own))
        error[here] = log.put_right(wrong.astype(np.float64), place.sensors)[here]
        lost[here] = log.put_right(rows.judge(own), place.sensors)[here]
    costs = leaf_costs(tree, rows.sensors, rows.prices)
    paid = np.broadcast_to(costs, (n_rows, tree.n_leaves))[np.arange(n_rows), leaf]
    refers = np.array([bool(end.refers) for end in tree.leaves])
    return answered, error, lost, np.asarray(paid), refers[leaf]
