"""What leaves of numbers are fitted with: ridge, boosted, or a regressor of the user's.

An engine fits all folds of a subset of sensors as one job: `judge` says of each row what
regressions without the row's fold answer, `fit` gives the one to all rows.
"""

from __future__ import annotations

from abc import ABC, ABCMeta, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from sensortree.constants import BOOSTED_UNJUDGED, SPREAD_PARTS
from sensortree.exceptions import ParameterError
from sensortree.leaves.boosting import (
    SIZES,
    BoostedFold,
    TakesNaN,
    choose_rounds,
    groups_of,
    trees_of,
)
from sensortree.leaves.compiling import compile_boosted
from sensortree.leaves.regression import FoldedNumbers, RidgeEngine, fit_answering
from sensortree.leaves.sklearn_private import OnceBinnedNumbers
from sensortree.policy.classifiers import (
    Answering,
    BoostedScorer,
    Foreign,
    NumberScorer,
    Regression,
)
from sensortree.sensors.loss import Pinball, squared
from sensortree.types import Array, Mask, Rows


@dataclass(frozen=True, eq=False)
class Judged:
    """What was found where rows were held out, for the fit to all of them."""

    n_rounds: int  # of boosted trees
    number: Array  # what regressions say of rows that they have not seen, (n_samples,)


class HeldOutEngine(FoldedNumbers, ABC):
    """Regressions whose spread is learned from rows that they have not seen."""

    # Whether the regression itself answers with the quantile.
    answers_quantile: ClassVar[bool]

    @abstractmethod
    def numbers_held_out(self, groups: list[Mask], X: Array) -> Judged:
        """What regressions without each group of rows say of its rows."""

    @abstractmethod
    def regression(self, X: Array, n_rounds: int) -> Regression:
        """The regression fitted to all rows."""

    def judge(self, X: Array) -> tuple[Array, Judged]:
        """Answer and spread of each row, (n_samples, 2), by fits without its fold."""
        groups = self._groups()
        if not self._varies(X):
            scorer = self._constant(X)
            number = scorer.regression.scores(X)[:, 0]
            return scorer.says(X), Judged(BOOSTED_UNJUDGED, number)
        judged = self.numbers_held_out(groups, X)
        predicted = np.empty((len(X), 2))
        for held_out in groups:
            answering = self._answering(X, judged.number, ~held_out)
            predicted[held_out] = answering.of(X[held_out], judged.number[held_out])
        never = self.fold < 0
        if never.any():
            predicted[never] = self.fit(X, judged).says(X[never])
        return predicted, judged

    def fit(self, X: Array, start: Judged | None = None) -> NumberScorer:
        """The regression fitted to all rows, with the spread that judging has found."""
        if not self._varies(X):
            return self._constant(X)
        if start is None:
            start = self.numbers_held_out(self._groups(), X)
        regression = self.regression(X, start.n_rounds)
        everyone = np.ones(len(X), dtype=bool)
        return NumberScorer(regression, self._answering(X, start.number, everyone))

    def _varies(self, X: Array) -> bool:
        """Whether there is anything to learn, and from."""
        y = self.y[self.taught]
        return bool(X.shape[1] and (y != y[0]).any() and len(y) > SPREAD_PARTS)

    def _constant(self, X: Array) -> NumberScorer:
        """One answer for all."""
        nothing = RidgeEngine(self.y, self.weight, quantile=self.quantile, degree=1)
        return nothing.fit(X[:, :0])

    def _answering(self, X: Array, number: Array, rows: Mask) -> Answering:
        """What makes answers of numbers, by some rows that regressions have not seen."""
        rows = rows & self.taught
        rows = rows if rows.any() else self.taught
        left, weight = (self.y - number)[rows], self.weight[rows]
        quantile = self.quantile
        if self.answers_quantile:
            # Around a quantile that is far from the middle, the truth is off to one side.
            left, quantile = left - float(weight @ left) / float(weight.sum()), None
        known = X[rows], self.y[rows], number[rows]
        return fit_answering(*known, left, weight, quantile)

    def _groups(self) -> list[Mask]:
        """Rows that are held out together: folds, or parts at random if there are none."""
        if self.folds:
            groups = groups_of(self.folds, len(self.y))
            return [np.isin(self.fold, group) for group in groups]
        part = np.random.default_rng(0).permutation(len(self.y)) % SPREAD_PARTS
        return [part == k for k in range(SPREAD_PARTS)]

    def _given(self, rows: Mask) -> Array | None:
        """Weights of some rows, if there are any."""
        return None if self.given_weight is None else self.weight[rows]


