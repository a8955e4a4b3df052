"""Digests of what many small models answer, to tell whether two commits agree.

    python -m benchmarks.answers -o before.json                      on one commit
    python -m benchmarks.answers --compare before.json               on the other
    python -m benchmarks.answers --compare before.json myopic cstc   some fits only

Every method, and most options that change what is learned, are fitted once on made-up rows
with fixed seeds, and asked about rows that they have not seen; what they answer, in batch,
row by row and step by step, is digested to the last bit. Where SENSORTREE_DATA names a
folder with pima and heart, these are fitted too.

Only the public interface is used, so that the same file runs on both commits. Digests of
two machines, or of two versions of NumPy, SciPy or scikit-learn, need not agree; what wrote
them is in the file, and said where it differs. No threads are limited here: our calls do
that. Seconds are of this process, by its own clock.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import scipy
import sklearn
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sensortree import (
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    Leaf,
    MyopicClassifier,
    Node,
    Program,
    Sensor,
    SensorTree,
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    StaticSubsetClassifier,
    acquisition_cost_scorer,
    cost_adjusted_scorer,
    load,
    save,
    tradeoff_curve,
)
from sensortree.exceptions import ModelFileError
from sensortree.results import MaskedPolicy

Array = NDArray[np.float64]
Digests = dict[str, dict[str, str]]

# What fits may have learned besides their policy.
LEARNED = (
    "certificate_",
    "chosen_",
    "classes_",
    "cost_weight_",
    "decision_report_",
    "fallback_leaf_",
    "feature_names_in_",
    "n_features_in_",
    "n_iter_",
    "objectives_",
    "pruned_",
    "structure_report_",
    "training_risks_",
)
MAKERS = "made with"  # the entry of a file that says which versions wrote it
N_ROWS_STEP_BY_STEP = 6


# data -------------------------------------------------------------------------------------


def made_up(n_rows: int = 330, n_classes: int = 2, seed: int = 0) -> tuple[Array, Any]:
    """Six columns; the first says which of the others the class depends on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    X[:, 5] = np.abs(X[:, 0]) + 0.1 * X[:, 5]
    score = np.select(
        [X[:, 0] > 0.5, X[:, 0] < -0.5], [X[:, 1], X[:, 2]], X[:, 3] + X[:, 4]
    )
    score += 0.3 * rng.normal(size=n_rows)
    return X, np.digitize(score, np.linspace(-1, 1, n_classes + 1)[1:-1])


def real(name: str) -> tuple[Array, Any, dict[str, list[int]], dict[str, float]]:
    """Complete rows, classes, sensors and prices of a file in SENSORTREE_DATA."""
    with np.load(Path(os.environ["SENSORTREE_DATA"]) / f"{name}.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"]
        owner, names = file["sensor_of_feature"], file["sensor_names"].tolist()
        costs = dict(zip(names, file["sensor_costs"].tolist(), strict=True))
    sensors = {n: np.flatnonzero(owner == s).tolist() for s, n in enumerate(names)}
    complete = ~np.isnan(X).any(axis=1)
    return X[complete], y[complete], sensors, costs


def has_data(name: str) -> bool:
    """Whether there is a file of this name in SENSORTREE_DATA."""
    folder = os.environ.get("SENSORTREE_DATA")
    return folder is not None and (Path(folder) / f"{name}.npz").is_file()


COSTS = {"x0": 1.0, "x1": 2.0, "x2": 3.0, "x3": 2.0, "x4": 2.5, "x5": 1.0}
THREE = {"hint": [0, 5], "sides": [1, 2], "middle": [3, 4]}
THREE_COSTS = {"hint": 1.0, "sides": 3.0, "middle": 4.0}
GIVEN = {
    "sensors": ["hint"],
    "negative": {
        "sensors": ["hint"],
        "negative": {"sensors": ["hint"]},
        "positive": {"sensors": ["hint", "middle"]},
    },
    "positive": {"sensors": ["hint", "sides"]},
}
NO_EXIT = {
    "sensors": ["hint"],
    "negative": {"sensors": ["hint", "sides"]},
    "positive": {"sensors": ["hint", "middle"]},
}
TERMS = {
    "hint": Sensor([0, 5], cost=1.0),
    "left": Sensor([1], cost=3.0, discounted_cost=1.5, group="draw"),
    "right": Sensor([2], cost=1.5, fee=1.25, group="draw"),
    "third": Sensor([3], cost=2.0, after=["left"], one_of="last"),
    "fourth": Sensor([4], cost=2.5, one_of="last"),
}
WORDS = np.array(["no", "perhaps", "yes"])


