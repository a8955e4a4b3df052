"""Fitted scikit-learn classifiers and transformers as plain arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from sensortree.leaves.boosting import BoostedTrees
from sensortree.leaves.coding import CodedTrees
from sensortree.leaves.logistic import RidgeLogisticRegression
from sensortree.leaves.sklearn_private import (
    boosted_baseline,
    boosted_levels,
    boosted_rounds,
    imputer_dtypes,
    input_positions,
    rare_categories,
)
from sensortree.policy.classifiers import (
    BoostedScorer,
    CalibratedScorer,
    ConstantScorer,
    Isotonic,
    LogisticScorer,
    MeanScorer,
    Sigmoid,
    Temperature,
)
from sensortree.sensors.transforms import (
    Imputer,
    InTurn,
    OneHot,
    Ordinal,
    Passthrough,
    Ranger,
    SideBySide,
    Standardiser,
    Transform,
)


def compile_classifier(classifier: Any) -> Any:
    """Give a fitted classifier as plain arrays; one of another kind as it is."""
    if isinstance(classifier, DummyClassifier):
        return ConstantScorer(np.asarray(classifier.class_prior_, dtype=np.float64))
    if isinstance(classifier, RidgeLogisticRegression):
        return classifier.to_scorer()
    if type(classifier) is LogisticRegression:
        coef, width = classifier.coef_.T, classifier.coef_.shape[1]
        unchanged = np.zeros(width), np.ones(width)
        return LogisticScorer(*unchanged, 1, coef, classifier.intercept_)
    if type(classifier) is HistGradientBoostingClassifier:
        return compile_boosted(classifier)
    if type(classifier) is CodedTrees:
        return _compile_coded(classifier)
    if type(classifier) is BoostedTrees:
        return compile_classifier(classifier.fitted_)
    if type(classifier) is CalibratedClassifierCV:
        return _compile_calibrated(classifier)
    return classifier


def compile_boosted(booster: Any) -> Any:
    """A booster as arrays, or as it is if some column is categorical."""
    categorical = booster.is_categorical_
    some = categorical is not None and categorical.any()
    return booster if some else _boosted_arrays(booster)


def _boosted_arrays(classifier: Any) -> BoostedScorer:
    """Arrays of all trees one after another."""
    rounds = boosted_rounds(classifier)
    sizes = [len(nodes) for trees in rounds for nodes in trees]
    starts = np.cumsum([0, *sizes])[:-1]
    nodes = np.concatenate([nodes for trees in rounds for nodes in trees])
    offset, own = np.repeat(starts, sizes), np.arange(len(nodes))
    leaf = nodes["is_leaf"].astype(bool)
    return BoostedScorer(
        np.where(leaf, 0, nodes["feature_idx"]).astype(np.int32),
        np.where(leaf, own, nodes["left"] + offset).astype(np.int32),
        np.where(leaf, own, nodes["right"] + offset).astype(np.int32),
        np.where(leaf, 0.0, nodes["num_threshold"]),
        np.where(leaf, nodes["value"], 0.0),
        nodes["missing_go_to_left"].astype(bool) & ~leaf,
        starts.reshape(len(rounds), -1).astype(np.int32),
        boosted_baseline(classifier),
        classifier,
    )


def _compile_coded(classifier: CodedTrees) -> BoostedScorer:
    """Arrays of all trees, whose nodes look at readings, or for levels of a category.

    A level that training did not have goes where missing ones go. So a node looks for the
    levels of the other side, and these go right.
    """
    trees = _boosted_arrays(classifier.booster)
    coding = classifier.coding
    firsts = [group[0] for group in coding.levels]
    feature = np.array([*firsts, *coding.numbers], dtype=np.int32)[trees.feature]
    feature[trees.left == np.arange(len(feature))] = 0  # of leaves
    left, right = trees.left.copy(), trees.right.copy()
    sets: dict[tuple[int, ...], int] = {}
    each = [sides for trees in boosted_levels(classifier.booster) for sides in trees]
    for start, sides in zip(trees.roots.ravel().tolist(), each, strict=True):
        for at, (codes_left, codes_right) in sides.items():
            node = start + at
            group = np.array(coding.levels[trees.feature[node]])
            codes = codes_right
            if not trees.missing_left[node]:
                codes = codes_left
                left[node], right[node] = trees.right[node], trees.left[node]
            looked_for = tuple(group[codes].tolist())
            feature[node] = coding.width + sets.setdefault(looked_for, len(sets))
    return replace(
        trees,
        feature=feature,
        left=left,
        right=right,
        threshold=np.where(feature < coding.width, trees.threshold, 0.5),
        missing_left=trees.missing_left & (feature < coding.width),
        native=classifier,
        sets=tuple(sets) or None,
    )


def _compile_calibrated(classifier: CalibratedClassifierCV) -> Any:
    """Plain scorers with what calibrates them; as it is if some part is not plain."""
    members = classifier.calibrated_classifiers_
    scorers = [_compile_member(member, classifier.classes_) for member in members]
    if any(scorer is None for scorer in scorers):
        return classifier
    return scorers[0] if len(scorers) == 1 else MeanScorer(tuple(scorers))


def _compile_member(member: Any, classes: Any) -> CalibratedScorer | None:
    """One classifier with its calibrators; None if it is not plain, or lacks a class."""
    estimator, calibrators = member.estimator, member.calibrators
    frozen = isinstance(estimator, FrozenEstimator)
    scorer = compile_classifier(estimator.estimator if frozen else estimator)
    plain = isinstance(scorer, (LogisticScorer, BoostedScorer))
    if not plain or not np.array_equal(estimator.classes_, classes):
        return None
    calibration: Sigmoid | Isotonic | Temperature
    if member.method == "sigmoid":
        calibration = Sigmoid(
            np.array([float(c.a_) for c in calibrators]),
            np.array([float(c.b_) for c in calibrators]),
        )
    elif member.method == "isotonic":
        calibration = Isotonic(
            tuple(np.asarray(c.X_thresholds_, np.float64) for c in calibrators),
            tuple(np.asarray(c.y_thresholds_, np.float64) for c in calibrators),
        )
    else:
        calibration = Temperature(float(calibrators[0].beta_))
    return CalibratedScorer(
        scorer, hasattr(estimator, "decision_function"), calibration
    )


def compile_transformer(fitted: Any) -> Any:
    """Give a fitted transformer as plain arrays; one of another kind as it is."""
    plain = _compiled(fitted, getattr(fitted, "n_features_in_", None))
    return fitted if plain is None else plain


def _compiled(fitted: Any, n_columns: int | None) -> Any:
    """The plain transform; None if there is none of this kind."""
    if isinstance(fitted, Transform):
        return fitted
    if fitted is None or isinstance(fitted, str):  # "passthrough"
        return None if n_columns is None else Passthrough(n_columns)
    compile_kind = _KINDS.get(type(fitted))
    return None if compile_kind is None else compile_kind(fitted)


def _imputer(fitted: Any) -> Imputer | None:
    nan = isinstance(fitted.missing_values, float) and np.isnan(fitted.missing_values)
    read, filled = imputer_dtypes(fitted)
    if not nan or read.kind not in "iufO":
        return None
    statistics = fitted.statistics_
    kept = np.ones(len(statistics), dtype=bool)
    if not fitted.keep_empty_features:
        kept = np.asarray(statistics == statistics, dtype=bool)
    if read.kind == "O":
        fill = statistics.astype(object)
        if not all(isinstance(v, (str, int, float, bool)) for v in fill.tolist()):
            return None
    else:
        fill = np.where(kept, statistics, 0).astype(filled).astype(float)
    marked = fitted.indicator_.features_ if fitted.add_indicator else []
    return Imputer(fill, kept, np.asarray(marked, dtype=np.intp))


def _standardiser(fitted: Any) -> Standardiser:
    width = fitted.n_features_in_
    return Standardiser(
        np.asarray(fitted.mean_, float) if fitted.with_mean else np.zeros(width),
        np.asarray(fitted.scale_, float) if fitted.with_std else np.ones(width),
    )


def _ranger(fitted: Any) -> Ranger:
    low, high = fitted.feature_range
    return Ranger(
        np.asarray(fitted.scale_, dtype=float),
        np.asarray(fitted.min_, dtype=float),
        (float(low), float(high)) if fitted.clip else None,
    )


def _categories(fitted: Any) -> tuple[tuple[Any, ...], ...] | None:
    """Categories as plain values; None if some are neither text nor numbers."""
    lists = tuple(tuple(values.tolist()) for values in fitted.categories_)
    plain = (str, int, float, bool, type(None))
    known = all(isinstance(value, plain) for values in lists for value in values)
    return lists if known else None


def _one_hot(fitted: Any) -> OneHot | None:
    categories = _categories(fitted)
    if categories is None or fitted.handle_unknown == "warn":
        return None
    dropped = fitted.drop_idx_
    if dropped is None:
        dropped = [None] * len(categories)
    rare = rare_categories(fitted)  # are put together; unknown ones may join them
    joined = (rare, fitted.handle_unknown == "infrequent_if_exist") if any(rare) else ()
    return OneHot(
        categories,
        tuple(None if drop is None else int(drop) for drop in dropped),
        fitted.handle_unknown != "error",
        *joined,
    )


def _ordinal(fitted: Any) -> Ordinal | None:
    categories = _categories(fitted)
    grouped = any(rare_categories(fitted))
    if categories is None or grouped or np.dtype(fitted.dtype) != np.float64:
        return None
    unknown = fitted.unknown_value if fitted.handle_unknown != "error" else None
    return Ordinal(
        categories,
        float(fitted.encoded_missing_value),
        None if unknown is None else float(unknown),
    )


def _side_by_side(fitted: Any) -> SideBySide | None:
    if fitted.transformer_weights is not None:
        return None
    parts = []
    for name, transformer, _ in fitted.transformers_:
        at = input_positions(fitted, name)
        if not at or (isinstance(transformer, str) and transformer == "drop"):
            continue
        part = _compiled(transformer, len(at))
        if part is None or part.n_columns != len(at):
            return None
        parts.append((at, part))
    return SideBySide(int(fitted.n_features_in_), tuple(parts))


def _in_turn(fitted: Any) -> InTurn | None:
    steps = []
    width = int(fitted.n_features_in_)
    for _, transformer in fitted.steps:
        step = _compiled(transformer, width)
        if step is None or step.n_columns != width:
            return None
        steps.append(step)
        width = step.width
    return InTurn(tuple(steps))


_KINDS: dict[type, Any] = {
    SimpleImputer: _imputer,
    StandardScaler: _standardiser,
    MinMaxScaler: _ranger,
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _ordinal,
    # what a column transformer makes of "passthrough"
    FunctionTransformer: lambda f: (
        Passthrough(f.n_features_in_) if f.func is None else None
    ),
    ColumnTransformer: _side_by_side,
    Pipeline: _in_turn,
}
