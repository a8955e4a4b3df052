"""`InteriorPoint`: Mehrotra's method; `run`: when to start over, go on, and stop.

`Newton` is the factored matrix of a point; `Penalties` are l2 and l1 as more rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

from sensortree.exceptions import SolverError
from sensortree.program.arrays import Array, astype, like, namespace, to_numpy
from sensortree.program.solvers.base import Options, Progress, RawSolution
from sensortree.program.solvers.structured.chunk import Blocks
from sensortree.program.solvers.structured.rows import Bounds, Rows, Speeds, recentred
from sensortree.program.surrogate import SurrogateProblem

LOG = logging.getLogger("sensortree.solver")

Vector = NDArray[np.float64]
Solve = Callable[[Vector], Vector]

# the Newton matrix --------------------------------------------------------------------

MAX_REFINEMENTS = 12
# Ratio of the largest pivot to the smallest from which solutions are refined.
DOUBTFUL = 1e4


class Newton:
    """The factored Newton matrix of a point, and solutions of its systems.

    `S`, (p, p), is what the rows add to it: overwritten, and factored in its own precision.
    `added` is added to the diagonal; `apply` gives S times a vector, exactly.
    """

    def __init__(self, S: Array, added: Vector, apply: Solve):
        diagonal = _diagonal(S).astype(float)
        self.added, self._apply_rows = added, apply
        self.size = np.sqrt(np.maximum(diagonal + added, np.finfo(float).tiny))
        unit = astype(like(1.0 / self.size, S), S.dtype)
        S *= unit
        S *= unit[:, None]
        self._solve, pivots = _factor(S)
        self.condition = float(pivots.max() / pivots.min())

    def predict(self, rhs: Vector) -> Vector:
        """Solve by the factor alone: near enough for a direction that is not taken."""
        return self._solve(rhs / self.size) / self.size

    def solve(self, rhs: Vector) -> Vector:
        """Solve by the factor, refined by conjugate gradients where it is doubtful."""
        d = self.predict(rhs)
        if self.condition < DOUBTFUL:
            return d
        residual = rhs - self._apply(d)
        enough = 1e-9 * np.abs(rhs / self.size).max()
        direction, slope = np.zeros_like(d), 1.0
        for step in range(MAX_REFINEMENTS):
            if np.abs(residual / self.size).max() <= enough:
                break
            downhill = self.predict(residual)
            last_slope, slope = slope, float(residual @ downhill)
            direction = downhill + (slope / last_slope if step else 0.0) * direction
            image = self._apply(direction)
            curvature = float(direction @ image)
            if not (curvature > 0 and slope > 0):  # nothing left but rounding
                break
            d = d + slope / curvature * direction
            residual = residual - slope / curvature * image
        return d

    def _apply(self, d: Vector) -> Vector:
        return self._apply_rows(d) + self.added * d


def _diagonal(S: Array) -> Vector:
    """Copy the diagonal to NumPy, which before 2.1 takes over nothing that is read-only."""
    return to_numpy(namespace(S).linalg.diagonal(S) + 0.0)


def _factor(S: Array) -> tuple[Solve, Vector]:
    """Factor a matrix, its diagonal set to 1, as little perturbed as makes it definite.

    Only the upper triangle is read. Returns what solves its systems, and its pivots.
    """
    factor = _factor_numpy if isinstance(S, np.ndarray) else _factor_there
    for nudge in (1e-15, 1e-13, 1e-11, 1e-9, 1e-6):
        factored = factor(S, 1.0 + nudge)
        if factored is not None:
            return factored
    raise SolverError("the Newton matrix of the structured solver is not a number.")


def _factor_numpy(S: Vector, diagonal: float) -> tuple[Solve, Vector] | None:
    """Factor by LAPACK; None if S is not definite."""
    potrf, potrs = (spotrf, spotrs) if S.dtype == np.float32 else (dpotrf, dpotrs)
    S.flat[:: len(S) + 1] = diagonal
    # What is the upper triangle by rows is the lower one by columns, as LAPACK reads it.
    factor, failed = potrf(S.T, lower=True, clean=False)
    if failed:
        return None

    def solve(rhs: Vector) -> Vector:
        solved = potrs(factor, rhs, lower=True)[0]
        return np.asarray(solved, float)

    return solve, factor.diagonal()


def _factor_there(S: Array, diagonal: float) -> tuple[Solve, Vector] | None:
    """Factor where the matrix is; None if S is not definite.

    The array standard does not solve with triangles, so the factor is inverted.
    """
    xp = namespace(S)
    upper = xp.triu(S, k=1)
    one = xp.eye(S.shape[0], dtype=S.dtype, device=S.device)
    try:
        factor = xp.linalg.cholesky(upper + upper.T + diagonal * one)
    except (ValueError, RuntimeError):  # what libraries derive their LinAlgError from
        return None
    pivots = _diagonal(factor)
    if not np.all(np.isfinite(pivots)):
        return None
    inverse = xp.linalg.inv(factor)

    def solve(rhs: Vector) -> Vector:
        solved = inverse.T @ (inverse @ astype(like(rhs, S), S.dtype))
        return np.asarray(to_numpy(solved), float)

    return solve, pivots


# penalties ----------------------------------------------------------------------------


class Penalties:
    """The penalties as one more set of rows: ridge R, and t >= ±θ at the price `lasso`.

    Rows: t - θ >= 0 (z1), t + θ >= 0 (z2), with z1 + z2 = lasso. Coefficients without an
    l1 penalty have no rows.
    """

    def __init__(self, ridge: Vector, lasso: Vector):
        self.ridge, self.lasso = ridge, lasso
        self.some = np.flatnonzero(lasso)
        self.n_values = 2 * self.some.size

    def start(self, theta: Vector, mu: float) -> None:
        """Stand at given coefficients, with s z = mu and z1 + z2 = lasso."""
        self.theta = theta.copy()
        here, price = theta[self.some], self.lasso[self.some]
        t = mu / price + np.sqrt((mu / price) ** 2 + here**2)
        self.s = np.stack([t - here, t + here])
        self.z = mu / self.s
        self.r: Vector = np.zeros_like(self.s)  # ds / s
        self.u: Vector = np.zeros_like(self.s)  # dz / z

    def curvature(self) -> Vector:
        """What the penalties add to the diagonal of the Newton matrix."""
        if not self.n_values:
            return self.ridge
        self.D = self.z / self.s
        added = self.ridge.copy()
        added[self.some] += 4 * self.D[0] * self.D[1] / (self.D[0] + self.D[1])
        return added

    def aim(self, mu: float | None) -> Vector:
        """Right-hand side (p,) of the predictor, or of Mehrotra's corrector to `mu`."""
        if not self.n_values:
            return -self.ridge * self.theta
        if mu is None:
            t = np.zeros_like(self.s)
        else:
            t = mu / (self.s * self.z) + self.r * (1.0 + self.r)
        return self._aim(t)

    def aim_beside(self, mu: float, primal: float, dual: float) -> Vector:
        """Right-hand side (p,) of Gondzio's corrector of the present direction."""
        if not self.n_values:
            return -self.ridge * self.theta
        return self._aim(recentred(self.s * self.z, self.r, self.u, mu, primal, dual))

    def _aim(self, t: Vector) -> Vector:
        """Right-hand side (p,) of a step to s z t."""
        self.t = t
        rhs = -self.ridge * self.theta
        tau, D = self.z * self.t, self.D
        # stationarity in t: tau1 + tau2 - lasso = (D1 + D2) dt - (D1 - D2) dθ
        self.pushed = (tau[0] + tau[1] - self.lasso[self.some]) / (D[0] + D[1])
        rhs[self.some] += tau[1] - tau[0] + (D[0] - D[1]) * self.pushed
        return rhs

    def follow(self, d: Vector) -> Vector:
        """Complete the step for dθ; return how fast it meets s = 0 and z = 0."""
        self.d = d
        if not self.n_values:
            return np.zeros(2)
        here, D = d[self.some], self.D
        dt = self.pushed + (D[0] - D[1]) / (D[0] + D[1]) * here
        self.r = np.stack([dt - here, dt + here]) / self.s
        self.u = self.t - 1.0 - self.r
        return np.array([-self.r.min(), -self.u.min()])

    @property
    def direction(self) -> tuple[Vector, ...]:
        """What `move` follows."""
        return self.d, self.r, self.u

    @direction.setter
    def direction(self, direction: tuple[Vector, ...]) -> None:
        self.d, self.r, self.u = direction

    def changes(self) -> Vector:
        """Sums of s z r and s z r², from which μ after the predictor follows."""
        if not self.n_values:
            return np.zeros(2)
        changes = self.s * self.z * self.r
        return np.array([changes.sum(), (changes * self.r).sum()])

    def move(self, primal: float, dual: float) -> None:
        """Take the step."""
        self.theta = self.theta + primal * self.d
        if self.n_values:
            self.s = self.s * (1.0 + primal * self.r)
            self.z = self.z * (1.0 + dual * self.u)

    def value(self) -> float:
        """The penalties of θ."""
        return self.conjugate() + float(self.lasso @ np.abs(self.theta))

    def conjugate(self) -> float:
        """What the ridge takes from the dual objective."""
        return 0.5 * float(self.theta @ (self.ridge * self.theta))

    def pull(self) -> Vector:
        """Gradient of the penalties that the multipliers stand for."""
        pull = self.ridge * self.theta
        pull[self.some] += self.z[0] - self.z[1]
        return pull


