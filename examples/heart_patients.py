"""
Heart patients, priced in dollars
=================================

Which tests should a heart patient be sent to? The study that README quotes: a sensor tree
beside purchases that are the same for everybody, on held-out patients::

    python examples/heart_patients.py --output demo_output

Patients and prices are those of ``sensortree demo``: real data, prices of P. Turney (JAIR
2, 1995). Every accuracy and cost is measured on patients that a model was not fitted on.
Only the tree that is shown is fitted on all patients.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline

from sensortree import Leaf, Node, SensorTreeClassifier, TradeoffDisplay, TreeDisplay
from sensortree.demo import (
    TESTS,
    WRONG_ANSWER,
    WRONG_ANSWERS,
    encoder,
    load_patients,
    tree_classifier,
)
from sensortree.types import Array

TREE = "sensor tree"
EVERYTHING = "every test for everybody"
WIDTH = 90


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How a method did on patients it was not fitted on."""

    correct: Array  # share of held-out answers, one per repeat, (n_patients,)
    acquired: Array  # share of repeats that ordered a test, (n_patients, n_tests)

    @property
    def cost(self) -> Array:
        """Dollars spent on each patient's tests, (n_patients,)."""
        prices = np.array([price for _, price in TESTS.values()])
        return np.asarray(self.acquired @ prices)

    @property
    def total(self) -> Array:
        """Dollars for each patient's tests and wrong answers, (n_patients,)."""
        return self.cost + WRONG_ANSWER * (1 - self.correct)


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that the report and the pictures show."""

    y: Any
    n_folds: int
    n_repeats: int
    methods: dict[str, HeldOut]  # at `WRONG_ANSWER`; the sensor tree first
    curve: dict[int, HeldOut]  # the sensor tree, by price of a wrong answer
    model: SensorTreeClassifier  # fitted on all patients
    display: TreeDisplay  # all patients on their way through `model`


def run_study(quick: bool = False) -> Study:
    """Fit and measure everything that the report shows; `quick` is only for a look."""
    X, y = load_patients()
    n_folds, n_repeats = (2, 1) if quick else (5, 2)
    prices = (1_000, WRONG_ANSWER) if quick else WRONG_ANSWERS
    splits = RepeatedStratifiedKFold(
        n_splits=n_folds, n_repeats=n_repeats, random_state=0
    )
    cheapest = min(TESTS, key=lambda name: TESTS[name][1])
    same_for_all = {
        EVERYTHING: tuple(TESTS),
        f"{cheapest} for everybody": (cheapest,),
        "no test, the majority's answer": (),
    }

    def held_out(model: Any, always: Sequence[str] | None = None) -> HeldOut:
        """Measure a classifier, that orders tests itself or always the same."""
        times, correct = np.zeros(len(y)), np.zeros(len(y))
        acquired = np.zeros((len(y), len(TESTS)))
        for train, test in splits.split(X, y):
            fitted = clone(model).fit(X.iloc[train], y[train])
            rows = X.iloc[test]
            times[test] += 1
            correct[test] += fitted.predict(rows) == y[test]
            acquired[test] += (
                fitted.acquired(rows)
                if always is None
                else [name in always for name in TESTS]
            )
        return HeldOut(correct / times, acquired / times[:, None])

    curve = {price: held_out(tree_classifier(price)) for price in prices}
    methods = {TREE: curve[WRONG_ANSWER]} | {
        name: held_out(fixed_classifier(tests), tests)
        for name, tests in same_for_all.items()
    }
    model = tree_classifier(WRONG_ANSWER).fit(X, y)
    display = TreeDisplay.from_estimator(model, X, unit="dollars")
    return Study(y, n_folds, n_repeats, methods, curve, model, display)


def fixed_classifier(tests: Sequence[str]) -> Any:
    """Classifier that sees the same tests of everybody."""
    if not tests:
        return DummyClassifier(strategy="most_frequent")
    columns = [list(TESTS[name][0]) for name in tests]
    return make_pipeline(
        make_column_transformer(*((encoder(block), block) for block in columns)),
        LogisticRegression(max_iter=1000),
    )


# what is shown ----------------------------------------------------------------------------


def draw(study: Study, folder: Path) -> tuple[Path, ...]:
    """Save the pictures of the tree and of the trade-off, and return where."""
    matplotlib.use("Agg")  # files only: no window is opened
    tree = study.display.plot()
    tree.figure_.text(
        0.008, 0.975, f"Fitted on these {len(study.y)} patients", va="top"
    )
    tradeoff = _tradeoff_display(study).plot()
    tradeoff.ax_.set_title(
        "Cleveland heart data: held-out patients, ± one standard error", fontsize=10
    )
    paths = folder / "tree.png", folder / "tradeoff.png"
    for figure, path in zip((tree.figure_, tradeoff.figure_), paths, strict=True):
        figure.savefig(path, dpi=120)
        plt.close(figure)
    drawn = folder / "tree.svg"
    drawn.write_text(study.display.to_svg(), encoding="utf-8")
    return *paths, drawn


def _tradeoff_display(study: Study) -> TradeoffDisplay:
    """Accuracy against cost: the tree's curve, and a point for each other method."""
    curve = "sensor tree (numbers: dollars for a wrong answer)"
    groups = {curve: list(study.curve.values())} | {
        name: [held] for name, held in study.methods.items() if name != TREE
    }
    points = {
        name: [(held.cost.mean(), *mean_and_error(held.correct)) for held in group]
        for name, group in groups.items()
    }
    return TradeoffDisplay(
        {name: tuple(zip(*group, strict=True)) for name, group in points.items()},
        annotations={curve: [f"{price:,}" for price in study.curve]},
        unit="dollars",
    )


