"""Held-out and test risk of default fits at four cost weights, to compare versions by.

    python -m benchmarks.risks                all data sets
    python -m benchmarks.risks pima heart     some
    python -m benchmarks.risks --leaf logistic2

Sensors as the files group them, columns of cost 1 for Forest; the official split, or five
at random. A cost weight is given by the error that buying everything is worth. The
held-out risk is what the model says of itself, corrected for its having been chosen, and
a dash where nothing was compared. To compare two versions of the library, run it with
PYTHONPATH set to each. Seconds are of one thread, for all weights and splits together.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

from experiments.data import by_column, first_rows, load
from sensortree import SensorTreeClassifier

SETS = ("pima", "heart", "segment", "landsat", "letter", "forest")
WORTH = (1.0, 0.5, 0.2, 0.1)
FOREST_ROWS = 12_000


def lines(name: str, leaf: str | None) -> list[str]:
    """A line for each cost weight."""
    data = load(name)
    if name == "forest":
        data = first_rows(by_column(data), FOREST_ROWS)
    everything = data.X.shape[1] if data.costs is None else data.everything
    weights = [worth / everything for worth in WORTH]
    parameters: dict[str, Any] = {} if leaf is None else {"classifier": leaf}
    risks: list[list[Any]] = [[] for _ in weights]
    spent: list[list[Any]] = [[] for _ in weights]
    said: list[list[float]] = [[] for _ in weights]
    started = time.process_time()
    for train, test in data.splits:
        model = SensorTreeClassifier(data.sensors, costs=data.costs, **parameters)
        models = model.fit_path(data.X[train], data.y[train], weights)
        for k, fitted in enumerate(models):
            cost = fitted.acquisition_cost(data.X[test])
            wrong = fitted.predict(data.X[test]) != data.y[test]
            risks[k].append(wrong + weights[k] * cost)
            spent[k].append(cost)
            score = fitted.about_.held_out
            said[k].append(np.nan if score is None else score.risk)
    seconds = time.process_time() - started
    found = []
    for worth, risk, cost, held in zip(WORTH, risks, spent, said, strict=True):
        each = np.concatenate(risk)
        # Rows of several splits are the same rows: the error is that of one split.
        error = each.std() / len(risk[0]) ** 0.5
        share = np.concatenate(cost).mean() / everything
        shown = "-" if np.isnan(held).any() else f"{np.mean(held):.4f}"
        found.append(
            f"| {name} | {worth:g} | {shown} | {each.mean():.4f} ± {error:.4f} | "
            f"{share:.3f} | {seconds:.1f} |"
        )
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", choices=[*SETS, []])
    parser.add_argument("--leaf")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = (
        "everything is worth",
        "held-out risk",
        "test risk",
        "share of cost",
        "s, all",
    )
    print(f"| data | {' | '.join(heads)} |")
    print("|---" * (1 + len(heads)) + "|")
    for name in arguments.sets or SETS:
        print("\n".join(lines(name, arguments.leaf)), flush=True)


if __name__ == "__main__":
    main()
