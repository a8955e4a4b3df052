"""Claims about the methods that the sensor tree is compared with."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression

from sensortree import (
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    MyopicClassifier,
    Program,
    SensorTreeClassifier,
    StaticSubsetClassifier,
    baselines,
)
from sensortree.exceptions import ParameterError

# one problem whose best policy is known ---------------------------------------------------
#
# Where "cheap" is high the class is yes; where it is low, "dear" decides. To buy dear for
# the low ones only makes no error and costs 1 + 5 · (share of low ones).

SENSORS = {"cheap": [0], "dear": [1]}
COSTS = {"cheap": 1.0, "dear": 5.0}


def sure_where_high(low: float, n: int = 600):
    rng = np.random.default_rng(0)
    is_low = np.arange(n) < low * n
    sign = np.c_[np.where(is_low, -1, 1), np.where(np.arange(n) % 2, -1, 1)]
    X = rng.permutation(sign * rng.uniform(0.8, 1.2, size=(n, 2)))
    return X, np.where((X > 0).any(axis=1), "yes", "no")


@pytest.mark.parametrize(
    "model",
    [
        SensorTreeClassifier(SENSORS, costs=COSTS, cost_weight=0.02),
        AlternatingTreeClassifier(SENSORS, costs=COSTS, cost_weight=0.02),
        CascadeClassifier(SENSORS, costs=COSTS, cost_weight=0.02),
        MyopicClassifier(SENSORS, costs=COSTS, reject=0.5),
        MyopicClassifier(SENSORS, costs=COSTS, reject=0.5, confidence="margin"),
        # The half that ASTC sends to a pure child finds nothing to buy there.
        ASTCClassifier(SENSORS, costs=COSTS, budget=5, depth=2),
    ],
    ids=lambda m: type(m).__name__,
)
def test_the_best_policy_is_found_where_the_cheap_sensor_decides_for_half(model):
    X, y = sure_where_high(0.5)
    model.fit(X, y)
    assert model.score(X, y) == 1.0
    np.testing.assert_array_equal(model.acquired(X)[:, 0], True)
    np.testing.assert_array_equal(model.acquired(X)[:, 1], X[:, 0] < 0)
    assert model.acquisition_cost(X).mean() == pytest.approx(3.5)


def test_cstc_finds_the_best_policy_where_the_cheap_sensor_decides_for_most():
    # With sharp routing and a share L of low ones, dear is worth 2L to the root and to
    # the node of the low ones alike. It costs the root λc(1 - L), since on the low path
    # it is paid anyway, and that node λcL: for L < 1/2 there are λ at which only that
    # node buys, from λc = 2L/(1 - L) to 2. At L = 1/2 there is none.
    X, y = sure_where_high(0.25)
    model = CSTCClassifier(
        SENSORS, costs=COSTS, cost_weight=0.2, depth=2, steepness=10
    ).fit(X, y)
    assert model.score(X, y) == 1.0
    np.testing.assert_array_equal(model.acquired(X)[:, 1], X[:, 0] < 0)
    assert model.acquisition_cost(X).mean() == pytest.approx(2.25)


@pytest.mark.parametrize("cost_weight", [0.01, 0.1, 0.2, 0.28, 0.5])
def test_the_objective_of_cstc_has_no_such_optimum_where_it_decides_for_half(
    cost_weight,
):
    X, y = sure_where_high(0.5)
    model = CSTCClassifier(SENSORS, costs=COSTS, cost_weight=cost_weight, depth=2)
    cost = model.fit(X, y).acquisition_cost(X)
    assert set(cost) <= {1.0, 6.0}
    assert len(set(cost)) == 1


@pytest.mark.parametrize(
    ("cost_weight", "sensors"), [(0.02, {"cheap", "dear"}), (0.06, set())]
)
def test_a_static_subset_is_the_best_of_those_that_are_the_same_for_all(
    cost_weight, sensors
):
    # It cannot express the best policy. Its choices are nothing (error 1/4), one sensor
    # (1/4 too), or both (0, at a cost of 6).
    X, y = sure_where_high(0.5)
    model = StaticSubsetClassifier(SENSORS, costs=COSTS, cost_weight=cost_weight)
    assert model.fit(X, y).tree_.root.sensors == sensors


# what they share --------------------------------------------------------------------------

METHODS = [
    MyopicClassifier(reject=0.6),
    CascadeClassifier(
        cost_weight=0.02,
        program=Program.as_published(
            savings="tight", decision_features="posterior", l2="auto"
        ),
    ),
    StaticSubsetClassifier(cost_weight=0.03, n_exact=1, cv=3),
    ASTCClassifier(budget=3),
    ASTCClassifier(budget=3, soft=True, depth=4),
    CSTCClassifier(cost_weight=0.02, steepness=3),
    CSTCClassifier(cost_weight=0.03, depth=4),
]


def test_every_compared_method_is_among_those_that_claims_are_made_of():
    said = {type(method).__name__ for method in METHODS}
    classes = {name for name in baselines.__all__ if name.endswith("Classifier")}
    assert classes - {"AlternatingTreeClassifier"} <= said  # it has tests of its own


def grouped_iris():
    X, y = load_iris(return_X_y=True)
    sensors = {"sepal": [0, 1], "length": [2], "width": [3]}
    return X, y, sensors, {"sepal": 1.0, "length": 2.0, "width": 3.0}


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    names = {f"s{j}": [j, j + 10] for j in range(10)}
    sensors = {**names, "worst": list(range(20, 30))}
    return X, y, sensors, {"worst": 2.5}


@pytest.mark.parametrize("data", [grouped_iris, cancer], ids=lambda f: f.__name__)
@pytest.mark.parametrize("model", METHODS, ids=lambda m: type(m).__name__)
def test_step_by_step_is_batch_prediction_on_every_row(model, data):
    X, y, sensors, costs = data()
    model.set_params(sensors=sensors, costs=costs).fit(X, y)
    labels, proba, places = model.predict(X), model.predict_proba(X), model.apply(X)
    bought, spent = model.acquired(X), model.acquisition_cost(X)
    for row in range(len(X)):
        decision = model.policy_.acquire(lambda s, _, row=row: X[row, sensors[s]])
        assert decision.label == labels[row]
        assert decision.place == places[row]
        assert decision.spent == pytest.approx(spent[row], abs=1e-9)
        np.testing.assert_array_equal(decision.proba, proba[row])
        names = np.array(model.sensors_.names)[bought[row]]
        assert set(decision.acquired) == set(names)


@pytest.mark.parametrize("model", METHODS, ids=lambda m: type(m).__name__)
def test_a_session_is_brought_back_from_what_it_wrote(model):
    X, y, sensors, costs = grouped_iris()
    policy = model.set_params(sensors=sensors, costs=costs).fit(X, y).policy_
    session = policy.session()
    first = session.ask()
    session.tell(first.sensor, X[7, sensors[first.sensor]])
    again = policy.resume(json.loads(json.dumps(session.to_dict())))
    np.testing.assert_array_equal(again.step.proba, session.step.proba)
    assert again.step.sensor == session.step.sensor


@pytest.mark.parametrize("model", METHODS, ids=lambda m: type(m).__name__)
def test_an_error_that_costs_more_is_made_less_often(model):
    X, y, sensors, costs = cancer()
    model.set_params(sensors=sensors, costs=costs).fit(X, y)
    missed = np.sum((model.predict(X) == 1) & (y == 0))
    model.set_params(loss={0: 20.0, 1: 1.0}).fit(X, y)
    assert np.sum((model.predict(X) == 1) & (y == 0)) < missed
    model.set_params(loss=None)


@pytest.mark.parametrize("model", METHODS, ids=lambda m: type(m).__name__)
def test_what_is_not_bought_changes_nothing(model):
    X, y, sensors, costs = cancer()
    model.set_params(sensors=sensors, costs=costs).fit(X, y)
    wrecked, bought = np.array(X), model.acquired(X)
    assert not bought.all()
    for sensor, columns in enumerate(model.sensors_.columns):
        wrecked[np.ix_(~bought[:, sensor], columns)] = np.nan
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(wrecked))


@pytest.mark.parametrize("model", METHODS, ids=lambda m: type(m).__name__)
def test_the_flow_counts_what_the_policy_does(model):
    X, y, sensors, costs = cancer()
    model.set_params(sensors=sensors, costs=costs).fit(X, y)
    flow, leaf = model.policy_.flow, model.apply(X)
    np.testing.assert_allclose(
        flow.leaf_rows, np.bincount(leaf, minlength=model.tree_.n_leaves)
    )
    if getattr(model, "cv", None) is None:  # else losses are out of fold
        assert flow.total_loss == pytest.approx(1 - model.score(X, y))


@pytest.mark.parametrize("model", METHODS, ids=lambda m: type(m).__name__)
def test_no_row_spends_more_than_max_cost(model):
    X, y, sensors, costs = cancer()
    model.set_params(sensors=sensors, costs=costs, max_cost=3.0).fit(X, y)
    assert model.acquisition_cost(X).max() <= 3.0
    session = model.policy_.session(limit=2.0)
    while (step := session.ask()) is not None:
        session.tell(step.sensor, X[0, sensors[step.sensor]])
    assert session.decision().spent <= 2.0
    model.set_params(max_cost=None)


@pytest.mark.parametrize("model", METHODS, ids=lambda m: type(m).__name__)
def test_every_example_may_have_prices_of_its_own(model):
    X, y, sensors, _ = grouped_iris()
    prices = np.random.default_rng(0).uniform(0.5, 2.0, size=(len(X), 3))
    model.set_params(sensors=sensors, costs=None).fit(X, y, prices=prices)
    bought, cost = model.acquired(X, prices), model.acquisition_cost(X, prices)
    np.testing.assert_allclose(cost, (bought * prices).sum(axis=1))
    assert (model.predict(X, prices) == y).mean() > 0.7


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (MyopicClassifier(), [0.2, 0.8]),
        (ASTCClassifier(), [1.0, 3.0]),
        (CSTCClassifier(), [0.1, 0.001]),
        (StaticSubsetClassifier(n_exact=1, cv=3), [0.3, 0.001]),
        (CascadeClassifier(), [0.5, 0.001]),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_path_is_traced_by_the_parameter_of_the_method(model, values):
    X, y, sensors, costs = cancer()
    model.set_params(sensors=sensors, costs=costs)
    cheap, dear = model.fit_path(X, y, values)
    assert cheap.acquisition_cost(X).mean() < dear.acquisition_cost(X).mean()
    alone = type(model)(**dear.get_params(deep=False)).fit(X, y)
    np.testing.assert_array_equal(alone.predict_proba(X), dear.predict_proba(X))


# Myopic and the cascade -------------------------------------------------------------------


@pytest.mark.parametrize("confidence", ["largest", "margin"])
@pytest.mark.parametrize("reject", [0.0, 0.3, 0.7, 1.0])
def test_myopic_rejects_the_same_share_at_every_stage(confidence, reject):
    X, y = load_iris(return_X_y=True)
    X = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)  # no ties
    model = MyopicClassifier(reject=reject, confidence=confidence).fit(X, y)
    here = len(X)
    for stage in range(3):
        onward = (model.apply(X) > stage).sum()
        assert abs(onward - reject * here) <= 0.5
        here = onward


@pytest.mark.parametrize("confidence", ["largest", "margin"])
def test_myopic_stops_where_the_named_confidence_is_above_a_threshold(confidence):
    X, y = load_iris(return_X_y=True)
    model = MyopicClassifier(confidence=confidence, order=["x2", "x0", "x1", "x3"])
    model.fit(X, y)
    scorer = model.policy_.classifiers[frozenset({"x2"})]
    proba = np.sort(scorer.predict_proba(X[:, [2]]), axis=1)
    sure = proba[:, -1] - (proba[:, -2] if confidence == "margin" else 0.0)
    stops = model.apply(X) == 0
    assert sure[stops].min() > sure[~stops].max()


def test_a_cascade_follows_the_order_that_is_given():
    X, y = load_iris(return_X_y=True)
    model = CascadeClassifier(order=["x3", "x0", "x2", "x1"]).fit(X, y)
    stages = [leaf.sensors for leaf in model.tree_.leaves]
    assert stages[:2] == [{"x3"}, {"x3", "x0"}]
    assert model.certificate_.converged


def test_a_list_of_sensors_is_a_chain_in_that_order():
    X, y = load_iris(return_X_y=True)
    order = ["x3", "x0", "x2", "x1"]
    program = Program.as_published(savings="tight")
    given = {"classifier": "logistic2", "cv": None, "program": program}
    model = SensorTreeClassifier(structure=order, **given).fit(X, y)
    cascade = CascadeClassifier(order=order).fit(X, y)
    assert str(model.tree_) == str(cascade.tree_)
    np.testing.assert_array_equal(model.predict_proba(X), cascade.predict_proba(X))
    with pytest.raises(ParameterError, match="order forgets sensor 'x1'"):
        SensorTreeClassifier(structure=order[:3]).fit(X, y)


def test_a_cascade_is_a_sensor_tree_on_the_same_chain():
    X, y = load_iris(return_X_y=True)
    settings = {
        "program": Program(
            decision_features="posterior", refine=False, fallback=False, l2=0.0
        ),
        "cost_weight": 0.03,
        "cv": 5,
    }
    one = CascadeClassifier(**settings).fit(X, y)
    other = SensorTreeClassifier(
        **settings,
        structure="cascade",
        calibrate_leaves=False,
        classifier="logistic2",
    ).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (["x0", "x9"], "order names 'x9', which is not a sensor"),
        (["x0", "x1"], "order forgets sensor 'x2'"),
    ],
)
@pytest.mark.parametrize("method", [CascadeClassifier, MyopicClassifier])
def test_an_order_that_does_not_fit_is_refused(method, order, words):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ParameterError, match=words):
        method(order=order).fit(X, y)


# static subsets ---------------------------------------------------------------------------


def test_a_static_subset_keeps_its_budget_and_is_the_best_there_is():
    X, y = load_iris(return_X_y=True)
    model = StaticSubsetClassifier(
        budget=2, cost_weight=0, classifier=LogisticRegression(), n_exact="all", cv=None
    ).fit(X, y)
    kept = model.tree_.root.sensors
    errors = {step["subset"]: step["loss"] for step in model.structure_report_.steps}
    assert len(kept) == 2
    pairs = [frozenset(p) for p in combinations(["x0", "x1", "x2", "x3"], 2)]
    assert kept in pairs
    assert kept == {"x2", "x3"}
    assert errors[("x2", "x3")] < 0.06


def test_a_static_subset_within_a_budget_of_nothing_is_the_prior():
    X, y = load_iris(return_X_y=True)
    model = StaticSubsetClassifier(budget=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), 1 / 3)
