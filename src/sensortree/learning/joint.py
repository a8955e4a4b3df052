"""Learn all decisions jointly by one linear program, then refine them on the risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sensortree.learning.learned import Learned, ridge_of
from sensortree.program import SOLVERS, solve
from sensortree.program.refinement import alternate, best_cut
from sensortree.program.routing import RoutingProblem


def learn_jointly(
    problem: RoutingProblem,
    observed: RoutingProblem,
    *,
    savings: str,
    solver: str,
    tol: float,
    l2: float | str,
    l1: float,
    refine: bool,
    fallback: bool,
    n_jobs: int,
) -> Learned:
    """Minimise the surrogate over all decision functions at once, then refine.

    Other parameters are those of `SensorTreeClassifier`. The evidence holds the
    certificate, a `DecisionReport`, and the leaf that all examples go to, if they do.
    """
    ridge = 0.0 if l2 == "auto" and not SOLVERS[solver].ridge else ridge_of(l2, problem)
    surrogate = problem.surrogate(problem.worst(savings))
    solution = solve(surrogate, solver, tol, ridge, l1, n_jobs=n_jobs)
    learned = {"linear program": list(solution.coef)}
    if refine:
        single = problem.constant_coef(int(np.argmin(problem.constant_risk())))
        ends = [
            alternate(problem, start, ridge, best_cut)
            for start in (solution.coef, single)
        ]
        learned["refined"] = min(ends, key=problem.risk)
    kept = list(learned)[-1]
    leaf = int(np.argmin(observed.constant_risk()))
    learned["one leaf"] = observed.constant_coef(leaf)
    risk = {name: observed.risk(coef) for name, coef in learned.items()}
    if fallback and risk["one leaf"] < risk[kept]:
        kept = "one leaf"
    stops = tuple(sorted(problem.tree.leaves[leaf].sensors))
    report = DecisionReport(
        kept,
        risk,
        stops if kept == "one leaf" else None,
        ridge,
        problem.risk(learned[kept]),
    )
    evidence: dict[str, Any] = {
        "certificate": solution.certificate,
        "fallback_leaf": leaf if kept == "one leaf" else None,
        "decision_report": report,
    }
    return Learned(learned[kept], evidence)


@dataclass(frozen=True)
class DecisionReport:
    """How the decisions of a fit came about, with true (not surrogate) training risks.

    Attributes
    ----------
    kept : {"linear program", "refined", "one leaf"}
        Which decisions the fitted model makes.
    risk : dict of str to float
        Mean training risk of each: error, out of fold if ``cv`` is set, plus weighted
        cost.
    fallback_sensors : tuple of str or None
        The sensors that every example buys, if that was kept.
    l2 : float
        The ridge penalty that was used.
    learned_risk : float
        Mean training risk of what was kept, by the errors it was learned from: with
        ``errors="smoothed"`` these are not 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> print(SensorTreeClassifier(cost_weight=0.9).fit(X, X[:, 0] > 0).decision_report_)
    decisions of the linear program, refined: training risk 0.4750
    linear program 0.4750, refined 0.4750, one leaf 0.4750 (l2 = 43.9)
    """

    kept: str
    risk: dict[str, float]
    fallback_sensors: tuple[str, ...] | None
    l2: float
    learned_risk: float

    def __str__(self) -> str:
        stops = self.fallback_sensors or ()
        said = {
            "linear program": "decisions of the linear program",
            "refined": "decisions of the linear program, refined",
            "one leaf": f"every example stops with {', '.join(stops) or 'nothing'}",
        }[self.kept]
        risks = ", ".join(f"{name} {risk:.4f}" for name, risk in self.risk.items())
        return (
            f"{said}: training risk {self.risk[self.kept]:.4f}\n{risks} "
            f"(l2 = {self.l2:.3g})"
        )
