"""What policies would have done, by a log: judged, compared, and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sensortree.exceptions import DataError, ParameterError
from sensortree.logs.estimate import (
    Estimate,
    Support,
    as_share,
    contributions,
    likely_variance,
    mean_estimate,
    ratio_estimate,
    reason_to_refuse,
    support_of,
    weights,
)
from sensortree.logs.following import Followed, follow, without_dead_ends
from sensortree.logs.judgement import (
    Band,
    LogComparison,
    LogEvaluation,
    Measured,
    PlaceFromLog,
    SensorFromLog,
    policy_of,
)
from sensortree.logs.nuisances import (
    Histories,
    learn_outlook,
    learn_stopping,
    read_histories,
    views,
)
from sensortree.logs.purchases import Log, Order, Unbought, labels_of
from sensortree.policy.policy import Policy
from sensortree.reports.report_sums import MEASURES
from sensortree.reports.words import percent
from sensortree.sensors.reader import table_as_fitted
from sensortree.text import listed
from sensortree.threads import one_thread
from sensortree.types import Array, Rows


@one_thread()
def evaluate_from_log(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    acquired: Any,
    order: Order | None = None,
    prices: ArrayLike | None = None,
    answers: ArrayLike | None = None,
    label_influenced_buying: bool = False,
    unbought: Unbought = "ignore",
    hidden_odds: Sequence[float] = (1.5, 2.0),
    n_folds: int = 5,
    stopping: Any = None,
    outlook: Any = None,
    random_state: int = 0,
) -> LogEvaluation:
    """Say what a policy would have done on rows for which another rule bought sensors.

    Doubly robust: it is right if the chance that the logger stops is learned rightly from
    what it knew, or if what the policy will lose and spend is. It assumes that buying ended
    for no reason that is not in the log, that a reading is the same whenever it is bought,
    and that rows of every kind had a chance of all that the policy asks for them.

    Parameters
    ----------
    model : Policy, fitted classifier or loaded model
        It must not have been fitted on these rows.
    X : array-like or data frame of shape (n_rows, n_features)
        Columns of sensors that a row did not buy are not looked at.
    y : array-like of shape (n_rows,)
        Right answers, of all rows.
    acquired : array-like of shape (n_rows, n_sensors), or frame with a column per sensor
        Position of each purchase of a row: 1 for the first, equal numbers for what was
        bought together, 0 for never. Or truth, with `order`. What is free counts as known
        from the start. `acquired_from_events` makes it from a long table.
    order : sequence of str, default=None
        The order in which sensors were always bought, if `acquired` is a mask; those in
        brackets were bought together: ``["age", ("blood", "urine"), "x-ray"]``.
    prices : array-like of shape (n_rows, n_sensors), default=None
        Prices of each row, if the model was fitted with such.
    answers : array-like of shape (n_rows,), default=None
        What was answered in the log, to compare with; by default the policy's answers
        with what was bought. They change the logger's loss only if answers, and not
        probabilities, are what is lost by.
    label_influenced_buying : bool, default=False
        Whether those who bought knew the right answer, or a sign of it that is in no
        column, when they decided whether to go on.
    unbought : {"ignore", "refuse"}, default="ignore"
        What a value does that X holds of a sensor which was not bought: nothing, or an
        error that names it.
    hidden_odds : sequence of float, default=(1.5, 2.0)
        Factors on the odds of stopping (Γ) for which bands are given.
    n_folds : int, default=5
        A row is judged by what was learned from the rows of other folds.
    stopping : classifier, default=None
        Learns whether the logger stops; by default a logistic regression and boosted
        trees, blended.
    outlook : regressor of several outcomes, default=None
        Learns what the policy will lose and spend; by default a ridge regression.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    evaluation : LogEvaluation

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier, evaluate_from_log
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = X[:, 0] + 0.5 * X[:, 1] > 0
    >>> model = SensorTreeClassifier(cost_weight=0.05).fit(X[:400], y[:400])
    >>> X, y = X[400:], y[400:]
    >>> went_on = rng.random(600) < np.where(X[:, 0] > 0, 0.8, 0.4)
    >>> X[~went_on, 1] = np.nan
    >>> acquired = np.stack([np.ones(600), 2 * went_on], axis=1)
    >>> found = evaluate_from_log(model, X, y, acquired=acquired)
    >>> bool(found.cost.low < found.cost.value < found.cost.high)
    True
    """
    options = _Options(hidden_odds, n_folds, random_state)
    given = Log(acquired, order, label_influenced_buying, unbought)
    log = _read(model, X, y, given, prices, answers)
    evaluation, _ = _judge(log, stopping, outlook, options)
    return evaluation


@one_thread()
def compare_from_log(
    first: Any,
    second: Any,
    X: Any,
    y: ArrayLike,
    *,
    acquired: Any,
    order: Order | None = None,
    prices: ArrayLike | None = None,
    answers: ArrayLike | None = None,
    label_influenced_buying: bool = False,
    unbought: Unbought = "ignore",
    hidden_odds: Sequence[float] = (1.5, 2.0),
    n_folds: int = 5,
    stopping: Any = None,
    outlook: Any = None,
    random_state: int = 0,
) -> LogComparison:
    """Say by how much one policy would have lost and spent less than another.

    The difference is taken row by row, so that its interval is narrower than those of the
    two would suggest.

    Parameters
    ----------
    first, second : Policy, fitted classifier or loaded model
        Both of the same sensors.
    X, y, acquired, order, prices, answers, label_influenced_buying, unbought
        As in `evaluate_from_log`.
    hidden_odds, n_folds, stopping, outlook, random_state
        As in `evaluate_from_log`.

    Returns
    -------
    comparison : LogComparison
    """
    options = _Options(hidden_odds, n_folds, random_state)
    given = Log(acquired, order, label_influenced_buying, unbought)
    logs = [_read(model, X, y, given, prices, answers) for model in (first, second)]
    names = [log.policy.sensors.names for log in logs]
    if names[0] != names[1]:
        raise DataError(
            f"the first model has the sensors {listed(names[0])}, the second "
            f"{listed(names[1])}; only policies on the same sensors can be compared on "
            f"one log."
        )
    (one, values), (two, others) = (
        _judge(log, stopping, outlook, options) for log in logs
    )
    refused = one.refused or two.refused
    return LogComparison(one, two, _measured(values - others), refused)


# the steps --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Options:
    """How to judge; checked when it is made."""

    hidden_odds: Sequence[float]
    n_folds: int
    random_state: int

    def __post_init__(self) -> None:
        if self.n_folds < 2:
            raise ParameterError(
                f"n_folds must be at least 2, got {self.n_folds}; a row is judged by what "
                f"was learned from others."
            )
        for odds in self.hidden_odds:
            if not 1 <= odds < np.inf:
                raise ParameterError(
                    f"hidden_odds must be finite numbers of at least 1, got {odds}; 2 is "
                    f"for odds of stopping that are twice as large, or half."
                )

    def folds(self, n_rows: int) -> Rows:
        """Fold of every row, (n_rows,)."""
        rng = np.random.default_rng(self.random_state)
        return np.asarray(rng.permutation(n_rows) % self.n_folds, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class _Log:
    """A policy, and how far it can be followed through a log."""

    policy: Policy
    truth: Rows
    followed: Followed
    histories: Histories
    logger: Array  # error, loss and cost of each row, (n_rows, 3)
    before: Array | None  # what the logger knew besides: the right answer, or nothing


def _read(
    model: Any,
    X: Any,
    y: ArrayLike,
    given: Log,
    prices: ArrayLike | None,
    answers: ArrayLike | None,
) -> _Log:
    """Check a log, and follow a policy through it."""
    policy = policy_of(model)
    table = table_as_fitted(X, prices, policy.sensors)
    n_rows, classes = table.shape[0], policy.labels
    if not n_rows:
        raise DataError("X has no rows; a log needs at least one.")
    truth = labels_of(y, classes, n_rows)
    own = policy.reader.prices(table)
    purchases = given.purchases(table, policy.sensors, own, policy.reader)
    followed = follow(policy, table, purchases, truth)
    logger = followed.so_far.copy()
    if answers is not None:
        answered = labels_of(answers, classes, n_rows, "answers")
        logger[:, 0] = answered != truth
        if policy.loss.score is None:  # an answer says nothing of probabilities
            logger[:, 1] = policy.loss.of(truth, answered)
    followed = without_dead_ends(followed)
    histories = read_histories(policy.reader, table, followed.purchases)
    before = None
    if given.label_influenced_buying:
        before = (truth[:, None] == np.arange(len(policy.classes))).astype(np.float64)
    return _Log(policy, truth, followed, histories, logger, before)


def _judge(
    log: _Log, stopping: Any, outlook: Any, options: _Options
) -> tuple[LogEvaluation, Array]:
    """Judge a policy on a log; also what each row contributes, (n_rows, 4)."""
    followed, policy = log.followed, log.policy
    fold = options.folds(len(log.truth))
    candidates = None if stopping is None else [stopping]
    chances = learn_stopping(log.histories, fold, candidates, log.before)
    seen = views(log.histories, followed.stands, policy, log.truth)
    predicted = learn_outlook(followed, seen, fold, outlook)
    weight = weights(followed, chances)
    support = support_of(followed, chances, weight)
    refused = reason_to_refuse(support)
    every = contributions(weight, predicted)
    if refused:
        every[:] = np.nan  # no estimate is given
    likely = likely_variance(followed, chances, weight, predicted)
    outlooks = _with_total(predicted[..., :3], policy.cost_weight)
    variances = likely_variance(followed, chances, weight, outlooks)
    values = _with_total(every[:, :3], policy.cost_weight)
    logger = _with_total(log.logger, policy.cost_weight)
    bands = []
    for odds in () if refused else options.hidden_odds:
        tilted = [
            _with_total(
                contributions(weights(followed, chances, by), predicted)[:, :3],
                policy.cost_weight,
            )
            for by in (odds, 1 / odds)
        ]
        bands.append(_band(odds, np.stack([values, *tilted]), variances))
    measured = _measured(values, variances)
    beside = likely_variance(followed, chances, weight, outlooks - logger)
    if not refused:
        wrong = followed.outcomes[followed.complete, 0]
        n_rare = int(min(wrong.sum(), (1 - wrong).sum()))
        error = as_share(measured.error, n_rare, support.effective_size)
        loss = error if policy.loss.plain else measured.loss
        measured = replace(measured, error=error, loss=loss)
    evaluation = LogEvaluation(
        **vars(measured),
        refused=refused,
        support=support,
        logger=_measured(logger),
        difference=_measured(values - logger, beside),
        sensors=_sensors(policy, followed, every, likely),
        leaves=_leaves(policy, followed, every, likely),
        bands=tuple(bands),
        notes=_notes(support, refused),
        has_loss=not policy.loss.plain,
        cost_weight=policy.cost_weight,
        unit=policy.about.unit,
    )
    return evaluation, values


def _with_total(values: Array, cost_weight: float) -> Array:
    """Error, loss, cost and total of each row, (..., 4)."""
    total = values[..., 1] + cost_weight * values[..., 2]
    return np.concatenate([values, total[..., None]], axis=-1)


def _measured(values: Array, variances: Array | None = None) -> Measured:
    """Means of all measures, of at least some variances."""
    least = np.zeros(4) if variances is None else variances
    return Measured(*map(mean_estimate, values.T, least))


def _band(odds: float, values: Array, variances: Array) -> Band:
    """Least and largest means, if every row may have the worst of some contributions.

    These are (n_ways, n_rows, 4); `variances` is the least that theirs are taken to be.
    """
    least = _measured(values.min(axis=0), variances)
    most = _measured(values.max(axis=0), variances)
    ends: Mapping[str, tuple[float, float]] = {
        name: (getattr(least, name).low, getattr(most, name).high) for name in MEASURES
    }
    low, high = ends["error"]
    share = (min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0))
    return Band(odds, **{**ends, "error": share})


def _sensors(
    policy: Policy, followed: Followed, every: Array, likely: Array
) -> tuple[SensorFromLog, ...]:
    """Use of every sensor, in the declared order."""

    def mean(what: str, name: str) -> Estimate:
        column = followed.column(what, name)
        return mean_estimate(every[:, column], likely[column])

    return tuple(
        SensorFromLog(name, mean("acquires", name), mean("spends", name))
        for name in policy.sensors.names
    )


def _leaves(
    policy: Policy, followed: Followed, every: Array, likely: Array
) -> tuple[PlaceFromLog, ...]:
    """Use of every place where rows stop."""
    found = []
    for column, (what, place) in enumerate(followed.names):
        if what != "stops":
            continue
        assert isinstance(place, int)
        stops, errs = every[:, column], every[:, followed.column("errs", place)]
        found.append(
            PlaceFromLog(
                policy.place_name(place),
                place,
                policy.places[place].names,
                int(np.nansum(followed.outcomes[:, column])),
                mean_estimate(stops, likely[column]),
                ratio_estimate(errs, stops),
            )
        )
    return tuple(found)


def _notes(support: Support, refused: str | None) -> tuple[str, ...]:
    """What should be known beside the figures."""
    notes = []
    if not refused and support.unreached > 0.01:
        notes.append(
            f"for {percent(support.unreached)} of the rows the logger hardly ever went on "
            f"as far as the policy does; figures for them are inferred from rows that are "
            f"less like them."
        )
    if support.n_complete == support.n_rows:
        notes.append("the log holds all that the policy asks: these are plain means.")
    return tuple(notes)
