"""Seconds of a default fit, beside LightGBM's, and the risk on rows it has not seen.

    python -m benchmarks.fit                      all tables
    python -m benchmarks.fit clinical letter      some
    python -m benchmarks.fit --rounds 3           the least of several fits
    python -m benchmarks.fit --leaf boosted       another leaf classifier
    python -m benchmarks.fit --report clinical    seconds by stage
    python -m benchmarks.fit --profile clinical   where the time goes, by function
    python -m benchmarks.fit --growth             growth with rows, sensors and classes

Seven tables are made up, so that nothing has to be fetched; landsat, letter and forest come
from $SENSORTREE_DATA. Seconds are of one process, by its own clock, so that other jobs on
the machine do not count; LightGBM is told to take one thread, as our calls do by
themselves. To compare two versions of the library, run it with PYTHONPATH set to each;
everything else is the same. LightGBM is fitted with its lazy
feature penalties (CEGB), the method that users would take instead.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from experiments.data import path_of
from sensortree import Sensor, SensorTreeClassifier

TEST_ROWS = 20_000
# Rows, sensors and classes of the tables that growth is measured on.
ROWS = (1_000, 3_000, 10_000, 30_000, 100_000, 200_000)
GROWTH = (
    *((n_rows, 20, 2) for n_rows in ROWS),
    *((3_000, n_sensors, 2) for n_sensors in (5, 10, 40, 80)),
    *((3_000, 20, n_classes) for n_classes in (4, 8, 16)),
)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to learn from and to test on, sensors, and the price of an error."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    sensors: dict[str, Sensor]
    cost_weight: float

    def lightgbm_seconds(self, tradeoff: float = 1e-4) -> float:
        """Time LightGBM with lazy penalties, the prices as shares of their sum."""
        from lightgbm import LGBMClassifier

        prices = np.zeros(self.X.shape[1])
        for sensor in self.sensors.values():
            prices[sensor.columns] = sensor.cost
        total = sum(float(sensor.cost) for sensor in self.sensors.values())
        model = LGBMClassifier(
            cegb_tradeoff=tradeoff,
            cegb_penalty_feature_lazy=(prices / total).tolist(),
            random_state=0,
            n_jobs=1,
            verbose=-1,
        )
        started = time.process_time()
        model.fit(self.X, self.y)
        return time.process_time() - started


def clinical(n_rows: int = 600, seed: int = 0) -> Table:
    """Nine sensors of a ward: some of one number, some one-hot, some with gaps."""
    rng = np.random.default_rng(seed)
    n = n_rows + TEST_ROWS
    illness = rng.normal(size=n)
    numbers = illness[:, None] * np.linspace(0.2, 1.2, 10) + rng.normal(size=(n, 10))
    numbers[:, 5] = np.exp(numbers[:, 5])
    wards = np.digitize(illness + 1.5 * rng.normal(size=n), [-1, 0, 0.7, 1.5])
    pains = np.digitize(-illness + rng.normal(size=n), [-1, 0, 1])
    scans = np.digitize(1.3 * illness + rng.normal(size=n), [-1.2, -0.3, 0.3, 1.2])
    smoker = (0.5 * illness + rng.normal(size=n) > 0).astype(int)
    numbers[:, 3:][rng.random((n, 7)) < 0.12] = np.nan
    score = illness + 0.5 * (scans > 2) * smoker + 0.3 * (wards == 1)
    y = (score + 0.4 * rng.normal(size=n) > 0.3).astype(int)
    X = np.column_stack([numbers, wards, pains, scans, smoker]).astype(float)

    def filled() -> Any:
        return SimpleImputer(add_indicator=True)

    def categories() -> Any:
        return make_pipeline(
            SimpleImputer(strategy="most_frequent"),
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        )

    sensors = {
        "history": Sensor([0, 1, 2], cost=1.0),
        "smoker": Sensor([13], cost=1.0),
        "ward": Sensor([10], cost=2.0, transformer=categories()),
        "pain": Sensor([11], cost=1.0, transformer=categories()),
        "blood": Sensor([3, 4], cost=7.0, transformer=filled()),
        "enzyme": Sensor([5], cost=9.0, transformer=filled()),
        "cardiogram": Sensor([6, 7], cost=15.0, transformer=filled()),
        "scan": Sensor([12], cost=40.0, transformer=categories()),
        "stress": Sensor([8, 9], cost=80.0, transformer=filled()),
    }
    return _split(X, y, n_rows, sensors, 0.002)


def columns(n_rows: int, n_columns: int, n_classes: int, seed: int = 0) -> Table:
    """Columns of cost 1; a third of them carry the class, by themselves and in pairs."""
    rng = np.random.default_rng(seed)
    n = n_rows + TEST_ROWS
    X = rng.normal(size=(n, n_columns))
    useful = n_columns // 3
    linear = rng.normal(size=(useful, n_classes))
    pairs = X[:, : useful - 1] * X[:, 1:useful]
    score = X[:, :useful] @ linear + pairs @ rng.normal(size=(useful - 1, n_classes))
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
    sensors = {f"x{j}": Sensor([j]) for j in range(n_columns)}
    return _split(X, y, n_rows, sensors, 0.01)


def thyroid(n_rows: int = 3_800, seed: int = 0) -> Table:
    """Answers for a dollar and three blood tests; thresholds on two skewed values decide.

    Of ten examples nine are healthy, whatever was answered.
    """
    rng = np.random.default_rng(seed)
    n = n_rows + TEST_ROWS
    answers = (rng.random((n, 15)) < np.linspace(0.02, 0.3, 15)).astype(float)
    age = rng.normal(52, 19, size=n).clip(1, 95)
    tsh = np.exp(rng.normal(0.4, 0.7, size=n))
    ill = rng.random(n) < 0.12
    tsh[ill] = np.exp(rng.normal(2.6, 0.9, size=ill.sum()))
    fti = np.exp(rng.normal(4.7, 0.25, size=n))
    low = ill & (rng.random(n) < 0.5)
    fti[low] = np.exp(rng.normal(3.7, 0.5, size=low.sum()))
    t4u = np.exp(rng.normal(0.0, 0.18, size=n))
    tt4 = fti * t4u * np.exp(rng.normal(0.0, 0.05, size=n))
    t3 = np.exp(rng.normal(0.7, 0.35, size=n) + 0.3 * np.log(fti / 110))
    treated = answers[:, 7] == 1  # these are well, whatever the blood says
    y = np.where(tsh > 6.1, np.where(fti < 64, 2, 1), 0)
    y[treated] = 0
    X = np.column_stack([age, answers, tsh, t3, tt4, t4u, fti])
    sensors = {
        "answers": Sensor(list(range(16)), cost=1.0),
        "TSH": Sensor([16], cost=22.78),
        "T3": Sensor([17], cost=11.41),
        "T4": Sensor([18, 19, 20], cost=25.92),
    }
    return _split(X, y, n_rows, sensors, 0.0005)


def wide(n_rows: int = 1_000, seed: int = 0) -> Table:
    """One sensor of 1,000 columns, and three of one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows + TEST_ROWS // 10, 1_003))
    y = (X[:, 0] + X[:, 5] + X[:, 1_001] > 0).astype(int)
    sensors = {"wide": Sensor(list(range(1_000)))}
    sensors |= {f"x{j}": Sensor([j]) for j in range(1_000, 1_003)}
    return _split(X, y, n_rows, sensors, 0.01)