# fits -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Asked:
    """A fitted model, rows to ask it about, and answers that only this fit gives.

    Without a model there are only these.
    """

    model: Any
    X: Any = None
    y: Any = None
    prices: Array | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def learn(
    model: Any,
    X: Any,
    y: Any,
    weight: Array | None = None,
    prices: Array | None = None,
) -> Asked:
    """Fit on two thirds of the rows, to be asked about the others."""
    cut = 2 * len(y) // 3
    given: dict[str, Any] = {}
    if weight is not None:
        given["sample_weight"] = weight[:cut]
    if prices is not None:
        given["prices"] = prices[:cut]
    model.fit(X[:cut], y[:cut], **given)
    return Asked(model, X[cut:], y[cut:], None if prices is None else prices[cut:])


def six(model: Any, n_classes: int = 2) -> Asked:
    """Fit on made-up rows."""
    return learn(model, *made_up(n_classes=n_classes))


def tree(**options: Any) -> Asked:
    """A sensor tree on six sensors of one column each."""
    return six(SensorTreeClassifier(**{"costs": COSTS, **options}))


def three(**options: Any) -> Asked:
    """A sensor tree on three sensors of two columns each."""
    options = {"costs": THREE_COSTS, **options}
    return six(SensorTreeClassifier(THREE, **options))


def string_classes() -> Asked:
    """Three classes that are words, each with the price of a mistake."""
    X, y = made_up(n_classes=3)
    loss = {"no": 100.0, "perhaps": 50.0, "yes": 200.0}
    model = SensorTreeClassifier(THREE, costs=THREE_COSTS, cost_weight=1.0, loss=loss)
    return learn(model, X, WORDS[y])


def weighted() -> Asked:
    """Weights of 0, 1, 2 and in between."""
    X, y = made_up()
    weight = np.random.default_rng(3).choice([0.0, 0.5, 1.0, 2.0], len(y))
    model = SensorTreeClassifier(THREE, costs=THREE_COSTS)
    asked = learn(model, X, y, weight=weight)
    own = weight[-len(asked.y) :]
    report = asked.model.report(asked.X, asked.y, sample_weight=own)
    return replace(asked, more={"weighted report": report.to_dict()})


def price_column(**options: Any) -> Asked:
    """The price of one sensor is a column of the table."""
    X, y = made_up()
    X = np.c_[X, np.random.default_rng(1).uniform(0.5, 9.0, len(y))]
    sensors = {
        "hint": Sensor([0, 5], cost=1.0),
        "sides": Sensor([1, 2], cost="x6", fee=0.5, group="g"),
        "middle": Sensor([3, 4], cost=2.0, fee=0.5, group="g"),
    }
    return learn(SensorTreeClassifier(sensors, **options), X, y)


def prices_beside(dearer: float = 1.0, **options: Any) -> Asked:
    """Prices of each example come beside the table; those asked about may pay more."""
    X, y = made_up()
    prices = np.random.default_rng(2).uniform(0.2, 3.0, size=(len(y), 3))
    asked = learn(SensorTreeClassifier(THREE, **options), X, y, prices=prices)
    return replace(asked, prices=dearer * prices[-len(asked.y) :])


def many_rows() -> Asked:
    """More rows than a search looks at, with leaves that are quick."""
    X, y = made_up(18_300)
    options = {"costs": COSTS, "classifier": LogisticRegression(), "n_leaves": 4}
    model = SensorTreeClassifier(**options, structure="chain")
    curve = tradeoff_curve(model, X, y, cost_weights=[0.01], cv=4)
    asked = learn(SensorTreeClassifier(**options), X, y)
    few = replace(asked, X=asked.X[:110], y=asked.y[:110])
    return replace(few, more={"curve": curve.to_dict()})


def few_rows() -> Asked:
    """A class of one row, which is never held out."""
    X, y = made_up(60)
    y[0] = 2
    model = SensorTreeClassifier(THREE, costs=THREE_COSTS, cost_weight=0.002)
    return learn(model, X, y)


def frame_of(X: Array) -> pd.DataFrame:
    """The columns as a frame, with one of text and one with missing values."""
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["g"] = np.where(X[:, 0] > 0.5, "right", np.where(X[:, 0] < -0.5, "left", "-"))
    table.loc[::7, "b"] = np.nan
    return table