def mean_and_error(values: Array) -> tuple[float, float]:
    """Mean over the patients, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def report(study: Study, pictures: Iterable[Path]) -> str:
    """Everything in words; `pictures` are where the pictures are."""
    return "\n\n".join(
        [
            _about(study),
            _tests_table(study),
            _comparison_table(study),
            _curve_table(study),
            _tree_text(study),
            _meaning(study),
            "Pictures: " + ", ".join(str(path) for path in pictures),
        ]
    )


def _about(study: Study) -> str:
    n_patients, n_ill = len(study.y), int(study.y.sum())
    return _paragraph(
        f"HEART DISEASE, PRICED IN DOLLARS. {n_patients} patients of the Cleveland study. "
        f"The label is an angiogram of grade 2 or worse: {n_ill} of {n_patients} "
        f"(not the usual 'any disease', 139 of 303). Prices are Canadian dollars, Ontario "
        f"1995 (P. Turney, JAIR 2). A wrong answer is taken to cost "
        f"{WRONG_ANSWER:,} dollars.",
        f"Accuracies and costs are those of held-out patients: "
        f"{study.n_repeats} × stratified {study.n_folds}-fold cross-validation, averaged "
        f"for each patient; ± is one standard error over the {n_patients} patients. It "
        f"leaves out how results vary with the training set.",
    )


def _tests_table(study: Study) -> str:
    ordered = study.methods[TREE].acquired.mean(axis=0)
    lines = [f"{'TEST':<20}{'dollars':>8}{'the tree orders it for':>25}   reads"]
    for (name, (columns, price)), share in zip(TESTS.items(), ordered, strict=True):
        lines.append(
            f"{name:<20}{price:>8.2f}{100 * share:>23.1f} %   {', '.join(columns)}"
        )
    return "\n".join(lines)


def _comparison_table(study: Study) -> str:
    everything = study.methods[EVERYTHING].cost.mean()
    lines = [
        f"{'METHOD (means per patient)':<31}{HEAD}{'saving':>9}{'tests + errors':>17}"
    ]
    for name, held in study.methods.items():
        saving = 100 * (1 - held.cost.mean() / everything)
        lines.append(
            f"{name:<31}{_right_and_cost(held)}{saving:>7.1f} %{held.total.mean():>17,.2f}"
        )
    return "\n".join(lines)


def _curve_table(study: Study) -> str:
    lines = [f"{'THE TREE, IF AN ERROR COSTS':<31}{HEAD}"]
    for price, held in study.curve.items():
        lines.append(f"{price:>23,} dollars{_right_and_cost(held)}")
    return "\n".join(lines)


HEAD = f"{'right answers':>15}{'tests, dollars':>17}"


def _right_and_cost(held: HeldOut) -> str:
    """The two columns of `HEAD`."""
    accuracy, error = mean_and_error(held.correct)
    cost, cost_error = mean_and_error(held.cost)
    return (
        f"{100 * accuracy:>7.1f} ± {100 * error:.1f} %{cost:>10.2f} ± {cost_error:.2f}"
    )


def _tree_text(study: Study) -> str:
    """Tree of all patients, with the share that comes to each vertex."""
    display = study.display

    def label(vertex: Leaf | Node, number: int) -> str:
        if isinstance(vertex, Node):
            return f"({100 * display.node_share[number]:.1f} %)"
        share, cost = display.leaf_share[number], display.leaf_cost[number]
        return f"stops ({100 * share:.1f} %, {cost:.2f})"

    text = display.tree.text(label, TESTS)
    title = (
        f"THE TREE, fitted on all {len(study.y)} patients (share of these patients, "
        f"dollars spent)"
    )
    return (
        f"{title}\n{text}\n{_paragraph(f'Linear program: {study.model.certificate_}')}"
    )


def _meaning(study: Study) -> str:
    """Say what the comparison means, whichever way it went."""
    tree, everything = study.methods[TREE], study.methods[EVERYTHING]
    others = {name: held for name, held in study.methods.items() if name != TREE}
    totals = {n: held.total.mean() for n, held in others.items()}
    rival = min(totals, key=totals.__getitem__)
    lost, lost_error = mean_and_error(100 * (everything.correct - tree.correct))
    gained, gained_error = mean_and_error(others[rival].total - tree.total)
    saving = 1 - tree.cost.mean() / everything.cost.mean()
    return _paragraph(
        f"WHAT THIS MEANS. Against {EVERYTHING}, the tree spends {100 * saving:.0f} % less "
        f"on tests and answers {abs(lost):.1f} ± {lost_error:.1f} percentage points "
        f"{'fewer' if lost > 0 else 'more'} of the patients correctly"
        f"{_in_errors(lost, lost_error)}. With {WRONG_ANSWER:,} dollars for a wrong "
        f"answer, the tree's tests and errors together cost {abs(gained):,.0f} ± "
        f"{gained_error:,.0f} dollars per patient {'less' if gained > 0 else 'more'} than "
        f"those of the best other method, {rival}{_in_errors(gained, gained_error)}. "
        f"A difference of less than two standard errors may be chance.",
    )


def _in_errors(difference: float, error: float) -> str:
    """Difference in standard errors, where there is a standard error."""
    return f" ({abs(difference) / error:.1f} standard errors)" if error else ""


def _paragraph(*texts: str) -> str:
    return "\n".join(fill(text, WIDTH, break_on_hyphens=False) for text in texts)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(description="Heart disease, priced in dollars.")
    parser.add_argument("--output", type=Path, default=Path("demo_output"))
    parser.add_argument("--quick", action="store_true", help="only to see that it runs")
    arguments = parser.parse_args(argv)
    arguments.output.mkdir(parents=True, exist_ok=True)
    print("Cross-validating, about half a minute ...", file=sys.stderr)
    study = run_study(quick=arguments.quick)
    print(report(study, draw(study, arguments.output)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
