"""Error against cost, drawn: `TradeoffDisplay` of curves, `LogDisplay` of judgements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sensortree.exceptions import DataError
from sensortree.reports.chart import COLOURS, Chart, Series
from sensortree.reports.drawing import new_figure
from sensortree.sensors.loss import METRICS
from sensortree.text import listed
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.reports.tradeoff import Choice, TradeoffCurve

Curve = tuple[Array, Array, Array | None]

MARKERS = "osD^vP"
LINES = (":", "--", "-.")


class TradeoffDisplay:
    """Accuracy against mean cost, a curve or a single point per method.

    Parameters
    ----------
    curves : mapping of label to (mean_cost, accuracy) or (mean_cost, accuracy, error)
        Arrays of one length, or single numbers; `error` is the standard error of the
        accuracy, drawn as a bar on both sides.
    annotations : mapping of label to sequence of str, default=None
        Words to put beside the points of a curve, one for each.
    unit : str, default=""
        What a cost is counted in, for the axis.
    measure : str, default="accuracy"
        What stands on the vertical axis.
    cost_errors : mapping of label to array-like, default=None
        Standard errors of the mean costs, drawn as bars to both sides.
    chosen : mapping of label to int, default=None
        The point of a curve that was picked, drawn with a ring around it.
    ends : mapping of label to (mean_cost, accuracy), default=None
        Policies to compare with, such as buying everything: a thin grey line at the
        accuracy of each.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where `plot` drew.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    curves_ : dict of label to matplotlib ErrorbarContainer
        The drawn curves.
    annotations_ : list of matplotlib Text
        The drawn words.
    chosen_ : dict of label to matplotlib Line2D
        The drawn rings.
    ends_ : dict of label to matplotlib Line2D
        The drawn grey lines.

    Examples
    --------
    >>> from sensortree import TradeoffDisplay
    >>> display = TradeoffDisplay(
    ...     {"tree": ([4, 85], [0.75, 0.81], [0.02, 0.02]), "everything": (324, 0.84)},
    ...     unit="dollars")
    >>> display.curves["everything"]
    (array([324.]), array([0.84]), None)
    """

    def __init__(
        self,
        curves: Mapping[str, Sequence[Any]],
        *,
        annotations: Mapping[str, Sequence[str]] | None = None,
        unit: str = "",
        measure: str = "accuracy",
        cost_errors: Mapping[str, Any] | None = None,
        chosen: Mapping[str, int] | None = None,
        ends: Mapping[str, tuple[float, float]] | None = None,
    ):
        self.curves = {
            label: _as_curve(label, given) for label, given in curves.items()
        }
        self.annotations = dict(annotations or {})
        self.unit, self.measure = unit, measure
        self.cost_errors = {
            label: np.asarray(errors, dtype=np.float64)
            for label, errors in (cost_errors or {}).items()
        }
        self.chosen, self.ends = dict(chosen or {}), dict(ends or {})
        known = ", ".join(map(repr, self.curves))
        for label, words in self.annotations.items():
            if label not in self.curves:
                raise DataError(
                    f"annotations names {label!r}, which is not a curve; the curves are "
                    f"{known}."
                )
            n_points = len(self.curves[label][0])
            if len(words) != n_points:
                raise DataError(
                    f"curve {label!r} has {n_points} points and {len(words)} annotations; "
                    f"give one word for each point."
                )
        for label, index in self.chosen.items():
            if label not in self.curves or not 0 <= index < len(self.curves[label][0]):
                raise DataError(
                    f"chosen names point {index} of {label!r}, which no curve has; the "
                    f"curves are {known}."
                )

    def __repr__(self) -> str:
        return f"TradeoffDisplay({', '.join(self.curves)})"

    @classmethod
    def from_curve(
        cls,
        curve: TradeoffCurve | Mapping[str, TradeoffCurve],
        *,
        chosen: Choice | Mapping[str, Choice] | None = None,
        ends: bool = True,
        unit: str | None = None,
        metric: str | None = None,
    ) -> TradeoffDisplay:
        """Show measured curves, with standard errors of cost and accuracy.

        Parameters
        ----------
        curve : TradeoffCurve, or mapping of label to TradeoffCurve
            The first one's `nothing` and `everything` are the grey lines.
        chosen : Choice, or mapping of label to Choice, default=None
            What was picked from a curve, such as `chosen_` of `SensorTreeClassifierCV`.
        ends : bool, default=True
            Whether the grey lines are drawn.
        unit : str, default=None
            What a cost is counted in; by default what the curve says.
        metric : str, default=None
            One of the curve's `metrics` to show, without standard errors; by default what
            was minimised, or the accuracy if that was the error.

        Returns
        -------
        display : TradeoffDisplay
            Not drawn yet.

        Examples
        --------
        >>> from sensortree.results import TradeoffCurve
        >>> from sensortree import TradeoffDisplay
        >>> curve = TradeoffCurve.from_points([(1, 0.4), (2, 0.3)], [0.9, 0.3])
        >>> display = TradeoffDisplay.from_curve(curve, chosen=curve.choose(budget=1))
        >>> display.chosen
        {'sensor tree': 0}
        """
        curves = curve if isinstance(curve, Mapping) else {"sensor tree": curve}
        picked = {} if chosen is None else chosen
        if not isinstance(picked, Mapping):
            picked = {next(iter(curves)): picked}
        measures = {one.measure for one in curves.values()}
        if metric is None and len(measures) != 1:
            raise DataError(
                f"curves of {listed(sorted(measures))} cannot be drawn together; draw "
                f"those of one kind."
            )
        first = next(iter(curves.values()))
        by_error = first.measure == "error"

        def shown(error: Any) -> Any:
            return 1.0 - error if by_error else error

        drawn: dict[str, Sequence[Any]] = {
            label: (one.mean_cost, shown(one.error), one.error_se)
            if metric is None
            else (one.mean_cost, one.metric(metric))
            for label, one in curves.items()
        }
        named = {}
        for name, end in (("nothing", first.nothing), ("everything", first.everything)):
            if end is not None and ends:
                height = shown(end[1])
                if metric is not None:
                    height = first.end_metrics.get(name, {}).get(metric, np.nan)
                if not np.isnan(height):
                    named[f"buy {name}"] = end[0], float(height)
        measure = "accuracy" if by_error else f"mean {first.measure.replace('_', '-')}"
        return cls(
            drawn,
            unit=first.unit if unit is None else unit,
            measure=measure if metric is None else METRICS.get(metric, metric),
            cost_errors={label: one.cost_se for label, one in curves.items()},
            chosen={label: choice.index for label, choice in picked.items()},
            ends=named,
        )

    @classmethod
    def from_estimator(
        cls, model: Any, *, ends: bool = True, unit: str | None = None
    ) -> TradeoffDisplay:
        """Show the curves that models were picked from, and the points picked.

        Parameters
        ----------
        model : fitted SensorTreeClassifierCV, or mapping of label to such
        ends, unit
            As in `from_curve`.

        Returns
        -------
        display : TradeoffDisplay
            Not drawn yet.
        """
        models = model if isinstance(model, Mapping) else {"sensor tree": model}
        return cls.from_curve(
            {label: one.curve_ for label, one in models.items()},
            chosen={label: one.chosen_ for label, one in models.items()},
            ends=ends,
            unit=unit,
        )

    def to_svg(self) -> str:
        """Draw the curves as the text of an SVG picture, without matplotlib.

        Returns
        -------
        svg : str
            Its letters have the colour of the page's text; annotations are left out.
        """
        series = []
        for i, (label, (cost, height, error)) in enumerate(self.curves.items()):
            bar = 0.0 if error is None else np.nan_to_num(error)
            ends, colour = (height - bar, height + bar), COLOURS[i % len(COLOURS)]
            ring = self.chosen.get(label)
            series.append(Series(label, cost, height, *ends, colour, ring=ring))
        return Chart(series, self.measure, self.unit, self.ends).to_svg()

    def plot(self, ax: Any = None) -> TradeoffDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        self
        """
        if ax is None:
            ax = new_figure(7.2, 4.6).add_subplot()
            ax.figure.set_layout_engine("constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.curves_ = {
            label: ax.errorbar(
                *curve[:2],
                yerr=curve[2],
                xerr=self.cost_errors.get(label),
                label=label,
                color=COLOURS[i % len(COLOURS)],
                marker=MARKERS[i % len(MARKERS)],
                linestyle="-" if len(curve[0]) > 1 else "none",
                elinewidth=0.8,
                capsize=2.5,
            )
            for i, (label, curve) in enumerate(self.curves.items())
        }
        of = f" ({self.unit})" if self.unit else ""
        ax.set_xlabel(f"mean cost of the sensors bought for an example{of}")
        ax.set_ylabel(self.measure)
        self.chosen_ = {
            label: self._ring(ax, label, index) for label, index in self.chosen.items()
        }
        self.ends_ = {
            label: ax.axhline(
                end[1],
                color="0.45",
                linewidth=1.0,
                linestyle=LINES[i % len(LINES)],
                label=f"{label} ({end[0]:.4g})",
                zorder=0,
            )
            for i, (label, end) in enumerate(self.ends.items())
        }
        ax.grid(alpha=0.25)
        ax.margins(x=0.07, y=0.12)
        self._legend(ax)
        self.annotations_ = self._annotate(ax)
        return self

    def _legend(self, ax: Any) -> None:
        """Name the curves first, then what was picked, then the lines."""
        ours = [*self.curves_.values(), *self.chosen_.values(), *self.ends_.values()]
        others = [h for h in ax.get_legend_handles_labels()[0] if h not in ours]
        ax.legend(handles=[*ours, *others], fontsize="small")

    def _ring(self, ax: Any, label: str, index: int) -> Any:
        """Draw a ring around the point of a curve that was picked."""
        cost, height, _ = self.curves[label]
        (ring,) = ax.plot(
            cost[index],
            height[index],
            marker="o",
            markersize=14,
            markerfacecolor="none",
            markeredgecolor=self.curves_[label].lines[0].get_color(),
            markeredgewidth=1.6,
            linestyle="none",
            label=f"chosen: {self.measure} {height[index]:.3g} for {cost[index]:.3g}",
        )
        return ring

    def _annotate(self, ax: Any) -> list[Any]:
        """Put each word beside its point, where it covers nothing drawn before."""
        self.figure_.draw_without_rendering()  # fixes where the axes and the legend are
        taken = [ax.get_legend().get_window_extent()]
        for curve in self.curves.values():
            taken += [_bar(ax, *point) for point in _points(curve)]
        drawn = []
        for label, words in self.annotations.items():
            colour = self.curves_[label].lines[0].get_color()
            for point, word in zip(_points(self.curves[label]), words, strict=True):
                text = ax.annotate(
                    word,
                    point[:2],
                    (0, 0),
                    textcoords="offset points",
                    fontsize="x-small",
                    color=colour,
                    parse_math=False,
                )
                _place(text, *point, taken)
                taken.append(text.get_window_extent())
                drawn.append(text)
        return drawn