FRAME_SENSORS = {
    "free": Sensor(
        ["a", "g"],
        cost=0.0,
        transformer=make_column_transformer(
            (OneHotEncoder(), ["g"]), (StandardScaler(), ["a"])
        ),
    ),
    "sides": Sensor(
        ["b", "c"], cost=2.0, transformer=SimpleImputer(add_indicator=True)
    ),
    "middle": Sensor(["d", "e", "f"], cost=3.0, transformer=StandardScaler()),
}


def frame() -> Asked:
    """A pandas frame with text, missing values, and a transformer for each sensor."""
    X, y = made_up()
    return learn(SensorTreeClassifier(FRAME_SENSORS), frame_of(X), WORDS[2 * y])


def frame_of_numbers() -> Asked:
    """A pandas frame of numbers, folds by a splitter, leaves that are pipelines."""
    X, y = made_up()
    sensors = {"hint": ["a", "f"], "sides": slice("b", "c"), "middle": ["d", "e"]}
    model = SensorTreeClassifier(
        sensors,
        costs=THREE_COSTS,
        cv=StratifiedKFold(4, shuffle=True, random_state=1),
        classifier=make_pipeline(StandardScaler(), LogisticRegression()),
    )
    weight = np.random.default_rng(3).choice([0.5, 1.0, 2.0], len(y))
    return learn(model, pd.DataFrame(X, columns=list("abcdef")), y, weight=weight)


def missing_values() -> Asked:
    """NaN is left to boosted leaves."""
    X, y = made_up()
    X[np.random.default_rng(4).random(X.shape) < 0.1] = np.nan
    model = SensorTreeClassifier(THREE, costs=THREE_COSTS, classifier="boosted")
    return learn(model, X, y)


def boosted() -> Any:
    """A few small boosted trees."""
    return HistGradientBoostingClassifier(
        max_iter=8, max_leaf_nodes=6, early_stopping=False, random_state=0
    )


def fit_path() -> Asked:
    """Models of several cost weights on data read once."""
    X, y = made_up()
    model = SensorTreeClassifier(costs=COSTS)
    models = model.fit_path(X[:220], y[:220], [0.1, 0.02, 0.005, 0.01])
    others = {
        f"cost weight {m.cost_weight:g}": [m.predict_proba(X[220:]), m.apply(X[220:])]
        for m in models
    }
    return Asked(models[2], X[220:], y[220:], more=others)


def curve_answers(curve: Any) -> dict[str, Any]:
    """All that a trade-off curve says."""
    choices = [curve.choose(), curve.choose(budget=3.0), curve.choose(max_error=0.2)]
    return {
        "curve": curve.to_dict(),
        "curve as text": str(curve),
        "hull": curve.hull(),
        "choices": [[choice, str(choice)] for choice in choices],
        "read off the curve": [
            curve.cost_at_error(0.25),
            curve.error_at_cost(3.0),
            curve.error_at_cost(3.0, mix=False),
        ],
    }


def curves() -> Asked:
    """Trade-off curves: automatic and not, of prices, of a frame, by another parameter."""
    X, y = made_up(240)
    prices = np.random.default_rng(2).uniform(0.2, 6.0, size=(len(y), 3))
    weight = np.random.default_rng(3).choice([0.5, 1.0, 2.0], len(y))
    model = SensorTreeClassifier(THREE, costs=THREE_COSTS)
    found = {
        "automatic": tradeoff_curve(model, X, y),
        "six sensors": tradeoff_curve(
            SensorTreeClassifier(costs=COSTS), X, y, cost_weights=[0.1, 0.03, 0.01]
        ),
        "prices": tradeoff_curve(
            model, X, y, [0.1, 0.01], cv=3, sample_weight=weight, prices=prices
        ),
        "frame": tradeoff_curve(
            SensorTreeClassifier(FRAME_SENSORS),
            frame_of(X),
            y,
            cost_weights=[0.05, 0.01],
            cv=KFold(4, shuffle=True, random_state=1),
        ),
        "loss": tradeoff_curve(
            SensorTreeClassifier(THREE, loss=[[0, 5], [3, 0]], cv=None, max_cost=2),
            X,
            y,
            cost_weights=[0.5, 0.1],
            cv=[
                (np.arange(80, 240), np.arange(80)),
                (np.arange(80), np.arange(80, 240)),
            ],
        ),
        "myopic": tradeoff_curve(
            MyopicClassifier(costs=COSTS), X, y, cost_weights=[0.2, 0.8]
        ),
    }
    return Asked(
        None,
        more={
            f"{name}: {what}": said
            for name, curve in found.items()
            for what, said in curve_answers(curve).items()
        },
    )


