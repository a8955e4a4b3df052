"""Algorithm 1 of the paper: grow sensor subsets greedily (greedy_subset_algorithm)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sensortree.constants import BLOCK_ERRORS, CHAIN_PATIENCE, EPS
from sensortree.types import Array

# Share of a mean risk that sums in another order may differ by.
ROUNDING = 1e-12

Subset = frozenset[int]
Losses = Callable[[Sequence[Subset]], Array]
Price = Callable[[Subset, Subset], float]
Value = Callable[[Array, Sequence[Subset]], Array]


@dataclass(frozen=True)
class Growth:
    """One step of a search: the sensors after it, which was added, the loss of all."""

    subset: Subset
    added: int
    loss: float


@dataclass(frozen=True, eq=False)
class Search:
    """How extensions of a subset are compared: a cheap screen, then exact losses."""

    n_sensors: int
    # Risk (error plus weighted cost) of the examples under each of some subsets,
    # (n_samples, n_subsets).
    exact: Losses
    screen: Losses  # the same, estimated cheaply
    # How many of the most promising extensions are compared exactly; None for all, in which
    # case nothing is screened.
    n_exact: int | None
    weight: Array
    # Whether the search must end with what it has.
    out_of_time: Callable[[], bool] = lambda: False
    # What is known after buying one more sensor, with what it needs; None if it may not be
    # bought.
    extend: Callable[[Subset, int], Subset | None] = lambda subset, j: subset | {j}

    def best_extension(
        self, subset: Subset, value: Value
    ) -> tuple[int, Subset, float] | None:
        """Sensor whose addition has the least value, the lowest of equals.

        `value` takes risks (n_samples, n_subsets) and the extended subsets, and gives one
        number for each. Gives the sensor, the extended subset and the value; None if
        there is nothing to add, or no time to find it.
        """
        options = self._options(subset)
        if not options:
            return None
        if self.n_exact is not None and len(options) > self.n_exact:
            extended = [more for _, more in options]
            screened = value(self.screen(extended), extended)
            promising = np.argsort(screened, kind="stable")[: self.n_exact]
            options = [options[k] for k in sorted(promising)]
        extended = [more for _, more in options]
        values = value(self.exact(extended), extended)
        best = int(np.argmin(values))
        return *options[best], float(values[best])

    def ranked(self, subset: Subset, value: Value) -> list[int]:
        """Sensors that could be added, the least value first, by the screen if any."""
        options = self._options(subset)
        if not options:
            return []
        risks = self.exact if self.n_exact is None else self.screen
        extended = [more for _, more in options]
        values = value(risks(extended), extended)
        return [options[k][0] for k in np.argsort(values, kind="stable")]

    def _options(self, subset: Subset) -> list[tuple[int, Subset]]:
        """What may be added, and what is then known; nothing where time is over."""
        others = [j for j in range(self.n_sensors) if j not in subset]
        options = [(j, more) for j in others if (more := self.extend(subset, j))]
        return options if options and not self.out_of_time() else []

    def loss(self, subset: Subset) -> float:
        """Weighted mean of the exact risk of a subset."""
        return float(self.mean(self.exact([subset]))[0])

    def mean(self, risk: Array) -> Array:
        """Weighted mean over examples of each column."""
        return np.asarray(self.weight @ risk / self.weight.sum())

    def error_of_mean(self, risk: Array) -> Array:
        """Standard error of the weighted mean of each column."""
        share = self.weight / self.weight.sum()
        spread = self.mean((risk - self.mean(risk)) ** 2)
        return np.asarray(np.sqrt(spread * (share @ share)))


def greedy_subsets(
    search: Search, n_subsets: int, start: Subset = frozenset()
) -> tuple[list[Subset], list[Growth]]:
    """Grow one subset after another while the oracle's loss falls (Algorithm 1).

    The loss (eq.subsets_min) is the mean over examples of the least risk among all
    subsets: that of decision functions that always pick the best one. `n_subsets` is K;
    the paper's `start` is empty.
    """
    subsets = [start] * n_subsets
    steps = []
    at_start = search.exact([start])[:, 0]
    grown = np.full(len(at_start), np.inf)  # least risk among subsets already grown
    for k in range(n_subsets):
        others = grown if k == n_subsets - 1 else np.minimum(grown, at_start)
        present = at_start

        def loss(risk: Array, _: Sequence[Subset], others: Array = others) -> Array:
            return search.mean(np.minimum(risk, others[:, None]))

        value = float(loss(present[:, None], [])[0])
        while (found := search.best_extension(subsets[k], loss)) is not None:
            sensor, extended, lower = found
            if not lower < value * (1 - ROUNDING):
                break
            subsets[k] = extended
            present, value = search.exact([subsets[k]])[:, 0], lower
            steps.append(Growth(subsets[k], sensor, value))
        grown = np.minimum(grown, present)
    return subsets, steps


def forward_steps(
    search: Search, price: Price, n_stages: int, start: Subset
) -> list[Growth]:
    """Add sensors one by one: each time the one that saves most error per unit of cost.

    It ends after `n_stages`, or when several in a row have saved none. The risks of the
    search are of error alone; `price` is the mean price of a larger subset when one is
    known.
    """
    steps: list[Growth] = []
    subset = start
    error = least = search.loss(subset)
    useful = 0
    while len(steps) < n_stages and len(steps) - useful < CHAIN_PATIENCE:
        rate = _rate(search, price, subset, error)
        found = search.best_extension(subset, rate)
        if found is None:
            break
        sensor, subset, _ = found
        error = search.loss(subset)
        steps.append(Growth(subset, sensor, error))
        if error < least:
            least, useful = error, len(steps)
    return steps


def forward_chain(
    search: Search, price: Price, n_stages: int, start: Subset
) -> list[Growth]:
    """Add sensors one by one, and where that saves nothing any more, in blocks.

    Steps at the end that have saved nothing are left out; of a block, the first sensor is
    named. See `forward_steps`.
    """
    steps = forward_steps(search, price, n_stages, start)
    losses = [search.loss(start), *(step.loss for step in steps)]
    steps = steps[: int(np.argmin(losses))]
    end = steps[-1].subset if steps else start
    return steps + _blocks(search, price, n_stages - len(steps), end)


def _rate(search: Search, price: Price, known: Subset, error: float) -> Value:
    """Error saved per unit of cost, as a negative number; what is lost is not priced."""

    def rate(risk: Array, extended: Sequence[Subset]) -> Array:
        prices = np.array([max(price(more, known), EPS) for more in extended])
        change = search.mean(risk) - error
        return np.where(change < 0, change / prices, change)

    return rate


def _blocks(
    search: Search, price: Price, n_stages: int, subset: Subset
) -> list[Growth]:
    """Add the best two sensors at once, then four, and so on, where that clearly saves.

    Sensors of which each saves less than can be measured may save error together.
    """
    steps: list[Growth] = []
    risk, size = search.exact([subset])[:, 0], 2
    ranked = search.ranked(
        subset, _rate(search, price, subset, float(search.mean(risk)))
    )
    while len(steps) < n_stages and len(ranked) >= size and not search.out_of_time():
        grown = subset
        for sensor in ranked[:size]:
            # with what they need, as far as they may be bought
            grown = search.extend(grown, sensor) or grown
        after = search.exact([grown])[:, 0]
        saved = search.mean(risk - after)
        if saved > BLOCK_ERRORS * search.error_of_mean(risk - after):
            error = float(search.mean(after))
            steps.append(Growth(grown, ranked[0], error))
            subset, risk = grown, after
            ranked = search.ranked(subset, _rate(search, price, subset, error))
        size *= 2
    return steps
