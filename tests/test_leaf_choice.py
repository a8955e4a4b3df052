"""`classifier="auto"` takes the simplest kind of leaf that is as good as the best."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from benchmarks.fit import clinical, thyroid
from sensortree import Sensor, SensorTreeClassifier, SensorTreeClassifierCV
from sensortree.exceptions import UnseenWarning
from sensortree.learning import leaf_choice
from sensortree.learning.leaf_choice import (
    Judged,
    information,
    simplest_of_the_best,
    unexplained,
)
from sensortree.leaves.boosting import BoostedEngine

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 3))


def chosen(y, X=X, **parameters):
    return SensorTreeClassifier(**parameters).fit(X, y).leaf_report_


def risk(model, table):
    wrong = model.predict(table.X_test) != table.y_test
    return wrong + model.cost_weight * model.acquisition_cost(table.X_test)


def test_a_linear_score_gets_linear_leaves():
    noisy = X @ [1.0, 0.7, 0.4] + RNG.logistic(size=700) > 0
    assert chosen(noisy).choice == "linear"


def test_a_circle_gets_quadratic_leaves():
    assert chosen((X**2).sum(axis=1) > 2).choice == "logistic2"


def test_stripes_get_boosted_leaves():
    assert chosen(np.floor(2 * X[:, 0]) % 2 == 0).choice == "boosted"


def test_where_trees_find_nothing_left_boosted_leaves_are_not_compared(monkeypatch):
    monkeypatch.setattr(BoostedEngine, "judge_some", None)
    monkeypatch.setattr(BoostedEngine, "judge", None)
    report = chosen((X**2).sum(axis=1) > 2)
    assert "nothing that others leave unexplained" in report.not_compared["boosted"]
    assert report.n_rows == 700  # the others are compared on all of them


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_a_kind_leaves_unexplained_is_seen_by_trees(monkeypatch, n_classes):
    """The prior leaves a step to be seen; who knows the truth leaves noise."""
    step = np.where(X[:, :1] > 0.3, [0.8, 0.1, 0.1], [0.1, 0.5, 0.4])[:, :n_classes]
    truth = step / step.sum(axis=1, keepdims=True)
    draws = np.random.default_rng(5).random((700, 1))
    y = (draws > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    prior = np.tile(np.bincount(y) / 700, (700, 1))
    asked = []

    def spy(*what):
        asked.append(what)
        return 0.0

    monkeypatch.setattr(leaf_choice, "unexplained", spy)
    chosen(y)
    _, training, fold, out, subsets = asked[0]
    for said, is_seen in ((prior, True), (truth, False)):
        judged = {"linear": Judged(said=dict.fromkeys(subsets, said[training.rows]))}
        # By chance, three standard errors are seen once in 700 times.
        assert (unexplained(judged, training, fold, out, subsets) > 3) == is_seen


@pytest.mark.parametrize("n_levels", [20, 40])
def test_levels_that_turn_with_a_number_get_boosted_leaves(n_levels):
    """Other leaves learn noise of so many columns; trees see a category as one."""
    rng = np.random.default_rng(2)
    x, level = rng.normal(size=1_500), rng.integers(0, n_levels, 1_500)
    up = rng.random(n_levels) < 0.5
    y = (up[level] ^ (x > 0)) ^ (rng.random(1_500) < 0.1)
    other = rng.integers(0, n_levels, 1_500)
    table = pd.DataFrame(
        {
            "x": x,
            "level": [f"level {i}" for i in level],
            "other": [f"other {i}" for i in other],
        }
    )
    report = chosen(y, table)
    assert set(report.subsets[-1]) == set(table)
    assert report.choice == "boosted"


def test_levels_that_only_add_get_linear_leaves():
    rng = np.random.default_rng(3)
    level = rng.integers(0, 12, 1_000)
    table = pd.DataFrame({"x": rng.normal(size=1_000), "level": level.astype(str)})
    odds = table["x"] + 2 * rng.normal(size=12)[level]
    report = chosen(odds + rng.logistic(size=1_000) > 0, table)
    assert report.choice == "linear"
    assert "boosted" in report.log_loss


def test_few_rows_are_not_boosted_and_the_report_says_so():
    report = chosen(np.floor(2 * X[:400, 0]) % 2 == 0, X[:400])
    assert report.choice != "boosted"
    assert "500 distinct rows or more, there are 400" in str(report)


def gaps_in(readings, rows):
    gaps = readings.copy()
    gaps[rows, 1] = np.nan
    return gaps


def test_gaps_are_filled_so_that_no_kind_is_left_out_for_them():
    report = chosen(X[:, 0] > 0, gaps_in(X, slice(None, None, 5)))
    assert not any("missing" in why for why in report.not_compared.values())
    assert "boosted" in report.log_loss
    assert {"linear", "logistic2"} & set(report.log_loss)


def test_gaps_that_a_transformer_leaves_leave_boosted_leaves_only():
    sensors = {"a": [0], "b": Sensor([1], transformer=FunctionTransformer()), "c": [2]}
    model = SensorTreeClassifier(sensors, cost_weight=0.001)
    report = model.fit(gaps_in(X, slice(None, None, 5)), X[:, 0] > 0).leaf_report_
    assert report.choice == "boosted"
    assert set(report.not_compared) == {"linear", "logistic2"}


def test_a_gap_that_only_one_fold_has_is_filled_there():
    model = SensorTreeClassifierCV(cost_weights=[0.01, 0.1], cv=4)
    model.fit(gaps_in(X[:300], 7), X[:300, 0] > 0)
    assert model.leaf_report_.choice != "boosted"
    assert np.isfinite(model.curve_.error).all()


def test_a_gap_that_training_did_not_have_is_filled_by_the_median_and_told():
    noisy = 2 * X[:, 0] + RNG.logistic(size=700) > 0
    model = SensorTreeClassifier(cost_weight=0.001).fit(X, noisy)
    assert model.leaf_report_.choice == "linear"
    with pytest.warns(UnseenWarning, match="no value in row 0"):
        answer = model.predict_proba(np.full((1, 3), np.nan))
    middle = np.sort(X, axis=0)[[349]]  # of 700, the lower of the two in the middle
    np.testing.assert_array_equal(answer, model.predict_proba(middle))


def test_many_classes_on_many_rows_are_not_boosted(monkeypatch):
    monkeypatch.setattr(leaf_choice, "BOOSTED_WORK", 1e6)
    report = chosen(np.floor(2 * X[:, 0]) % 2 == 0)
    assert "readings" in report.not_compared["boosted"]
    assert report.choice != "boosted"


def test_the_simplest_within_one_standard_error_is_taken():
    best, near, far = np.zeros(100), np.full(100, 0.1), np.full(100, 1.0)
    near[::2] = -0.08  # 0.01 on average, give or take 0.009
    noisy = {"linear": far, "logistic2": near, "boosted": best}
    assert simplest_of_the_best(noisy)[0] == "boosted"
    near[1::2] = 0.095  # 0.0075 on average, less than its error
    assert simplest_of_the_best(noisy)[0] == "logistic2"


def test_information_of_a_column_is_what_its_bins_tell():
    y = np.arange(320) % 2
    # It tells the class: log 2; it tells nothing: 0.
    assert information(y[:, None].astype(float), y, np.ones(320)) == pytest.approx(
        np.log(2)
    )
    assert information(np.ones((320, 1)), y, np.ones(320)) == 0.0


def test_a_weight_tells_as_much_as_repeated_rows():
    y = (X[:, 0] > 0.3).astype(int)
    times = RNG.integers(1, 4, 700)
    weighted = information(X[:, [1]] + y[:, None], y, times.astype(float))
    again = information(
        (X[:, [1]] + y[:, None]).repeat(times, axis=0),
        y.repeat(times),
        np.ones(times.sum()),
    )
    assert weighted == pytest.approx(again)


def test_nobody_is_compared_on_what_may_not_be_bought():
    sensors = {"a": Sensor([0], 1.0), "b": Sensor([1], 1.0), "c": Sensor([2], 9.0)}
    report = chosen(X[:, 2] > 0, sensors=sensors, max_cost=2.0)
    assert all("c" not in subset for subset in report.subsets)


def test_a_kind_by_name_is_not_compared():
    for kind in ("linear", "logistic2"):
        assert chosen(X[:, 0] > 0, classifier=kind) is None


def test_the_parameter_stays_and_the_same_rows_give_the_same_leaf():
    model = SensorTreeClassifier().fit(X, X[:, 0] > 0)
    assert model.classifier == "auto"
    assert clone(model).fit(X, X[:, 0] > 0).leaf_report_ == model.leaf_report_


def test_a_fit_as_the_choice_says_is_the_same():
    y = (X**2).sum(axis=1) > 2
    auto = SensorTreeClassifier().fit(X, y)
    named = SensorTreeClassifier(classifier=auto.leaf_report_.choice).fit(X, y)
    np.testing.assert_array_equal(auto.predict_proba(X), named.predict_proba(X))


def test_rows_that_nothing_is_held_out_from_are_compared_all_the_same():
    assert chosen((X**2).sum(axis=1) > 2, cv=None).choice == "logistic2"


def test_calibrated_leaves_are_of_the_kind_that_was_chosen():
    model = SensorTreeClassifier(calibration="sigmoid").fit(X, (X**2).sum(axis=1) > 2)
    assert model.leaf_report_.choice == "logistic2"


@pytest.mark.parametrize(
    "calibration", [None, pytest.param("sigmoid", marks=pytest.mark.slow)]
)
def test_a_budget_chooses_the_leaf_too(calibration):
    y = (X[:300] ** 2).sum(axis=1) > 2
    model = SensorTreeClassifierCV(
        cost_weights=[0.01, 0.1], cv=4, calibration=calibration
    )
    assert model.fit(X[:300], y).leaf_report_.choice == "logistic2"


@pytest.mark.slow
def test_thresholds_on_skewed_values_are_boosted_and_cost_less():
    table = thyroid()
    model = SensorTreeClassifier(table.sensors, cost_weight=table.cost_weight)
    paper = clone(model).set_params(classifier="logistic2")
    model.fit(table.X, table.y)
    lead = risk(paper.fit(table.X, table.y), table) - risk(model, table)
    assert model.leaf_report_.choice == "boosted"
    assert lead.mean() > 3 * lead.std() / np.sqrt(len(lead))


@pytest.mark.slow
def test_a_small_clinical_table_loses_nothing_to_quadratic_leaves():
    table = clinical()
    model = SensorTreeClassifier(table.sensors, cost_weight=table.cost_weight)
    paper = clone(model).set_params(classifier="logistic2").fit(table.X, table.y)
    risks = risk(model.fit(table.X, table.y), table)
    half = 0.5 * risks.std() / np.sqrt(len(risks))
    assert risks.mean() <= risk(paper, table).mean() + half


@pytest.mark.parametrize(
    ("n_fields", "noise", "size"),
    [(1, 1.0, "small"), (12, 0.02, "large"), (40, 0.0, "huge")],
)
def test_boosted_trees_are_as_large_as_there_is_to_tell(
    monkeypatch, n_fields, noise, size
):
    """Fields of a board, each of a class of its own, some rows of the other."""
    monkeypatch.setattr("sensortree.leaves.boosting.MANY_ROWS", 1_000)
    monkeypatch.setattr(leaf_choice, "HUGE_ROWS", 1_000)
    found, sized = [], leaf_choice.sized_trees

    def spy(*what):
        found.append(sized(*what))
        return found[-1]

    monkeypatch.setattr(leaf_choice, "sized_trees", spy)
    rng = np.random.default_rng(0)
    places = rng.random((5_000, 2))
    board = rng.random((n_fields, n_fields)) < 0.5
    y = board[tuple((n_fields * places).astype(int).T)] ^ (
        rng.random(5_000) < noise / 2
    )
    SensorTreeClassifier(classifier="boosted", structure="cascade", outages=False).fit(
        places, y
    )
    assert [trees.size for trees in found] == [size]
