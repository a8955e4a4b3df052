"""q: what a policy may be expected to lose and spend, given what is known of a row.

Backwards, round by round: after the round that makes a row's way known, q is what was
measured; before, q(H_s) is learned as the mean of q(H_{s+1}) over rows whose log went on.
Whether it went on depends on H_s alone, so these rows speak for those whose log ended,
and no weights are needed: q is right whether λ is or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sensortree.logs.following import Followed
from sensortree.types import Array, Rows

ENOUGH = 20  # rows that went on, of which anything is learned but their mean


def default_outlook() -> Any:
    """Regression of all measures at once on what is known."""
    return make_pipeline(
        SimpleImputer(keep_empty_features=True), StandardScaler(), Ridge(alpha=10.0)
    )


def learn_outlook(
    followed: Followed, seen: Sequence[Array], fold: Rows, regressor: Any = None
) -> Array:
    """Foretell every measure of every row after every round.

    Parameters
    ----------
    followed : Followed
    seen : sequence of ndarray of shape (n_standing, n_columns)
        What is known of the rows of each of ``followed.stands``.
    fold : ndarray of shape (n_rows,)
        Every row is foretold by what was learned from rows of other folds.
    regressor : regressor of several outcomes, default=None

    Returns
    -------
    outlook : ndarray of shape (n_rounds + 1, n_rows, n_measures)
        q(H_s); what was measured from the round on that makes a row's way known; NaN
        after the end of a row's log.
    """
    regressor = default_outlook() if regressor is None else regressor
    n_rows, n_measures = followed.outcomes.shape
    outlook = np.full((len(followed.stands), n_rows, n_measures), np.nan)
    for after in range(len(followed.stands)):
        known = followed.complete & (followed.n_needed <= after)
        outlook[after, known] = followed.outcomes[known]
    for one in np.unique(fold):
        out = fold == one
        own = _backwards(followed, seen, ~out, regressor)
        for after, (rows, _, _) in enumerate(followed.stands):
            outlook[after, rows[out[rows]]] = own[after][out[rows]]
    return outlook


def _backwards(
    followed: Followed, seen: Sequence[Array], learning: Any, regressor: Any
) -> list[Array]:
    """Outlook of all rows that stand somewhere, after each round, learned from some."""
    n_measures = followed.outcomes.shape[1]
    known = learning & followed.complete
    mean = (
        followed.outcomes[known].mean(axis=0) if known.any() else np.zeros(n_measures)
    )
    ahead = followed.outcomes.copy()  # q one round later
    found: list[Array] = []
    for after in reversed(range(len(followed.stands))):
        rows = followed.stands[after].rows
        goes_on = followed.purchases.n_rounds[rows] > after
        chosen = learning[rows] & goes_on
        told = np.tile(mean, (len(rows), 1))
        if chosen.sum() >= ENOUGH:
            model = clone(regressor).fit(seen[after][chosen], ahead[rows[chosen]])
            told = np.asarray(model.predict(seen[after])).reshape(len(rows), n_measures)
        elif chosen.any():
            told[:] = ahead[rows[chosen]].mean(axis=0)
        ahead[rows] = told
        found.append(told)
    return found[::-1]
