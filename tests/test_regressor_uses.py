"""What is done with a fitted regressor: saved, asked step by step, explained, drawn."""

import json

import numpy as np
import pytest
from fuzz_model_file import with_digest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import sensortree
from sensortree import (
    Program,
    Sensor,
    SensorTreeRegressor,
    SensorTreeRegressorCV,
    SensorUseDisplay,
    TreeDisplay,
    cost_adjusted_scorer,
    tradeoff_curve,
)
from sensortree.exceptions import ModelFileError, ParameterError
from sensortree.page.questions import check_runnable
from sensortree.sensors.table import Table

X, Y = load_diabetes(return_X_y=True)
MODELS = {
    "linear": SensorTreeRegressor(regressor="linear"),
    "quantile": SensorTreeRegressor(
        regressor="quadratic",
        risk="pinball",
        quantile=0.8,
        program=Program(decision_features="quadratic"),
        structure="chain",
    ),
    "boosted": SensorTreeRegressor(regressor="boosted", structure="branched"),
    "bought by few": SensorTreeRegressor(regressor="linear", cost_weight=20.0),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param].fit(X, Y)


WIDE = {"few": slice(0, 2), "many": slice(2, 14), "more": slice(14, 24)}
KINDS = {
    "linear": {"regressor": "linear"},
    "quadratic": {"regressor": "quadratic"},
    "boosted": {"regressor": "boosted"},
    "quantile": {"regressor": "linear", "risk": "pinball", "quantile": 0.8},
    "squares": {
        "regressor": "linear",
        "program": Program(decision_features="quadratic"),
    },
    "of another library": {"regressor": DecisionTreeRegressor(max_depth=4)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_alone_among_others_and_step_by_step_has_the_same_bits(kind):
    # What is at once is read as it lies in memory, and sums of eight numbers and more
    # depend on their order.
    rng = np.random.default_rng(0)
    A, rows = rng.normal(size=(400, 24)), rng.normal(size=(200, 24))
    off = rng.normal(size=400) * (1 + np.abs(A[:, 3]))
    number = A[:, 0] + A[:, 4] ** 2 + (np.abs(A[:, 0]) < 0.7) * A[:, 15] + 0.3 * off
    model = SensorTreeRegressor(
        WIDE, cost_weight=0.02, structure="chain", **KINDS[kind]
    )
    policy = model.fit(A, number).policy_
    alone = np.array([policy.outputs(Table(row[None, :]))[0] for row in rows])
    steps = [policy.acquire(lambda s, _, row=row: row[WIDE[s]]) for row in rows]
    assert np.array_equal([step.proba for step in steps], alone)
    for n_rows in (1, 2, 3, 5, 63, 64, 65, 200):
        for order in "CF":
            some = np.array(rows[:n_rows], order=order)
            assert np.array_equal(model.predict(some), alone[:n_rows, 0])
            assert np.array_equal(model.predict_spread(some), alone[:n_rows, 1])
    for place, decision in zip(model.tree_.nodes, policy.decisions, strict=True):
        known = np.hstack([rows[:, WIDE[s]] for s in WIDE if s in place.sensors])
        said = policy.classifiers[place.sensors].says(known)
        for other in (np.asfortranarray(known), known[::-1][::-1]):
            assert np.array_equal(policy.classifiers[place.sensors].says(other), said)
            score = decision(other, np.asfortranarray(said), np.empty((200, 0)))
            assert np.array_equal(score, decision(known, said, np.empty((200, 0))))


def saved(model, folder):
    sensortree.save(model, folder / "model.json")
    return sensortree.load(folder / "model.json")


# files ------------------------------------------------------------------------------------


def test_a_loaded_model_answers_as_the_fitted_one(model, tmp_path):
    loaded = saved(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_spread(X), model.predict_spread(X))
    np.testing.assert_array_equal(loaded.apply(X), model.apply(X))
    assert loaded.policy_.digest == model.policy_.digest
    assert repr(loaded).startswith("SavedModel(numbers, 10 sensors")


def test_a_function_of_the_users_is_kept_by_its_name(tmp_path):
    def cubic(y, answers):
        return np.abs(y - answers) ** 3

    model = SensorTreeRegressor(risk=cubic, regressor="linear").fit(X, Y)
    assert saved(model, tmp_path).policy_.loss.name == "cubic"


def test_a_regressor_of_others_wants_skops(tmp_path):
    model = SensorTreeRegressor(regressor=Ridge(), structure="chain").fit(X, Y)
    with pytest.raises(ModelFileError, match="foreign='skops'"):
        sensortree.save(model, tmp_path / "model.json")
    sensortree.save(model, tmp_path / "model.json", foreign="skops")
    loaded = sensortree.load(tmp_path / "model.json", trusted=[])
    np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["problem"].update(task="ranking"), "'regression'"),
        (lambda d: d["problem"]["numbers"].update(quantile=2.0), "between 0 and 1"),
        (lambda d: d["problem"]["numbers"].update(low=1e9), "above"),
        (lambda d: d["flow"].pop("numbers"), "numbers"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(change, message, tmp_path):
    model = SensorTreeRegressor(regressor="linear", structure="chain").fit(X, Y)
    sensortree.save(model, tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    change(document)
    (tmp_path / "model.json").write_bytes(with_digest(document))
    with pytest.raises(ModelFileError, match=message):
        sensortree.load(tmp_path / "model.json")


def test_a_page_of_numbers_is_refused_by_name(tmp_path):
    model = SensorTreeRegressor(regressor="linear").fit(X, Y)
    sensortree.save(model, tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    for key in ("format", "format_version", "digest"):
        document.pop(key)
    with pytest.raises(ModelFileError, match="answers with numbers"):
        check_runnable(document)


def test_a_service_of_numbers_is_refused_by_name(tmp_path):
    pytest.importorskip("fastapi", reason="the service needs the extra serve")
    from sensortree.service.models import open_models

    model = SensorTreeRegressor(regressor="linear").fit(X, Y)
    sensortree.save(model, tmp_path / "model.json")
    with pytest.raises(ParameterError, match="answers with numbers"):
        open_models([str(tmp_path / "model.json")])


# sessions and explanations ----------------------------------------------------------------


def test_a_session_ends_with_the_answer_of_its_row(model):
    for row in range(20):
        session = model.policy_.session()
        while (step := session.ask()) is not None:
            assert step.spread > 0
            session.tell(step.sensor, [X[row, int(step.sensor[1:])]])
        decision = session.decision()
        assert decision.label == decision.prediction == model.predict(X[[row]])[0]
        assert decision.spread == model.predict_spread(X[[row]])[0]
        assert decision.to_dict()["prediction"] == decision.prediction
        assert "proba" not in decision.to_dict()


def test_classes_have_no_prediction_and_say_so():
    model = sensortree.SensorTreeClassifier().fit(X[:100, :2], Y[:100] > 140)
    with pytest.raises(AttributeError, match="classes"):
        _ = model.policy_.step({}).spread


def test_an_explanation_says_the_number_and_how_far_off_it_may_be(model):
    explanation = model.explain(X[3])
    answer, spread = model.predict(X[[3]])[0], model.predict_spread(X[[3]])[0]
    assert str(explanation).startswith(f"{answer:.4g} ± {spread:.2g}; spent")
    assert explanation.to_dict()["spread"] == spread
    assert f"{answer:.4g}" in explanation.to_html()
    assert "probability" not in str(explanation)


def test_a_step_says_by_how_much_a_purchase_moves_the_answer():
    X, y = np.random.default_rng(0).normal(size=(2, 400)), None
    X = X.T
    y = X[:, 0] + 3 * (X[:, 0] > 0) * X[:, 1]
    sensors = {"cheap": Sensor([0], cost=0), "dear": Sensor([1], cost=1)}
    model = SensorTreeRegressor(sensors, cost_weight=0.5).fit(X, y)
    step = model.policy_.step({"cheap": [1.5]})
    assert step.sensor == "dear"
    assert "dear moves the answer by" in step.why.text
    stop = model.policy_.step({"cheap": [-1.5]})
    assert stop.action == "stop"
    assert "dear would move the answer by" in stop.why.text


# reports, curves, pictures ----------------------------------------------------------------


def test_a_report_measures_numbers(model):
    report = model.report(X, Y)
    answers = model.predict(X)
    assert report.error == pytest.approx(np.abs(answers - Y).mean())
    assert report.fit.r2 == pytest.approx(r2_score(Y, answers))
    assert report.fit.rmse == pytest.approx(np.sqrt(np.mean((answers - Y) ** 2)))
    assert report.classes == report.confusion == ()
    assert report.to_frame("classes").empty
    assert report.to_frame("confusion").empty
    assert "R²" in str(report)
    assert "auroc" not in str(report)
    assert report.to_dict()["fit"]["r2"] == report.fit.r2
    names = [use.name for use in report.baselines]
    assert names == ["everything", "best fixed set", "nothing"]


def test_a_picture_has_the_mean_of_each_leaf(model):
    leaf, display = model.apply(X), TreeDisplay.from_estimator(model, X, Y)
    means = [Y[leaf == k].mean() for k in np.unique(leaf)]
    np.testing.assert_allclose(display.leaf_numbers[np.unique(leaf), 0], means)
    training = TreeDisplay.from_estimator(model)
    assert "mean ± sd" in training.to_text()
    assert "<svg" in training.to_svg()


def test_what_shows_classes_is_refused_by_name():
    model = SensorTreeRegressor(regressor="linear").fit(X, Y)
    with pytest.raises(ParameterError, match="report_page"):
        model.report_page(X, Y)
    with pytest.raises(ParameterError, match="answers with numbers"):
        SensorUseDisplay.from_estimator(model, X, Y)


def test_a_curve_falls_where_more_is_bought():
    model = SensorTreeRegressor(regressor="linear", structure="chain")
    curve = tradeoff_curve(model, X, Y, cost_weights=[1e5, 300, 30])
    assert curve.measure == "squared"
    assert (np.diff(curve.mean_cost) > 0).all()
    assert (np.diff(curve.error) < 0).all()
    assert curve.error[0] == pytest.approx(Y.var(), rel=0.02)


def test_a_budget_is_kept():
    model = SensorTreeRegressorCV(
        budget=2.5, regressor="linear", structure="chain", cost_weights=[500, 150, 50]
    ).fit(X, Y)
    assert model.chosen_.met
    assert model.acquisition_cost(X).mean() <= 2.5
    assert model.certificate_.converged


@parametrize_with_checks(
    [SensorTreeRegressorCV(cost_weights=[1.0, 0.1], cv=3, structure="cascade")]
)
def test_scikit_learns_checks_pass_without_exception(estimator, check):
    check(estimator)


def test_a_grid_search_counts_what_is_spent():
    search = GridSearchCV(
        SensorTreeRegressor(regressor="linear", structure="chain"),
        {"cost_weight": [30.0, 1e6]},
        cv=2,
        scoring=cost_adjusted_scorer(100.0),
    )
    assert search.fit(X, Y).best_params_ == {"cost_weight": 30.0}