# the method ---------------------------------------------------------------------------

MAX_ITERATIONS = 300
STEP_TO_BOUNDARY = 0.99
# Among millions of rows a few always stop the predictor early; Mehrotra's rule then
# centres nearly all of the step, which helps none of the others.
MOST_CENTRING = 0.2
# Sum of s z at the first point, as a multiple of the objective there. The smallest saves
# iterations; where its first step is short the next one is tried.
STARTS = (0.7, 5.0, 50.0)
SHORT = 0.1
# The solver's own estimate of the gap is to be this much below the tolerance.
CLOSER = 0.3
# Curvature added to each coefficient, in units of objective / p. A coefficient that no
# example holds back any more then moves slowly; the optimum stays where it is. In units
# of the tolerance, but no more for a loose one: it would hold back what matters as well.
DRAG = 1e-3
TIGHT = 1e-6
# How many times larger than they are coefficients may become, when a point is judged.
REACH = 100.0
# Correctors are worth their time from this many coefficients, where the Newton matrix is
# most of it: at most so many, until a step is long or has hardly become longer. Each
# looks so much further than the step before.
MANY, MOST_CORRECTORS = 1000, 2
LONG, LEAST_LONGER, FURTHER = 0.9, 0.03, 0.3
PATIENCE = 20  # iterations without a smaller gap
# Products in single precision do while the gap is above the first, and the ratio of the
# largest to the smallest pivot below the second.
ROUGH_GAP = 1e-5
ROUGH_CONDITION = 1e2
# Gap that is asked for at least.
ROUGH_TOL = 1e-7


