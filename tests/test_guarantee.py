"""A promise about those who are answered: proved on rows set aside, kept on new ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import sensortree
from sensortree import SensorTreeClassifier, StaticSubsetClassifier, guarantee_error
from sensortree.exceptions import DataError, ParameterError
from sensortree.reports.guarantee import doubts_for, fallback, prove, weights


def calibrated(rng, n):
    """Answers whose probabilities are true, and which of them are wrong."""
    sure = rng.uniform(0.5, 1.0, n)
    return sure, rng.random(n) > sure


def unsure(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + 0.7 * rng.normal(size=n) > 0


@pytest.fixture(scope="module")
def model():
    X, y = unsure(300)
    return SensorTreeClassifier(classifier="linear", cost_weight=0.001).fit(X, y)


# the proof --------------------------------------------------------------------------------


def test_weights_add_up_to_what_may_go_wrong():
    for error in (0.001, 0.05, 0.9):
        own = weights(doubts_for(error), error, 0.1)
        assert own.sum() == pytest.approx(0.1)
        assert (own >= 0).all()


def test_a_rejected_hypothesis_hands_its_level_on():
    own = np.array([0.01, 0.01, 0.0, 0.01])
    assert fallback(np.array([0.01, 0.02, 0.02, 0.03]), own).all()
    # The first is not rejected: its level is lost, and the second has its own alone.
    assert not fallback(np.array([0.02, 0.02, 0.02, 0.02]), own).any()


def test_true_hypotheses_are_seldom_rejected_in_whatever_order_they_come():
    """A false promise among true ones: by the worst p-values there are, at most δ."""
    rng = np.random.default_rng(0)
    doubts = doubts_for(0.05)
    own, false = weights(doubts, 0.05, 0.1), np.arange(len(doubts)) % 7 != 3
    missed = 0
    for _ in range(4000):
        p = np.where(false, 0.0, rng.random(len(doubts)))
        missed += bool(fallback(p, own)[~false].any())
    assert missed / 4000 <= 0.1 + 3 * np.sqrt(0.09 / 4000)


@pytest.mark.parametrize(("error", "n_rows"), [(0.02, 15_000), (0.1, 500), (0.2, 200)])
def test_promises_are_broken_as_seldom_as_they_say(error, n_rows):
    """The error of who is answered is known: half the distance of the threshold from 1."""
    rng = np.random.default_rng(1)
    broken = proved = 0
    for _ in range(500):
        try:
            _, least = prove(*calibrated(rng, n_rows), error, 0.9)
        except DataError:
            continue
        proved += 1
        broken += (1 - max(least, 0.5)) / 2 > error
    assert proved > 100
    assert broken / 500 <= 0.1 + 3 * np.sqrt(0.09 / 500)


def test_p_values_and_sequence_are_those_of_mapie():
    mapie = pytest.importorskip("mapie.risk_control", reason="MAPIE is absent")
    methods = pytest.importorskip(
        "mapie.risk_control.methods", reason="MAPIE is absent"
    )
    sure, wrong = calibrated(np.random.default_rng(2), 500)
    thresholds = np.linspace(0.9, 0.6, 8)
    answered = np.array([(sure >= t).sum() for t in thresholds])
    mistakes = np.array([wrong[sure >= t].sum() for t in thresholds])
    theirs = methods.compute_hoeffding_bentkus_p_value(
        mistakes / answered - 1e-12, answered.astype(float), 0.2, binary=True
    )
    ours = binom.cdf(mistakes, answered, 0.2)
    np.testing.assert_allclose(theirs[:, 0], ours, atol=1e-9)
    controller = mapie.BinaryClassificationController(
        lambda X: np.c_[1 - X[:, 0], X[:, 0]],
        "precision",
        0.8,
        confidence_level=0.9,
        list_predict_params=thresholds,
        fwer_method="fixed_sequence",
    )
    controller.calibrate(sure[:, None], (~wrong).astype(int))
    one_start = fallback(ours, np.r_[0.1, np.zeros(7)])
    assert 0 < one_start.sum() < 8
    assert set(controller.valid_predict_params) == set(thresholds[one_start])


def test_more_rows_hand_over_fewer():
    rng = np.random.default_rng(3)
    few, many = (prove(*calibrated(rng, n), 0.1, 0.9)[1] for n in (500, 20_000))
    assert few > many > 0.8  # those above .8 err in .1: no threshold below is right


def test_who_never_errs_is_always_answered():
    promise, least = prove(np.full(200, 0.6), np.zeros(200, dtype=bool), 0.05, 0.9)
    assert least == 0.0
    assert (promise.answered, promise.wrong) == (200, 0)


# models -----------------------------------------------------------------------------------


def test_a_model_that_promises_keeps_it_and_buys_the_same(model):
    X, y = unsure(4000, seed=1)
    sure = guarantee_error(model, X[:2000], y[:2000], error=0.05)
    new, truth = X[2000:], y[2000:]
    referred, wrong = sure.referred(new), sure.predict(new) != truth
    assert wrong.mean() > 0.1
    assert 0 < referred.mean() < 1
    assert wrong[~referred].mean() <= 0.05
    assert not model.referred(new).any()  # the model itself is left alone
    assert (sure.acquired(new) == model.acquired(new)).all()
    assert (sure.predict(new) == model.predict(new)).all()
    report = sure.report(new, truth)
    assert report.referral.cost is None
    assert report.loss == report.error  # nobody said what a person costs
    assert "promised: an error of at most 0.05" in str(report)


def test_promises_are_kept_in_files(model, tmp_path):
    X, y = unsure(2000, seed=1)
    sure = guarantee_error(model, X, y, error=0.08)
    sensortree.save(sure, tmp_path / "model.json")
    loaded = sensortree.load(tmp_path / "model.json")
    assert (loaded.referred(X) == sure.referred(X)).all()
    assert loaded.policy_.referral.promise == sure.policy_.referral.promise
    again = guarantee_error(loaded, X, y, error=0.08)
    assert again.policy_.digest == sure.policy_.digest


def test_sessions_hand_over_what_is_promised_too(model):
    X, y = unsure(2000, seed=1)
    sure = guarantee_error(model, X, y, error=0.05)
    wanted = sure.referred(X[:30])
    assert 0 < wanted.sum() < 30
    for row, referred in zip(X[:30], wanted, strict=True):
        values = {"x0": [row[0]], "x1": [row[1]]}
        decision = sure.policy_.acquire(lambda name, _, told=values: told[name])
        assert decision.referred == referred


def test_who_the_tree_hands_over_does_not_count_as_answered():
    X, y = unsure(600)
    model = SensorTreeClassifier(
        classifier="linear", cost_weight=0.001, refer_cost=0.15
    ).fit(X, y)
    X, y = unsure(2000, seed=1)
    before = model.referred(X)
    sure = guarantee_error(model, X, y, error=0.04)
    promise = sure.policy_.referral.promise
    assert promise.answered == (~sure.referred(X)).sum() < (~before).sum()
    assert sure.referred(X)[before].all()


def test_any_model_may_promise():
    X, y = unsure(300)
    static = StaticSubsetClassifier().fit(X, y)
    X, y = unsure(2000, seed=1)
    assert guarantee_error(static, X, y, error=0.05).referred(X).any()


def test_what_rows_do_not_prove_is_refused_with_the_figures(model):
    X, y = unsure(60, seed=1)
    with pytest.raises(DataError, match=r"on these 60 rows; nearest was \d+ wrong of"):
        guarantee_error(model, X, y, error=0.01)
    noise = np.random.default_rng(0).random(2000) < 0.5
    X, _ = unsure(2000)
    with pytest.raises(DataError, match="set more rows aside, or allow more error"):
        guarantee_error(model, X, noise, error=0.05)


@pytest.mark.parametrize("name", ["error", "confidence"])
def test_shares_that_are_none_are_refused(model, name):
    X, y = unsure(60)
    with pytest.raises(ParameterError, match=f"{name} must lie between 0 and 1"):
        guarantee_error(model, X, y, **{"error": 0.1, name: 1.0})
