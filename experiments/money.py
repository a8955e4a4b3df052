"""Tests and errors in one currency: expected dollars per patient, with Turney's prices.

    python experiments/money.py               all data sets
    python experiments/money.py bupa pima     some

Every test is a sensor of its own, at the prices and group discounts of turney_costs.csv in
the folder SENSORTREE_DATA. A wrong answer costs the same number of dollars for both
classes; `cost_weight` is 1. Twenty stratified splits, 70 % of the rows for training, each
with

policy      the fitted `SensorTreeClassifier`, with its default settings;
static      the tests of the least cross-validated money on the training rows, the same for
            every patient: of all subsets, or, of 13 tests, by a greedy forward search;
everything  all tests for every patient;
nothing     no test: the more frequent class.

All have the same classifier, `QuadraticLogisticRegression`. Lines go to
docs/results/money.jsonl, one per data set, price of an error and split; those that are
there already are not run again.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from datasets import columns_of, path_of
from lines import FOLDER, append, read
from numpy.typing import NDArray
from sklearn.model_selection import (
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
)

from sensortree import QuadraticLogisticRegression, Sensor, SensorTreeClassifier

RESULTS = FOLDER / "money.jsonl"
FILES = {"pima": "pima", "bupa": "bupa", "heart": "heart_cleveland"}
ERROR_COSTS = (50.0, 200.0, 800.0)
METHODS = ("policy", "static", "everything", "nothing")
N_SPLITS = 20
MOST_FOR_ALL_SUBSETS = 8  # tests; above, a greedy search

Rows = NDArray[np.intp]
Subset = tuple[int, ...]


def declared(name: str) -> dict[str, Sensor]:
    """Every test as a sensor, at Turney's prices, in the order of the columns."""
    path = path_of(FILES[name]).with_name("turney_costs.csv")
    with path.open(encoding="utf-8", newline="") as file:
        tests = [t for t in csv.DictReader(file) if t["dataset"] == FILES[name]]
    return {
        test["test"]: Sensor(
            [column],
            cost=float(test["cost"]),
            group=test["group"] or None,
            discounted_cost=float(test["discount_cost"]) if test["group"] else None,
        )
        for column, test in enumerate(tests)
    }


