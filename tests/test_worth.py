"""What a mistake costs, which sensors can never pay, and who is told."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import sensortree
from sensortree import (
    Sensor,
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    estimators,
    load,
    save,
    tradeoff_curve,
)
from sensortree.exceptions import BudgetWarning, ParameterError, PriceWarning
from sensortree.learning.worth import most_worth, never_pay
from sensortree.sensors.loss import Loss, resolve_loss
from sensortree.sensors.market import Market
from sensortree.sensors.sensor import SensorSet, Terms

CLASSIFIERS = [name for name in estimators.__all__ if name.endswith("Classifier")]
IN_EUROS = {
    "ecg": Sensor([0], cost=40),
    "blood": Sensor([1], cost=20),
    "echo": Sensor([2], cost=180),
}


def patients(n_rows=240, seed=0):
    """Three tests, each of which says a part of the answer."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    noise = 0.3 * rng.normal(size=n_rows)
    return X, (X @ [1.0, 0.8, 0.3] + noise > 0).astype(int)


@contextmanager
def nothing_told():
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriceWarning)
        warnings.simplefilter("error", BudgetWarning)
        yield


# what a mistake costs ---------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["auto", "chain", "cascade"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_mistake_of_500_learns_what_a_cost_weight_of_a_500th_learns(structure, seed):
    X, y = patients(seed=seed)
    ways = {"structure": structure, "classifier": "linear"}
    money = SensorTreeClassifier(IN_EUROS, loss=500, **ways).fit(X, y)
    errors = SensorTreeClassifier(IN_EUROS, cost_weight=1 / 500, **ways).fit(X, y)
    assert money.policy_.cost_weight == 1
    assert money.tree_.sensors
    assert str(money.tree_) == str(errors.tree_)
    assert (money.apply(X) == errors.apply(X)).all()
    assert (money.predict_proba(X) == errors.predict_proba(X)).all()
    risks = [model.decision_report_.risk for model in (money, errors)]
    assert list(risks[0]) == list(risks[1])
    for kept, risk in risks[0].items():
        assert risk == pytest.approx(500 * risks[1][kept])
    own, other = money.about_.held_out, errors.about_.held_out
    assert own.risk == pytest.approx(500 * other.risk)
    assert (own.error, own.cost) == pytest.approx((other.error, other.cost))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_method_counts_a_mistake_as_it_counts_a_loss_of_as_much(name):
    X, y = patients()
    method = getattr(sensortree, name)
    model = method(IN_EUROS, loss=500).fit(X, y)
    assert model.policy_.loss.matrix.tolist() == [[0, 500], [500, 0]]
    assert model.policy_.loss.per_mistake == 500
    if name != "CSTCClassifier":  # whose squared loss knows no prices of mistakes
        same = method(IN_EUROS, loss={0: 500, 1: 500}).fit(X, y)
        assert same.policy_.digest == model.policy_.digest


def test_cstc_counts_its_squared_loss_in_mistakes():
    X, y = patients()
    money = sensortree.CSTCClassifier(IN_EUROS, loss=500).fit(X, y)
    errors = sensortree.CSTCClassifier(IN_EUROS, cost_weight=1 / 500).fit(X, y)
    assert str(money.tree_) == str(errors.tree_)
    assert (money.predict_proba(X) == errors.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("given", "weight"),
    [({}, 0.01), ({"loss": 7}, 1), ({"loss": {0: 1, 1: 2}}, 1)],
)
def test_the_default_cost_weight_is_1_where_mistakes_are_priced(given, weight):
    X, y = patients(80)
    ways = {"structure": "cascade", "classifier": "linear"}
    model = SensorTreeClassifier(**given, **ways).fit(X, y)
    assert model.policy_.cost_weight == weight
    chosen = SensorTreeClassifier(**given, **ways, cost_weight=0.3).fit(X, y)
    assert chosen.policy_.cost_weight == 0.3
    assert model.cost_weight == "auto"


@pytest.mark.parametrize("cost", [0, -5, "much", float("inf"), float("nan")])
def test_a_mistake_that_costs_nothing_or_no_number_is_refused(cost):
    X, y = patients(40)
    with pytest.raises(ParameterError, match="loss must be"):
        SensorTreeClassifier(loss=cost).fit(X, y)


def test_a_curve_of_priced_mistakes_counts_money():
    X, y = patients(120)
    model = SensorTreeClassifier(
        IN_EUROS, loss=500, structure="cascade", classifier="linear"
    )
    curve = tradeoff_curve(model, X, y, [10.0, 1.0])
    assert curve.measure == "loss"
    assert curve.nothing[1] > 50  # of 500 for each mistake
    assert f"buying nothing: cost 0, loss {curve.nothing[1]:.4g}\n" in str(curve)


