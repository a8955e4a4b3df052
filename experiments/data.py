"""Which data: rows, sensors at a price, splits. A set is a function and a line of `DATA`.

`load` gives a set as its file has it; `at_cost_one`, `by_column`, `by_test`,
`split_at_random`, `first_rows`, `training_rows` and `few` give it in another guise.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split

from sensortree import Sensor

ROOT = Path(__file__).resolve().parent.parent
Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]  # for training, for testing
N_RANDOM_SPLITS = 5
QUICK_ROWS = 400


@dataclass(frozen=True)
class Dataset:
    """Rows, classes, sensors and splits.

    Attributes
    ----------
    name : str
    X : array of shape (n_rows, n_columns)
    y : array of shape (n_rows,)
    splits : list of (train, test)
        The official split, or random ones.
    sensors : dict or None
        As estimators take it: columns by name, `Sensor` by name, or None for columns that
        are sensors of cost 1.
    costs : dict or None
        Prices, where `sensors` has none.
    official : bool
        Whether the split is the publishers'.
    validation : array or None
        Rows that are in no split.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    splits: list[Split]
    sensors: dict[str, Any] | None = None
    costs: dict[str, float] | None = None
    official: bool = False
    validation: Rows | None = None

    @property
    def first_sensor(self) -> str:
        """The sensor known at the root: the cheapest, of equals the first."""
        return min(self.prices, key=self.prices.__getitem__)

    @property
    def prices(self) -> dict[str, float]:
        """Price of each sensor of a set that has its columns and prices apart."""
        if self.costs is None:
            raise ValueError(f"the sensors of {self.name} have no prices beside them.")
        return self.costs

    @property
    def everything(self) -> float:
        """What all sensors cost together."""
        return sum(self.prices.values())

    def columns(self, subset: frozenset[str]) -> list[int]:
        """Columns of a subset of sensors."""
        sensors = self.sensors or {}
        return [c for s, columns in sensors.items() if s in subset for c in columns]

    def cost(self, subset: frozenset[str]) -> float:
        """Price of a subset of sensors."""
        return sum(price for s, price in self.prices.items() if s in subset)

    def rows(self, split: int = 0) -> tuple[Any, Any, Any, Any]:
        """Training rows and classes, test rows and classes of a split."""
        train, test = self.splits[split]
        return self.X[train], self.y[train], self.X[test], self.y[test]


@lru_cache(maxsize=2)
def load(name: str) -> Dataset:
    """Read a set; rows with missing values go."""
    return replace(DATA[name](), name=name)


# the same set in another guise --------------------------------------------------------


def at_cost_one(data: Dataset) -> Dataset:
    """Each sensor at cost 1."""
    return replace(data, costs=dict.fromkeys(data.sensors or (), 1.0))


def by_column(data: Dataset) -> Dataset:
    """Each column a sensor of cost 1."""
    return replace(data, sensors=None, costs=None)


def by_test(data: Dataset) -> Dataset:
    """Every medical test a sensor, at Turney's prices, in the order of the columns."""
    known = {"heart": "heart_cleveland"}.get(data.name, data.name)
    with path_of("turney_costs.csv").open(encoding="utf-8", newline="") as file:
        tests = [test for test in csv.DictReader(file) if test["dataset"] == known]
    sensors = {
        test["test"]: Sensor(
            [column],
            cost=float(test["cost"]),
            group=test["group"] or None,
            discounted_cost=float(test["discount_cost"]) if test["group"] else None,
        )
        for column, test in enumerate(tests)
    }
    return replace(data, sensors=sensors, costs=None)


def split_at_random(
    data: Dataset, n_splits: int = N_RANDOM_SPLITS, **sizes: float
) -> Dataset:
    """Random splits by seed 0, 30 % for testing unless sizes are given."""
    splits = random_splits(data.X, data.y, n_splits, **sizes)
    return replace(data, splits=splits, official=False)


def random_splits(X: Any, y: Any, n_splits: int, **sizes: float) -> list[Split]:
    """Random splits by seed 0, 30 % for testing unless sizes are given."""
    sizes = sizes or {"test_size": 0.3}
    splitter = StratifiedShuffleSplit(n_splits, random_state=0, **sizes)
    return list(splitter.split(X, y))


def training_rows(data: Dataset) -> Dataset:
    """The training rows of the first split alone, not split."""
    X, y, *_ = data.rows()
    return replace(data, X=X, y=y, splits=[], official=False)


