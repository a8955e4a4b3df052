"""`Outcomes`: the risks of all candidates on the same held-out rows, and which is taken.

One matrix holds the risk of every candidate on the same rows. The candidate of the least
mean is taken; buying nothing is kept unless that lead is clear. What is said of the
candidate that was taken is corrected for its having been chosen: the mean of the best of
several is too good, by as much as choosing on resampled rows shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sensortree.constants import OPTIMISM_SAMPLES, OPTIMISM_SUMS, SURELY
from sensortree.policy.about import NOTHING, Comparison, HeldOut
from sensortree.types import Array


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a candidate was worth on each held-out observation.

    Attributes
    ----------
    risk, loss, error, cost : ndarray of shape (n_observations,)
        Risk is loss plus weighted cost.
    """

    risk: Array
    loss: Array
    error: Array
    cost: Array

    def score(self, optimism: float = 0.0) -> HeldOut:
        """Means and their standard errors; what is lost is corrected for choosing."""

        def mean(values: Array, more: float = 0.0) -> tuple[float, float]:
            error = float(values.std() / np.sqrt(len(values)))
            return float(values.mean()) + more, error

        return HeldOut(
            *mean(self.risk, optimism),
            *mean(self.loss, optimism),
            *mean(self.error, self._errors(optimism)),
            *mean(self.cost),
            len(self.risk),
        )

    def _errors(self, optimism: float) -> float:
        """The optimism as a share of wrong answers: in proportion to what they lose."""
        lost = float(self.loss.mean())
        return optimism * float(self.error.mean()) / lost if lost > 0 else optimism


@dataclass(eq=False)
class Outcomes:
    """The matrix: outcomes of all candidates on the same observations, by name."""

    of: dict[str, Outcome] = field(default_factory=dict)

    def best(self, among: Iterable[str] | None = None) -> str:
        """The candidate of the least mean risk; of equals the one that spends least."""
        names = list(self.of if among is None else among)

        def rank(name: str) -> tuple[float, float]:
            found = self.of[name]
            return round(float(found.risk.mean()), 12), float(found.cost.mean())

        return str(min(names, key=rank))

    def lead(self, name: str, other: str) -> tuple[float, float]:
        """By how much one risk is below another, and the paired standard error of that."""
        ahead = self.of[other].risk - self.of[name].risk
        return float(ahead.mean()), float(ahead.std() / np.sqrt(len(ahead)))

    def behind(self, name: str, other: str) -> float:
        """Paired standard errors by which a candidate is behind another."""
        lead, error = self.lead(other, name)
        return lead / error if error else np.inf * np.sign(lead) if lead else 0.0

    @cached_property
    def optimism(self) -> float:
        """How much too good the least of the mean risks is."""
        return optimism_of([found.risk for found in self.of.values()])

    def choice(self) -> str:
        """The best candidate, or nothing if the lead over it is not clear."""
        best = self.best()
        if NOTHING not in self.of or best == NOTHING:
            return best
        lead, error = self.lead(best, NOTHING)
        return best if lead - self.optimism > SURELY * error else NOTHING


def optimism_of(columns: Sequence[Array]) -> float:
    """How much too good the least of the means is, by choosing on resampled rows.

    What is best on a resample is worth more there than on all rows.
    """
    risks = np.column_stack(columns)
    if risks.shape[1] < 2:
        return 0.0
    n_sums = min(OPTIMISM_SUMS, len(risks))
    rng = np.random.default_rng(0)
    place = rng.permutation(len(risks)) % n_sums
    sums = np.stack([np.bincount(place, column, n_sums) for column in risks.T])
    drawn = rng.multinomial(n_sums, np.full(n_sums, 1 / n_sums), size=OPTIMISM_SAMPLES)
    means = drawn @ sums.T / len(risks)
    # equal but for rounding is equal, whatever risks are counted in
    best = np.round(means / (np.abs(risks).mean() or 1.0), 9).argmin(axis=1)
    on_all = risks.mean(axis=0)[best]
    return float(max(0.0, np.mean(on_all - means[np.arange(OPTIMISM_SAMPLES), best])))


def comparison_of(
    outcomes: Outcomes,
    chosen: str,
    optimism: float,
    delivered: Outcome,
    removed: tuple[str, ...],
    not_compared: Mapping[str, str],
) -> Comparison:
    """Sum a matrix up.

    Parameters
    ----------
    outcomes : Outcomes
    chosen : str
    optimism : float
    delivered : Outcome
        Of the model that is delivered: the chosen one, less what it can do without.
    removed : tuple of str
    not_compared : mapping of str to str
    """
    best = outcomes.best()
    return Comparison(
        chosen,
        {name: float(found.risk.mean()) for name, found in outcomes.of.items()},
        {name: float(found.cost.mean()) for name, found in outcomes.of.items()},
        {name: outcomes.lead(best, name)[1] for name in outcomes.of},
        optimism,
        len(delivered.risk),
        removed,
        dict(not_compared),
        delivered.score(optimism),
    )