def test_a_file_keeps_what_a_mistake_costs(tmp_path):
    X, y = patients(80)
    model = SensorTreeClassifier(loss=500, structure="cascade").fit(X, y)
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.policy_.loss.per_mistake == 500
    assert loaded.policy_.digest == model.policy_.digest


# what a sensor can be worth ---------------------------------------------------------------


def test_with_two_classes_nothing_is_worth_more_than_half_an_error():
    assert most_worth(Loss(), 2) == 0.5
    assert most_worth(Loss(), 4) == 0.75
    assert most_worth(resolve_loss({0: 500, 1: 500}, np.array([0, 1])), 2) == 250


def test_what_a_right_answer_costs_cannot_be_saved():
    # Whoever knows the class still pays 10: only the 90 beyond may be saved.
    dear = Loss(np.array([[10.0, 100.0], [100.0, 10.0]]))
    assert most_worth(dear, 2) == pytest.approx(45.0)


@given(
    arrays(float, (3, 3), elements=st.floats(0, 100)),
    arrays(float, 3, elements=st.floats(0.01, 1)),
)
def test_at_no_probabilities_knowing_the_class_saves_more(matrix, chances):
    p = chances / chances.sum()
    loss = Loss(matrix)
    stops, knows = (p @ matrix).min(), p @ matrix.min(axis=1)
    assert stops - knows <= most_worth(loss, 3) + 1e-6


def shop(prices, terms=None):
    names = tuple("abc"[: len(prices)])
    columns = tuple((i,) for i in range(len(prices)))
    costs = np.array(prices, dtype=float)
    if terms is None:
        return SensorSet(names, columns, costs)
    return SensorSet(names, columns, costs, names, tuple(terms))


def test_a_sensor_never_pays_from_the_price_of_half_an_error_on():
    # .01 × 50 is half an error; .01 × 49 is less.
    assert never_pay(Market(shop([49, 50, 51])), Loss(), 2, 0.01) == ("b", "c")
    assert never_pay(Market(shop([49, 50, 51])), Loss(), 2, 0.0) == ()


def test_what_a_discount_makes_cheap_enough_may_pay():
    terms = [Terms(group="blood", surcharge=15), Terms(group="blood", surcharge=0)]
    market = Market(shop([60, 60], terms))
    assert never_pay(market, Loss(), 2, 0.01) == ("b",)  # a may cost 45


def test_what_needs_a_sensor_that_never_pays_does_not_pay_either():
    terms = [Terms(), Terms(after=frozenset("a")), Terms()]
    market = Market(shop([70, 1, 1], terms))
    assert never_pay(market, Loss(), 2, 0.01) == ("a", "b")


def test_prices_of_each_example_count_by_the_least():
    sensors = shop([50, 50], [Terms(varies=True), Terms()])
    market = Market(sensors, np.array([[80.0, 60.0], [20.0, 60.0]]))
    assert never_pay(market, Loss(), 2, 0.01) == ("b",)


