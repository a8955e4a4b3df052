"""Algorithm 1 of the paper: grow sensor subsets greedily (greedy_subset_algorithm)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
# Sensors that a chain may add in a row without saving any error.
PATIENCE = 3
# Standard errors by which a block of sensors must save error.
CLEARLY = 2.0
Subset = frozenset[int]
Losses = Callable[[Sequence[Subset]], Array]
Value = Callable[[Array, Sequence[int]], Array]


@dataclass(frozen=True)
class Growth:
    """One step of a search: what was added where, and the loss after it.

    Attributes
    ----------
    subset : frozenset of int
        The sensors after the step.
    added : int
    loss : float
        Loss of all subsets after the step.
    """

    subset: Subset
    added: int
    loss: float


@dataclass(frozen=True, eq=False)
class Search:
    """How extensions of a subset are compared: a cheap screen, then exact losses.

    Attributes
    ----------
    n_sensors : int
    exact : callable
        Risk (error plus weighted cost) of the examples under each of some subsets,
        (n_samples, n_subsets).
    screen : callable
        The same, estimated cheaply.
    n_exact : int or None
        How many of the most promising extensions are compared exactly; None for all, in
        which case nothing is screened.
    weight : ndarray of shape (n_samples,)
    out_of_time : callable
        Whether the search must end with what it has.
    """

    n_sensors: int
    exact: Losses
    screen: Losses
    n_exact: int | None
    weight: Array
    out_of_time: Callable[[], bool] = lambda: False

    def best_extension(self, subset: Subset, value: Value) -> tuple[int, float] | None:
        """Sensor whose addition has the least value, the lowest of equals.

        `value` takes risks (n_samples, n_subsets) and the sensors added, and gives one
        number for each. None if there is nothing to add, or no time to find it.
        """
        others = [j for j in range(self.n_sensors) if j not in subset]
        if not others or self.out_of_time():
            return None
        if self.n_exact is not None and len(others) > self.n_exact:
            screened = value(self.screen([subset | {j} for j in others]), others)
            promising = np.argsort(screened, kind="stable")[: self.n_exact]
            others = [others[k] for k in sorted(promising)]
        values = value(self.exact([subset | {j} for j in others]), others)
        best = int(np.argmin(values))
        return others[best], float(values[best])

    def ranked(self, subset: Subset, value: Value) -> list[int]:
        """Sensors that could be added, the least value first, by the screen if any."""
        others = [j for j in range(self.n_sensors) if j not in subset]
        if not others or self.out_of_time():
            return []
        risks = self.exact if self.n_exact is None else self.screen
        values = value(risks([subset | {j} for j in others]), others)
        return [others[k] for k in np.argsort(values, kind="stable")]

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
    subsets: that of decision functions that always pick the best one.

    Parameters
    ----------
    search : Search
    n_subsets : int
        K in the paper.
    start : frozenset of int, default=frozenset()
        What every subset begins with; empty in the paper.

    Returns
    -------
    subsets : list of n_subsets frozensets
    steps : list of Growth
    """
    subsets = [start] * n_subsets
    steps = []
    at_start = search.exact([start])[:, 0]
    grown = np.full(len(at_start), np.inf)  # least risk among subsets already grown
    for k in range(n_subsets):
        others = grown if k == n_subsets - 1 else np.minimum(grown, at_start)
        present = at_start

        def loss(risk: Array, _: Sequence[int], others: Array = others) -> Array:
            return search.mean(np.minimum(risk, others[:, None]))

        value = float(loss(present[:, None], [])[0])
        while (found := search.best_extension(subsets[k], loss)) is not None:
            sensor, lower = found
            if not lower < value:
                break
            subsets[k] = subsets[k] | {sensor}
            present, value = search.exact([subsets[k]])[:, 0], lower
            steps.append(Growth(subsets[k], sensor, value))
        grown = np.minimum(grown, present)
    return subsets, steps


def forward_chain(
    search: Search, costs: ArrayLike, n_stages: int, start: Subset
) -> list[Growth]:
    """Add sensors one by one: each time the one that saves most error per unit of cost.

    Where several in a row have saved none, those are left out, and sensors are added in
    blocks that save error together.

    Parameters
    ----------
    search : Search
        Its risks must be of error alone, without cost.
    costs : array-like of shape (n_sensors,)
    n_stages : int
        Number of sensors to add at most.
    start : frozenset of int

    Returns
    -------
    steps : list of Growth
        The loss is the mean error of the stage. Of a block, the first sensor is named.
    """
    steps: list[Growth] = []
    subset = start
    error = least = float(search.mean(search.exact([subset]))[0])
    prices = np.maximum(np.asarray(costs, float), np.finfo(float).eps)
    useful = 0
    while len(steps) < n_stages and len(steps) - useful < PATIENCE:
        rate = _rate(search, prices, error)
        found = search.best_extension(subset, rate)
        if found is None:
            break
        subset = subset | {found[0]}
        error += found[1] * (prices[found[0]] if found[1] < 0 else 1.0)
        steps.append(Growth(subset, found[0], error))
        if error < least:
            least, useful = error, len(steps)
    steps = steps[:useful]
    end = steps[-1].subset if steps else start
    return steps + _blocks(search, prices, n_stages - useful, end)


def _rate(search: Search, prices: Array, error: float) -> Value:
    """Error saved per unit of cost, as a negative number; what is lost is not priced."""

    def rate(risk: Array, added: Sequence[int]) -> Array:
        change = search.mean(risk) - error
        return np.where(change < 0, change / prices[list(added)], change)

    return rate


def _blocks(
    search: Search, prices: Array, n_stages: int, subset: Subset
) -> list[Growth]:
    """Add the best two sensors at once, then four, and so on, where that clearly saves.

    Sensors of which each saves less than can be measured may save error together.
    """
    steps: list[Growth] = []
    risk, size = search.exact([subset])[:, 0], 2
    ranked = search.ranked(subset, _rate(search, prices, float(search.mean(risk))))
    while len(steps) < n_stages and len(ranked) >= size and not search.out_of_time():
        grown = subset | set(ranked[:size])
        after = search.exact([grown])[:, 0]
        saved = search.mean(risk - after)
        if saved > CLEARLY * search.error_of_mean(risk - after):
            error = float(search.mean(after))
            steps.append(Growth(grown, ranked[0], error))
            subset, risk = grown, after
            ranked = search.ranked(subset, _rate(search, prices, error))
        size *= 2
    return steps
