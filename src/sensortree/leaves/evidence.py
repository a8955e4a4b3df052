"""`most_evident`: the penalty of a ridge logistic regression that its evidence is for."""

from __future__ import annotations

import numpy as np

from sensortree.leaves.descent import Curvature, Factored
from sensortree.leaves.ridge import MAX_ROUNDS, NONE, ROUNDS, RidgeProblem
from sensortree.types import Array

# Powers of 3 that C may be, and nats that a step still promises while it is chosen.
POWERS = range(-5, 2)
CLIMBED = 1e-3


def most_evident(
    problem: RidgeProblem, coef: Array, out: int = NONE, best: int = 0
) -> tuple[float, Array, Curvature]:
    """C of the largest evidence outside a fold; each fit sets out from the last.

    By climbing from 1, or from another power of 3.
    """
    curvature = problem.curvature(coef, 3.0**best)
    hessian: Array | None = None
    tried: dict[int, tuple[float, Array, Array]] = {}

    def evidence(power: int) -> float:
        nonlocal coef, curvature, hessian
        if power not in tried:
            C = 3.0**power
            if hessian is not None:
                curvature = Factored(problem.closed(hessian, C))
            for rounds in (*ROUNDS, MAX_ROUNDS):
                coef, arrived = problem.minimise_one(
                    C, coef, curvature, CLIMBED, rounds, out
                )
                if arrived:
                    break
                curvature = problem.curvature(coef, C)
            hessian = problem.hessian(coef, out)
            tried[power] = log_evidence(problem, C, coef, hessian, out), coef, hessian
        return tried[power][0]

    evidence(best)  # the others set out from there
    for way in (-1, +1):
        while best + way in POWERS and evidence(best + way) > evidence(best):
            best += way
    _, coef, hessian = tried[best]
    return 3.0**best, coef, Factored(problem.closed(hessian, 3.0**best))


def log_evidence(
    problem: RidgeProblem, C: float, coef: Array, hessian: Array, out: int = NONE
) -> float:
    """Laplace's approximation of the log-evidence of a ridge logistic regression.

    The penalty |θ|²/(2C) is a Gaussian prior of variance C. With K the Hessian of the loss
    at the optimum, the intercepts profiled out,

        log p(y | C) = -loss - |θ|²/(2C) - 1/2 log det(1 + C K) + constant.
    """
    (penalised,), _ = problem.losses(C, coef[None], np.array([out]))
    width = problem.n_terms + 1
    intercepts = np.arange(width - 1, len(hessian), width)
    slopes = np.delete(np.arange(len(hessian)), intercepts)
    crossed = hessian[np.ix_(slopes, intercepts)]
    inner = np.linalg.pinv(hessian[np.ix_(intercepts, intercepts)], hermitian=True)
    profiled = hessian[np.ix_(slopes, slopes)] - crossed @ inner @ crossed.T
    profiled *= C
    profiled.flat[:: len(profiled) + 1] += 1.0
    factor = Factored(profiled).factor
    return float(-penalised - np.log(np.diag(factor)).sum())
