"""Claims about money: what is charged, by whom it is read, and what a row counts."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB

from sensortree import (
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    MyopicClassifier,
    Program,
    Sensor,
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    SensorTreeError,
    StaticSubsetClassifier,
    tradeoff_curve,
)
from sensortree.exceptions import DataError, ParameterError, SensorError
from sensortree.results import MaskedPolicy

BOTH = {"sensors": ["a", "b"]}
A_FIRST = {"sensors": ["a"], "negative": {"sensors": ["a"]}, "positive": BOTH}
NAN = float("nan")


def two_columns(n=60, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, X.sum(axis=1) > 0


def buys_both(sensors=None, prices=None, **parameters):
    """A model without decisions: every row buys both sensors."""
    X, y = two_columns()
    sensors = {"a": [0], "b": [1]} if sensors is None else sensors
    model = SensorTreeClassifier(sensors, structure=BOTH, cv=None, **parameters)
    return model.fit(X, y, prices=prices), X


def always_buys_b(**parameters):
    """A model that buys a, and then b for every row with a > 0."""
    X, y = two_columns()
    model = SensorTreeClassifier(
        {"a": [0], "b": [1]},
        structure=A_FIRST,
        program=Program(decision_features="raw"),
        cv=None,
        **parameters,
    ).fit(X, y)
    policy = model.policy_
    (decision,) = policy.decisions
    upward = replace(decision, coef=np.array([1.0, 0.0]))
    return replace(policy, decisions=(upward,))


def resumed(policy, session):
    return policy.resume(json.loads(json.dumps(session.to_dict())))


# sessions that are resumed ----------------------------------------------------------------


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_fee_on_a_price_column_is_paid_once_however_often_a_session_is_resumed(times):
    X, y = two_columns()
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "pb": 0.5})
    sensors = {
        "a": Sensor(["a"], cost=1.0),
        "b": Sensor(["b"], cost="pb", fee=2.0, group="g"),
    }
    model = SensorTreeClassifier(sensors, structure=BOTH, cv=None).fit(frame, y)
    session = model.policy_.session(prices={"b": 1.5})
    for _ in range(times):
        session = resumed(model.policy_, session)
    session.tell("a", [0.0])
    session.tell("b", [0.0])
    assert session.decision().spent == pytest.approx(1.0 + 1.5 + 2.0)


def test_what_was_paid_is_still_paid_when_a_known_value_is_corrected_and_resumed():
    policy = always_buys_b(costs={"a": 2.0, "b": 1.0})
    session = policy.session(known={"a": [5.0]})
    session.tell("b", [0.0])
    session.tell("a", [-5.0], replace=True)
    assert session.spent == 1.0
    assert resumed(policy, session).spent == 1.0


def test_a_limit_of_any_number_type_can_be_written_as_json():
    session = always_buys_b().session(limit=np.int64(3))
    assert json.loads(json.dumps(session.to_dict()))["limit"] == 3


def test_a_state_that_was_written_is_no_part_of_the_session():
    policy = always_buys_b()
    session = policy.session()
    session.tell("a", [5.0])
    session.to_dict()["log"][0][2][0] = -5.0
    assert resumed(policy, session).ask().sensor == "b"


# a sensor's own price ---------------------------------------------------------------------

COSTS = {"a": 1.0, "b": 4.0}


def prices_of_b(*prices):
    """Prices of b in turn for sixty rows, and a's own."""
    own = np.full((60, 2), NAN)
    own[:, 1] = np.resize(prices, 60)
    return own


def test_nan_in_prices_is_the_sensors_own_price_rather_than_the_mean():
    model, X = buys_both(prices=prices_of_b(9.0, NAN), costs=COSTS)
    cost = model.acquisition_cost(X[:1], [[NAN, NAN]])
    assert cost[0] == pytest.approx(1.0 + 4.0)


def test_nan_in_prices_means_the_same_in_fit_and_afterwards():
    prices = prices_of_b(9.0, NAN)
    model, X = buys_both(prices=prices, costs=COSTS)
    expected = 1.0 + np.where(np.isnan(prices[:, 1]), 4.0, 9.0)
    np.testing.assert_allclose(model.acquisition_cost(X, prices), expected)


def test_a_price_counts_though_the_sensor_had_none_in_fit():
    prices = np.full((60, 2), NAN)
    prices[:, 0] = np.resize([1.0, 2.0], 60)
    model, X = buys_both(prices=prices, costs=COSTS)
    cost = model.acquisition_cost(X[:1], [[1.0, 9.0]])
    assert cost[0] == pytest.approx(1.0 + 9.0)


