"""Small fitted models of every kind that a file can hold, with rows to ask them about."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from sensortree import (
    AlternatingTreeClassifier,
    Leaf,
    Node,
    Program,
    Sensor,
    SensorTree,
    SensorTreeClassifier,
    guarantee_error,
)

GIVEN = {
    "sensors": [],
    "negative": {"sensors": []},
    "positive": {
        "sensors": ["a"],
        "negative": {"sensors": ["a"]},
        "positive": {"sensors": ["a", "b"]},
    },
}
SENSORS = {"a": [0, 1], "b": [2, 3]}


def numbers(n: int = 160):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4))
    X[:, 1] = np.abs(X[:, 0])
    near = X[:, 1] < 0.6
    return X, np.where(near, X[:, 2] + X[:, 3], X[:, 0]) > 0


def _binary(**parameters):
    X, y = numbers()
    parameters = {"costs": {"a": 0.0, "b": 2.0}, "structure": GIVEN, **parameters}
    words = np.where(y, "yes", "no")
    return SensorTreeClassifier(SENSORS, **parameters).fit(X, words), X, None


def _iris(nan=False, classes=None, **parameters):
    X, y = load_iris(return_X_y=True)
    if nan:
        X[::5, 2] = np.nan
    y = y if classes is None else np.array(classes)[y]
    sensors = {"sepal": [0, 1], "petal": [2, 3]}
    model = SensorTreeClassifier(sensors, costs={"petal": 3.0}, **parameters)
    return model.fit(X, y), X, None


def _boosted(rounds=4):
    return HistGradientBoostingClassifier(
        max_iter=rounds, max_leaf_nodes=5, early_stopping=False, random_state=0
    )


def text_frame(library=pd):
    rng = np.random.default_rng(0)
    n = 120
    age, sex = rng.integers(20, 80, n), rng.choice(["f", "m"], n)
    pain = rng.choice(["none", "some", "strong"], n)
    crp = np.where(rng.random(n) < 0.2, np.nan, rng.exponential(size=n))
    frame = library.DataFrame({"age": age, "sex": sex, "pain": pain, "crp": crp})
    y = (age > 50) ^ ((np.nan_to_num(crp) > 1) & (sex == "f"))
    return frame, np.where(y, "ill", "well")


def _frame(library=pd, cost_weight=0.002, **more):
    frame, y = text_frame(library)
    sensors = {
        "history": Sensor(
            ["age", "sex"],
            cost=0.0,
            transformer=make_column_transformer(
                (OneHotEncoder(drop="first"), ["sex"]),
                (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
            ),
        ),
        "pain": Sensor(
            "pain",
            cost=1.0,
            transformer=make_pipeline(
                OrdinalEncoder(
                    handle_unknown="use_encoded_value", unknown_value=np.nan
                ),
                SimpleImputer(strategy="most_frequent"),
                MinMaxScaler(clip=True),
            ),
        ),
        "blood": Sensor(
            "crp", cost=12.0, transformer=SimpleImputer(add_indicator=True)
        ),
    }
    model = SensorTreeClassifier(
        sensors, cost_weight=cost_weight, structure="exhaustive", **more
    )
    return model.fit(frame, y), frame, None


def _plain_frame():
    """Text, numbers and gaps, for which no transformer is declared."""
    frame, y = text_frame()
    frame.loc[::9, "pain"] = None
    frame.loc[[3, 4], "sex"] = "x"  # rare
    sensors = {
        "history": Sensor(["age", "sex"], cost=0.0),
        "pain": Sensor("pain", cost=1.0),
        "blood": Sensor("crp", cost=12.0),
    }
    model = SensorTreeClassifier(sensors, cost_weight=0.0005, structure="exhaustive")
    return model.fit(frame, y), frame, None


def level_frame():
    """Towns and trades, by which there is no order, a number, and gaps in all."""
    rng = np.random.default_rng(7)
    n = 400
    town, trade = rng.integers(0, 12, n), rng.integers(0, 7, n)
    dose = rng.normal(size=n)
    y = (town % 3 == 0) ^ (trade % 2 == 0) ^ (dose > 1)
    frame = pd.DataFrame(
        {
            "town": [f"town {i}" for i in town],
            "dose": dose,
            "trade": [f"trade {i}" for i in trade],
        }
    )
    for start, column in enumerate(frame):
        frame.loc[start::17, column] = None
    return frame, np.where(y, "ill", "well")


def _levels():
    """Leaves that split categories by sets of levels."""
    frame, y = level_frame()
    sensors = {
        "home": Sensor(["town", "dose"], cost=1.0),
        "work": Sensor("trade", cost=2.0),
    }
    model = SensorTreeClassifier(
        sensors, cost_weight=0.01, classifier="boosted", structure="exhaustive"
    )
    return model.fit(frame, y), frame, None


def codes(n: int, seed: int = 0):
    """A number from 0 to 4 that says which of five answers is nearly always right."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(5, size=n), rng.integers(2, size=(n, 5))])
    right = X[np.arange(n), 1 + X[:, 0]]
    return X.astype(np.float64), right ^ (rng.random(n) < 0.1)


def route_by_code(code: str = "code"):
    """The tree that buys what the code says, a node for each but the last."""
    vertex = Leaf([code, "s4"])
    for name in ("s3", "s2", "s1", "s0"):
        vertex = Node([code], vertex, Leaf([code, name]))
    return SensorTree(vertex)


