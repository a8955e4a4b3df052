"""q: what a policy may be expected to lose and spend, given what is known of a row.

Backwards, round by round: after the round that makes a row's way known, q is what was
measured; before, q(H_s) is learned as the mean of q(H_{s+1}) over rows whose log went on.
Whether it went on depends on H_s alone, so these rows speak for those whose log ended,
and no weights are needed: q is right whether λ is or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.linalg import solve
from sklearn.base import BaseEstimator, RegressorMixin, clone

from sensortree.logs.following import Followed
from sensortree.logs.histories import FARTHEST
from sensortree.types import Array, Mask, Rows

ENOUGH = 20  # rows that went on, from which q after a round is learned
PENALTY = 10.0  # of the squares of the coefficients


class OutlookRegression(RegressorMixin, BaseEstimator):
    """Ridge regression of all measures at once on columns with gaps.

    What `histories.scaled` and scikit-learn's Ridge do one after the other, in a third of
    the time: a judgement fits it once for each round and fold.
    """

    def fit(self, X: Array, y: Array) -> Self:
        """Learn all measures, (n_rows, n_measures)."""
        there = ~np.isnan(X)
        total = np.where(there, X, 0.0).sum(axis=0)
        self.center_ = total / np.maximum(there.sum(axis=0), 1)
        about = np.where(there, X - self.center_, 0.0)
        spread = np.sqrt((about**2).mean(axis=0))
        self.scale_ = np.where(spread > 0, spread, 1.0)
        Z = self._brought_to_scale(X)
        middle, mean = Z.mean(axis=0), y.mean(axis=0)
        Z -= middle
        gram = Z.T @ Z
        gram.flat[:: len(gram) + 1] += PENALTY
        self.coef_ = solve(gram, Z.T @ (y - mean), assume_a="pos")
        self.intercept_ = mean - middle @ self.coef_
        return self

    def predict(self, X: Array) -> Array:
        """Foretell all measures, (n_rows, n_measures)."""
        return np.asarray(self._brought_to_scale(X) @ self.coef_ + self.intercept_)

    def _brought_to_scale(self, X: Array) -> Array:
        """Columns of one scale, the mean where there is a gap."""
        Z = (X - self.center_) / self.scale_
        Z[np.isnan(Z)] = 0.0
        return np.asarray(np.clip(Z, -FARTHEST, FARTHEST, out=Z))


def default_outlook() -> Any:
    """Regression of all measures at once on what is known."""
    return OutlookRegression()


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
    followed: Followed, seen: Sequence[Array], learning: Mask, regressor: Any
) -> list[Array]:
    """Outlook of all rows that stand somewhere, after each round, learned from some."""
    n_measures = followed.outcomes.shape[1]
    ahead = followed.outcomes.copy()  # q one round later
    found: list[Array] = []
    for after in reversed(range(len(followed.stands))):
        rows = followed.stands[after].rows
        chosen = learning[rows] & (followed.purchases.n_rounds[rows] > after)
        if chosen.sum() >= ENOUGH:
            model = clone(regressor).fit(seen[after][chosen], ahead[rows[chosen]])
        else:
            model = _from_complete(followed, seen, learning, regressor)
        told = np.zeros((len(rows), n_measures))
        if rows.size and model is not None:
            told[:] = np.reshape(model.predict(seen[after]), told.shape)
        ahead[rows] = told
        found.append(told)
    return found[::-1]


def _from_complete(
    followed: Followed, seen: Sequence[Array], learning: Mask, regressor: Any
) -> Any:
    """What rows whose way is known say of rows that stand where hardly any went on."""
    known = [learning[rows] & followed.complete[rows] for rows, _, _ in followed.stands]
    if not sum(k.sum() for k in known):
        return None
    X = np.concatenate([s[k] for s, k in zip(seen, known, strict=True)])
    rows = np.concatenate(
        [stand.rows[k] for stand, k in zip(followed.stands, known, strict=True)]
    )
    return clone(regressor).fit(X, followed.outcomes[rows])