def budget(**target: Any) -> Asked:
    """A cost weight picked on held-out folds."""
    asked = six(SensorTreeClassifierCV(THREE, costs=THREE_COSTS, **target))
    return replace(asked, more=curve_answers(asked.model.curve_))


def budgets() -> Asked:
    """Several budgets on one curve, with cost weights given."""
    X, y = made_up()
    model = SensorTreeClassifierCV(
        THREE, costs=THREE_COSTS, cost_weights=[0.2, 0.05, 0.02, 0.01, 0.002]
    )
    models = model.fit_budgets(X[:220], y[:220], [5.0, 6.0])
    others = {f"budget {m.budget:g}": m.predict_proba(X[220:]) for m in models}
    return Asked(models[1], X[220:], y[220:], more=others)


def given_tree() -> Asked:
    """A tree of our own, whose root buys nothing."""
    own = SensorTree(Node([], Leaf([]), SensorTree.from_dict(GIVEN).root))
    return three(structure=own)


def of_data(name: str, **options: Any) -> Asked:
    """A sensor tree on real rows, at the prices of the file."""
    X, y, sensors, costs = real(name)
    order = np.random.default_rng(0).permutation(len(y))
    model = SensorTreeClassifier(sensors, costs=costs, **options)
    return learn(model, X[order], y[order])


FITS: dict[str, Callable[[], Asked]] = {
    "auto": tree,
    "auto, three sensors": three,
    "exhaustive": lambda: three(structure="exhaustive", root_sensors=[]),
    "cascade": lambda: tree(structure="cascade"),
    "chain": lambda: tree(structure="chain", n_leaves=5),
    "branched": lambda: tree(structure="branched", cost_weight=0.02),
    "greedy": lambda: tree(structure="greedy", n_leaves=5, n_exact="all"),
    "given": lambda: three(structure=GIVEN),
    "given, empty root": given_tree,
    "nothing pays": lambda: tree(cost_weight=2.0),
    "price column": price_column,
    "price column, max_cost": lambda: price_column(max_cost=6.0, structure="cascade"),
    "price column, too dear at the start": lambda: price_column(
        max_cost=6.0, structure="cascade", root_sensors=["sides"]
    ),
    "prices beside": prices_beside,
    "prices beside, too dear at a node": lambda: prices_beside(
        dearer=2.0, structure=NO_EXIT, max_cost=6.0
    ),
    "max_cost": lambda: three(max_cost=4.5, structure=GIVEN, cost_weight=0.001),
    "terms of sale": lambda: six(SensorTreeClassifier(TERMS)),
    "terms of sale, exhaustive": lambda: six(
        SensorTreeClassifier(TERMS, structure="exhaustive", max_cost=8.0)
    ),
    "loss matrix": lambda: three(loss=[[0.0, 40.0], [200.0, 0.0]], cost_weight=1.0),
    "string classes, losses": string_classes,
    "three classes": lambda: six(SensorTreeClassifier(costs=COSTS), n_classes=3),
    "boosted": lambda: tree(classifier=boosted(), structure="chain", n_leaves=4),
    "logistic leaves": lambda: three(classifier=LogisticRegression()),
    "sample weights": weighted,
    "missing values": missing_values,
    "frame": frame,
    "frame of numbers": frame_of_numbers,
    "calibration, sigmoid": lambda: three(calibration="sigmoid"),
    "calibration, isotonic": lambda: three(calibration="isotonic", cv=3),
    "as published": lambda: six(
        SensorTreeClassifier.as_published(
            THREE, costs=THREE_COSTS, structure="exhaustive"
        )
    ),
    "one leaf": lambda: six(
        SensorTreeClassifier.as_published(
            THREE,
            costs=THREE_COSTS,
            structure="exhaustive",
            program=Program.as_published(fallback=True),
        )
    ),
    "not certified": lambda: three(structure=GIVEN, program=Program(tol=1e-14)),
    "few rows": few_rows,
    "many rows": many_rows,
    "decisions, raw": lambda: three(
        program=Program(decision_features="raw", refine=False)
    ),
    "decisions, quadratic": lambda: three(
        program=Program(decision_features="quadratic", l1=0.5)
    ),
    "decisions, transformer": lambda: three(
        program=Program(
            decision_features=StandardScaler(), errors="observed", fallback=False
        ),
    ),
    "solver, scipy": lambda: three(
        program=Program(solver="scipy", l2=0.0), structure=GIVEN
    ),
    "solver, scipy-path": lambda: three(
        program=Program(solver="scipy-path", l2=0.0), structure=GIVEN
    ),
    "fit_path": fit_path,
    "curves": curves,
    "budget": lambda: budget(budget=5.0),
    "max_error": lambda: budget(max_error=0.2),
    "max_error, not met": lambda: budget(max_error=0.02, cost_weights=[0.1, 0.01]),
    "fit_budgets": budgets,
    "myopic": lambda: six(MyopicClassifier(costs=COSTS)),
    "myopic, margin": lambda: six(
        MyopicClassifier(costs=COSTS, confidence="margin", reject=0.4, cv=5),
        n_classes=3,
    ),
    "alternating": lambda: six(AlternatingTreeClassifier(THREE, costs=THREE_COSTS)),
    "alternating, smoothed": lambda: six(
        AlternatingTreeClassifier(
            costs=COSTS,
            structure="chain",
            n_leaves=4,
            cv=5,
            errors="smoothed",
            decision_features="posterior",
            l2="auto",
            n_starts=2,
        )
    ),
    "cascade classifier": lambda: six(CascadeClassifier(costs=COSTS)),
    "cascade classifier, order": lambda: six(
        CascadeClassifier(
            THREE,
            costs=THREE_COSTS,
            order=["hint", "middle", "sides"],
            program=Program.as_published(
                savings="tight", decision_features="posterior"
            ),
            cv=5,
        ),
        n_classes=3,
    ),
    "cstc": lambda: six(CSTCClassifier(costs=COSTS, cost_weight=0.02, steepness=5.0)),
    "cstc, three classes": lambda: six(
        CSTCClassifier(THREE, costs=THREE_COSTS, steepness=5.0), n_classes=3
    ),
    "astc": lambda: six(ASTCClassifier(costs=COSTS)),
    "astc, soft": lambda: six(
        ASTCClassifier(THREE, costs=THREE_COSTS, soft=True, budget=4.0), n_classes=3
    ),
    "static": lambda: six(StaticSubsetClassifier(costs=COSTS)),
    "static, budget": lambda: six(
        StaticSubsetClassifier(costs=COSTS, budget=5.0, cost_weight=0.0)
    ),
}

