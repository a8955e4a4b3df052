"""`levels_of`: which columns that a transform gives are the levels of one category."""

from __future__ import annotations

from typing import Any

from sensortree.sensors.encoders import OneHot
from sensortree.sensors.transforms import InTurn, SideBySide

# Positions of the columns of each category; in a row at most one of them is 1.
Levels = tuple[tuple[int, ...], ...]


def levels_of(transform: Any) -> Levels:
    """Positions of the columns that come out for each category, a column a level.

    Examples
    --------
    >>> from sensortree.sensors.levels import levels_of
    >>> from sensortree.sensors.encoders import OneHot
    >>> from sensortree.sensors.transforms import Passthrough, SideBySide
    >>> smoking = OneHot((("former", "never", "now"),), (None,), ignore_unknown=True)
    >>> levels_of(SideBySide(2, (((0,), Passthrough(1)), ((1,), smoking))))
    ((1, 2, 3),)
    """
    if isinstance(transform, InTurn):
        return levels_of(transform.steps[-1])
    if isinstance(transform, OneHot):
        made = list(enumerate(transform.sources))
        return tuple(
            tuple(at for at, source in made if source == column)
            for column in range(transform.n_columns)
        )
    found: list[tuple[int, ...]] = []
    if isinstance(transform, SideBySide):
        start = 0
        for _, part in transform.parts:
            found += [tuple(start + at for at in each) for each in levels_of(part)]
            start += part.width
    return tuple(found)
