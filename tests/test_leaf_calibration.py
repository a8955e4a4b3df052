"""Claims about leaves whose probabilities are put right for the rows that reach them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fuzz_model_file import with_digest
from models import puzzling
from scipy.optimize import minimize
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.svm import LinearSVC

from sensortree import SensorTreeClassifier, load, save
from sensortree.constants import (
    CALIBRATION_FLATTEST,
    CALIBRATION_ON_BIAS,
    CALIBRATION_ON_SLOPE,
)
from sensortree.exceptions import ModelFileError
from sensortree.learning.calibrating import (
    AS_SAID,
    ONE,
    CalibrationReport,
    Visitors,
    fit_forms,
    fit_leaf,
)
from sensortree.policy.classifiers import LeafCalibration, log_likely
from sensortree.results import MaskedPolicy

AS_IT_IS = LeafCalibration(1.0, np.zeros(2))


def visitors(likely, y, weight=None, leaf=None):
    n_rows = len(y)
    return Visitors(
        log_likely(np.asarray(likely, dtype=float)),
        np.zeros(n_rows, dtype=int) if leaf is None else np.asarray(leaf),
        np.asarray(y),
        np.zeros(n_rows, dtype=int),
        np.ones(n_rows) if weight is None else np.asarray(weight, dtype=float),
        np.ones(n_rows, dtype=bool),
        1 if leaf is None else int(max(leaf)) + 1,
    )


def fitted(found):
    """A leaf's calibration for two classes, both slope and biases free."""
    return fit_leaf(found, 1.0, AS_IT_IS, biased=True)


@pytest.fixture(scope="module")
def pair():
    """The same tree, its leaves calibrated and as classifiers say."""
    X, y = puzzling(1000, 0)
    return [
        SensorTreeClassifier(
            cost_weight=0.01,
            classifier="linear",
            risk="log_loss",
            structure="cascade",
            root_sensors=["x0"],
            calibrate_leaves=calibrate,
        ).fit(X, y)
        for calibrate in (True, False)
    ]


# one leaf ---------------------------------------------------------------------------------


def test_a_slope_of_one_without_bias_changes_nothing():
    likely = np.random.default_rng(0).dirichlet(np.ones(4), 50)
    same = LeafCalibration(1.0, np.zeros(4))(likely)
    np.testing.assert_allclose(same, likely, rtol=1e-12)


def test_what_is_said_to_be_impossible_becomes_hardly_possible():
    (row,) = AS_IT_IS(np.array([[1.0, 0.0]]))
    assert 0 < row[1] < 1e-5
    assert row.sum() == pytest.approx(1)


def test_a_leaf_whose_visitors_have_other_shares_learns_them():
    # The classifier says 1/2 of all; three of four visitors have the second class.
    y = np.arange(4000) % 4 > 0
    found = fitted(visitors(np.full((4000, 2), 0.5), y.astype(int)))
    assert found(np.array([[0.5, 0.5]]))[0, 1] == pytest.approx(0.75, abs=0.002)


def test_the_fewer_visitors_the_less_a_leaf_changes():
    said = []
    for n_rows in (0, 4, 40, 400, 4000):
        own = visitors(np.full((n_rows, 2), 0.5), np.ones(n_rows, dtype=int))
        said.append(fitted(own)(np.array([[0.5, 0.5]]))[0, 1])
    assert said[0] == 0.5
    assert said == sorted(said)
    # Of four visitors of one class, with biases -b and b: 4 log(1 + exp(-2b)) + 4 b^2 is
    # least where b = 1 - p.
    assert np.log(said[1] / (1 - said[1])) / 2 == pytest.approx(1 - said[1], abs=1e-4)


def test_slope_and_biases_minimise_the_penalised_log_loss():
    rng = np.random.default_rng(1)
    likely = rng.dirichlet(np.ones(3), 60)
    y = np.array([rng.choice(3, p=p) for p in likely])
    weight = rng.uniform(0.5, 2, 60)

    def total(theta):
        p = LeafCalibration(theta[0], theta[1:])(likely)
        lost = -weight @ np.log(p[np.arange(60), y])
        return (
            lost
            + CALIBRATION_ON_SLOPE / 2 * (theta[0] - 1.2) ** 2
            + CALIBRATION_ON_BIAS / 2 * theta[1:] @ theta[1:]
        )

    start = LeafCalibration(1.0, np.zeros(3))
    found = fit_leaf(visitors(likely, y, weight), 1.2, start, biased=True)
    theirs = minimize(total, np.r_[1.2, 0, 0, 0], method="BFGS", tol=1e-10).x
    np.testing.assert_allclose(np.r_[found.slope, found.bias], theirs, atol=1e-5)


def test_a_classifier_that_is_worse_than_nothing_is_flattened_and_not_turned_round():
    likely = np.tile([[0.9, 0.1], [0.1, 0.9]], (500, 1))
    found = fitted(visitors(likely, np.tile([1, 0], 500)))
    assert found.slope == CALIBRATION_FLATTEST


def test_a_visitor_of_weight_two_counts_as_two():
    rng = np.random.default_rng(2)
    likely, y = rng.dirichlet(np.ones(2), 30), rng.integers(0, 2, 30)
    once = visitors(likely, y, np.full(30, 2.0))
    twice = visitors(np.repeat(likely, 2, axis=0), np.repeat(y, 2))
    one, other = map(fitted, (once, twice))
    np.testing.assert_allclose(one.bias, other.bias, atol=1e-7)
    assert one.slope == pytest.approx(other.slope, abs=1e-7)


def test_one_temperature_changes_no_answer():
    rng = np.random.default_rng(3)
    likely, y = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200)
    form = fit_forms(visitors(likely, y, leaf=y % 2))[ONE]
    assert form[0] is form[1]
    assert (form[0](likely).argmax(axis=1) == likely.argmax(axis=1)).all()


