"""`SensorEstimator`: parameters, and what a fitted sensor tree answers about rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sensortree.estimators.parameters import (
    OF_PROGRAM,
    OF_SENSORS,
    Program,
    parameters_of,
    taken_out,
    with_new_names,
    with_parameters,
)
from sensortree.leaves.sklearn_private import ShallowTable
from sensortree.policy.policy import Policy
from sensortree.reports.interface import PolicyAnswers
from sensortree.sensors.market import priced
from sensortree.sensors.reader import float_table
from sensortree.sensors.table import Table, typed_table


def checked_table(estimator: Any, X: Any, own_types: bool, reset: bool = True) -> Table:
    """Check X as scikit-learn asks: frames and text as they are, else numbers.

    With `own_types`, arrays of numbers are as they are too, where a transformer may want
    their type. The estimator is told how many columns there are, and their names; without
    `reset`, they must be the ones that it knows.
    """
    table = typed_table(X)
    if table is not None and (
        table.is_frame
        or table.data.dtype.kind in "OUST"
        or (own_types and Table.holds(X))
    ):
        validate_data(estimator, table.data, reset=reset, skip_check_array=True)
        return table
    return Table(
        validate_data(
            estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False
        )
    )


class SensorEstimator(CallbackSupportMixin, PolicyAnswers, ShallowTable, BaseEstimator):
    """Estimators with sensors; once fitted, they ask their policy after X was checked.

    Declared sensors, and the program, can be set one by one: ``sensors__blood`` is the
    sensor, ``sensors__blood__cost`` one of its parameters, and
    ``sensors__blood__transformer__strategy`` one of its transformer's; ``program__l2`` is
    one of the program.
    """

    sensors: Any
    policy_: Policy
    _default_program: ClassVar[Program] = Program()

    @property
    def _program(self) -> Program:
        """How decisions are learned."""
        given = getattr(self, "program", None)
        return given if isinstance(given, Program) else self._default_program

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters of this estimator.

        Parameters
        ----------
        deep : bool, default=True
            Whether to give those of sensors, transformers, classifiers and the program
            too.

        Returns
        -------
        params : dict of str to value
        """
        given: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(self.sensors, Mapping):
            own = parameters_of(self.sensors)
            given.update({f"{OF_SENSORS}{name}": value for name, value in own.items()})
        if deep and "program" in given:
            own = self._program.nested()
            given.update({f"{OF_PROGRAM}{name}": value for name, value in own.items()})
        return given

    def set_params(self, **params: Any) -> Any:
        """Set parameters of this estimator, of its sensors and of its program.

        Parameters
        ----------
        **params : dict of str to value
            What was declared is not written to: sensors, transformers and the program are
            replaced by changed copies.

        Returns
        -------
        self
        """
        names = self.get_params(deep=False).keys()
        params = with_new_names(self, names, params, setting=True)
        if nested := taken_out(params, OF_SENSORS):
            sensors = params.get("sensors", self.sensors)
            params["sensors"] = with_parameters(sensors, nested)
        if "program" in names and (nested := taken_out(params, OF_PROGRAM)):
            program = params.get("program") or self._program
            params["program"] = program.changed(nested)
        return super().set_params(**params)

    def _leaves_have_probabilities(self) -> bool:
        """Whether leaves answer with classes, by a classifier that has `predict_proba`."""
        if hasattr(self, "regressor"):
            return False
        classifier = getattr(self, "classifier", "logistic2")
        calibrated = getattr(self, "calibration", None) is not None
        named = isinstance(classifier, str)
        return named or calibrated or hasattr(classifier, "predict_proba")

    predict_proba = available_if(_leaves_have_probabilities)(
        PolicyAnswers.predict_proba
    )
    predict_spread = available_if(lambda self: hasattr(self, "regressor"))(
        PolicyAnswers.predict_spread
    )

    @property
    def _policy(self) -> Policy:
        check_is_fitted(self)
        return self.policy_

    def _table(self, X: Any, prices: ArrayLike | None) -> Table:
        """Check X at prediction: the same columns as in training, and prices."""
        reader = self._policy.reader
        table = checked_table(self, X, bool(reader.transformers), reset=False)
        if not reader.transformers:
            table = float_table(table, reader.sensors)
        return priced(table, prices, reader.sensors)

    def _html_repr(self) -> str:
        """What notebooks show: scikit-learn's diagram, and below it the fitted tree."""
        html: str = estimator_html_repr(self)
        return self._with_tree(html) if hasattr(self, "policy_") else html

    def __sklearn_tags__(self) -> Any:
        """Text is taken; NaN if every transformer takes it: other gaps are filled."""
        tags = super().__sklearn_tags__()
        declared = self.sensors.values() if isinstance(self.sensors, Mapping) else ()
        transformers = [getattr(sensor, "transformer", None) for sensor in declared]
        tags.input_tags.allow_nan = all(
            get_tags(t).input_tags.allow_nan for t in transformers if t is not None
        )
        tags.input_tags.string = True
        return tags