CODED = {"code": Sensor([0], cost=0.0)} | {
    f"s{i}": Sensor([1 + i], cost=1.0) for i in range(5)
}


def _codes():
    """Numbers that are codes, with gaps; some that are asked about are no code."""
    X, y = codes(400)
    X[::11, 0] = np.nan
    model = SensorTreeClassifier(
        CODED, structure=route_by_code(), cost_weight=0.11, classifier="boosted"
    )
    asked = X[:120].copy()
    asked[5::10, 0] = 2.5
    return model.fit(X, y), asked, None


def _money():
    X, y = numbers()
    sensors = {
        "a": Sensor([0, 1], cost=7.27, discounted_cost=5.17, group="blood"),
        "b": Sensor([2], cost=15.51, fee=2.10, group="blood", after=["a"]),
        "c": Sensor([3], cost=20.0, one_of="picture"),
    }
    model = SensorTreeClassifier(
        sensors,
        cost_weight=1.0,
        loss={"no": {"yes": 60.0}, "yes": {"no": 400.0}},
        max_cost=30.0,
        structure="exhaustive",
        root_sensors=[],
    )
    return model.fit(X, np.where(y, "yes", "no")), X, None


def _price_column():
    X, y = numbers()
    prices = np.random.default_rng(1).uniform(0.5, 9.0, size=len(X))
    frame = pd.DataFrame(np.c_[X, prices], columns=["p", "q", "r", "s", "price"])
    sensors = {
        "a": Sensor(["p", "q"], cost=1.0),
        "b": Sensor(["r", "s"], cost="price", fee=0.5, group="g"),
    }
    model = SensorTreeClassifier(sensors, max_cost=5.0, structure="cascade")
    return model.fit(frame, y), frame, None


def _prices_beside():
    X, y = numbers()
    prices = np.random.default_rng(2).uniform(0.0, 9.0, size=(len(X), 2))
    model = SensorTreeClassifier(SENSORS, structure=GIVEN)
    return model.fit(X, y.astype(float), prices=prices), X, prices


def _alternating():
    X, y = numbers()
    model = AlternatingTreeClassifier(SENSORS, structure=GIVEN)
    return model.fit(X, y), X, None


def _promised():
    """Answers that are not sure enough are handed over too."""
    model, X, _ = _binary(cost_weight=0.2)
    rows, y = numbers(800)
    new = rows[160:], np.where(y[160:], "yes", "no")
    return guarantee_error(model, *new, error=0.05), X, None


def puzzling(n_rows: int, seed: int):
    """A class that a linear leaf misjudges on either side of the first decision.

    It is likely where the first reading is far from 0, on both sides; elsewhere the second
    reading tells.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    far = np.abs(X[:, 0])
    score = np.where(far > 1, 1.5 * far - 1, 2 * X[:, 1] - 1)
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(int)


def _puzzling(risk):
    """Leaves that are calibrated on those who reach them."""
    X, y = puzzling(1000, 0)
    model = SensorTreeClassifier(cost_weight=0.02, classifier="linear", risk=risk)
    return model.fit(X, y), X[:200], None


KINDS = {
    "quadratic logistic": _binary,
    "logistic regression": lambda: _binary(classifier=LogisticRegression()),
    "boosted, two classes": lambda: _binary(classifier=_boosted()),
    "boosted, NaN": lambda: _iris(nan=True, classifier=_boosted()),
    "boosted, levels": _levels,
    "numeric codes": _codes,
    "three classes": _iris,
    "classes of numbers": lambda: _iris(classes=[2.0, -1.0, 5.0]),
    "classes of objects": lambda: _iris(
        classes=np.array(["x", "é", "z"], dtype=object)
    ),
    "as published": lambda: _binary(
        program=Program(
            decision_features="raw", refine=False, l2=0.0, savings="published"
        ),
        cv=None,
    ),
    "quadratic decisions": lambda: _binary(
        program=Program(decision_features="quadratic")
    ),
    "scaled decisions": lambda: _binary(
        program=Program(decision_features=StandardScaler())
    ),
    "pandas": _frame,
    "text and gaps": _plain_frame,
    "low prices": lambda: _frame(
        cost_weight=0.0002, classifier="linear", program=Program(refine=False)
    ),
    "polars": lambda: _frame(pl),
    "money": _money,
    "price column": _price_column,
    "prices beside": _prices_beside,
    "alternating": _alternating,
    "referral": lambda: _binary(refer_cost=0.05),
    "promised error": _promised,
    "referral by class": lambda: _iris(
        refer_cost={0: 0.05, 1: 0.02, 2: 0.03}, cost_weight=0.0
    ),
    "calibrated leaves": lambda: _puzzling("error"),
    "judged by log-loss": lambda: _puzzling("log_loss"),
    "calibrated, sigmoid": lambda: _binary(calibration="sigmoid"),
    "calibrated, isotonic": lambda: _iris(calibration="isotonic"),
    "calibrated, temperature": lambda: _iris(calibration="temperature"),
    "calibrated, boosted": lambda: _iris(calibration="sigmoid", classifier="boosted"),
    "calibrated, ensemble": lambda: _binary(
        classifier=CalibratedClassifierCV(_boosted(), method="isotonic", cv=3)
    ),
}


@cache
def fitted(kind: str):
    """A fitted model, X, and prices or None."""
    return KINDS[kind]()