# what is kept -----------------------------------------------------------------------------


def test_what_does_not_clearly_help_or_raises_the_risk_is_not_kept():
    report = CalibrationReport(
        AS_SAID,
        {AS_SAID: 0.5, "worse": 0.6, "hardly": 0.49, "wrong": 0.4, "good": 0.45},
        {AS_SAID: 0.0, "worse": 0.01, "hardly": 0.02, "wrong": 0.01, "good": 0.01},
        {AS_SAID: 0.2, "worse": 0.2, "hardly": 0.1, "wrong": 0.21, "good": 0.2},
        {},
    )
    assert report.why_not("worse") == "not lower"
    assert report.why_not("hardly") == "not clearly lower"
    assert report.why_not("wrong") == "its risk is higher"
    assert report.why_not("good") == ""
    assert "wrong 0.4000 (its risk is higher), good 0.4500" in str(report)


def test_calibrated_leaves_have_the_lower_log_loss_on_new_rows(pair):
    calibrated, plain = pair
    X, y = puzzling(4000, 1)
    before, after = (log_loss(y, m.predict_proba(X)) for m in (plain, calibrated))
    assert calibrated.calibration_report_.kept != AS_SAID
    assert after < before - 0.04
    area = [roc_auc_score(y, m.predict_proba(X)[:, 1]) for m in (plain, calibrated)]
    assert area[1] > area[0] + 0.04  # what is likelier in one leaf is so in the other


def test_the_report_tells_what_new_rows_will_lose(pair):
    calibrated, plain = pair
    X, y = puzzling(4000, 1)
    said = calibrated.calibration_report_.log_loss
    for model, kept in (
        (plain, AS_SAID),
        (calibrated, calibrated.calibration_report_.kept),
    ):
        assert log_loss(y, model.predict_proba(X)) == pytest.approx(
            said[kept], abs=0.03
        )


def test_the_held_out_score_is_that_of_the_answers_that_are_given(pair):
    calibrated, plain = pair
    before, after = plain.about_.held_out, calibrated.about_.held_out
    report = calibrated.calibration_report_
    fewer = report.wrong[AS_SAID] - report.wrong[report.kept]
    assert fewer > 0.03  # there is something to tell
    assert before.error - after.error == pytest.approx(fewer)
    assert before.risk - after.risk == pytest.approx(before.loss - after.loss)
    assert after.cost == before.cost


def test_ways_and_costs_stay_as_they_are(pair):
    calibrated, plain = pair
    X, _ = puzzling(500, 2)
    assert (calibrated.apply(X) == plain.apply(X)).all()
    assert (calibrated.acquisition_cost(X) == plain.acquisition_cost(X)).all()
    assert (calibrated.predict_proba(X) != plain.predict_proba(X)).all()


def test_the_flow_counts_the_answers_that_are_given(pair):
    calibrated, plain = pair
    right, before = (m.policy_.flow.answers.right.sum() for m in (calibrated, plain))
    X, y = puzzling(4000, 1)
    share, share_before = (np.mean(m.predict(X) == y) for m in (calibrated, plain))
    assert share > share_before + 0.05
    assert right > before + 30


def test_where_nothing_is_held_out_nothing_is_calibrated():
    X, y = puzzling(200, 0)
    for parameters in ({"cv": None}, {"calibrate_leaves": False}):
        model = SensorTreeClassifier(**parameters).fit(X, y)
        assert model.calibration_report_ is None
        assert model.policy_.calibration is None
    assert SensorTreeClassifier.as_published().calibrate_leaves is False


def test_classifiers_without_probabilities_are_left_alone():
    X, y = puzzling(200, 0)
    model = SensorTreeClassifier(classifier=LinearSVC(), structure="cascade").fit(X, y)
    assert model.calibration_report_ is None


# the same everywhere ----------------------------------------------------------------------


def test_sessions_explanations_and_masked_rows_say_the_same(pair):
    model = pair[0]
    X, _ = puzzling(40, 3)
    proba = model.predict_proba(X)
    full = np.ones((len(X), 3), dtype=bool)
    assert (MaskedPolicy(model.policy_).predict(X, full) == proba).all()
    names = model.sensors_.names
    for row, likely in zip(X, proba, strict=True):
        decision = model.policy_.acquire(lambda s, _, row=row: [row[names.index(s)]])
        assert (decision.proba == likely).all()
        said = model.explain(row[None]).probabilities
        assert list(said.values()) == likely.tolist()


def test_a_leaf_that_shares_its_classifier_with_a_node_does_not_change_decisions(pair):
    # Leaf 0 stops with what node 0 knows: one classifier, asked for both.
    model = pair[0]
    tree = model.tree_
    assert tree.leaves[0].sensors == tree.nodes[0].sensors
    X, _ = puzzling(20, 4)
    for row in X:
        session = model.policy_.session({"x0": [row[0]]})
        node = session.step.why.proba
        own = pair[1].policy_.session({"x0": [row[0]]}).step.why.proba
        assert (node == own).all()


def test_calibrations_are_saved_and_loaded_to_the_last_bit(pair, tmp_path):
    model = pair[0]
    X, _ = puzzling(100, 5)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert again.policy_.digest == model.policy_.digest != pair[1].policy_.digest
    assert again.calibration_report_["kept"] == model.calibration_report_.kept


def test_a_file_with_a_slope_of_zero_is_refused(pair, tmp_path):
    save(pair[0], tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    document["calibration"][0]["slope"] = 0
    (tmp_path / "odd.json").write_bytes(with_digest(document))
    with pytest.raises(ModelFileError, match=r"calibration\[0\].slope must be above 0"):
        load(tmp_path / "odd.json")