class InteriorPoint:
    """Mehrotra's predictor-corrector method on all rows and the penalties."""

    def __init__(self, blocks: Blocks, options: Options):
        self.options = options
        self.blocks = blocks
        ours = self.blocks.tree.coefficients()
        self.penalties = Penalties(options.ridge[ours], options.lasso[ours])
        self.n_values = self.blocks.n_values + self.penalties.n_values
        self.n_correctors = MOST_CORRECTORS if self.blocks.n_coef >= MANY else 0
        # Whether products in single precision may do: not for who asks closely.
        self.roughly = options.tol >= ROUGH_TOL and not self.blocks.by_pairs

    def start(self, multiple: float) -> None:
        """Stand at θ = 0, every example centred; the sum of s z is `multiple` values."""
        theta = np.zeros(self.blocks.n_coef)
        value = self.blocks.tell(Rows.stand, theta)
        mu = multiple * value / self.n_values
        self._bounds: Bounds = self.blocks.tell(Rows.center, mu)
        self.penalties.start(theta, mu)

    def bounds(self) -> tuple[float, float, float, float]:
        """Objective, dual objective, how wrong the latter may be, and the sum of s z.

        That sum is the gap, once the dual point is feasible.
        """
        found, penalties = self._bounds, self.penalties
        upper, lower, product = found.sums.tolist()
        coupling = found.coupling - penalties.pull()
        doubt = REACH * np.abs(coupling) @ np.maximum(1.0, np.abs(penalties.theta))
        return (
            upper + penalties.value(),
            lower - penalties.conjugate(),
            float(doubt),
            product + float((penalties.s * penalties.z).sum()),
        )

    def step(self, product: float, drag: float) -> float:
        """Predict, correct, move; return how far we moved, 1 being all the way.

        `product` is the sum of s z; `drag` is added to the curvature of each coefficient.
        """
        rows, penalties = self.blocks, self.penalties
        newton = self._newton(drag)
        d = newton.predict(self._bounds.aim + penalties.aim(None))
        speeds: Speeds = rows.tell(Rows.follow, d)
        speeds = speeds + Speeds(penalties.follow(d), penalties.changes())
        primal, dual = self._lengths(speeds.most)
        # With dz = -z (1 + r), the sum of s z after this step:
        once, twice = speeds.sums.tolist()
        left = (
            (1.0 - dual) * product
            + (primal - dual - primal * dual) * once
            - primal * dual * twice
        )
        centring = min((left / product) ** 3, MOST_CENTRING)
        mu = centring * product / self.n_values
        aim = rows.tell(Rows.aim_at, mu)
        lengths = self._follow(newton.solve(aim + penalties.aim(mu)))
        lengths = self._lengthen(newton, mu, lengths)
        primal, dual = (1.0 if x == 1 else STEP_TO_BOUNDARY * x for x in lengths)
        self._bounds = rows.tell(Rows.move, primal, dual)
        penalties.move(primal, dual)
        return min(primal, dual)

    def _follow(self, d: Vector) -> tuple[float, float]:
        """Complete the corrector for dθ; how far it can be followed."""
        speeds: Speeds = self.blocks.tell(Rows.follow_corrected, d)
        return self._lengths(np.maximum(speeds.most, self.penalties.follow(d)))

    def _lengthen(
        self, newton: Newton, mu: float, lengths: tuple[float, float]
    ) -> tuple[float, float]:
        """Correct the direction as long as it can then be followed further; how far."""
        for _ in range(self.n_correctors):
            if min(lengths) > LONG:
                break
            last, before = lengths, self.penalties.direction
            self.blocks.note(Rows.hold_direction)
            lengths = self._correct(newton, mu, last)
            if min(lengths) < min(last):
                self.blocks.note(Rows.turn_back)
                self.penalties.direction = before
                return last
            if min(lengths) < min(last) + LEAST_LONGER:
                break
        return lengths

    def _correct(
        self, newton: Newton, mu: float, lengths: tuple[float, float]
    ) -> tuple[float, float]:
        """Gondzio's corrector: aim at products nearer to mu a little further on."""
        primal, dual = (min(1.0, length + FURTHER) for length in lengths)
        aim = self.blocks.tell(Rows.aim_beside, mu, primal, dual)
        aim = aim + self.penalties.aim_beside(mu, primal, dual)
        return self._follow(newton.solve(aim))

    def _newton(self, drag: float) -> Newton:
        """The Newton system of the present point."""
        added = self.penalties.curvature() + drag
        if self.roughly:
            S = self.blocks.newton(roughly=True)
            with suppress(SolverError):
                newton = Newton(S, added, self.blocks.apply)
                if newton.condition < ROUGH_CONDITION:
                    return newton
            self.roughly = False
        S = self.blocks.newton(roughly=False)
        return Newton(S, added, self.blocks.apply)

    def _lengths(self, speeds: Vector) -> tuple[float, float]:
        """How far a direction can be followed, primal and dual."""
        primal, dual = (1.0 / max(1.0, speed) for speed in speeds.tolist())
        if self.penalties.ridge.any():  # then the dual depends on θ: one step for both
            primal = dual = min(primal, dual)
        return primal, dual

    def hold(self) -> Vector:
        """Have the present point remembered; its θ."""
        self.blocks.note(Rows.hold_point)
        return self.penalties.theta


