"""`Comparison`: what a fit compared on held-out rows, and what it took.

One matrix holds the risk of every candidate on the same rows. The candidate of the least
mean is taken; buying nothing is kept unless that lead is clear. What is said of the
candidate that was taken is corrected for its having been chosen: the mean of the best of
several is too good, by as much as choosing on resampled rows shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sensortree.policy.about import HeldOut
from sensortree.text import plain
from sensortree.types import Array

# Names of the candidates that decide nothing.
NOTHING, ONE_SET = "nothing", "one set"
# Paired standard errors that are a clear lead: of a purchase over buying nothing, of what
# is not tried any more over what is, of a tree over the one with a sensor more.
CLEARLY = 1.0
# Resampled matrices, and sums of rows that they are drawn from: enough for an optimism
# to within a few hundredths of a standard error.
SAMPLES, SUMS = 400, 1_000


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

    def best(self, among: Any = None) -> str:
        """The candidate of the least mean risk; of equals the one that spends least."""
        names = list(self.of if among is None else among)

        def rank(name: str) -> tuple[float, float]:
            found = self.of[name]
            return float(np.round(found.risk.mean(), 12)), float(found.cost.mean())

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
        """How much too good the least of the means is, by choosing on resampled rows.

        The candidate that is best on a resample is worth more there than on all rows.
        """
        risks = np.column_stack([found.risk for found in self.of.values()])
        if risks.shape[1] < 2:
            return 0.0
        n_sums = min(SUMS, len(risks))
        rng = np.random.default_rng(0)
        place = rng.permutation(len(risks)) % n_sums
        sums = np.stack([np.bincount(place, column, n_sums) for column in risks.T])
        drawn = rng.multinomial(n_sums, np.full(n_sums, 1 / n_sums), size=SAMPLES)
        means = drawn @ sums.T / len(risks)
        best = means.argmin(axis=1)
        on_all = risks.mean(axis=0)[best]
        return float(max(0.0, np.mean(on_all - means[np.arange(SAMPLES), best])))

    def choice(self) -> str:
        """The best candidate, or nothing if the lead over it is not clear."""
        best = self.best()
        if NOTHING not in self.of or best == NOTHING:
            return best
        lead, error = self.lead(best, NOTHING)
        return best if lead - self.optimism > CLEARLY * error else NOTHING


@dataclass(frozen=True)
class Comparison:
    """What a fit compared on rows that nothing was learned from, and what it took.

    Attributes
    ----------
    chosen : str
        The candidate whose model this is: a structure and a kind of leaf, "one set" for
        the same sensors for all, or "nothing".
    risk, cost : dict of str to float
        Mean risk, and mean price of what is bought, of each candidate that was compared.
    error : dict of str to float
        Paired standard error of the difference to the least risk.
    optimism : float
        How much too good the least risk is because it was chosen: `held_out` is
        corrected by it.
    n_rows : int
        Observations that were held out.
    removed : tuple of str
        Sensors that the chosen tree could do without.
    not_compared : dict of str to str
        Candidates that were left out, and why.
    held_out : HeldOut or None
        What the delivered model is worth on held-out rows.
    informative : bool
        Whether what the best tree buys was seen to tell more of the target than what is
        known for nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = SensorTreeClassifier(cost_weight=0.05).fit(X, X[:, 0] > 0)
    >>> model.comparison_.chosen
    'one set'
    """

    chosen: str
    risk: dict[str, float]
    cost: dict[str, float]
    error: dict[str, float]
    optimism: float = 0.0
    n_rows: int = 0
    removed: tuple[str, ...] = ()
    not_compared: dict[str, str] = field(default_factory=dict)
    held_out: HeldOut | None = None
    informative: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Give the comparison as plain values for JSON."""
        form: dict[str, Any] = plain(asdict(self))
        return form

    def __str__(self) -> str:
        ranked = sorted(self.risk, key=self.risk.__getitem__)
        lines = [f"took {self.chosen}, by risk on {self.n_rows} held-out rows:"]
        lines += [
            f"  {name} {self.risk[name]:.4f} ± {self.error[name]:.4f}, "
            f"costs {self.cost[name]:.4g}"
            for name in ranked
        ]
        if self.optimism:
            lines.append(
                f"the least of {len(ranked)} is too good by {self.optimism:.4f}; the "
                f"held-out score is corrected for that"
            )
        if self.removed:
            lines.append(f"not needed, and removed: {', '.join(self.removed)}")
        lines += [f"not compared: {n}, {why}" for n, why in self.not_compared.items()]
        return "\n".join(lines)


def comparison_of(
    outcomes: Outcomes,
    chosen: str,
    delivered: Outcome,
    removed: tuple[str, ...],
    not_compared: Mapping[str, str],
) -> Comparison:
    """Sum a matrix up.

    Parameters
    ----------
    outcomes : Outcomes
    chosen : str
    delivered : Outcome
        Of the model that is delivered: the chosen one, less what it can do without.
    removed : tuple of str
    not_compared : mapping of str to str
    """
    best = outcomes.best()
    # Nothing was not chosen for looking good.
    optimism = 0.0 if chosen == NOTHING else outcomes.optimism
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