def _as_curve(label: str, given: Sequence[Any]) -> Curve:
    """Bring a curve to arrays of one length."""
    if len(given) not in (2, 3):
        raise DataError(
            f"curve {label!r} has {len(given)} parts; give (mean_cost, accuracy) or "
            f"(mean_cost, accuracy, error)."
        )
    arrays = [np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in given]
    if len({array.shape for array in arrays}) > 1 or arrays[0].ndim > 1:
        raise DataError(
            f"the parts of curve {label!r} have shapes "
            f"{', '.join(str(array.shape) for array in arrays)}; give one number per "
            f"point in each."
        )
    return arrays[0], arrays[1], arrays[2] if len(arrays) == 3 else None


def _points(curve: Curve) -> Iterator[tuple[float, float, float]]:
    """Points of a curve: cost, accuracy, half the length of the bar."""
    cost, accuracy, error = curve
    bars = np.zeros_like(cost) if error is None else np.nan_to_num(error)
    yield from zip(cost, accuracy, bars, strict=True)


def _bar(ax: Any, cost: float, accuracy: float, bar: float) -> Any:
    """Box around a point's marker and bar, in pixels."""
    from matplotlib.transforms import Bbox

    ends = ((cost, accuracy - bar), (cost, accuracy + bar))
    return Bbox(ax.transData.transform(ends)).padded(0.04 * ax.figure.dpi)


