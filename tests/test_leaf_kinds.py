"""`classifier="auto"`: which kinds of leaves are compared, and which is taken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from benchmarks.fit import clinical, thyroid
from sensortree import Sensor, SensorTreeClassifier, SensorTreeClassifierCV
from sensortree.exceptions import UnseenWarning
from sensortree.learning import prepare
from sensortree.structure.search import SEARCHES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 3))


def compared(y, X=X, **parameters):
    parameters = {"cost_weight": 0.005, "outages": False, **parameters}
    return SensorTreeClassifier(**parameters).fit(X, y).comparison_


def kinds(found) -> set[str]:
    return {name.partition(", ")[2] for name in found.risk} - {""}


def risk(model, table):
    wrong = model.predict(table.X_test) != table.y_test
    return wrong + model.cost_weight * model.acquisition_cost(table.X_test)


def test_a_linear_score_gets_linear_leaves():
    noisy = X @ [1.0, 0.7, 0.4] + RNG.logistic(size=700) > 0
    assert compared(noisy).leaf in ("linear", "logistic2")


def test_a_circle_gets_quadratic_leaves():
    assert compared((X**2).sum(axis=1) > 2).leaf == "logistic2"


def test_stripes_get_boosted_leaves():
    assert compared(np.floor(2 * X[:, 0]) % 2 == 0).leaf == "boosted"


def test_where_boosted_leaves_do_not_lead_they_are_not_tried():
    found = compared((X**2).sum(axis=1) > 2)
    assert "boosted" not in kinds(found)
    assert "by held-out log-loss" in found.not_compared["boosted"]


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
    assert compared(y, table).leaf == "boosted"


def test_levels_that_only_add_get_linear_leaves():
    rng = np.random.default_rng(3)
    level = rng.integers(0, 12, 1_000)
    table = pd.DataFrame({"x": rng.normal(size=1_000), "level": level.astype(str)})
    odds = table["x"] + 2 * rng.normal(size=12)[level]
    assert compared(odds + rng.logistic(size=1_000) > 0, table).leaf != "boosted"


def test_few_rows_are_not_boosted_and_the_comparison_says_so():
    found = compared(np.floor(2 * X[:90, 0]) % 2 == 0, X[:90])
    assert found.leaf != "boosted"
    assert "100 rows or more, there are 90" in str(found)


def test_rows_count_and_not_distinct_rows():
    """A discrete table stays a few dozen distinct rows at any size."""
    few = (X[:600] > 0).astype(float)
    y = few[:, 0] != few[:, 1]
    found = compared(y, few)
    assert "rows or more" not in found.not_compared.get("boosted", "")


def gaps_in(readings, rows):
    gaps = readings.copy()
    gaps[rows, 1] = np.nan
    return gaps


def test_gaps_are_filled_so_that_no_kind_is_left_out_for_them():
    noisy = 2 * X[:, 0] + np.random.default_rng(0).logistic(size=700) > 0
    found = compared(noisy, gaps_in(X, slice(None, None, 5)))
    assert not any("missing" in why for why in found.not_compared.values())
    tried = kinds(found) | set(found.not_compared)
    assert tried == {"linear", "logistic2", "boosted"}
    assert kinds(found) & {"linear", "logistic2"}


def test_gaps_that_a_transformer_leaves_leave_boosted_leaves_only():
    sensors = {"a": [0], "b": Sensor([1], transformer=FunctionTransformer()), "c": [2]}
    gaps = gaps_in(X, slice(None, None, 5))
    found = compared(X[:, 0] > 0, gaps, sensors=sensors, cost_weight=0.001)
    assert found.leaf == "boosted"
    assert set(found.not_compared) >= {"linear", "logistic2"}


def test_a_gap_that_only_one_fold_has_is_filled_there():
    model = SensorTreeClassifierCV(cost_weights=[0.01, 0.1], cv=4)
    noisy = 2 * X[:300, 0] + np.random.default_rng(0).logistic(size=300) > 0
    model.fit(gaps_in(X[:300], 7), noisy)
    assert model.comparison_.leaf != "boosted"
    assert np.isfinite(model.curve_.error).all()


def test_a_gap_that_training_did_not_have_is_filled_by_the_median_and_told():
    noisy = 2 * X[:, 0] + RNG.logistic(size=700) > 0
    model = SensorTreeClassifier(cost_weight=0.001, outages=False).fit(X, noisy)
    assert model.comparison_.leaf != "boosted"
    with pytest.warns(UnseenWarning, match="no value in row 0"):
        answer = model.predict_proba(np.full((1, 3), np.nan))
    middle = np.sort(X, axis=0)[[349]]  # of 700, the lower of the two in the middle
    np.testing.assert_array_equal(answer, model.predict_proba(middle))


def test_many_classes_on_many_rows_are_not_boosted(monkeypatch):
    monkeypatch.setattr(prepare, "BOOSTED_WORK", 1e6)
    found = compared(np.floor(2 * X[:, 0]) % 2 == 0)
    assert "readings" in found.not_compared["boosted"]
    assert found.leaf != "boosted"


def test_very_many_columns_have_no_products(monkeypatch):
    wide = np.random.default_rng(0).normal(size=(80, 70))
    found = compared(wide[:, 0] > 0, wide)
    assert kinds(found) >= {"linear"}
    monkeypatch.setattr(prepare, "QUADRATIC_WORK", 1e3)
    less = compared(X[:, 0] > 0)
    assert "logistic2" not in kinds(less)
    assert "9 terms for 3 columns" in less.not_compared["logistic2"]


def test_a_kind_by_name_is_not_compared():
    for kind in ("linear", "logistic2"):
        found = compared(X[:, 0] > 0, classifier=kind)
        assert kinds(found) == set()
        assert found.leaf == ""


def test_the_parameter_stays_and_the_same_rows_give_the_same_leaf():
    model = SensorTreeClassifier(outages=False).fit(X, X[:, 0] > 0)
    assert model.classifier == "auto"
    assert clone(model).fit(X, X[:, 0] > 0).comparison_ == model.comparison_


def test_a_fit_as_the_choice_says_is_the_same():
    """Of a structure that is searched for; one that is built keeps all its leaves."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(700, 5))
    y = X @ [1, 1, 0.5, 0, 0] + 0.3 * rng.normal(size=700) > 0
    auto = SensorTreeClassifier(cost_weight=0.03, root_sensors=[], outages=False)
    structure, _, leaf = auto.fit(X, y).comparison_.chosen.partition(", ")
    assert structure in SEARCHES
    named = clone(auto).set_params(classifier=leaf, structure=structure)
    np.testing.assert_array_equal(
        auto.predict_proba(X), named.fit(X, y).predict_proba(X)
    )


