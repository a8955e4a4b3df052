"""Claims about the estimators: scikit-learn's contract, leakage, weights, frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    check_inplace_ensure_writeable,
    parametrize_with_checks,
)

from sensortree import (
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    Leaf,
    MyopicClassifier,
    Program,
    QuadraticLogisticRegression,
    Sensor,
    SensorTree,
    SensorTreeClassifier,
    StaticSubsetClassifier,
)

SETTINGS = [
    SensorTreeClassifier(),
    SensorTreeClassifier(
        structure="cascade",
        program=Program(savings="published", solver="highs"),
        cost_weight=0,
    ),
    AlternatingTreeClassifier(n_starts=2),
    SensorTreeClassifier(
        classifier=LogisticRegression(tol=1e-10, max_iter=5000),
        program=Program(l2=0.1, solver="clarabel"),
        structure="cascade",
        cost_weight=0.001,
    ),
    SensorTreeClassifier(
        classifier=QuadraticLogisticRegression(C=10),
        structure="cascade",
        program=Program(
            tol=1e-4, solver="scipy-path", decision_features="raw", fallback=False
        ),
        cv=None,
        cost_weight=0.0,
    ),
    MyopicClassifier(),
    CascadeClassifier(),
    StaticSubsetClassifier(),
    ASTCClassifier(),
    CSTCClassifier(),
]


@parametrize_with_checks([*SETTINGS, QuadraticLogisticRegression()])
def test_scikit_learns_checks_pass_without_exception(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", SETTINGS, ids=range(len(SETTINGS)))
def test_checks_outside_the_public_list_pass_too(model):
    check_dataframe_column_names_consistency("SensorTreeClassifier", model)
    check_inplace_ensure_writeable("SensorTreeClassifier", model)


# what fit leaves behind -------------------------------------------------------------------


def test_fit_leaves_what_the_docstring_names(two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs).fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.sensors_.names == ("cheap", "dear")
    assert model.tree_.n_leaves == 2
    assert model.certificate_.converged
    assert model.fallback_leaf_ is None
    assert model.n_features_in_ == 4


def test_outputs_agree_with_each_other(two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=0.02).fit(X, y)
    leaf, acquired, cost = model.apply(X), model.acquired(X), model.acquisition_cost(X)
    assert 0 < leaf.mean() < 1  # both leaves are used
    np.testing.assert_array_equal(acquired[:, 1], leaf == 1)
    np.testing.assert_allclose(cost, acquired @ model.sensors_.costs)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(
        model.predict(X), model.classes_[probabilities.argmax(axis=1)]
    )
    assert model.score(X, y) == np.mean(model.predict(X) == y)


def test_the_dear_sensor_is_bought_where_the_cheap_one_is_unsure(two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=0.02).fit(X, y)
    bought = model.acquired(X)[:, 1]
    assert bought[X[:, 1] < 0.5].mean() > 0.8
    assert bought[X[:, 1] > 1.0].mean() < 0.1
    assert model.score(X, y) > 0.9
    assert model.acquisition_cost(X).mean() < 0.6 * sum(costs.values())


def test_a_cost_weight_beyond_all_errors_buys_only_the_root(two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(
        sensors, costs=costs, cost_weight=10, root_sensors=["cheap"]
    ).fit(X, y)
    assert model.acquisition_cost(X).max() == 1.0
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=10)
    assert model.fit(X, y).acquisition_cost(X).max() == 0.0
    prior = np.mean(y == "no")
    np.testing.assert_allclose(model.predict_proba(X)[0], [prior, 1 - prior])


@pytest.mark.parametrize("savings", ["tight", "published"])
@pytest.mark.parametrize("cost_weight", [0.0, 0.003, 0.03, 0.3])
def test_training_risk_is_never_worse_than_the_best_single_leaf(savings, cost_weight):
    X, y = load_iris(return_X_y=True)
    model = SensorTreeClassifier(
        program=Program(savings=savings), cost_weight=cost_weight, cv=None
    ).fit(X, y)
    risk = np.mean((model.predict(X) != y) + cost_weight * model.acquisition_cost(X))
    for leaf in model.tree_.leaves:
        columns = [
            model.sensors_.index(s) for s in model.sensors_.in_order(leaf.sensors)
        ]
        answers = model.policy_.classifiers[leaf.sensors].predict(X[:, columns])
        constant = np.mean(answers != y) + cost_weight * len(columns)
        assert risk <= constant + 1e-12
    model = SensorTreeClassifier(
        program=Program(savings=savings), cost_weight=cost_weight
    ).fit(X, y)
    report = model.decision_report_  # the same out of fold, by its own account
    assert report.risk[report.kept] <= report.risk["one leaf"]


def test_the_fallback_says_which_leaf_it_used():
    X, y = load_wine(return_X_y=True)
    X, given = X[:, :4], {"structure": "exhaustive"}
    literal = SensorTreeClassifier.as_published(**given).fit(X, y)
    guarded = SensorTreeClassifier.as_published(
        program=Program.as_published(fallback=True), **given
    ).fit(X, y)
    assert literal.fallback_leaf_ is None
    assert guarded.fallback_leaf_ is not None
    assert set(guarded.apply(X)) == {guarded.fallback_leaf_}
    assert guarded.decision_report_.kept == "one leaf"
    stops = guarded.tree_.leaves[guarded.fallback_leaf_].sensors
    assert f"stops with {', '.join(sorted(stops))}:" in str(guarded.decision_report_)


# leakage ----------------------------------------------------------------------------------


def wreck_what_was_not_acquired(model, X, value):
    X = np.array(X, dtype=float)
    acquired = model.acquired(X)
    for sensor, columns in enumerate(model.sensors_.columns):
        X[np.ix_(~acquired[:, sensor], columns)] = value
    return X


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300], ids=str)
@pytest.mark.parametrize("structure", ["exhaustive", "cascade"])
@pytest.mark.parametrize(
    "classifier",
    ["logistic2", HistGradientBoostingClassifier(max_iter=5)],
    ids=["logistic2", "boosted"],
)
def test_columns_that_were_not_acquired_change_nothing(value, structure, classifier):
    X, y = load_breast_cancer(return_X_y=True)
    sensors = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    costs = {"mean": 1.0, "error": 2.0, "worst": 5.0}
    model = SensorTreeClassifier(
        sensors,
        costs=costs,
        structure=structure,
        classifier=classifier,
        cost_weight=0.005,
        program=Program(fallback=False),
    ).fit(X, y)
    assert 0 < model.acquired(X).mean(axis=0)[2] < 1  # it matters
    wrecked = wreck_what_was_not_acquired(model, X, value)
    for method in ("predict", "predict_proba", "apply", "acquired", "acquisition_cost"):
        before, after = getattr(model, method)(X), getattr(model, method)(wrecked)
        np.testing.assert_array_equal(before, after, err_msg=method)


def test_a_transformer_sees_its_own_columns_of_rows_that_bought_it(two_sensors):
    X, y, _, _ = two_sensors
    seen = []

    class Spy(StandardScaler):
        def transform(self, X, copy=None):
            seen.append(np.array(X))
            return super().transform(X, copy)

    sensors = {"cheap": Sensor([0, 1], 1.0), "dear": Sensor([2, 3], 9.0, Spy())}
    model = SensorTreeClassifier(sensors, cost_weight=0.02).fit(X, y)
    bought = model.acquired(X)[:, 1]
    seen.clear()
    model.predict(X)
    assert 0 < bought.sum() < len(X)
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], X[bought][:, [2, 3]])


# weights and order ------------------------------------------------------------------------


def same_model(one, other, X):
    np.testing.assert_array_equal(one.apply(X), other.apply(X))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-7)


@pytest.mark.parametrize("savings", ["tight", "published"])
def test_zero_weight_is_the_same_as_leaving_the_row_out(two_sensors, savings):
    X, y, sensors, costs = two_sensors
    weight = np.random.default_rng(0).integers(0, 2, len(y)).astype(float)
    model = SensorTreeClassifier(
        sensors, costs=costs, program=Program(savings=savings), cost_weight=0.02
    )
    removed = clone(model).fit(X[weight > 0], y[weight > 0])
    same_model(clone(model).fit(X, y, sample_weight=weight), removed, X)


@pytest.mark.parametrize("savings", ["tight", "published"])
def test_integer_weight_is_the_same_as_repeating_the_row(two_sensors, savings):
    X, y, sensors, costs = two_sensors
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    model = SensorTreeClassifier(
        sensors,
        costs=costs,
        program=Program(savings=savings),
        cost_weight=0.02,
        classifier="logistic2",  # bins of boosted leaves count rows
    )
    row = np.repeat(np.arange(len(y)), weight)
    repeated = clone(model).fit(X[row], y[row], groups=row)
    same_model(clone(model).fit(X, y, sample_weight=weight), repeated, X)


def test_weights_reach_every_step_of_a_pipeline(two_sensors):
    X, y, sensors, costs = two_sensors
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10))
    model = SensorTreeClassifier(sensors, costs=costs, classifier=pipeline)
    row = np.repeat(np.arange(len(y)), weight)
    repeated = clone(model).fit(X[row], y[row], groups=row)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    same_model(weighted, repeated, X)


def test_the_order_of_rows_changes_nothing(two_sensors):
    X, y, sensors, costs = two_sensors
    order = np.random.default_rng(2).permutation(len(y))
    one = SensorTreeClassifier(sensors, costs=costs).fit(X, y)
    other = SensorTreeClassifier(sensors, costs=costs).fit(X[order], y[order])
    for mine, theirs in zip(
        one.policy_.decisions, other.policy_.decisions, strict=True
    ):
        np.testing.assert_array_equal(mine.coef, theirs.coef)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_the_number_of_jobs_changes_nothing(two_sensors):
    X, y, sensors, costs = two_sensors
    one = SensorTreeClassifier(sensors, costs=costs, n_jobs=1).fit(X, y)
    two = SensorTreeClassifier(sensors, costs=costs, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_other_money_changes_nothing(two_sensors):
    # Twice the prices at half the weight is the same problem.
    X, y, sensors, costs = two_sensors
    one = SensorTreeClassifier(sensors, costs=costs, cost_weight=0.02).fit(X, y)
    doubled = {name: 2 * cost for name, cost in costs.items()}
    other = SensorTreeClassifier(sensors, costs=doubled, cost_weight=0.01).fit(X, y)
    np.testing.assert_array_equal(one.apply(X), other.apply(X))
    np.testing.assert_allclose(2 * one.acquisition_cost(X), other.acquisition_cost(X))


def test_names_of_classes_change_nothing(two_sensors):
    X, y, sensors, costs = two_sensors
    one = SensorTreeClassifier(sensors, costs=costs).fit(X, y)
    other = SensorTreeClassifier(sensors, costs=costs).fit(X, (y == "yes").astype(int))
    np.testing.assert_array_equal(one.predict(X) == "yes", other.predict(X) == 1)


# frames, transformers, classifiers --------------------------------------------------------


def frame_with_text(library=pd):
    rng = np.random.default_rng(0)
    n = 150
    age, sex = rng.integers(20, 80, n), rng.choice(["f", "m"], n)
    crp = np.where(rng.random(n) < 0.2, np.nan, rng.exponential(size=n))
    frame = library.DataFrame({"age": age, "sex": sex, "crp": crp})
    y = (age > 50) ^ ((np.nan_to_num(crp) > 1) & (sex == "f"))
    sensors = {
        "history": Sensor(
            ["age", "sex"],
            cost=0.0,
            transformer=make_column_transformer(
                (OneHotEncoder(drop="first"), ["sex"]), (StandardScaler(), ["age"])
            ),
        ),
        "blood": Sensor(
            "crp", cost=12.0, transformer=SimpleImputer(add_indicator=True)
        ),
    }
    return frame, y, sensors


def test_text_and_missing_values_go_through_each_sensors_transformer():
    frame, y, sensors = frame_with_text()
    model = SensorTreeClassifier(sensors, cost_weight=0.001).fit(frame, y)
    assert model.score(frame, y) > 0.8
    assert model.feature_names_in_.tolist() == ["age", "sex", "crp"]


def test_pandas_polars_and_numpy_give_the_same_model():
    X, y = load_iris(return_X_y=True)
    names = [f"c{i}" for i in range(4)]
    sensors = {"sepal": [0, 1], "petal": [2, 3]}
    frames = [X, pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)]
    models = [SensorTreeClassifier(sensors).fit(frame, y) for frame in frames]
    for model, frame in zip(models, frames, strict=True):
        np.testing.assert_array_equal(
            model.predict_proba(frame), models[0].predict_proba(X)
        )


def test_polars_frames_reach_transformers_as_polars_frames():
    frame, y, sensors = frame_with_text()
    pandas_model = SensorTreeClassifier(sensors, cost_weight=0.001).fit(frame, y)
    polars, _, _ = frame_with_text(pl)
    polars_model = SensorTreeClassifier(sensors, cost_weight=0.001).fit(polars, y)
    np.testing.assert_array_equal(
        pandas_model.predict(frame), polars_model.predict(polars)
    )


def test_a_classifier_that_takes_nan_needs_no_imputer():
    X, y = load_iris(return_X_y=True)
    X[::7, 2] = np.nan
    model = SensorTreeClassifier(classifier=DecisionTreeClassifier(random_state=0))
    model.fit(X, y)
    assert model.certificate_.converged
    assert model.score(X, y) > 0.9


def test_a_classifier_without_probabilities_still_predicts(two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs, classifier=LinearSVC()).fit(X, y)
    assert model.score(X, y) > 0.6
    assert not hasattr(model, "predict_proba")


def test_leaves_with_equal_sensors_share_one_classifier():
    X, y = load_iris(return_X_y=True)
    model = SensorTreeClassifier(
        structure="exhaustive", program=Program(fallback=False)
    ).fit(X, y)
    assert model.tree_.n_leaves == 16
    assert len(model.policy_.classifiers) == 9  # with the root's sensor, and nothing


def test_a_tree_of_ones_own_as_an_object_or_as_dicts(two_sensors):
    X, y, sensors, costs = two_sensors
    form = {
        "sensors": [],
        "negative": {"sensors": ["cheap"]},
        "positive": {"sensors": ["cheap", "dear"]},
    }
    by_dict = SensorTreeClassifier(sensors, costs=costs, structure=form).fit(X, y)
    tree = SensorTree.from_dict(form)
    by_tree = SensorTreeClassifier(sensors, costs=costs, structure=tree).fit(X, y)
    assert by_dict.tree_ == by_tree.tree_ == tree
    np.testing.assert_array_equal(by_dict.predict(X), by_tree.predict(X))
    assert form["sensors"] == []


def test_the_penalty_that_was_climbed_to_gives_the_fit_that_it_gives_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2 + rng.normal(size=150), [-0.5, 1])
    climbed = QuadraticLogisticRegression().fit(X, y)
    assert climbed.C_ < 1
    alone = QuadraticLogisticRegression(C=climbed.C_).fit(X, y)
    np.testing.assert_allclose(
        climbed.predict_proba(X), alone.predict_proba(X), atol=1e-8
    )


def test_a_lone_leaf_is_an_ordinary_classifier(two_sensors):
    X, y, sensors, costs = two_sensors
    tree = SensorTree(Leaf(["cheap", "dear"]))
    model = SensorTreeClassifier(
        sensors, costs=costs, structure=tree, classifier="logistic2"
    ).fit(X, y)
    plain = QuadraticLogisticRegression().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert model.certificate_.gap == 0
    assert np.all(model.acquisition_cost(X) == 10.0)


def test_free_sensors_are_known_at_the_root_else_the_cheapest():
    X, y = load_iris(return_X_y=True)
    given = {"structure": "exhaustive"}
    model = SensorTreeClassifier(costs={"x1": 0, "x3": 0}, **given).fit(X, y)
    assert model.tree_.root.sensors == {"x1", "x3"}
    model = SensorTreeClassifier(costs={"x2": 0.5}, **given).fit(X, y)
    assert model.tree_.root.sensors == {"x2"}
    model = SensorTreeClassifier(root_sensors=["x0", "x2"], **given).fit(X, y)
    assert model.tree_.root.sensors == {"x0", "x2"}


def test_a_cascade_buys_the_cheapest_first():
    X, y = load_breast_cancer(return_X_y=True)
    costs = {"x4": 0.25, "x2": 0.5}
    model = SensorTreeClassifier(
        costs=costs, classifier=GaussianNB(), structure="cascade"
    ).fit(X[:, :6], y)
    assert [len(leaf.sensors) for leaf in model.tree_.leaves] == [1, 2, 3, 4, 5, 6]
    assert model.tree_.leaves[1].sensors == {"x4", "x2"}


def test_it_works_inside_scikit_learns_model_selection(two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.7
    grid = {"cost_weight": [0.001, 0.1], "program__savings": ["tight", "published"]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert search.best_params_["cost_weight"] == 0.001


def test_many_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 15)
    X = np.c_[y + rng.normal(size=180), y % 4 + 0.3 * rng.normal(size=180)]
    model = SensorTreeClassifier().fit(X, y)
    assert model.predict_proba(X).shape == (180, 12)


def test_printing_an_estimator_shows_what_was_changed():
    assert repr(SensorTreeClassifier(cost_weight=0.5)) == (
        "SensorTreeClassifier(cost_weight=0.5)"
    )
