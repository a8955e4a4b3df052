"""`SavedModel`: what a model file holds, ready to be asked, without scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from html import escape
from typing import Any

from numpy.typing import ArrayLike, NDArray

from sensortree.cells.numbers import Wanted, read_numbers
from sensortree.cells.words import (
    MISSING,
    PLAIN_FORMAT,
    ColumnFormat,
    cut,
    day_of,
    spelling_key,
)
from sensortree.exceptions import DataError
from sensortree.policy.about import Comparison, OutageReport
from sensortree.policy.policy import Policy
from sensortree.reports.interface import PolicyAnswers
from sensortree.reports.tradeoff import Choice, TradeoffCurve
from sensortree.sensors.reader import float_table, table_as_fitted
from sensortree.sensors.table import Table
from sensortree.sensors.transforms import InTurn, OneHot, Ordinal, SideBySide, Typed


def _day(column: str, value: Any, form: str) -> Any:
    """A date as the number of its day; numbers of days stay."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    cell = value.strip() if isinstance(value, str) else float(value)
    if cell in MISSING:
        return float("nan")
    day = day_of(cell, form)
    if day is None and isinstance(value, str):
        raise DataError(f"column {column!r}: {cut(value)} is not a date, {form}.")
    return value if day is None else day


def _categories(transform: Any, n_columns: int) -> list[tuple[Any, ...] | None]:
    """Categories of each column of a transform; None for numbers."""
    if isinstance(transform, (OneHot, Ordinal)):
        return list(transform.categories)
    if isinstance(transform, InTurn):
        first, *rest = transform.steps
        typed = isinstance(first, Typed) and rest  # which leaves columns where they are
        return _categories(rest[0] if typed else first, n_columns)
    known: list[tuple[Any, ...] | None] = [None] * n_columns
    if isinstance(transform, SideBySide):
        for at, part in transform.parts:
            for position, values in zip(at, _categories(part, len(at)), strict=True):
                known[position] = values
    return known


def is_text(categories: tuple[Any, ...] | None) -> bool:
    """Whether a column's categories are text, which is then read as it stands."""
    return categories is not None and any(isinstance(c, str) for c in categories)


def as_known(text: str, categories: Iterable[Any]) -> str:
    """The category that a text is but for capitals and spaces; else the text."""
    known = [category for category in categories if isinstance(category, str)]
    if text in known:
        return text
    alike = [name for name in known if spelling_key(name) == spelling_key(text)]
    return alike[0] if len(alike) == 1 else text


# What a model may know about its training, each an attribute with "_" behind.
REPORTS = (
    *("certificate", "decision_report", "structure_report", "calibration_report"),
    "fallback_leaf",
)
# The same, of those that have a section of their own.
OWN_SECTION = ("outage_report", "comparison", "curve", "chosen")


