"""Which data, which sensors at what price, which splits."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
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
# Bytes and SHA-256 of each file that the results were measured on.
CHECKSUMS = {
    "letter.npz": (
        256_226,
        "c9d1e9c0db21b8bab65487b71c6f668bc0ff18b668c7104e7c8af3aa5f0dda1a",
    ),
    "satimage.npz": (
        113_475,
        "452f89765ab403f1d85345f29e1f770227d0764a5d53140df0bcc1d0a7223a8e",
    ),
    "segment.npz": (
        95_475,
        "2e756d897b02b5877010cb42d86f9321132c5f424e684ddc7828a7f77e54660a",
    ),
    "covtype.npz": (
        6_642_544,
        "c7eaed9b5a789fd2697b35dc81f31afa0eb0263a1b090cda56ddf32702f540cc",
    ),
    "sun_attributes.npz": (
        519_418,
        "1cfd034c9dc737779af775c29dfea8e4bf27081631947cc86e123556cc504e63",
    ),
    "pima.npz": (
        12_309,
        "0878d6eb4202188ca877a4fde3a5d0fe024782cec1b1442ca709da6224dab745",
    ),
    "bupa.npz": (
        5_311,
        "703de9b7970b5b75b51c27f9b8abe880c07f9b3375ee91aa30be3bbc0bca6d59",
    ),
    "heart_cleveland.npz": (
        6_941,
        "ebc71b26f8610d0bea073cb9755382457e3c27841ff458fc0e4f751102201ec0",
    ),
    "turney_costs.csv": (
        811,
        "3657fb288e7643230b9cc6ad483d6379bf5353b2ac3176009f403f68e17b786d",
    ),
    "MiniBooNE_PID.txt": (
        91_174_877,
        "577ab8bcb612199a0386cef1725058295df9a18b778a003a6a4349bbd51abd48",
    ),
}


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


class MissingFileError(SystemExit):
    """A data file is not there; the message says which one is meant, to the byte."""


def path_of(file: str) -> Path:
    """Where a file of the folder SENSORTREE_DATA is; it is the one that was measured."""
    folder = Path(os.environ.get("SENSORTREE_DATA", ROOT.parent / "shared" / "data"))
    path = folder / (file if "." in file else f"{file}.npz")
    if not path.exists():
        size, digest = CHECKSUMS.get(path.name, (None, None))
        known = f" ({size} bytes, SHA-256 {digest})" if digest else ""
        raise MissingFileError(
            f"{path.name}{known} is not in {folder}; put it there, or set "
            f"SENSORTREE_DATA to the folder that has it."
        )
    check_file(path)
    return path


@lru_cache
def check_file(path: Path) -> None:
    """Exit unless a file with a known checksum has it."""
    if path.name not in CHECKSUMS:
        return
    size, digest = CHECKSUMS[path.name]
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != digest:
        raise SystemExit(
            f"{path} is not the file that was measured: it has {path.stat().st_size} bytes "
            f"and SHA-256 {found}, expected {size} bytes and SHA-256 {digest}; get it "
            f"again, results on another file cannot be compared."
        )