REAL: dict[str, Callable[[], Asked]] = {
    "pima": lambda: of_data("pima", cost_weight=0.002),
    "heart": lambda: of_data(
        "heart_cleveland",
        cost_weight=0.0005,
        classifier=LogisticRegression(max_iter=3000),
    ),
}
FILES = {"pima": "pima", "heart": "heart_cleveland"}


# the command line -------------------------------------------------------------------------

SENSORS_FILE = """\
target = "sick"
unit = "dollars"
cost_weight = 0.01

[sensors.hint]
columns = ["a", "f"]
cost = 1.0

[sensors.sides]
columns = ["b", "c"]
cost = 3.0
group = "draw"
fee = 0.5

[sensors.middle]
columns = ["d", "e"]
cost = 3.5
group = "draw"
fee = 0.5
transformer = "scale"
"""
LEARN = ("rows.csv", "--sensors", "sensors.toml", "--json")
COMMANDS: dict[str, Sequence[str]] = {
    "init": ("init", "rows.csv", "--target", "sick", "-o", "first.toml", "--json"),
    "check": ("check", *LEARN),
    "fit": ("fit", *LEARN, "-o", "model.json"),
    "fit, text": ("fit", *LEARN[:-1], "--structure", "cascade", "-o", "cascade.json"),
    "fit, budget": ("fit", *LEARN, "--budget", "5", "-o", "budget.json"),
    "curve": ("curve", *LEARN, "--cost-weights", "0.1,0.01", "--cv", "3"),
    "compare": ("compare", *LEARN, "--cv", "2", "--structure", "cascade"),
    "evaluate": ("evaluate", "model.json", "rows.csv", "--target", "sick", "--json"),
    "evaluate, text": ("evaluate", "model.json", "rows.csv", "--target", "sick"),
    "predict": ("predict", "model.json", "rows.csv"),
    "explain": ("explain", "model.json", "rows.csv", "--line", "4"),
    "inspect": ("inspect", "model.json", "--json"),
    "verify": ("verify", "model.json", "--json"),
    "ask": ("ask", "model.json", "--stdin"),
}
TOLD = """\
{"tell": {"hint": {"a": 0.1, "f": 0.2}}}
{"unavailable": "middle"}
{"tell": {"sides": {"b": 0.7, "c": -0.3}}}
"""


