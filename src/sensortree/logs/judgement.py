"""`LogEvaluation`, `LogComparison`: what a log says about policies, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sensortree.logs.estimate import Estimate
from sensortree.logs.evaluation_text import comparison_text, evaluation_text
from sensortree.logs.support import Support
from sensortree.text import plain


@dataclass(frozen=True)
class Measured:
    """Error, loss, cost and total per row, each with its interval."""

    error: Estimate
    loss: Estimate
    cost: Estimate
    total: Estimate


@dataclass(frozen=True)
class SensorFromLog:
    """Share of rows that would acquire a sensor, and what would be spent on it per row."""

    sensor: str
    share: Estimate
    spend: Estimate


@dataclass(frozen=True)
class PlaceFromLog:
    """Share of rows that would stop at a place, and share of wrong answers there.

    `rows` is the number of rows in the log that are known to stop there.
    """

    place: str
    leaf: int
    sensors: tuple[str, ...]
    rows: int
    share: Estimate
    error: Estimate


@dataclass(frozen=True)
class Band:
    """Between what error and cost may be if the odds of stopping were otherwise.

    If what nobody recorded made the logger's odds of stopping up to `odds` times larger
    or smaller for some rows than for others that look the same (Γ). The ends have 95 %
    intervals in them.
    """

    odds: float
    error: tuple[float, float]
    loss: tuple[float, float]
    cost: tuple[float, float]
    total: tuple[float, float]


@dataclass(frozen=True)
class LogEvaluation:
    """What a policy would have cost and answered on the rows of a log.

    Attributes
    ----------
    error : Estimate
        Share of wrong answers: ``value``, ``low``, ``high`` of the 95 % interval.
    loss : Estimate
        Mean loss of the answers; without a loss matrix, the error.
    cost : Estimate
        Mean price of what a row acquires.
    total : Estimate
        ``loss + cost_weight * cost``.
    refused : str or None
        Why the log cannot tell, with the figures; all estimates are then NaN.
    support : Support
        What this rests on: complete rows, effective size, weights.
    logger : Measured
        What was bought in the log, and how wrong the answers are: those that were given,
        or the policy's with what was bought.
    difference : Measured
        The policy less the logger, row by row.
    sensors : tuple of SensorFromLog
    leaves : tuple of PlaceFromLog
    bands : tuple of Band
        The same if hidden reasons had changed the odds of stopping.
    notes : tuple of str
        What should be known beside the figures.
    has_loss : bool
    cost_weight : float
    unit : str
    """

    error: Estimate
    loss: Estimate
    cost: Estimate
    total: Estimate
    refused: str | None
    support: Support
    logger: Measured
    difference: Measured
    sensors: tuple[SensorFromLog, ...]
    leaves: tuple[PlaceFromLog, ...]
    bands: tuple[Band, ...]
    notes: tuple[str, ...]
    has_loss: bool
    cost_weight: float
    unit: str

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain numbers, strings, lists and dicts; None for NaN."""
        form: dict[str, Any] = plain(asdict(self))
        return form

    def _repr_html_(self) -> str:
        from sensortree.reports.log_page import evaluation_in_notebook

        return evaluation_in_notebook(self)

    def __str__(self) -> str:
        return evaluation_text(self)


@dataclass(frozen=True)
class LogComparison:
    """Two policies judged on the same log.

    Attributes
    ----------
    first, second : LogEvaluation
    difference : Measured
        The first less the second, row by row: below 0, the first has less.
    refused : str or None
        Why the log cannot tell about one of them.
    """

    first: LogEvaluation
    second: LogEvaluation
    difference: Measured
    refused: str | None

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain numbers, strings, lists and dicts; None for NaN."""
        form: dict[str, Any] = plain(asdict(self))
        return form

    def _repr_html_(self) -> str:
        from sensortree.reports.log_page import comparison_in_notebook

        return comparison_in_notebook(self)

    def __str__(self) -> str:
        return comparison_text(self)
