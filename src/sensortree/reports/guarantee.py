"""`guarantee_error`: a promise about the rows that are answered, with a proof.

Let R(t) be the share of wrong answers among new examples that are answered if all answers
less probable than t are referred to a person. On rows that the model has not seen, the
wrong ones among the n(t) that are answered are binomial with R(t), given n(t); so

    p(t) = P(Binomial(n(t), e) ≤ wrong(t))

is a p-value of the hypothesis R(t) > e. Thresholds t_1 > t_2 > … and weights w_j, which add
up to δ, are fixed before the rows are seen. In this order, R(t_j) > e is rejected if p(t_j)
is at most α_j, where α_j = w_j + α_{j-1} if the one before was rejected, else w_j (the
fallback procedure of Wiens). Let j_1 < j_2 < … be the hypotheses that are true. As long as
none of them is rejected, α at j_i is at most the sum of the w after j_{i-1} up to j_i; so
the probability that any is rejected is at most the sum of all w: δ. This is "learn then
test" (Angelopoulos and others), with no assumption on how R depends on t.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from sensortree.exceptions import DataError, ParameterError
from sensortree.policy.batch import send
from sensortree.reports.interface import PolicyAnswers
from sensortree.reports.report_sums import right_answers
from sensortree.sensors.referral import Promise, Referral
from sensortree.types import Array, Mask

# Thresholds that are tried are 1 - doubt: from a part of the error, in even ratios, to 1,
# which answers everybody. A run of rejections may begin where the doubt is such a part of
# the error, with such a share of δ: where probabilities are right, answers up to twice the
# doubt of the error keep it, and where they are not, one must begin elsewhere.
N_DOUBTS, LEAST_PART = 60, 1 / 128
STARTS = {1 / 64: 1, 1 / 16: 1, 1 / 4: 2, 1 / 2: 3, 1: 3, 4: 1, np.inf: 1}

Model = TypeVar("Model", bound=PolicyAnswers)


def guarantee_error(
    model: Model,
    X: Any,
    y: ArrayLike,
    *,
    error: float,
    confidence: float = 0.9,
    prices: ArrayLike | None = None,
) -> Model:
    """Refer so many unsure rows that the error of the other answers keeps a promise.

    With probability `confidence`, over the rows that are given, at most a share `error` of
    the answers to new rows of the same kind is wrong; rows that are referred are not
    counted.

    Parameters
    ----------
    model : fitted classifier of this package, or a loaded one
    X : array-like or data frame of shape (n_samples, n_features)
        Rows set aside: not those of the fit, and drawn as new rows will be, independently
        of each other.
    y : array-like of shape (n_samples,)
        Right answers.
    error : float
        The most that is promised, as 0.05.
    confidence : float, default=0.9
    prices : array-like of shape (n_samples, n_sensors), default=None
        Prices of each row, if the model was fitted with such.

    Returns
    -------
    model
        A copy that hands over, beside those that the tree sends to a person, everybody
        whose answer is less probable than ``policy_.referral.least_confidence``. What it
        buys is the same. ``policy_.referral.promise`` says what was promised, and by which
        rows.

    Raises
    ------
    DataError
        If the rows prove the promise for no threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier, guarantee_error
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(900, 2))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=900) > 0
    >>> model = SensorTreeClassifier(classifier="linear").fit(X[:300], y[:300])
    >>> sure = guarantee_error(model, X[300:600], y[300:600], error=0.05)
    >>> new = X[600:]
    >>> answered = ~sure.referred(new)
    >>> bool((sure.predict(new) != y[600:])[answered].mean() <= 0.05)
    True
    """
    for name, value in (("error", error), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ParameterError(f"{name} must lie between 0 and 1, got {value!r}.")
    policy, table = model._policy, model._table(X, prices)
    if not len(policy.classes):
        raise ParameterError(
            "an error is promised of classes; this model predicts numbers, whose errors "
            "have a size."
        )
    truth = right_answers(y, table.shape[0], policy)
    walk = send(policy, table)
    likely = walk.posterior()
    answer = policy.loss.answer(likely)
    sure = np.take_along_axis(likely, answer[:, None], axis=1)[:, 0]
    # Who is handed over anyway is never answered.
    sure = np.where([policy.places[p].refers for p in walk.place], -1.0, sure)
    promise, threshold = prove(sure, answer != truth, error, confidence)
    promised = copy(model)
    before = policy.referral or Referral()
    referral = replace(before, least_confidence=threshold, promise=promise)
    promised.policy_ = replace(policy, referral=referral)
    return promised


def prove(
    sure: Array, wrong: Mask, error: float, confidence: float
) -> tuple[Promise, float]:
    """The promise that rows prove, and the threshold that refers fewest.

    `sure` is the probability of each answer, (n_rows,), below 0 where there is none.
    """
    doubts = doubts_for(error)
    thresholds = 1.0 - doubts
    answered = np.array([(sure >= t).sum() for t in thresholds])
    mistakes = np.array([wrong[sure >= t].sum() for t in thresholds])
    p_values = np.where(answered > 0, binom.cdf(mistakes, answered, error), 1.0)
    rejected = fallback(p_values, weights(doubts, error, 1.0 - confidence))
    if not rejected.any():
        best = int(np.argmin(p_values))
        level = weights(doubts, error, 1.0 - confidence).max()
        least = int(np.ceil(np.log(level) / np.log(1 - error)))
        raise DataError(
            f"an error of at most {error:g} with confidence {confidence:g} is proved by no "
            f"threshold on these {len(sure)} rows; nearest was {mistakes[best]} wrong of "
            f"{answered[best]} answered, with a probability of at least "
            f"{thresholds[best]:.4g}. It takes {least} sure answers without a mistake at "
            f"least: set more rows aside, or allow more error or less confidence."
        )
    kept = int(np.flatnonzero(rejected)[-1])
    promise = Promise(
        float(error),
        float(confidence),
        len(sure),
        int(answered[kept]),
        int(mistakes[kept]),
    )
    return promise, max(float(thresholds[kept]), 0.0)


def doubts_for(error: float) -> Array:
    """Improbabilities of answers that are tried as thresholds, the least first."""
    return np.geomspace(LEAST_PART * error, 1.0, N_DOUBTS)


def weights(doubts: Array, error: float, delta: float) -> Array:
    """Weights of the hypotheses, (n_doubts,): those where runs may begin share δ."""
    own = np.zeros(len(doubts))
    for part, share in STARTS.items():
        at = int(np.argmin(np.abs(doubts - min(part * error, 1.0))))
        own[at] += share * delta / sum(STARTS.values())
    return own


def fallback(p_values: Array, weight: Array) -> Mask:
    """Which hypotheses the fallback procedure rejects, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> fallback(np.array([0.9, 0.02, 0.06, 0.5]), np.array([0.02, 0.02, 0.04, 0.0]))
    array([False,  True,  True, False])
    """
    rejected = np.zeros(len(p_values), dtype=bool)
    level = 0.0
    for j, (p, own) in enumerate(zip(p_values, weight, strict=True)):
        level = own + level if j and rejected[j - 1] else own
        rejected[j] = level > 0 and p <= level
    return rejected
