"""`ASTCClassifier`: a tree of regressions grown greedily, a budget at every node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sensortree.baselines.linear_tree import (
    LinearData,
    LinearVertex,
    fit_linear_tree,
    halving_threshold,
    least_squares,
    main_direction,
)
from sensortree.constants import EPS
from sensortree.estimators.base import (
    AT_LEAST_0,
    BaseSensorTreeClassifier,
    Interval,
)
from sensortree.estimators.parameters import parameters
from sensortree.learning.fit import Fitted
from sensortree.learning.prepare import Prepared
from sensortree.sensors.market import within
from sensortree.types import Array, Rows

Subset = frozenset[str]

# What is left of a column's square, as a share, when others explain it to rounding; and a
# gain, as a share of the variance, that is rounding.
EXPLAINED = 1e-9
LEAST_GAIN = 1e-9


@parameters
class ASTCClassifier(BaseSensorTreeClassifier):
    """Grow a tree of linear classifiers greedily, with a budget for each node (ASTC).

    *Approximately Submodular Tree of Classifiers* (Kusner, Chen, Zhou, Xu, Weinberger and
    Chen, AAAI 2014). From the root down, each node adds the sensors that explain most
    variance of the class per unit of cost, while its own budget lasts, to those its
    ancestors have bought; regresses the class (-1 or 1) on all of them; and sends one
    half of its examples to each child. At the last level the sign of the regression is
    the answer.

    Our extensions: several classes are regressed together, one column each, and examples
    are divided along the direction in which the outputs differ most; a sensor of several
    columns is added as a whole and paid once; every regression has a constant; a sensor
    that does not fit into what is left of a budget is passed over; prerequisites are
    bought along. Columns are standardised. Class probabilities are the logistic function
    of the score times the factor that makes the training examples most likely.

    Parameters
    ----------
    sensors, costs, loss, max_cost, unit
        As in `SensorTreeClassifier`.
    budget : float, default=2.0
        What each node may spend on sensors that its ancestors have not bought (B): a path
        costs at most `depth` times as much. The values that `fit_path` takes are of this
        parameter.
    depth : int, default=3
        Number of classifiers on a path.
    soft : bool, default=False
        Whether a child learns from all examples, weighted by the probability that the
        logistic function gives them to come there; as the variant in the publication.

    Attributes
    ----------
    tree_, sensors_, classes_, policy_, n_features_in_, feature_names_in_
        As in `SensorTreeClassifier`.

    Examples
    --------
    Where `x0` is high, for half of the examples, the class is sure; else `x1` decides:

    >>> import numpy as np
    >>> from sensortree import ASTCClassifier
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> y = (X[:, 0] > np.median(X[:, 0])) | (X[:, 1] > 0.5)
    >>> model = ASTCClassifier(costs={"x1": 2.0}, budget=2, depth=2)
    >>> print(model.fit(X, y).tree_)
    node 0 knows x0
    ├─ g0 ≤ 0, buy x1: leaf 0 stops with x0, x1
    └─ g0 > 0: leaf 1 stops with x0
    """

    # Traced by the budget; rows that cannot afford their way go where errors are fewest.
    _traced_by: ClassVar[str] = "budget"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTreeClassifier._parameter_constraints,
        "budget": [AT_LEAST_0],
        "depth": [Interval(Integral, 1, 12, closed="both")],
        "soft": ["boolean"],
    }

    budget: float = 2.0
    depth: int = 3
    soft: bool = False

    def _learn(self, prepared: Prepared) -> Fitted:
        return fit_linear_tree(prepared, self._settings(), self._grow)

    def _grow(self, data: LinearData) -> tuple[LinearVertex, dict[str, Any]]:
        """Grow the tree from the root down; there is no evidence beside it."""
        root = self._below(data, np.arange(len(data.y)), data.weight, frozenset(), 1)
        return root, {}

    def _below(
        self, data: LinearData, rows: Rows, weight: Array, inherited: Subset, level: int
    ) -> LinearVertex:
        """Grow what comes below some rows that know some sensors."""
        known = add_sensors(data, rows, weight, inherited, float(self.budget))
        coef, intercept = least_squares(data, rows, weight, data.columns_of(known))
        leaf = LinearVertex(coef, intercept)
        if level == self.depth:
            return leaf
        direction = coef @ main_direction(leaf.scores(data.X[rows]), weight)
        score = data.X[rows] @ direction
        threshold = halving_threshold(score, weight)
        if threshold is None:
            return leaf
        margin = score - threshold
        up = expit(margin) if self.soft else (margin > 0).astype(float)
        children = [
            self._below(data, rows[kept], share[kept], known, level + 1)
            for share in (weight * (1.0 - up), weight * up)
            for kept in [share > 0]
        ]
        return LinearVertex(coef, intercept, direction, threshold, *children)


def add_sensors(
    data: LinearData, rows: Rows, weight: Array, inherited: Subset, budget: float
) -> Subset:
    """Add what explains most variance per unit of cost to what ancestors have bought.

    The gain of columns A on top of G is  z(G + A) - z(G),  with z the share of the
    variance that least squares explains.
    """
    market = data.market
    regression = IncrementalRegression(data.X[rows], data.target[rows], weight)
    regression.add(data.columns_of(inherited))
    known, spent = inherited, 0.0
    while True:
        # What may be known next, one sensor with what it needs, and its mean price.
        new = (name for name in market.sensors.names if name not in known)
        found = dict.fromkeys(market.extension(known, name) for name in new)
        priced = [(more, market.mean_cost(more, known)) for more in found if more]
        options = [one for one in priced if within(spent + one[1], budget)]
        gains = regression.gains([data.columns_of(m - known) for m, _ in options])
        prices = np.array([max(price, EPS) for _, price in options])
        if not len(gains) or gains.max() <= LEAST_GAIN:
            return known
        rates = np.where(gains > LEAST_GAIN, gains / prices, -np.inf)
        more, price = options[int(np.argmax(rates))]
        if regression.add(data.columns_of(more - known)):
            known, spent = more, spent + price


@dataclass(eq=False)
class IncrementalRegression:
    """Least squares on more and more columns, by an orthogonal basis of them (QR).

    With Q the basis and t the residual of the target, a column a has the residual
    q = a - QQᵀa, whose square is |a|² - |Qᵀa|², and aᵀt = qᵀt. So each new basis vector
    costs one product with all columns, and all gains (qᵀt)² / q² one more.
    """

    X: Array  # (n_rows, n_columns)
    target: Array  # (n_rows, n_outputs)
    weight: Array  # (n_rows,)
    basis: list[Array] = field(default_factory=list)
    products: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        root = np.sqrt(self.weight)
        self.X = root[:, None] * self.X
        self.target = root[:, None] * self.target
        self._append(root / np.linalg.norm(root))  # the constant
        self.variance = float((self.target**2).sum())
        self.squares = (self.X**2).sum(axis=0)
        self.left = self.squares - self.products[0] ** 2

    def _append(self, vector: Array) -> None:
        self.basis.append(vector)
        self.products.append(vector @ self.X)
        self.target = self.target - np.outer(vector, vector @ self.target)

    def _unexplained(self, columns: Sequence[int] | Rows) -> NDArray[np.bool_]:
        """Which columns are more than rounding when the others are taken out."""
        return np.asarray(self.left[columns] > EXPLAINED * self.squares[columns])

    def add(self, columns: Sequence[int] | Rows) -> bool:
        """Take some columns into the regression; whether any of them is new to it."""
        before = len(self.basis)
        for column in columns:
            if not self._unexplained([column])[0]:
                continue
            vector, basis = self.X[:, column], np.array(self.basis)
            for _ in range(2):  # the second time removes what rounding left
                vector = vector - (basis @ vector) @ basis
            norm = np.linalg.norm(vector)
            if norm**2 <= EXPLAINED * self.squares[column]:
                self.left[column] = 0.0
                continue
            self._append(vector / norm)
            self.left = np.maximum(self.left - self.products[-1] ** 2, 0.0)
        return len(self.basis) > before

    def gains(self, groups: Sequence[Rows]) -> Array:
        """Share of the variance that each group of columns would explain on top."""
        if self.variance <= EPS * self.weight.sum() or not groups:
            return np.zeros(len(groups))
        moments = self.X.T @ self.target
        gains = [self._gain(group, moments) for group in groups]
        return np.array(gains) / self.variance

    def _gain(self, group: Rows, moments: Array) -> float:
        """Sum of squares of the target's projection on the residuals of some columns."""
        group = group[self._unexplained(group)]
        if len(group) < 2:
            return float((moments[group] ** 2 / self.left[group, None]).sum())
        products = np.array(self.products)[:, group]
        gram = self.X[:, group].T @ self.X[:, group] - products.T @ products
        inverse = np.linalg.pinv(gram, rcond=EXPLAINED, hermitian=True)
        return float(np.sum(moments[group] * (inverse @ moments[group])))
