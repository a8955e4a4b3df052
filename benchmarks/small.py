"""What a default fit does where there is little to learn: noise, and small tables.

    python -m benchmarks.small noise           is anything bought where nothing tells?
    python -m benchmarks.small risk            test risk on random splits of pima and heart

Noise is 300 rows of five sensors of cost 1 that say nothing about the class, at a cost
weight of .01. Pima and heart come from $SENSORTREE_DATA; rows with missing values are left
out, 70 % of the rows are learned from. To compare two versions of the library, run it with
PYTHONPATH set to each.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from experiments.data import path_of
from sensortree import SensorTreeClassifier

COST_WEIGHTS = {"pima": (0.001, 0.003, 0.01), "heart_cleveland": (0.0003, 0.001, 0.003)}


def noise(n_sets: int) -> str:
    """In how many sets of noise anything is bought, and for how much in the mean."""
    costs = []
    for seed in range(1000, 1000 + n_sets):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
        model = SensorTreeClassifier(cost_weight=0.01).fit(X, y)
        costs.append(model.acquisition_cost(X).mean())
    bought = int((np.array(costs) > 0).sum())
    return f"bought in {bought} of {n_sets} sets, mean cost {np.mean(costs):.3f}"


def risk(name: str, cost_weight: float, n_splits: int) -> str:
    """Mean test risk over random splits, with its standard error."""
    with np.load(path_of(name)) as arrays:
        X, y = arrays["X"].astype(float), arrays["y"]
        owner, names = arrays["sensor_of_feature"], arrays["sensor_names"].tolist()
        costs = dict(zip(names, arrays["sensor_costs"].tolist(), strict=True))
    complete = np.isfinite(X).all(axis=1)
    X, y = X[complete], y[complete]
    sensors = {s: np.flatnonzero(owner == j).tolist() for j, s in enumerate(names)}
    risks = []
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, [int(0.7 * len(y))])
        model = SensorTreeClassifier(sensors, costs=costs, cost_weight=cost_weight)
        model.fit(X[train], y[train])
        wrong = model.predict(X[test]) != y[test]
        cost = model.acquisition_cost(X[test])
        risks.append(float(np.mean(wrong + cost_weight * cost)))
    error = np.std(risks) / np.sqrt(n_splits)
    return f"{name} at {cost_weight}: test risk {np.mean(risks):.4f} ± {error:.4f}"


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["noise", "risk"])
    parser.add_argument("--sets", type=int, default=100, help="sets of noise")
    parser.add_argument("--splits", type=int, default=10, help="splits of a table")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "noise":
        print(noise(arguments.sets))
        return
    for name, weights in COST_WEIGHTS.items():
        for weight in weights:
            print(risk(name, weight, arguments.splits), flush=True)


if __name__ == "__main__":
    main()