def _place(
    text: Any, cost: float, accuracy: float, bar: float, taken: Sequence[Any]
) -> None:
    """Move a text around its point to the first spot that covers nothing taken."""
    for along, ha in ((0, "center"), (1, "left"), (-1, "right")):
        for distance in (5, 9, 14):  # points
            for side, va in ((1, "bottom"), (-1, "top")):
                text.set(ha=ha, va=va)
                text.xy = (cost, accuracy + side * bar)
                text.xyann = (along * distance, side * distance)
                here = text.get_window_extent()
                if not any(here.overlaps(box) for box in taken):
                    return


LOGGER = "the log itself"


class LogDisplay:
    """Error and cost of policies by a log, each with its 95 % interval.

    Parameters
    ----------
    names : sequence of str
    error, cost : array-like of shape (n_policies, 3)
        Value, and ends of the interval.
    refused : sequence of str, default=()
        Policies of which the log cannot tell.
    unit : str, default=""
        What a price is counted in.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where `plot` drew.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    crosses_ : list of matplotlib ErrorbarContainer
        One for each policy.

    Examples
    --------
    >>> from sensortree import LogDisplay
    >>> display = LogDisplay(["old", "new"], [[0.2, 0.18, 0.22], [0.1, 0.07, 0.13]],
    ...                      [[3.0, 2.9, 3.1], [4.0, 3.8, 4.2]], refused=["dear"])
    >>> display
    LogDisplay(2 policies, 1 refused)

    Then ``display.plot()`` draws it.
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        names: Sequence[str],
        error: ArrayLike,
        cost: ArrayLike,
        *,
        refused: Sequence[str] = (),
        unit: str = "",
    ):
        self.names, self.refused, self.unit = list(names), list(refused), unit
        self.error = np.asarray(error, dtype=np.float64).reshape(-1, 3)
        self.cost = np.asarray(cost, dtype=np.float64).reshape(-1, 3)
        if not len(self.names) == len(self.error) == len(self.cost):
            raise DataError(
                f"there are {len(self.names)} names, {len(self.error)} errors and "
                f"{len(self.cost)} costs; give one of each for every policy."
            )

    def __repr__(self) -> str:
        return f"LogDisplay({len(self.names)} policies, {len(self.refused)} refused)"

    @classmethod
    def from_evaluations(
        cls, evaluations: Mapping[str, Any], *, logger: str | None = LOGGER
    ) -> LogDisplay:
        """Collect what a log says about policies.

        Parameters
        ----------
        evaluations : mapping of str to LogEvaluation
            By the policy's name; of the same log.
        logger : str or None, default="the log itself"
            Name of what was bought in the log, as the first of them has it; None to
            leave it out.

        Returns
        -------
        display : LogDisplay
            Not drawn yet; call its `plot`.
        """
        if not evaluations:
            raise DataError("there is no evaluation; give one or more, by name.")
        first = next(iter(evaluations.values()))
        told = {name: found for name, found in evaluations.items() if not found.refused}
        beside = {**({} if logger is None else {logger: first.logger}), **told}

        def ends(measure: str) -> list[list[float]]:
            each = [getattr(found, measure) for found in beside.values()]
            return [[one.value, one.low, one.high] for one in each]

        return cls(
            list(beside),
            ends("error"),
            ends("cost"),
            refused=[name for name in evaluations if name not in told],
            unit=first.unit,
        )

    def plot(self, ax: Any = None) -> LogDisplay:
        """Draw a cross for each policy, as wide and high as its intervals.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; by default a new figure.

        Returns
        -------
        self
        """
        ax = new_figure(6.4, 4.0).add_subplot() if ax is None else ax
        self.ax_, self.figure_, self.crosses_ = ax, ax.figure, []
        for name, error, cost in zip(self.names, self.error, self.cost, strict=True):
            cross = ax.errorbar(
                cost[0],
                error[0],
                xerr=np.abs(cost[1:] - cost[0])[:, None],
                yerr=np.abs(error[1:] - error[0])[:, None],
                fmt="o",
                label=name.replace("$", r"\$"),
            )
            self.crosses_.append(cross)
        unit = self.unit and f" ({self.unit})"
        ax.set(xlabel=f"mean cost{unit}".replace("$", r"\$"), ylabel="error")
        if self.refused:
            said = f"the log cannot tell of {listed(self.refused)}"
            ax.set_title(said.replace("$", r"\$"), fontsize="medium", loc="left")
        if self.names:
            ax.legend()
        return self
