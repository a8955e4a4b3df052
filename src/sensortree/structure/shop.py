"""`Shop`: what a tree that branches learns from, and what may be bought at its vertices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sensortree.structure.algorithm1 import Subset
from sensortree.structure.gram import GramScreen
from sensortree.types import Array


@dataclass(frozen=True)
class Breadth:
    """What one more purchase must add to those of a vertex: the less, the wider the tree.

    Attributes
    ----------
    errors : float
        Standard errors of what it adds.
    share : float
        Share of their worth. Where each of many states asks for a sensor of its own, what
        one of them adds is little.
    """

    errors: float
    share: float = 0.0


WIDE = Breadth(4.0)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Purchases that were looked at closely at a vertex, and what they bring its rows.

    Attributes
    ----------
    options : list of n_options frozensets
    gains : ndarray of shape (n_rows, n_options)
    worth : ndarray of shape (n_rows, n_options)
        The gains as can be known in advance.
    """

    options: list[Subset]
    gains: Array
    worth: Array


@dataclass(frozen=True, eq=False)
class Shop:
    """What growth learns from, and what may be bought.

    Attributes
    ----------
    screen : GramScreen
        What subsets of sensors could predict.
    n_sensors : int
    price : callable
        Price of an extended subset when a subset is known, in the unit of the loss: a
        number, or one for each example.
    extend : callable
        What is known after buying one more sensor, with what it needs; None if it may not
        be bought.
    weight : ndarray of shape (n_samples,)
    stake : ndarray of shape (n_samples,)
        What it costs to mistake an example.
    out_of_time : callable
        Whether growth must end with what it has.
    breadth : Breadth
        What one more purchase must add to the worth of a vertex.
    weighed : dict
        What was found at vertices so far, by what is known and who comes by; shops that
        differ in nothing but `breadth` may have it in common.
    """

    screen: GramScreen
    n_sensors: int
    price: Callable[[Subset, Subset], Any]
    extend: Callable[[Subset, int], Subset | None]
    weight: Array
    stake: Array
    out_of_time: Callable[[], bool] = lambda: False
    breadth: Breadth = WIDE
    weighed: dict[tuple[Subset, bytes], Weighed | None] = field(default_factory=dict)

    @cached_property
    def telling(self) -> Array:
        """How much more others say beside each sensor than without it, (n_sensors,)."""
        return np.asarray(self.screen.synergies().max(axis=1))

    def purchases(self, known: Subset) -> list[Subset]:
        """What may be known after one more purchase."""
        others = (j for j in range(self.n_sensors) if j not in known)
        extended = (self.extend(known, j) for j in others)
        return list(dict.fromkeys(more for more in extended if more is not None))
