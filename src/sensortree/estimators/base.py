"""`BaseSensorTreeClassifier`: `fit` as a story with one hole, `_fit_decisions`."""

from __future__ import annotations

import time
from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import (
    get_tags,
)
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from sensortree.estimators.callbacks import (
    CallbackSupportMixin,
    Progress,
    all_or_nothing,
    with_callbacks,
)
from sensortree.estimators.prediction import PolicyPredictor
from sensortree.estimators.validation import TrainingReader
from sensortree.exceptions import ParameterError
from sensortree.learning.choosing import LEARNED, StructureChooser
from sensortree.learning.fits import PathOfFits
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.fitting import (
    CALIBRATIONS,
    accepts_nan,
    compile_classifier,
    resolve_classifier,
    trusted_posterior,
)
from sensortree.leaves.rows import TrainingRows
from sensortree.policy.decisions import (
    PARTS,
    DecisionFeatures,
    DecisionFunction,
    Part,
    Raw,
    Transformed,
    fit_decision_features,
)
from sensortree.policy.flow import Flow, measure_flow
from sensortree.policy.policy import Policy
from sensortree.program.risk import leaf_risk, max_risk
from sensortree.program.routing import RoutingProblem
from sensortree.progress import TextProgress
from sensortree.structure import prune
from sensortree.structure.search import StructureSearch
from sensortree.tree.paths import leaf_costs
from sensortree.tree.tree import Leaf, Node, SensorTree
from sensortree.types import Array

# l2="auto", as a multiple of the mean spread of an example's leaf risks.
RIDGE = 30.0

__all__ = [
    "BaseSensorTreeClassifier",
    "Interval",
    "StrOptions",
    "automatic_ridge",
]


