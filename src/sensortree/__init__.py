"""Sensor trees: buy the next measurement only when it pays.

The data's way through the package::

    sensors ─► structure ─► leaf classifiers ─► risk, savings ─► program, solver
                                                                      │ certificate
    pictures ◄─ estimators ◄────────────── policy ◄─ decisions ◄──────┘
                    acquisition, model file ─┘

Names are imported when they are first used, so that ``import sensortree`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sensortree._version import __version__

if TYPE_CHECKING:
    from sensortree.acquisition import Session
    from sensortree.budget import SensorTreeClassifierCV
    from sensortree.choice import Choice
    from sensortree.display import PathDisplay, SensorUseDisplay
    from sensortree.estimators import (
        AlternatingTreeClassifier,
        ASTCClassifier,
        CascadeClassifier,
        CSTCClassifier,
        DecisionReport,
        MyopicClassifier,
        SensorTreeClassifier,
        StaticSubsetClassifier,
        StructureReport,
    )
    from sensortree.exceptions import (
        BudgetWarning,
        CertificateWarning,
        DataError,
        FewRowsWarning,
        MissingDependencyError,
        ModelFileError,
        ParameterError,
        ProblemError,
        SensorError,
        SensorTreeError,
        SessionError,
        SolverError,
        TreeError,
    )
    from sensortree.explanation import Explanation
    from sensortree.logistic import QuadraticLogisticRegression
    from sensortree.masked import MaskedPolicy
    from sensortree.persistence import load, save
    from sensortree.policy import Policy
    from sensortree.program import Certificate
    from sensortree.reasons import Reason
    from sensortree.report import CostReport
    from sensortree.saved import SavedModel
    from sensortree.scoring import acquisition_cost_scorer, cost_adjusted_scorer
    from sensortree.sensors import Sensor, SensorSet, Terms
    from sensortree.steps import Decision, Step
    from sensortree.structure import cascade_tree, cluster_subsets, exhaustive_tree
    from sensortree.tradeoff import TradeoffCurve, tradeoff_curve
    from sensortree.tree import Leaf, Node, SensorTree

__all__ = [
    "ASTCClassifier",
    "AlternatingTreeClassifier",
    "BudgetWarning",
    "CSTCClassifier",
    "CascadeClassifier",
    "Certificate",
    "CertificateWarning",
    "Choice",
    "CostReport",
    "DataError",
    "Decision",
    "DecisionReport",
    "Explanation",
    "FewRowsWarning",
    "Leaf",
    "MaskedPolicy",
    "MissingDependencyError",
    "ModelFileError",
    "MyopicClassifier",
    "Node",
    "ParameterError",
    "PathDisplay",
    "Policy",
    "ProblemError",
    "QuadraticLogisticRegression",
    "Reason",
    "SavedModel",
    "Sensor",
    "SensorError",
    "SensorSet",
    "SensorTree",
    "SensorTreeClassifier",
    "SensorTreeClassifierCV",
    "SensorTreeError",
    "SensorUseDisplay",
    "Session",
    "SessionError",
    "SolverError",
    "StaticSubsetClassifier",
    "Step",
    "StructureReport",
    "Terms",
    "TradeoffCurve",
    "TreeError",
    "__version__",
    "acquisition_cost_scorer",
    "cascade_tree",
    "cluster_subsets",
    "cost_adjusted_scorer",
    "exhaustive_tree",
    "load",
    "save",
    "tradeoff_curve",
]

_HOME = {
    "ASTCClassifier": "estimators",
    "AlternatingTreeClassifier": "estimators",
    "CSTCClassifier": "estimators",
    "CascadeClassifier": "estimators",
    "Certificate": "program",
    "Choice": "choice",
    "CostReport": "report",
    "Decision": "steps",
    "DecisionReport": "estimators",
    "Explanation": "explanation",
    "Leaf": "tree",
    "MaskedPolicy": "masked",
    "MyopicClassifier": "estimators",
    "Node": "tree",
    "PathDisplay": "display",
    "Policy": "policy",
    "QuadraticLogisticRegression": "logistic",
    "Reason": "reasons",
    "SavedModel": "saved",
    "Sensor": "sensors",
    "SensorSet": "sensors",
    "SensorTree": "tree",
    "SensorTreeClassifier": "estimators",
    "SensorTreeClassifierCV": "budget",
    "SensorUseDisplay": "display",
    "Session": "acquisition",
    "StaticSubsetClassifier": "estimators",
    "Step": "steps",
    "StructureReport": "estimators",
    "Terms": "sensors",
    "TradeoffCurve": "tradeoff",
    "acquisition_cost_scorer": "scoring",
    "cascade_tree": "structure",
    "cluster_subsets": "structure",
    "cost_adjusted_scorer": "scoring",
    "exhaustive_tree": "structure",
    "load": "persistence",
    "save": "persistence",
    "tradeoff_curve": "tradeoff",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sensortree' has no attribute {name!r}")
    value = getattr(import_module(f"sensortree.{_HOME.get(name, 'exceptions')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