def command_line() -> Asked:
    """What the commands print, and which files they write, in a folder of their own."""
    X, y = made_up(180)
    table = pd.DataFrame(X.round(3), columns=list("abcdef"))
    said: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        table.assign(sick=y).to_csv("rows.csv", index=False)
        Path("sensors.toml").write_text(SENSORS_FILE, encoding="utf-8")
        given = set(Path().iterdir())
        for name, arguments in COMMANDS.items():
            said[name] = command(arguments)
        for path in sorted(set(Path().iterdir()) - given):
            said[path.name] = without_digest(path.read_text(encoding="utf-8"))
    return Asked(None, more=said)


def command(arguments: Sequence[str]) -> list[Any]:
    """Exit code of a command, and what it prints."""
    from sensortree.cli import main as program

    printed = io.StringIO()
    code: Any = 0
    with (
        mock.patch.object(sys, "argv", ["sensortree", *arguments]),
        mock.patch.object(sys, "stdin", io.StringIO(TOLD)),
        redirect_stdout(printed),
        redirect_stderr(io.StringIO()),
    ):
        try:
            program()
        except SystemExit as left:
            code = left.code
    return [code, without_digest(printed.getvalue())]


def without_digest(text: str) -> Any:
    """A JSON document without the policy's digest and the version; other text as it is."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        return text
    if isinstance(document, dict):
        return {
            key: value
            for key, value in document.items()
            if key not in ("digest", "library_version")
        }
    return document


def wanted_fits(names: Sequence[str] = ()) -> dict[str, Callable[[], Asked]]:
    """The fits of these names, or all that there is data for."""
    fits = {
        **FITS,
        **{name: fit for name, fit in REAL.items() if has_data(FILES[name])},
        "command line": command_line,
    }
    unknown = [name for name in names if name not in fits]
    if unknown:
        raise SystemExit(
            f"there is no fit {unknown[0]!r}; there are {', '.join(fits)}."
        )
    return {name: fits[name] for name in names} if names else fits


# asking -----------------------------------------------------------------------------------


def answers(asked: Asked) -> Iterator[tuple[str, Any]]:
    """Everything that a model answers, by the names of what is asked."""
    yield from asked.more.items()
    model, X, y = asked.model, asked.X, asked.y
    if model is None:
        return
    prices = {} if asked.prices is None else {"prices": asked.prices}
    for method in ("predict", "predict_proba", "apply", "acquired", "acquisition_cost"):
        yield method, getattr(model, method)(X, **prices)
    yield "tree_", [str(model.tree_), model.tree_.to_dict()]
    for name in LEARNED:
        if hasattr(model, name):
            value = getattr(model, name)
            yield name, [value, str(value)]
    report = model.report(X, y, **prices)
    yield "report", [report.to_dict(), str(report)]
    if not prices:
        yield (
            "scores",
            [
                model.score(X, y),
                acquisition_cost_scorer(model, X, y),
                cost_adjusted_scorer(0.02)(model, X, y),
            ],
        )
    yield "picture", [model.to_svg(), model.to_svg(X, y, **prices)]
    rows = rows_to_follow(model.apply(X, **prices))
    yield "explain", [explanation(asked, i) for i in rows]
    for kind in SESSIONS:
        yield f"session, {kind}", [session_of(asked, i, kind) for i in rows]
    yield "acquire and step", [acquired_at_once(asked, i) for i in rows]
    yield "masked", masked(asked)
    yield "digest", model.policy_.digest
    yield from file_answers(asked)


def rows_to_follow(place: NDArray[np.intp]) -> list[int]:
    """One row of each place where rows stop, and the first rows, up to some."""
    first = np.unique(place, return_index=True)[1].tolist()
    return list(dict.fromkeys([*first, *range(len(place))]))[:N_ROWS_STEP_BY_STEP]


def one_row(X: Any, i: int) -> Any:
    """A table of one row."""
    return X.iloc[[i]] if isinstance(X, pd.DataFrame) else X[[i]]


def explanation(asked: Asked, i: int) -> list[Any]:
    """Why a row goes its way."""
    own = {} if asked.prices is None else {"prices": asked.prices[i]}
    said = asked.model.explain(one_row(asked.X, i), **own)
    return [said.to_dict(), str(said)]


def values_of(asked: Asked, i: int) -> dict[str, list[Any]]:
    """What each sensor reads for a row."""
    sensors, row = asked.model.sensors_, one_row(asked.X, i)
    cells = row.iloc[0].tolist() if isinstance(row, pd.DataFrame) else row[0].tolist()
    return {
        name: [cells[column] for column in columns]
        for name, columns in zip(sensors.names, sensors.columns, strict=True)
    }


def prices_of(asked: Asked, i: int) -> dict[str, float] | None:
    """A row's own prices, of the sensors that have them."""
    sensors, own = asked.model.sensors_, {}
    for j, (name, terms) in enumerate(zip(sensors.names, sensors.terms, strict=True)):
        if terms.varies:
            column = terms.price_column
            price = asked.prices[i, j] if column is None else asked.X[i, column]
            own[name] = float(price)
    return own or None


