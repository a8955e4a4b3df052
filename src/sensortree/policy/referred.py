"""`ReferralUse`: who was handed over to a person, what that cost, and who was not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sensortree.policy.measures import Interval, wilson
from sensortree.sensors.referral import Promise
from sensortree.sensors.table import Table
from sensortree.types import Array, Mask, Rows

if TYPE_CHECKING:
    from sensortree.policy.policy import Policy


@dataclass(frozen=True)
class ReferralUse:
    """What handing over to a person came to on some rows.

    Attributes
    ----------
    share : float
        Share of the rows that are handed over.
    cost : float or None
        What that costs per row of all, in the unit of the loss; None if nobody said what
        a person costs.
    error : float
        Share of wrong answers among the rows that are not handed over; NaN if all are.
    error_interval : (float, float)
        Its 95 % interval, by Wilson.
    guess_error : float
        Share of wrong best guesses among the rows that are handed over; NaN if none is.
    promise : Promise or None
        What was promised of the others; see `guarantee_error`.
    """

    share: float
    cost: float | None
    error: float
    error_interval: Interval
    guess_error: float
    promise: Promise | None = None

    def __str__(self) -> str:
        said = f"handed over to a person: {self.share:.1%} of the rows"
        if self.cost is not None:
            said += f", at {self.cost:.4g} per row of all"
        if self.share < 1:
            low, high = self.error_interval
            said += f"; error of the others {self.error:.4g} ({low:.3g} to {high:.3g})"
        if self.share > 0:
            said += (
                f"; best guesses for those handed over err in {self.guess_error:.1%}"
            )
        return said if self.promise is None else f"{said}\n{self.promise}"


def losses_of(
    policy: Policy, table: Table, truth: Rows, referred: Mask, belief: Array
) -> Array:
    """What rows lose: by their answers, or what a person costs, (n_rows,).

    Where nobody said what a person costs, by the best guess.

    Parameters
    ----------
    policy : Policy
    table : Table
    truth : ndarray of shape (n_rows,)
        Positions of the classes.
    referred : ndarray of bool of shape (n_rows,)
    belief : ndarray of shape (n_rows, n_classes)
    """
    lost = policy.loss.judge(truth, belief)
    costs = person_costs(policy, table, truth)
    return lost if costs is None else np.where(referred, costs, lost)


def person_costs(policy: Policy, table: Table, truth: Rows) -> Array | None:
    """What handing each row over costs, (n_rows,); None if nobody said."""
    if policy.referral is None or not policy.referral.priced:
        return None
    costs = policy.referral.costs(table, len(policy.classes))
    return np.asarray(costs[np.arange(len(truth)), truth])


def referral_use(
    referred: Mask,
    costs: Array | None,
    wrong: Mask,
    weight: Array,
    promise: Promise | None = None,
) -> ReferralUse:
    """Add up what handing over came to.

    Parameters
    ----------
    referred : ndarray of bool of shape (n_rows,)
    costs : ndarray of shape (n_rows,) or None
        What handing each row over costs.
    wrong : ndarray of bool of shape (n_rows,)
        Whether its answer, or best guess, is wrong.
    weight : ndarray of shape (n_rows,)
    promise : Promise, default=None
    """

    def share_of(values: Mask, among: Mask) -> float:
        total = float(weight[among].sum())
        return float(weight[among] @ values[among]) / total if total else float("nan")

    everyone = np.ones(len(referred), dtype=bool)
    paid = None
    if costs is not None:
        paid = float(weight @ np.where(referred, costs, 0.0) / weight.sum())
    return ReferralUse(
        share_of(referred, everyone),
        paid,
        share_of(wrong, ~referred),
        wilson(wrong[~referred], weight[~referred]),
        share_of(wrong, referred),
        promise,
    )
