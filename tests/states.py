"""A problem of states: a sensor that tells which others matter, and what growth learns."""

from __future__ import annotations

import numpy as np

from sensortree import Sensor
from sensortree.structure.branching import GrowthData
from sensortree.structure.losses import GramScreen


def where_to_look(n: int, n_states: int = 3, seed: int = 0):
    """The state says nothing about the class, but which of the sensors shows it."""
    rng = np.random.default_rng(seed)
    state, y = rng.integers(0, n_states, n), rng.integers(0, 2, n)
    told = np.eye(n_states)[state] + rng.normal(0, 0.1, (n, n_states))
    shown = rng.normal(0, 1, (n, n_states))
    shown[np.arange(n), state] = 2.0 * y - 1 + rng.normal(0, 0.3, n)
    sensors = {
        "state": Sensor(list(range(n_states)), cost=1.0),
        **{f"s{j}": Sensor([n_states + j], cost=1.0) for j in range(n_states)},
    }
    return np.hstack([told, shown]), y, sensors


def growth_data(X, y, price: float = 0.01, weight=None) -> GrowthData:
    weight = np.ones(len(y)) if weight is None else weight
    blocks = [X[:, j : j + 1] for j in range(X.shape[1])]
    screen = GramScreen(blocks, np.eye(int(y.max()) + 1)[y], weight)
    return GrowthData(
        screen,
        lambda more, known: price * len(more - known),
        lambda known, j: known | {j},
        weight,
        np.ones(len(y)),
    )
