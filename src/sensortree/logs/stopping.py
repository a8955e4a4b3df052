"""λ: how likely the logger stops buying, given what it knew; learned from the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sensortree.logs.histories import Histories, could_go_on, scaled
from sensortree.types import Array, Mask, Rows

# A larger probability counts as this one, so that a row never counts more than a hundred
# times for one round that it went on.
MOST_CERTAIN = 0.99


def default_candidates() -> list[Any]:
    """A line and boosted trees: what one cannot learn, the other can."""
    line = make_pipeline(*scaled(), LogisticRegression(C=0.1, max_iter=500))
    boosted = HistGradientBoostingClassifier(
        max_iter=25,
        learning_rate=0.2,
        max_leaf_nodes=8,
        min_samples_leaf=40,
        l2_regularization=5.0,
        early_stopping=False,
        random_state=0,
    )
    return [line, boosted]


@dataclass(frozen=True, eq=False)
class Stopping:
    """How likely the logger stops after each round, by models that have not seen the row.

    Attributes
    ----------
    chance : ndarray of shape (n_rows, n_rounds + 1)
        λ after 0, 1, ... rounds; NaN after the end of a row's log, and 0 where nothing
        is left to buy.
    log_loss : float
        Mean log-loss of these, over rows and rounds.
    """

    chance: Array
    log_loss: float


def learn_stopping(
    histories: Histories,
    fold: Rows,
    candidates: Sequence[Any] | None = None,
    more: Array | None = None,
) -> Stopping:
    """Learn from all pairs of row and round whether the log ends there.

    Parameters
    ----------
    histories : Histories
    fold : ndarray of shape (n_rows,)
        Every row's chance is foretold by what was learned from rows of other folds.
    candidates : sequence of classifiers, default=None
        The one of the least log-loss is taken, the first of equals.
    more : ndarray of shape (n_rows, n_columns), default=None
        What else the logger saw from the start, such as the label.
    """
    rows, after = _pairs(histories)
    seen = _seen(histories, rows, after, more)
    stops = histories.purchases.n_rounds[rows] == after
    found = [
        _foretold(candidate, seen, stops, fold[rows])
        for candidate in candidates or default_candidates()
    ]
    told = _blend(found, stops)
    n_rounds = int(histories.purchases.n_rounds.max(initial=0))
    chance = np.full((len(fold), n_rounds + 1), np.nan)
    for round_ in range(n_rounds + 1):
        chance[histories.purchases.n_rounds >= round_, round_] = 0.0
    chance[rows, after] = np.minimum(told, MOST_CERTAIN)
    return Stopping(chance, _log_loss(told, stops))


def _pairs(histories: Histories) -> tuple[Rows, Rows]:
    """Rows and rounds after which more could have been bought, round by round."""
    rows, after = [], []
    n_rounds = histories.purchases.n_rounds
    for round_ in range(int(n_rounds.max(initial=0)) + 1):
        there = np.flatnonzero(n_rounds >= round_)
        there = there[could_go_on(histories.purchases, round_, there)]
        rows.append(there)
        after.append(np.full(len(there), round_, dtype=np.intp))
    return np.concatenate(rows), np.concatenate(after)


def _seen(histories: Histories, rows: Rows, after: Rows, more: Array | None) -> Array:
    """What the logger had seen, pair by pair, (n_pairs, n_columns)."""
    parts = []
    for round_ in np.unique(after):
        there = rows[after == round_]
        extra = [] if more is None else [more[there]]
        count = np.full((len(there), 1), float(round_))
        parts.append(np.hstack([histories.after(round_, there), count, *extra]))
    return np.concatenate(parts) if parts else np.empty((0, 1))


def _foretold(candidate: Any, seen: Array, stops: Mask, fold: Rows) -> Array:
    """Chance of stopping by a classifier that was fitted on the other folds."""
    chance = np.empty(len(stops))
    for one in np.unique(fold):
        out = fold == one
        if len(np.unique(stops[~out])) < 2:
            chance[out] = stops[~out].mean() if (~out).any() else stops.mean()
            continue
        held = ~np.isnan(seen[~out]).all(axis=0)  # what anything can be learned from
        model = clone(candidate).fit(seen[~out][:, held], stops[~out])
        chance[out] = model.predict_proba(seen[out][:, held])[:, 1]
    return chance


def _blend(chances: Sequence[Array], stops: Mask) -> Array:
    """One chance of several, by a logistic regression on their logits.

    It has a handful of coefficients, and so puts right what is too sure of itself.
    """
    if len(chances) == 1 or len(np.unique(stops)) < 2:
        return chances[0]
    sure = [np.clip(chance, 1e-6, 1 - 1e-6) for chance in chances]
    logits = np.stack([np.log(chance / (1 - chance)) for chance in sure], axis=1)
    blend = LogisticRegression(C=10.0).fit(logits, stops)
    return np.asarray(blend.predict_proba(logits)[:, 1])


def _log_loss(chance: Array, stops: Mask) -> float:
    if not len(stops):
        return 0.0
    told = np.clip(np.where(stops, chance, 1 - chance), 1e-12, 1.0)
    return float(-np.log(told).mean())
