"""Trees that branch, beside "auto", where a sensor may tell which others matter.

    python -m benchmarks.branching                 all problems, quadratic leaves
    python -m benchmarks.branching context --cost-weight 0.03

Error, mean cost and risk on test rows, and the seconds of one thread for the fit.
"""

from __future__ import annotations

import argparse
import time
import warnings

from threadpoolctl import threadpool_limits

from experiments.data import by_column, load
from sensortree import SensorTreeClassifier

COST_WEIGHTS = {"context": 0.012, "no-context": 0.012, "digits": 0.01}
LEAVES = {"branched": 96, "auto": 16}


def line(name: str, cost_weight: float, structure: str) -> str:
    """One fit."""
    data = by_column(load(name)) if name == "digits" else load(name)
    ((train, test),) = data.splits
    model = SensorTreeClassifier(
        data.sensors,
        costs=data.costs,
        cost_weight=cost_weight,
        structure=structure,
        n_leaves=LEAVES[structure],
        classifier="logistic2",
    )
    started = time.process_time()
    model.fit(data.X[train], data.y[train])
    seconds = time.process_time() - started
    error = (model.predict(data.X[test]) != data.y[test]).mean()
    cost = model.acquisition_cost(data.X[test]).mean()
    return (
        f"| {name} | {cost_weight:g} | {structure} | {model.tree_.n_leaves} | "
        f"{error:.4f} | {cost:.3f} | {error + cost_weight * cost:.4f} | {seconds:.1f} |"
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", choices=[*COST_WEIGHTS, []])
    parser.add_argument("--cost-weight", type=float)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| problem | cost weight | structure | leaves | error | cost | risk | s |")
    print("|---|---|---|---|---|---|---|---|")
    with threadpool_limits(1):
        for name in arguments.problems or COST_WEIGHTS:
            for structure in LEAVES:
                weight = arguments.cost_weight or COST_WEIGHTS[name]
                print(line(name, weight, structure), flush=True)


if __name__ == "__main__":
    main()
