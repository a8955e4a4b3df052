"""`BaseSensorTreeClassifier`: `fit` as a story with one hole, `_fit_decisions`.

The only file that imports private parts of scikit-learn.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite, check_consistent_length, get_tags
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from sensortree.decision import DecisionFunction
from sensortree.exceptions import DataError, ParameterError, SensorError
from sensortree.leaves import (
    accepts_nan,
    fit_leaf_classifiers,
    predictions,
    resolve_classifier,
)
from sensortree.policy import Policy
from sensortree.readings import SensorReader, fit_reader, together
from sensortree.risk import leaf_risk
from sensortree.sensors import Sensor, SensorSet, resolve_sensors
from sensortree.structure import (
    cascade_tree,
    check_tree_fits,
    exhaustive_tree,
)
from sensortree.table import Table
from sensortree.tree import SensorTree

Array = NDArray[np.float64]

__all__ = [
    "BaseSensorTreeClassifier",
    "HasMethods",
    "Interval",
    "StrOptions",
    "TrainingData",
    "leaf_costs",
]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What `fit` learns from: readings of all sensors, classes and weights.

    Rows of weight 0 are gone, and rows are sorted, so that neither they nor the order in
    which rows came can change the result.

    Attributes
    ----------
    reader : SensorReader
    blocks : list of n_sensors arrays of shape (n_samples, width)
    y : ndarray of shape (n_samples,)
        Positions in `classes`.
    classes : ndarray of shape (n_classes,)
    weight : ndarray of shape (n_samples,)
    weighted : bool
        Whether the user gave weights.
    """

    reader: SensorReader
    blocks: list[Array]
    y: NDArray[np.intp]
    classes: NDArray[Any]
    weight: Array
    weighted: bool

    @property
    def sensors(self) -> SensorSet:
        """The sensors that were read."""
        return self.reader.sensors

    def features(self, subset: frozenset[str]) -> Array:
        """Readings of a subset side by side, (n_samples, width)."""
        return together(self.blocks, self.sensors, subset, np.arange(len(self.y)))

    def distinct(self) -> tuple[NDArray[np.intp], Array]:
        """First row of each run of equal rows (class included), and the run's weight."""
        values = np.hstack([*self.blocks, self.y[:, None]])
        above, below = values[:-1], values[1:]
        equal = (above == below) | (np.isnan(above) & np.isnan(below))
        first = np.flatnonzero(np.r_[True, ~equal.all(axis=1)])
        return first, np.add.reduceat(self.weight, first)


def _leaves_have_probabilities(model: BaseSensorTreeClassifier) -> bool:
    return hasattr(resolve_classifier(model.classifier), "predict_proba")


class BaseSensorTreeClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Classifiers that buy sensors along a tree; a method fills `_fit_decisions`."""

    sensors: Any
    costs: Any
    cost_weight: float
    structure: Any
    root_sensors: Any
    classifier: Any
    n_jobs: int | None

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

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
            data = self._read(X, y, sample_weight)
            tree = self._choose_structure(data.sensors)
            classifiers, error = self._fit_leaves(tree, data)
            risk = leaf_risk(error, leaf_costs(tree, data.sensors), self.cost_weight)
            decisions = self._fit_decisions(tree, data, risk)
            self.policy_ = Policy(
                data.reader, tree, decisions, classifiers, data.classes
            )
            self.classes_ = data.classes
            self.sensors_ = data.sensors
            self.tree_ = tree
        return self

    @abstractmethod
    def _fit_decisions(
        self, tree: SensorTree, data: TrainingData, risk: Array
    ) -> tuple[DecisionFunction, ...]:
        """Learn one decision function per node from the leaf risks."""

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
        y = self._check_target(y, table)
        weight = _check_sample_weight(
            sample_weight, table.data, dtype=np.float64, ensure_non_negative=True
        )
        rows = np.flatnonzero(weight > 0)
        y, weight = y[rows], weight[rows]
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
        values = np.hstack([*blocks, codes[:, None]])
        order = np.lexsort([weight, *values.T[::-1]])  # the last key counts most
        blocks = [block[order] for block in blocks]
        return TrainingData(
            reader, blocks, codes[order], classes, weight[order], weighted
        )

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

    def _fit_leaves(
        self, tree: SensorTree, data: TrainingData
    ) -> tuple[dict[frozenset[str], Any], NDArray[np.bool_]]:
        """Fit a classifier per distinct leaf subset; say where each leaf is wrong."""
        leaves = [leaf.sensors for leaf in tree.leaves]
        features = {subset: data.features(subset) for subset in dict.fromkeys(leaves)}
        classifiers = fit_leaf_classifiers(
            resolve_classifier(self.classifier),
            features,
            data.y,
            data.weight if data.weighted else None,
            self.n_jobs,
        )
        answers = predictions(classifiers, features, leaves)
        return classifiers, answers != data.y[:, None]

    @property
    def _policy(self) -> Policy:
        check_is_fitted(self)
        policy: Policy = self.policy_
        return policy

    def _table(self, X: Any) -> Table:
        """Check X at prediction: the same columns as in training."""
        if self._policy.reader.transformers and Table.holds(X):
            validate_data(self, X, reset=False, skip_check_array=True)
            return Table(X)
        X = validate_data(
            self, X, reset=False, dtype=np.float64, ensure_all_finite=False
        )
        return Table(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row, answered with the sensors it acquires.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Columns of sensors that a row does not acquire are not looked at.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        return self._policy.predict(self._table(X))

    @available_if(_leaves_have_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of each row, from the leaf it reaches.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        return self._policy.predict_proba(self._table(X))

    def apply(self, X: Any) -> NDArray[np.intp]:
        """Index of the leaf each row reaches.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        leaf : ndarray of shape (n_samples,)
            Leaves are numbered as in ``tree_.leaves``.
        """
        return self._policy.apply(self._table(X))

    def acquired(self, X: Any) -> NDArray[np.bool_]:
        """Which sensors each row acquires.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        acquired : ndarray of bool of shape (n_samples, n_sensors)
            Sensors are ordered as in ``sensors_.names``.
        """
        return self._policy.acquired(self._table(X))

    def acquisition_cost(self, X: Any) -> Array:
        """Price of the sensors each row acquires.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        cost : ndarray of shape (n_samples,)
        """
        return self._policy.acquisition_cost(self._table(X))

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