SESSIONS = ("plain", "limit", "unavailable", "known", "corrected")


def session_of(asked: Asked, i: int, kind: str) -> list[Any]:
    """A session step by step, its decision, and the decision after a pause.

    What the row would have bought last is unavailable, or known from the start, or first
    told with the values of another row.
    """
    policy, values, own = asked.model.policy_, values_of(asked, i), prices_of(asked, i)
    usual = policy.acquire(lambda sensor, columns: values[sensor], prices=own)
    last = usual.acquired[-1] if usual.acquired else None
    known = {last: values[last]} if kind == "known" and last else {}
    limit = 0.6 * usual.spent if kind == "limit" else None
    session = policy.session(known, limit=limit, prices=own)
    trace = []
    if kind == "corrected" and last:
        session.tell(last, values_of(asked, i - 1)[last])
        trace.append(step_form(session.step))
        session.tell(last, values[last], replace=True)
    while (step := session.ask()) is not None:
        trace.append(step_form(step))
        if kind == "unavailable" and step.sensor == last:
            session.unavailable(last)
        else:
            told = dict(zip(step.columns, values[step.sensor], strict=True))
            session.tell(step.sensor, told)
    state = session.to_dict()
    resumed = policy.resume(state)
    state.pop("model")  # the policy's digest
    ends = [session.decision(), resumed.decision()]
    return [trace, step_form(session.step), state, *ends]


def acquired_at_once(asked: Asked, i: int) -> list[Any]:
    """The decision by a function that is called for values, and the step after it."""
    policy, values, own = asked.model.policy_, values_of(asked, i), prices_of(asked, i)
    decision = policy.acquire(lambda sensor, columns: values[sensor], prices=own)
    told = {name: values[name] for name in decision.acquired}
    before = policy.step({}, prices=own)
    return [decision, step_form(before), step_form(policy.step(told, prices=own))]


def step_form(step: Any) -> dict[str, Any]:
    """A step with its reason as plain values."""
    form, why = step._asdict(), step.why
    form["why"] = why and [why.node, why.score, why.share, why.contributions, str(why)]
    return form


def masked(asked: Asked) -> list[Any]:
    """Actions and probabilities by masked arrays, from nothing known to the end."""
    policy, X = MaskedPolicy(asked.model.policy_), asked.X
    prices = {} if asked.prices is None else {"prices": asked.prices}
    mask = np.zeros((len(X), len(asked.model.sensors_.names)), dtype=bool)
    said = []
    while True:
        action = policy.act(X, mask, **prices)
        said.append([action, policy.predict(X, mask, **prices)])
        asks = np.flatnonzero(action)
        if not asks.size:
            return said
        mask[asks, action[asks] - 1] = True