class BoostedNumbers(HeldOutEngine):
    """Boosted trees whose number of rounds follows the data.

    It is that of the least loss on the rows that are held out: squared, or, of a quantile,
    its own.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree.leaves.regressors import BoostedNumbers
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] > 0, X[:, 1] > 0, X[:, 1] < 0) * 1.0
    >>> predicted, _ = BoostedNumbers(y, fold=np.arange(400) % 5).judge(X)
    >>> bool(np.abs(predicted[:, 0] - y).mean() < 0.1)
    True
    """

    answers_quantile = True

    def numbers_held_out(self, groups: list[Mask], X: Array) -> Judged:
        """Boost without each group, all by one number of rounds."""
        distance = squared if self.quantile is None else Pinball(self.quantile)
        folds = [
            BoostedFold(
                self._booster(X.shape),
                X[train],
                self.y[train],
                self._given(train),
                np.flatnonzero(held_out),
                X[held_out],
                self.weight[held_out],
                1,
                lambda scores: scores[:, 0],
                partial(distance, self.y[held_out]),
            )
            for held_out, train in ((rows, self.taught & ~rows) for rows in groups)
        ]
        saved = 1 - SIZES["medium"].saved
        n_rounds = choose_rounds(folds, lambda before, _: saved * before)
        number = np.empty(len(X))
        for fold in folds:
            number[fold.judged] = fold.answer(fold.best)
        return Judged(n_rounds, number)

    def regression(self, X: Array, n_rounds: int) -> Regression:
        """The trees boosted on all rows."""
        trees = self._booster(X.shape).set_params(warm_start=False, max_iter=n_rounds)
        taught = self.taught
        grown = trees.fit(X[taught], self.y[taught], self._given(taught))
        compiled = compile_boosted(grown)
        if isinstance(compiled, BoostedScorer):
            return replace(compiled, native=None)
        return Foreign(compiled)

    def _booster(self, shape: tuple[int, ...]) -> Any:
        """A booster of the loss, not fitted yet."""
        own: dict[str, Any] = {"loss": "squared_error"}
        if self.quantile is not None:
            own = {"loss": "quantile", "quantile": self.quantile}
        booster: Any = OnceBinnedNumbers
        return booster(warm_start=True, **own, **trees_of(shape))


class ForeignNumbers(HeldOutEngine):
    """Regressions by a regressor of the user's; other parameters as in `HeldOutEngine`."""

    answers_quantile = False

    def __init__(self, regressor: Any, *rows: Any):
        super().__init__(*rows)
        self.regressor = regressor

    def numbers_held_out(self, groups: list[Mask], X: Array) -> Judged:
        """Fit without each group."""
        number = np.empty(len(X))
        for held_out in groups:
            fitted = self._fitted(X, self.taught & ~held_out)
            number[held_out] = Foreign(fitted).scores(X[held_out])[:, 0]
        return Judged(BOOSTED_UNJUDGED, number)

    def regression(self, X: Array, n_rounds: int) -> Regression:
        """The regressor fitted to all rows."""
        return Foreign(self._fitted(X, self.taught))

    def _fitted(self, X: Array, rows: Mask) -> Any:
        own = weight_parameters(self.regressor, self._given(rows))
        return clone(self.regressor).fit(X[rows], self.y[rows], **own)


class LeafRegressor(RegressorMixin, BaseEstimator, metaclass=ABCMeta):
    """What leaves of numbers are fitted with, to answer with a quantile or the mean."""

    def __init__(self, quantile: float | None = None):
        self.quantile = quantile

    @abstractmethod
    def engine(
        self, y: Array, weight: Array | None, fold: Rows | None
    ) -> RidgeEngine | HeldOutEngine:
        """What fits all folds of a subset as one job."""


class RidgeRegression(LeafRegressor):
    """Ridge regression on standardised readings, the penalty by evidence."""

    _degree: ClassVar[int] = 1

    def engine(self, y: Array, weight: Array | None, fold: Rows | None) -> RidgeEngine:
        """Fits by sums over rows."""
        return RidgeEngine(y, weight, fold, self.quantile, self._degree)


class QuadraticRidgeRegression(RidgeRegression):
    """Ridge regression on readings, their squares and products."""

    _degree = 2


class BoostedRegression(TakesNaN, LeafRegressor):
    """Gradient boosting with rounds that follow the data."""

    def engine(
        self, y: Array, weight: Array | None, fold: Rows | None
    ) -> BoostedNumbers:
        """Fits all folds side by side."""
        return BoostedNumbers(y, weight, fold, self.quantile)


class ForeignRegression(LeafRegressor):
    """A regressor of the user's, with a spread."""

    def __init__(self, regressor: Any, quantile: float | None = None):
        super().__init__(quantile)
        self.regressor = regressor

    def engine(
        self, y: Array, weight: Array | None, fold: Rows | None
    ) -> ForeignNumbers:
        """Fits fold after fold."""
        return ForeignNumbers(self.regressor, y, weight, fold, self.quantile)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self.regressor).input_tags.allow_nan
        return tags


def weight_parameters(classifier: Any, sample_weight: Array | None) -> dict[str, Any]:
    """Say how a classifier, or the steps of a pipeline, take sample weights."""
    if sample_weight is None:
        return {}
    if isinstance(classifier, Pipeline):
        takers = [
            name
            for name, step in classifier.steps
            if step != "passthrough" and has_fit_parameter(step, "sample_weight")
        ]
        if classifier.steps[-1][0] in takers:
            return {f"{name}__sample_weight": sample_weight for name in takers}
    elif has_fit_parameter(classifier, "sample_weight"):
        return {"sample_weight": sample_weight}
    raise ParameterError(
        f"{classifier!r} cannot be fitted with sample weights; use a classifier that can, "
        f"or fit without weights."
    )
