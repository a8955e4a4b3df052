"""Claims about asking a policy step by step."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sensortree import Leaf, Node, Sensor, SensorTree, SensorTreeClassifier
from sensortree.exceptions import DataError, SensorError, SessionError

FILES = {
    "letter": ("letter", 0.1, 3000),
    "landsat": ("satimage", 0.05, None),
    "pima": ("pima", 0.003, None),
    "heart": ("heart_cleveland", 0.0003, None),
}


def read(name: str, real_data):
    file, weight, most = FILES[name]
    arrays = real_data(file)
    X, y, split = arrays["X"].astype(float), arrays["y"], arrays["split"]
    owner, names = arrays["sensor_of_feature"], arrays["sensor_names"].tolist()
    costs = dict(zip(names, arrays["sensor_costs"].tolist(), strict=True))
    complete = ~np.isnan(X).any(axis=1)
    train = complete & (split != 1)
    sensors = {n: np.flatnonzero(owner == i).tolist() for i, n in enumerate(names)}
    return X[complete], X[train][:most], y[train][:most], sensors, costs, weight


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    sensors = {"sepal": [0, 1], "length": [2], "width": [3]}
    costs = {"sepal": 0.0, "length": 2.0, "width": 3.0}
    model = SensorTreeClassifier(
        sensors, costs=costs, cost_weight=0.02, structure="exhaustive"
    ).fit(X, y)
    return model, X, sensors


def agree(model, X, sensors, rows, tell=lambda values: values):
    """Step by step and batch give the same, and only what is bought is ever read."""
    labels, proba = model.predict(X), model.predict_proba(X)
    places, costs = model.apply(X), model.acquisition_cost(X)
    bought = model.acquired(X)
    names = list(model.sensors_.names)
    for row in rows:

        def oracle(sensor, columns, row=row):
            if not bought[row, names.index(sensor)]:
                raise AssertionError(f"row {row} does not buy {sensor}")
            return tell(X[row, sensors[sensor]])

        decision = model.policy_.acquire(oracle)
        assert decision.label == labels[row]
        assert decision.place == places[row]
        assert decision.spent == pytest.approx(costs[row], abs=1e-9)
        np.testing.assert_array_equal(decision.proba, proba[row])
        assert set(decision.acquired) == {
            name for name, yes in zip(names, bought[row], strict=True) if yes
        }


@pytest.mark.parametrize("name", FILES)
def test_step_by_step_is_batch_prediction_on_every_row(name, real_data):
    X, train, y, sensors, costs, weight = read(name, real_data)
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=weight)
    agree(model.fit(train, y), X, sensors, range(len(X)))


def test_boosted_leaves_too(iris):
    _, X, sensors = iris
    y = load_iris().target
    model = SensorTreeClassifier(sensors, classifier="boosted", cost_weight=0.02)
    agree(model.fit(X, y), X, sensors, range(len(X)))


def test_values_of_what_is_not_bought_do_not_matter(iris):
    model, X, _ = iris
    hidden = np.where(
        model.acquired(X)[:, [0, 0, 1, 2]], X, np.nan
    )  # columns of each sensor
    np.testing.assert_array_equal(model.predict_proba(hidden), model.predict_proba(X))


def test_asking_changes_nothing(iris):
    session = iris[0].policy_.session()
    assert session.ask().sensor == session.ask().sensor
    assert session.spent == 0


def test_a_step_says_what_it_costs_now_and_at_most(iris):
    model, X, _ = iris
    first = model.policy_.step({})
    assert (first.action, first.sensor, first.cost) == ("acquire", "sepal", 0.0)
    assert first.columns == ("x0", "x1")
    assert first.worst_case_remaining == 5.0
    np.testing.assert_allclose(first.proba, [1 / 3] * 3)
    second = model.policy_.step({"sepal": X[60, :2]})
    assert second.action == "acquire"
    assert second.worst_case_remaining == second.cost + {"length": 3, "width": 2}[
        second.sensor
    ] * (second.worst_case_remaining > second.cost)


def test_a_step_depends_on_what_is_known_alone(iris):
    model, X, sensors = iris
    session = model.policy_.session()
    known = {}
    while (asked := session.ask()) is not None:
        assert model.policy_.step(known).sensor == asked.sensor
        assert model.policy_.step(known).spent == asked.spent
        known[asked.sensor] = X[70, sensors[asked.sensor]]
        session.tell(asked.sensor, known[asked.sensor])
    assert model.policy_.step(known).action == "stop"
    assert model.policy_.step(known).spent == session.decision().spent


def test_a_step_says_why(iris):
    model, X, _ = iris
    policy = model.policy_
    assert policy.step({}).why is None
    why = policy.step({"sepal": X[70, :2]}).why
    intercept = policy.decisions[why.node].coef[-1]
    total = sum(c.contribution for c in why.contributions) + intercept
    assert total == pytest.approx(why.score)
    assert {"x0", "x1", "P(1)", "entropy"} <= {c.name for c in why.contributions}
    assert 0 < why.share <= 1
    assert why.details.startswith(f"node {why.node}: g = ")
    assert str(why).startswith("so far class 1 (probability ")
    assert "length, with what may follow, changes the answer for " in str(why)


def test_what_is_known_at_the_start_is_free_and_used(iris):
    model, X, sensors = iris
    everything = {name: X[70, columns] for name, columns in sensors.items()}
    session = model.policy_.session(known=everything)
    assert session.ask() is None
    decision = session.decision()
    assert decision.spent == 0
    assert decision.acquired == ()
    assert decision.label == model.predict(X[70:71])[0]


def test_a_sensor_that_was_not_asked_for_is_free(iris):
    model, X, sensors = iris
    session = model.policy_.session()
    session.tell("width", X[70, sensors["width"]])
    session.tell("length", X[70, sensors["length"]])
    session.tell("sepal", X[70, sensors["sepal"]])
    assert session.decision().spent == 0


def test_telling_other_values_needs_replace(iris):
    model, X, _ = iris
    session = model.policy_.session()
    session.tell("sepal", X[0, :2])
    session.tell("sepal", {"x0": X[0, 0], "x1": X[0, 1]})  # the same: nothing happens
    with pytest.raises(SessionError, match="told before with other values; pass repl"):
        session.tell("sepal", X[100, :2])
    session.tell("sepal", X[100, :2], replace=True)
    expected = model.policy_.step({"sepal": X[100, :2]})
    assert session.step.why.score == expected.why.score


def test_a_decision_before_the_end_is_refused(iris):
    with pytest.raises(SessionError, match="still asks for 'sepal'; tell its values"):
        iris[0].policy_.session().decision()


BAD = {
    "unknown sensor": ("petal", [1.0], SensorError, "'petal' is not a sensor"),
    "too few": ("sepal", [1.0], DataError, "told 1 values, but reads 2 columns"),
    "unknown column": ("sepal", {"x0": 1, "x9": 2}, DataError, "column 'x9', which"),
    "missing column": ("sepal", {"x0": 1}, DataError, "nothing for column 'x1'"),
    "text": (
        "sepal",
        ["a", "b"],
        DataError,
        "'a' of sensor 'sepal', column 'x0', is not",
    ),
    "infinity": ("sepal", [np.inf, 1], DataError, "infinity of sensor 'sepal'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_values_are_refused_and_nothing_changes(iris, case):
    sensor, values, error, message = BAD[case]
    session = iris[0].policy_.session()
    before = session.to_dict()
    with pytest.raises(error, match=message):
        session.tell(sensor, values)
    assert session.to_dict() == before


def test_a_missing_value_is_told_where_leaves_accept_it(iris):
    _, X, sensors = iris
    X = X.copy()
    X[::5, 2] = np.nan
    model = SensorTreeClassifier(sensors, classifier="boosted", cost_weight=0.01)
    agree(model.fit(X, load_iris().target), X, sensors, range(0, 150, 5))


def test_a_session_survives_as_json(iris):
    model, X, sensors = iris
    session = model.policy_.session(limit=4.0)
    session.tell("sepal", X[70, :2])
    state = json.loads(json.dumps(session.to_dict()))
    resumed = model.policy_.resume(state)
    assert resumed.ask().sensor == session.ask().sensor
    assert resumed.to_dict() == session.to_dict()
    while (asked := session.ask()) is not None:
        session.tell(asked.sensor, X[70, sensors[asked.sensor]])
        resumed.tell(asked.sensor, X[70, sensors[asked.sensor]])
    assert resumed.decision().spent == session.decision().spent


def test_a_session_is_not_resumed_with_another_model(iris):
    model, X, sensors = iris
    other = SensorTreeClassifier(sensors, cost_weight=0.5).fit(X, load_iris().target)
    with pytest.raises(SessionError, match="begun with another model"):
        other.policy_.resume(model.policy_.session().to_dict())


def test_a_state_that_is_none_is_refused(iris):
    for state in ({}, {"format": "other"}, {"format": "sensortree-session"}):
        with pytest.raises(SessionError, match="to_dict"):
            iris[0].policy_.resume(state)


def test_the_oracle_may_be_awaited(iris):
    model, X, sensors = iris

    async def oracle(sensor, columns):
        await asyncio.sleep(0)
        return X[70, sensors[sensor]]

    decision = asyncio.run(model.policy_.acquire_async(oracle))
    assert decision.label == model.predict(X[70:71])[0]
    assert decision.spent == model.acquisition_cost(X[70:71])[0]


def test_frames_and_categories_can_be_told():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"colour": rng.choice(["red", "green"], 200), "size": rng.normal(size=200)}
    )
    y = (frame["size"] + (frame["colour"] == "red")) > 0.5
    sensors = {
        "look": Sensor(["colour"], 1.0, OneHotEncoder()),
        "scale": Sensor(["size"], 2.0, make_pipeline(StandardScaler())),
    }
    model = SensorTreeClassifier(sensors, cost_weight=0.01).fit(frame, y)
    expected = model.predict_proba(frame)
    for row in range(30):
        decision = model.policy_.acquire(
            lambda sensor, columns, row=row: frame.loc[row, list(columns)].to_dict()
        )
        np.testing.assert_array_equal(decision.proba, expected[row])


# unavailable sensors and limits -----------------------------------------------------------


def test_text_that_looks_like_a_number_is_told_as_text():
    rng = np.random.default_rng(0)
    X = np.empty((200, 2), dtype=object)
    X[:, 0] = rng.choice(["1", "2", "3"], 200)
    X[:, 1] = rng.normal(size=200)
    y = (X[:, 0] == "1") ^ (X[:, 1] > 1)
    sensors = {"code": Sensor([0], 1.0, OneHotEncoder()), "size": Sensor([1], 2.0)}
    model = SensorTreeClassifier(sensors, cost_weight=0.01, structure="cascade")
    model.fit(X, y.astype(int))
    for row, proba in zip(X[:20], model.predict_proba(X[:20]), strict=True):
        session = model.policy_.session()
        while (step := session.ask()) is not None:
            session.tell(step.sensor, [row[list(sensors).index(step.sensor)]])
        assert np.array_equal(session.decision().proba, proba)


def test_without_detours_an_unavailable_sensor_leads_to_the_best_leaf_left(iris):
    model, X, sensors = iris
    policy = replace(model.policy_, detours=None)
    asked = policy.step({"sepal": X[70, :2]}).sensor
    session = policy.session()
    session.tell("sepal", X[70, :2])
    session.unavailable(asked)
    while (step := session.ask()) is not None:
        assert step.sensor != asked
        session.tell(step.sensor, X[70, sensors[step.sensor]])
    decision = session.decision()
    assert decision.stopped_because == "unavailable"
    flow = model.policy_.flow
    node = session.step.why.node
    there = (
        flow.leaf_loss[node, decision.place]
        if decision.place >= 0
        else flow.stop_loss[node]
    )
    assert decision.rerouting_loss == pytest.approx(there - flow.kept_loss[node])


def test_the_policy_goes_its_own_way_if_what_is_unavailable_is_not_wanted(iris):
    model, X, sensors = iris
    bought = model.acquired(X)
    row = int(np.flatnonzero(~bought.all(axis=1))[0])
    unwanted = model.sensors_.names[int(np.flatnonzero(~bought[row])[0])]
    session = model.policy_.session()
    session.unavailable(unwanted)
    while (step := session.ask()) is not None:
        session.tell(step.sensor, X[row, sensors[step.sensor]])
    decision = session.decision()
    assert decision.stopped_because == "policy"
    assert decision.place == model.apply(X[row : row + 1])[0]


def test_with_nothing_available_the_answer_is_the_prior(iris):
    model, _, sensors = iris
    session = model.policy_.session()
    for sensor in sensors:
        session.unavailable(sensor)
    decision = session.decision()
    np.testing.assert_allclose(decision.proba, [1 / 3] * 3)
    assert (decision.spent, decision.place) == (0, ~model.tree_.n_nodes)


def test_a_limit_is_never_exceeded(iris):
    model, X, sensors = iris
    for limit in (0.0, 1.9, 2.0, 3.5, 5.0):
        for row in range(0, 150, 7):
            decision = model.policy_.acquire(
                lambda s, _, row=row: X[row, sensors[s]], limit=limit
            )
            assert decision.spent <= limit


def test_what_was_unavailable_may_come_back(iris):
    model, X, _sensors = iris
    session = model.policy_.session()
    session.unavailable("sepal")
    assert session.ask().sensor != "sepal"
    session.tell("sepal", X[70, :2])
    assert session.ask().sensor == model.policy_.step({"sepal": X[70, :2]}).sensor


def test_a_node_without_a_leaf_of_its_own_can_be_a_last_resort():
    # The root must buy b or c; without both, the root itself answers.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + np.where(X[:, 0] > 0, X[:, 1], X[:, 2]) > 0
    tree = SensorTree(Node(["x0"], Leaf(["x0", "x1"]), Leaf(["x0", "x2"])))
    model = SensorTreeClassifier(structure=tree, cost_weight=0.01, outages=False)
    session = model.fit(X, y).policy_.session()
    session.tell("x0", X[0, :1])
    session.unavailable("x1")
    session.unavailable("x2")
    decision = session.decision()
    assert decision.place == ~0
    assert decision.spent == 1.0
