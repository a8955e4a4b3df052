"""Which tests should a heart patient be sent to? ``python -m sensortree.demo``.

**Patients.** The 303 patients of the Cleveland heart study (R. Detrano; UCI Heart
Disease), in the copy that scikit-lego ships, so nothing is downloaded. Six rows of it,
five of them with a code outside the code book (chest pain 0, thallium "1" or "2"), have
no match in our copy of the UCI file; they are kept as they are.

**Label.** 1 is a coronary angiogram of grade 2 or worse (`num` in the UCI file): 83 of
303 patients. The usual label is "any disease", grade 1 or worse: 139 of 303. We checked
this against our copy of the UCI file on the 297 rows that can be matched; two of these
have a grade outside 0 to 4 there and the label 0 here.

**Prices.** Canadian dollars of the Ontario fee schedule, from P. Turney, *Cost-Sensitive
Classification*, JAIR 2 (1995), appendix A. Columns that come out of one examination are
one sensor, with Turney's discount for tests done together.

**Model.** A cascade that begins with history and examination, and buys the cheapest
remaining test first. The leaves are plain logistic regressions: 303 patients are too few
for the paper's degree-2 basis. A wrong answer is taken to cost as much as 4,000 dollars of
tests. That figure is part of the story: it was not tuned on results.

**Report.** It is of patients that the model was not fitted on; the curve is of all
patients, each held out once. Only the tree of the picture is fitted on all patients.
``examples/heart_patients.py`` compares with fixed purchases, by repeated cross-validation.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sensortree.curves.curve import tradeoff_curve
from sensortree.display import TreeDisplay
from sensortree.estimators import SensorTreeClassifier
from sensortree.exceptions import MissingDependencyError, SensorTreeError
from sensortree.persistence import save
from sensortree.reports.tradeoff import TradeoffCurve
from sensortree.sensors.sensor import Sensor

WIDTH = 90
TESTS: dict[str, tuple[tuple[str, ...], float]] = {
    "history_exam": (("age", "sex", "cp", "trestbps"), 4.00),
    "blood": (("chol", "fbs"), 10.37),
    "resting_ecg": (("restecg",), 15.50),
    "exercise_ecg": (("exang", "oldpeak", "slope"), 89.30),
    "fluoroscopy": (("ca",), 100.90),
    "exercise_thallium": (("thalach", "thal"), 103.90),
}
CATEGORIES = {"cp", "restecg", "slope", "thal"}
WRONG_ANSWER = 4_000  # dollars
WRONG_ANSWERS = (500, 1_000, 2_000, 4_000, 8_000, 16_000)  # for the curve
NEEDED = "which is not installed; run pip install 'sensortree[demo]'."


def load_patients() -> tuple[Any, NDArray[np.intp]]:
    """Table of the patients' readings, and their labels."""
    try:
        from sklego.datasets import load_hearts
    except ImportError as error:
        raise MissingDependencyError(
            f"the demo reads the heart data from scikit-lego, {NEEDED}"
        ) from error
    patients = load_hearts(as_frame=True)
    return patients.drop(columns="target"), patients["target"].to_numpy()


def encoder(columns: Iterable[str]) -> Any:
    """Transformer that makes categories indicators, and standardises numbers."""
    columns = list(columns)
    return make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore"),
            [c for c in columns if c in CATEGORIES],
        ),
        (StandardScaler(), [c for c in columns if c not in CATEGORIES]),
    )


def tree_classifier(wrong_answer: float) -> SensorTreeClassifier:
    """Sensor tree for a price of a wrong answer, in dollars."""
    sensors = {
        name: Sensor(list(columns), price, encoder(columns))
        for name, (columns, price) in TESTS.items()
    }
    return SensorTreeClassifier(
        sensors,
        cost_weight=1 / wrong_answer,
        structure="cascade",
        classifier=LogisticRegression(max_iter=1000),
    )


# the demo ---------------------------------------------------------------------------------


def tree_display() -> TreeDisplay:
    """The tree of all patients, with their ways."""
    X, y = load_patients()
    model = tree_classifier(WRONG_ANSWER).fit(X, y)
    return TreeDisplay.from_estimator(model, X, unit="dollars")


def report(quick: bool = False) -> tuple[str, TradeoffCurve]:
    """What a tree does on patients that it was not fitted on; and the curve in it."""
    X, y = load_patients()
    X_train, X_new, y_train, y_new = train_test_split(
        X, y, test_size=0.4, stratify=y, random_state=0
    )
    tree = tree_classifier(WRONG_ANSWER)
    model = clone(tree).fit(X_train, y_train)
    prices = (1_000, WRONG_ANSWER) if quick else WRONG_ANSWERS
    curve = tradeoff_curve(
        tree, X, y, cost_weights=[1 / price for price in prices], cv=2 if quick else 5
    )
    parts = {
        f"THE TREE, fitted on {len(y_train)} patients": str(model.tree_),
        "ITS DECISIONS": str(model.certificate_),
        f"THE OTHER {len(y_new)} PATIENTS": str(model.report(X_new, y_new)),
        "HELD-OUT ERROR AGAINST DOLLARS, by the price of a wrong answer": str(curve),
    }
    head = fill(
        f"HEART DISEASE, PRICED IN DOLLARS: a sensor tree for {len(y)} patients, "
        f"{int(y.sum())} of them with an angiogram of grade 2 or worse. A wrong answer "
        f"counts as {WRONG_ANSWER:,} dollars.",
        WIDTH,
    )
    return "\n\n".join([head, *(f"{t}\n{text}" for t, text in parts.items())]), curve


def draw(display: TreeDisplay, curve: TradeoffCurve, folder: Path) -> list[Path]:
    """Save the pictures of the tree and of the curve; return where."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingDependencyError(
            f"the demo draws with matplotlib, {NEEDED}"
        ) from error
    matplotlib.use("Agg")  # files only: no window is opened
    paths = [folder / name for name in ("tree.svg", "tree.png", "tradeoff.png")]
    paths[0].write_text(display.to_svg(), encoding="utf-8")
    figures = display.plot().figure_, curve.plot().figure_
    for figure, path in zip(figures, paths[1:], strict=True):
        figure.savefig(path, dpi=120, bbox_inches="tight")
    return paths


def show(folder: Path, quick: bool) -> str:
    """Write the pictures into a folder; give the report, and where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    text, curve = report(quick)
    pictures = draw(tree_display(), curve, folder)
    return f"{text}\n\nPictures: {', '.join(map(str, pictures))}\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; give 0, or 1 if something was missing."""
    parser = argparse.ArgumentParser(
        prog="python -m sensortree.demo",
        description="Heart disease, priced in dollars: a report and two pictures.",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("demo_output"),
        help="folder for the pictures (default: %(default)s)",
    )
    parser.add_argument(
        "--model",
        type=Path,
        help="write the tree to this model file, and measure nothing",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="two folds and a short curve, only to see that it runs",
    )
    arguments = parser.parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may not know "≤"
        sys.stdout.reconfigure(errors="replace")
    try:
        if arguments.model is not None:
            arguments.model.parent.mkdir(parents=True, exist_ok=True)
            save(tree_classifier(WRONG_ANSWER).fit(*load_patients()), arguments.model)
            return 0
        print(show(arguments.output, arguments.quick), end="")
    except (SensorTreeError, OSError) as error:
        print(f"sensortree.demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
