"""`LogDisplay`: policies judged from a log, error against cost, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sensortree.display.tradeoff import new_figure
from sensortree.exceptions import DataError
from sensortree.text import listed

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
