"""What fits, curves, reports and sessions give: classes that you meet and do not build.

Import them to annotate your code, or to ask ``isinstance``. They are imported when they are
first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sensortree.learning.calibrating import CalibrationReport
    from sensortree.learning.fit import FitReport
    from sensortree.learning.joint import DecisionReport
    from sensortree.logs import LogComparison, LogEvaluation
    from sensortree.persistence.saved import SavedModel
    from sensortree.policy.about import About, Comparison, HeldOut
    from sensortree.policy.batch import MaskedPolicy
    from sensortree.policy.reasons import Reason
    from sensortree.policy.session import Session
    from sensortree.policy.steps import Decision, Step
    from sensortree.program import Certificate
    from sensortree.reports.explanation import Explanation
    from sensortree.reports.report import CostReport
    from sensortree.reports.tradeoff import Choice, TradeoffCurve
    from sensortree.sensors.sensor import Terms
    from sensortree.structure.search import StructureReport

__all__ = [
    "About",
    "CalibrationReport",
    "Certificate",
    "Choice",
    "Comparison",
    "CostReport",
    "Decision",
    "DecisionReport",
    "Explanation",
    "FitReport",
    "HeldOut",
    "LogComparison",
    "LogEvaluation",
    "MaskedPolicy",
    "Reason",
    "SavedModel",
    "Session",
    "Step",
    "StructureReport",
    "Terms",
    "TradeoffCurve",
]

_HOMES = {
    "learning.calibrating": "CalibrationReport",
    "learning.fit": "FitReport",
    "learning.joint": "DecisionReport",
    "logs": "LogComparison LogEvaluation",
    "persistence.saved": "SavedModel",
    "policy.about": "About Comparison HeldOut",
    "reports.explanation": "Explanation",
    "policy.batch": "MaskedPolicy",
    "policy.reasons": "Reason",
    "reports.report": "CostReport",
    "policy.session": "Session",
    "policy.steps": "Decision Step",
    "reports.tradeoff": "Choice TradeoffCurve",
    "program": "Certificate",
    "sensors.sensor": "Terms",
    "structure.search": "StructureReport",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sensortree.results' has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"sensortree.{_HOME[name]}"), name)
    return found


def __dir__() -> list[str]:
    return __all__