def complete_rows(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows without missing values, and their classes."""
    X, y, _ = columns_of(FILES[name])
    complete = ~np.isnan(X).any(axis=1)
    return X[complete], y[complete]


def answers(X: Any, y: Any, X_test: Any, subset: Subset) -> Any:
    """Answers of the classifier on some tests; of no test, the more frequent class."""
    if not subset:
        return np.full(len(X_test), np.bincount(y).argmax())
    columns = list(subset)
    return (
        QuadraticLogisticRegression().fit(X[:, columns], y).predict(X_test[:, columns])
    )


class Candidates:
    """Static subsets, judged out of fold on the training rows, each only once."""

    def __init__(self, X: Any, y: Any, split: int):
        self.X, self.y = X, y
        self.folds = StratifiedKFold(5, shuffle=True, random_state=split)
        self._errors: dict[Subset, float] = {}

    def error(self, subset: Subset) -> float:
        """Cross-validated error of a subset."""
        if subset not in self._errors:
            if subset:
                said = cross_val_predict(
                    QuadraticLogisticRegression(),
                    self.X[:, list(subset)],
                    self.y,
                    cv=self.folds,
                )
            else:
                said = answers(self.X, self.y, self.X, ())
            self._errors[subset] = float(np.mean(said != self.y))
        return self._errors[subset]

    def best(self, money: Callable[[Subset], float]) -> Subset:
        """Subset of the least money; the first of equals, fewer tests first."""
        return min(self._searched(money), key=money)

    def _searched(self, money: Callable[[Subset], float]) -> Iterator[Subset]:
        n_tests = self.X.shape[1]
        if n_tests <= MOST_FOR_ALL_SUBSETS:
            for size in range(n_tests + 1):
                yield from combinations(range(n_tests), size)
            return
        best: Subset = ()
        yield best
        while len(best) < n_tests:
            rest = set(range(n_tests)) - set(best)
            best = min((tuple(sorted((*best, t))) for t in sorted(rest)), key=money)
            yield best


def lines(name: str, split: int, train: Rows, test: Rows) -> Iterator[dict[str, Any]]:
    """Money per patient of every method on test rows, a line per price of an error."""
    X, y = complete_rows(name)
    sensors = declared(name)
    candidates = Candidates(X[train], y[train], split)
    for error_cost in ERROR_COSTS:
        loss = [[0.0, error_cost], [error_cost, 0.0]]
        model = SensorTreeClassifier(sensors, loss=loss, cost_weight=1.0)
        model.fit(X[train], y[train])
        priced = model.sensors_

        def price(subset: Subset, priced: Any = priced) -> float:
            return float(priced.cost_of(priced.names[t] for t in subset))

        def money(
            subset: Subset, error_cost: float = error_cost, price: Any = price
        ) -> float:
            return error_cost * candidates.error(subset) + price(subset)

        chosen = candidates.best(money)
        line: dict[str, Any] = {"data": name, "error_cost": error_cost, "split": split}
        wrong = model.predict(X[test]) != y[test]
        put(line, "policy", wrong, float(model.acquisition_cost(X[test]).mean()))
        for method, subset in (
            ("static", chosen),
            ("everything", tuple(range(len(sensors)))),
            ("nothing", ()),
        ):
            wrong = answers(X[train], y[train], X[test], subset) != y[test]
            put(line, method, wrong, price(subset))
        line["static_tests"] = " ".join(priced.names[t] for t in chosen)
        line["leaves"] = model.tree_.n_leaves
        yield line


def put(line: dict[str, Any], method: str, wrong: Any, tests: float) -> None:
    """Note a method's error, price of tests and money per patient."""
    error = float(np.mean(wrong))
    line[f"{method}_error"] = error
    line[f"{method}_cost"] = tests
    line[f"{method}_money"] = line["error_cost"] * error + tests


def table(results: list[dict[str, Any]]) -> str:
    """Dollars per patient, tests and errors, as Markdown; the least mean is starred."""
    heads = ["data", "an error costs", *METHODS, "policy − static", "splits", "verdict"]
    rows = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name in FILES:
        for error_cost in ERROR_COSTS:
            same = [
                line
                for line in results
                if line["data"] == name and line["error_cost"] == error_cost
            ]
            if same:
                cells = [name, f"{error_cost:g}", *_cells(same)]
                rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def _cells(same: list[dict[str, Any]]) -> list[str]:
    """Mean money with tests and error of each method, and policy against static."""
    mean = {
        key: float(np.mean([line[key] for line in same]))
        for key, value in same[0].items()
        if isinstance(value, float)
    }
    least = min(mean[f"{method}_money"] for method in METHODS)
    cells = [
        f"{mean[f'{m}_money']:.2f}{'*' if mean[f'{m}_money'] == least else ''} "
        f"({mean[f'{m}_cost']:.2f}, {100 * mean[f'{m}_error']:.1f} %)"
        for m in METHODS
    ]
    gaps = np.array([line["policy_money"] - line["static_money"] for line in same])
    # Test rows of different splits overlap, so splits are not independent: the corrected
    # variance of Nadeau and Bengio, with 30 % of the rows for testing.
    n_splits = len(gaps)
    spread = gaps.std(ddof=1) if n_splits > 1 else 0.0
    error = float(spread * np.sqrt(1 / n_splits + 0.3 / 0.7))
    clear = abs(gaps.mean()) > 2 * error
    verdict = "**policy loses**" if gaps.mean() > 0 else "policy wins"
    # Nothing but rounding is between two methods that do the same.
    less, more = int((gaps < -1e-6).sum()), int((gaps > 1e-6).sum())
    return [
        *cells,
        f"{gaps.mean():+.2f} ± {error:.2f}",
        f"{less} / {n_splits - less - more} / {more}",
        f"{verdict}{'' if clear else ', not clearly'}",
    ]


NOTE = """\
Dollars per patient on test rows, tests and errors together; in brackets the tests alone and
the error. Means over {n} splits; the least is starred. "policy − static" has the corrected
standard error for overlapping test sets (Nadeau and Bengio); what is within two of them is
not clear. "splits" counts where the policy took less, the same and more money than the
static subset. Made by `python experiments/money.py`.

"""


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", choices=[*FILES, []], default=[])
    done = {(line["data"], line["split"]) for line in read(RESULTS)}
    names = parser.parse_args().data or list(FILES)
    for name in names:
        X, y = complete_rows(name)
        splitter = StratifiedShuffleSplit(N_SPLITS, test_size=0.3, random_state=0)
        for split, (train, test) in enumerate(splitter.split(X, y)):
            if (name, split) not in done:
                append(RESULTS, list(lines(name, split, train, test)))
                print(f"{name}, split {split}", flush=True)
    results = read(RESULTS)
    text = NOTE.format(n=N_SPLITS) + table(results)
    RESULTS.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