def landsat() -> Table:
    """Four bands of nine pixels each, six classes, 4,435 rows."""
    return _from_file("satimage", 0.35)


def letter() -> Table:
    """Three groups of features, 26 classes, 16,000 rows."""
    return _from_file("letter", 0.35)


def forest(n_rows: int = 12_000, grouped: bool = False) -> Table:
    """54 columns of cost 1, or eight sensors; class 2 against the rest."""
    arrays = np.load(path_of("covtype"))
    order = np.random.default_rng(0).permutation(len(arrays["y"]))
    order = order[: n_rows + TEST_ROWS]
    X, y = arrays["X"][order].astype(float), (arrays["y"][order] == 1).astype(int)
    sensors = {f"x{j}": Sensor([j]) for j in range(X.shape[1])}
    return _split(X, y, n_rows, _grouped(arrays) if grouped else sensors, 0.005)


def _from_file(name: str, worth: float) -> Table:
    """A table with its official split; buying everything is worth this much error."""
    arrays = np.load(path_of(name))
    X, y, split = arrays["X"].astype(float), arrays["y"], arrays["split"]
    sensors = _grouped(arrays)
    train, test = split == 0, split == 1
    total = sum(float(sensor.cost) for sensor in sensors.values())
    return Table(X[train], y[train], X[test], y[test], sensors, worth / total)