def first_rows(data: Dataset, n_train: int) -> Dataset:
    """The first rows for training, all for testing."""
    return replace(
        data, splits=[(train[:n_train], test) for train, test in data.splits]
    )


def few(data: Dataset) -> Dataset:
    """One split of a few hundred rows, for a quick run."""
    return replace(
        data, splits=[(_few(train), _few(test)) for train, test in data.splits[:1]]
    )


def _few(rows: Rows) -> Rows:
    order = np.random.default_rng(0).permutation(len(rows))
    return rows[np.sort(order[:QUICK_ROWS])]


# every set ----------------------------------------------------------------------------


def with_stages(file: str) -> Dataset:
    """A file with sensors of several columns, and prices."""
    X, y, split = arrays_of(file, "X", "y", "split")
    X = X.astype(np.float64)
    complete = ~np.isnan(X).any(axis=1)
    X, y, split = X[complete], y[complete], split[complete]
    official = bool((split >= 0).any())
    splits = (
        [(np.flatnonzero(split == 0), np.flatnonzero(split == 1))]
        if official
        else random_splits(X, y, N_RANDOM_SPLITS)
    )
    return Dataset(file, X, y, splits, *stages_of(file), official)


def stages_of(file: str) -> tuple[dict[str, list[int]], dict[str, float]]:
    """Columns of each sensor of a file, and its price."""
    owner, names, prices = arrays_of(
        file, "sensor_of_feature", "sensor_names", "sensor_costs"
    )
    sensors = {
        n: np.flatnonzero(owner == s).tolist() for s, n in enumerate(names.tolist())
    }
    return sensors, dict(zip(sensors, prices.tolist(), strict=True))


def sun() -> Dataset:
    """Indoor or outdoor, by the name of the scene: not the paper's 16 classes."""
    X, kind = arrays_of("sun_attributes", "X", "indoor_outdoor")
    known = kind >= 0
    X, y = X[known].astype(np.float64), kind[known].astype(np.int64)
    splits = random_splits(X, y, N_RANDOM_SPLITS)
    return Dataset("sun", X, y, splits, *stages_of("sun_attributes"))


def forest(binary: bool = True) -> Dataset:
    """36,603 / 58,101 rows, and 15,688 for validation, drawn at random by seed 0.

    So many as in the publications, which do not say which. Nor do they say whether there
    are seven classes, or class 2 against the rest.
    """
    X, y = arrays_of("covtype", "X", "y")
    train, valid, test = 36_603, 15_688, 58_101
    rows = np.random.default_rng(0).permutation(len(y))[: train + valid + test]
    y = (y[rows] == 1).astype(int) if binary else y[rows]
    order = np.arange(len(rows))
    split = (order[:train], order[train + valid :])
    return Dataset(
        "forest",
        X[rows].astype(np.float64),
        y,
        [split],
        validation=order[train : train + valid],
    )


def physionet() -> Dataset:
    """12,000 stays in intensive care, 40 % for testing; gaps are the mean of training."""
    X, y = arrays_of("physionet", "X", "y")
    train, test = train_test_split(np.arange(len(y)), test_size=0.4, random_state=0)
    X = X.astype(np.float64)
    X = np.where(np.isnan(X), np.nanmean(X[train], axis=0), X)
    return Dataset("physionet", X, y, [(train, test)], *stages_of("physionet"))


def digits() -> Dataset:
    """Scikit-learn's digits, 30 % for testing."""
    X, y = load_digits(return_X_y=True)
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0)
    return Dataset("digits", X, y, [(train, test)])


def context(n_states: int = 5, seed: int = 0) -> Dataset:
    """A sensor that tells where to look: 6,000 rows for training, 10,000 for testing.

    Eight classes. Each state has a block of ten sensors; only in the block of the present
    state do the sensors (class + j) mod 10, j = 0, 1, 2, hold the j-th bit of the class.
    The sensor "context" tells the state, and nothing of the class. Without states there
    are two blocks, and the first is the one that tells. Every sensor costs 1.
    """
    rng = np.random.default_rng(seed)
    n, blocks = 16_000, n_states or 2
    each, y = np.arange(n), rng.integers(0, 8, n)
    state = rng.integers(0, n_states, n) if n_states else np.zeros(n, dtype=int)
    X = rng.normal(0.5, 0.3, (n, 10 * blocks))
    for j in range(3):
        X[each, 10 * state + (y + j) % 10] = (y >> j & 1) + rng.normal(0, 0.1, n)
    names = [f"b{j // 10}_{j % 10}" for j in range(X.shape[1])]
    sensors = {name: [n_states + j] for j, name in enumerate(names)}
    if n_states:
        told = np.eye(n_states)[state] + rng.normal(0, 0.1, (n, n_states))
        X = np.hstack([told, X])
        sensors = {"context": list(range(n_states)), **sensors}
    return Dataset(
        "context" if n_states else "no-context",
        X,
        y,
        [(each[:6_000], each[6_000:])],
        sensors,
        dict.fromkeys(sensors, 1.0),
    )