def test_calibrated_leaves_are_of_the_kind_that_was_chosen():
    assert compared((X**2).sum(axis=1) > 2, calibration="sigmoid").leaf == "logistic2"


@pytest.mark.parametrize(
    "calibration", [None, pytest.param("sigmoid", marks=pytest.mark.slow)]
)
def test_a_budget_chooses_the_leaf_too(calibration):
    y = (X[:300] ** 2).sum(axis=1) > 2
    model = SensorTreeClassifierCV(
        cost_weights=[0.01, 0.1], cv=4, calibration=calibration
    )
    assert model.fit(X[:300], y).comparison_.leaf == "logistic2"


@pytest.mark.slow
def test_thresholds_on_skewed_values_are_boosted_and_cost_less():
    table = thyroid()
    model = SensorTreeClassifier(table.sensors, cost_weight=table.cost_weight)
    paper = clone(model).set_params(classifier="logistic2")
    model.fit(table.X, table.y)
    lead = risk(paper.fit(table.X, table.y), table) - risk(model, table)
    assert model.comparison_.leaf == "boosted"
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
    monkeypatch.setattr("sensortree.leaves.boosting.BOOSTED_MANY_ROWS", 1_000)
    monkeypatch.setattr(prepare, "HUGE_ROWS", 1_000)
    found, sized = [], prepare.sized_trees

    def spy(*what):
        found.append(sized(*what))
        return found[-1]

    monkeypatch.setattr(prepare, "sized_trees", spy)
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
