"""Which structure serves best: test risk of each, decisions learned the same way.

    python experiments/structures.py                  all data sets
    python experiments/structures.py forest digits    some

One sensor of cost 1 per column, the default leaf classifier, up to 16 leaves (8 on
segment). Lines go to docs/results/structures.jsonl, one per data set, structure and cost
weight; those that are there already are not run again.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from datasets import columns_of
from lines import FOLDER, append, read
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sensortree import SensorTreeClassifier

RESULTS = FOLDER / "structures.jsonl"
WEIGHTS = {
    "forest": (0.02, 0.01, 0.005, 0.002),
    "letter": (0.05, 0.02, 0.01, 0.005),
    "digits": (0.05, 0.02, 0.01, 0.005),
    "segment": (0.05, 0.02, 0.01, 0.005),
    "landsat": (0.05, 0.02, 0.01, 0.005),
}
STRUCTURES = ("auto", "chain", "grown", "greedy")


def rows_of(name: str) -> tuple[Any, Any, Any, Any]:
    """Training rows and classes, test rows and classes."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
        return X, y, X_test, y_test
    X, y, split = columns_of(
        {"forest": "covtype", "landsat": "satimage"}.get(name, name)
    )
    if (
        name == "forest"
    ):  # class 2 against the rest; the split of the paper was not found
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[:12_000], order[36_603 + 15_688 :][:58_101]
        y = (y == 1).astype(int)
    else:
        train, test = np.flatnonzero(split == 0), np.flatnonzero(split == 1)
        if name == "letter":
            train = train[:4_000]
    return X[train], y[train], X[test], y[test]


def lines(name: str, structure: str) -> list[dict[str, Any]]:
    """Fit along the cost weights, and test."""
    X, y, X_test, y_test = rows_of(name)
    model = SensorTreeClassifier(
        structure=structure, n_leaves=8 if name == "segment" else 16
    )
    started = time.perf_counter()
    path = model.fit_path(X, y, WEIGHTS[name])
    seconds = time.perf_counter() - started
    found = []
    for weight, fitted in zip(WEIGHTS[name], path, strict=True):
        wrong = fitted.predict(X_test) != y_test
        risk = wrong + weight * fitted.acquisition_cost(X_test)
        report = fitted.structure_report_
        found.append(
            {
                "data": name,
                "structure": structure,
                "cost_weight": weight,
                "chosen": report.structure,
                "validated": report.validated,
                "leaves": fitted.tree_.n_leaves,
                "error": float(wrong.mean()),
                "cost": float(fitted.acquisition_cost(X_test).mean()),
                "risk": float(risk.mean()),
                "standard_error": float(risk.std() / np.sqrt(len(risk))),
                "classifiers": report.n_classifiers,
                "screened": report.n_screened,
                "path_seconds": seconds,
            }
        )
    return found


def table(results: list[dict[str, Any]]) -> str:
    """Test risk by data set and cost weight, as Markdown; the least is starred."""
    rows = ["| data | cost weight | " + " | ".join(STRUCTURES) + " |"]
    rows.append("|---|---|" + "---|" * len(STRUCTURES))
    for name, weights in WEIGHTS.items():
        for weight in weights:
            cells = {
                line["structure"]: line
                for line in results
                if line["data"] == name and line["cost_weight"] == weight
            }
            if not cells:
                continue
            least = min(line["risk"] for line in cells.values())
            shown = [
                f"{cells[s]['risk']:.4f}{'*' if cells[s]['risk'] == least else ''}"
                + (f" ({cells[s]['chosen']})" if s == "auto" else "")
                if s in cells
                else "-"
                for s in STRUCTURES
            ]
            rows.append(f"| {name} | {weight:g} | " + " | ".join(shown) + " |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "data", nargs="*", choices=[*WEIGHTS, []], default=list(WEIGHTS)
    )
    done = {(line["data"], line["structure"]) for line in read(RESULTS)}
    for data in parser.parse_args().data:
        for kind in STRUCTURES:
            if (data, kind) not in done:
                new = lines(data, kind)
                append(RESULTS, new)
                print(f"{data}, {kind}: {new[0]['path_seconds']:.0f} s", flush=True)
    RESULTS.with_suffix(".md").write_text(table(read(RESULTS)), encoding="utf-8")
    print(table(read(RESULTS)))
