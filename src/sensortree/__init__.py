"""Sensor trees: buy the next measurement only when it pays.

The data's way through the package::

    sensors ─► structure ─► leaves ─► learning ─► program
                                         │           │ certificate
    curves ◄── estimators ◄──────────────┤◄──────────┘
                                         ▼
    reports, display ◄────────────── policy ──► persistence ─► page, service, cli

Names are imported when they are first used, so that ``import sensortree`` is quick. Here is
what you type; classes that you only meet, such as reports, are in `sensortree.results`, and
errors and warnings in `sensortree.exceptions`.

The loggers ``sensortree.fit``, ``sensortree.solver``, ``sensortree.session`` and
``sensortree.acquire`` are silent unless the application wants to hear them.
"""

from __future__ import annotations

import logging
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sensortree._version import __version__

logging.getLogger("sensortree").addHandler(logging.NullHandler())

if TYPE_CHECKING:
    from sensortree.baselines import (
        AlternatingTreeClassifier,
        ASTCClassifier,
        CSTCClassifier,
        MyopicClassifier,
        StaticSubsetClassifier,
        StaticSubsetRegressor,
    )
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
        CascadeClassifier,
        Program,
        SensorTreeClassifier,
        SensorTreeRegressor,
    )
    from sensortree.exceptions import SensorTreeError
    from sensortree.leaves.logistic import QuadraticLogisticRegression
    from sensortree.logs import (
        acquired_from_events,
        compare_from_log,
        evaluate_from_log,
        report_page_from_log,
    )
    from sensortree.page import to_page
    from sensortree.persistence import load, save
    from sensortree.policy.policy import Policy
    from sensortree.reports.guarantee import guarantee_error
    from sensortree.sensors.sensor import Sensor, SensorSet
    from sensortree.structure.trees import cascade_tree, exhaustive_tree
    from sensortree.tree.tree import Leaf, Node, SensorTree

__all__ = [
    "ASTCClassifier",
    "AlternatingTreeClassifier",
    "CSTCClassifier",
    "CascadeClassifier",
    "Leaf",
    "LogDisplay",
    "MyopicClassifier",
    "Node",
    "PathDisplay",
    "Policy",
    "Program",
    "QuadraticLogisticRegression",
    "Sensor",
    "SensorSet",
    "SensorTree",
    "SensorTreeClassifier",
    "SensorTreeClassifierCV",
    "SensorTreeError",
    "SensorTreeRegressor",
    "SensorTreeRegressorCV",
    "SensorUseDisplay",
    "StaticSubsetClassifier",
    "StaticSubsetRegressor",
    "TradeoffDisplay",
    "TreeDisplay",
    "__version__",
    "acquired_from_events",
    "acquisition_cost_scorer",
    "cascade_tree",
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

_HOMES = {
    "baselines": (
        "ASTCClassifier AlternatingTreeClassifier CSTCClassifier "
        "MyopicClassifier StaticSubsetClassifier StaticSubsetRegressor"
    ),
    "curves.curve": "acquisition_cost_scorer cost_adjusted_scorer tradeoff_curve",
    "curves.cv": "SensorTreeClassifierCV SensorTreeRegressorCV",
    "display": "LogDisplay PathDisplay SensorUseDisplay TradeoffDisplay TreeDisplay",
    "estimators": "CascadeClassifier Program SensorTreeClassifier SensorTreeRegressor",
    "exceptions": "SensorTreeError",
    "leaves.logistic": "QuadraticLogisticRegression",
    "logs": (
        "acquired_from_events compare_from_log evaluate_from_log report_page_from_log"
    ),
    "page": "to_page",
    "persistence": "load save",
    "policy.policy": "Policy",
    "reports.guarantee": "guarantee_error",
    "sensors.sensor": "Sensor SensorSet",
    "structure.trees": "cascade_tree exhaustive_tree",
    "tree.tree": "Leaf Node SensorTree",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
# What version 0.1 had here too, and where it is.
_MOVED_TO = {
    "exceptions": (
        "BudgetWarning CertificateWarning DataError FewRowsWarning "
        "MissingDependencyError ModelFileError OracleError ParameterError "
        "PriceWarning ProblemError SensorError SessionError SolverError "
        "StorageError TreeError UnseenWarning WideBasisWarning"
    ),
    "results": (
        "About CalibrationReport Certificate Choice Comparison CostReport "
        "Decision DecisionReport Explanation FitReport HeldOut LogComparison "
        "LogEvaluation MaskedPolicy Reason SavedModel Session Step "
        "StructureReport Terms TradeoffCurve"
    ),
    "structure": "cluster_subsets",
}
_MOVED = {name: home for home, names in _MOVED_TO.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in ("exceptions", "results"):
        return import_module(f"sensortree.{name}")
    if name in _HOME:
        globals()[name] = found = _imported(name, _HOME[name])
        return found
    if name not in _MOVED:
        raise AttributeError(f"module 'sensortree' has no attribute {name!r}")
    warnings.warn(
        f"sensortree.{name} is deprecated and will be removed in the next minor release; "
        f"write `from sensortree.{_MOVED[name]} import {name}`.",
        FutureWarning,
        stacklevel=2,
    )
    return _imported(name, _MOVED[name])


def _imported(name: str, home: str) -> Any:
    """Import a name from its home, or say what is not installed."""
    try:
        return getattr(import_module(f"sensortree.{home}"), name)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("sensortree"):
            raise
        from sensortree.exceptions import MissingDependencyError

        raise MissingDependencyError(
            f"{name} needs {error.name}, which is not installed; run "
            f"pip install sensortree with all that it asks for. What only asks a model "
            f"that was saved needs sensortree.load."
        ) from error


def __dir__() -> list[str]:
    return __all__