def test_a_session_may_be_told_a_price_though_the_sensor_had_none_in_fit():
    prices = np.full((60, 2), NAN)
    prices[:, 0] = np.resize([1.0, 2.0], 60)
    model, _ = buys_both(prices=prices, costs=COSTS)
    spent = model.policy_.acquire(lambda *_: [0.0], prices={"a": 1.0, "b": 9.0}).spent
    assert spent == pytest.approx(1.0 + 9.0)


def test_prices_are_never_passed_over_in_silence():
    # The model was fitted without any: they may count, or be refused.
    model, X = buys_both(costs=COSTS)
    try:
        cost = model.acquisition_cost(X[:1], [[1.0, 9.0]])[0]
    except SensorTreeError:
        return
    assert cost == pytest.approx(1.0 + 9.0)


# caps -------------------------------------------------------------------------------------

DIMES = {"a": 0.1, "b": 0.2}  # as binary fractions they add up to more than 0.3


def capped(cap):
    """A fitted model that buys both, and may spend so much."""
    model, X = buys_both(costs=DIMES)
    model = copy.copy(model)
    model.policy_ = replace(model.policy_, max_cost=cap)
    return model, X


def test_a_tree_that_costs_the_cap_on_paper_may_be_fitted():
    model, X = buys_both(costs=DIMES, max_cost=0.3)
    assert model.acquired(X).all()


def test_a_search_finds_what_costs_the_cap_on_paper():
    X, y = two_columns(200)
    model = SensorTreeClassifier(
        {"a": [0], "b": [1]},
        costs=DIMES,
        cost_weight=0.0,
        structure="chain",
        max_cost=0.3,
    ).fit(X, y)
    assert {"a", "b"} in [leaf.sensors for leaf in model.tree_.leaves]


def test_a_table_may_spend_the_cap_on_paper():
    model, X = capped(0.3)
    assert model.acquired(X).all()


def test_masked_arrays_may_spend_the_cap_on_paper():
    model, X = capped(0.3)
    known = np.array([[True, False]])
    assert MaskedPolicy(model.policy_).act(X[:1], known)[0] == 2


def test_a_session_may_spend_the_cap_on_paper():
    model, _ = capped(0.3)
    assert model.policy_.acquire(lambda *_: [0.0]).acquired == ("a", "b")


def test_a_session_may_spend_its_limit_on_paper():
    model, _ = capped(None)
    decision = model.policy_.acquire(lambda *_: [0.0], limit=0.3)
    assert decision.acquired == ("a", "b")


def test_a_static_subset_may_cost_its_cap_on_paper():
    X, y = two_columns(200)
    model = StaticSubsetClassifier(
        {"a": [0], "b": [1]}, costs=DIMES, cost_weight=0.0, max_cost=0.3
    )
    assert model.fit(X, y).acquired(X).all()


# the same way, step by step ---------------------------------------------------------------


def dear_leaves():
    """The root knows a; b, which both leaves know too, has a price for every row."""
    X, y = two_columns()
    tree = {"sensors": ["a"], "negative": BOTH, "positive": BOTH}
    model = SensorTreeClassifier({"a": [0], "b": [1]}, structure=tree, cv=None)
    prices = np.full((60, 2), NAN)
    prices[:, 1] = np.resize([1.0, 2.0], 60)
    model.set_params(max_cost=3.0).fit(X, y, prices=prices)
    return model, X


def test_a_row_that_can_pay_for_the_root_alone_is_told_so_by_table_and_session_alike():
    model, X = dear_leaves()
    place = model.apply(X[:1], [[NAN, 9.0]])[0]
    decision = model.policy_.acquire(lambda *_: [X[0, 0]], prices={"b": 9.0})
    assert decision.place == place


GROUPED = {
    "a": Sensor([0], cost=10.0, discounted_cost=4.0, group="g"),
    "b": Sensor([1], cost=8.0, discounted_cost=7.0, group="g"),
    "c": Sensor([2], cost=20.0),
}
DETOUR = {
    "sensors": [],
    "negative": {
        "sensors": ["a"],
        "negative": {"sensors": ["a", "b"]},
        "positive": {"sensors": ["a", "b"]},
    },
    "positive": {"sensors": ["c"]},
}


def rerouted():
    """Everybody is sent to c, nobody can pay for it, and a leaf with a and b is best.

    On the way to it a is bought first: 10 + 7. At the same time they would cost 8 + 4.
    """
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = SensorTreeClassifier(
        GROUPED,
        structure=DETOUR,
        cv=None,
        cost_weight=0.0,
        program=Program(decision_features="raw"),
    ).fit(X, X.sum(axis=1) > 0)
    policy = model.policy_
    upward = replace(policy.decisions[0], coef=np.ones_like(policy.decisions[0].coef))
    model.policy_ = replace(
        policy, decisions=(upward, policy.decisions[1]), max_cost=18.0
    )
    return model, X


