"""`SensorUseDisplay`: which sensors are bought for which classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sensortree.exceptions import DataError, ParameterError
from sensortree.reports.drawing import new_figure
from sensortree.reports.report_sums import one_for_each
from sensortree.reports.words import money_format, shortened
from sensortree.sensors.sensor import SensorSet
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.reports.interface import PolicyAnswers

NAMED = 40  # characters of a sensor's or a class's name
WRITTEN = 400  # cells; of more the shares are not written


class SensorUseDisplay:
    """Share of the rows of each class that bought each sensor.

    Parameters
    ----------
    sensors : SensorSet
    classes : array-like of shape (n_classes,)
        Names of the classes.
    share : array-like of shape (n_classes, n_sensors)
        Share of the rows of a class that bought a sensor; NaN for a class without rows.
    overall : array-like of shape (n_sensors,)
        Share of all rows that bought a sensor.
    unit : str, default=""
        What a price is counted in.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where `plot` drew.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    image_ : matplotlib AxesImage
        The cells: a line per sensor, a column for all rows and one per class.
    texts_ : list of lists of matplotlib Text
        The shares written in the cells, in percent; none where there are many cells.
    colorbar_ : matplotlib Colorbar or None
        What the colours mean, where nothing is written.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier, SensorUseDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 0, "dear": 5}, cost_weight=0.02)
    >>> display = SensorUseDisplay.from_estimator(model.fit(X, y), X, y)
    >>> display.share[:, 0]
    array([1., 1.])
    >>> bool((display.share[:, 1] < 1).all())
    True

    Then ``display.plot()`` draws it.
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        sensors: SensorSet,
        classes: ArrayLike,
        share: ArrayLike,
        overall: ArrayLike,
        *,
        unit: str = "",
    ):
        self.sensors = sensors
        self.classes = np.asarray(classes)
        self.share = np.asarray(share, dtype=np.float64)
        self.overall = np.asarray(overall, dtype=np.float64)
        self.unit = unit
        expected = (len(self.classes), len(sensors))
        if self.share.shape != expected or self.overall.shape != expected[1:]:
            raise DataError(
                f"share has shape {self.share.shape} and overall {self.overall.shape}; "
                f"with {expected[0]} classes and {expected[1]} sensors give {expected} "
                f"and {expected[1:]}."
            )

    def __repr__(self) -> str:
        return f"SensorUseDisplay({len(self.sensors)} sensors, {len(self.classes)} classes)"

    @classmethod
    def from_estimator(
        cls,
        model: PolicyAnswers,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        prices: ArrayLike | None = None,
        unit: str | None = None,
    ) -> SensorUseDisplay:
        """Count what the rows of a table buy.

        Parameters
        ----------
        model : fitted classifier of this package, or a loaded model
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Right answers.
        sample_weight : array-like of shape (n_samples,), default=None
        prices : array-like of shape (n_samples, n_sensors), default=None
            Prices of each row, if the model was fitted with such.
        unit : str, default=None
            What a price is counted in; by default what the model says.

        Returns
        -------
        display : SensorUseDisplay
            Not drawn yet; call its `plot`.
        """
        policy = model.policy_
        if not len(policy.classes):  # numbers are predicted
            raise ParameterError(
                "SensorUseDisplay shows what is bought for each class, and this model "
                "answers with numbers; report(X, y).sensors says what is bought."
            )
        acquired = model.acquired(X, **({} if prices is None else {"prices": prices}))
        n_rows = len(acquired)
        truth = one_for_each("y", y, n_rows, "right answer")
        given = np.ones(n_rows) if sample_weight is None else sample_weight
        weight = one_for_each("sample_weight", given, n_rows, "weight")
        of_class = (truth == policy.classes[:, None]) * weight
        return cls(
            policy.sensors,
            policy.classes,
            _means(of_class, acquired),
            _means(weight[None, :], acquired)[0],
            unit=policy.about.unit if unit is None else unit,
        )

    def plot(self, ax: Any = None, *, cmap: str = "cividis") -> SensorUseDisplay:
        """Draw a line per sensor, with a cell for all rows and one for each class.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; by default a new figure that is as large as it needs to be.
        cmap : str, default="cividis"
            Colours of the shares, from 0 to 1.

        Returns
        -------
        self
        """
        cells = np.vstack([self.overall, self.share]).T
        n_sensors, n_columns = cells.shape
        if ax is None:
            figure = new_figure(3.6 + 0.7 * n_columns, 1.6 + 0.3 * n_sensors)
            figure.set_layout_engine("constrained")
            ax = figure.add_subplot()
        self.ax_, self.figure_ = ax, ax.figure
        self.image_ = ax.imshow(cells, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        ax.set_yticks(range(n_sensors), _literal(self._sensor_names()))
        names = ["all rows", *(shortened(str(c), NAMED) for c in self.classes.tolist())]
        ax.set_xticks(range(n_columns), _literal(names))
        if max(map(len, names)) > 6:
            ax.tick_params(axis="x", labelrotation=40)
            for label in ax.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
        ax.axvline(0.5, color=ax.get_facecolor(), linewidth=3)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        # To the right: it is wider than the cells, and the names leave it room.
        title = "share of rows that buy a sensor (%)"
        ax.set_title(title, loc="right", fontsize="medium")
        self.texts_, self.colorbar_ = [], None
        if cells.size <= WRITTEN:
            self.texts_ = [
                [self._write(share, column, row) for column, share in enumerate(line)]
                for row, line in enumerate(cells)
            ]
        else:
            self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax, label="share")
        return self

    def _sensor_names(self) -> list[str]:
        """Names of the sensors with their prices."""
        money, unit = money_format(self.sensors.costs), self.unit and f" {self.unit}"
        return [
            f"{shortened(name, NAMED)} ({money(price)}{unit})"
            for name, price in zip(self.sensors.names, self.sensors.costs, strict=True)
        ]

    def _write(self, share: float, column: int, row: int) -> Any:
        """Write a share in its cell, light on dark colours and dark on light ones."""
        words, colour = "–", {}  # a class without rows has no colour behind it
        if not np.isnan(share):
            red, green, blue, _ = self.image_.cmap(self.image_.norm(share))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            words, colour = _rounded(share), {"color": "white" if dark else "black"}
        return self.ax_.text(
            column, row, words, ha="center", va="center", fontsize="small", **colour
        )


def _means(weight: Array, acquired: NDArray[np.bool_]) -> Array:
    """Mean of each column by each line of weights; NaN where the weights are all 0."""
    total = weight.sum(axis=1, keepdims=True)
    means = np.full((len(weight), acquired.shape[1]), np.nan)
    np.divide(weight @ acquired, total, out=means, where=total > 0)
    return means


def _rounded(share: float) -> str:
    """Percent without decimals; a few rows are not written as none, nor most as all."""
    if 0 < share < 0.01:
        return "< 1"
    if 0.99 < share < 1:
        return "> 99"
    return f"{100 * share:.0f}"


def _literal(names: list[str]) -> list[str]:
    """Names in which a dollar sign is only a dollar sign."""
    return [name.replace("$", r"\$") for name in names]
