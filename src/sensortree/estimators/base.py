"""`BaseSensorTreeClassifier`: `fit` as a story with one hole, `_fit_decisions`.

The only file that imports private parts of scikit-learn.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import (
    assert_all_finite,
    check_consistent_length,
    check_random_state,
    get_tags,
)
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    column_or_1d,
    validate_data,
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
from sensortree.estimators.prediction import PolicyPredictor
from sensortree.estimators.training import (
    Judges,
    TrainingData,
    assign_folds,
    folds_of_splits,
)
from sensortree.exceptions import DataError, ParameterError, SensorError
from sensortree.leaves import (
    CALIBRATIONS,
    accepts_nan,
    resolve_classifier,
    trusted_posterior,
)
from sensortree.policy import Policy
from sensortree.program.routing import RoutingProblem
from sensortree.readings import fit_reader
from sensortree.risk import leaf_risk, max_risk
from sensortree.sensors import Sensor, SensorSet, resolve_sensors
from sensortree.structure import (
    cascade_tree,
    check_tree_fits,
    exhaustive_tree,
)
from sensortree.table import Table
from sensortree.tree import Leaf, Node, SensorTree

Array = NDArray[np.float64]

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
    PolicyPredictor, ClassifierMixin, BaseEstimator, metaclass=ABCMeta
):
    """Classifiers that buy sensors along a tree; a method fills `_fit_decisions`."""

    sensors: Any
    costs: Any
    cost_weight: float
    structure: Any
    root_sensors: Any
    classifier: Any
    calibration: str | None
    cv: Any
    errors: str
    decision_features: Any
    n_jobs: int | None
    random_state: Any

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "cost_weight": [Interval(Real, 0, None, closed="left")],
        "structure": [
            StrOptions({"auto", "exhaustive", "cascade"}),
            SensorTree,
            Mapping,
        ],
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
        "n_jobs": [None, Integral],
    }

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
        with _all_or_nothing(self):
            self._check_parameters()
            self._fit(self._judges(self._read(X, y, sample_weight)))
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
        seen = {
            name: value
            for name, value in vars(reader).items()
            if name in ("n_features_in_", "feature_names_in_")
        }
        for model in models:
            vars(model).update(seen)
            model._fit(judges)
        return models

    def _judges(self, data: TrainingData) -> Judges:
        classifier = resolve_classifier(self.classifier, self.calibration)
        return Judges(data, classifier, self.n_jobs)

    def _fit(self, judges: Judges) -> None:
        """Structure, leaf classifiers, risk, decisions, policy: the story of a fit."""
        data = judges.data
        tree = self._choose_structure(data.sensors)
        judges.fit(self._judged_subsets(tree))
        risk, observed = self._leaf_risk(tree, judges)
        features, problem, rows = self._pose(tree, judges, risk)
        coef = self._fit_decisions(problem, problem.with_risk(observed[rows]))
        decisions = tuple(map(DecisionFunction, features, coef))
        used = {
            subset: judges.classifiers[subset] for subset in self._judged_subsets(tree)
        }
        self.policy_ = Policy(data.reader, tree, decisions, used, data.classes)
        self.classes_ = data.classes
        self.sensors_ = data.sensors
        self.tree_ = tree

    @abstractmethod
    def _fit_decisions(
        self, problem: RoutingProblem, observed: RoutingProblem
    ) -> list[Array]:
        """Learn the coefficients of every decision function.

        `observed` is the same problem with the errors that were made, where `problem` may
        hold smoothed ones.
        """

    def _random_state(self) -> np.random.RandomState:
        random_state: np.random.RandomState = check_random_state(self.random_state)
        return random_state

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

    def _read(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> TrainingData:
        """Validate the data once and for all, and read every sensor."""
        table, sensors, transformers = self._resolve(X)
        target = self._check_target(y, table)
        weight = _check_sample_weight(
            sample_weight, table.data, dtype=np.float64, ensure_non_negative=True
        )
        rows = np.flatnonzero(weight > 0)
        y, weight = target[rows], weight[rows]
        classes, codes = _encode(y)
        weighted = sample_weight is not None
        reader, blocks = fit_reader(
            sensors,
            {name: clone(transformer) for name, transformer in transformers.items()},
            table,
            rows,
            y,
            weight if weighted else None,
            accepts_nan(resolve_classifier(self.classifier)),
        )
        fold = self._split(table, target, rows)
        values = np.hstack([*blocks, codes[:, None], fold[:, None]])
        order = np.lexsort([weight, *values.T[::-1]])  # the last key counts most
        blocks = [block[order] for block in blocks]
        codes, fold = codes[order], fold[order]
        if isinstance(self.cv, Integral):
            fold = assign_folds(np.hstack(blocks), codes, int(self.cv), classes)
        return TrainingData(
            reader, blocks, codes, classes, weight[order], weighted, fold
        )

    def _split(
        self, table: Table, y: NDArray[Any], rows: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Fold of each row by the user's splitter; -1 where there is none."""
        if self.cv is None or isinstance(self.cv, Integral):
            return np.full(len(rows), -1)
        splits = check_cv(self.cv, y, classifier=True).split(table.data, y)
        return folds_of_splits(splits, len(y))[rows]

    def _check_target(self, y: Any, table: Table) -> NDArray[Any]:
        """Give y as one class per row."""
        if y is None:
            raise DataError(
                f"requires y to be passed, but the target y is None; "
                f"{type(self).__name__} learns from labelled data."
            )
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_consistent_length(table.data, y)
        check_classification_targets(y)
        return np.asarray(y)

    def _resolve(self, X: Any) -> tuple[Table, SensorSet, dict[str, Any]]:
        """Check X and the declaration of sensors against each other."""
        declared = self.sensors.values() if isinstance(self.sensors, Mapping) else ()
        own_types = any(
            isinstance(s, Sensor) and s.transformer is not None for s in declared
        )
        if own_types and Table.holds(X):
            validate_data(self, X, skip_check_array=True)
            table = Table(X)
            if 0 in table.shape:
                raise DataError(
                    f"X has {table.shape[0]} rows and {table.shape[1]} columns; give at "
                    f"least one of each."
                )
            return table, *resolve_sensors(self.sensors, self.costs, table)
        named = Table(X) if Table.holds(X) and Table(X).is_frame else None
        if named is not None:
            sensors, transformers = resolve_sensors(self.sensors, self.costs, named)
            _check_numeric(named, sensors)
        array = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        table = Table(array)
        if named is None:
            sensors, transformers = resolve_sensors(self.sensors, self.costs, table)
        return table, sensors, transformers

    def _choose_structure(self, sensors: SensorSet) -> SensorTree:
        """Give the tree that `structure` and `root_sensors` stand for."""
        if isinstance(self.structure, SensorTree):
            tree = self.structure
        elif isinstance(self.structure, Mapping):
            tree = SensorTree.from_dict(self.structure)
        else:
            return self._build_structure(sensors)
        check_tree_fits(tree, sensors)
        if self.root_sensors != "auto":
            raise ParameterError(
                "root_sensors is for trees that are built; the structure given is a tree, "
                "whose root says what is known there: leave root_sensors at 'auto'."
            )
        return tree

    def _build_structure(self, sensors: SensorSet) -> SensorTree:
        root = self._choose_root(sensors)
        exhaustive = self.structure == "exhaustive" or (
            self.structure == "auto" and len(sensors) <= 4
        )
        if exhaustive:
            return exhaustive_tree(sensors.names, root)
        return cascade_tree(sensors.cheapest_first(), root)

    def _choose_root(self, sensors: SensorSet) -> tuple[str, ...]:
        """Sensors known at the root: those named, or the free ones, or the cheapest."""
        if isinstance(self.root_sensors, str):  # "auto"
            free = tuple(
                n for n, c in zip(sensors.names, sensors.costs, strict=True) if not c
            )
            return free or sensors.cheapest_first()[:1]
        for name in self.root_sensors:
            if name not in sensors.names:
                raise SensorError(
                    f"root_sensors names {name!r}, which is not a sensor; the sensors are "
                    f"{', '.join(map(repr, sensors.names))}."
                )
        return tuple(self.root_sensors)

    def _judged_subsets(self, tree: SensorTree) -> list[frozenset[str]]:
        """Subsets that need a classifier: of leaves, and of nodes that ask a posterior."""
        vertices: list[Leaf | Node] = [*tree.leaves]
        vertices += tree.nodes if self._asks_posterior() else ()
        return list(dict.fromkeys(vertex.sensors for vertex in vertices))

    def _leaf_risk(self, tree: SensorTree, judges: Judges) -> tuple[Array, Array]:
        """Leaf risks (R_k) to learn from, and as observed, (n_samples, n_leaves)."""
        data, posteriors = judges.data, judges.posteriors
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
        self, tree: SensorTree, judges: Judges, risk: Array
    ) -> tuple[list[DecisionFeatures], RoutingProblem, NDArray[np.intp]]:
        """Say what each node sees, on distinct rows, and what each leaf would cost."""
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
        return [features[node.sensors] for node in tree.nodes], problem, rows

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


