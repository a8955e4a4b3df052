"""Tests and errors in one currency: expected dollars per patient, with Turney's prices.

Every test is a sensor of its own, at the prices and group discounts of turney_costs.csv in
the folder SENSORTREE_DATA. A wrong answer costs the same number of dollars for both
classes; `cost_weight` is 1. Twenty stratified splits, 70 % of the rows for training, each
with

policy      the fitted `SensorTreeClassifier`, with its default settings;
static      the tests of the least cross-validated money on the training rows, the same for
            every patient: of all subsets, or, of 13 tests, by a greedy forward search;
everything  all tests for every patient;
nothing     no test: the more frequent class.

All have the same classifier, `QuadraticLogisticRegression`. A line per data set, price of
an error and split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from experiments.data import Dataset, by_test, few, load, split_at_random
from experiments.results import Line
from experiments.study import Cell, Study
from experiments.tables import markdown, of
from sensortree import QuadraticLogisticRegression, SensorTreeClassifier

ERROR_COSTS = (50.0, 200.0, 800.0)
METHODS = ("policy", "static", "everything", "nothing")
N_SPLITS = 20
MOST_FOR_ALL_SUBSETS = 8  # tests; above, a greedy search

Subset = tuple[int, ...]


def cells(name: str, quick: bool, lines: list[Line]) -> Iterator[Cell]:
    """Each split; the prices of an error share the judged subsets."""
    for split in range(1 if quick else N_SPLITS):
        yield Cell({"data": name, "split": split}, "error_cost", ERROR_COSTS)


def data_of(name: str, quick: bool) -> Dataset:
    """Every test a sensor, on random splits."""
    data = split_at_random(by_test(load(name)), N_SPLITS)
    return few(data) if quick else data


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


def measure(cell: Cell) -> Iterator[Line]:
    """Money per patient of every method on test rows, a line per price of an error."""
    split = cell.fields["split"]
    data = data_of(cell.fields["data"], cell.quick)
    X, y, X_test, y_test = data.rows(split)
    candidates = Candidates(X, y, split)
    for error_cost in cell.values:
        loss = [[0.0, error_cost], [error_cost, 0.0]]
        model = SensorTreeClassifier(data.sensors, loss=loss, cost_weight=1.0).fit(X, y)
        priced = model.sensors_

        def price(subset: Subset, priced: Any = priced) -> float:
            return float(priced.cost_of(priced.names[t] for t in subset))

        def money(
            subset: Subset, error_cost: float = error_cost, price: Any = price
        ) -> float:
            return error_cost * candidates.error(subset) + price(subset)

        chosen = candidates.best(money)
        line: Line = {"error_cost": error_cost}
        wrong = model.predict(X_test) != y_test
        put(line, "policy", wrong, float(model.acquisition_cost(X_test).mean()))
        for method, subset in (
            ("static", chosen),
            ("everything", tuple(range(X.shape[1]))),
            ("nothing", ()),
        ):
            put(line, method, answers(X, y, X_test, subset) != y_test, price(subset))
        line["static_tests"] = " ".join(priced.names[t] for t in chosen)
        line["leaves"] = model.tree_.n_leaves
        yield line


def put(line: Line, method: str, wrong: Any, tests: float) -> None:
    """Note a method's error, price of tests and money per patient."""
    error = float(np.mean(wrong))
    line[f"{method}_error"] = error
    line[f"{method}_cost"] = tests
    line[f"{method}_money"] = line["error_cost"] * error + tests


def pages(lines: list[Line]) -> dict[str, str]:
    """Dollars per patient, tests and errors; the least mean is starred."""
    heads = ["data", "an error costs", *METHODS, "policy − static", "splits", "verdict"]
    rows = [
        [name, f"{error_cost:g}", *compared(same)]
        for name in STUDY.data
        for error_cost in ERROR_COSTS
        if (same := of(lines, data=name, error_cost=error_cost))
    ]
    return {"money.md": NOTE.format(n=N_SPLITS) + markdown([heads, *rows])}


def compared(same: list[Line]) -> list[str]:
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
static subset. Made by `python -m experiments.run money`.

"""

STUDY = Study(
    file="money",
    key=("data", "error_cost", "split"),
    data=("pima", "bupa", "heart"),
    cells=cells,
    measure=measure,
    pages=pages,
    seeds="splits 0, folds by the number of the split",
)
