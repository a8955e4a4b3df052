"""The paper's 95 % rule: the share of the budget at which the default reaches its target.

    python -m benchmarks.rule                      landsat and letter
    python -m benchmarks.rule letter

Default settings along the cost weights of the study `ablation`. The target is the error of
all sensors and a twentieth of the way back to that of the first, both by quadratic leaves,
as in that study; the share is of the cost between the two.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from experiments.data import load
from experiments.methods import fitted_path, tested
from experiments.studies.ablation import SHARES
from experiments.tables import curve_of, percent, rule
from sensortree import QuadraticLogisticRegression, SensorTreeClassifier

DATA = ("landsat", "letter")


def line(name: str) -> str:
    """Share of the budget at the target, and where the seconds went."""
    data = load(name)
    X, y, X_test, y_test = data.rows()
    prices = {s: float(data.costs[s]) for s in data.sensors}
    cheapest = min(prices, key=prices.__getitem__)
    everything = sum(prices.values())
    columns = {"first": list(data.sensors[cheapest])}
    columns["all"] = [c for known in data.sensors.values() for c in known]
    errors = {
        what: float(
            np.mean(
                QuadraticLogisticRegression()
                .fit(X[:, known], y)
                .predict(X_test[:, known])
                != y_test
            )
        )
        for what, known in columns.items()
    }
    model = SensorTreeClassifier(data.sensors, costs=data.costs)
    weights = [share / everything for share in SHARES]
    path, seconds = fitted_path(model, X, y, weights)
    curve = curve_of(tested(fitted, X_test, y_test) for fitted in path)
    target = rule(errors["first"], errors["all"])
    share = curve.budget_share(target, prices[cheapest], everything)
    return (
        f"| {name} | {errors['first']:.4f} | {errors['all']:.4f} | {target:.4f} | "
        f"{percent(share)} | {seconds.wall:.0f} |"
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", choices=[*DATA, []])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| data | error, first sensor | error, all | target | share of the budget | s |"
    )
    print("|---|---|---|---|---|---|")
    for name in arguments.data or DATA:
        print(line(name), flush=True)


if __name__ == "__main__":
    main()