def _encode(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Give the classes, and y as positions among them."""
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"y has one class only, {classes.tolist()[0]!r}; a classifier needs rows of "
            f"at least two classes (with a weight above 0)."
        )
    return classes, codes


@contextmanager
def _all_or_nothing(model: Any) -> Iterator[None]:
    """Keep a model as it was if fitting it ends in an error or is interrupted."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def automatic_ridge(problem: RoutingProblem) -> float:
    """Ridge penalty in proportion to how much an example's leaves differ."""
    spread = np.ptp(problem.leaf_risk, axis=1)
    return float(RIDGE * np.average(spread, weights=problem.weight))


def leaf_costs(tree: SensorTree, sensors: SensorSet) -> Array:
    """Price of the sensors known at each leaf, (n_leaves,)."""
    return np.array([sensors.cost_of(leaf.sensors) for leaf in tree.leaves])


def _check_numeric(table: Table, sensors: SensorSet) -> None:
    """Refuse text in a frame's column whose sensor has no transformer, by name."""
    frame = nw.from_native(table.data, eager_only=True)
    for name, columns in zip(sensors.names, sensors.columns, strict=True):
        for column in columns:
            dtype = frame[:, column].dtype
            if not (dtype.is_numeric() or dtype in (nw.Boolean, nw.Object, nw.Unknown)):
                raise DataError(
                    f"column {sensors.column_names[column]!r} of sensor {name!r} holds "
                    f"{dtype} rather than numbers; give the sensor a transformer: "
                    f"Sensor([...], transformer=OneHotEncoder())."
                )
