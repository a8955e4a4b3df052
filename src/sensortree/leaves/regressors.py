"""What leaves of numbers are fitted with: ridge, boosted, or a regressor of the user's.

An engine fits all folds of a subset of sensors as one job: `judge` says of each row what
regressions without the row's fold answer, `fit` gives the one to all rows.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import get_tags

from sensortree.leaves.boosting import (
    CHUNK,
    MANY_GROUPS,
    MAX_ROUNDS,
    SIZES,
    UNJUDGED,
    trees_of,
    usual_size,
)
from sensortree.leaves.compiling import compile_boosted
from sensortree.leaves.regression import RidgeEngine
from sensortree.leaves.sklearn_private import (
    OnceBinnedNumbers,
    boosted_baseline,
    boosted_scores,
)
from sensortree.leaves.spread import fit_answering
from sensortree.leaves.weighting import weight_parameters
from sensortree.policy.classifiers import BoostedScorer
from sensortree.policy.numbers import Answering, Foreign, NumberScorer, Regression
from sensortree.sensors.number_loss import Pinball, squared
from sensortree.types import Array, Mask, Rows

# Parts of the rows that are held out for the spread, where no folds are given.
PARTS = 3


@dataclass(frozen=True, eq=False)
class Judged:
    """What was found where rows were held out, for the fit to all of them.

    Attributes
    ----------
    n_rounds : int
        Of boosted trees.
    number : ndarray of shape (n_samples,)
        What regressions say of rows that they have not seen.
    """

    n_rounds: int
    number: Array


class HeldOutEngine(metaclass=ABCMeta):
    """Regressions whose spread is learned from rows that they have not seen.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,), default=None
        None stands for ones. A row of weight 0 is judged, and not learned from.
    fold : ndarray of shape (n_samples,), default=None
        The fold that a row is held out with; -1 for a row that never is.
    quantile : float or None, default=None
        Which value is answered; None is the mean.
    """

    # Whether the regression itself answers with the quantile.
    answers_quantile: ClassVar[bool]

    def __init__(
        self,
        y: Array,
        weight: Array | None = None,
        fold: Rows | None = None,
        quantile: float | None = None,
    ):
        self.y = np.asarray(y, dtype=np.float64)
        self.given_weight = weight
        self.weight = np.ones(len(y)) if weight is None else weight
        self.taught = self.weight > 0
        self.fold = np.full(len(y), -1) if fold is None else np.asarray(fold)
        self.folds = [int(f) for f in np.unique(self.fold) if f >= 0]
        self.quantile = quantile

    @abstractmethod
    def numbers_held_out(self, groups: list[Mask], X: Array) -> Judged:
        """What regressions without each group of rows say of its rows."""

    @abstractmethod
    def regression(self, X: Array, n_rounds: int) -> Regression:
        """The regression fitted to all rows."""

    def judge(self, X: Array) -> tuple[Array, Judged]:
        """Answer and spread of each row by a regression without the row's fold.

        Parameters
        ----------
        X : ndarray of shape (n_samples, width)

        Returns
        -------
        said : ndarray of shape (n_samples, 2)
        judged : Judged
        """
        groups = self._groups() or self._parts()
        if not self._varies(X):
            scorer = self._constant(X)
            return scorer.says(X), Judged(UNJUDGED, scorer.regression.scores(X)[:, 0])
        judged = self.numbers_held_out(groups, X)
        said = np.empty((len(X), 2))
        for held_out in groups:
            answering = self._answering(X, judged.number, ~held_out)
            said[held_out] = answering.of(X[held_out], judged.number[held_out])
        never = self.fold < 0
        if never.any():
            said[never] = self.fit(X, judged).says(X[never])
        return said, judged

    def fit(self, X: Array, start: Judged | None = None) -> NumberScorer:
        """The regression fitted to all rows, with the spread that judging has found."""
        if not self._varies(X):
            return self._constant(X)
        if start is None:
            start = self.numbers_held_out(self._groups() or self._parts(), X)
        regression = self.regression(X, start.n_rounds)
        everyone = np.ones(len(X), dtype=bool)
        return NumberScorer(regression, self._answering(X, start.number, everyone))

    def _varies(self, X: Array) -> bool:
        """Whether there is anything to learn, and from."""
        y = self.y[self.taught]
        return bool(X.shape[1] and (y != y[0]).any() and len(y) > PARTS)

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
        """Rows that are held out together: folds, or, of many rows, several of them."""
        n_groups = len(self.folds)
        if usual_size(len(self.y)) == "large":
            n_groups = min(MANY_GROUPS, n_groups)
        return [np.isin(self.fold, self.folds[k::n_groups]) for k in range(n_groups)]

    def _parts(self) -> list[Mask]:
        """The same where no folds are given: parts of the rows at random."""
        part = np.random.default_rng(0).permutation(len(self.y)) % PARTS
        return [part == k for k in range(PARTS)]


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
    >>> said, _ = BoostedNumbers(y, fold=np.arange(400) % 5).judge(X)
    >>> bool(np.abs(said[:, 0] - y).mean() < 0.1)
    True
    """

    answers_quantile = True

    def numbers_held_out(self, groups: list[Mask], X: Array) -> Judged:
        """Boost without each group, all by one number of rounds."""
        folds = [
            _Fold(
                self._booster(X.shape),
                X[train],
                self.y[train],
                None if self.given_weight is None else self.weight[train],
                X[held_out],
            )
            for held_out in groups
            for train in [self.taught & ~held_out]
        ]
        truth = [(self.y[g], self.weight[g]) for g in groups]
        done, best, least = 0, 1, np.inf
        kept = [fold.numbers for fold in folds]
        while done < MAX_ROUNDS:
            chunk = min(max(CHUNK, done // 2), MAX_ROUNDS - done)
            after = [fold.boost(done, chunk) for fold in folds]
            losses = [
                sum(
                    float(weight @ self._distance(y, said[k]))
                    for (y, weight), said in zip(truth, after, strict=True)
                )
                for k in range(chunk)
            ]
            before, found = least, int(np.argmin(losses))
            if losses[found] < least:
                best, least = done + found + 1, losses[found]
                kept = [said[found] for said in after]
            done += chunk
            if not least < (1 - SIZES["medium"].saved) * before:
                break
        number = np.empty(len(X))
        for held_out, said in zip(groups, kept, strict=True):
            number[held_out] = said
        return Judged(best, number)

    def regression(self, X: Array, n_rounds: int) -> Regression:
        """The trees boosted on all rows."""
        trees = self._booster(X.shape).set_params(warm_start=False, max_iter=n_rounds)
        weight = None if self.given_weight is None else self.weight[self.taught]
        grown = trees.fit(X[self.taught], self.y[self.taught], weight)
        compiled = compile_boosted(grown)
        if isinstance(compiled, BoostedScorer):
            return replace(compiled, native=None)
        return Foreign(compiled)

    def _distance(self, y: Array, number: Array) -> Array:
        distance = squared if self.quantile is None else Pinball(self.quantile)
        return distance(y, number)

    def _booster(self, shape: tuple[int, ...]) -> Any:
        """A booster of the loss, not fitted yet."""
        own: dict[str, Any] = {"loss": "squared_error"}
        if self.quantile is not None:
            own = {"loss": "quantile", "quantile": self.quantile}
        booster: Any = OnceBinnedNumbers
        return booster(warm_start=True, **own, **trees_of(shape))


@dataclass(eq=False)
class _Fold:
    """A booster in the making, and what it says of the rows that it has not seen."""

    booster: Any
    X: Array
    y: Array
    weight: Array | None
    X_judged: Array
    numbers: Array = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = np.full(len(self.X_judged), float(self.y.mean()))

    def boost(self, done: int, n_rounds: int) -> list[Array]:
        """Numbers after each of some more rounds, (n_judged,) each."""
        self.booster.set_params(max_iter=done + n_rounds)
        self.booster.fit(self.X, self.y, self.weight)
        if not done:
            self.numbers = np.full(
                len(self.X_judged), float(boosted_baseline(self.booster)[0])
            )
        after = []
        for added in boosted_scores(self.booster, self.X_judged, done):
            self.numbers = self.numbers + added[:, 0]
            after.append(self.numbers)
        return after + [self.numbers] * (n_rounds - len(after))


class ForeignNumbers(HeldOutEngine):
    """Regressions by a regressor of the user's.

    Parameters
    ----------
    regressor : scikit-learn regressor
    *rows
        As in `HeldOutEngine`.
    """

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
        return Judged(UNJUDGED, number)

    def regression(self, X: Array, n_rounds: int) -> Regression:
        """The regressor fitted to all rows."""
        return Foreign(self._fitted(X, self.taught))

    def _fitted(self, X: Array, rows: Mask) -> Any:
        weight = None if self.given_weight is None else self.weight[rows]
        own = weight_parameters(self.regressor, weight)
        return clone(self.regressor).fit(X[rows], self.y[rows], **own)


class LeafRegressor(RegressorMixin, BaseEstimator, metaclass=ABCMeta):
    """What leaves of numbers are fitted with.

    Parameters
    ----------
    quantile : float or None, default=None
        Which value is answered; None is the mean.
    """

    def __init__(self, quantile: float | None = None):
        self.quantile = quantile

    @abstractmethod
    def engine(
        self, y: Array, weight: Array | None, fold: Rows | None
    ) -> RidgeEngine | HeldOutEngine:
        """What fits all folds of a subset as one job."""

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit to data."""
        self.scorer_ = self.engine(y, sample_weight, None).fit(np.asarray(X))
        return self

    def says(self, X: Array) -> Array:
        """Answer and spread, (n_samples, 2)."""
        return np.asarray(self.scorer_.says(np.asarray(X)))

    def predict(self, X: Array) -> Array:
        """Answers, (n_samples,)."""
        return np.asarray(self.scorer_.predict(np.asarray(X)))


class RidgeRegression(LeafRegressor):
    """Ridge regression on standardised readings, the penalty by evidence."""

    _degree: ClassVar[int] = 1

    def engine(self, y: Array, weight: Array | None, fold: Rows | None) -> RidgeEngine:
        """Fits by sums over rows."""
        return RidgeEngine(y, weight, fold, self.quantile, self._degree)


class QuadraticRidgeRegression(RidgeRegression):
    """Ridge regression on readings, their squares and products."""

    _degree = 2


class BoostedRegression(LeafRegressor):
    """Gradient boosting with rounds that follow the data."""

    def engine(
        self, y: Array, weight: Array | None, fold: Rows | None
    ) -> BoostedNumbers:
        """Fits all folds side by side."""
        return BoostedNumbers(y, weight, fold, self.quantile)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class ForeignRegression(LeafRegressor):
    """A regressor of the user's, with a spread.

    Parameters
    ----------
    regressor : scikit-learn regressor
    quantile : float or None, default=None
    """

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
