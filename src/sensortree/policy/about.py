"""What a model keeps beside its answers: its subject, scores, baselines and outages.

Nothing here changes an answer.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from sensortree.sensors.market import ROUNDING
from sensortree.text import PlainForm, rounded

# Seconds since 1970 that stand for now, as reproducible builds have them.
EPOCH = "SOURCE_DATE_EPOCH"


@dataclass(frozen=True)
class HeldOut:
    """What a model was worth on training rows held out from learning.

    Leaf classifiers and decisions (and the tree, if there are few rows) were learned
    without the rows they are judged on. Losses are corrected for the model having been
    chosen as the best of several.

    Attributes
    ----------
    risk, loss, error, cost : float
        Means over rows: of the loss plus weighted cost; of the loss; share of wrong
        answers; price of what was bought. Without a loss, loss and error are the same.
    risk_se, loss_se, error_se, cost_se : float
        Standard errors of these means.
    rows : int
        How many were held out, each once.
    """

    risk: float
    risk_se: float
    loss: float
    loss_se: float
    error: float
    error_se: float
    cost: float
    cost_se: float
    rows: int


@dataclass(frozen=True)
class About:
    """The subject of a model, and how good it was on held-out rows.

    Attributes
    ----------
    unit : str
        What prices are counted in; "" if not given.
    target : str
        Name of what is predicted; "" if it has none.
    data : str
        Name of the file that was learned from; "" if there was none.
    fitted : str
        When it was learned, in UTC, as 2026-01-31T12:00:00Z; "" if not known. Set the
        environment variable SOURCE_DATE_EPOCH to another time to get files that are the
        same to the last byte.
    rows : int or None
        How many rows it was learned from.
    held_out : HeldOut or None
        What it was worth on rows that its decisions were not learned from; None where
        nothing was held out.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = SensorTreeClassifier(unit="EUR").fit(X, X[:, 0] > 0)
    >>> model.about_.unit, model.about_.rows
    ('EUR', 60)
    >>> model.about_.money(180)
    '180 EUR'
    """

    unit: str = ""
    target: str = ""
    data: str = ""
    fitted: str = ""
    rows: int | None = None
    held_out: HeldOut | None = None

    def money(self, amount: float) -> str:
        """Give an amount with its unit."""
        return f"{amount:g} {self.unit}" if self.unit else f"{amount:g}"

    def __str__(self) -> str:
        lines = []
        if self.target:
            lines.append(f"target: {self.target}")
        source = f" of {self.data}" if self.data else ""
        if self.rows is not None:
            lines.append(f"learned from: {self.rows:,} rows{source}")
        if self.fitted:
            lines.append(f"on: {self.fitted.partition('T')[0]}")
        if self.unit:
            lines.append(f"prices in: {self.unit}")
        if self.held_out is not None:
            lines.append(self.score)
        return "\n".join(lines)

    @property
    def score(self) -> str:
        """The held-out score in one line."""
        held_out = self.held_out
        if held_out is None:
            return "held-out rows: none"
        unit = f" {self.unit}" if self.unit else ""
        lost = ""
        if held_out.loss != held_out.error:
            lost = f"loss {rounded(held_out.loss)} ± {rounded(held_out.loss_se, 2)}, "
        return (
            f"held-out rows: error {_thousandths(held_out.error)} ± "
            f"{_thousandths(held_out.error_se)}, {lost}mean cost {rounded(held_out.cost)} "
            f"± {rounded(held_out.cost_se, 2)}{unit}"
        )


def _thousandths(number: float) -> str:
    """Errors as they are: shares to three decimals, distances to four digits."""
    return f"{number:.3f}" if number < 1 else rounded(number)


def now() -> str:
    """The time in UTC, to the second; SOURCE_DATE_EPOCH if the environment has it."""
    given = os.environ.get(EPOCH)
    time = datetime.now(UTC) if not given else datetime.fromtimestamp(int(given), UTC)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


EVERYTHING, NOTHING, FIXED = "everything", "nothing", "best fixed set"


@dataclass(frozen=True, eq=False)
class Baseline:
    """A classifier that knows the same sensors of every example.

    It was fitted on the rows that the policy was fitted on.
    """

    name: str
    sensors: frozenset[str]
    classifier: Any  # its classes are positions, as those of a policy's classifiers


# Names of the candidates that decide nothing.
NOTHING, ONE_SET = "nothing", "one set"


@dataclass(frozen=True)
class Comparison(PlainForm):
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
        Sensors without which the chosen tree is clearly better.
    not_compared : dict of str to str
        Candidates that were left out, and why.
    held_out : HeldOut or None
        What the delivered model is worth on held-out rows.
    informative : bool
        Whether what the best tree buys was seen to tell more of the target than what is
        known for free.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = SensorTreeClassifier(cost_weight=0.05).fit(X, X[:, 0] > 0)
    >>> model.comparison_.chosen in model.comparison_.risk
    True
    >>> model.comparison_.held_out == model.about_.held_out
    True
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

    @property
    def leaf(self) -> str:
        """Kind of the leaves of the model; "" if the user named it.

        One set for all, and nothing, are compared with the leaves of the best tree.
        """
        decided = [name for name in self.risk if name not in (NOTHING, ONE_SET)]
        if self.chosen in decided:
            decided = [self.chosen]
        best = min(decided, key=lambda n: (round(self.risk[n], 12), self.cost[n]))
        return best.partition(", ")[2]

    def __str__(self) -> str:
        ranked = sorted(self.risk, key=self.risk.__getitem__)
        lines = [
            f"chose {self.chosen}; risk on {self.n_rows} held-out rows, ± one standard "
            f"error of its difference to the lowest, row by row:"
        ]
        lines += [
            f"  {name} {_risk(self.risk[name])} ± {_risk(self.error[name])}, "
            f"costs {rounded(self.cost[name])}"
            for name in ranked
        ]
        if self.optimism:
            lines.append(
                f"the lowest of {len(ranked)} is optimistic by {_risk(self.optimism)}, "
                f"because it was chosen; the held-out score is corrected for that"
            )
        if self.removed:
            names = ", ".join(self.removed)
            lines.append(f"removed, because the tree does better without: {names}")
        lines += [f"not compared: {n} ({why})" for n, why in self.not_compared.items()]
        return "\n".join(lines)


def _risk(number: float) -> str:
    """A risk to four decimals, large ones to six digits."""
    return f"{number:.4f}" if number < 1e4 else rounded(number, 6)


@dataclass(frozen=True)
class Outage:
    """What becomes of examples if one sensor is unavailable."""

    share: float  # of the training examples that its absence blocks
    usual: (
        float  # their mean risk from where they turn, if the sensor is there after all
    )
    turning: float  # the same if they take the best leaf that is left, or stop
    # The same on a detour, on rows that it was not learned from; None if none was tried.
    detour: float | None = None

    @property
    def taken(self) -> bool:
        """Whether the detour is taken."""
        return self.detour is not None and self.detour < self.turning - ROUNDING

    @property
    def lost(self) -> float:
        """Mean additional risk over all examples, blocked or not."""
        without = (
            self.detour if self.detour is not None and self.taken else self.turning
        )
        return self.share * (without - self.usual)


@dataclass(frozen=True)
class OutageReport:
    """What the outage of each sensor costs, and which detours are taken."""

    outages: dict[str, Outage]  # of all sensors that the tree buys, in declared order

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain numbers, strings and dicts."""
        return {
            sensor: {**asdict(outage), "taken": outage.taken, "lost": outage.lost}
            for sensor, outage in self.outages.items()
        }

    def __str__(self) -> str:
        if not self.outages:
            return "nothing is bought, so no outage matters"
        width = max(len("without"), *map(len, self.outages))
        lines = [f"{'without':{width}}  blocked   usual  turning  detour"]
        for sensor, outage in self.outages.items():
            tried = "-" if outage.detour is None else f"{outage.detour:.4f}"
            lines.append(
                f"{sensor:{width}}  {outage.share:7.1%}  {outage.usual:6.4f}  "
                f"{outage.turning:7.4f}  {tried:>6}{' taken' if outage.taken else ''}"
            )
        return "\n".join(lines)
