"""Claims about text, truth, gaps and numbers in one table, without any transformer."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sensortree
from sensortree import (
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    MyopicClassifier,
    Sensor,
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    StaticSubsetClassifier,
    tradeoff_curve,
)
from sensortree.sensors.reader import (
    FEWEST,
    MOST,
    fit_default_encoding,
    median,
)
from sensortree.sensors.table import kind_of

N = 200
RNG = np.random.default_rng(0)
AGE = RNG.integers(20, 80, N)
SEX = np.where(RNG.random(N) < 0.1, None, RNG.choice(["F", "M"], N))
PAIN = RNG.choice(["none", "some", "strong"], N)
CRP = np.where(RNG.random(N) < 0.3, np.nan, RNG.exponential(size=N))
SMOKES = RNG.random(N) < 0.3
Y = np.where((AGE > 50) ^ ((np.nan_to_num(CRP) > 1) & (PAIN != "none")), "ill", "well")

COLUMNS = {"age": AGE, "sex": SEX, "pain": PAIN, "crp": CRP, "smokes": SMOKES}
PANDAS, POLARS = pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS)
FRAMES = {
    "pandas": PANDAS,
    "objects": PANDAS.astype(object),
    "strings and categories": PANDAS.astype(
        {
            "sex": "string",
            "pain": "category",
            "smokes": "boolean",
            "age": "Int64",
            "crp": "Float64",
        }
    ),
    "polars": POLARS,
    "polars categories": POLARS.with_columns(
        pl.col("sex").cast(pl.Categorical),
        pl.col("pain").cast(pl.Enum(["strong", "some", "none"])),
        pl.col("crp").fill_nan(None),
    ),
    "array of objects": PANDAS.to_numpy(dtype=object),
    "lists": PANDAS.to_numpy(dtype=object).tolist(),
}
SENSORS = {"intake": Sensor([0, 1, 2], 1.0), "blood": Sensor([3, 4], 4.0)}


METHODS = [
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    MyopicClassifier,
    SensorTreeClassifierCV,
    StaticSubsetClassifier,
]


def model(**parameters):
    return SensorTreeClassifier(SENSORS, cost_weight=0.002, cv=3, **parameters)


@pytest.fixture(scope="module")
def fitted():
    return model().fit(PANDAS, Y)


@pytest.mark.parametrize("name", FRAMES)
def test_the_same_values_are_the_same_model_in_every_kind_of_table(name, fitted):
    X = FRAMES[name]
    np.testing.assert_array_equal(
        model().fit(X, Y).predict_proba(X), fitted.predict_proba(PANDAS)
    )


@pytest.mark.parametrize("name", FRAMES)
def test_a_model_reads_a_kind_of_table_that_it_was_not_fitted_on(
    name, fitted, tmp_path
):
    X, expected = FRAMES[name], fitted.predict_proba(PANDAS)
    if name != "lists" and "array" not in name:
        np.testing.assert_array_equal(fitted.predict_proba(X), expected)
    sensortree.save(fitted, tmp_path / "model.json")
    loaded = sensortree.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)


def test_a_session_reads_text_and_gaps_as_a_table_does(fitted):
    rows = PANDAS.astype(object).to_numpy().tolist()
    for row in rows[:40]:
        decision = fitted.policy_.acquire(
            lambda sensor, columns, row=row: [
                row[PANDAS.columns.get_loc(column)] for column in columns
            ]
        )
        alone = PANDAS.iloc[[rows.index(row)]]
        np.testing.assert_array_equal(decision.proba, fitted.predict_proba(alone)[0])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_every_method_takes_text_and_gaps(method):
    estimator = method(SENSORS)
    if "cv" in estimator.get_params():
        estimator.set_params(cv=3)
    estimator.fit(PANDAS, Y)
    assert estimator.predict(PANDAS).shape == (N,)
    again = clone(estimator).fit(PANDAS, Y)
    np.testing.assert_array_equal(again.predict(PANDAS), estimator.predict(PANDAS))


def test_a_curve_and_a_pipeline_take_text_and_gaps():
    weights = [0.05, 0.001]
    curve = tradeoff_curve(model(), PANDAS, Y, cost_weights=weights, cv=3)
    assert curve.mean_cost[0] <= curve.mean_cost[-1]
    same = make_pipeline(FunctionTransformer(), model())
    assert cross_val_score(same, PANDAS, Y, cv=3).min() > 0.5


def test_the_order_of_rows_changes_nothing(fitted):
    order = np.random.default_rng(1).permutation(N)
    shuffled = model().fit(PANDAS.iloc[order], Y[order])
    np.testing.assert_array_equal(
        shuffled.predict_proba(PANDAS), fitted.predict_proba(PANDAS)
    )


def test_numbers_without_gaps_have_no_transform():
    X = RNG.normal(size=(60, 2))
    fitted = SensorTreeClassifier(cv=3).fit(X, X[:, 0] > 0)
    assert fitted.policy_.reader.transformers == {}


def test_a_boosted_leaf_is_given_gaps_as_gaps():
    fitted = model(classifier="boosted").fit(PANDAS, Y)
    reader = fitted.policy_.reader
    assert "blood" not in reader.transformers  # numbers and truth, as they are
    assert reader.widths == (1 + 3 + 3, 2)


# what becomes of columns ------------------------------------------------------------------


def made(columns, kinds, keeps_nan=False):
    X = np.empty((len(columns[0]), len(columns)), dtype=object)
    for i, column in enumerate(columns):
        X[:, i] = column
    transform = fit_default_encoding(X, kinds, None, keeps_nan)
    return transform, X


def test_a_gap_becomes_the_median_and_a_mark():
    transform, X = made([[1.0, None, 7.0, 3.0]], ["number"])
    np.testing.assert_array_equal(
        transform.transform(X), [[1, 0], [3, 1], [7, 0], [3, 0]]
    )


def test_a_column_that_had_no_gap_has_no_mark():
    transform, _ = made([[1.0, None, 2.0], [5.0, 6.0, 7.0]], ["number"] * 2)
    np.testing.assert_array_equal(
        transform.transform(np.array([[np.nan, np.nan]])), [[1.0, 6.0, 1.0]]
    )


def test_the_median_counts_a_row_of_weight_two_twice():
    column = np.array([1.0, 2.0, 9.0, np.nan])
    assert median(column, np.array([1.0, 1.0, 3.0, 50.0])) == 9.0
    assert median(np.repeat(column, [1, 1, 3, 50]), None) == 9.0


def test_missing_text_is_a_level_and_blank_text_is_missing():
    column = ["a"] * FEWEST + [None] * 3 + [" "] * 2
    transform, X = made([column], ["text"])
    np.testing.assert_array_equal(
        transform.transform(X), np.repeat([[1, 0], [0, 1]], FEWEST, axis=0)
    )


def test_rare_levels_and_new_ones_share_a_column():
    column = ["a"] * FEWEST + ["b"] * (FEWEST - 1) + ["c"]
    transform, _ = made([column], ["text"])
    one_of_each = np.array([["a"], ["b"], ["c"], ["new"], [None]], dtype=object)
    np.testing.assert_array_equal(
        transform.transform(one_of_each), [[1, 0], [0, 1], [0, 1], [0, 1], [0, 1]]
    )


def test_a_new_level_is_nothing_where_none_was_rare():
    transform, _ = made([["a"] * FEWEST + ["b"] * FEWEST], ["text"])
    new = np.array([["c"]], dtype=object)
    np.testing.assert_array_equal(transform.transform(new), [[0, 0]])


def test_the_most_frequent_levels_have_columns():
    levels = [f"level {i:02}" for i in range(MOST + 3)]
    column = [level for level in levels for _ in range(FEWEST)] + [levels[-1]]
    transform, _ = made([column], ["text"])
    assert transform.width == MOST + 1
    last = np.array([[levels[-1]], [levels[MOST - 1]]], dtype=object)
    shown = transform.transform(last)
    assert shown[0, -1] == 0  # one row more than the others
    assert shown[1, -1] == 1  # of those as frequent, the last in order has none


def test_in_an_array_text_that_is_numbers_is_numbers():
    # which it had to become, beside a column that is text
    X = np.array([["1.5", "a"], ["2", "b"]])
    assert [kind_of(X[:, i], None, "it") for i in range(2)] == ["number", "text"]


def test_the_plain_transform_is_in_the_file(fitted, tmp_path):
    sensortree.save(fitted, tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    steps = document["reader"]["transformers"]["intake"]["steps"]
    assert steps[0] == {"kind": "typed", "n_columns": 3, "text": [1, 2]}
    assert document["reader"]["transformers"]["blood"]["kind"] == "imputer"


def test_gaps_are_filled_as_by_an_imputer_that_marks_them():
    own = Sensor([3, 4], 4.0, SimpleImputer(strategy="median", add_indicator=True))
    X = PANDAS.assign(smokes=SMOKES.astype(float), crp=RNG.exponential(size=N))
    X.loc[::3, "crp"] = np.nan  # 133 values are left; the median is one of them
    by_hand = SensorTreeClassifier({**SENSORS, "blood": own}, cost_weight=0.002, cv=3)
    np.testing.assert_array_equal(
        by_hand.fit(X, Y).predict_proba(X), model().fit(X, Y).predict_proba(X)
    )
