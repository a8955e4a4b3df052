"""Bad inputs, each with the one message it gets: what came, what to do."""

from __future__ import annotations

import re
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from sensortree import (
    Leaf,
    Node,
    Program,
    Sensor,
    SensorSet,
    SensorTree,
    SensorTreeClassifier,
    SensorTreeError,
    exhaustive_tree,
)
from sensortree.exceptions import (
    DataError,
    ParameterError,
    ProblemError,
    SensorError,
    TreeError,
)
from sensortree.learning import joint
from sensortree.program import SurrogateProblem, solve

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["age", "crp", "xray"])
TWO = {"a": ["age"], "b": ["crp", "xray"]}


def fit(sensors=None, X=FRAME, y=Y, sample_weight=None, **parameters):
    return lambda: SensorTreeClassifier(sensors, **parameters).fit(X, y, sample_weight)


def with_value(value, column=1, rows=slice(3, 4)):
    changed = X.copy()
    changed[rows, column] = value
    return changed


def fitted():
    return SensorTreeClassifier(TWO, root_sensors=["a"]).fit(FRAME, Y)


def problem(**changed):
    parts = {
        "negative": [1, -1],
        "positive": [-1, -1],
        "features": [np.ones((4, 1)), np.ones((4, 2))],
        "lost_if_negative": np.ones((4, 2)),
        "lost_if_positive": np.ones((4, 2)),
    }
    return lambda: SurrogateProblem(**{**parts, **changed})


