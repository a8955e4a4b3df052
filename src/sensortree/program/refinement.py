"""Alternating minimisation: improve one decision function at a time, on the true risk.

With all other decision functions fixed, an example that reaches node j ends at one leaf
if it goes negative there and at another if it goes positive. What going positive gains,
in risk, makes a weighted two-class problem. Its logistic regression gives a direction;
where many examples come by, the threshold of the least true risk along it is found by
sorting. A step is kept only if the risk falls, so the risk never rises and the search ends.
A node whose examples and gains are those of the last visit is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv

from sensortree.program.risk import RoutingProblem
from sensortree.types import Array, Mask, Rows

Coef = list[Array]
Improvement = Callable[[Array, Array, Array, float], Array]

MAX_SWEEPS = 20
NEWTON_STEPS = 15
# A fall of the risk by less than this share of the spread of leaf risks is rounding.
LEAST_FALL = 1e-9
# Rows from which a node's threshold is found by counting; of fewer, where that gains so
# many standard errors: the best of many thresholds gains one or two by chance.
CUT_ROWS, CUT_GAIN = 1000, 3.0
# Ridge that keeps a separable regression finite, as a share of its total weight; and the
# share from which second derivatives of single precision are safe to solve.
LEAST_RIDGE, SINGLE_RIDGE = 1e-6, 1e-4
# Share of the objective that a Newton step must promise: of a regression that is the
# answer, and of one whose threshold is looked for afterwards.
DIRECTION_FALL, CUT_FALL = 1e-8, 1e-5


def alternate(
    problem: RoutingProblem,
    coef: Sequence[Array],
    l2: float,
    improve: Improvement,
    max_sweeps: int = MAX_SWEEPS,
) -> Coef:
    """Improve decision functions node by node, from the leaves up, while the risk falls.

    `l2` is the ridge penalty of the weighted logistic regressions. `improve`, which is
    `best_direction` or `best_cut`, finds a node's coefficients from its features, gains and
    coefficients. The true risk of what is returned is at most that of `coef`, the start.
    """
    coef = [np.array(theta, dtype=float) for theta in coef]
    if not coef:
        return coef
    margins = problem.margins(coef)
    enough = LEAST_FALL * np.ptp(problem.leaf_risk) * problem.weight.sum()
    visited: dict[int, tuple[Rows, Array]] = {}  # rows and gains of the last visit
    for _ in range(max_sweeps):
        fallen = 0.0
        passed = problem.tree.passed(margins)
        below = np.empty(margins.shape)  # risk of each example, put at each node
        for node in reversed(range(problem.tree.n_nodes)):
            rows, phi = np.flatnonzero(passed[:, node]), problem.features[node]
            if_negative, if_positive, gain = _gains(problem, node, below, rows)
            last = visited.get(node)
            if last is None or not all(map(np.array_equal, last, (rows, gain))):
                visited[node] = rows, gain
                theta = improve(phi[rows], gain, coef[node], l2)
                moved = phi @ theta
                fall = gain @ (moved[rows] > 0) - gain @ (margins[rows, node] > 0)
                if fall > enough:
                    coef[node], margins[:, node] = theta, moved
                    fallen += fall
            below[:, node] = np.where(margins[:, node] > 0, if_positive, if_negative)
        if fallen <= enough:
            break
    return coef


def learn_upwards(problem: RoutingProblem, l2: float, improve: Improvement) -> Coef:
    """Learn decision functions from the leaves up, then alternate.

    Takes and gives what `alternate` does, without a start. Who comes by a node is not
    known yet: all rows, or those whose leaf of the least risk is below it. With hindsight
    that leaf is often a lucky guess, so that too few come by where guesses must be made
    good; with all rows, deep nodes learn from many that will not come. Both are tried, and
    the end of the lower risk is taken.
    """
    tree = problem.tree
    if not tree.n_nodes:
        return []
    best = (tree.path_signs != 0)[problem.leaf_risk.argmin(axis=1)]
    starts = [best] if best.all() else [best, np.ones_like(best)]
    ends = [
        alternate(problem, _upwards(problem, l2, improve, passed), l2, improve)
        for passed in starts
    ]
    return min(ends, key=problem.risk)


def _upwards(
    problem: RoutingProblem, l2: float, improve: Improvement, passed: Mask
) -> Coef:
    """One decision function after another, from rows that come by, (n_rows, n_nodes)."""
    tree = problem.tree
    below = np.empty(passed.shape)  # risk of each example, put at each node
    coef: Coef = [np.empty(0)] * tree.n_nodes
    for node in reversed(range(tree.n_nodes)):
        rows, phi = np.flatnonzero(passed[:, node]), problem.features[node]
        if_negative, if_positive, gain = _gains(problem, node, below, rows)
        coef[node] = improve(phi[rows], gain, np.zeros(phi.shape[1]), l2)
        goes = phi @ coef[node] > 0
        below[:, node] = np.where(goes, if_positive, if_negative)
    return coef


def _gains(
    problem: RoutingProblem, node: int, below: Array, rows: Rows
) -> tuple[Array, Array, Array]:
    """Risk of all examples on either side of a node; what some gain by going positive."""
    if_negative, if_positive = (
        problem.leaf_risk[:, ~child[node]] if child[node] < 0 else below[:, child[node]]
        for child in problem.tree.children
    )
    gain = problem.weight[rows] * (if_negative - if_positive)[rows]
    return if_negative, if_positive, gain


def midway(problem: RoutingProblem, coef: Sequence[Array]) -> Coef:
    """Put each threshold midway between the examples that it parts.

    An optimum of the linear program often has examples on the threshold itself, where the
    last bit of a posterior would send them the other way. No training example moves.
    """
    margins = problem.margins(coef)
    passed = problem.tree.passed(margins)
    moved = [np.array(theta, dtype=float) for theta in coef]
    for node, theta in enumerate(moved):
        here = margins[passed[:, node], node]
        if (here > 0).any() and (here <= 0).any():
            theta[-1] -= 0.5 * (here[here > 0].min() + here[here <= 0].max())
    return moved


def best_direction(phi: Array, gain: Array, theta: Array, l2: float) -> Array:
    """Logistic regression of the sign of a gain, weighted by its size.

    Minimises  sum_i |gain_i| log(1 + exp(-sign(gain_i) φ_i·θ)) + (l2/2) |θ|²  by Newton's
    method, from θ = 0 or the given θ, whichever is better.
    """
    return _direction(phi, gain, theta, l2, DIRECTION_FALL, single=False)


def _direction(
    phi: Array, gain: Array, theta: Array, l2: float, least_fall: float, single: bool
) -> Array:
    """`best_direction`; second derivatives may be of single precision."""
    matters = gain != 0
    if not matters.all():
        phi, gain = phi[matters], gain[matters]
    if not len(gain):  # no example cares
        return np.zeros_like(theta)
    weight, sign = np.abs(gain), np.sign(gain)
    total = float(weight.sum())
    ridge = max(l2, LEAST_RIDGE * total)
    rough: Any = phi
    if single and ridge > SINGLE_RIDGE * total:
        rough = phi.astype(np.float32)

    def objective(theta: Array, margin: Array) -> tuple[float, Array]:
        """The objective, and the probability of the side that loses."""
        right = sign * margin
        small = np.exp(-np.abs(right))
        loss = weight @ (np.log1p(small) + np.maximum(-right, 0.0))
        wrong = np.where(right > 0, small, 1.0) / (1.0 + small)
        return float(loss + 0.5 * ridge * (theta @ theta)), wrong

    margin = phi @ theta
    (value, wrong), at_zero = objective(theta, margin), np.log(2.0) * total
    if value > at_zero:
        theta, margin, value = 0 * theta, 0 * margin, at_zero
        wrong = np.full_like(margin, 0.5)
    for _ in range(NEWTON_STEPS):
        pull = weight * wrong
        gradient = ridge * theta - phi.T @ (sign * pull)
        part = np.sqrt(pull * (1.0 - wrong)).astype(rough.dtype)[:, None] * rough
        hessian = np.asarray(part.T @ part, dtype=np.float64)
        hessian.flat[:: len(theta) + 1] += ridge
        _, step, failed = dposv(hessian.T, -gradient, lower=True, overwrite_a=True)
        if failed:  # nothing but rounding is left of it
            break
        slope = float(gradient @ step)
        if slope > -least_fall * value:
            break
        along, length = phi @ step, 1.0
        while length > 1e-4:
            moved, unsure = objective(theta + length * step, margin + length * along)
            if moved <= value + 1e-4 * length * slope:
                break
            length /= 2
        else:
            break
        theta, margin = theta + length * step, margin + length * along
        value, wrong = moved, unsure
    return np.asarray(theta)


def best_cut(phi: Array, gain: Array, theta: Array, l2: float) -> Array:
    """Logistic regression, then the threshold of the least true risk, if that is clear.

    On few rows a threshold found by counting follows the noise, but that of a regression
    is pulled towards the middle of all rows, wherever those are that come by.
    """
    theta = _direction(phi, gain, theta, l2, CUT_FALL, single=True)
    score = phi @ theta
    cut = best_threshold(theta, score, gain)
    if len(gain) >= CUT_ROWS:
        return cut
    turned = gain * ((phi @ cut > 0).astype(float) - (score > 0))
    return cut if turned.sum() > CUT_GAIN * np.sqrt((turned**2).sum()) else theta


def best_threshold(theta: Array, score: Array, gain: Array) -> Array:
    """Shift the intercept, the last of θ, to where the positive side gains most.

    If one side is best for every example, all coefficients but the intercept are 0.
    """
    order = np.argsort(-score, kind="stable")
    ordered = score[order]
    gained = np.r_[0.0, np.cumsum(gain[order])]
    cuts = np.r_[True, ordered[1:] < ordered[:-1], True][: len(gained)]
    best = int(np.argmax(np.where(cuts, gained, -np.inf)))
    if best in (0, len(score)):
        return np.asarray(np.r_[np.zeros(len(theta) - 1), 1.0 if best else -1.0])
    shifted: Array = theta.copy()
    shifted[-1] -= 0.5 * (ordered[best - 1] + ordered[best])
    return shifted