def file_answers(asked: Asked) -> Iterator[tuple[str, Any]]:
    """The model file, and what is answered from it; leaves of others need no file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            save(asked.model, path)
        except ModelFileError:
            return
        loaded = load(path)
        yield "file", without_digest(path.read_text(encoding="utf-8"))
    prices = {} if asked.prices is None else {"prices": asked.prices}
    X = asked.X
    yield "loaded", [loaded.predict_proba(X, **prices), loaded.apply(X, **prices)]


# digests ----------------------------------------------------------------------------------


def digest(value: Any) -> str:
    """SHA-256 of plain values, arrays and dataclasses of them, to the last bit."""
    found = hashlib.sha256()
    for piece in pieces(value):
        found.update(len(piece).to_bytes(8, "little") + piece)
    return found.hexdigest()


def pieces(value: Any) -> Iterator[bytes]:
    """What a value is made of; the kind and the size of each part come first."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield f"array {value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, (list, tuple, np.ndarray)):
        yield f"sequence {len(value)}".encode()
        for item in value:
            yield from pieces(item)
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for key, item in value.items():
            yield from pieces(key)
            yield from pieces(item)
    elif isinstance(value, (set, frozenset)):
        yield from pieces(["set", *sorted(value)])
    elif is_dataclass(value) and not isinstance(value, type):
        yield from pieces({f.name: getattr(value, f.name) for f in fields(value)})
    elif isinstance(value, float):
        yield f"float {value.hex()}".encode()
    elif value is None or isinstance(value, (bool, int, str)):
        yield f"{type(value).__name__} {value!r}".encode()
    else:
        raise TypeError(f"a {type(value).__name__} has no digest here: {value!r}")


def digests_of(fit: Callable[[], Asked]) -> dict[str, str]:
    """Fit, ask, and digest; warnings are answers too, the date is none."""
    with (
        warnings.catch_warnings(record=True) as heard,
        mock.patch.dict(os.environ, SOURCE_DATE_EPOCH="0"),
    ):
        warnings.simplefilter("always")
        asked = fit()
        found = {what: digest(said) for what, said in answers(asked)}
    told = {(w.category.__name__, str(w.message)) for w in heard}
    return {**found, "warnings": digest(told)}


def makers() -> dict[str, str]:
    """Versions that digests may depend on."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "python": python,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "pandas": pd.__version__,
    }


# comparing --------------------------------------------------------------------------------


def run(fits: Mapping[str, Callable[[], Asked]]) -> Digests:
    """Digests of all fits; one that fails is told, and has none."""
    found: Digests = {}
    for name, fit in fits.items():
        started = time.process_time()
        try:
            found[name] = digests_of(fit)
        except Exception:
            traceback.print_exc()
            found[name] = {}
        seconds = time.process_time() - started
        print(f"{name}: {len(found[name])} digests, {seconds:.1f} s", file=sys.stderr)
    return found


def differences(before: Digests, after: Digests) -> list[str]:
    """One line for each digest that is not the same in both, in the order of `before`."""
    lines = []
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, {}), after.get(name, {})
        for what in dict.fromkeys([*old, *new]):
            if what not in new:
                lines.append(f"{name}: {what} is gone")
            elif what not in old:
                lines.append(f"{name}: {what} is new")
            elif old[what] != new[what]:
                lines.append(f"{name}: {what} differs")
    return lines


def compare(before: Digests, after: Digests, names: Sequence[str]) -> int:
    """Print what differs, of all fits or of some; the exit code."""
    before, written_with = dict(before), before.get(MAKERS, {})
    before.pop(MAKERS, None)
    if names:
        before = {name: before[name] for name in names if name in before}
    for library, version in makers().items():
        if written_with.get(library, version) != version:
            print(
                f"note: the digests were made with {library} {written_with[library]}, "
                f"this is {version}"
            )
    lines = differences(before, after)
    n_digests = sum(
        len(before.get(name, {}) | after.get(name, {})) for name in before | after
    )
    print(
        *lines,
        f"{len(before | after)} fits, {n_digests} digests, {len(lines)} differ",
        sep="\n",
    )
    return int(bool(lines))


def main(argv: Sequence[str] | None = None) -> int:
    """Write digests to a file, or compare with a file; 1 if something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="FIT", help="some fits only")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-o", "--output", type=Path, help="file to write digests to")
    what.add_argument("--compare", type=Path, help="file of digests to compare with")
    arguments = parser.parse_args(argv)
    before = arguments.compare and json.loads(arguments.compare.read_text("utf-8"))
    for name, file in FILES.items():
        if not has_data(file):
            print(
                f"{name} is left out: no {file}.npz in SENSORTREE_DATA", file=sys.stderr
            )
    started = time.process_time()
    found = run(wanted_fits(arguments.names))
    print(f"{time.process_time() - started:.0f} CPU seconds", file=sys.stderr)
    if before is not None:
        return compare(before, found, arguments.names)
    document = {MAKERS: makers(), **found}
    arguments.output.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    n_digests = sum(map(len, found.values()))
    print(f"{len(found)} fits, {n_digests} digests in {arguments.output}")
    return int(not all(found.values()))


if __name__ == "__main__":
    sys.exit(main())
