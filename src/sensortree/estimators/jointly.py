"""`LearnsJointly`: all decisions of a tree by one linear program, of classes or numbers."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any

from sensortree.estimators.base import BaseSensorTree, Interval, StrOptions
from sensortree.learning.choose import choose_recipe
from sensortree.learning.fit import FitReport, Fitted, fit_policy
from sensortree.learning.joint import (
    DecisionReport,
    Learner,
    learn_jointly,
    measure_jointly,
    rehearse_jointly,
)
from sensortree.learning.prepare import Prepared
from sensortree.policy.about import Comparison, OutageReport
from sensortree.program import SOLVERS, Certificate
from sensortree.threads import threads_asked

# What parameters of the program and of its refinement may be.
JOINT: dict[str, Any] = {
    "savings": [StrOptions({"tight", "published"})],
    "refine": ["boolean"],
    "solver": [StrOptions(set(SOLVERS))],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "l1": [Interval(Real, 0, None, closed="left")],
    "fallback": ["boolean"],
    "outages": [StrOptions({"auto"}), "boolean"],
}


class LearnsJointly(BaseSensorTree):
    """Estimators whose decisions are learned together, refined, and certified."""

    certificate_: Certificate
    comparison_: Comparison | None
    decision_report_: DecisionReport
    fit_report_: FitReport
    outage_report_: OutageReport | None
    fallback_leaf_: int | None
    training_cost_: float

    savings: str
    refine: bool
    solver: str
    tol: float
    l2: float | str
    l1: float
    fallback: bool
    n_jobs: int | None

    def _learn(self, prepared: Prepared) -> Fitted:
        ways = self._ways()
        learn: Learner = partial(learn_jointly, solver=self.solver, l2=self.l2, **ways)
        if prepared.winners is not None:  # what is only measured is not certified
            learn = partial(measure_jointly, l2=self._ridge(), **ways)
        return fit_policy(
            prepared,
            self._settings_for(prepared),
            learn,
            partial(choose_recipe, simpler=self.fallback),
            self._learn_less(),
        )

    def _ways(self) -> dict[str, Any]:
        """Parameters of the program and of its refinement."""
        return {
            "savings": self.savings,
            "tol": self.tol,
            "l1": self.l1,
            "refine": self.refine,
            "fallback": self.fallback,
            "n_jobs": threads_asked(self.n_jobs),
        }

    def _ridge(self) -> float | str:
        """The ridge penalty of what is only compared."""
        return 0.0 if self.l2 == "auto" and not SOLVERS[self.solver].ridge else self.l2

    def _learn_less(self) -> Learner:
        """Learns decisions that are only compared."""
        return partial(rehearse_jointly, l2=self._ridge(), **self._ways())
