"""Learn all decisions jointly by one linear program, then refine them on the risk."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from sensortree.learning.learned import Learned, Learner, ridge_of
from sensortree.learning.pose import Posed, pose
from sensortree.learning.prepare import Winners
from sensortree.learning.settings import Settings
from sensortree.learning.validated import (
    Compared,
    Rehearsed,
    compare_with_less,
    nothing_bought,
    rehearse_posed,
)
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.program import SOLVERS, approximate, solve
from sensortree.program.refinement import alternate, best_cut, learn_upwards
from sensortree.program.routing import RoutingProblem
from sensortree.text import plain
from sensortree.types import Array

# Relative gap to which decisions are learned that are only compared, and to which the
# start of a refinement is; rows of the program of such a start at most.
REHEARSED, NEAR = 1e-4, 1e-2
PROGRAM_ROWS = 4_000


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
    n_jobs: int | None,
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
        learned["refined"] = refined(problem, solution.coef, ridge)
    kept = keep(problem, observed, learned, ridge, fallback)
    return Learned(kept.coef, {"certificate": solution.certificate, **kept.evidence})


def measure_jointly(
    problem: RoutingProblem,
    observed: RoutingProblem,
    *,
    savings: str,
    tol: float,
    l2: float | str,
    l1: float,
    refine: bool,
    fallback: bool,
    n_jobs: int | None,
) -> Learned:
    """Learn as `learn_jointly` does, for a point of a curve: nothing is certified.

    The program only says where the refinement of all rows sets out from: it need not be
    close to its optimum, and on many rows, some of them must do.
    """
    ridge = ridge_of(l2, problem)
    posed, share = spread_rows(problem, PROGRAM_ROWS if refine else None)
    near = approximate(
        posed.surrogate(posed.worst(savings)),
        NEAR if refine else max(tol, REHEARSED),
        share * ridge,
        share * l1,
        n_jobs=n_jobs,
    )
    learned = {"linear program": near}
    if refine:
        learned["refined"] = refined(problem, near, ridge)
    return keep(problem, observed, learned, ridge, fallback)


def rehearse_jointly(
    problem: RoutingProblem,
    observed: RoutingProblem,
    *,
    refine: bool,
    l2: float | str,
    fallback: bool,
    **others: Any,
) -> Learned:
    """Learn as `learn_jointly` does, near enough for what is only compared.

    What is refined anyway need not set out from the program's optimum.
    """
    if not refine:
        return measure_jointly(
            problem, observed, refine=refine, l2=l2, fallback=fallback, **others
        )
    ridge = ridge_of(l2, problem)
    learned = {"refined": learn_upwards(problem, ridge, best_cut)}
    return keep(problem, observed, learned, ridge, fallback)


def refined(problem: RoutingProblem, start: list[Array], ridge: float) -> list[Array]:
    """The better end of refinements from the program's optimum, and from the leaves up."""
    ends = [
        alternate(problem, start, ridge, best_cut),
        learn_upwards(problem, ridge, best_cut),
    ]
    return min(ends, key=problem.risk)


def keep(
    problem: RoutingProblem,
    observed: RoutingProblem,
    learned: dict[str, list[Array]],
    ridge: float,
    fallback: bool,
) -> Learned:
    """Keep the last of what was learned, or one leaf for all if that has the lower risk."""
    kept = list(learned)[-1]
    leaf = int(np.argmin(observed.constant_risk()))
    ways = {**learned, "one leaf": observed.constant_coef(leaf)}
    risk = {name: observed.risk(coef) for name, coef in ways.items()}
    if fallback and risk["one leaf"] < risk[kept]:
        kept = "one leaf"
    single = kept == "one leaf"
    stops = tuple(sorted(problem.tree.leaves[leaf].sensors)) if single else None
    own = problem.risk(ways[kept])
    evidence = {
        "fallback_leaf": leaf if single else None,
        "decision_report": DecisionReport(kept, risk, stops, ridge, own),
    }
    return Learned(ways[kept], evidence)


def spread_rows(
    problem: RoutingProblem, at_most: int | None
) -> tuple[RoutingProblem, float]:
    """A problem on some of its rows, evenly spread, and the share of weight they have."""
    n_rows = len(problem.weight)
    if at_most is None or n_rows <= at_most:
        return problem, 1.0
    part = problem.take(np.linspace(0, n_rows - 1, at_most).astype(np.intp))
    return part, float(part.weight.sum() / problem.weight.sum())


