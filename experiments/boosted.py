"""Forest with boosted leaves: test error against the number of features bought.

    python experiments/boosted.py

Class 2 against the rest, 36,603 training and 58,101 test rows, 54 columns of cost 1, a
learned chain whose leaves are gradient boosted trees. Beside the curve stand targets, each
an error at a number of features. The 15,688 validation rows are answered too: a change to
the search is judged on those. Lines go to docs/results/boosted.jsonl, the table to
docs/results/boosted.md.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from lines import FOLDER, append
from sklearn.ensemble import HistGradientBoostingClassifier
from structures import rows_of, tested, validation_rows

from sensortree import SensorTreeClassifier, TradeoffCurve

RESULTS = FOLDER / "boosted.jsonl"
WEIGHTS = (0.03, 0.02, 0.008, 0.003, 0.0012)
# (features, test error) to reach.
TARGETS = ((3.7, 0.139), (5.7, 0.117), (9.0, 0.110))


def lines() -> list[dict[str, Any]]:
    """Fit along the cost weights, in one process, and test."""
    X, y, X_test, y_test = rows_of("forest36603")
    X_valid, y_valid = validation_rows()
    leaf = HistGradientBoostingClassifier(
        max_iter=200, max_leaf_nodes=127, early_stopping=False, random_state=0
    )
    model = SensorTreeClassifier(structure="chain", classifier=leaf, n_jobs=1)
    started = time.process_time()
    path = model.fit_path(X, y, WEIGHTS)
    seconds = time.process_time() - started
    found = []
    for weight, fitted in zip(WEIGHTS, path, strict=True):
        report = fitted.structure_report_
        wrong = fitted.predict(X_test) != y_test
        found.append(
            {
                **tested(wrong, fitted.acquisition_cost(X_test), weight),
                "validation_error": float(np.mean(fitted.predict(X_valid) != y_valid)),
                "validation_cost": float(fitted.acquisition_cost(X_valid).mean()),
                "leaves": fitted.tree_.n_leaves,
                "order": [step["added"] for step in report.steps],
                "classifiers": report.n_classifiers,
                "screened": report.n_screened,
                "path_seconds": seconds,
            }
        )
    return found


def table(found: list[dict[str, Any]]) -> str:
    """The curve, and the error on its lower hull at each target, as Markdown."""
    rows = [
        "| cost weight | features | test error | validation: features | error | leaves |",
        "|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {i['cost_weight']:g} | {i['cost']:.2f} | {i['error']:.4f} "
        f"| {i['validation_cost']:.2f} | {i['validation_error']:.4f} | {i['leaves']} |"
        for i in found
    ]
    rows += ["", "| features | target | reached | |", "|---|---|---|---|"]
    curve = TradeoffCurve.from_points((line["cost"], line["error"]) for line in found)
    for cost, target in TARGETS:
        error = curve.error_at_cost(cost)
        said = "met" if error <= target else "missed"
        said = "nothing as cheap" if np.isnan(error) else said
        rows.append(f"| {cost:g} | {target:.3f} | {error:.4f} | {said} |")
    last = found[-1]
    return "\n".join(rows) + (
        f"\n\n{last['path_seconds']:.0f} seconds for all cost weights together: "
        f"{last['screened']} subsets screened, {last['classifiers']} with their "
        f"classifier.\n"
    )


if __name__ == "__main__":
    RESULTS.unlink(missing_ok=True)
    results = lines()
    append(RESULTS, results)
    RESULTS.with_suffix(".md").write_text(table(results), encoding="utf-8")
    print(table(results))
