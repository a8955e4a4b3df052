"""Claims about prices: groups, prerequisites, alternatives, caps, examples' own prices."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sensortree import (
    Leaf,
    Node,
    Program,
    Sensor,
    SensorSet,
    SensorTree,
    SensorTreeClassifier,
)
from sensortree.exceptions import DataError, ParameterError, SensorError, TreeError
from sensortree.results import Terms
from sensortree.sensors.market import Market

RNG = np.random.default_rng(0)
BLOOD = [Terms(group="blood", surcharge=2.1), Terms(group="blood", surcharge=2.1)]
TESTS = SensorSet(
    ("age", "glucose", "insulin"),
    ((0,), (1,), (2,)),
    (1.0, 17.61, 22.78),
    terms=(Terms(), *BLOOD),
)


# groups -----------------------------------------------------------------------------------


def test_blood_is_drawn_once():
    assert TESTS.cost_of({"glucose"}) == pytest.approx(17.61)
    assert TESTS.cost_of({"glucose", "insulin"}) == pytest.approx(17.61 + 20.68)
    assert TESTS.cost_of({"insulin"}, known={"glucose"}) == pytest.approx(20.68)
    assert TESTS.cost_of({"insulin"}, known={"age"}) == pytest.approx(22.78)


def test_fee_and_discount_are_two_ways_to_say_it():
    first = Sensor("a", cost=7.27, discounted_cost=5.17, group="blood")
    second = Sensor("a", cost=5.17, fee=2.10, group="blood")
    assert first.surcharge == pytest.approx(second.surcharge)


def test_the_first_of_a_group_is_the_first_on_the_way():
    # a first costs 10, later 4; b first 8, later 7: the order of buying matters.
    X = RNG.normal(size=(60, 2))
    sensors = {
        "a": Sensor([0], 10, group="g", discounted_cost=4),
        "b": Sensor([1], 8, group="g", discounted_cost=7),
    }
    both = Leaf(["a", "b"])
    for first, cost in (("a", 10 + 7), ("b", 8 + 4)):
        tree = SensorTree(Node([first], Leaf([first]), both))
        model = SensorTreeClassifier(sensors, structure=tree, cost_weight=0.0)
        model.fit(X, X.sum(axis=1) > 0)
        policy = model.policy_
        session = policy.session()
        for name in (first, ({"a", "b"} - {first}).pop()):
            session.tell(name, [0.0]) if session.ask().sensor == name else None
        assert session.spent in (cost, {"a": 10, "b": 8}[first])
        bought_all = model.acquired(X).all(axis=1)
        np.testing.assert_allclose(model.acquisition_cost(X)[bought_all], cost)


def test_sensors_bought_together_are_bought_in_the_cheapest_order():
    terms = (Terms("g", 6.0), Terms("g", 1.0))
    pair = SensorSet(("a", "b"), ((0,), (1,)), (10.0, 8.0), terms=terms)
    assert pair.purchase_order({"a", "b"}) == ("b", "a")
    assert pair.cost_of({"a", "b"}) == 8 + 4


def test_a_session_pays_what_a_batch_pays_with_groups():
    X = RNG.normal(size=(300, 4))
    y = X.sum(axis=1) > 0
    sensors = {
        f"s{j}": Sensor([j], 5.0 + j, group="g", discounted_cost=2.0 + j)
        for j in range(4)
    }
    model = SensorTreeClassifier(sensors, cost_weight=0.005).fit(X, y)
    costs = model.acquisition_cost(X)
    for row in range(60):
        decision = model.policy_.acquire(lambda s, _, row=row: X[row, [int(s[1])]])
        assert decision.spent == pytest.approx(costs[row])


# prerequisites and alternatives -----------------------------------------------------------


def constrained(structure):
    """c is the best sensor but needs b; a and d are alternatives."""
    X = RNG.normal(size=(400, 5))
    y = X[:, 2] + 0.3 * X[:, 0] + 0.3 * X[:, 3] > 0
    sensors = {
        "a": Sensor([0], 1.0, one_of="scan"),
        "b": Sensor([1], 0.5),
        "c": Sensor([2], 1.0, after=["b"]),
        "d": Sensor([3], 1.0, one_of="scan"),
        "e": Sensor([4], 1.0),
    }
    model = SensorTreeClassifier(sensors, structure=structure, cost_weight=0.01)
    return model.fit(X, y), X


@pytest.mark.parametrize(
    "structure", ["auto", "chain", "branched", "greedy", "cascade"]
)
def test_every_structure_keeps_to_the_terms(structure):
    model, X = constrained(structure)
    for vertex in (*model.tree_.nodes, *model.tree_.leaves):
        assert "c" not in vertex.sensors or "b" in vertex.sensors
        assert not {"a", "d"} <= vertex.sensors
    assert any("c" in leaf.sensors for leaf in model.tree_.leaves)
    bought = model.acquired(X)
    assert not (bought[:, 0] & bought[:, 3]).any()
    assert not (bought[:, 2] & ~bought[:, 1]).any()


def test_what_must_come_before_is_asked_before():
    model, X = constrained("chain")
    for row in range(40):
        order = model.policy_.acquire(
            lambda s, _, row=row: X[row, ["abcde".index(s)]]
        ).acquired
        if "c" in order:
            assert order.index("b") < order.index("c")


def test_the_exhaustive_tree_holds_every_allowed_order():
    X = RNG.normal(size=(80, 3))
    sensors = {"a": Sensor([0]), "b": Sensor([1], after=["a"]), "c": Sensor([2])}
    model = SensorTreeClassifier(sensors, structure="exhaustive", root_sensors=[])
    subsets = {leaf.sensors for leaf in model.fit(X, X[:, 0] > 0).tree_.leaves}
    allowed = {
        frozenset(s)
        for k in range(4)
        for s in itertools.combinations("abc", k)
        if "b" not in s or "a" in s
    }
    assert subsets == allowed


BAD_TERMS = {
    "unknown prerequisite": (
        {"a": Sensor([0], after=["z"]), "b": [1]},
        "sensor 'a' comes after 'z', which is not a sensor",
    ),
    "circle": (
        {"a": Sensor([0], after=["b"]), "b": Sensor([1], after=["a"])},
        "sensor 'a' must come after itself, through 'b'; remove one 'after'.",
    ),
    "itself": ({"a": Sensor([0], after=["a"]), "b": [1]}, "must come after itself"),
    "excluded by its prerequisite": (
        {"a": Sensor([0], after=["b"], one_of="x"), "b": Sensor([1], one_of="x")},
        "sensor 'a' can never be acquired",
    ),
}


@pytest.mark.parametrize("case", BAD_TERMS)
def test_terms_that_cannot_be_kept_are_refused(case):
    sensors, message = BAD_TERMS[case]
    X = RNG.normal(size=(20, 2))
    with pytest.raises(SensorError, match=message):
        SensorTreeClassifier(sensors).fit(X, X[:, 0] > 0)


BAD_SENSORS = {
    "fee without group": ({"fee": 1.0}, "has a fee but no group"),
    "both": (
        {"group": "g", "fee": 1, "discounted_cost": 1},
        "both discounted_cost and fee",
    ),
    "dearer later": (
        {"cost": 1, "group": "g", "discounted_cost": 2},
        "discounted_cost 2 is above its cost 1",
    ),
    "column and discount": (
        {"cost": "price", "group": "g", "discounted_cost": 2},
        "give what is paid once as its fee",
    ),
    "after a string": ({"after": "b"}, r"must list names of sensors, got 'b'"),
    "empty group": ({"group": ""}, "group must be a non-empty string or None"),
}


@pytest.mark.parametrize("case", BAD_SENSORS)
def test_a_bad_declaration_is_refused(case):
    arguments, message = BAD_SENSORS[case]
    with pytest.raises(SensorError, match=message):
        Sensor([0], **arguments)


def test_a_tree_of_ones_own_must_keep_to_the_terms():
    X = RNG.normal(size=(40, 2))
    sensors = {"a": Sensor([0]), "b": Sensor([1], after=["a"])}
    tree = SensorTree(Node([], Leaf(["b"]), Leaf(["a", "b"])))
    with pytest.raises(TreeError, match="'after' or 'one_of' forbid"):
        SensorTreeClassifier(sensors, structure=tree).fit(X, X[:, 0] > 0)


# prices of each example -------------------------------------------------------------------


def two_prices(n=2000, seed=0):
    """The sensor tells everything, for 0.1 or for 0.9; half an error is saved by it."""
    rng = np.random.default_rng(seed)
    price = rng.choice([0.1, 0.9], n)
    answer = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "nothing": rng.normal(size=n),
            "answer": answer + 0.01 * rng.normal(size=n),
            "price": price,
        }
    )
    return frame, answer, price


SENSORS = {
    "nothing": Sensor("nothing", 0.0),
    "oracle": Sensor("answer", cost="price"),
}


def test_the_known_optimal_policy_is_recovered():
    # Guessing loses 0.5, so it is best to buy at 0.1 and not at 0.9.
    frame, y, _ = two_prices()
    model = SensorTreeClassifier(SENSORS, cost_weight=1.0).fit(frame, y)
    test, truth, price = two_prices(seed=1)
    bought = model.acquired(test)[:, 1]
    # A threshold found by counting leaves a row in a hundred to the noise beside it.
    assert (bought == (price < 0.5)).mean() > 0.99
    np.testing.assert_allclose(
        model.acquisition_cost(test), np.where(bought, price, 0.0)
    )
    assert (model.predict(test) == truth)[price < 0.5].all()


def test_prices_may_be_given_beside_X():
    frame, y, price = two_prices()
    sensors = {"nothing": Sensor("nothing", 0.0), "oracle": Sensor("answer", 0.5)}
    X = frame[["nothing", "answer"]]
    prices = np.column_stack([np.full(len(X), np.nan), price])
    model = SensorTreeClassifier(sensors, cost_weight=1.0).fit(X, y, prices=prices)
    beside = SensorTreeClassifier(SENSORS, cost_weight=1.0).fit(frame, y)
    np.testing.assert_array_equal(
        model.acquisition_cost(X, prices=prices), beside.acquisition_cost(frame)
    )
    with pytest.raises(DataError, match="price of sensor 'oracle' is different for"):
        model.predict(X)


def test_a_session_is_given_the_price():
    frame, y, _ = two_prices()
    policy = SensorTreeClassifier(SENSORS, cost_weight=1.0).fit(frame, y).policy_
    cheap = policy.session(known={"nothing": [0.0]}, prices={"oracle": 0.1})
    assert (cheap.ask().sensor, cheap.ask().cost) == ("oracle", 0.1)
    assert (
        policy.session(known={"nothing": [0.0]}, prices={"oracle": 0.9}).ask() is None
    )
    with pytest.raises(SensorError, match="price of sensor 'oracle' differs between"):
        policy.session()


def test_step_by_step_is_batch_with_prices_of_each_example():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    y = X.sum(axis=1) > 0
    prices = rng.uniform(0.5, 3.0, size=(400, 3))
    model = SensorTreeClassifier(cost_weight=0.03, max_cost=4.0)
    model.fit(X, y, prices=prices)
    cost, proba = model.acquisition_cost(X, prices), model.predict_proba(X, prices)
    for row in range(400):
        own = dict(zip(model.sensors_.names, prices[row], strict=True))
        decision = model.policy_.acquire(
            lambda s, _, row=row: X[row, [int(s[1])]], prices=own
        )
        assert decision.spent == pytest.approx(cost[row])
        np.testing.assert_array_equal(decision.proba, proba[row])


BAD_PRICES = {
    "negative": (
        -1.0,
        r"column 'price', the price of sensor .* holds -1.0 in row 3; it must",
    ),
    "NaN": (
        np.nan,
        r"column 'price', the price of sensor .* holds nan in row 3; it must",
    ),
}


@pytest.mark.parametrize("case", BAD_PRICES)
def test_a_bad_price_is_named_with_its_row(case):
    value, message = BAD_PRICES[case]
    frame, y, _ = two_prices(50)
    frame.loc[3, "price"] = value
    with pytest.raises(DataError, match=message):
        SensorTreeClassifier(SENSORS).fit(frame, y)


def test_a_price_column_belongs_to_no_sensor():
    frame, y, _ = two_prices(50)
    sensors = {**SENSORS, "price": ["price"]}
    with pytest.raises(SensorError, match="its column belongs to no sensor"):
        SensorTreeClassifier(sensors).fit(frame, y)


def test_prices_of_another_shape_are_refused():
    X = RNG.normal(size=(20, 2))
    with pytest.raises(
        DataError, match=r"prices has shape \(2, 20\), expected \(20, 2\)"
    ):
        SensorTreeClassifier().fit(X, X[:, 0] > 0, prices=np.ones((2, 20)))


# caps -------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["auto", "chain", "greedy", "cascade"])
def test_a_cap_is_never_exceeded(structure):
    rng = np.random.default_rng(1)
    X, test = rng.normal(size=(400, 6)), rng.normal(size=(10_000, 6))
    y = X.sum(axis=1) > 0
    prices, own = rng.uniform(0, 3, (400, 6)), rng.uniform(0, 3, (10_000, 6))
    for fitted, given in ((None, None), (prices, own)):
        model = SensorTreeClassifier(
            structure=structure,
            cost_weight=0.001,
            max_cost=3.0,
            program=Program(fallback=False),
        ).fit(X, y, prices=fitted)
        cost = model.acquisition_cost(test, given)
        assert cost.max() <= 3.0
        assert cost.max() > 1.0  # it buys what it may


def test_what_is_compared_stays_within_the_cap_as_the_policy_does():
    rng = np.random.default_rng(1)
    X, prices = rng.normal(size=(400, 6)), rng.uniform(0, 3, (400, 6))
    model = SensorTreeClassifier(cost_weight=0.001, max_cost=3.0)
    compared = model.fit(X, X.sum(axis=1) > 0, prices=prices).comparison_
    assert max(compared.cost.values()) <= 3.0
    assert max(compared.risk.values()) < 0.6  # nobody counts as if all were lost


def test_a_cap_below_every_price_buys_nothing():
    X = RNG.normal(size=(100, 3))
    model = SensorTreeClassifier(max_cost=0.5).fit(X, X[:, 0] > 0)
    assert not model.acquired(X).any()


def test_where_no_sensor_can_be_worth_its_price_none_is_looked_at():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] + X[:, 1] > 0
    costs = {"x0": 2.0, "x1": 1.0, "x2": 0.0}
    model = SensorTreeClassifier(costs=costs, cost_weight=1.0).fit(X, y)
    assert model.structure_report_.stopped == "no sensor can be worth its price"
    assert model.structure_report_.n_classifiers == 0
    assert model.tree_ == SensorTree(Leaf(["x2"]))
    model = SensorTreeClassifier(costs=costs, cost_weight=0.99).fit(X, y)
    assert model.structure_report_.stopped != "no sensor can be worth its price"
    # A wrong answer that costs more can be worth more.
    dearer = {"loss": {False: 3.0, True: 3.0}, "cost_weight": 1.0}
    model = SensorTreeClassifier(costs=costs, **dearer).fit(X, y)
    assert model.structure_report_.stopped != "no sensor can be worth its price"


def test_the_least_price_is_after_all_discounts_and_of_whoever_pays_least():
    names, columns = ("age", "iron", "salt"), ((0,), (1,), (2,))
    terms = (Terms(), Terms(group="blood", surcharge=3.0), BLOOD[0])
    declared = SensorSet(names, columns, (0.0, 5.0, 5.0), terms=terms)
    assert Market(declared).least_price() == 2.0
    prices = np.array([[0.0, 5.0, 6.0], [0.0, 9.0, 3.5]])
    assert Market(declared, prices).least_price() == pytest.approx(1.4)
    assert Market(SensorSet(names, columns, (0.0, 0.0, 0.0))).least_price() == np.inf


def test_named_root_sensors_above_the_cap_are_refused():
    X = RNG.normal(size=(40, 3))
    with pytest.raises(ParameterError, match="root_sensors cost 2, above max_cost=1"):
        SensorTreeClassifier(max_cost=1, root_sensors=["x0", "x1"]).fit(X, X[:, 0] > 0)


# losses -----------------------------------------------------------------------------------


def test_an_answer_has_the_least_expected_loss():
    # Missing the rare class costs 50 times as much, so it is answered when in doubt.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    y = rng.random(2000) < 0.1 / (1 + np.exp(-X[:, 0]))
    y = np.where(y, "sick", "well")
    plain = SensorTreeClassifier(cost_weight=0.0).fit(X, y)
    careful = clone(plain).set_params(loss={"sick": 50.0, "well": 1.0}).fit(X, y)
    assert (plain.predict(X) == "well").all()
    assert (careful.predict(X) == "sick").mean() > 0.5
    proba = careful.predict_proba(X)
    np.testing.assert_array_equal(
        careful.predict(X) == "sick", 50 * proba[:, 0] >= proba[:, 1]
    )


def test_three_ways_to_say_the_same_loss():
    X = RNG.normal(size=(300, 2))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.5, "b", "a")
    ways = [
        {"a": 1.0, "b": 5.0},
        {"a": {"b": 1.0}, "b": {"a": 5.0}},
        [[0.0, 1.0], [5.0, 0.0]],
    ]
    costs = [
        SensorTreeClassifier(loss=way, cost_weight=0.1).fit(X, y).predict_proba(X)
        for way in ways
    ]
    np.testing.assert_array_equal(costs[0], costs[1])
    np.testing.assert_array_equal(costs[0], costs[2])


def test_money_on_both_sides_scales():
    # Prices and losses in another coin, 64 to the dollar: the same decisions. (A power of
    # two, so that rounding cannot break a tie between equally good decisions.)
    X = RNG.normal(size=(300, 3))
    y = X.sum(axis=1) > 0
    dollars = SensorTreeClassifier(
        costs={"x0": 1, "x1": 2, "x2": 3}, loss={False: 30, True: 60}, cost_weight=1
    ).fit(X, y)
    coins = SensorTreeClassifier(
        costs={"x0": 64, "x1": 128, "x2": 192},
        loss={False: 30 * 64, True: 60 * 64},
        cost_weight=1,
    ).fit(X, y)
    np.testing.assert_array_equal(dollars.acquired(X), coins.acquired(X))


BAD_LOSSES = {
    "unknown class": ({"x": 1}, "loss names class 'x', which y does not have"),
    "forgotten class": ({"a": 1}, "does not say what it costs to mistake class 'b'"),
    "shape": ([[0, 1]], r"loss has shape \(1, 2\), but there are 2 classes"),
    "negative": ([[0, -1], [1, 0]], "finite numbers that are at least 0"),
    "text": ("high", "loss must be None, a mapping of classes, or a matrix"),
}


@pytest.mark.parametrize("case", BAD_LOSSES)
def test_a_bad_loss_is_refused(case):
    loss, message = BAD_LOSSES[case]
    X = RNG.normal(size=(40, 1))
    with pytest.raises(ParameterError, match=message):
        SensorTreeClassifier(loss=loss).fit(X, np.where(X[:, 0] > 0, "a", "b"))
