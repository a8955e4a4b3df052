"""Which methods are compared: name to estimator, and what traces its curve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sensortree import (
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    MyopicClassifier,
    SensorTreeClassifier,
    StaticSubsetClassifier,
)

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
