"""What is reproduced: data, stages and splits of each problem, by name.

Of few sensors, with cost 1 per sensor and the first stage of the paper known at the root:
landsat, letter, pima, segment (five random splits), segment-official, sun (another task
than the paper's). Of many features, with cost 1 each: forest and forest-7 (both readings of
the label), miniboone, cifar.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import forest
import numpy as np
from datasets import Dataset, load, path_of
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedShuffleSplit

Rows = NDArray[np.intp]
QUICK_ROWS = 400
N_SPLITS = 5


@dataclass(frozen=True)
class Problem:
    """Few sensors: rows, stages, splits and the tree they are compared on.

    Attributes
    ----------
    data : Dataset
        Its sensors are in the order of the stages; the first one is known at the root.
    splits : list of (train, test)
    structure : {"exhaustive", "greedy"}
        The tree of the paper's methods.
    n_leaves : int
    """

    data: Dataset
    splits: list[tuple[Rows, Rows]]
    structure: str
    n_leaves: int

    @property
    def everything(self) -> float:
        """What all sensors cost together."""
        return self.data.cost(frozenset(self.data.sensors))


@dataclass(frozen=True)
class Wide:
    """Many features of cost 1: training and test rows with their classes."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


SMALL = ("pima", "segment", "segment-official", "landsat", "sun", "letter")
WIDE = ("forest", "forest-7", "miniboone", "cifar")
LABELS = {"forest": "binary", "forest-7": "7 classes"}


@lru_cache(maxsize=2)
def problem(name: str, quick: bool = False, openml: bool = False) -> Problem:
    """Read a problem of few sensors."""
    file = name.removesuffix("-official")
    data = from_openml(file) if openml else sun() if file == "sun" else load(file)
    data = replace(data, costs=dict.fromkeys(data.sensors, 1.0))
    if name == "segment":
        data = replace(data, official=np.full_like(data.official, -1))
    splits = random_splits(data) if (data.official < 0).all() else list(data.splits())
    if quick:
        splits = [(_few(train), _few(test)) for train, test in splits[:1]]
    greedy = len(data.sensors) > 4
    return Problem(
        data, splits, "greedy" if greedy else "exhaustive", 8 if greedy else 16
    )


def random_splits(data: Dataset) -> list[tuple[Rows, Rows]]:
    """Five splits with 30 % for testing, by seed 0."""
    splitter = StratifiedShuffleSplit(N_SPLITS, test_size=0.3, random_state=0)
    return list(splitter.split(data.X, data.y))


def _few(rows: Rows) -> Rows:
    order = np.random.default_rng(0).permutation(len(rows))
    return rows[np.sort(order[:QUICK_ROWS])]


def sun() -> Dataset:
    """Indoor or outdoor, by the name of the scene: not the paper's 16 classes."""
    with np.load(path_of("sun_attributes")) as file:
        kind, names = file["indoor_outdoor"], file["sensor_names"].tolist()
        X, owner = file["X"].astype(np.float64), file["sensor_of_feature"]
    known = kind >= 0
    sensors = {n: np.flatnonzero(owner == s).tolist() for s, n in enumerate(names)}
    return Dataset(
        "sun",
        X[known],
        kind[known].astype(np.int64),
        sensors,
        dict.fromkeys(names, 1.0),
        np.full(int(known.sum()), -1, dtype=np.int8),
    )


@lru_cache(maxsize=1)
def wide(name: str, quick: bool = False) -> Wide:
    """Read a problem of many features."""
    if name in LABELS:
        rows = Wide(*forest.rows_of(LABELS[name]))
    else:
        rows = {"miniboone": miniboone, "cifar": cifar}[name]()
    if quick:
        few = slice(QUICK_ROWS)
        return Wide(rows.X[few], rows.y[few], rows.X_test[few], rows.y_test[few])
    return rows


def miniboone() -> Wide:
    """All 130,064 rows, 45,523 for training and 65,031 for testing, by seed 0."""
    path = path_of("MiniBooNE_PID.txt")
    with path.open(encoding="ascii") as file:
        n_signal = int(file.readline().split()[0])
    X = np.loadtxt(path, skiprows=1)
    y = (np.arange(len(X)) >= n_signal).astype(np.int64)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:45_523], order[45_523 + 19_510 :]
    return Wide(X[train], y[train], X[test], y[test])


def cifar() -> Wide:
    """400 learned features of Kusner et al., as a file of the usual form."""
    with np.load(path_of("cifar")) as file:
        X, y, split = file["X"].astype(np.float64), file["y"], file["split"]
    return Wide(X[split == 0], y[split == 0], X[split == 1], y[split == 1])


# What a file would have to be that nobody here has.
WANTED: dict[str, str] = {
    "miniboone": "It is the original text file of the UCI repository.",
    "cifar": (
        "Wanted are the 400 Coates-Ng features of Kusner et al. (2014), 19,761 rows for "
        "training (split 0) and 10,000 for testing (split 1), first five classes (0) "
        "against last five (1), as arrays X, y, split; no copy was found, so no "
        "checksum is known."
    ),
}

# name and version on OpenML; columns of each stage; rows of the official training set.
OPENML: dict[str, tuple[str, int, dict[str, list[int]], int | None]] = {
    "letter": (
        "letter",
        1,
        {
            "pixel_count": [0, 1, 2, 3, 4],
            "moments": [5, 6, 7, 8, 9, 10, 11],
            "edge_features": [12, 13, 14, 15],
        },
        16_000,
    ),
    "landsat": (
        "satimage",
        1,
        {f"band_{b + 1}": list(range(b, 36, 4)) for b in range(4)},
        None,
    ),
    "pima": (
        "diabetes",
        1,
        {
            "history_exam": [0, 2, 3, 5, 6, 7],
            "glucose_tolerance": [1],
            "insulin": [4],
        },
        None,
    ),
    "segment": (
        "segment",
        1,
        {
            "location": [0, 1, 2],
            "pixel_intensity": [9],
            "colour": [10, 11, 12],
            "excess_colour": [13, 14, 15],
            "hsv": [16, 17, 18],
            "line_density": [3, 4],
            "edges": [5, 6, 7, 8],
        },
        None,
    ),
}


def from_openml(name: str, fetch: Callable[..., Any] | None = None) -> Dataset:
    """Fetch a data set from OpenML; without its official split, except letter."""
    if name not in OPENML:
        raise SystemExit(
            f"{name} is not fetched from OpenML; those that are: {', '.join(OPENML)}."
        )
    if fetch is None:
        from sklearn.datasets import fetch_openml as fetch
    title, version, sensors, n_train = OPENML[name]
    X, labels = fetch(
        title, version=version, return_X_y=True, as_frame=False, parser="liac-arff"
    )
    width = 1 + max(c for columns in sensors.values() for c in columns)
    if X.shape[1] != width:
        raise SystemExit(
            f"{title} (version {version}) on OpenML has {X.shape[1]} columns, expected "
            f"{width}; its stages cannot be told."
        )
    official = np.full(len(X), -1, dtype=np.int8)
    if n_train is not None:
        official[:n_train], official[n_train:] = 0, 1
    y = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    costs = dict.fromkeys(sensors, 1.0)
    return Dataset(name, X.astype(np.float64), y, sensors, costs, official)