def miniboone() -> Dataset:
    """All 130,064 rows, 45,523 for training and 65,031 for testing, by seed 0."""
    path = path_of("MiniBooNE_PID.txt")
    with path.open(encoding="ascii") as file:
        n_signal = int(file.readline().split()[0])
    X = np.loadtxt(path, skiprows=1)
    y = (np.arange(len(X)) >= n_signal).astype(np.int64)
    order = np.random.default_rng(0).permutation(len(X))
    return Dataset("miniboone", X, y, [(order[:45_523], order[45_523 + 19_510 :])])


def cifar() -> Dataset:
    """400 learned features of Kusner et al., as a file of the usual form."""
    X, y, split = arrays_of("cifar", "X", "y", "split")
    official = (np.flatnonzero(split == 0), np.flatnonzero(split == 1))
    return Dataset("cifar", X.astype(np.float64), y, [official], official=True)


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
    X, y = X.astype(np.float64), np.unique(labels, return_inverse=True)[1]
    rows, costs = np.arange(len(X)), dict.fromkeys(sensors, 1.0)
    if n_train is None:
        splits = random_splits(X, y, N_RANDOM_SPLITS)
        return Dataset(name, X, y, splits, sensors, costs)
    split = (rows[:n_train], rows[n_train:])
    return Dataset(name, X, y, [split], sensors, costs, official=True)


DATA: dict[str, Callable[[], Dataset]] = {
    "landsat": partial(with_stages, "satimage"),
    "letter": partial(with_stages, "letter"),
    "pima": partial(with_stages, "pima"),
    "heart": partial(with_stages, "heart_cleveland"),
    "bupa": partial(with_stages, "bupa"),
    "segment": partial(with_stages, "segment"),
    "sun": sun,
    "physionet": physionet,
    "digits": digits,
    "context": context,
    "no-context": partial(context, n_states=0),
    "forest": forest,
    "forest-7": partial(forest, binary=False),
    "miniboone": miniboone,
    "cifar": cifar,
    **{f"{name}-openml": partial(from_openml, name) for name in OPENML},
}


# files --------------------------------------------------------------------------------

# Bytes and SHA-256 of each file that the results were measured on.
CHECKSUMS = {
    "physionet.npz": (
        819_978,
        "e06e24d8547adaa48d5d91542aa8178a47813593ff6af3a5c5d9dc13e05b8271",
    ),
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
# What a file would have to be that nobody here has.
WANTED = {
    "MiniBooNE_PID.txt": "It is the original text file of the UCI repository.",
    "cifar.npz": (
        "Wanted are the 400 Coates-Ng features of Kusner et al. (2014), 19,761 rows for "
        "training (split 0) and 10,000 for testing (split 1), first five classes (0) "
        "against last five (1), as arrays X, y, split; no copy was found, so no "
        "checksum is known."
    ),
}


def arrays_of(file: str, *names: str) -> list[NDArray[Any]]:
    """Arrays of a file of the folder SENSORTREE_DATA."""
    with np.load(path_of(file)) as arrays:
        return [arrays[name] for name in names]


class MissingFileError(SystemExit):
    """A data file is not there; the message says which one is meant, to the byte."""


def path_of(file: str) -> Path:
    """Where a file of the folder SENSORTREE_DATA is; it is the one that was measured."""
    folder = Path(os.environ.get("SENSORTREE_DATA", ROOT.parent / "shared" / "data"))
    path = folder / (file if "." in file else f"{file}.npz")
    if not path.exists():
        size, digest = CHECKSUMS.get(path.name, (None, None))
        known = f" ({size} bytes, SHA-256 {digest})" if digest else ""
        wanted = f" {WANTED[path.name]}" if path.name in WANTED else ""
        raise MissingFileError(
            f"{path.name}{known} is not in {folder}; put it there, or set "
            f"SENSORTREE_DATA to the folder that has it.{wanted}"
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
