"""Shared toys: the paper's figure, a six-sample data set, the data folder."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import sklearn.ensemble  # noqa: F401  # with its pools of threads
from hypothesis import settings
from threadpoolctl import threadpool_limits

from sensortree import Leaf, Node, SensorTree

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("fixed")

# Our calls keep pools at one thread by themselves (test_one_thread.py); tests also reach
# into rooms below these calls, where two busy pools on few cores would wait for each other.
threadpool_limits(1)


@pytest.fixture
def figure_tree() -> SensorTree:
    """The tree of the paper's figure (label fig:tree)."""
    return SensorTree(
        Node(
            ["1"],
            Node(["1", "2"], Leaf(["1", "2"]), Leaf(["1", "2", "3"])),
            Node(["1", "3"], Leaf(["1", "3"]), Leaf(["1", "2", "3"])),
        )
    )


@pytest.fixture
def two_sensors():
    """400 examples; the cheap sensor decides unless its first value is near 0.

    Its second value is the size of the first, so that a linear decision can see that.
    """
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 4))
    X[:, 1] = np.abs(X[:, 0])
    near = X[:, 1] < 0.5
    y = np.where(np.where(near, X[:, 2] + X[:, 3], X[:, 0]) > 0, "yes", "no")
    return X, y, {"cheap": [0, 1], "dear": [2, 3]}, {"cheap": 1.0, "dear": 9.0}


def data_folder() -> Path | None:
    """Where the real data lies: $SENSORTREE_DATA, or beside the checkout."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SENSORTREE_DATA") or beside)
    return folder if (folder / "letter.npz").is_file() else None


@pytest.fixture
def real_data():
    """Load one of the real data sets, or skip with a line that says why."""
    folder = data_folder()
    if folder is None:
        pytest.skip(
            "no real data: SENSORTREE_DATA does not name a folder with letter.npz"
        )

    def load(name: str):
        with np.load(folder / f"{name}.npz") as arrays:
            return {key: arrays[key] for key in arrays}

    return load
