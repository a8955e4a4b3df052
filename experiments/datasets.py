"""Which data, which sensors at what price, which splits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedShuffleSplit

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "landsat": "satimage",
    "letter": "letter",
    "pima": "pima",
    "heart": "heart_cleveland",
}
# Known to every method before its first decision, as in the paper's experiments.
FIRST_SENSOR = {"landsat": 0, "letter": 0, "segment": 0}
N_RANDOM_SPLITS = 5


@dataclass(frozen=True)
class Dataset:
    """Rows, classes, sensors with their columns, prices and splits."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    sensors: dict[str, list[int]]
    costs: dict[str, float]
    official: NDArray[np.int8]

    @property
    def first_sensor(self) -> str:
        """The sensor known at the root: the paper's, or else the cheapest."""
        if self.name in FIRST_SENSOR:
            return list(self.sensors)[FIRST_SENSOR[self.name]]
        return min(self.sensors, key=self.costs.__getitem__)

    @property
    def structure(self) -> str:
        """Every order of buying where that is small, else the cheapest first."""
        return "exhaustive" if len(self.sensors) <= 4 else "cascade"

    def columns(self, subset: frozenset[str]) -> list[int]:
        """Columns of a subset of sensors."""
        return [
            c for s, columns in self.sensors.items() if s in subset for c in columns
        ]

    def cost(self, subset: frozenset[str]) -> float:
        """Price of a subset of sensors."""
        return sum(self.costs[s] for s in subset)

    def splits(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Official split, or five random ones with 30 % for testing."""
        if (self.official >= 0).any():
            yield np.flatnonzero(self.official == 0), np.flatnonzero(self.official == 1)
            return
        splitter = StratifiedShuffleSplit(
            N_RANDOM_SPLITS, test_size=0.3, random_state=0
        )
        yield from splitter.split(self.X, self.y)


def load(name: str) -> Dataset:
    """Read a data set with its sensors; rows with missing values go."""
    with np.load(path_of(FILES.get(name, name))) as file:
        X, y = file["X"].astype(np.float64), file["y"]
        owner, prices = file["sensor_of_feature"], file["sensor_costs"]
        names, official = file["sensor_names"].tolist(), file["split"]
    complete = ~np.isnan(X).any(axis=1)
    sensors = {n: np.flatnonzero(owner == s).tolist() for s, n in enumerate(names)}
    return Dataset(
        name,
        X[complete],
        y[complete],
        sensors,
        dict(zip(names, prices.tolist(), strict=True)),
        official[complete],
    )


def columns_of(
    file: str,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int8]]:
    """Rows, classes and official split of a file, without its sensors."""
    with np.load(path_of(file)) as arrays:
        return arrays["X"].astype(np.float64), arrays["y"], arrays["split"]


def path_of(file: str) -> Path:
    """Where a file of the folder SENSORTREE_DATA is."""
    folder = Path(os.environ.get("SENSORTREE_DATA", ROOT.parent / "shared" / "data"))
    path = folder / f"{file}.npz"
    if not path.exists():
        raise SystemExit(f"{path.name} is not in {folder}; set SENSORTREE_DATA.")
    return path
