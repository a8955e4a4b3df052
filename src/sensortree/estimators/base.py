"""`BaseSensorTreeClassifier`: `fit` as a story with one hole, `_fit_decisions`."""

from __future__ import annotations

import time
from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from sensortree.decision import (
    PARTS,
    DecisionFeatures,
    DecisionFunction,
    Part,
    Raw,
    Transformed,
    fit_decision_features,
)
from sensortree.estimators.climb import improve_structure
from sensortree.estimators.prediction import PolicyPredictor
from sensortree.estimators.progress import (
    CallbackSupportMixin,
    Progress,
    TextProgress,
    all_or_nothing,
    with_callbacks,
)
from sensortree.estimators.reading import TrainingReader
from sensortree.estimators.search import (
    SEARCHES,
    StructureReport,
    StructureSearch,
    built,
)
from sensortree.estimators.training import Judges, TrainingData
from sensortree.exceptions import ParameterError, SensorError
from sensortree.leaves import (
    CALIBRATIONS,
    accepts_nan,
    resolve_classifier,
    trusted_posterior,
)
from sensortree.policy import Policy
from sensortree.program.routing import RoutingProblem
from sensortree.risk import leaf_risk, max_risk
from sensortree.sensors import SensorSet
from sensortree.structure import (
    cascade_tree,
    check_tree_fits,
    exhaustive_leaves,
    exhaustive_tree,
    prune,
)
from sensortree.tree import Leaf, Node, SensorTree

Array = NDArray[np.float64]

LEARNED = ("auto", *SEARCHES)
# structure="auto" is exhaustive up to this many leaves.
EXHAUSTIVE = 16
# Rows up to which structures are compared on all folds.
FEW_ROWS = 3000
# l2="auto", as a multiple of the mean spread of an example's leaf risks.
RIDGE = 30.0

__all__ = [
    "BaseSensorTreeClassifier",
    "Interval",
    "StrOptions",
    "automatic_ridge",
    "leaf_costs",
]


