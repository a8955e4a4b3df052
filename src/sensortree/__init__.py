"""Sensor trees: buy the next measurement only when it pays.

The data's way through the package::

    sensors ─► structure ─► leaves ─► learning ─► program
                                         │           │ certificate
    curves ◄── estimators ◄──────────────┤◄──────────┘
                                         ▼
    reports, display ◄────────────── policy ──► persistence ─► page, service, cli

Names are imported when they are first used, so that ``import sensortree`` is quick.

The loggers ``sensortree.fit``, ``sensortree.solver`` and ``sensortree.session`` are silent
unless the application wants to hear them.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sensortree._version import __version__

logging.getLogger("sensortree").addHandler(logging.NullHandler())

if TYPE_CHECKING:
    from sensortree.curves.curve import (
        acquisition_cost_scorer,
        cost_adjusted_scorer,
        tradeoff_curve,
    )
    from sensortree.curves.cv import SensorTreeClassifierCV, SensorTreeRegressorCV
    from sensortree.display import (
        LogDisplay,
        PathDisplay,
        SensorUseDisplay,
        TradeoffDisplay,
        TreeDisplay,
    )
    from sensortree.estimators import (
        AlternatingTreeClassifier,
        ASTCClassifier,
        CascadeClassifier,
        CSTCClassifier,
        DecisionReport,
        MyopicClassifier,
        SensorTreeClassifier,
        SensorTreeRegressor,
        StaticSubsetClassifier,
        StaticSubsetRegressor,
        StructureReport,
    )
    from sensortree.exceptions import (
        BudgetWarning,
        CertificateWarning,
        DataError,
        FewRowsWarning,
        MissingDependencyError,
        ModelFileError,
        OracleError,
        ParameterError,
        PriceWarning,
        ProblemError,
        SensorError,
        SensorTreeError,
        SessionError,
        SolverError,
        StorageError,
        TreeError,
        UnseenWarning,
        WideBasisWarning,
    )
    from sensortree.learning.calibrating import CalibrationReport
    from sensortree.learning.fit import FitReport
    from sensortree.leaves.logistic import QuadraticLogisticRegression
    from sensortree.logs import (
        LogComparison,
        LogEvaluation,
        acquired_from_events,
        compare_from_log,
        evaluate_from_log,
        report_page_from_log,
    )
    from sensortree.page import to_page
    from sensortree.persistence import load, save
    from sensortree.persistence.saved import SavedModel
    from sensortree.policy.about import About, Comparison, HeldOut
    from sensortree.policy.masked import MaskedPolicy
    from sensortree.policy.policy import Policy
    from sensortree.policy.reasons import Reason
    from sensortree.policy.session import Session
    from sensortree.policy.steps import Decision, Step
    from sensortree.program import Certificate
    from sensortree.reports.explanation import Explanation
    from sensortree.reports.guarantee import guarantee_error
    from sensortree.reports.report import CostReport
    from sensortree.reports.tradeoff import Choice, TradeoffCurve
    from sensortree.sensors.sensor import Sensor, SensorSet, Terms
    from sensortree.structure import cascade_tree, cluster_subsets, exhaustive_tree
    from sensortree.tree.tree import Leaf, Node, SensorTree

__all__ = [
    "ASTCClassifier",
    "About",
    "AlternatingTreeClassifier",
    "BudgetWarning",
    "CSTCClassifier",
    "CalibrationReport",
    "CascadeClassifier",
    "Certificate",
    "CertificateWarning",
    "Choice",
    "Comparison",
    "CostReport",
    "DataError",
    "Decision",
    "DecisionReport",
    "Explanation",
    "FewRowsWarning",
    "FitReport",
    "HeldOut",
    "Leaf",
    "LogComparison",
    "LogDisplay",
    "LogEvaluation",
    "MaskedPolicy",
    "MissingDependencyError",
    "ModelFileError",
    "MyopicClassifier",
    "Node",
    "OracleError",
    "ParameterError",
    "PathDisplay",
    "Policy",
    "PriceWarning",
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
    "SensorTreeRegressor",
    "SensorTreeRegressorCV",
    "SensorUseDisplay",
    "Session",
    "SessionError",
    "SolverError",
    "StaticSubsetClassifier",
    "StaticSubsetRegressor",
    "Step",
    "StorageError",
    "StructureReport",
    "Terms",
    "TradeoffCurve",
    "TradeoffDisplay",
    "TreeDisplay",
    "TreeError",
    "UnseenWarning",
    "WideBasisWarning",
    "__version__",
    "acquired_from_events",
    "acquisition_cost_scorer",
    "cascade_tree",
    "cluster_subsets",
    "compare_from_log",
    "cost_adjusted_scorer",
    "evaluate_from_log",
    "exhaustive_tree",
    "guarantee_error",
    "load",
    "report_page_from_log",
    "save",
    "to_page",
    "tradeoff_curve",
]

_HOME = {
    "ASTCClassifier": "estimators",
    "About": "policy.about",
    "AlternatingTreeClassifier": "estimators",
    "CSTCClassifier": "estimators",
    "CalibrationReport": "learning.calibrating",
    "CascadeClassifier": "estimators",
    "Certificate": "program",
    "Choice": "reports.tradeoff",
    "Comparison": "policy.about",
    "CostReport": "reports.report",
    "Decision": "policy.steps",
    "DecisionReport": "estimators",
    "Explanation": "reports.explanation",
    "FitReport": "learning.fit",
    "HeldOut": "policy.about",
    "Leaf": "tree.tree",
    "LogComparison": "logs",
    "LogDisplay": "display",
    "LogEvaluation": "logs",
    "MaskedPolicy": "policy.masked",
    "MyopicClassifier": "estimators",
    "Node": "tree.tree",
    "PathDisplay": "display",
    "Policy": "policy.policy",
    "QuadraticLogisticRegression": "leaves.logistic",
    "Reason": "policy.reasons",
    "SavedModel": "persistence.saved",
    "Sensor": "sensors.sensor",
    "SensorSet": "sensors.sensor",
    "SensorTree": "tree.tree",
    "SensorTreeClassifier": "estimators",
    "SensorTreeClassifierCV": "curves.cv",
    "SensorUseDisplay": "display",
    "Session": "policy.session",
    "SensorTreeRegressor": "estimators",
    "SensorTreeRegressorCV": "curves.cv",
    "StaticSubsetClassifier": "estimators",
    "StaticSubsetRegressor": "estimators",
    "Step": "policy.steps",
    "StructureReport": "estimators",
    "Terms": "sensors.sensor",
    "TradeoffCurve": "reports.tradeoff",
    "TradeoffDisplay": "display",
    "TreeDisplay": "display",
    "acquired_from_events": "logs",
    "acquisition_cost_scorer": "curves.curve",
    "cascade_tree": "structure",
    "cluster_subsets": "structure",
    "compare_from_log": "logs",
    "cost_adjusted_scorer": "curves.curve",
    "evaluate_from_log": "logs",
    "exhaustive_tree": "structure",
    "guarantee_error": "reports.guarantee",
    "load": "persistence",
    "report_page_from_log": "logs",
    "save": "persistence",
    "to_page": "page",
    "tradeoff_curve": "curves.curve",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sensortree' has no attribute {name!r}")
    try:
        home = import_module(f"sensortree.{_HOME.get(name, 'exceptions')}")
    except ModuleNotFoundError as error:
        if str(error.name).startswith("sensortree"):
            raise
        from sensortree.exceptions import MissingDependencyError

        raise MissingDependencyError(
            f"{name} needs {error.name}, which is not installed; run "
            f"pip install sensortree with all that it asks for. What only asks a model "
            f"that was saved needs sensortree.load."
        ) from error
    value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
