"""What is learned from a log to judge by: how likely buying stops, and what is to come.

λ is how likely the logger stops, given what it knew. q is what the policy may be expected
to lose and spend, given what is known of a row.

q is learned backwards, round by round. After the round that makes a row's way known, q is
what was measured; before, q(H_s) is learned as the mean of q(H_{s+1}) over rows whose log
went on. Whether it went on depends on H_s alone, so these rows speak for those whose log
ended, and no weights are needed: q is right whether λ is or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import solve
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sensortree.logs.following import Followed, RowsUnderWay
from sensortree.logs.purchases import NEVER, Purchases
from sensortree.policy.policy import Policy
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.table import Table
from sensortree.types import Array, Mask, Rows

FARTHEST = 3.0  # standard deviations from the mean at which a column is clipped
# A larger probability counts as this one, so that a row never counts more than a hundred
# times for one round that it went on.
MOST_CERTAIN = 0.99
ENOUGH = 20  # rows that went on, from which q after a round is learned
PENALTY = 10.0  # of the squares of the coefficients of q

# what was known ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Histories:
    """Readings of what was bought, and when they came."""

    purchases: Purchases
    readings: Array  # NaN where nothing was bought, (n_rows, width)
    sensor_of: Rows  # sensor that each reading is of, (width,)
    prices: Array  # those that differ between rows, known at once, (n_rows, n_varying)

    def after(self, n_rounds: int, rows: Rows) -> Array:
        """What is known of some rows after some rounds (H), (n_rows, n_columns).

        Readings, NaN where there are none yet; which sensors are known; prices.
        """
        known = self.purchases.known_after(n_rounds, rows)
        shown = np.where(known[:, self.sensor_of], self.readings[rows], np.nan)
        return np.hstack([shown, known, self.prices[rows]])


def read_histories(
    reader: SensorReader, table: Table, purchases: Purchases
) -> Histories:
    """Read what was bought, and nothing else."""
    n_rows, blocks = table.shape[0], []
    for sensor, width in enumerate(reader.widths):
        block = np.full((n_rows, width), np.nan)
        rows = np.flatnonzero(purchases.round[:, sensor] != NEVER)
        if rows.size:
            block[rows], _ = reader.read(table, sensor, rows)
        blocks.append(block)
    sensor_of = np.repeat(np.arange(len(blocks)), reader.widths)
    prices = reader.prices(table)
    own = np.empty((n_rows, 0))
    if prices is not None:
        own = prices[:, reader.sensors.varying]
    return Histories(purchases, np.hstack(blocks), sensor_of, own)


def scaled() -> list[Any]:
    """Steps that fill gaps, bring columns to one scale, and clip what is far away.

    A rare level, or a typing error, would otherwise decide alone.
    """
    return [
        SimpleImputer(keep_empty_features=True),
        StandardScaler(),
        FunctionTransformer(np.clip, kw_args={"a_min": -FARTHEST, "a_max": FARTHEST}),
    ]


def could_go_on(purchases: Purchases, n_rounds: int, rows: Rows) -> Mask:
    """Whether something was left that could be bought after some rounds, (n_rows,)."""
    sensors = purchases.sensors
    known = purchases.known_after(n_rounds, rows)
    open_ = ~known.all(axis=1)
    if any(terms.one_of is not None for terms in sensors.terms):
        for pattern in np.unique(known[open_], axis=0):
            had = frozenset(np.array(sensors.names)[pattern].tolist())
            left = [name for name in sensors.names if name not in had]
            if all(sensors.extension(had, name) is None for name in left):
                open_ &= ~(known == pattern).all(axis=1)
    return np.asarray(open_)


def views(
    histories: Histories,
    stands: Sequence[RowsUnderWay],
    policy: Policy,
    truth: Rows,
) -> list[Array]:
    """What q sees of the rows under way, after each round.

    What is known, the label, and how the policy stands: where each row is going, and
    how likely its right answer is to it.
    """
    classes = np.arange(len(policy.classes))
    ahead = np.unique(np.concatenate([stand.ahead for stand in stands]))
    seen = []
    for after, (rows, going, belief) in enumerate(stands):
        label = truth[rows]
        right = belief[np.arange(len(rows)), label]
        view = np.stack(
            [
                np.ones(len(rows)),
                right,
                right**2,
                belief.max(axis=1, initial=0.0),
                policy.loss.judge(label, belief),
            ],
            axis=1,
        )
        by_place = [view * (going == place)[:, None] for place in ahead]
        one_hot = (label[:, None] == classes).astype(np.float64)
        known = histories.after(after, rows)
        seen.append(np.hstack([*by_place, one_hot, known]))
    return seen


# λ --------------------------------------------------------------------------------------


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


def learn_stopping(
    histories: Histories,
    fold: Rows,
    candidates: Sequence[Any] | None = None,
    more: Array | None = None,
) -> Array:
    """Learn λ from all pairs of row and round: how likely the log ends there.

    Every row's chance is predicted by models of the other folds, and the candidates are
    blended. `more` is what else the logger saw from the start, such as the
    label, (n_rows, n_columns). λ is (n_rows, n_rounds + 1), after 0, 1, ... rounds; NaN
    after the end of a row's log, and 0 where nothing is left to buy.
    """
    rows, after, seen = _pairs(histories, more)
    stops = histories.purchases.n_rounds[rows] == after
    found = [
        _predicted(candidate, seen, stops, fold[rows])
        for candidate in candidates or default_candidates()
    ]
    likely = _blend(found, stops)
    n_rounds = histories.purchases.n_rounds
    there = np.arange(int(n_rounds.max(initial=0)) + 1) <= n_rounds[:, None]
    chance = np.where(there, 0.0, np.nan)
    chance[rows, after] = np.minimum(likely, MOST_CERTAIN)
    return chance


def _pairs(histories: Histories, more: Array | None) -> tuple[Rows, Rows, Array]:
    """Rows and rounds after which more could have been bought, round by round.

    And what the logger had seen by then, (n_pairs, n_columns).
    """
    rows, after, seen = [], [], []
    n_rounds = histories.purchases.n_rounds
    for round_ in range(int(n_rounds.max(initial=0)) + 1):
        there = np.flatnonzero(n_rounds >= round_)
        there = there[could_go_on(histories.purchases, round_, there)]
        count = np.full((len(there), 1), float(round_))
        extra = [] if more is None else [more[there]]
        rows.append(there)
        after.append(np.full(len(there), round_, dtype=np.intp))
        seen.append(np.hstack([histories.after(round_, there), count, *extra]))
    return np.concatenate(rows), np.concatenate(after), np.concatenate(seen)


def _predicted(candidate: Any, seen: Array, stops: Mask, fold: Rows) -> Array:
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


# q --------------------------------------------------------------------------------------


class OutlookRegression(RegressorMixin, BaseEstimator):
    """Ridge regression of all measures at once on columns with gaps.

    What `scaled` and scikit-learn's Ridge do one after the other, in a third of
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
        """Predict all measures, (n_rows, n_measures)."""
        return np.asarray(self._brought_to_scale(X) @ self.coef_ + self.intercept_)

    def _brought_to_scale(self, X: Array) -> Array:
        """Columns of one scale, the mean where there is a gap."""
        Z = (X - self.center_) / self.scale_
        Z[np.isnan(Z)] = 0.0
        return np.asarray(np.clip(Z, -FARTHEST, FARTHEST, out=Z))