def test_a_rerouted_session_buys_in_the_order_of_the_way_as_a_table_does():
    model, X = rerouted()
    table = model.acquisition_cost(X[:1])[0]
    spent = model.policy_.acquire(lambda s, _: [X[0, "abc".index(s)]]).spent
    assert spent == pytest.approx(table)


def test_a_rerouted_session_spends_what_it_said_at_most():
    model, X = rerouted()
    worst = model.policy_.session().ask().worst_case_remaining
    spent = model.policy_.acquire(lambda s, _: [X[0, "abc".index(s)]]).spent
    assert spent == pytest.approx(worst)


def test_an_unavailable_sensor_that_made_no_difference_is_not_blamed():
    # The limit pays for a alone, so nobody could have had c anyway.
    X = np.random.default_rng(0).normal(size=(60, 3))
    without_b = {
        "sensors": ["a"],
        "negative": {"sensors": ["a"]},
        "positive": {"sensors": ["a", "c"]},
    }
    model = SensorTreeClassifier(
        {"a": [0], "b": [1], "c": [2]},
        structure={"sensors": ["a"], "negative": without_b, "positive": BOTH},
        program=Program(decision_features="raw"),
        cv=None,
    ).fit(X, X.sum(axis=1) > 0)
    upward = replace(model.policy_.decisions[0], coef=np.array([1.0, 0.0]))
    policy = replace(model.policy_, decisions=(upward, model.policy_.decisions[1]))
    session = policy.session(limit=1.0)
    session.unavailable("c")
    session.tell("a", [5.0])
    assert session.decision().stopped_because == "limit"


# a single step ----------------------------------------------------------------------------


def test_a_step_does_not_charge_for_a_free_sensor_that_it_asks_for():
    policy = always_buys_b()
    assert policy.step({}).sensor == "a"
    assert policy.step({"a": [5.0]}, free=["a"]).spent == 0.0


def test_a_free_sensor_leaves_the_limit_of_a_step_for_others():
    policy = always_buys_b()
    step = policy.step({"a": [5.0]}, limit=1.0, free=["a"])
    assert (step.sensor, step.cost) == ("b", 1.0)


# discounts below zero ---------------------------------------------------------------------


def test_a_session_refuses_a_price_below_the_surcharge_as_a_table_does():
    sensors = {
        "a": Sensor([0], cost=5.0, discounted_cost=2.0, group="g"),
        "b": Sensor([1], cost=5.0, discounted_cost=2.0, group="g"),
    }
    prices = np.full((60, 2), NAN)
    prices[:, 1] = np.resize([4.0, 5.0], 60)
    model, X = buys_both(sensors, prices)
    with pytest.raises(DataError, match="at least 3, its surcharge"):
        model.acquisition_cost(X[:1], [[NAN, 1.0]])
    with pytest.raises(SensorError, match="surcharge"):
        model.policy_.session(prices={"b": 1.0})


# budgets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["budget", "max_error"])
def test_a_target_that_is_no_number_is_refused(target):
    X, y = two_columns()
    with pytest.raises(ParameterError, match=f"{target} must be None or a number"):
        SensorTreeClassifierCV(**{target: NAN}).fit(X, y)


@pytest.mark.filterwarnings("ignore:budget=1.2 buys nothing")
@pytest.mark.parametrize("seed", [2, 9])
def test_a_budget_is_kept_on_the_training_rows_at_their_own_prices(seed):
    # b helps those near 0, who pay 3 for it, where the mean of all pay less.
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, 60))
    near = np.abs(x) < 0.6
    X, y = np.c_[x, np.abs(x), z], np.where(near, z, x) > 0
    prices = np.full((60, 2), NAN)
    prices[:, 1] = np.where(near, 3.0, 1.0)
    model = SensorTreeClassifierCV(
        {"a": [0, 1], "b": [2]},
        costs={"a": 0.0},
        budget=1.2,
        cost_weights=[1, 0.07, 0.05, 0.03],
        structure=A_FIRST,
        classifier=LogisticRegression(),
        # "raw", so that training rows go the way they were judged
        program=Program(decision_features="raw", refine=False),
    ).fit(X, y, prices=prices)
    assert model.chosen_.met
    assert model.acquisition_cost(X, prices).mean() <= 1.2


def test_a_curve_does_not_depend_on_the_order_of_its_cost_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] + 0.5 * X[:, 2] > 0
    model = SensorTreeClassifier(
        classifier=GaussianNB(), program=Program(refine=False), n_leaves=6
    )
    weights = [0.3, 0.001, 0.1, 0.03, 0.01]
    ends_first, in_order = (
        tradeoff_curve(model, X, y, w, cv=2) for w in (weights, sorted(weights))
    )
    np.testing.assert_array_equal(ends_first.fold_cost, in_order.fold_cost)
    np.testing.assert_array_equal(ends_first.fold_error, in_order.fold_error)