def _grouped(arrays: Any) -> dict[str, Sensor]:
    """The sensors that a file groups its columns into."""
    owner, prices = arrays["sensor_of_feature"], arrays["sensor_costs"]
    return {
        str(name): Sensor(np.flatnonzero(owner == j).tolist(), cost=float(prices[j]))
        for j, name in enumerate(arrays["sensor_names"])
    }


def _split(
    X: Any, y: Any, n_rows: int, sensors: dict[str, Sensor], cost_weight: float
) -> Table:
    train, test = slice(None, n_rows), slice(n_rows, None)
    return Table(X[train], y[train], X[test], y[test], sensors, cost_weight)


TABLES: dict[str, Callable[[], Table]] = {
    "clinical": clinical,
    "3000x20": lambda: columns(3_000, 20, 2),
    "6000x20x8": lambda: columns(6_000, 20, 8),
    "50000x300": lambda: columns(50_000, 300, 2),
    "2000x1000": lambda: columns(2_000, 1_000, 2),
    "thyroid": thyroid,
    "wide": wide,
    "landsat": landsat,
    "letter": letter,
    "forest": forest,
    "forest8": lambda: forest(grouped=True),
}


def fitted(table: Table, profile: bool, leaf: str | None) -> tuple[Any, float]:
    """Fit the default once, or with another leaf, and say what it took."""
    parameters: dict[str, Any] = {} if leaf is None else {"classifier": leaf}
    model = SensorTreeClassifier(
        table.sensors, cost_weight=table.cost_weight, **parameters
    )
    profiler = cProfile.Profile()
    started = time.process_time()
    if profile:
        profiler.enable()
    model.fit(table.X, table.y)
    profiler.disable()
    seconds = time.process_time() - started
    if profile:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(60)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    return model, seconds


def line(name: str, rounds: int, profile: bool, leaf: str | None) -> tuple[str, Any]:
    """Least seconds of some rounds, LightGBM's, the risk of test rows; and a report."""
    table = TABLES[name]()
    times = []
    for _ in range(rounds):
        model, seconds = fitted(table, profile, leaf)
        times.append(seconds)
    rival = min(table.lightgbm_seconds() for _ in range(rounds))
    wrong = model.predict(table.X_test) != table.y_test
    cost = model.acquisition_cost(table.X_test)
    risk = wrong + table.cost_weight * cost
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    shown = (
        f"| {name} | {min(times):.2f} | {rival:.2f} | {min(times) / rival:.1f} | "
        f"{wrong.mean():.4f} | {cost.mean():.3f} | {risk.mean():.4f} ± "
        f"{risk.std() / len(risk) ** 0.5:.4f} | {model.structure_report_.structure}, "
        f"{model.tree_.n_leaves} leaves, {model.structure_report_.n_classifiers} judged | "
        f"{peak:.2f} |"
    )
    return shown, getattr(model, "fit_report_", "")  # older versions have none


def growth() -> None:
    """Print seconds as rows, sensors and classes grow, and the exponent in rows."""
    seconds = {}
    print(
        "| rows | sensors | classes | fit, s | exponent in rows |\n|---|---|---|---|---|"
    )
    for n_rows, n_sensors, n_classes in GROWTH:
        table = columns(n_rows, n_sensors, n_classes)
        _, seconds[n_rows, n_sensors, n_classes] = fitted(table, False, None)
        before = ROWS[max(0, ROWS.index(n_rows) - 1)] if n_rows in ROWS else n_rows
        shown = ""
        if (n_sensors, n_classes) == (20, 2) and before < n_rows:
            ratio = seconds[n_rows, 20, 2] / seconds[before, 20, 2]
            shown = f"{np.log(ratio) / np.log(n_rows / before):.2f}"
        took = seconds[n_rows, n_sensors, n_classes]
        print(
            f"| {n_rows} | {n_sensors} | {n_classes} | {took:.2f} | {shown} |",
            flush=True,
        )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--leaf")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--growth", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.growth:
        growth()
        return
    print(
        "| table | fit, s | LightGBM, s | ratio | error | cost | risk | tree | GiB |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    for name in arguments.tables or TABLES:
        shown, report = line(name, arguments.rounds, arguments.profile, arguments.leaf)
        print(shown, flush=True)
        if arguments.report:
            print(report)


if __name__ == "__main__":
    main()
