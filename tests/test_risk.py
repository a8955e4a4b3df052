"""What leaves lose: wrong answers, how far probabilities are off, or a user's function."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

import sensortree
from sensortree import (
    AlternatingTreeClassifier,
    CascadeClassifier,
    MyopicClassifier,
    SensorTreeClassifier,
    StaticSubsetClassifier,
    cost_adjusted_scorer,
    tradeoff_curve,
)
from sensortree.exceptions import ParameterError
from sensortree.sensors.loss import LEAST_LIKELY, SCORES, Loss, loss_of_risk, own_score

METHODS = [
    SensorTreeClassifier,
    AlternatingTreeClassifier,
    CascadeClassifier,
    MyopicClassifier,
    StaticSubsetClassifier,
]


def distance(y, predicted):
    """A user's own risk: how far the probability of class 1 is off."""
    return np.abs(predicted[:, 1] - y)


@pytest.fixture(scope="module")
def rare():
    """A rare class that a first reading makes likelier, but never likely."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = (rng.random(900) < 0.12 / (0.24 + np.exp(-1.5 * X[:, 0] - X[:, 1]))).astype(int)
    return X, y


def likely(n_rows=60, n_classes=3):
    rng = np.random.default_rng(1)
    return rng.dirichlet(np.ones(n_classes), n_rows), rng.integers(0, n_classes, n_rows)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_brier_risk_is_scikit_learns_halved_for_many_classes(n_classes):
    predicted, y = likely(n_classes=n_classes)
    theirs = brier_score_loss(y, predicted, scale_by_half=True, labels=range(n_classes))
    assert SCORES["brier"].judge(y, predicted).mean() == pytest.approx(theirs)


def test_the_log_loss_risk_is_scikit_learns_within_its_bound():
    predicted, y = likely()
    assert SCORES["log_loss"].judge(y, predicted).mean() == pytest.approx(
        log_loss(y, predicted)
    )
    sure_and_wrong = SCORES["log_loss"].judge(np.array([0]), np.array([[0.0, 1.0]]))
    assert sure_and_wrong == pytest.approx(-np.log(LEAST_LIKELY))
    assert SCORES["log_loss"].largest == pytest.approx(sure_and_wrong[0])


@pytest.mark.parametrize("name", SCORES)
def test_the_truth_is_expected_to_lose_least(name):
    belief, _ = likely()
    other, _ = np.roll(belief, 1, axis=0), None
    score = SCORES[name]
    assert (score.expect(belief, belief) <= score.expect(belief, other) + 1e-12).all()


def test_expected_losses_are_means_over_what_may_be_true():
    belief, _ = likely()
    loss = loss_of_risk("brier", np.array([1.0, 2.0, 5.0]), np.arange(3))
    each = [loss.judge(np.full(60, c), belief) * belief[:, c] for c in range(3)]
    np.testing.assert_allclose(loss.expect(belief, belief), sum(each))


def test_class_weights_are_a_loss_for_mistaking_each_class():
    classes = np.array(["a", "b"])
    loss = loss_of_risk("error", np.array([1.0, 9.0]), classes)
    np.testing.assert_array_equal(loss.matrix, [[0, 1], [9, 0]])
    assert loss.answer(np.array([[0.8, 0.2]])) == [1]
    brier = loss_of_risk("brier", np.array([1.0, 9.0]), classes)
    assert brier.answer(np.array([[0.8, 0.2]])) == [1]


def test_judging_by_answers_is_what_it_was():
    predicted, y = likely()
    for loss in (Loss(), Loss(np.array([[0, 1, 2], [3, 0, 1], [1, 1, 0.0]]))):
        answer = loss.answer(predicted)
        np.testing.assert_array_equal(loss.judge(y, predicted), loss.of(y, answer))
        np.testing.assert_array_equal(
            loss.expect(predicted, predicted),
            loss.expected(predicted, answer[:, None])[:, 0],
        )


def test_where_no_reading_changes_an_answer_probabilities_still_pay(rare):
    X, y = rare
    errors = SensorTreeClassifier(cost_weight=0.01).fit(X, y)
    surprise = SensorTreeClassifier(cost_weight=0.01, risk="log_loss").fit(X, y)
    spent = [m.acquisition_cost(X).mean() for m in (errors, surprise)]
    assert spent[0] < 0.2 * spent[1]
    assert surprise.certificate_.converged


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("risk", ["brier", "log_loss", distance])
def test_every_tree_method_minimises_the_risk_it_is_asked_for(method, risk, rare):
    X, y = rare
    asked = {"risk": risk, "cost_weight": 0.001, "cv": 3, "classifier": "linear"}
    known = method().get_params(deep=False)
    model = method(**{name: asked[name] for name in asked if name in known})
    model.fit(X[:400], y[:400])
    report = model.report(X[400:], y[400:])
    judge = model.policy_.loss.score.judge
    assert report.loss == pytest.approx(
        judge(y[400:], model.predict_proba(X[400:])).mean()
    )
    assert report.has_loss
    weight = model.policy_.cost_weight
    assert report.total == pytest.approx(report.loss + weight * report.cost)


def test_a_risk_named_error_is_the_default(rare):
    X, y = rare
    plain, named = SensorTreeClassifier(), SensorTreeClassifier(risk="error")
    assert plain.fit(X, y).policy_.digest == named.fit(X, y).policy_.digest


def test_curves_and_scorers_measure_the_risk(rare):
    X, y = rare
    model = SensorTreeClassifier(risk="log_loss", classifier="linear")
    curve = tradeoff_curve(model, X, y, cost_weights=[0.5, 0.002], cv=3)
    assert curve.measure == "log_loss"
    assert curve.error[1] < curve.error[0] < -np.log(0.5)
    fitted = model.set_params(cost_weight=0.002).fit(X, y)
    score = cost_adjusted_scorer(0.1)(fitted, X, y)
    lost = log_loss(y, fitted.predict_proba(X))
    assert score == pytest.approx(-(lost + 0.1 * fitted.acquisition_cost(X).mean()))


def test_a_saved_model_keeps_its_risk(rare, tmp_path):
    X, y = rare
    model = SensorTreeClassifier(risk="brier", class_weight="balanced").fit(X, y)
    sensortree.save(model, tmp_path / "model.json")
    loaded = sensortree.load(tmp_path / "model.json")
    assert loaded.policy_.digest == model.policy_.digest
    assert loaded.report(X, y).loss == model.report(X, y).loss
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_file_keeps_the_name_of_a_function_and_says_that_its_loss_is_unknown(
    rare, tmp_path
):
    X, y = rare
    model = SensorTreeClassifier(risk=distance, classifier="linear").fit(X, y)
    sensortree.save(model, tmp_path / "model.json")
    loaded = sensortree.load(tmp_path / "model.json")
    assert loaded.policy_.loss.name == "distance"
    report = loaded.report(X, y)
    assert np.isnan(report.loss)
    assert report.error == model.report(X, y).error
    assert pickle.loads(pickle.dumps(model)).report(X, y).loss < 1


def test_balanced_classes_count_the_same_as_a_whole(rare):
    X, y = rare
    model = SensorTreeClassifier(class_weight="balanced", cost_weight=0.001).fit(X, y)
    matrix = model.policy_.loss.matrix
    share = y.mean()
    assert matrix[1, 0] * share == pytest.approx(matrix[0, 1] * (1 - share))
    assert matrix[1, 0] * share + matrix[0, 1] * (1 - share) == pytest.approx(1.0)
    plain = SensorTreeClassifier(cost_weight=0.001).fit(X, y)
    found = [(m.predict(X)[y == 1] == 1).mean() for m in (plain, model)]
    assert found[1] > found[0] + 0.2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"risk": "brie"}, "'brier'"),
        ({"risk": "brier", "loss": 5}, "loss says what wrong answers"),
        ({"risk": "brier", "loss": {0: 1, 1: 2}}, "loss says what wrong answers cost"),
        ({"class_weight": {0: 1}, "loss": {0: 1, 1: 2}}, "loss and class_weight"),
        ({"class_weight": {7: 1}}, "class_weight names class 7"),
        (
            {"class_weight": {0: -1}},
            "class_weight of 0 must be a finite number above 0",
        ),
        ({"class_weight": "even"}, "'balanced'"),
        ({"risk": lambda y, p: p[:, 1] - 0.5}, "gave -0.5 for class"),
        (
            {"risk": lambda y, p: -np.log(p[:, 1])},
            "bound it, as log-loss is by clipping",
        ),
        ({"risk": lambda y, p: p}, "it must give one number for each"),
        ({"risk": lambda y, p: np.zeros(len(y))}, "is 0 for every certain answer"),
    ],
    ids=range(11),
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_wrong_risks_are_refused_with_what_to_do(wrong, said, rare):
    X, y = rare
    with pytest.raises(ParameterError) as refused:
        SensorTreeClassifier(**wrong).fit(X, y)
    assert said in str(refused.value)


def test_a_function_sees_the_users_own_classes():
    seen = []
    classes = np.array(["no", "yes"])
    own_score(lambda y, p: seen.extend(y) or np.ones(len(y)), classes)
    assert set(seen) == {"no", "yes"}
