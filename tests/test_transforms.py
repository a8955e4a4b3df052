"""Claims about plain transformers: what scikit-learn's give, to the last bit."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from sensortree.exceptions import DataError, ModelFileError
from sensortree.leaves.compiling import compile_transformer
from sensortree.persistence.fields import Fields
from sensortree.persistence.scorers import read_transformer, write_transformer
from sensortree.sensors.transforms import Transform

RNG = np.random.default_rng(3)
NUMBERS = RNG.normal(size=(80, 3)) * [1.0, 1e3, 1e-3]
HOLES = np.where(RNG.random((80, 3)) < 0.2, np.nan, NUMBERS)
WORDS = np.array(["low", "mid", "high", "nil"])[RNG.integers(0, 3, size=(80, 2))]
MIXED = pd.DataFrame(
    {
        "age": HOLES[:, 0],
        "count": RNG.integers(0, 4, size=80),
        "word": pd.Series(WORDS[:, 0]),
        "kind": pd.Categorical(WORDS[:, 1]),
        "small": NUMBERS[:, 1].astype(np.float32),
    }
)
HOLED_WORDS = pd.DataFrame(
    {"a": np.where(RNG.random(80) < 0.3, None, WORDS[:, 0]).astype(object)}
).replace({None: np.nan})


def dense(values):
    return np.asarray(
        values.toarray() if hasattr(values, "toarray") else values, dtype=float
    )


def mixed_columns(remainder="drop"):
    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        (OneHotEncoder(handle_unknown="ignore"), ["word", "kind"]),
        ("passthrough", ["count"]),
        remainder=remainder,
    )


NUMERIC = {
    "mean": SimpleImputer(),
    "median": SimpleImputer(strategy="median"),
    "most frequent": SimpleImputer(strategy="most_frequent"),
    "constant": SimpleImputer(strategy="constant", fill_value=-1.5),
    "indicator": SimpleImputer(add_indicator=True),
    "standard": StandardScaler(),
    "mean only": StandardScaler(with_std=False),
    "scale only": StandardScaler(with_mean=False),
    "range": MinMaxScaler((-1, 2)),
    "clipped range": MinMaxScaler(clip=True),
    "pipeline": make_pipeline(
        SimpleImputer(add_indicator=True), "passthrough", MinMaxScaler()
    ),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("name", NUMERIC)
def test_numbers_become_what_scikit_learn_makes_of_them(name, frame, dtype):
    fitted = NUMERIC[name].fit(frame(HOLES[:60].astype(dtype)))
    plain = compile_transformer(fitted)
    assert isinstance(plain, Transform)
    rows = 3.0 * HOLES
    for some in (rows, rows[-1:], rows[:0]):
        X = frame(some.astype(dtype))
        made = plain.transform(X)
        assert made.shape == (len(some), plain.width)
        if len(some):
            np.testing.assert_array_equal(dense(made), dense(fitted.transform(X)))


CATEGORICAL = {
    "one hot": (OneHotEncoder(), WORDS),
    "ignore": (OneHotEncoder(handle_unknown="ignore"), WORDS),
    "drop first": (OneHotEncoder(drop="first", sparse_output=False), WORDS),
    "drop if binary": (OneHotEncoder(drop="if_binary"), WORDS == "low"),
    "objects": (OneHotEncoder(), WORDS.astype(object)),
    "numbers": (OneHotEncoder(), MIXED[["count"]].to_numpy()),
    "NaN is a category": (OneHotEncoder(), np.round(HOLES)),
    "pandas": (OneHotEncoder(), MIXED[["word", "kind", "count"]]),
    "polars": (OneHotEncoder(), pl.DataFrame(WORDS, schema=["a", "b"])),
    "given": (OneHotEncoder(categories=[["nil", "mid", "low", "high"]] * 2), WORDS),
    "ordinal": (OrdinalEncoder(), WORDS),
    "ordinal unknown": (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-7),
        WORDS,
    ),
    "ordinal missing": (OrdinalEncoder(encoded_missing_value=-1), HOLED_WORDS),
    "filled words": (
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
        HOLED_WORDS,
    ),
    "constant word": (
        make_pipeline(
            SimpleImputer(strategy="constant", fill_value="gone"), OrdinalEncoder()
        ),
        HOLED_WORDS,
    ),
    "columns": (mixed_columns(), MIXED),
    "columns and the rest": (mixed_columns("passthrough"), MIXED),
    "nothing at all": (ColumnTransformer([("no", "drop", [0])]), NUMBERS),
    "by position": (
        make_column_transformer((StandardScaler(), [2, 0]), remainder="passthrough"),
        NUMBERS,
    ),
}


@pytest.mark.parametrize("name", CATEGORICAL)
def test_categories_become_what_scikit_learn_makes_of_them(name):
    transformer, X = CATEGORICAL[name]
    fitted = transformer.fit(X)
    plain = compile_transformer(fitted)
    assert isinstance(plain, Transform)
    for rows in (X, X[:1]):
        np.testing.assert_array_equal(
            dense(plain.transform(rows)), dense(fitted.transform(rows))
        )


@pytest.mark.parametrize("name", ["ignore", "ordinal unknown"])
def test_a_new_word_is_treated_as_scikit_learn_does(name):
    transformer, X = CATEGORICAL[name]
    fitted = transformer.fit(X)
    new = np.array([["never seen", "low"], ["mid", ""]])
    np.testing.assert_array_equal(
        dense(compile_transformer(fitted).transform(new)), dense(fitted.transform(new))
    )


FEW = np.array([["a", 1], ["a", 2], ["a", 2], ["b", 2], ["c", 2], ["d", 1]], object)
NEW = np.array([["a", 1], ["b", 2], ["d", 7], ["new", 2]], dtype=object)


@pytest.mark.parametrize("unknown", ["ignore", "infrequent_if_exist"])
@pytest.mark.parametrize("drop", [None, "first", "if_binary", ["a", 2]])
@pytest.mark.parametrize(
    "limits", [{}, {"min_frequency": 2}, {"max_categories": 3}, {"min_frequency": 9}]
)
def test_rare_categories_share_a_column_as_in_scikit_learn(limits, drop, unknown):
    encoder = OneHotEncoder(drop=drop, handle_unknown=unknown, **limits)
    if limits == {"min_frequency": 9} and isinstance(drop, list):
        pytest.skip("scikit-learn drops no category by name that is rare")
    fitted = encoder.fit(FEW)
    plain = compile_transformer(fitted)
    assert isinstance(plain, Transform)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn says what zeros may mean
        expected = dense(fitted.transform(NEW))
    np.testing.assert_array_equal(plain.transform(NEW), expected)


def test_rare_categories_are_still_rare_when_read_from_a_file():
    encoder = OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist")
    plain = compile_transformer(encoder.fit(FEW))
    written = json.loads(json.dumps(write_transformer(plain, "it", None)))
    read = read_transformer(Fields(written, "it"), 2, None)
    np.testing.assert_array_equal(read.transform(NEW), plain.transform(NEW))


@pytest.mark.parametrize("rare", [[[0, 9], []], [[0, 0], []], [["a"], []], [0, 1]])
def test_rare_categories_of_a_file_are_categories(rare):
    plain = compile_transformer(OneHotEncoder(min_frequency=2).fit(FEW))
    written = {**write_transformer(plain, "it", None), "rare": rare}
    with pytest.raises(ModelFileError, match="rare"):
        read_transformer(Fields(written, "it"), 2, None)


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OrdinalEncoder()])
def test_a_new_word_that_may_not_be_is_an_error_that_names_it(encoder):
    plain = compile_transformer(encoder.fit(WORDS))
    with pytest.raises(DataError, match=r"unknown categories \['new'\] in column 1"):
        plain.transform(np.array([["low", "new"]], dtype=object))


def test_an_empty_column_is_left_out_as_scikit_learn_does():
    X = HOLES.copy()
    X[:, 1] = np.nan
    fitted = SimpleImputer(add_indicator=True).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = fitted.transform(X)
    np.testing.assert_array_equal(compile_transformer(fitted).transform(X), expected)


def test_missing_values_of_pandas_own_types_are_missing():
    X = pd.DataFrame({"a": pd.array([1, None, 4], dtype="Int64"), "b": [0.5, 1.5, 9]})
    fitted = SimpleImputer().fit(X)
    np.testing.assert_array_equal(
        compile_transformer(fitted).transform(X), fitted.transform(X)
    )


FOREIGN = [
    RobustScaler(),
    FunctionTransformer(np.abs),
    SimpleImputer(missing_values=-1),
    OneHotEncoder(handle_unknown="warn"),
    OrdinalEncoder(min_frequency=2),
    make_pipeline(StandardScaler(), RobustScaler()),
    ColumnTransformer([("a", RobustScaler(), [0])], remainder="passthrough"),
    ColumnTransformer([("a", StandardScaler(), [0])], transformer_weights={"a": 2}),
]


@pytest.mark.parametrize("transformer", FOREIGN, ids=str)
def test_another_kind_stays_as_it_is(transformer):
    fitted = transformer.fit(np.round(NUMBERS))
    assert compile_transformer(fitted) is fitted


# what the columns mean --------------------------------------------------------------------


def test_every_column_that_comes_out_has_a_name_and_a_column_it_is_made_of():
    imputer = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    both = make_column_transformer(
        (OneHotEncoder(drop=["low"]), ["word"]), (imputer, ["age", "count"])
    )
    plain = compile_transformer(both.fit(MIXED))
    names = plain.names(list(MIXED.columns))
    assert names == ("word = high", "word = mid", "age", "count", "age is missing")
    assert plain.sources == (2, 2, 0, 1, 0)
    assert plain.width == len(names) == len(plain.sources)


def test_a_one_hot_column_is_1_where_what_its_name_says_is_true():
    plain = compile_transformer(OneHotEncoder().fit(HOLED_WORDS))
    made = plain.transform(HOLED_WORDS)
    for i, name in enumerate(plain.names(["a"])):
        if name == "a is missing":
            said = HOLED_WORDS["a"].isna()
        else:
            said = "a = " + HOLED_WORDS["a"] == name
        np.testing.assert_array_equal(made[:, i] == 1, said)
    assert "a is missing" in plain.names(["a"])


@pytest.mark.parametrize(
    "transformer", [StandardScaler(), MinMaxScaler(), OrdinalEncoder()]
)
def test_what_keeps_columns_keeps_their_names(transformer):
    plain = compile_transformer(transformer.fit(NUMBERS))
    assert plain.names(["a", "b", "c"]) == ("a", "b", "c")
    assert plain.sources == (0, 1, 2)


def test_rare_categories_share_a_name_as_they_share_a_column():
    X = np.array([["a"]] * 10 + [["b"]] * 10 + [["c"], ["d"]], dtype=object)
    encoder = OneHotEncoder(min_frequency=3, sparse_output=False).fit(X)
    plain = compile_transformer(encoder)
    named = plain.names(["city"])
    assert named == ("city = a", "city = b", "city = one of 2 rare ones")
    assert len(named) == plain.width == encoder.transform(X).shape[1]


def test_names_are_as_many_as_columns_come_out():
    for drop in (None, "first", "if_binary"):
        for few in (None, 2, 30):
            encoder = OneHotEncoder(drop=drop, min_frequency=few).fit(WORDS)
            plain = compile_transformer(encoder)
            assert isinstance(plain, Transform)
            assert len(plain.names(["a", "b"])) == plain.width == len(plain.sources)
