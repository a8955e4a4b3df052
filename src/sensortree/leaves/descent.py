"""`descend`: many smooth convex functions minimised side by side, by preconditioned L-BFGS.

All functions are asked at once, each at a point of its own, so that what they share (the
columns of a data set) is read once for all. A function whose step does not lower it waits
half a step back, while the others go on; one that has come close enough to its minimum is
asked no more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from sensortree.constants import DESCENT_DECREASE, DESCENT_HALVINGS, DESCENT_MEMORY, EPS
from sensortree.types import Array, Rows

# Values and gradients of the numbered functions at one point each:
# (numbers, points (n, size)) -> values (n,), gradients (n, size).
Functions = Callable[[Rows, Array], tuple[Array, Array]]


class Factored:
    """One matrix for every run of coordinates of its length, factored by Cholesky."""

    def __init__(self, matrix: Array):
        # What rounding made indefinite is lifted until it is not.
        lift = EPS * float(np.trace(matrix)) / len(matrix)
        self.factor, failed = dpotrf(matrix, lower=True)
        while failed:
            lift *= 100
            matrix = matrix + lift * np.eye(len(matrix))
            self.factor, failed = dpotrf(matrix, lower=True)

    def solve(self, gradients: Array) -> Array:
        """The inverse times each run of each row, (n, size)."""
        runs = gradients.reshape(-1, len(self.factor))
        solved, _ = dpotrs(self.factor, runs.T, lower=True)
        return np.ascontiguousarray(solved.T).reshape(gradients.shape)


class Diagonal:
    """A diagonal matrix, for every run of coordinates of its length."""

    def __init__(self, diagonal: Array):
        self.diagonal = diagonal

    def solve(self, gradients: Array) -> Array:
        """The inverse times each run of each row, (n, size)."""
        runs = gradients.reshape(-1, len(self.diagonal)) / self.diagonal
        return np.asarray(runs.reshape(gradients.shape))


# A symmetric positive definite matrix that stands for the Hessian.
Curvature = Factored | Diagonal


def descend(
    functions: Functions,
    start: Array,
    curvature: Curvature,
    tol: float | Array,
    max_rounds: int,
    eps: float = EPS,
) -> tuple[Array, bool]:
    """Points where each function is near its minimum, and whether all of them are.

    A function is done when a Newton step promises no larger a decrease than half of `tol`,
    in the function's own unit. Functions are asked `max_rounds` times at most, and are
    exact to a relative precision of `eps`. Points are (n_functions, size).
    """
    points = start.copy()
    going = np.arange(len(start))
    value, gradient = functions(going, start)
    at, memory = start, _Memory(curvature)
    direction = -memory.newton(gradient)
    promise = -_inner(gradient, direction)
    step, near = np.ones(len(start)), np.broadcast_to(tol, len(start))
    for _ in range(max_rounds):
        done = (promise <= near) | (step < 0.5**DESCENT_HALVINGS)
        if done.any():
            points[going[done]] = at[done]
            left = ~done
            going, at, value = going[left], at[left], value[left]
            gradient, direction = gradient[left], direction[left]
            promise, step, near = promise[left], step[left], near[left]
            memory.keep(left)
        if not len(going):
            return points, True
        trial = at + step[:, None] * direction
        new_value, new_gradient = functions(going, trial)
        # Near the minimum the decrease drowns in rounding.
        rounding = 8 * eps * np.abs(value)
        lower = new_value <= value - DESCENT_DECREASE * step * promise + rounding
        moved = np.where(lower[:, None], trial - at, 0.0)
        bent = np.where(lower[:, None], new_gradient - gradient, 0.0)
        memory.remember(moved, bent)
        at = np.where(lower[:, None], trial, at)
        value = np.where(lower, new_value, value)
        gradient = np.where(lower[:, None], new_gradient, gradient)
        if lower.all():
            direction, step = -memory.newton(gradient), np.ones(len(going))
        else:
            direction = np.where(lower[:, None], -memory.newton(gradient), direction)
            step = np.where(lower, 1.0, step / 2)
        promise = -_inner(gradient, direction)
    points[going] = at
    return points, bool((promise <= near).all())


class _Memory:
    """What steps of each function say about its second derivatives."""

    def __init__(self, curvature: Curvature):
        self.curvature = curvature
        # Steps, changes of the gradient, and 1 / (step . change), or 0 for a pair that says
        # nothing; the newest last.
        self.pairs: list[tuple[Array, Array, Array]] = []
        self.scale: Array | None = None

    def keep(self, left: NDArray[np.bool_]) -> None:
        """Forget the functions that are done."""
        self.pairs = [(s[left], b[left], r[left]) for s, b, r in self.pairs]
        if self.scale is not None:
            self.scale = self.scale[left]

    def remember(self, step: Array, bend: Array) -> None:
        """Add a pair; zeros for a function that has not moved."""
        product, size = _inner(step, bend), _inner(step, step)
        useful = product > EPS * size
        rate = np.where(useful, 1 / np.where(useful, product, 1.0), 0.0)
        self.pairs = [*self.pairs, (step, bend, rate)][-DESCENT_MEMORY:]
        solved = _inner(bend, self.curvature.solve(bend))
        before = np.ones(len(step)) if self.scale is None else self.scale
        ratio = product / np.where(useful & (solved > 0), solved, 1.0)
        self.scale = np.where(useful & (solved > 0), ratio, before)

    def newton(self, gradient: Array) -> Array:
        """The inverse Hessian, as far as it is known, times each gradient."""
        left, shares = gradient, []
        for step, bend, rate in reversed(self.pairs):
            share = rate * _inner(step, left)
            left = left - share[:, None] * bend
            shares.append(share)
        found = self.curvature.solve(left)
        if self.scale is not None:
            found = self.scale[:, None] * found
        for (step, bend, rate), share in zip(self.pairs, shares[::-1], strict=True):
            found = found + (share - rate * _inner(bend, found))[:, None] * step
        return found


def _inner(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", a, b))