CASES = {
    # columns of sensors
    "unknown column": (
        fit({"a": ["age"], "b": ["wbc", "xray"]}),
        SensorError,
        "sensor 'b' names column 'wbc', which X does not have; its columns are 'age', "
        "'crp', 'xray'.",
    ),
    "unknown column of an array": (
        fit({"a": ["age"], "b": [1, 2]}, X),
        SensorError,
        "sensor 'a' names column 'age', which X does not have; its columns are 'x0'",
    ),
    "position out of range": (
        fit({"a": [0], "b": [1, 2, 3]}),
        SensorError,
        "sensor 'b' names column 3, but X has columns 0 to 2.",
    ),
    "column of a wrong type": (
        fit({"a": [0.5], "b": [1, 2]}),
        SensorError,
        "sensor 'a' names column 0.5; a column is a name or a position.",
    ),
    "columns that are no columns": (
        fit({"a": 3.5, "b": [1, 2]}),
        SensorError,
        "the columns of sensor 'a' must be names, positions, a slice, a mask, a callable "
        "or a selector, got 3.5.",
    ),
    "column in two sensors": (
        fit({"a": ["age", "crp"], "b": ["crp", "xray"]}),
        SensorError,
        "sensors 'a' and 'b' both claim column 'crp'; each column belongs to one sensor.",
    ),
    "column listed twice": (
        fit({"a": ["age", "age"], "b": ["crp", "xray"]}),
        SensorError,
        "sensor 'a' lists column 'age' twice; list each column once.",
    ),
    "column in no sensor": (
        fit({"a": ["age"], "b": ["crp"]}),
        SensorError,
        "column 'xray' belongs to no sensor; add it to a sensor or drop it from X.",
    ),
    "sensor without columns": (
        fit({"a": ["age", "crp", "xray"], "b": []}),
        SensorError,
        "sensor 'b' has no columns; name at least one, or remove the sensor.",
    ),
    "mask of a wrong length": (
        fit({"a": [True, False], "b": [1, 2]}),
        SensorError,
        "the mask of sensor 'a' has 2 entries but X has 3 columns; give one entry per "
        "column.",
    ),
    "no sensors": (fit({}), SensorError, "there are no sensors; declare at least one."),
    "sensors as a list": (
        fit(["age", "crp"]),
        SensorError,
        "sensors must be a mapping of names to columns or Sensor objects, or None, got "
        "list; write {'blood': ['wbc', 'crp']}.",
    ),
    "sensor name that is no string": (
        fit({1: ["age"], "b": ["crp", "xray"]}),
        SensorError,
        "a sensor's name must be a non-empty string, got 1.",
    ),
    # prices
    "negative cost": (
        fit(TWO, costs={"a": -1}),
        SensorError,
        "the cost of sensor 'a' must be finite and at least 0, got -1; a sensor that is "
        "free costs 0, one that must never be bought is left out.",
    ),
    "NaN cost": (
        fit(TWO, costs={"a": float("nan")}),
        SensorError,
        "the cost of sensor 'a' must be finite and at least 0, got nan",
    ),
    "infinite cost": (
        lambda: Sensor(["age"], cost=np.inf),
        SensorError,
        "a sensor's cost must be finite and at least 0, got inf",
    ),
    "string cost": (
        fit(TWO, costs={"b": "12"}),
        SensorError,
        "the price of sensor 'b' is column '12', which X does not have; its columns are "
        "'age', 'crp', 'xray'. A price is a number or the name of a column.",
    ),
    "boolean cost": (
        lambda: Sensor(["age"], cost=True),
        SensorError,
        "a sensor's cost must be a number, got True; write it as 12.5.",
    ),
    "cost of an unknown sensor": (
        fit(TWO, costs={"blood": 12}),
        SensorError,
        "costs names 'blood', which is not a sensor; the sensors are 'a', 'b'.",
    ),
    "costs as a list": (
        fit(TWO, costs=[1, 2]),
        SensorError,
        "costs must be a mapping of sensor names to prices, or None, got list; write "
        "{'blood': 12.0}.",
    ),
    "priced twice": (
        fit({"a": Sensor(["age"], 2.0), "b": [1, 2]}, costs={"a": 3.0}),
        SensorError,
        "sensor 'a' is priced twice, by Sensor(cost=2.0) and by costs; keep one of them.",
    ),
    "sensor set of uneven parts": (
        lambda: SensorSet(("a", "b"), ((0,), (1,)), (1.0,)),
        SensorError,
        "2 names, 2 column lists and 1 costs were given; each sensor needs one of each.",
    ),
    "transformer that does not transform": (
        lambda: Sensor(["age"], transformer="scale"),
        SensorError,
        "a sensor's transformer must have a 'transform' method, got 'scale'; give a "
        "scikit-learn transformer or None.",
    ),
    # trees
    "child that knows less than its parent": (
        lambda: Node(["a", "b"], Leaf(["a"]), Leaf(["a", "b"])),
        TreeError,
        "the negative child knows {'a'} but its parent knows {'a', 'b'}; a child knows at "
        "least what its parent knows: add {'b'}.",
    ),
    "tree that forgets a sensor": (
        fit(TWO, structure=SensorTree(Node([], Leaf([]), Leaf(["a"])))),
        TreeError,
        "the tree forgets sensor 'b': no leaf knows it; add it to the tree, or remove it "
        "and its columns from sensors and X.",
    ),
    "tree with an unknown sensor": (
        fit(TWO, structure=SensorTree(Leaf(["a", "b", "mri"]))),
        TreeError,
        "the tree names sensor 'mri', which is not declared; the sensors are 'a', 'b'.",
    ),
    "dict tree with an unknown key": (
        fit(TWO, structure={"sensors": ["a"], "left": {}}),
        TreeError,
        "the tree has the unknown key 'left'; a vertex has 'sensors', a node also "
        "'negative' and 'positive', and a leaf may have 'refers'.",
    ),
    "dict tree without sensors": (
        fit(TWO, structure={"negative": {"sensors": []}, "positive": {"sensors": []}}),
        TreeError,
        "the tree lacks the key 'sensors'.",
    ),
    "dict tree with one child": (
        fit(TWO, structure={"sensors": [], "positive": {"sensors": ["a", "b"]}}),
        TreeError,
        "the tree has one child only; add 'negative', or remove the other to make it a "
        "leaf.",
    ),
    "dict tree whose child is no dict": (
        fit(
            TWO, structure={"sensors": [], "negative": "a", "positive": {"sensors": []}}
        ),
        TreeError,
        "the tree['negative'] must be a dict with the key 'sensors', got str.",
    ),
    "vertex named by a string": (
        lambda: Leaf("blood"),
        TreeError,
        "a vertex's sensors must be a list or set of names, got 'blood'; write ['blood'].",
    ),
    "vertex with a numbered sensor": (
        lambda: Leaf([1]),
        TreeError,
        "a vertex's sensors are named by strings, got 1 of type int.",
    ),
    "child that is no vertex": (
        lambda: Node([], Leaf([]), ["a"]),
        TreeError,
        "the positive child of a node must be a Leaf or a Node, got list.",
    ),
    "root that is no vertex": (
        lambda: SensorTree(["a"]),
        TreeError,
        "the root of a tree must be a Leaf or a Node, got list.",
    ),
    "structure too large to enumerate": (
        lambda: exhaustive_tree([f"s{i}" for i in range(10)]),
        TreeError,
        "the exhaustive tree over 10 sensors has 9864101 leaves, more than 400; use "
        "structure='cascade', give a tree, group columns into fewer sensors, or name more "
        "root_sensors.",
    ),
    "unknown root sensor": (
        fit(TWO, root_sensors=["vitals"]),
        SensorError,
        "root_sensors names 'vitals', which is not a sensor; the sensors are 'a', 'b'.",
    ),
    "root sensors of a tree of one's own": (
        fit(TWO, structure=SensorTree(Leaf(["a", "b"])), root_sensors=["a"]),
        ParameterError,
        "root_sensors is for trees that are built; the structure given is a tree, whose "
        "root says what is known there: leave root_sensors at 'auto'.",
    ),
    # parameters
    "negative cost weight": (
        fit(TWO, cost_weight=-0.1),
        ParameterError,
        "The 'cost_weight' parameter of SensorTreeClassifier must be a str among "
        "{'auto'} or a float in the range [0.0, inf). Got -0.1 instead.",
    ),
    "NaN cost weight": (
        fit(TWO, cost_weight=float("nan")),
        ParameterError,
        "The 'cost_weight' parameter of SensorTreeClassifier must be a str among "
        "{'auto'} or a float in the range",
    ),
    "infinite cost weight": (
        fit(TWO, cost_weight=float("inf")),
        ParameterError,
        "The 'cost_weight' parameter of SensorTreeClassifier must be a str among "
        "{'auto'} or a float in the range",
    ),
    "unknown structure": (
        fit(TWO, structure="forest"),
        ParameterError,
        "The 'structure' parameter of SensorTreeClassifier must be",
    ),
    "unknown solver": (
        fit(TWO, program=Program(solver="gurobi")),
        ParameterError,
        "The 'solver' parameter of Program must be a str among",
    ),
    "unknown savings": (
        fit(TWO, program=Program(savings="large")),
        ParameterError,
        "The 'savings' parameter of Program must be a str among",
    ),
    "tolerance of zero": (
        fit(TWO, program=Program(tol=0)),
        ParameterError,
        "The 'tol' parameter of Program must be a float in the range",
    ),
    "unknown classifier": (
        fit(TWO, classifier="forest"),
        ParameterError,
        "classifier must be a scikit-learn classifier or one of 'auto', 'linear', "
        "'logistic2', 'boosted', got 'forest'.",
    ),
    "classifier that is a class": (
        fit(TWO, classifier=LogisticRegression),
        ParameterError,
        "classifier must be an instance, got the class LogisticRegression; write "
        "LogisticRegression().",
    ),
    "classifier that is none": (
        fit(TWO, classifier=3),
        ParameterError,
        "The 'classifier' parameter of SensorTreeClassifier must be",
    ),
    "classifier without sample weights": (
        fit(TWO, classifier=KNeighborsClassifier(), sample_weight=np.ones(40)),
        ParameterError,
        "KNeighborsClassifier() cannot be fitted with sample weights; use a classifier "
        "that can, or fit without weights.",
    ),
    # data
    "one class": (
        fit(TWO, y=np.ones(40)),
        DataError,
        "y has one class only, 1.0; a classifier needs rows of at least two "
        "classes (with a weight above 0).",
    ),
    "one class once weights are seen": (
        fit(TWO, sample_weight=Y),
        DataError,
        "y has one class only",
    ),
    "no y": (
        fit(TWO, y=None),
        DataError,
        "requires y to be passed, but the target y is None",
    ),
    "y with NaN": (
        fit(TWO, y=np.where(Y == 1, np.nan, 0.0)),
        ValueError,
        "Input y contains NaN.",
    ),
    "y that is continuous": (
        fit(TWO, y=X[:, 0]),
        ValueError,
        "Unknown label type: continuous",
    ),
    "y of another length": (
        fit(TWO, y=Y[:5]),
        ValueError,
        "Found input variables with inconsistent numbers of samples: [40, 5]",
    ),
    "empty X": (
        fit(None, np.empty((0, 3)), np.empty(0)),
        ValueError,
        "Found array with 0 sample(s)",
    ),
    "X without columns": (
        fit(None, np.empty((40, 0))),
        ValueError,
        "0 feature(s)",
    ),
    "X of one dimension": (
        fit(None, X[:, 0]),
        ValueError,
        "Expected 2D array, got 1D array instead",
    ),
    "NaN that a transformer gives and the leaf classifier cannot take": (
        fit(
            {"a": [0], "b": Sensor([1, 2], transformer=StandardScaler())},
            with_value(np.nan),
            classifier="logistic2",
        ),
        DataError,
        "NaN in row 3 of sensor 'b', column 'x1'; leave out its transformer, since gaps "
        "are then filled, or use a classifier that accepts NaN, such as "
        "HistGradientBoostingClassifier().",
    ),
    "infinity": (
        fit({"a": [0], "b": [1, 2]}, with_value(-np.inf)),
        DataError,
        "infinity in row 3 of sensor 'b', column 'x1'; replace it by a finite number, or "
        "by NaN if it is missing.",
    ),
    "sensor of nothing but NaN": (
        fit({"a": [0, 2], "b": [1]}, with_value(np.nan, rows=slice(None))),
        DataError,
        "sensor 'b' holds nothing but NaN; leave it out, since there is nothing to learn "
        "from it.",
    ),
    "dates": (
        fit(TWO, FRAME.assign(age=pd.Timestamp("2026-05-01"))),
        DataError,
        "column 'age' of sensor 'a' holds dates; turn it into a number that means "
        "something, such as the days since an event: (X['date'] - X['birth']).dt.days in "
        "pandas, or leave it out.",
    ),
    "dates (polars)": (
        fit(
            TWO,
            pl.DataFrame(X, schema=list(FRAME)).with_columns(age=date(2026, 5, 1)),
        ),
        DataError,
        "column 'age' of sensor 'a' holds dates",
    ),
    "dates among objects": (
        fit(TWO, FRAME.assign(age=pd.Series([date(2026, 5, 1)] * 40, dtype=object))),
        DataError,
        "column 'age' of sensor 'a' holds dates",
    ),
    "lists in cells": (
        fit(TWO, FRAME.assign(age=[[1, 2]] * 40)),
        DataError,
        "column 'age' of sensor 'a' holds a list; a column holds numbers or text. Leave "
        "it out, or give its sensor a transformer.",
    ),
    "text that is different in every row": (
        fit(TWO, FRAME.assign(age=[f"patient {i}" for i in range(40)])),
        DataError,
        "column 'age' of sensor 'a' holds 40 different texts in 40 rows; there is nothing "
        "to learn from what hardly ever comes again. Leave it out, or keep the part "
        "of it that matters.",
    ),
    "numbers of which one is text": (
        fit(TWO, FRAME.assign(age=[f"{v:.3f}" for v in X[1:, 0]] + ["n/a"])),
        DataError,
        "column 'age' of sensor 'a' holds text, but 39 of its 40 different values are "
        "numbers; 'n/a' is not. Make it numbers, pandas.to_numeric(X[...], "
        "errors='coerce'), or, if they are names, a category: "
        "X[...].astype('category').",
    ),
    "negative sample weight": (
        fit(TWO, sample_weight=-np.ones(40)),
        ValueError,
        "Negative values in data passed to `sample_weight`",
    ),
    "sample weights all zero": (
        fit(TWO, sample_weight=np.zeros(40)),
        ValueError,
        "Sample weights must contain at least one non-zero number.",
    ),
    "sample weights of another length": (
        fit(TWO, sample_weight=np.ones(7)),
        ValueError,
        "sample_weight.shape == (7,), expected (40,)!",
    ),
    # prediction
    "missing column at prediction": (
        lambda: fitted().predict(FRAME[["age", "crp"]]),
        ValueError,
        "The feature names should match those that were passed during fit.",
    ),
    "columns in another order at prediction": (
        lambda: fitted().predict(FRAME[["crp", "age", "xray"]]),
        ValueError,
        "The feature names should match those that were passed during fit.",
    ),
    "text in a column of numbers": (
        lambda: fitted().predict(FRAME.assign(age="old")),
        DataError,
        "'old' in row 0 of sensor 'a', column 'age', is not a number, as all were in "
        "training; correct it, or give NaN if it is missing.",
    ),
    "NaN where training never missed a value, if strict": (
        lambda: fitted().set_strict().predict(FRAME.assign(age=np.nan)),
        DataError,
        "values that training never saw: no value in row 0, column 'age' of sensor 'a', "
        "which training never missed",
    ),
    # the program
    "child before its parent": (
        problem(negative=[0, -1]),
        ProblemError,
        "the negative child of node 0 is 0; it must be -1 for a leaf, or a node after 0 "
        "and before 2.",
    ),
    "node without a parent": (
        problem(negative=[-1, -1]),
        ProblemError,
        "node 1 is the child of 0 nodes; in a tree each node but the root has one parent.",
    ),
    "negative savings": (
        problem(lost_if_negative=-np.ones((4, 2))),
        ProblemError,
        "lost_if_negative must be finite and at least 0",
    ),
    "features of too few nodes": (
        problem(features=[np.ones((4, 1))]),
        ProblemError,
        "features has 1 arrays for 2 nodes; give one per node.",
    ),
    "features with NaN": (
        problem(features=[np.ones((4, 1)), np.full((4, 2), np.nan)]),
        ProblemError,
        "features[1] holds NaN or infinity; impute first.",
    ),
    "features of other samples": (
        problem(features=[np.ones((4, 1)), np.ones((5, 2))]),
        ProblemError,
        "features[1] must have shape (4, D) with D at least 1, got (5, 2).",
    ),
    "unknown solver of a problem": (
        lambda: solve(problem()(), "gurobi"),
        ParameterError,
        "solver must be one of 'structured', 'scipy', ",
    ),
    "negative ridge": (
        lambda: solve(problem()(), l2=-1.0),
        ParameterError,
        "l2 must be finite and at least 0, got -1.0.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_input_gets_its_message(case):
    call, exception, message = CASES[case]
    with pytest.raises(exception, match=re.escape(message)):
        call()


def test_there_are_enough_bad_inputs_and_ours_share_one_base():
    assert len(CASES) >= 40
    ours = {e for _, e, _ in CASES.values() if e is not ValueError}
    assert all(
        issubclass(e, SensorTreeError) and issubclass(e, ValueError) for e in ours
    )


@pytest.mark.parametrize(
    ("X", "y", "interrupt"),
    [(X[:, :2], Y, None), (FRAME, np.ones(40), None), (FRAME, Y, KeyboardInterrupt)],
    ids=["other columns", "one class", "interrupted"],
)
def test_a_failed_fit_leaves_a_fitted_model_as_it_was(X, y, interrupt, monkeypatch):
    model = fitted()
    before = model.predict(FRAME)
    state = dict(vars(model))
    if interrupt:

        def stop(*args, **kwargs):
            raise interrupt

        monkeypatch.setattr(joint, "solve", stop)
    with pytest.raises(interrupt or ValueError):
        model.fit(X, y)
    assert vars(model) == state
    np.testing.assert_array_equal(model.predict(FRAME), before)