class BaseSensorTreeClassifier(
    CallbackSupportMixin,
    StructureChooser,
    TrainingReader,
    PolicyPredictor,
    ClassifierMixin,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Classifiers that buy sensors along a tree; a method fills `_fit_decisions`."""

    sensors: Any
    costs: Any
    cost_weight: float
    structure: Any
    n_leaves: int
    n_exact: int | str
    max_time: float | None
    root_sensors: Any
    classifier: Any
    calibration: str | None
    cv: Any
    errors: str
    decision_features: Any
    loss: Any
    max_cost: float | None
    improve: int
    n_jobs: int | None
    verbose: bool
    fallback_leaf_: int | None
    # The parameter that trades error against cost.
    _traced_by: ClassVar[str] = "cost_weight"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "cost_weight": [Interval(Real, 0, None, closed="left")],
        "structure": [
            StrOptions({"exhaustive", "cascade", *LEARNED}),
            SensorTree,
            Mapping,
        ],
        "n_leaves": [Interval(Integral, 1, None, closed="left")],
        "n_exact": [StrOptions({"all"}), Interval(Integral, 1, None, closed="left")],
        "max_time": [None, Interval(Real, 0, None, closed="neither")],
        "root_sensors": [StrOptions({"auto"}), list, tuple, set, frozenset],
        "classifier": [str, HasMethods(["fit", "predict"])],
        "calibration": [None, StrOptions(set(CALIBRATIONS))],
        "cv": [
            None,
            Interval(Integral, 2, None, closed="left"),
            HasMethods(["split"]),
            Iterable,
        ],
        "errors": [StrOptions({"smoothed", "observed"})],
        "decision_features": [StrOptions(set(PARTS)), HasMethods(["fit", "transform"])],
        "l2": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "max_cost": [None, Interval(Real, 0, None, closed="left")],
        "improve": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "verbose": ["boolean"],
    }

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        prices: ArrayLike | None = None,
    ) -> Any:
        """Learn the decision functions and the leaf classifiers.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            All sensors of all examples.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 0 is the same as leaving the row out, weight 2 as repeating it.
        prices : array-like of shape (n_samples, n_sensors), default=None
            Prices of each example, where they are not columns of X; NaN stands for the
            sensor's own price. Predictions then need `prices` too.

        Returns
        -------
        self
        """
        progress = Progress(self)
        with all_or_nothing(self):
            self._check_parameters()
            leaves = self._judges(self._read(X, y, sample_weight, prices))
            self._fit(leaves, self._search(leaves, progress), progress)
        progress.end()
        return self

    def fit_path(
        self,
        X: Any,
        y: Any,
        cost_weights: Iterable[float],
        sample_weight: ArrayLike | None = None,
        prices: ArrayLike | None = None,
    ) -> list[Any]:
        """Fit one model per cost weight; leaf classifiers are fitted only once.

        Methods that are traced by another parameter say so; the values are then of that
        parameter.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        cost_weights : iterable of float
            `max_time` is for the searches of all of them together.
        sample_weight : array-like of shape (n_samples,), default=None
        prices : array-like of shape (n_samples, n_sensors), default=None

        Returns
        -------
        models : list
            Fitted copies of this estimator, which itself is left as it is.

        Examples
        --------
        >>> import numpy as np
        >>> from sensortree import SensorTreeClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = X[:, 0] + 0.3 * X[:, 1] > 0
        >>> dear, cheap = SensorTreeClassifier().fit_path(X, y, [0.5, 0.001])
        >>> bool(dear.acquisition_cost(X).mean() < cheap.acquisition_cost(X).mean())
        True
        """
        traced = self._traced_by
        models = [clone(self).set_params(**{traced: w}) for w in cost_weights]
        for model in models:
            model._check_parameters()
        path = self._open_path(X, y, sample_weight, prices)
        for model in models:
            path.fit(model)
        return models

    def _open_path(self, X: Any, y: Any, sample_weight: Any, prices: Any) -> PathOfFits:
        """Read the data once, for models that differ in their cost weight."""
        reader = clone(self)
        leaves = reader._judges(reader._read(X, y, sample_weight, prices))
        return PathOfFits(reader, leaves)

    def _judges(self, data: TrainingRows) -> LeafClassifiers:
        classifier = resolve_classifier(self.classifier, self.calibration)
        return LeafClassifiers(data, classifier, self.n_jobs)

    def _search(
        self, leaves: LeafClassifiers, progress: TextProgress
    ) -> StructureSearch:
        deadline = None if self.max_time is None else time.monotonic() + self.max_time
        n_exact = None if self.n_exact == "all" else int(self.n_exact)
        return StructureSearch(
            leaves, self.n_leaves, n_exact, deadline, progress, self.max_cost
        )

    def _fit(
        self, leaves: LeafClassifiers, search: StructureSearch, progress: TextProgress
    ) -> None:
        """Structure, leaf classifiers, risk, decisions, policy: the story of a fit."""
        data = leaves.data
        tree, report = self._choose_structure(leaves, search)
        features, problem, observed = self._pose(tree, leaves)
        progress.step("leaf classifiers")
        coef = self._fit_decisions(problem, observed)
        progress.step("decisions")
        margins = problem.margins(coef)
        if self._learns_structure():
            visits = np.bincount(tree.route(margins), minlength=tree.n_leaves)
            tree, nodes = prune(tree, visits)
            features, coef = [features[j] for j in nodes], [coef[j] for j in nodes]
            margins = margins[:, nodes]
            report = replace(report, pruned=int((visits == 0).sum()))
            if getattr(self, "fallback_leaf_", None) is not None:
                self.fallback_leaf_ = 0  # the only leaf that is left
        decisions = tuple(map(DecisionFunction, features, coef))
        flow = self._flow(tree, leaves, margins)
        fitted = leaves.fit(self._judged_subsets(tree))
        used = {subset: compile_classifier(fitted[subset]) for subset in fitted}
        self.policy_ = Policy(
            data.reader,
            tree,
            decisions,
            used,
            data.classes,
            flow,
            data.loss,
            float(self.cost_weight),
            None if self.max_cost is None else float(self.max_cost),
        )
        self.classes_ = data.classes
        self.sensors_ = data.sensors
        self.tree_ = tree
        self.structure_report_ = report

    @abstractmethod
    def _fit_decisions(
        self, problem: RoutingProblem, observed: RoutingProblem
    ) -> list[Array]:
        """Learn the coefficients of every decision function.

        `observed` is the same problem with the errors that were made, where `problem` may
        hold smoothed ones.
        """

    def _check_parameters(self) -> None:
        parameters = self.get_params(deep=False)
        try:
            validate_parameter_constraints(
                self._parameter_constraints,
                {
                    k: v
                    for k, v in parameters.items()
                    if k in self._parameter_constraints
                },
                caller_name=type(self).__name__,
            )
        except InvalidParameterError as error:
            raise ParameterError(str(error)) from error

    def _judged_subsets(self, tree: SensorTree) -> list[frozenset[str]]:
        """Subsets that need a classifier: of leaves, of nodes, and of nothing at all."""
        vertices: list[Leaf | Node] = [*tree.leaves, *tree.nodes]
        known = [vertex.sensors for vertex in vertices]
        return list(dict.fromkeys([*known, frozenset()]))

    def _believed_subsets(self, tree: SensorTree) -> list[frozenset[str]]:
        """Subsets whose classifiers say how likely an error is: of this tree only.

        Of all that the tree may buy too, which knows most; what else was judged on the
        way must not matter.
        """
        vertices: list[Leaf | Node] = [*tree.leaves]
        vertices += tree.nodes if self._asks_posterior() else ()
        subsets = [vertex.sensors for vertex in vertices]
        if self.errors == "smoothed":
            subsets.append(tree.sensors)
        return list(dict.fromkeys(subsets))

    def _leaf_risk(
        self, tree: SensorTree, leaves: LeafClassifiers
    ) -> tuple[Array, Array]:
        """Leaf risks (R_k) to learn from, and as observed, (n_samples, n_leaves)."""
        data = leaves.data
        market = data.market(self.max_cost)
        costs = leaf_costs(tree, data.sensors, data.prices)
        answers = self._answers(tree.leaves, leaves)
        errors = data.loss.of(data.y[:, None], answers)
        observed = leaf_risk(errors, costs, self.cost_weight)
        risk = observed
        if self.errors == "smoothed" and (data.fold >= 0).any():
            posteriors = {s: leaves.posteriors[s] for s in self._believed_subsets(tree)}
            belief = trusted_posterior(posteriors, data.y, data.weight)
            if belief is not None:
                errors = data.loss.expected(belief, answers)
                expected = leaf_risk(errors, costs, self.cost_weight)
                risk = 0.5 * (observed + expected)
        # No decision may lead where an example cannot pay.
        ruled_out = ~market.affordable(costs)
        worst = self._max_risk(data)
        return np.where(ruled_out, worst, risk), np.where(ruled_out, worst, observed)

    def _answers(
        self, vertices: Sequence[Leaf | Node], leaves: LeafClassifiers
    ) -> NDArray[np.intp]:
        """Answer at each vertex, out of fold, (n_samples, n_vertices)."""
        data = leaves.data
        said = [data.loss.answer(leaves.posteriors[v.sensors]) for v in vertices]
        return np.stack(said, axis=1) if said else np.empty((len(data.y), 0), np.intp)

    def _max_risk(self, data: TrainingRows) -> float:
        """R_max: everything bought at the highest prices, and the worst answer."""
        costs = data.sensors.costs if data.prices is None else data.prices
        highest = float(np.max(costs.sum(axis=-1)))
        return max_risk(highest, self.cost_weight, data.loss.largest)

    def _flow(self, tree: SensorTree, leaves: LeafClassifiers, margins: Array) -> Flow:
        """Where the training examples went, and what else they could have had."""
        data = leaves.data
        rows, weight = data.distinct()
        leaves.judge(self._judged_subsets(tree))
        y = data.y[rows]
        return measure_flow(
            tree,
            margins,
            data.loss.of(y[:, None], self._answers(tree.leaves, leaves)[rows]),
            data.loss.of(y[:, None], self._answers(tree.nodes, leaves)[rows]),
            y,
            len(data.classes),
            weight,
        )

    def _asks_posterior(self) -> bool:
        return isinstance(self.decision_features, str) and any(
            part.needs_posterior for part in PARTS[self.decision_features]
        )

    def _pose(
        self, tree: SensorTree, leaves: LeafClassifiers
    ) -> tuple[list[DecisionFeatures], RoutingProblem, RoutingProblem]:
        """Say what each node sees, on distinct rows, and what each leaf would cost."""
        leaves.judge(self._believed_subsets(tree))
        risk, observed = self._leaf_risk(tree, leaves)
        data, posteriors = leaves.data, leaves.posteriors
        rows, weight = data.distinct()
        prices = data.varying_prices()[rows]
        features, values = {}, {}
        for subset in dict.fromkeys(node.sensors for node in tree.nodes):
            readings = data.features(subset)[rows]
            said = posteriors[subset][rows] if subset in posteriors else None
            parts = self._parts(readings, data.y[rows])
            features[subset] = fit_decision_features(
                parts, readings, said, prices, weight
            )
            values[subset] = features[subset](readings, said, prices)
        problem = RoutingProblem(
            tree,
            tuple(values[node.sensors] for node in tree.nodes),
            risk[rows],
            weight,
            self._max_risk(data),
        )
        bases = [features[node.sensors] for node in tree.nodes]
        return bases, problem, problem.with_risk(observed[rows])

    def _parts(self, readings: Array, y: NDArray[np.intp]) -> tuple[Part, ...]:
        """Parts of the decision features; a transformer is fitted on its own copy."""
        if not readings.shape[1]:  # nothing is known, and the prior is the same for all
            return (Raw(),)
        if isinstance(self.decision_features, str):
            return PARTS[self.decision_features]
        return (Transformed(clone(self.decision_features).fit(readings, y)),)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._accepts_nan()
        return tags

    def _accepts_nan(self) -> bool:
        """Whether every sensor's transformer, or else the classifier, takes NaN."""
        try:
            classifier = accepts_nan(resolve_classifier(self.classifier))
        except ParameterError:  # reported by fit
            return False
        if not isinstance(self.sensors, Mapping):
            return classifier
        transformers = [getattr(s, "transformer", None) for s in self.sensors.values()]
        return all(
            classifier if t is None else bool(get_tags(t).input_tags.allow_nan)
            for t in transformers
        )


def automatic_ridge(problem: RoutingProblem) -> float:
    """Ridge penalty in proportion to how much an example's leaves differ."""
    spread = np.ptp(problem.leaf_risk, axis=1)
    return float(RIDGE * np.average(spread, weights=problem.weight))
