"""`Support`: how much of a log speaks about a policy, and whether it is enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sensortree.logs.following import Followed
from sensortree.logs.stopping import Stopping
from sensortree.reports.words import percent
from sensortree.types import Array

LEAST_SHARE = 0.01  # effective size as a share of the rows, below which nothing is said
LEAST_ROWS = 10  # and as a number of rows
CERTAIN = 0.95  # chance of stopping from which a row had hardly another
MOST_UNREACHED = 0.1  # share of rows without a chance, above which nothing is said
MOST_OFF = 2.0  # factor by which the mean weight may differ from 1


@dataclass(frozen=True)
class Support:
    """What a judgement from a log rests on.

    Attributes
    ----------
    n_rows : int
    n_complete : int
        Rows for which the log holds all that the policy asks.
    effective_size : float
        Number of equal rows that the weighted ones are worth, (Σw)² / Σw².
    effective_share : float
        The same as a share of all rows.
    mean_weight : float
        Of complete rows, others 0; about 1 if the chances of stopping are right and every
        kind of row has one.
    largest_weight : float
        Share of the row that weighs most in all weight.
    certain : float
        Share of the rounds before the policy's way is known after which the logger stops
        with a chance above 95 %.
    unreached : float
        Share of rows whose log ended, with such a chance, before the policy's way was
        known: the log holds hardly a row like them that went on.
    """

    n_rows: int
    n_complete: int
    effective_size: float
    effective_share: float
    mean_weight: float
    largest_weight: float
    certain: float
    unreached: float


def support_of(followed: Followed, stopping: Stopping, weight: Array) -> Support:
    """Measure what a judgement rests on.

    Parameters
    ----------
    followed : Followed
    stopping : Stopping
    weight : ndarray of shape (n_rounds + 1, n_rows)
    """
    last = np.where(followed.complete, weight[-1], 0.0)
    total, n_rows = float(last.sum()), len(last)
    size = total**2 / float(last @ last) if total else 0.0
    n_certain = n_asked = 0
    unreached = 0.0
    for after, (rows, _, _) in enumerate(followed.stands):
        certain = stopping.chance[rows, after] > CERTAIN
        ends = followed.purchases.n_rounds[rows] == after
        n_certain, n_asked = n_certain + int(certain.sum()), n_asked + len(rows)
        unreached += float(weight[after, rows[certain & ends]].sum())
    return Support(
        n_rows=n_rows,
        n_complete=int(followed.complete.sum()),
        effective_size=size,
        effective_share=size / n_rows,
        mean_weight=total / n_rows,
        largest_weight=float(last.max()) / total if total else 0.0,
        certain=n_certain / n_asked if n_asked else 0.0,
        unreached=unreached / n_rows,
    )


def reason_to_refuse(support: Support) -> str | None:
    """Why a log cannot tell, with the figures; None if it can."""
    rows, worth = f"{support.n_rows:,}", f"{support.effective_size:.1f}"
    share = support.effective_share
    if share < LEAST_SHARE or support.effective_size < LEAST_ROWS:
        return (
            f"the log holds all that the policy asks for {support.n_complete:,} of its "
            f"{rows} rows, worth {worth} equal ones ({100 * share:.2f} %); at least "
            f"{100 * LEAST_SHARE:.0f} % and {LEAST_ROWS} rows are needed. Judge a policy "
            f"that asks less, or log more rows for which the rest is bought too."
        )
    short = 1 - support.mean_weight
    spread = 1 / support.effective_size - 1 / support.n_rows
    noise = 3 * max(spread, 0.0) ** 0.5  # three standard errors of the mean weight
    if support.unreached > MOST_UNREACHED and short > support.unreached / 2 + noise:
        unreached, said = percent(support.unreached), f"{support.mean_weight:.2f}"
        return (
            f"for {unreached} of the rows the logger stopped, with a chance above "
            f"{100 * CERTAIN:.0f} %, before all that the policy asks was bought, and rows "
            f"like them are missing among the others (mean weight {said}, expected 1); at "
            f"most {100 * MOST_UNREACHED:.0f} % may be. Judge a policy that asks for no "
            f"more there, or let some such rows go on."
        )
    mean = support.mean_weight
    if not 1 / MOST_OFF <= mean <= MOST_OFF and abs(short) > noise:
        return (
            f"the rows for which the log holds all that the policy asks weigh {mean:.2f} "
            f"in the mean, where 1 is expected: from this log it cannot be learned how "
            f"likely buying goes on so far. Judge a policy that asks less, or log more "
            f"rows for which the rest is bought too."
        )
    return None
