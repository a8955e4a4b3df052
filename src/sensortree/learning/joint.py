"""Decisions that were learned; and all at once, by one linear program, then refined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sensortree.constants import COMPARED_GAP, DECISION_RIDGE, START_GAP, START_ROWS
from sensortree.program import SOLVERS, approximate, solve
from sensortree.program.refinement import alternate, best_cut, learn_upwards, midway
from sensortree.program.risk import RoutingProblem
from sensortree.text import PlainForm
from sensortree.tree.tree import SensorTree
from sensortree.types import Array

ONE_LEAF = "one leaf"  # for all, instead of decisions


@dataclass(frozen=True, eq=False)
class Learned:
    """Coefficients of all decision functions, and the evidence for them.

    A fitted model shows the evidence, such as its certificate, as attributes of the same
    names with an underscore behind them.
    """

    coef: list[Array]
    evidence: Mapping[str, Any] = field(default_factory=dict)


# Learns decisions from a problem, and from the same problem with the errors that were made.
Learner = Callable[[RoutingProblem, RoutingProblem], Learned]


def automatic_ridge(problem: RoutingProblem) -> float:
    """Ridge penalty in proportion to how much an example's leaves differ (l2="auto")."""
    spread = np.ptp(problem.leaf_risk, axis=1)
    return float(DECISION_RIDGE * np.average(spread, weights=problem.weight))


def ridge_of(l2: float | str, problem: RoutingProblem) -> float:
    """Give the ridge penalty that `l2` stands for, in the unit of the risk."""
    return automatic_ridge(problem) if l2 == "auto" else float(l2)


@dataclass(frozen=True)
class Jointly:
    """Learns all decision functions at once; `Program` says what the parameters mean."""

    savings: str
    solver: str
    tol: float
    l2: float | str
    l1: float
    refine: bool
    fallback: bool
    n_jobs: int | None

    def ridge(self, problem: RoutingProblem) -> float:
        """The ridge penalty; "auto" is none for a solver that takes none."""
        none = self.l2 == "auto" and not SOLVERS[self.solver].ridge
        return 0.0 if none else ridge_of(self.l2, problem)

    def learn(self, problem: RoutingProblem, observed: RoutingProblem) -> Learned:
        """Minimise the surrogate, then refine.

        The evidence holds the certificate, a `DecisionReport`, and the leaf that all
        examples go to, if they do.
        """
        ridge = self.ridge(problem)
        surrogate = problem.surrogate(problem.worst(self.savings))
        solution = solve(
            surrogate, self.solver, self.tol, ridge, self.l1, n_jobs=self.n_jobs
        )
        kept = self._kept(problem, observed, list(solution.coef), ridge)
        return Learned(
            kept.coef, {"certificate": solution.certificate, **kept.evidence}
        )

    def measure(self, problem: RoutingProblem, observed: RoutingProblem) -> Learned:
        """Learn for a point of a curve: nothing is certified.

        The program only says where the refinement of all rows sets out from: it need not
        be close to its optimum, and on many rows, some of them must do.
        """
        ridge = self.ridge(problem)
        posed, share = spread_rows(problem, START_ROWS if self.refine else None)
        near = approximate(
            posed.surrogate(posed.worst(self.savings)),
            START_GAP if self.refine else max(self.tol, COMPARED_GAP),
            share * ridge,
            share * self.l1,
            n_jobs=self.n_jobs,
        )
        return self._kept(problem, observed, near, ridge)

    def compare(self, problem: RoutingProblem, observed: RoutingProblem) -> Learned:
        """Learn near enough for what is only compared.

        What is refined anyway need not set out from the program's optimum.
        """
        if not self.refine:
            return self.measure(problem, observed)
        ridge = self.ridge(problem)
        learned = {"refined": midway(problem, learn_upwards(problem, ridge, best_cut))}
        return keep(problem, observed, learned, ridge, self.fallback)

    def _kept(
        self,
        problem: RoutingProblem,
        observed: RoutingProblem,
        solved: list[Array],
        ridge: float,
    ) -> Learned:
        learned = {"linear program": solved}
        if self.refine:
            learned["refined"] = refined(problem, solved, ridge)
        return keep(problem, observed, learned, ridge, self.fallback)


