"""`About`: what a model is about, beside what it answers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime

# Seconds since 1970 that stand for now, as reproducible builds have them.
EPOCH = "SOURCE_DATE_EPOCH"


@dataclass(frozen=True)
class HeldOut:
    """What decisions were worth on training rows that they were not learned from.

    Leaf classifiers and decisions, and of few rows the tree, were learned without the
    rows they are judged on. What is lost is corrected for the model's having been chosen
    as the best of several.

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
    """What a model is about: nothing of it changes an answer.

    Attributes
    ----------
    unit : str
        What prices are counted in; "" if nobody said.
    target : str
        Name of what is predicted; "" if it has none.
    data : str
        Name of the file that was learned from; "" if there was none.
    fitted : str
        When it was learned, in UTC, as 2026-01-31T12:00:00Z; "" if not known. The
        environment variable SOURCE_DATE_EPOCH says another time, for files that are to
        be the same to the last byte.
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
        said = []
        if self.target:
            said.append(f"target: {self.target}")
        source = f" of {self.data}" if self.data else ""
        if self.rows is not None:
            said.append(f"learned from: {self.rows:,} rows{source}")
        if self.fitted:
            said.append(f"on: {self.fitted.partition('T')[0]}")
        if self.unit:
            said.append(f"prices in: {self.unit}")
        if self.held_out is not None:
            said.append(self.score)
        return "\n".join(said)

    @property
    def score(self) -> str:
        """The held-out score in one line."""
        held_out = self.held_out
        if held_out is None:
            return "held-out rows: none"
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"held-out rows: error {held_out.error:.3f} ± {held_out.error_se:.3f}, "
            f"mean cost {held_out.cost:.4g} ± {held_out.cost_se:.2g}{unit}"
        )


def now() -> str:
    """The time in UTC, to the second; SOURCE_DATE_EPOCH if the environment has it."""
    given = os.environ.get(EPOCH)
    time = datetime.now(UTC) if not given else datetime.fromtimestamp(int(given), UTC)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