def prefer_less(
    posed: Posed,
    learned: Learned,
    rehearsed: Rehearsed | None,
    leaves: LeafClassifiers,
    settings: Settings,
    learn: Learner,
) -> tuple[Posed, Learned]:
    """Keep the decisions, or buy the same or nothing for all, if that is as good.

    Judged on rows that decisions were not learned from; the report says what was
    compared.
    """
    rehearsed = rehearsed or rehearse_posed(posed, leaves, learn)
    compared = compare_with_less(rehearsed, leaves, settings, learn)
    if compared is None:
        return posed, learned
    report: DecisionReport = replace(
        learned.evidence["decision_report"], compared=compared
    )
    coef, leaf = learned.coef, learned.evidence["fallback_leaf"]
    if compared.kept == "nothing":
        posed = pose(nothing_bought(leaves, settings), leaves, settings)
        coef = learn(posed.problem, posed.observed).coef
        leaf = 0
        risk = {**report.risk, "nothing": posed.observed.risk(coef)}
        report = replace(report, kept="nothing", risk=risk)
    elif compared.kept == "one leaf":
        leaf = int(np.argmin(posed.observed.constant_risk()))
        coef = posed.observed.constant_coef(leaf)
        report = replace(report, kept="one leaf")
    if leaf is not None:
        stops = tuple(sorted(posed.problem.tree.leaves[leaf].sensors))
        tree = posed.problem.tree
        ends = np.unique(tree.route(posed.problem.margins(coef)))
        leaf = int(ends[0]) if len(ends) == 1 else None  # else some are handed over
        own = posed.problem.risk(coef)
        report = replace(report, fallback_sensors=stops, learned_risk=own)
    evidence = {"fallback_leaf": leaf, "decision_report": report}
    return posed, Learned(coef, {**learned.evidence, **evidence})


def prefer_as_beside(
    posed: Posed,
    learned: Learned,
    rehearsed: Rehearsed | None,
    leaves: LeafClassifiers,
    settings: Settings,
    learn: Learner,
    *,
    winners: Winners,
) -> tuple[Posed, Learned]:
    """As `prefer_less`; decisions kept at the cost weights around are kept unjudged."""
    cost_weight = settings.cost_weight
    if rehearsed is None and winners.expected(cost_weight) == {"decisions"}:
        return posed, learned
    posed, learned = prefer_less(posed, learned, rehearsed, leaves, settings, learn)
    compared = learned.evidence["decision_report"].compared
    if compared is not None:
        winners.add(cost_weight, compared.kept)
    return posed, learned


@dataclass(frozen=True)
class DecisionReport:
    """How the decisions of a fit came about, with true (not surrogate) training risks.

    Attributes
    ----------
    kept : {"linear program", "refined", "one leaf", "nothing"}
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
    compared : Compared or None
        Risk and cost on rows that decisions were not learned from, of the decisions, of
        the best single leaf and of buying nothing, with the standard error of what they
        differ by: the cheapest within one of the least is kept. None with
        ``fallback=False`` or ``cv=None``.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> print(SensorTreeClassifier(cost_weight=0.3).fit(X, X[:, 0] > 0).decision_report_)
    decisions of the linear program, refined: training risk 0.3250
    linear program 0.3250, refined 0.3250, one leaf 0.3250 (l2 = 9.81)
    on rows not learned from: decisions 0.3250 (costs 1), one leaf 0.3250 (costs 1), \
nothing 0.4750 (costs 0)
    """

    kept: str
    risk: dict[str, float]
    fallback_sensors: tuple[str, ...] | None
    l2: float
    learned_risk: float
    compared: Compared | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain values for JSON."""
        form: dict[str, Any] = plain(asdict(self))
        return form

    def __str__(self) -> str:
        stops = self.fallback_sensors or ()
        said = {
            "linear program": "decisions of the linear program",
            "refined": "decisions of the linear program, refined",
        }.get(self.kept, f"every example stops with {', '.join(stops) or 'nothing'}")
        risks = ", ".join(f"{name} {risk:.4f}" for name, risk in self.risk.items())
        lines = [
            f"{said}: training risk {self.risk[self.kept]:.4f}",
            f"{risks} (l2 = {self.l2:.3g})",
        ]
        if self.compared is not None:
            lines.append(str(self.compared))
        return "\n".join(lines)