def refined(problem: RoutingProblem, start: list[Array], ridge: float) -> list[Array]:
    """The better end of refinements from the program's optimum, and from the leaves up.

    Thresholds are put midway between the examples that they part.
    """
    ends = [
        alternate(problem, start, ridge, best_cut),
        learn_upwards(problem, ridge, best_cut),
    ]
    return midway(problem, min(ends, key=problem.risk))


def keep(
    problem: RoutingProblem,
    observed: RoutingProblem,
    learned: dict[str, list[Array]],
    ridge: float,
    fallback: bool,
) -> Learned:
    """Keep the last of what was learned, or one leaf for all if that has the lower risk."""
    leaf = int(np.argmin(observed.constant_risk()))
    ways = {**learned, ONE_LEAF: observed.constant_coef(leaf)}
    risk = {name: observed.risk(coef) for name, coef in ways.items()}
    given = problem.tree, ways, list(learned)[-1], leaf, risk
    return keep_best(*given, lambda name: problem.risk(ways[name]), ridge, fallback)


def keep_best(
    tree: SensorTree,
    ways: Mapping[str, list[Array]],
    best: str,
    leaf: int,
    risk: Mapping[str, float],
    own: Callable[[str], float],
    ridge: float,
    fallback: bool,
) -> Learned:
    """Keep the best of what was learned, or one leaf for all if that has the lower risk.

    `risk` is by the errors that were made, `own` by those that it was learned from.
    """
    kept = best if tree.n_nodes else ONE_LEAF
    if fallback and risk[ONE_LEAF] < risk[kept]:
        kept = ONE_LEAF
    single = kept == ONE_LEAF
    stops = tuple(sorted(tree.leaves[leaf].sensors)) if single else None
    evidence = {
        "fallback_leaf": leaf if single else None,
        "decision_report": DecisionReport(kept, dict(risk), stops, ridge, own(kept)),
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


def with_scope(learned: Learned, certified: SensorTree, kept: SensorTree) -> Learned:
    """Let a certificate say which decisions it is about, beside those of the model.

    The linear program was solved on the `certified` tree; the model has the one `kept`.
    """
    certificate = learned.evidence.get("certificate")
    report = learned.evidence.get("decision_report")
    if certificate is None or report is None:
        return learned
    scoped = replace(certificate, speaks_of=_speaks_of(certified, kept, report))
    return Learned(learned.coef, {**learned.evidence, "certificate": scoped})


def _speaks_of(certified: SensorTree, kept: SensorTree, report: DecisionReport) -> str:
    leaves = f"{certified.n_leaves} leaves" if certified.n_leaves > 1 else "one leaf"
    scope = f"the linear program's own decisions on a tree of {leaves}"
    if not certified.n_nodes:
        return f"{scope}: there is nothing to decide"
    then = {
        "linear program": "the model makes exactly these",
        "refined": "the model's decisions were then refined on the training risk itself, "
        "and nothing is proven about them",
        ONE_LEAF: "the model sends every example to one leaf instead",
    }[report.kept]
    if kept.n_leaves < certified.n_leaves and report.kept != ONE_LEAF:
        are = "is" if kept.n_leaves == 1 else "are"
        then += f"; {kept.n_leaves} of its leaves {are} reached and kept"
    return f"{scope}; {then}"


@dataclass(frozen=True)
class DecisionReport(PlainForm):
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
    >>> print(SensorTreeClassifier(cost_weight=0.3).fit(X, X[:, 0] > 0).decision_report_)
    decisions of the linear program, refined: training risk 0.3250
    linear program 0.3250, refined 0.3250, one leaf 0.3250 (l2 = ...)
    """

    kept: str
    risk: dict[str, float]
    fallback_sensors: tuple[str, ...] | None
    l2: float
    learned_risk: float

    def __str__(self) -> str:
        stops = self.fallback_sensors or ()
        kept = {
            "linear program": "decisions of the linear program",
            "refined": "decisions of the linear program, refined",
        }.get(self.kept, f"every example stops with {', '.join(stops) or 'nothing'}")
        risks = ", ".join(f"{name} {risk:.4f}" for name, risk in self.risk.items())
        own = f"{kept}: training risk {self.risk[self.kept]:.4f}"
        return f"{own}\n{risks} (l2 = {self.l2:.3g})"