class BaseSensorTreeClassifier(
    CallbackSupportMixin,
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
    improve: int
    n_jobs: int | None
    verbose: bool
    fallback_leaf_: int | None

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
        "improve": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "verbose": ["boolean"],
    }

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Learn the decision functions and the leaf classifiers.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            All sensors of all examples.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 0 is the same as leaving the row out, weight 2 as repeating it.

        Returns
        -------
        self
        """
        progress = Progress(self)
        with all_or_nothing(self):
            self._check_parameters()
            judges = self._judges(self._read(X, y, sample_weight))
            self._fit(judges, self._search(judges, progress), progress)
        progress.end()
        return self

    def fit_path(
        self,
        X: Any,
        y: Any,
        cost_weights: Iterable[float],
        sample_weight: ArrayLike | None = None,
    ) -> list[Any]:
        """Fit one model per cost weight; leaf classifiers are fitted only once.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        cost_weights : iterable of float
            `max_time` is for the searches of all of them together.
        sample_weight : array-like of shape (n_samples,), default=None

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
        models = [clone(self).set_params(cost_weight=w) for w in cost_weights]
        for model in models:
            model._check_parameters()
        reader = clone(self)
        judges = reader._judges(reader._read(X, y, sample_weight))
        progress = TextProgress(self.verbose)
        search = reader._search(judges, progress)
        seen = {
            name: value
            for name, value in vars(reader).items()
            if name in ("n_features_in_", "feature_names_in_")
        }
        for model in models:
            vars(model).update(seen)
            model._fit(judges, search, progress)
        return models

    def _judges(self, data: TrainingData) -> Judges:
        classifier = resolve_classifier(self.classifier, self.calibration)
        return Judges(data, classifier, self.n_jobs)

    def _search(self, judges: Judges, progress: TextProgress) -> StructureSearch:
        deadline = None if self.max_time is None else time.monotonic() + self.max_time
        n_exact = None if self.n_exact == "all" else int(self.n_exact)
        return StructureSearch(judges, self.n_leaves, n_exact, deadline, progress)

    def _fit(
        self, judges: Judges, search: StructureSearch, progress: TextProgress
    ) -> None:
        """Structure, leaf classifiers, risk, decisions, policy: the story of a fit."""
        data = judges.data
        tree, report = self._choose_structure(judges, search)
        features, problem, observed = self._pose(tree, judges)
        progress.step("leaf classifiers")
        coef = self._fit_decisions(problem, observed)
        progress.step("decisions")
        if self._learns_structure():
            leaf = tree.route(problem.margins(coef))
            visits = np.bincount(leaf, minlength=tree.n_leaves)
            tree, nodes = prune(tree, visits)
            features, coef = [features[j] for j in nodes], [coef[j] for j in nodes]
            report = replace(report, pruned=int((visits == 0).sum()))
            if getattr(self, "fallback_leaf_", None) is not None:
                self.fallback_leaf_ = 0  # the only leaf that is left
        decisions = tuple(map(DecisionFunction, features, coef))
        used = judges.fit(self._judged_subsets(tree))
        self.policy_ = Policy(data.reader, tree, decisions, used, data.classes)
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

    def _choose_structure(
        self, judges: Judges, search: StructureSearch
    ) -> tuple[SensorTree, StructureReport]:
        """Give the tree that `structure` and `root_sensors` stand for."""
        sensors = judges.data.sensors
        if self._learns_structure():
            named = self._named_root(sensors)
            found = self._learn_structure(judges, search)
            fixed = frozenset(self._free(sensors) if named is None else named)
            return improve_structure(self, *found, fixed, judges, search)
        if isinstance(self.structure, str):
            tree = self._build_structure(sensors)
        else:
            tree = self._given_structure(sensors)
        name = self.structure if isinstance(self.structure, str) else "given"
        return tree, built(name, tree, sensors)

    def _learns_structure(self) -> bool:
        return isinstance(self.structure, str) and self.structure in LEARNED

    def _given_structure(self, sensors: SensorSet) -> SensorTree:
        given = isinstance(self.structure, SensorTree)
        tree = self.structure if given else SensorTree.from_dict(self.structure)
        check_tree_fits(tree, sensors)
        if self.root_sensors != "auto":
            raise ParameterError(
                "root_sensors is for trees that are built; the structure given is a tree, "
                "whose root says what is known there: leave root_sensors at 'auto'."
            )
        return tree

    def _build_structure(self, sensors: SensorSet) -> SensorTree:
        root = self._cheap_root(sensors)
        if self.structure == "exhaustive":
            return exhaustive_tree(sensors.names, root)
        return cascade_tree(sensors.cheapest_first(), root)

    def _cheap_root(self, sensors: SensorSet) -> tuple[str, ...]:
        """Sensors named by the user, or else the free ones, or else the cheapest."""
        named = self._named_root(sensors)
        if named is not None:
            return named
        return self._free(sensors) or sensors.cheapest_first()[:1]

    @staticmethod
    def _free(sensors: SensorSet) -> tuple[str, ...]:
        pairs = zip(sensors.names, sensors.costs, strict=True)
        return tuple(name for name, cost in pairs if not cost)

    def _named_root(self, sensors: SensorSet) -> tuple[str, ...] | None:
        """Sensors that the user wants known at the root; None for "auto"."""
        if isinstance(self.root_sensors, str):
            return None
        for name in self.root_sensors:
            if name not in sensors.names:
                raise SensorError(
                    f"root_sensors names {name!r}, which is not a sensor; the sensors are "
                    f"{', '.join(map(repr, sensors.names))}."
                )
        return tuple(self.root_sensors)

    def _learn_structure(
        self, judges: Judges, search: StructureSearch
    ) -> tuple[SensorTree, StructureReport]:
        """Run the search asked for, or several, of which the least validated risk wins."""
        sensors = judges.data.sensors
        named = self._named_root(sensors)
        root = None if named is None else frozenset(map(sensors.index, named))
        if self.structure != "auto":
            return search.run(self.structure, self.cost_weight, root)
        found: dict[str, tuple[SensorTree, StructureReport]] = {}
        if exhaustive_leaves(len(sensors) - (len(named) if named else 1)) <= EXHAUSTIVE:
            start = search.root(self.cost_weight) if root is None else root
            tree = exhaustive_tree(sensors.names, [sensors.names[j] for j in start])
            return tree, built("exhaustive", tree, sensors)
        for name in ("chain", "grown"):
            found[name] = search.run(name, self.cost_weight, root)
        if len(sensors) <= self.n_leaves:
            cascade = cascade_tree(sensors.cheapest_first(), self._cheap_root(sensors))
            found["cascade"] = cascade, built("cascade", cascade, sensors)
        risks = {
            name: self._validated_risk(tree, judges)
            for name, (tree, _) in found.items()
        }
        validated = {name: float(risk.mean()) for name, risk in risks.items()}
        winner = min(validated, key=validated.__getitem__)
        if "cascade" in found and winner != "cascade":
            # An order that was not learned is left only for what is clearly better.
            lead = risks["cascade"] - risks[winner]
            if lead.mean() < lead.std() / np.sqrt(len(lead)):
                winner = "cascade"
        tree, report = found[winner]
        return tree, replace(report, validated=validated)

    def _validated_risk(self, tree: SensorTree, judges: Judges) -> Array:
        """Observed risks, times weight, on rows that decisions were not learned from.

        Each fold in turn is held out; of many rows, two folds together once.
        """
        _, problem, observed = self._pose(tree, judges)
        rows, _ = judges.data.distinct()
        fold = judges.data.fold[rows]
        folds = np.unique(fold[fold >= 0])
        few = len(rows) <= FEW_ROWS
        parts = [fold == f for f in folds] if few else [np.isin(fold, folds[:2])]
        risks = []
        for held_out in parts:
            train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
            if not (len(train) and len(test)):
                continue
            coef = self._fit_decisions(problem.take(train), observed.take(train))
            risks.append(observed.take(test).risks(coef))
        if not risks:  # nothing is held out: what was learned from must do
            risks = [observed.risks(self._fit_decisions(problem, observed))]
        return np.concatenate(risks)

    def _routed(self, tree: SensorTree, judges: Judges) -> NDArray[np.intp]:
        """The leaf that each training row reaches when decisions are learned from all."""
        _, problem, observed = self._pose(tree, judges)
        leaf = tree.route(problem.margins(self._fit_decisions(problem, observed)))
        first, _ = judges.data.distinct()
        return np.repeat(leaf, np.diff(np.r_[first, len(judges.data.y)]))

    def _judged_subsets(self, tree: SensorTree) -> list[frozenset[str]]:
        """Subsets that need a classifier: of leaves, and of nodes that ask a posterior."""
        vertices: list[Leaf | Node] = [*tree.leaves]
        vertices += tree.nodes if self._asks_posterior() else ()
        return list(dict.fromkeys(vertex.sensors for vertex in vertices))

    def _believed_subsets(self, tree: SensorTree) -> list[frozenset[str]]:
        """Those, and for smoothed errors all that the tree may buy, which knows most."""
        subsets = self._judged_subsets(tree)
        return subsets if self.errors == "observed" else [*subsets, tree.sensors]

    def _leaf_risk(self, tree: SensorTree, judges: Judges) -> tuple[Array, Array]:
        """Leaf risks (R_k) to learn from, and as observed, (n_samples, n_leaves)."""
        data = judges.data
        # Only of this tree: what else was judged on the way must not matter.
        posteriors = {s: judges.posteriors[s] for s in self._believed_subsets(tree)}
        answers_at = np.column_stack(
            [posteriors[leaf.sensors].argmax(axis=1) for leaf in tree.leaves]
        )
        costs = leaf_costs(tree, data.sensors)
        observed = leaf_risk(answers_at != data.y[:, None], costs, self.cost_weight)
        if self.errors == "observed" or (data.fold < 0).all():
            return observed, observed
        belief = trusted_posterior(posteriors, data.y, data.weight)
        if belief is None:
            return observed, observed
        expected = 1.0 - np.take_along_axis(belief, answers_at, axis=1)
        expected = leaf_risk(expected, costs, self.cost_weight)
        return 0.5 * (observed + expected), observed

    def _asks_posterior(self) -> bool:
        return isinstance(self.decision_features, str) and any(
            part.needs_posterior for part in PARTS[self.decision_features]
        )

    def _pose(
        self, tree: SensorTree, judges: Judges
    ) -> tuple[list[DecisionFeatures], RoutingProblem, RoutingProblem]:
        """Say what each node sees, on distinct rows, and what each leaf would cost."""
        judges.judge(self._believed_subsets(tree))
        risk, observed = self._leaf_risk(tree, judges)
        data, posteriors = judges.data, judges.posteriors
        rows, weight = data.distinct()
        features, values = {}, {}
        for subset in dict.fromkeys(node.sensors for node in tree.nodes):
            readings = data.features(subset)[rows]
            said = posteriors[subset][rows] if subset in posteriors else None
            parts = self._parts(readings, data.y[rows])
            features[subset] = fit_decision_features(parts, readings, said, weight)
            values[subset] = features[subset](readings, said)
        problem = RoutingProblem(
            tree,
            tuple(values[node.sensors] for node in tree.nodes),
            risk[rows],
            weight,
            max_risk(data.sensors.costs, self.cost_weight),
        )
        bases = [features[node.sensors] for node in tree.nodes]
        return bases, problem, problem.with_risk(observed[rows])

    def _parts(self, readings: Array, y: NDArray[np.intp]) -> tuple[Part, ...]:
        """Parts of the decision features; a transformer is fitted on its own copy."""
        if isinstance(self.decision_features, str):
            return PARTS[self.decision_features]
        if not readings.shape[1]:
            return (Raw(),)
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


def leaf_costs(tree: SensorTree, sensors: SensorSet) -> Array:
    """Price of the sensors known at each leaf, (n_leaves,)."""
    return np.array([sensors.cost_of(leaf.sensors) for leaf in tree.leaves])
