"""`PolicyAnswers`: methods of every fitted or loaded model, such as `report`, `explain`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError, ParameterError
from sensortree.policy.about import About
from sensortree.policy.policy import Policy
from sensortree.reports.explanation import Explanation, explain
from sensortree.reports.report import CostReport, cost_report
from sensortree.sensors.table import Table
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.reports.tree_display import TreeDisplay


class PolicyAnswers:
    """Methods that ask a policy about checked rows; each model checks X in its own way."""

    @property
    def _policy(self) -> Policy:
        raise NotImplementedError  # the model's

    def _table(self, X: Any, prices: ArrayLike | None) -> Table:
        raise NotImplementedError  # the model's

    policy_: Policy

    def set_strict(self, strict: bool = True) -> Any:
        """Say whether values that training never saw are refused, or warned of.

        A text that training never had, a number far outside those of training, nothing
        where there always was a value: by default every answer that rests on such warns
        once (`UnseenWarning`). Where a strict model meets one, it raises a `DataError`
        instead, in every method, and in the sessions of its policy.

        Parameters
        ----------
        strict : bool, default=True

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from sensortree import SensorTreeClassifier
        >>> X = np.random.default_rng(0).normal(size=(60, 1))
        >>> model = SensorTreeClassifier().fit(X, X[:, 0] > 0).set_strict()
        >>> model.predict([[-87000.0]])
        Traceback (most recent call last):
            ...
        sensortree.exceptions.DataError: values that training never saw: -87000 in row 0,
        column 'x0' of sensor 'x0'; training had -2.32503 to 1.96026. Correct them, or have
        them answered all the same: set_strict(False), or no --strict.
        """
        self.policy_ = replace(self._policy, strict=bool(strict))
        return self

    @property
    def about_(self) -> About:
        """What the model is about: unit of prices, target, date, held-out score."""
        return self._policy.about

    def predict(self, X: Any, prices: ArrayLike | None = None) -> NDArray[Any]:
        """Class of each row, answered with the sensors it acquires.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Columns of sensors that a row does not acquire are not looked at.
        prices : array-like of shape (n_samples, n_sensors), default=None
            Prices of each row, if the model was fitted with such.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        return self._policy.predict(self._table(X, prices))

    def predict_proba(self, X: Any, prices: ArrayLike | None = None) -> Array:
        """Class probabilities of each row, from the leaf it reaches.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        prices : array-like of shape (n_samples, n_sensors), default=None

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        return self._policy.predict_proba(self._table(X, prices))

    def predict_spread(self, X: Any, prices: ArrayLike | None = None) -> Array:
        """Expected error of the answer to each row, if answers are numbers.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        prices : array-like of shape (n_samples, n_sensors), default=None

        Returns
        -------
        spread : ndarray of shape (n_samples,)
            Standard deviation that the truth is expected to have around the mean that its
            leaf predicts.
        """
        return self._policy.predict_spread(self._table(X, prices))

    def apply(self, X: Any, prices: ArrayLike | None = None) -> NDArray[np.intp]:
        """Index of the leaf each row reaches.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        prices : array-like of shape (n_samples, n_sensors), default=None

        Returns
        -------
        leaf : ndarray of shape (n_samples,)
            Leaves are numbered as in ``tree_.leaves``. A row that can afford no leaf
            within ``max_cost`` stops at a node, and gets ``~node``.
        """
        return self._policy.apply(self._table(X, prices))

    def referred(self, X: Any, prices: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Whether each row is referred to a person, rather than answered.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        prices : array-like of shape (n_samples, n_sensors), default=None

        Returns
        -------
        referred : ndarray of bool of shape (n_samples,)
            `predict` gives the best guess for these rows too.
        """
        return self._policy.referred(self._table(X, prices))

    def acquired(self, X: Any, prices: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Which sensors each row acquires.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        prices : array-like of shape (n_samples, n_sensors), default=None

        Returns
        -------
        acquired : ndarray of bool of shape (n_samples, n_sensors)
            Sensors are ordered as in ``sensors_.names``.
        """
        return self._policy.acquired(self._table(X, prices))

    def acquisition_cost(self, X: Any, prices: ArrayLike | None = None) -> Array:
        """Price of the sensors each row acquires.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        prices : array-like of shape (n_samples, n_sensors), default=None

        Returns
        -------
        cost : ndarray of shape (n_samples,)
        """
        return self._policy.acquisition_cost(self._table(X, prices))

    def report(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        prices: ArrayLike | None = None,
    ) -> CostReport:
        """What some rows cost, for which sensors, and what that was worth.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows that the model was not fitted on.
        y : array-like of shape (n_samples,)
            Right answers.
        sample_weight : array-like of shape (n_samples,), default=None
        prices : array-like of shape (n_samples, n_sensors), default=None

        Returns
        -------
        report : CostReport
            Print it, or take its attributes, ``to_dict()`` or ``to_frame()``;
            `report_page` gives it as a page.
        """
        return cost_report(self._policy, self._table(X, prices), y, sample_weight)

    def report_page(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        prices: ArrayLike | None = None,
        *,
        data: str = "",
        title: str = "",
    ) -> str:
        """Give the report as one HTML page, for people who decide.

        Which rows buy what, in words; what that saves against buying everything, the best
        fixed set or nothing; the curve: what spending less or more would give; what becomes
        of examples if a sensor is not available; how sure that is; the tree; where it
        comes from.

        Parameters
        ----------
        X, y, sample_weight, prices
            As in `report`.
        data : str, default=""
            Name of the rows, for the page.
        title : str, default=""
            Heading of the page; by default it says what is predicted.

        Returns
        -------
        html : str
            It loads nothing from elsewhere, and runs no script; it can be read on a phone
            and printed.
        """
        from sensortree.reports.report import limited
        from sensortree.reports.report_page import ReportPage

        if self._policy.loss.numbers:
            raise ParameterError(
                "report_page is of answers that are classes, and this model answers with "
                "numbers; print report(X, y), as `sensortree evaluate` does, or take its "
                "to_dict() or to_frame()."
            )
        table = self._table(X, prices)
        report = cost_report(self._policy, table, y, sample_weight)
        limits = limited(self._policy, table, y, sample_weight)
        page = ReportPage(self._policy, data, title, table, report, self, limits)
        return page.to_html()

    def explain(self, x: Any, prices: ArrayLike | None = None) -> Explanation:
        """Why one row buys what it buys, and gets its answer.

        Parameters
        ----------
        x : array-like of shape (n_features,), pandas Series, or table of one row
            Columns of sensors that the row does not acquire are not looked at.
        prices : array-like of shape (n_sensors,), default=None
            Prices of the row, if the model was fitted with such.

        Returns
        -------
        explanation : Explanation
            Print it, take its attributes, ``to_dict()`` or ``to_html()``, or draw it with
            ``plot()``.
        """
        own = None if prices is None else np.atleast_2d(np.asarray(prices, np.float64))
        return explain(self._policy, self._table(_one_row(x), own))

    def to_svg(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        prices: ArrayLike | None = None,
        unit: str | None = None,
        max_leaves: int | None = 32,
    ) -> str:
        """Draw the tree as the text of an SVG picture; nothing else is needed for it.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features), default=None
            Rows to follow through the tree; by default the training rows, judged out of
            fold with ``cv``.
        y : array-like of shape (n_samples,), default=None
            Right answers to X, for accuracy and classes at the leaves.
        prices : array-like of shape (n_samples, n_sensors), default=None
        unit : str, default=None
            What a price is counted in; by default what the model says.
        max_leaves : int or None, default=32
            Leaves of a tree that is drawn whole; in a larger one, what few rows reach is
            folded until so many lines are left. None folds nothing.

        Returns
        -------
        svg : str
            It can be zoomed, and follows the light or dark theme of its page.
        """
        return self._tree_display(X, y, prices, unit, max_leaves).to_svg()

    def to_html(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        prices: ArrayLike | None = None,
        unit: str | None = None,
        max_leaves: int | None = 32,
    ) -> str:
        """Draw the tree as an HTML page of its own.

        Parameters
        ----------
        X, y, prices, unit, max_leaves
            As in `to_svg`.

        Returns
        -------
        html : str
            It loads nothing from elsewhere.
        """
        return self._tree_display(X, y, prices, unit, max_leaves).to_html()

    def _tree_display(
        self,
        X: Any,
        y: Any,
        prices: ArrayLike | None,
        unit: str | None,
        max_leaves: int | None,
    ) -> TreeDisplay:
        from sensortree.reports.tree_display import TreeDisplay

        _ = self._policy  # an unfitted model says that it is unfitted
        return TreeDisplay.from_estimator(
            self, X, y, prices=prices, unit=unit, max_leaves=max_leaves
        )

    def _with_tree(self, html: str) -> str:
        """Part of an HTML page, for notebooks, with the tree behind it."""
        from sensortree.reports.tree_display import tree_in_notebook

        try:
            return tree_in_notebook(self, html)
        except Exception:  # looking at a model must never be an error
            return html


def _one_row(x: Any) -> Any:
    """Bring a row to a table: an array, a frame, or a pandas Series with its names."""
    if Table.holds(x):
        table = x
    elif hasattr(x, "to_frame") and hasattr(x, "index"):  # a pandas Series
        table = x.to_frame().T.infer_objects()
    else:
        table = np.asarray(x)
        table = table.reshape(1, -1) if table.ndim == 1 else table
    if len(table) != 1:
        raise DataError(
            f"explain takes one row, got {len(table)}; ask for rows one by one."
        )
    return table