class SavedModel(PolicyAnswers):
    """A model that was read from a file; `load` makes them.

    It answers as the fitted classifier did, and cannot be fitted.

    Attributes
    ----------
    policy_ : Policy
        Everything that is needed to predict.
    about_ : About
        Unit, target, date, rows and held-out score.
    classes_ : ndarray of shape (n_classes,)
    sensors_ : SensorSet
    tree_ : SensorTree
    certificate_, decision_report_, structure_report_, calibration_report_ : dict or None
        What the training proved and reported, as plain data.
    fallback_leaf_ : int or None
    outage_report_ : OutageReport or None
        What the outage of each sensor costs.
    comparison_ : Comparison or None
        What was compared on held-out rows, and what was taken.
    curve_, chosen_ : TradeoffCurve and Choice, or None
        What the cost weight was picked from for a budget or an error, and why.
    n_features_in_ : int
        Number of columns that X must have.
    feature_names_in_ : ndarray of shape (n_features_in_,) or None
        Names that the columns of a frame must have, in this order.
    reading_ : dict of column to ColumnFormat, or None
        How cells of the file were written that the command line fitted the model on;
        columns of plain numbers and of text are not in it.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import sensortree
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = sensortree.SensorTreeClassifier().fit(X, X[:, 0] > 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     sensortree.save(model, path)
    ...     loaded = sensortree.load(path)
    >>> loaded
    SavedModel(2 classes, 2 sensors, ...)
    >>> loaded.predict([[1.0, 0.0], [-1.0, 0.0]])
    array([ True, False])
    """

    certificate_: dict[str, Any] | None
    decision_report_: dict[str, Any] | None
    structure_report_: dict[str, Any] | None
    calibration_report_: dict[str, Any] | None
    fallback_leaf_: int | None
    outage_report_: OutageReport | None
    comparison_: Comparison | None
    curve_: TradeoffCurve | None
    chosen_: Choice | None

    def __init__(
        self,
        policy: Policy,
        feature_names: NDArray[Any] | None,
        evidence: Mapping[str, Any],
        reading: Mapping[str, ColumnFormat] | None = None,
    ):
        self.policy_ = policy
        self.classes_ = policy.classes
        self.sensors_ = policy.sensors
        self.tree_ = policy.tree
        self.n_features_in_ = len(policy.sensors.column_names)
        self.feature_names_in_ = feature_names
        self.reading_ = reading
        for name in (*REPORTS, *OWN_SECTION):
            setattr(self, f"{name}_", evidence.get(name))

    @property
    def _policy(self) -> Policy:
        return self.policy_

    def as_written(self, sensor: str, values: Any) -> Any:
        """Turn values of a sensor, as people write them, into what its sessions take.

        Categories may differ in capitals and spaces. If the model was learned from a file
        by the command line, dates and numbers may be written as in that file; dates also
        as 2024-12-31.

        Parameters
        ----------
        sensor : str
        values : mapping of column to value, sequence in the order of columns, or value

        Returns
        -------
        values : the same, to be told to a session

        Examples
        --------
        >>> import numpy as np
        >>> from sensortree import Sensor, SensorTreeClassifier, load, save
        >>> X = np.array([["Yes", "No"] * 20], dtype=object).T
        >>> model = SensorTreeClassifier({"smokes": Sensor([0])}).fit(X, X[:, 0] == "No")
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.json")
        ...     save(model, path)
        ...     loaded = load(path)
        >>> loaded.as_written("smokes", " yes ")
        ['Yes']
        """
        columns = self.policy_.columns_of.get(sensor)
        if columns is None:
            return values
        if isinstance(values, Mapping):
            return {column: self.value_of(column, v) for column, v in values.items()}
        listed = values if isinstance(values, (list, tuple)) else [values]
        if len(listed) != len(columns):
            return values  # which is refused where it is told
        return [self.value_of(*pair) for pair in zip(columns, listed, strict=True)]

    def value_of(
        self, column: str, value: Any, form: ColumnFormat | None = None
    ) -> Any:
        """A category but for its spelling, a date as its day, a number as in the file.

        Whatever is no text stays, but for dates that are written as whole numbers. `form`
        is how cells of the column are written, if not as in the file.
        """
        known, form = self.categories_.get(column), form or self.formats_.get(column)
        if is_text(known):
            return as_known(value, known or ()) if isinstance(value, str) else value
        if form is not None and form.date:
            return _day(column, value, form.date)
        if form is None or not isinstance(value, str):
            return value
        found = read_numbers([value], Wanted(known=form))
        if why := found.why_not(value):
            raise DataError(f"column {column!r}: {why}.")
        return float(found.values[0])

    @cached_property
    def categories_(self) -> dict[str, tuple[Any, ...]]:
        """Categories of the columns that hold such, by name."""
        sensors, transformers = self.sensors_, self.policy_.reader.transformers
        found: dict[str, tuple[Any, ...]] = {}
        for name, columns in zip(sensors.names, sensors.columns, strict=True):
            known = _categories(transformers.get(name), len(columns))
            for column, values in zip(columns, known, strict=True):
                if values is not None:
                    found[sensors.column_names[column]] = values
        return found

    @cached_property
    def formats_(self) -> dict[str, ColumnFormat]:
        """How cells are written, by column, if the model was learned from a file."""
        if self.reading_ is None:
            return {}
        return {
            **dict.fromkeys(self.sensors_.column_names, PLAIN_FORMAT),
            **self.reading_,
        }

    def __repr__(self) -> str:
        return (
            f"SavedModel({self.policy_.answers_words}, {len(self.sensors_)} sensors, "
            f"{self.tree_.n_leaves} leaves)"
        )

    def _repr_html_(self) -> str:
        about = "<br>".join(map(escape, str(self.about_).splitlines()))
        head = f"<p><code>{escape(repr(self))}</code></p>"
        return self._with_tree(head + (f"<p>{about}</p>" if about else ""))

    def _table(self, X: Any, prices: ArrayLike | None) -> Table:
        table = table_as_fitted(X, prices, self.sensors_)
        plain = not self.policy_.reader.transformers
        return float_table(table, self.sensors_) if plain else table
