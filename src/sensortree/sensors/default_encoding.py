"""`fit_default_encoding`: numbers and text as numbers, where a sensor has no transformer.

Numbers stay as they are. Where some were missing in training, missing ones become the
median, and another column says where they were. Text has one column for each level that is
in at least `FEWEST` rows and in one of `SHARE`, at most the `MOST` most frequent; other
levels, and those never seen, share one more column if there were such in training. Missing
text is a level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.sensors.loss import weighted_quantile
from sensortree.sensors.table import (
    MANY_LEVELS,
    MISSING,
    Kind,
    as_numbers,
    as_text,
    columns_of,
    is_missing,
)
from sensortree.sensors.transforms import (
    Imputer,
    InTurn,
    OneHot,
    Passthrough,
    SideBySide,
    Transform,
    Typed,
)
from sensortree.types import Array

# Rows that a level of a text must be in, and one in how many of all, to have a column.
FEWEST, SHARE = 5, 200
# Levels of a text that have a column each, at most.
MOST = MANY_LEVELS


def fit_default_encoding(
    X: Any, kinds: Sequence[Kind | None], sample_weight: Array | None, keeps_nan: bool
) -> Transform | None:
    """Give the transform of a sensor's columns `X`; None if they are numbers as they are.

    `keeps_nan` says whether the leaf classifiers take a missing number as NaN.
    """
    columns = columns_of(X)
    number_at = tuple(i for i, kind in enumerate(kinds) if kind == "number")
    text_at = tuple(i for i, kind in enumerate(kinds) if kind == "text")
    numbers = [as_numbers(columns[i], i) for i in number_at]
    gaps = any(np.isnan(column).any() for column in numbers)
    if not text_at and (keeps_nan or not gaps):
        return None
    filled: Transform = Passthrough(len(number_at))
    if not keeps_nan:
        filled = _imputer(numbers, sample_weight)
    if not text_at:
        return filled
    parts: list[tuple[tuple[int, ...], Transform]] = []
    if number_at:
        parts.append((number_at, filled))
    parts.append((text_at, _one_hot([as_text(columns[i]) for i in text_at])))
    typed = Typed(tuple(kind == "text" for kind in kinds))
    return InTurn((typed, SideBySide(len(kinds), tuple(parts))))


def _imputer(columns: Sequence[Array], sample_weight: Array | None) -> Imputer:
    """Fills gaps with the median, and marks them in a column of their own."""
    missing = [np.isnan(column) for column in columns]
    empty = np.array([gaps.all() for gaps in missing], dtype=bool)
    some = np.array([gaps.any() for gaps in missing], dtype=bool)
    fill = [median(column, sample_weight) for column in columns]
    return Imputer(np.where(empty, 0.0, fill), ~empty, np.flatnonzero(some & ~empty))


def median(column: Array, sample_weight: Array | None) -> float:
    """The least value that half of the weight does not exceed; NaN if there is none."""
    there = ~np.isnan(column)
    values = column[there]
    if not values.size:
        return MISSING
    weight = np.ones(len(column)) if sample_weight is None else sample_weight
    return weighted_quantile(values, weight[there], 0.5)


def _one_hot(columns: Sequence[NDArray[Any]]) -> OneHot:
    """Columns for frequent levels, and one for the others."""
    levels, rare = [], []
    for column in columns:
        counts = Counter(MISSING if is_missing(v) else v for v in column.tolist())
        found = in_order(counts)
        least = max(FEWEST, -(-len(column) // SHARE))
        frequent = [level for level in found if counts[level] >= least]
        # Sorting is stable: of levels that are as frequent, the first in order are kept.
        kept = sorted(frequent, key=lambda level: -counts[level])[:MOST]
        own = {id(level) for level in kept}
        levels.append(tuple(found))
        rare.append(tuple(i for i, level in enumerate(found) if id(level) not in own))
    none = (None,) * len(columns)
    if not any(rare):
        return OneHot(tuple(levels), none, ignore_unknown=True)
    return OneHot(tuple(levels), none, True, tuple(rare), unknown_is_rare=True)


def in_order(levels: Any) -> list[Any]:
    """Numbers, then text, each in their order; what is missing last."""
    return sorted(
        levels,
        key=lambda v: (is_missing(v), isinstance(v, str), 0 if is_missing(v) else v),
    )
