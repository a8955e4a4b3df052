"""Claims about acting on masked arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.preprocessing import PolynomialFeatures
from toys import BLOOD, per_row_prices, toy_policy

from sensortree import Sensor, SensorTreeClassifier
from sensortree.exceptions import DataError
from sensortree.policy.classifiers import ConstantScorer
from sensortree.results import MaskedPolicy
from sensortree.sensors.table import Table
from sensortree.tree.paths import path_cost


def run(policy, X, known=None, prices=None, by_column=False):
    """Act and unmask until nobody asks; unknown columns are NaN all the time.

    Returns the mask, what each row paid, and the probabilities at the end.
    """
    masked, sensors = MaskedPolicy(policy), policy.sensors
    mask = np.zeros((len(X), len(sensors)), dtype=bool) if known is None else known
    free = [t.price_column for t in sensors.terms if t.price_column is not None]
    table_prices = policy.reader.prices(Table(X, prices))
    paid = np.zeros(len(X))

    def seen():
        shown = np.full(X.shape, np.nan)
        shown[:, free] = X[:, free]
        columns = np.zeros(X.shape, dtype=bool)
        for sensor, owned in enumerate(sensors.columns):
            columns[np.ix_(mask[:, sensor], owned)] = True
        shown[columns] = X[columns]
        return shown, columns if by_column else mask

    while (action := masked.act(*seen(), prices=prices)).any():
        for row in np.flatnonzero(action):
            sensor = action[row] - 1
            assert not mask[row, sensor], "asked for what is known"
            before = frozenset(np.array(sensors.names)[mask[row]].tolist())
            own = None if table_prices is None else table_prices[[row]]
            step = (before | {sensors.names[sensor]},)
            paid[row] += float(np.sum(path_cost(step, sensors, own, before)))
            mask[row, sensor] = True
    return mask, paid, masked.predict(*seen(), prices=prices)


def agrees(model, X, prices=None, by_column=False, **options):
    policy = model.policy_ if hasattr(model, "policy_") else model
    table = Table(X, prices)
    mask, paid, proba = run(policy, X, prices=prices, by_column=by_column, **options)
    assert np.array_equal(mask, policy.acquired(table))
    assert paid == pytest.approx(policy.acquisition_cost(table), abs=1e-9)
    assert proba == pytest.approx(policy.predict_proba(table), abs=1e-12)
    assert np.array_equal(
        policy.classes[policy.loss.answer(proba)], policy.predict(table)
    )


def test_the_toy_asks_for_a_then_b_then_stops():
    masked = MaskedPolicy(toy_policy())
    X = np.array([[-1.0, 0.0], [1.0, 0.0]])
    nothing = np.zeros((2, 2), dtype=bool)
    assert masked.act(X, nothing).tolist() == [1, 1]
    # before the first sensor: the prior
    assert masked.predict(X, nothing).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    one = np.array([[True, False], [True, False]])
    assert masked.act(X, one).tolist() == [0, 2]
    # the second row stands at the node, with the node's own classifier
    assert masked.predict(X, one).tolist() == [[0.9, 0.1], [0.9, 0.1]]
    both = np.ones((2, 2), dtype=bool)
    assert masked.act(X, both).tolist() == [0, 0]
    assert masked.predict(X, both).tolist() == [[0.9, 0.1], [0.2, 0.8]]


def test_unknown_columns_may_hold_anything():
    masked = MaskedPolicy(toy_policy())
    X = np.array([[np.nan, np.inf], [-1.0, np.nan]])
    mask = np.array([[False, False], [True, False]])
    assert masked.act(X, mask).tolist() == [1, 0]
    assert masked.predict(X, mask).shape == (2, 2)


def test_what_is_known_beyond_the_way_is_free_and_changes_nothing():
    masked = MaskedPolicy(toy_policy())
    mask = np.array([[False, True]])
    assert masked.act(np.array([[1.0, 0.0]]), mask).tolist() == [1]
    assert masked.predict(np.array([[1.0, 0.0]]), mask).tolist() == [[0.5, 0.5]]


def test_a_cap_is_kept():
    X = np.array([[-1.0, 0.0], [1.0, 0.0]])
    for policy in (
        toy_policy(max_cost=2.0),
        toy_policy(max_cost=2.0, stop_loss=0.9),
        toy_policy(max_cost=0.5),
        toy_policy(max_cost=3.0, terms=BLOOD),
    ):
        agrees(policy, X)


def test_a_place_with_a_classifier_of_its_own_is_answered_by_it():
    own = {1: ConstantScorer(np.array([0.6, 0.4])), ~0: ConstantScorer(np.ones(2) / 2)}
    policy = replace(toy_policy(), own_classifiers=own)
    X = np.array([[-1.0, 0.0], [1.0, 0.0]])
    agrees(policy, X)
    known = np.array([[True, False], [True, False]])
    assert MaskedPolicy(policy).predict(X, known).tolist() == [[0.9, 0.1], [0.5, 0.5]]


def test_prices_of_each_row_are_known_from_the_start():
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    prices = np.array([[np.nan, 2.0], [np.nan, 5.0], [np.nan, 50.0]])
    policy = per_row_prices(toy_policy())
    agrees(policy, X, prices)
    assert policy.acquired(Table(X, prices))[:, 1].tolist() == [False, True, False]


@pytest.mark.parametrize("by_column", [False, True])
def test_acting_ends_where_batch_prediction_ends_on_iris(by_column):
    X, y = load_iris(return_X_y=True)
    sensors = {"sepal": [0, 1], "petal": [3], "length": [2]}
    for options in ({}, {"max_cost": 1.0}, {"root_sensors": []}):
        model = SensorTreeClassifier(sensors, cost_weight=0.02, **options).fit(X, y)
        agrees(model, X, by_column=by_column)


def test_acting_ends_where_batch_prediction_ends_on_digits():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    sensors = {f"row {i}": Sensor(slice(8 * i, 8 * i + 8)) for i in range(2, 5)}
    sensors["rest"] = Sensor([*range(16), *range(40, 64)], cost=4.0)
    model = SensorTreeClassifier(sensors, cost_weight=0.02, structure="cascade").fit(
        X, y
    )
    assert model.tree_.n_leaves > 1
    agrees(model, X)


def test_transformers_groups_and_price_columns_work():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X[:, 0] + X[:, 1] * (np.abs(X[:, 0]) < 1) + 0.3 * X[:, 2] > 0
    X[:, 3] = rng.uniform(0, 2, 200)
    model = SensorTreeClassifier(
        {
            "a": Sensor([0], cost=0.5, fee=0.2, group="g"),
            "b": Sensor([1], cost="x3", fee=0.3, group="g", after=["c"]),
            "c": Sensor(
                [2], cost=1.0, fee=0.1, group="g", transformer=PolynomialFeatures(2)
            ),
        },
        cost_weight=0.02,
        max_cost=2.5,
    ).fit(X, y)
    agrees(model, X)


@pytest.mark.parametrize("name", ["pima", "heart_cleveland"])
def test_acting_ends_where_batch_prediction_ends_on_real_data(real_data, name):
    data = real_data(name)
    X, y = data["X"].astype(float), data["y"]
    complete = ~np.isnan(X).any(axis=1)
    X, y = X[complete], y[complete]
    owner = data["sensor_of_feature"]
    sensors = {
        str(sensor): np.flatnonzero(owner == i).tolist()
        for i, sensor in enumerate(data["sensor_names"])
    }
    costs = dict(zip(sensors, data["sensor_costs"].tolist(), strict=True))
    dear = sum(costs.values())
    for max_cost in (None, 0.6 * dear):
        model = SensorTreeClassifier(
            sensors, costs=costs, loss=[[0, 400], [800, 0]], max_cost=max_cost
        ).fit(X, y)
        agrees(model, X)


def test_columns_in_another_order_are_refused():
    pd = pytest.importorskip("pandas", reason="pandas is absent")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    policy = SensorTreeClassifier(cost_weight=0.01).fit(X, X["a"] > 0).policy_
    known = np.ones((60, 2), dtype=bool)
    masked = MaskedPolicy(policy)
    assert (masked.predict(X, known) == masked.predict(X.to_numpy(), known)).all()
    with pytest.raises(DataError, match="column 0 of X is 'b', expected 'a'"):
        masked.predict(X[["b", "a"]], known)


def test_masks_and_tables_of_the_wrong_shape_are_named():
    masked = MaskedPolicy(toy_policy())
    X = np.zeros((2, 2))
    with pytest.raises(DataError, match=r"mask has shape \(2, 3\), expected \(2, 2\)"):
        masked.act(X, np.zeros((2, 3), dtype=bool))
    with pytest.raises(DataError, match=r"got int64; write mask.astype\(bool\)"):
        masked.act(X, np.zeros((2, 2), dtype=np.int64))
    with pytest.raises(DataError, match="X has 3 columns, but the model was fitted"):
        masked.act(np.zeros((2, 3)), np.zeros((2, 2), dtype=bool))
