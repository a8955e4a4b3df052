"""Claims about budgets: what is picked, and what is said about it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from sensortree import Program, SensorTreeClassifier, SensorTreeClassifierCV, load, save
from sensortree.exceptions import BudgetWarning, ParameterError
from sensortree.results import TradeoffCurve

WEIGHTS = [1.0, 0.05, 0.02, 0.01, 0.0005]


@pytest.fixture
def declared(two_sensors):
    X, y, sensors, costs = two_sensors
    return X, y, {"sensors": sensors, "costs": costs, "cost_weights": WEIGHTS}


@parametrize_with_checks(
    [
        SensorTreeClassifierCV(
            cost_weights=[0.1, 0.005],
            cv=4,
            structure="cascade",
            classifier=GaussianNB(),
            program=Program(refine=False),
        )
    ]
)
def test_scikit_learns_checks_pass_without_exception(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([SensorTreeClassifierCV(), SensorTreeClassifierCV(budget=1.5)])
def test_scikit_learns_checks_pass_with_the_automatic_grid(estimator, check):
    check(estimator)


# choosing ---------------------------------------------------------------------------------

CURVE = TradeoffCurve.from_folds(
    [0.9, 0.3, 0.1, 0.05],
    [[0.39, 0.41], [0.29, 0.31], [0.10, 0.14], [0.08, 0.14]],
    [[1, 1], [2, 2], [3, 3], [5, 5]],
)


def test_a_budget_takes_the_least_error_that_it_pays_for():
    choice = CURVE.choose(budget=4.9)
    assert (choice.cost_weight, choice.mean_cost, choice.met) == (0.1, 3.0, True)
    assert choice.cheaper["mean_cost"] == 2.0
    assert choice.dearer["mean_cost"] == 5.0
    assert "dearer: cost weight 0.05, mean cost 5, error 0.1100" in str(choice)


def test_a_dearer_point_that_is_no_better_is_not_bought():
    worse = TradeoffCurve.from_points([(1, 0.2), (2, 0.2), (3, 0.3)], [0.3, 0.2, 0.1])
    assert worse.choose(budget=9).mean_cost == 1.0


def test_an_error_takes_the_least_cost_that_reaches_it():
    assert CURVE.choose(max_error=0.3).mean_cost == 2.0


def test_a_budget_in_a_jump_of_the_curve_is_told_what_to_try():
    curve = TradeoffCurve.from_points([(0, 0.7), (1.5, 0.2), (2, 0.1)], [0.9, 0.3, 0.1])
    note = curve.choose(budget=1.3).note
    assert "less than 1.5; max_cost=1.3 lets everybody" in note
    assert not curve.choose(budget=1.6).note  # nearly spent
    assert not curve.choose(budget=4).note  # nothing is dearer
    assert not curve.choose(max_error=0.8).note


def test_with_neither_one_standard_error_is_given_for_a_lower_cost():
    # The least error is 0.11 ± 0.03; 0.12 costs less and is within it.
    choice = CURVE.choose()
    assert choice.mean_cost == 3.0
    assert choice.target == pytest.approx(0.14)


def test_what_cannot_be_met_is_said():
    assert CURVE.choose(budget=0.5).mean_cost == 1.0
    assert not CURVE.choose(budget=0.5).met
    assert CURVE.choose(max_error=0.01).mean_cost == 5.0
    assert "budget 0.5 is not met" in str(CURVE.choose(budget=0.5))
    with pytest.raises(ParameterError, match="both given"):
        CURVE.choose(budget=1, max_error=0.1)


# fitting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("search_rows", [12_000, 200])
def test_the_model_is_the_one_of_the_picked_cost_weight(
    declared, search_rows, monkeypatch
):
    monkeypatch.setattr("sensortree.structure.search.SEARCH_ROWS", search_rows)
    X, y, given = declared
    model = SensorTreeClassifierCV(**given, budget=5.0).fit(X[:250], y[:250])
    given.pop("cost_weights")
    plain = SensorTreeClassifier(**given, cost_weight=model.cost_weight_)
    plain.fit(X[:250], y[:250])
    np.testing.assert_array_equal(
        model.predict_proba(X[250:]), plain.predict_proba(X[250:])
    )
    np.testing.assert_array_equal(model.acquired(X[250:]), plain.acquired(X[250:]))
    assert model.certificate_.upper == plain.certificate_.upper


@pytest.mark.parametrize("budget", [2.0, 5.0])
def test_the_budget_holds_on_rows_that_were_not_seen(two_sensors, budget):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifierCV(sensors, costs=costs, budget=budget, cv=4)
    spent = model.fit(X[:250], y[:250]).acquisition_cost(X[250:])
    error = spent.std() / np.sqrt(len(spent))
    assert spent.mean() <= max(1.05 * budget, budget + error)
    assert model.chosen_.met
    assert model.chosen_.mean_cost <= budget


def test_the_grid_is_finer_around_the_budget(two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifierCV(sensors, costs=costs, budget=3.0, cv=4)
    costs_near = model.fit(X[:200], y[:200]).curve_.mean_cost
    assert len(costs_near) <= 17  # seven, six around the target, four on all rows
    assert np.abs(costs_near - 3.0).min() < 1.0


def test_what_overspends_on_all_rows_gives_way_to_a_point_nearby(
    two_sensors, monkeypatch
):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifierCV(sensors, costs=costs, budget=5.0, cv=4)
    first = clone(model).fit(X[:200], y[:200])
    spends = {}

    def overspends(fitted, folds):
        spends[fitted.cost_weight] = fitted.acquisition_cost(X[:200]).mean()
        return 5.5 if fitted.cost_weight <= first.cost_weight_ else 1.0

    monkeypatch.setattr("sensortree.curves.cv.training_cost", overspends)
    second = clone(model).fit(X[:200], y[:200])
    assert max(spends) == second.cost_weight_ > first.cost_weight_
    assert "fitted on all rows, it would spend mean cost 5.5" in second.chosen_.note
    assert second.chosen_.met
    # No point that was there before is nearer.
    higher = first.curve_.cost_weight[first.curve_.cost_weight > first.cost_weight_]
    assert second.cost_weight_ <= higher.min()


def test_what_always_overspends_on_all_rows_is_not_met(two_sensors, monkeypatch):
    X, y, sensors, costs = two_sensors
    monkeypatch.setattr("sensortree.curves.cv.training_cost", lambda model, folds: 9.0)
    model = SensorTreeClassifierCV(sensors, costs=costs, budget=5.0, cv=4)
    with pytest.warns(BudgetWarning, match="no cost weight meets budget=5"):
        model.fit(X[:200], y[:200])
    assert not model.chosen_.met
    assert model.chosen_.mean_cost == 9.0  # what it spends, not what its point promised


@pytest.mark.slow
def test_several_budgets_at_once_are_each_budget_alone():
    X = np.random.default_rng(3).normal(size=(240, 6))
    y = X[:, 0] + (X[:, 1] > 0) * X[:, 2] + 0.5 * X[:, 5] > 0
    model = SensorTreeClassifierCV(cv=4, classifier=GaussianNB(), n_leaves=4)
    budgets = [2.5, 1.0]
    for budget, together in zip(budgets, model.fit_budgets(X, y, budgets), strict=True):
        alone = clone(model).set_params(budget=budget).fit(X, y)
        assert repr(together) == repr(alone)
        assert together.chosen_ == alone.chosen_
        assert together.tree_ == alone.tree_
        np.testing.assert_array_equal(together.curve_.fold_cost, alone.curve_.fold_cost)
        np.testing.assert_array_equal(together.predict_proba(X), alone.predict_proba(X))
    assert not hasattr(model, "policy_")


def test_one_wrong_budget_of_several_is_refused_before_anything_is_fitted(declared):
    X, y, given = declared
    model = SensorTreeClassifierCV(**given)
    with pytest.raises(ParameterError, match="budget must be None or a number"):
        model.fit_budgets(X, y, [2.0, "cheap"])
    with pytest.raises(ParameterError, match="both given"):
        model.set_params(max_error=0.1).fit_budgets(X, y, [2.0])


def test_max_error_buys_no_more_than_it_takes(declared):
    X, y, given = declared
    model = SensorTreeClassifierCV(**given, max_error=0.2).fit(X, y)
    curve = model.curve_
    chosen, score = model.chosen_, model.about_.held_out
    assert chosen.error <= 0.2
    cheapest = curve.mean_cost[curve.error <= 0.2].min()
    assert curve.mean_cost[chosen.index] == cheapest
    assert (chosen.mean_cost, chosen.error) == (score.cost, score.loss)


def test_a_budget_that_cannot_be_met_warns_and_takes_the_cheapest(declared):
    X, y, given = declared
    given["root_sensors"] = ["cheap"]
    model = SensorTreeClassifierCV(**given, budget=0.5)
    with pytest.warns(BudgetWarning, match=r"meets budget=0.5; .* costs 1 in the mean"):
        model.fit(X, y)
    assert model.acquisition_cost(X).max() == 1.0
    assert not model.chosen_.met
    with pytest.warns(BudgetWarning, match=r"max_error=0 .* the least error is taken"):
        SensorTreeClassifierCV(**given, max_error=0).fit(X, y)


def test_the_cap_holds_for_every_row(declared):
    X, y, given = declared
    model = SensorTreeClassifierCV(**given, budget=8.0, max_cost=9.5).fit(X, y)
    assert model.acquisition_cost(X).max() <= 9.5


def test_a_model_at_a_budget_is_saved_and_reported_like_any_other(declared, tmp_path):
    X, y, given = declared
    model = SensorTreeClassifierCV(**given, budget=5.0).fit(X, y)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert model.report(X, y).cost == pytest.approx(model.acquisition_cost(X).mean())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"budget": -1}, "budget must be None or a number that is at least 0, got -1"),
        ({"max_error": "low"}, "max_error must be None or a number"),
        ({"budget": 1, "max_error": 0.1}, "both given"),
        ({"cost_weights": []}, "cost_weights is empty"),
        ({"n_leaves": 0}, "n_leaves"),
    ],
)
def test_wrong_parameters_are_refused_when_fitting(declared, wrong, message):
    X, y, given = declared
    with pytest.raises(ParameterError, match=message):
        SensorTreeClassifierCV(**{**given, **wrong}).fit(X, y)