# weights ----------------------------------------------------------------------------------

QUICK = {"classifier": GaussianNB(), "cv": 3}
METHODS = {
    **{
        f"structure {name}": SensorTreeClassifier(
            structure=name,
            program=Program(refine=False),
            n_leaves=5,
            cost_weight=0.01,
            **QUICK,
        )
        for name in ("auto", "chain", "branched", "greedy", "cascade", "exhaustive")
    },
    "refined": SensorTreeClassifier(structure="cascade", **QUICK),
    "alternating": AlternatingTreeClassifier(structure="cascade", n_starts=2, **QUICK),
    "alternating, chain": AlternatingTreeClassifier(
        structure="chain", n_starts=2, **QUICK
    ),
    "cascade": CascadeClassifier(**QUICK),
    "myopic": MyopicClassifier(reject=0.3, **QUICK),
    "static": StaticSubsetClassifier(cost_weight=0.01, **QUICK),
    "static, budget": StaticSubsetClassifier(cost_weight=0.0, budget=5.0, **QUICK),
    "astc": ASTCClassifier(budget=5.0, depth=2),
    "cstc": CSTCClassifier(depth=2, max_iter=20),
}


def weighted_rows(seed=0, n=90):
    """Rows, weights from 0 to 3, no prices, and new rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 200, 5)).round(2)
    y = X[:, 0] + (np.abs(X[:, 0]) < 0.7) * X[:, 1] + 0.3 * X[:, 2] > 0
    return X[:n], y[:n], rng.integers(0, 4, n), None, X[n:]


def rows_with_prices(seed=0, n=90):
    """Rows, weights, prices that go with the weights, and new rows.

    The first two sensors tell about the same. By rows the first is the cheaper one in the
    mean, by weight the second: the many rows of weight 1 pay 1 and 10, the few of weight 6
    pay 10 and 1.
    """
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n + 200)
    X = np.c_[truth, truth, truth, rng.normal(size=(n + 200, 2))]
    X[:, :3] += rng.normal(size=(n + 200, 3)) * [0.6, 0.6, 1.0]
    X = X.round(2)
    weight = rng.choice([0, 1, 6], n, p=[0.1, 0.65, 0.25])
    prices = np.tile([1.0, 10.0, 2.0, 1.0, 1.0], (n, 1))
    prices[weight == 6, :2] = [10.0, 1.0]
    return X[:n], truth[:n] > 0, weight, prices, X[n:]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("rows", [weighted_rows, rows_with_prices])
@pytest.mark.parametrize("method", METHODS)
def test_weight_2_is_a_row_twice_and_weight_0_no_row(method, rows, seed):
    X, y, weight, prices, new = rows(seed)
    own = twice = None
    if prices is not None:
        own = np.tile(prices.mean(axis=0), (len(new), 1))
        twice = np.repeat(prices, weight, axis=0)
    row = np.arange(len(X))
    weighted = clone(METHODS[method]).fit(
        X, y, sample_weight=weight, prices=prices, groups=row
    )
    repeated = clone(METHODS[method]).fit(
        np.repeat(X, weight, axis=0),
        np.repeat(y, weight),
        prices=twice,
        groups=np.repeat(row, weight),
    )
    np.testing.assert_allclose(
        weighted.acquisition_cost(new, own), repeated.acquisition_cost(new, own)
    )
    np.testing.assert_array_equal(
        weighted.predict(new, own), repeated.predict(new, own)
    )


@pytest.mark.parametrize("cv", [KFold(5), KFold(5, shuffle=True, random_state=0)])
def test_a_splitter_deals_no_rows_of_weight_0(cv):
    X, y, weight, _, new = weighted_rows()
    weight = np.minimum(weight, 1)
    model = SensorTreeClassifier(
        structure="cascade",
        classifier=GaussianNB(),
        cv=cv,
        program=Program(refine=False),
    )
    weighted = clone(model).fit(X, y, sample_weight=weight)
    left_out = clone(model).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_array_equal(
        weighted.acquisition_cost(new), left_out.acquisition_cost(new)
    )
    np.testing.assert_allclose(
        weighted.policy_.flow.total_loss, left_out.policy_.flow.total_loss
    )


def test_the_minimum_numbers_of_growth_count_weight_rather_than_rows():
    # Of 24 rows nothing is grown; 24 that count ten times are 240.
    X, y, _, _, new = weighted_rows(n=24)
    model = SensorTreeClassifier(structure="branched", classifier=GaussianNB(), cv=3)
    weight = np.full(24, 10)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(
        np.repeat(X, 10, axis=0), np.repeat(y, 10), groups=np.repeat(np.arange(24), 10)
    )
    assert weighted.tree_ == repeated.tree_
    np.testing.assert_array_equal(weighted.predict(new), repeated.predict(new))
