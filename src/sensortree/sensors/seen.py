"""`Seen`: what training saw of a column; `Unseen`: what it never saw, in rows to come.

One rule wherever values are read. Unseen is a text that training never had; a number that
is farther outside the range of training than twice that range (`MARGIN`), unless the range
is empty; and a gap in a column without gaps in training. Only what was bought is checked.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError, UnseenWarning
from sensortree.sensors.loss import weighted_quantile
from sensortree.sensors.sensor import SensorSet
from sensortree.sensors.table import (
    MISSING,
    Kind,
    NotNumberError,
    as_numbers,
    as_text,
    is_missing,
)
from sensortree.types import Array, Rows

# How far beyond the least and the largest number of training another may be: so many times
# the distance between these two.
MARGIN = 2.0
# Levels of a text beyond which none is remembered, and none is missed.
MOST_LEVELS = 1_000
# Findings that a message names.
NAMED = 5


@dataclass(frozen=True)
class Seen:
    """What training saw of one column."""

    missing: float = 1.0  # share of the rows that had no value
    # Least number, median and largest; None of text, and of what is never there.
    low: float | None = None
    middle: float | None = None
    high: float | None = None
    # Texts in their order; None of numbers, and of more than 1,000 texts.
    levels: tuple[Any, ...] | None = None

    @property
    def reach(self) -> tuple[float, float]:
        """Numbers between these are as in training, or not far from it."""
        if self.low is None or self.high is None or self.low == self.high:
            return -np.inf, np.inf
        margin = MARGIN * (self.high - self.low)
        return self.low - margin, self.high + margin

    def __str__(self) -> str:
        if self.levels is not None:
            shown = ", ".join(map(repr, self.levels[:8]))
            held = shown + (", ..." if len(self.levels) > 8 else "")
        elif self.low is not None:
            held = f"{self.low:g} to {self.high:g}"
        else:
            held = "text" if self.missing < 1 else "nothing"
        return held + (f", missing in {self.missing:.0%}" if self.missing else "")


@dataclass(frozen=True)
class Unseen:
    """What training never saw of one column, and the rows that have it."""

    sensor: str
    column: str
    # A text never seen, a number far from those seen, nothing where always was something.
    what: Literal["level", "range", "missing"]
    row: int | None  # the first such row; None of one example
    value: Any  # its value; None if it is missing
    n_rows: int
    seen: Seen  # what training saw

    def __str__(self) -> str:
        where = f"column {self.column!r} of sensor {self.sensor!r}"
        if self.row is not None:
            where = f"row {self.row}, {where}"
        if self.what == "missing":
            message = f"no value in {where}, which training never missed"
        else:
            shown = repr(self.value) if self.what == "level" else f"{self.value:g}"
            message = f"{shown} in {where}; training had {self.seen}"
        return message + (f" ({self.n_rows:,} such rows)" if self.n_rows > 1 else "")


def seen_in(column: NDArray[Any], kind: Kind, sample_weight: Array | None) -> Seen:
    """What there is to be seen in a column of training rows."""
    if kind == "number":
        numbers = as_numbers(column)
        there = numbers[np.isfinite(numbers)]
        if not there.size:
            return Seen()
        return Seen(
            float(np.isnan(numbers).mean()),
            float(there.min()),
            median(numbers, sample_weight),
            float(there.max()),
        )
    values = as_text(column)
    missing = np.asarray(values != values, dtype=bool)
    levels = in_order(set(values[~missing].tolist()))
    remembered = tuple(levels) if len(levels) <= MOST_LEVELS else None
    return Seen(float(missing.mean()), levels=remembered)


def median(column: Array, sample_weight: Array | None) -> float:
    """The least value that half of the weight does not exceed; NaN if there is none."""
    there = ~np.isnan(column)
    values = column[there]
    if not values.size:
        return MISSING
    weight = np.ones(len(column)) if sample_weight is None else sample_weight
    return weighted_quantile(values, weight[there], 0.5)


def in_order(levels: Any) -> list[Any]:
    """Numbers, then text, each in their order; what is missing last."""
    return sorted(
        levels,
        key=lambda v: (is_missing(v), isinstance(v, str), 0 if is_missing(v) else v),
    )


def find_unseen(
    columns: Sequence[NDArray[Any]],
    seen: Sequence[Seen],
    sensors: SensorSet,
    sensor: int,
    rows: Rows | None,
) -> list[Unseen]:
    """What training never saw in the columns of a sensor.

    Rows are called by the numbers `rows`; None of one example.
    """
    found = []
    names = [sensors.column_names[at] for at in sensors.columns[sensor]]
    for column, name, before in zip(columns, names, seen, strict=True):
        if before.levels is not None:
            odd = _odd_levels(column, before.levels)
        elif before.low is not None:
            odd = _odd_numbers(column, before.reach)
        else:
            continue
        for what, (at, value) in odd.items():
            if not at.size or (what == "missing" and before.missing):
                continue
            found.append(
                Unseen(
                    sensors.names[sensor],
                    name,
                    what,
                    None if rows is None else int(rows[at[0]]),
                    value,
                    len(at),
                    before,
                )
            )
    return found


Odd = dict[Literal["level", "range", "missing"], tuple[Rows, Any]]


def _odd_levels(column: NDArray[Any], levels: tuple[Any, ...]) -> Odd:
    """Rows of a text whose level is none of these, and where there is none."""
    values = as_text(column).tolist()
    odd = set(values).difference(levels)
    if not odd:
        return {}
    new = np.array([i for i, v in enumerate(values) if v in odd and v == v], np.intp)
    missing = np.array([i for i, v in enumerate(values) if v != v], np.intp)
    return {
        "level": (new, values[new[0]] if new.size else None),
        "missing": (missing, None),
    }


def _odd_numbers(column: NDArray[Any], reach: tuple[float, float]) -> Odd:
    """Rows of numbers that are out of reach, and where there is none."""
    try:
        values = as_numbers(column)
    except NotNumberError:  # for a transformer to refuse or to understand
        return {}
    low, high = reach
    if ((values >= low) & (values <= high)).all():
        return {}
    far = np.flatnonzero((values < low) | (values > high))
    return {
        "range": (far, float(values[far[0]]) if far.size else None),
        "missing": (np.flatnonzero(np.isnan(values)), None),
    }


def merge_unseen(found: Iterable[Unseen]) -> tuple[Unseen, ...]:
    """One finding for each column and what is odd about it, in the order of first rows."""
    together: dict[tuple[str, str, str], Unseen] = {}
    for one in found:
        key = one.sensor, one.column, one.what
        other = together.get(key)
        if other is None:
            together[key] = one
            continue
        first = min(other, one, key=_place)
        together[key] = replace(first, n_rows=one.n_rows + other.n_rows)
    return tuple(sorted(together.values(), key=_place))


def _place(one: Unseen) -> int:
    return -1 if one.row is None else one.row


def warn_unseen(found: Sequence[Unseen], strict: bool) -> None:
    """Warn of what training never saw, all at once; refuse it if strict."""
    if not found:
        return
    findings = merge_unseen(found)
    named = "; ".join(map(str, findings[:NAMED]))
    if len(findings) > NAMED:
        named += f"; and {len(findings) - NAMED} more columns"
    if strict:
        raise DataError(
            f"values that training never saw: {named}. Correct them, or have them answered "
            f"all the same: set_strict(False), or no --strict."
        )
    warnings.warn(
        f"values that training never saw: {named}. The answers are guesses there; correct "
        f"the values, or have them refused: set_strict(), or --strict.",
        UnseenWarning,
        stacklevel=_outside(),
    )


def _outside() -> int:
    """How many calls up the first line stands that is not ours."""
    # The outermost frame has none behind it, which ends the loop; mypy thinks it may not.
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(
        "sensortree."
    ):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]  # the last has no f_back
    return level
