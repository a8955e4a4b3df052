"""Which methods are compared: name to estimator, and what traces its curve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler

from sensortree import (
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    MyopicClassifier,
    SensorTreeClassifier,
    StaticSubsetClassifier,
)

if TYPE_CHECKING:
    from problems import Problem

WEIGHTS = (0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


@dataclass(frozen=True)
class Method:
    """An estimator, and the parameter whose values trace error against cost.

    Attributes
    ----------
    estimator : type
    traced : str
    values : tuple of float
        From what buys little to what buys much.
    settings : dict
        Other parameters.
    """

    estimator: Any
    traced: str
    values: tuple[float, ...]
    settings: dict[str, Any] = field(default_factory=dict)

    def make(self, **parameters: Any) -> Any:
        """Give the estimator, unfitted; parameters win over the settings."""
        return self.estimator(**{**self.settings, **parameters})

    def path(self, X: Any, y: Any, **parameters: Any) -> list[Any]:
        """Fit along the values."""
        return list(self.make(**parameters).fit_path(X, y, self.values))


METHODS: dict[str, Method] = {
    "ours": Method(SensorTreeClassifier, "cost_weight", WEIGHTS),
    "LP, as published": Method(
        SensorTreeClassifier.as_published, "cost_weight", WEIGHTS
    ),
    "LP on a cascade": Method(
        CascadeClassifier, "cost_weight", WEIGHTS, {"savings": "published"}
    ),
    "AM": Method(AlternatingTreeClassifier, "cost_weight", WEIGHTS),
    "Myopic": Method(
        MyopicClassifier,
        "reject",
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1),
    ),
    "static subset": Method(StaticSubsetClassifier, "cost_weight", WEIGHTS),
    "CSTC": Method(
        CSTCClassifier, "cost_weight", (0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02)
    ),
    "ASTC": Method(ASTCClassifier, "budget", (1, 2, 3, 4, 5, 10, 15)),
}

# The same on the paper's few sensors: leaf classifiers, and how each method is set ------


def products(X: Any) -> Any:
    """Squares and products of two columns, without the columns themselves."""
    first, second = np.triu_indices(X.shape[1])
    return X[:, first] * X[:, second]


def leaf_classifier(leaves: str) -> Any:
    """Classifier at the leaves: as the paper's text, linear as its predecessor's, ours.

    "text" is logistic regression on the homogeneous degree-2 basis. The readings are
    scaled but not centred: products of centred columns cannot tell a reading from its
    opposite, and give errors on landsat (.55 with the first band, .15 with all) further
    from those that the paper's targets imply (.135 with all) than these (.41 and .135).
    "rest" is linear too, each class against the rest: on letter it errs as often as the
    cascade paper's classifiers (.285 with all sensors, published .288), which that paper
    calls multinomial; a multinomial one errs less (.228).
    """
    if leaves == "text":
        return make_pipeline(
            MaxAbsScaler(),
            FunctionTransformer(products),
            StandardScaler(),
            LogisticRegression(max_iter=300),
        )
    linear = LogisticRegression(max_iter=300)
    if leaves == "linear":
        return make_pipeline(StandardScaler(), linear)
    if leaves == "rest":
        return make_pipeline(StandardScaler(), OneVsRestClassifier(linear))
    return {"ours": "logistic2"}[leaves]


LEAVES = ("linear", "text", "ours")
TREES = ("Myopic", "AM", "LP, as published", "ours", "static subset")
CASCADES = ("AM on a cascade", "LP on a cascade", "LP on a cascade, tight")
# Error that buying everything is worth, from "buy nothing" to "buy everything".
SHARES = (5.0, 3.4, 2.4, 1.7, 1.2, 0.85, 0.6, 0.35, 0.2, 0.1, 0.05, 0.015, 0.005)
REJECTS = METHODS["Myopic"].values


def values_of(name: str, quick: bool = False) -> tuple[float, ...]:
    """What traces a method's curve: rejected shares, or the error everything is worth."""
    if name == "Myopic":
        return REJECTS[::5] if quick else REJECTS
    return SHARES[3::4] if quick else SHARES


def system(name: str, leaves: str, problem: Problem) -> Any:
    """Give a method, unfitted, as it is set on a problem of few sensors.

    Every method knows the first sensor before its first decision, except the static
    subset, which may leave it out.
    """
    data = problem.data
    common = {
        "sensors": data.sensors,
        "costs": data.costs,
        "classifier": leaf_classifier(leaves),
    }
    root = {"root_sensors": [data.first_sensor]}
    order = {"order": list(data.sensors), **root}
    tree = {"structure": problem.structure, "n_leaves": problem.n_leaves, **root}
    if name == "ours":
        shape = problem.structure if problem.structure == "exhaustive" else "auto"
        return SensorTreeClassifier(**common, **{**tree, "structure": shape})
    return {
        "Myopic": lambda: MyopicClassifier(**common, **order),
        "AM": lambda: AlternatingTreeClassifier(**common, **tree),
        "LP, as published": lambda: SensorTreeClassifier.as_published(
            **{**common, **tree, "n_exact": 3}
        ),
        "static subset": lambda: StaticSubsetClassifier(**common),
        "AM on a cascade": lambda: AlternatingTreeClassifier(
            **common, **{**tree, "structure": "cascade"}
        ),
        "LP on a cascade": lambda: CascadeClassifier(
            **common, **order, savings="published"
        ),
        "LP on a cascade, tight": lambda: CascadeClassifier(**common, **order),
    }[name]()
