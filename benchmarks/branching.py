"""The default beside the chain, where a sensor may tell which others matter.

    python -m benchmarks.branching                 all problems
    python -m benchmarks.branching context --cost-weight 0.03

Default settings but for the cost weight. Error, mean cost and risk on test rows, and the
seconds of one thread for the fit.
"""

from __future__ import annotations

import argparse
import time
import warnings

from experiments.data import by_column, load
from sensortree import SensorTreeClassifier

COST_WEIGHTS = {
    "context": (0.012, 0.016, 0.02, 0.03, 0.09),
    "no-context": (0.01, 0.012, 0.03),
    "digits": (0.01,),
}
STRUCTURES = ("auto", "chain")


def line(name: str, cost_weight: float, structure: str) -> str:
    """One fit."""
    data = by_column(load(name)) if name == "digits" else load(name)
    ((train, test),) = data.splits
    model = SensorTreeClassifier(
        data.sensors,
        costs=data.costs,
        cost_weight=cost_weight,
        structure=structure,
    )
    started = time.process_time()
    model.fit(data.X[train], data.y[train])
    seconds = time.process_time() - started
    error = (model.predict(data.X[test]) != data.y[test]).mean()
    cost = model.acquisition_cost(data.X[test]).mean()
    taken = shown(structure, model)
    return (
        f"| {name} | {cost_weight:g} | {taken} | {model.tree_.n_leaves} | "
        f"{error:.4f} | {cost:.3f} | {error + cost_weight * cost:.4f} | {seconds:.1f} |"
    )


def shown(structure: str, model: SensorTreeClassifier) -> str:
    """The structure, and what "auto" took."""
    taken = model.structure_report_.structure
    return structure if taken == structure else f"{structure} ({taken})"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", choices=[*COST_WEIGHTS, []])
    parser.add_argument("--cost-weight", type=float)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| problem | cost weight | structure | leaves | error | cost | risk | s |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.problems or COST_WEIGHTS:
        weights = arguments.cost_weight
        for weight in COST_WEIGHTS[name] if weights is None else (weights,):
            for structure in STRUCTURES:
                print(line(name, weight, structure), flush=True)


if __name__ == "__main__":
    main()