@dataclass(frozen=True, eq=False)
class Arrived:
    """Where the interior point ended."""

    # θ of the best point, of which the rows know the multipliers, and of the last if it is
    # another; whether it is the best one.
    points: list[tuple[Vector, bool]]
    iterations: int
    stopped: bool  # by the user


def run(problem: SurrogateProblem, options: Options) -> RawSolution:
    """Solve a problem in memory."""
    blocks = Blocks.of_problem(problem, options.n_jobs)
    end = minimise(blocks, options)
    found = [blocks.candidate(theta, problem, best) for theta, best in end.points]
    return RawSolution(found, end.iterations, end.stopped)


def minimise(blocks: Blocks, options: Options) -> Arrived:
    """Iterate until the bounds meet, no progress is left, or the user stops us."""
    path = InteriorPoint(blocks, options)
    if not blocks.n_rows:  # no decision matters to any example
        return Arrived([(np.zeros(blocks.n_coef), True)], 0, False)
    with blocks.rows.working(), np.errstate(all="ignore"):
        starts = list(STARTS)
        path.start(starts.pop(0))
        best, least = path.hold(), np.inf
        smallest_gap, last_progress, iteration = np.inf, 0, 0
        stop: object = False
        try:
            for iteration in range(MAX_ITERATIONS + 1):
                upper, lower, doubt, product = path.bounds()
                size = max(1.0, abs(upper))
                gap = max(upper - lower, product) / size
                if gap < 0.9 * smallest_gap:
                    smallest_gap, last_progress = gap, iteration
                if gap + doubt / size < least:
                    best, least = path.hold(), gap + doubt / size
                progress = Progress(iteration, upper, lower)
                LOG.debug("iteration %d: %.10g to %.10g", iteration, lower, upper)
                stop = options.callback is not None and options.callback(progress)
                stalled = iteration - last_progress >= PATIENCE or not np.isfinite(gap)
                done = least <= CLOSER * options.tol or gap <= 1e-4 * options.tol
                if stalled and starts and not (done or stop):
                    # It came too close to a boundary: once more, from farther inside.
                    path.start(starts.pop())
                    smallest_gap, last_progress = np.inf, iteration
                    continue
                if done or stop or stalled:
                    break
                path.roughly = path.roughly and gap > ROUGH_GAP
                drag = DRAG * min(options.tol, TIGHT) * size / blocks.n_coef
                length = path.step(product, drag)
                only_started = len(STARTS) - len(starts) == iteration + 1
                if only_started and length < SHORT and starts:
                    path.start(starts.pop(0))
        except KeyboardInterrupt:  # what we have is worth having, and will be certified
            stop = True
        except SolverError:
            if least == np.inf:
                raise
    last = path.penalties.theta
    points = [(best, True)] if best is last else [(best, True), (last, False)]
    return Arrived(points, iteration, bool(stop))
