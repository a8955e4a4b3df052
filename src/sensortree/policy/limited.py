"""What the same tree would be worth if no example might cost more than a limit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from sensortree.exceptions import DataError
from sensortree.policy.batch import Walk
from sensortree.policy.policy import Policy
from sensortree.policy.tally import Tally, right_answers, row_weights
from sensortree.sensors.table import Table
from sensortree.threads import one_thread
from sensortree.types import Array

LIMITS = 12  # at most


@dataclass(frozen=True)
class LimitedUse:
    """Means per row where no row may cost more than a limit; None is the policy's own."""

    limit: float | None
    error: float
    loss: float
    cost: float


@one_thread()
def limited(
    policy: Policy, table: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[LimitedUse, ...]:
    """Answer rows within several limits, from nothing to what the policy spends.

    Decisions stay as they were learned; who cannot pay for what is decided is sent where
    training says that it is served best (`max_cost`). A limit at which some rows would
    have to buy what the table does not hold is left out.

    Parameters
    ----------
    policy : Policy
    table : Table
    y : array-like of shape (n_rows,)
        Right answers.
    sample_weight : array-like of shape (n_rows,), default=None
    """
    truth = right_answers(y, table.shape[0], policy)
    weight = row_weights(sample_weight, table.shape[0])
    whole = Tally(Walk(policy, table), truth, weight)
    uses = []
    for limit in some_limits(whole.cost[weight > 0]):
        walk = Walk(replace(policy, max_cost=limit), table)
        try:
            uses.append(_use(limit, Tally(walk, truth, weight)))
        except DataError:
            continue
    return (*uses, _use(None, whole))


def some_limits(costs: Array) -> list[float]:
    """Nothing, and some of the amounts that rows pay, all but the highest.

    Examples
    --------
    >>> some_limits(np.array([4.0, 1.0, 1.0, 9.0]))
    [0.0, 1.0, 4.0]
    """
    amounts = np.unique(np.r_[0.0, costs])[:-1]
    at = np.linspace(0, len(amounts) - 1, min(LIMITS, len(amounts)))
    return [float(amounts[i]) for i in np.unique(at.round().astype(int))]


def _use(limit: float | None, rows: Tally) -> LimitedUse:
    error, loss, cost, _ = rows.mean()
    return LimitedUse(limit, error, loss, cost)