def test_a_rare_class_does_not_make_a_sensor_worthless():
    """A bound by the risk of knowing nothing would be wrong: b pays where a is high."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(4000, 2)).astype(float)
    X[:, 0] = rng.random(4000) < 0.1
    y = (X[:, 0] * X[:, 1]).astype(int)  # 5 % are sick; a says which half of 10 %
    sensors = {"a": Sensor([0], cost=0), "b": Sensor([1], cost=10)}
    model = SensorTreeClassifier(sensors, cost_weight=0.01, structure="cascade")
    fitted = model.fit(X, y)
    assert y.mean() < 0.01 * 10
    assert fitted.structure_report_.never_pay == []
    assert fitted.acquired(X)[:, 1].tolist() == (X[:, 0] == 1).tolist()


# who is told ------------------------------------------------------------------------------


def test_euros_at_the_default_weight_are_not_passed_over_in_silence():
    X, y = patients()
    with pytest.warns(PriceWarning) as told:
        model = SensorTreeClassifier(IN_EUROS).fit(X, y)
    assert len(told) == 1
    said = str(told[0].message)
    assert said.startswith("the model buys nothing: ")
    assert "'echo' can never pay: at cost_weight=0.01 a price of 180 counts 1.8" in said
    assert "no reading saves more than 0.5" in said
    assert "loss=..." in said
    assert told[0].filename == __file__
    assert model.structure_report_.never_pay == ["echo"]
    assert "too dear to ever pay: echo" in str(model.structure_report_)


def test_with_what_a_mistake_costs_nobody_is_warned():
    X, y = patients()
    with nothing_told():
        model = SensorTreeClassifier(IN_EUROS, loss=500).fit(X, y)
    assert model.structure_report_.never_pay == []
    assert model.acquisition_cost(X).mean() > 0


def test_a_model_that_buys_nothing_of_what_says_nothing_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    with pytest.warns(
        PriceWarning, match="no sensor for sale tells more about the target than"
    ):
        SensorTreeClassifier().fit(X, y)


def test_a_cap_below_every_price_says_so():
    X, y = patients()
    model = SensorTreeClassifier(IN_EUROS, loss=500, max_cost=10)
    with pytest.warns(PriceWarning, match="all cost more than max_cost=10. Raise it"):
        model.fit(X, y)


def test_sensors_that_are_free_are_no_model_that_buys_nothing():
    X, y = patients(80)
    costs = dict.fromkeys(["x0", "x1", "x2"], 0)
    with nothing_told():
        SensorTreeClassifier(costs=costs).fit(X, y)


def test_sweeps_over_cost_weights_tell_nobody():
    X, y = patients(120)
    ways = {"structure": "chain", "classifier": "linear"}
    model = SensorTreeClassifier(IN_EUROS, **ways)
    with nothing_told():
        tradeoff_curve(model, X, y, [10.0, 0.1, 0.001])
        model.fit_path(X, y, [10.0, 0.1, 0.001])
        budgets = SensorTreeClassifierCV(
            IN_EUROS, cost_weights=[10.0, 0.1, 0.001], **ways
        )
        budgets.fit_budgets(X, y, [0, 50])


# rare classes ---------------------------------------------------------------------------


def loans(seed, odds=3.4, n=1000):
    """One in twenty is bad, which two of four readings say a little about."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    bad = rng.random(n) < 1 / (1 + np.exp(odds - X[:, 0] - 0.6 * X[:, 1]))
    return X, np.where(bad, "bad", "good")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_where_a_class_is_rare_every_line_of_the_advice_buys(seed):
    X, y = loans(seed)
    with pytest.warns(PriceWarning) as told:
        SensorTreeClassifier().fit(X, y)
    said = str(told[0].message)
    share = 100 * np.mean(y == "good")
    assert f"('good' is right for {share:.3g} % of all)" in said
    assert "lower cost_weight" not in said
    losses = re.search(r"loss=(\{.*?\})", said)[1]
    assert f"[loss], then {toml_of(losses)})" in said
    weighted = re.search(r"(class_weight='balanced'.*?);", said)[1]
    judged = re.search(r"(risk='log_loss', cost_weight=\S+) \(--risk", said)[1]
    for line in (f"loss={losses}", weighted, judged):
        given = eval(f"dict({line})")
        model = SensorTreeClassifier(**given).fit(X, y)
        assert model.acquisition_cost(X).mean() > 0, line


def toml_of(losses):
    return "; ".join(f'"{name}" = {cost:g}' for name, cost in eval(losses).items())


def test_a_wrong_answer_of_one_price_is_told_the_same():
    X, y = loans(1)
    with pytest.warns(PriceWarning, match="no sensor changes the most likely answer"):
        SensorTreeClassifier(loss=100).fit(X, y)


def test_where_a_lower_weight_helps_the_most_likely_answer_is_not_blamed():
    X, y = patients()
    with pytest.warns(PriceWarning, match="lower cost_weight"):
        SensorTreeClassifier(cost_weight=0.45).fit(X, y)


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (2, "budget=2 buys nothing: no sensor changes the most likely answer"),
        (0, None),
    ],
)
def test_a_budget_that_buys_nothing_says_so(budget, said):
    X, y = loans(1)
    model = SensorTreeClassifierCV(budget=budget, cv=3)
    if said is None:
        with nothing_told():
            model.fit(X, y)
        return
    with pytest.warns(BudgetWarning) as told:
        model.fit(X, y)
    (only,) = told
    assert said in str(only.message)
    assert "cost_weight=" not in str(only.message)  # a budget finds it
    assert "risk='log_loss' (--risk log_loss)" in str(only.message)
    assert only.filename == __file__


def test_a_budget_for_what_says_nothing_asks_for_other_sensors():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    with pytest.warns(BudgetWarning, match="budget=2 buys nothing: "):
        SensorTreeClassifierCV(budget=2, cv=3).fit(X, y)
