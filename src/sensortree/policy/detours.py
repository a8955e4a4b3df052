"""`Detours`: where examples go from where a sensor that cannot be had holds them up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from sensortree.policy.decisions import DecisionFunction
from sensortree.policy.flow import Flow
from sensortree.tree.tree import SensorTree

# Where an example turns that is held up before the root, and one that is not held up.
START, NOWHERE = -1, -2


@dataclass(frozen=True, eq=False)
class Detour:
    """A tree without one sensor, for the examples that the sensor's absence holds up.

    Attributes
    ----------
    tree : SensorTree
        It buys neither the sensor nor what comes after it. What an example knows when it
        comes here costs nothing more.
    decisions : tuple of DecisionFunction
        One per node.
    flow : Flow
        Where the training examples that are held up went in it.
    usual_loss : float
        Mean loss of the same examples where they go with the sensor.
    """

    tree: SensorTree
    decisions: tuple[DecisionFunction, ...]
    flow: Flow
    usual_loss: float


@dataclass(frozen=True, eq=False)
class Detours:
    """Detours around single sensors, with the classifiers that the policy has not.

    Attributes
    ----------
    around : mapping of sensor to Detour
        Of the sensors that are best done without on a way of their own; without others an
        example takes the best leaf that it can still reach.
    classifiers : mapping of sensor subset to classifier
    """

    around: Mapping[str, Detour]
    classifiers: Mapping[frozenset[str], Any]


def turning_node(tree: SensorTree, leaf: int, sensor: str) -> int:
    """Where an example on its way to a leaf turns if a sensor cannot be had.

    It is the last node before all leaves ahead know the sensor; `START` if the root
    does, and `NOWHERE` if the leaf does not.
    """
    if sensor in tree.root.sensors:
        return START
    below = tree.path_signs != 0
    lacking = np.array([sensor not in end.sensors for end in tree.leaves])
    passed = np.flatnonzero(below[leaf]).tolist()
    for node, ahead in pairwise(passed):
        if not (below[:, ahead] & lacking).any():
            return int(node)
    return NOWHERE if lacking[leaf] else int(passed[-1])