def learn_outlook(
    followed: Followed, seen: Sequence[Array], fold: Rows, regressor: Any = None
) -> Array:
    """Predict every measure of every row after every round.

    `seen` is what is known of the rows of each of ``followed.stands``, (n_standing,
    n_columns). Every row is predicted by models of the other folds, of several outcomes
    each. That is q(H_s), (n_rounds + 1, n_rows, n_measures); from
    the round on that makes a row's way known, what was measured; NaN after the end of its
    log.
    """
    regressor = OutlookRegression() if regressor is None else regressor
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
    """Outlook of all rows under way, after each round, learned from some of them."""
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
        predicted = np.zeros((len(rows), n_measures))
        if rows.size and model is not None:
            predicted[:] = np.reshape(model.predict(seen[after]), predicted.shape)
        ahead[rows] = predicted
        found.append(predicted)
    return found[::-1]


def _from_complete(
    followed: Followed, seen: Sequence[Array], learning: Mask, regressor: Any
) -> Any:
    """Learned from rows whose way is known, for places where hardly any row went on."""
    rows = np.concatenate([stand.rows for stand in followed.stands])
    known = learning[rows] & followed.complete[rows]
    if not known.any():
        return None
    X = np.concatenate(seen)[known]
    return clone(regressor).fit(X, followed.outcomes[rows[known]])
