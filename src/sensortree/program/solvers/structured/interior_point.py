"""`InteriorPoint`: Mehrotra's method; `run`: when to start over, go on, and stop."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import SolverError
from sensortree.program.solvers.base import Options, Progress, RawSolution
from sensortree.program.solvers.structured.chunk import Blocks
from sensortree.program.solvers.structured.newton import Newton, Penalties
from sensortree.program.solvers.structured.rows import Bounds, Rows, Speeds
from sensortree.program.surrogate import SurrogateProblem

LOG = logging.getLogger("sensortree.solver")

Vector = NDArray[np.float64]

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
    """Where the interior point ended.

    Attributes
    ----------
    best, last : ndarray of shape (p,)
        θ of the best point, of which the rows know the multipliers, and of the last.
    iterations : int
    stopped : bool
        Whether the user stopped it.
    """

    best: Vector
    last: Vector
    iterations: int
    stopped: bool

    @property
    def points(self) -> list[tuple[Vector, bool]]:
        """θ of the points worth looking at, and whether it is the best one."""
        if self.best is self.last:
            return [(self.best, True)]
        return [(self.best, True), (self.last, False)]


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
        nothing = np.zeros(blocks.n_coef)
        blocks.note(Rows.hold_point)
        return Arrived(nothing, nothing, 0, False)
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
    return Arrived(best, path.penalties.theta, iteration, bool(stop))
