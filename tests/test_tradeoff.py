"""Claims about trade-off curves: held-out, shared, readable, drawable."""

from __future__ import annotations

import json

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

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
    StaticSubsetClassifier,
    acquisition_cost_scorer,
    cost_adjusted_scorer,
    tradeoff_curve,
)
from sensortree.curves.curve import from_the_ends, widest_step
from sensortree.curves.held_out import HeldOutFolds
from sensortree.curves.shared_leaves import PairedEngine
from sensortree.display import TradeoffDisplay
from sensortree.exceptions import DataError, ParameterError
from sensortree.learning.prepare import Winners
from sensortree.progress import TextProgress
from sensortree.results import TradeoffCurve

POINTS = [(1.0, 0.4), (2.0, 0.3), (3.0, 0.1), (4.0, 0.2), (2.5, 0.35)]
WEIGHTS = [1.0, 0.02, 0.0005]


@pytest.fixture
def problem(two_sensors):
    X, y, sensors, costs = two_sensors
    return SensorTreeClassifier(sensors, costs=costs), X[:200], y[:200]


def splits(n_rows: int, n_folds: int):
    return list(KFold(n_folds).split(np.zeros(n_rows)))


# reading a curve --------------------------------------------------------------------------


def test_the_hull_leaves_out_what_mixing_two_policies_beats():
    # (2, .3) lies above the line from (1, .4) to (3, .1); (4, .2) is dearer and worse.
    assert TradeoffCurve.from_points(POINTS).hull() == [(1.0, 0.4), (3.0, 0.1)]


def test_cost_and_error_are_read_off_the_hull():
    curve = TradeoffCurve.from_points(POINTS)
    assert curve.cost_at_error(0.25) == pytest.approx(2.0)
    assert curve.error_at_cost(2.0) == pytest.approx(0.25)
    assert curve.cost_at_error(0.9) == 1.0
    assert np.isnan(curve.cost_at_error(0.05))
    assert np.isnan(curve.error_at_cost(0.5))


def test_without_mixing_only_points_that_were_measured_count():
    curve = TradeoffCurve.from_points(POINTS)
    assert curve.cost_at_error(0.25, mix=False) == 3.0
    assert curve.error_at_cost(2.9, mix=False) == 0.3
    assert np.isnan(curve.cost_at_error(0.05, mix=False))


def test_the_budget_share_counts_what_comes_after_the_first_sensor():
    curve = TradeoffCurve.from_points(POINTS)
    assert curve.budget_share(0.25, first=1.0, everything=5.0) == pytest.approx(0.25)
    with pytest.raises(ParameterError, match="what first costs; give first="):
        curve.budget_share(0.25)


def test_means_count_folds_by_their_weight_and_points_are_ordered():
    curve = TradeoffCurve.from_folds(
        [0.1, 0.9], [[0.1, 0.3], [0.5, 0.5]], [[4, 8], [0, 0]], [3, 1]
    )
    assert curve.cost_weight.tolist() == [0.9, 0.1]
    np.testing.assert_allclose(curve.error, [0.5, 0.15])
    np.testing.assert_allclose(curve.mean_cost, [0, 5])
    # The standard deviation of 4 and 8 is 2 √2, and there are two folds.
    assert curve.cost_se[1] == pytest.approx(2.0)


def test_a_curve_is_plain_data_and_text():
    curve = TradeoffCurve.from_points([(1, 0.4), (2, 0.3)])
    form = json.loads(json.dumps(curve.to_dict()))
    assert form["points"][1]["mean_cost"] == 2.0
    assert form["points"][1]["cost_weight"] is None
    assert curve.to_frame()["error"].tolist() == [0.4, 0.3]
    assert str(curve).splitlines()[0].split() == [
        "cost",
        "weight",
        "mean",
        "cost",
        "error",
    ]


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="a row for each weight"):
        TradeoffCurve.from_folds([0.1], [[0.1], [0.2]], [[1], [2]])
    with pytest.raises(DataError, match="pair of mean cost and error"):
        TradeoffCurve.from_points([])


# measuring one ----------------------------------------------------------------------------


@pytest.mark.parametrize("classifier", ["auto", GaussianNB()], ids=["auto", "bayes"])
def test_a_point_is_nearly_what_separate_fits_give_on_rows_they_have_not_seen(
    two_sensors, classifier
):
    # Columns are standardised together, and decisions come only near the program's
    # optimum: two answers of the 100 in a fold may differ.
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs, classifier=classifier)
    folds = splits(len(y), 4)
    curve = tradeoff_curve(model, X, y, [0.02], cv=folds)
    owner = np.empty(len(y), int)
    for number, (_, test) in enumerate(folds):
        owner[test] = number
    for number, (train, test) in enumerate(folds):
        alone = clone(model).set_params(
            cost_weight=0.02, cv=PredefinedSplit(owner[train])
        )
        alone.fit(X[train], y[train])
        error = np.mean(alone.predict(X[test]) != y[test])
        cost = alone.acquisition_cost(X[test]).mean()
        assert curve.fold_error[0, number] == pytest.approx(error, abs=0.02)
        assert curve.fold_cost[0, number] == pytest.approx(cost, rel=0.1)


def test_metrics_are_of_the_held_out_rows_of_all_folds_together(problem):
    model, X, y = problem
    model = clone(model).set_params(risk="log_loss", classifier=GaussianNB())
    folds = splits(len(y), 2)  # too few to share classifiers: fits like any other
    curve = tradeoff_curve(model, X, y, [0.02], cv=folds)
    likely = np.empty((len(y), 2))
    for train, test in folds:
        alone = clone(model).set_params(cost_weight=0.02, program=Program(tol=1e-2))
        likely[test] = alone.fit(X[train], y[train]).predict_proba(X[test])
    answers = np.array(["no", "yes"])[likely.argmax(axis=1)]
    yes = y == "yes"
    theirs = {
        "accuracy": np.mean(answers == y),
        "auroc": roc_auc_score(yes, likely[:, 1]),
        "brier": brier_score_loss(yes, likely[:, 1]),
        "log_loss": log_loss(yes, np.clip(likely[:, 1], 1e-4, 1 - 1e-4)),
    }
    # decisions of a curve come only near the program's optimum
    for name, value in theirs.items():
        assert curve.metrics[name][0] == pytest.approx(value, abs=0.02), name
    assert curve.metrics["log_loss"][0] == pytest.approx(curve.error[0])


def test_a_metric_stands_beside_the_error_in_the_order_of_the_points():
    curve = TradeoffCurve.from_folds(
        [0.1, 0.9],
        [[0.1], [0.5]],
        [[4], [0]],
        nothing=(0.0, 0.5),
        metrics={"auroc": [0.9, 0.6]},
        end_metrics={"nothing": {"auroc": 0.5}},
    )
    assert curve.metric("auroc").tolist() == [0.6, 0.9]
    assert curve.to_frame()["auroc"].tolist() == [0.6, 0.9]
    text = curve.to_text("auroc")
    assert text.splitlines()[0].endswith("auroc")
    assert text.endswith("error 0.5000, auroc 0.5000")
    assert "auroc" not in str(curve)
    with pytest.raises(
        ParameterError, match="no metric 'f1'; those that it has: 'auroc'"
    ):
        curve.to_text("f1")
    with pytest.raises(ParameterError, match="those that it has: none"):
        TradeoffCurve.from_points(POINTS).plot(metric="auroc")
    display = TradeoffDisplay.from_curve(curve, metric="auroc")
    assert display.curves["sensor tree"][1].tolist() == [0.6, 0.9]
    assert (display.measure, display.ends) == ("AUROC", {"buy nothing": (0.0, 0.5)})


def test_leaves_without_probabilities_have_a_curve_and_a_score(problem):
    model, X, y = problem
    model = clone(model).set_params(classifier=LinearSVC(), structure="cascade")
    curve = tradeoff_curve(model, X, y, [0.02], cv=2)
    assert curve.metrics["accuracy"][0] == pytest.approx(1 - curve.error[0])
    fitted = model.set_params(cost_weight=0.02).fit(X, y)
    wrong = np.mean(fitted.predict(X) != y)
    assert cost_adjusted_scorer(0.0)(fitted, X, y) == pytest.approx(-wrong)


def test_held_out_labels_do_not_change_what_is_bought(problem):
    model, X, y = problem
    folds = splits(len(y), 4)
    lied = y.copy()
    lied[folds[0][1]] = np.where(y[folds[0][1]] == "yes", "no", "yes")
    honest, other = (tradeoff_curve(model, X, t, [0.02], cv=folds) for t in (y, lied))
    assert honest.fold_cost[0, 0] == other.fold_cost[0, 0]
    assert other.fold_error[0, 0] == pytest.approx(1 - honest.fold_error[0, 0])


def test_the_automatic_grid_goes_from_nothing_to_everything(problem):
    model, X, y = problem
    curve = tradeoff_curve(model, X, y, cv=4)
    assert 5 < len(curve) <= 20
    assert curve.mean_cost[0] == curve.nothing[0] == 0.0
    assert curve.everything[0] == 10.0
    assert curve.mean_cost[-1] > 3
    assert curve.error[-1] < 0.5 * curve.nothing[1]
    assert (np.diff(curve.cost_weight) < 0).all()


def test_a_weight_of_two_is_a_row_twice(problem):
    model, X, y = problem
    weight = np.where(np.arange(len(y)) % 3, 1, 2)
    model.set_params(classifier="logistic2")  # trees take weights otherwise than copies
    row = np.arange(len(y))
    weighted = tradeoff_curve(model, X, y, WEIGHTS, 4, sample_weight=weight, groups=row)
    repeated = tradeoff_curve(
        model,
        np.repeat(X, weight, axis=0),
        np.repeat(y, weight),
        WEIGHTS,
        4,
        groups=np.repeat(row, weight),
    )
    np.testing.assert_allclose(weighted.error, repeated.error)
    np.testing.assert_allclose(weighted.mean_cost, repeated.mean_cost)


def test_leaf_classifiers_are_fitted_once_for_all_folds_and_weights(problem):
    model, X, y = problem

    class Counting(LogisticRegression):
        fits = 0

        def fit(self, *arguments, **keywords):
            Counting.fits += 1
            return super().fit(*arguments, **keywords)

    model.set_params(classifier=Counting(), structure="cascade")
    tradeoff_curve(model, X, y, WEIGHTS, cv=5)
    # Two subsets; 10 pairs of folds and 5 single folds are left out in turn.
    assert Counting.fits == 2 * 15


def test_logistic_leaves_are_judged_once_for_all_folds_and_weights(
    problem, monkeypatch
):
    model, X, y = problem
    widths = []
    judge = PairedEngine.judge_without_each

    def counting(engine, columns):
        widths.append(columns.shape[1])
        return judge(engine, columns)

    monkeypatch.setattr(PairedEngine, "judge_without_each", counting)
    model.set_params(structure="cascade", classifier="logistic2")
    tradeoff_curve(model, X, y, WEIGHTS, cv=5)
    assert sorted(widths) == [0, 2, 4]  # nothing, cheap, and both


def test_both_ends_are_measured_first_and_then_what_halves_the_gaps():
    assert from_the_ends([1, 2, 3, 4, 5, 6, 7]) == [7, 1, 4, 6, 3, 5, 2]
    assert from_the_ends([2, 1, 2]) == [2, 1]
    assert from_the_ends([0.5]) == [0.5]


def test_between_cost_weights_only_what_won_there_is_compared():
    winners = Winners({1.0: "chain", 0.01: "branched"})
    assert winners.expected(0.1) == {"chain", "branched"}
    assert winners.expected(2.0) == winners.expected(0.001) == set()
    winners.add(0.2, "cascade")
    # Within a factor of ten, what won at the closer, by their ratios.
    assert winners.expected(0.5) == {"chain"}
    assert winners.expected(0.4) == {"cascade"}
    winners.settled = True
    winners.add(0.1, "branched")
    assert winners.expected(0.1) == {"cascade", "branched"}


@pytest.mark.parametrize(("n_rows", "shares"), [(100, True), (40, False)])
def test_a_search_on_most_rows_asks_the_classifiers_of_all(
    problem, monkeypatch, n_rows, shares
):
    model, X, y = problem
    monkeypatch.setattr("sensortree.structure.search.SEARCH_ROWS", n_rows)
    model.set_params(classifier=LogisticRegression())
    folds = HeldOutFolds(model, X, y, 5, None, None, TextProgress(False))
    prepared = folds._folds[0][1]
    subset = frozenset({"cheap"})
    searched = prepared.search.subsets.leaves
    searched.judge([subset])
    assert bool(folds._shared.fitted) == shares
    prepared.leaves.judge([subset])
    judged = prepared.leaves.posteriors[subset][prepared.search.rows]
    same = np.array_equal(searched.posteriors[subset], judged)
    assert same == shares


def test_a_step_at_the_end_of_a_level_stretch_is_not_looked_into():
    # Nothing is bought down to a weight of .8; between .8 and .64 everything changes.
    weight = [4.0, 0.8, 0.64, 0.16]
    cost, error = [[0.0], [0.0], [1.0], [1.2]], [[0.9], [0.9], [0.3], [0.2]]
    assert widest_step(TradeoffCurve.from_folds(weight, error, cost)) == 2
    cost[0], error[0] = [-0.2], [1.0]  # not level: as wide a step is looked into
    assert widest_step(TradeoffCurve.from_folds(weight, error, cost)) == 1


def test_a_step_that_saves_no_error_for_sure_is_not_looked_into():
    weight, cost = [4.0, 1.0, 0.25], [[0.0, 0.0], [1.0, 1.0], [3.0, 3.0]]
    error = [[0.4, 0.4], [0.3, 0.3], [0.2, 0.39]]  # -.10 and .09: noise
    assert widest_step(TradeoffCurve.from_folds(weight, error, cost)) == 0
    error[2] = [0.2, 0.22]
    assert widest_step(TradeoffCurve.from_folds(weight, error, cost)) == 1


def test_transformers_and_prices_are_fitted_without_the_held_out_rows(problem):
    model, X, y = problem
    frame = pd.DataFrame(X, columns=list("abcd"))
    sensors = {
        "cheap": Sensor(["a", "b"], cost=1.0, transformer=StandardScaler()),
        "dear": Sensor(["c", "d"], cost=9.0),
    }
    scaled = SensorTreeClassifier(sensors)
    folds = HeldOutFolds(scaled, frame, y, 4, None, None, TextProgress(False))
    read = [prepared.leaves.data.reader for _, prepared in folds._folds]
    readers = [reader.transformers["cheap"] for reader in read]
    assert len({reader.transform(X[:1, :2])[0, 0] for reader in readers}) == 4
    assert tradeoff_curve(scaled, frame, y, WEIGHTS, 4).fold_error.shape == (3, 4)
    prices = np.column_stack([np.ones(len(y)), np.linspace(5, 13, len(y))])
    priced = tradeoff_curve(model, X, y, WEIGHTS, 3, prices=prices)
    assert priced.mean_cost[0] == 0.0 < priced.mean_cost[-1]


def test_other_estimators_and_losses_have_curves_too(problem):
    model, X, y = problem
    alternating = AlternatingTreeClassifier(
        model.sensors, costs=model.costs, n_starts=1
    )
    assert tradeoff_curve(alternating, X, y, WEIGHTS, 4).mean_cost[-1] > 0
    model.set_params(loss={"no": 10.0, "yes": 50.0}, max_cost=5.0)
    curve = tradeoff_curve(model, X, y, [100.0, 1.0], 4)
    assert curve.measure == "loss"
    assert curve.everything[0] == 10.0  # whatever max_cost: decisions must beat it
    assert curve.error.max() > 1


def test_what_is_no_curve_is_refused(problem):
    model, X, y = problem
    with pytest.raises(ParameterError, match="got LogisticRegression"):
        tradeoff_curve(LogisticRegression(), X, y)
    with pytest.raises(ParameterError, match="cost_weights is empty"):
        tradeoff_curve(model, X, y, [])
    with pytest.raises(ParameterError, match="cost_weight"):
        tradeoff_curve(model, X, y, [-1.0])


def test_the_estimator_is_left_as_it_is(problem):
    model, X, y = problem
    before = repr(model.get_params())
    tradeoff_curve(model, X, y, [0.1], 3, n_jobs=1)
    assert repr(model.get_params()) == before
    assert not hasattr(model, "policy_")


# scorers ----------------------------------------------------------------------------------


def test_grid_search_picks_by_risk(problem):
    model, X, y = problem
    found = {}
    for worth in (1.0, 0.001):
        search = GridSearchCV(
            model,
            {"cost_weight": [1.0, 0.001]},
            cv=3,
            scoring={
                "risk": cost_adjusted_scorer(worth),
                "cost": acquisition_cost_scorer,
            },
            refit="risk",
        ).fit(X, y)
        found[worth] = search.best_params_["cost_weight"]
        assert (search.cv_results_["mean_test_cost"] <= 0).all()
    assert found == {1.0: 1.0, 0.001: 0.001}


def test_the_adjusted_score_is_the_negative_risk(problem):
    model, X, y = problem
    model.fit(X, y)
    cost = model.acquisition_cost(X).mean()
    risk = np.mean(model.predict(X) != y) + 0.01 * cost
    assert cost_adjusted_scorer(0.01)(model, X, y) == pytest.approx(-risk)
    assert acquisition_cost_scorer(model, X) == pytest.approx(-cost)
    model.set_params(loss={"no": 10.0, "yes": 50.0}, cost_weight=1.0).fit(X, y)
    report = model.report(X, y)
    assert cost_adjusted_scorer(1.0)(model, X, y) == pytest.approx(-report.total)
    with pytest.raises(ParameterError, match="at least 0, got -1"):
        cost_adjusted_scorer(-1)


# pictures ---------------------------------------------------------------------------------


def test_a_curve_is_drawn_with_bars_its_choice_and_both_ends():
    mpl.use("Agg")
    curve = TradeoffCurve.from_folds(
        [0.1, 0.9],
        [[0.1, 0.3], [0.5, 0.5]],
        [[4, 8], [0, 0]],
        nothing=(0.0, 0.5),
        everything=(9.0, 0.1),
    )
    rival = TradeoffCurve.from_points([(3, 0.4), (5, 0.3)])
    display = TradeoffDisplay.from_curve(
        {"ours": curve, "theirs": rival},
        chosen={"ours": curve.choose(budget=7)},
        unit="dollars",
    ).plot()
    assert list(display.curves_) == ["ours", "theirs"]
    np.testing.assert_allclose(display.curves["ours"][1], [0.5, 0.8])
    assert display.curves_["ours"].has_xerr
    assert display.chosen_["ours"].get_xdata().tolist() == [6.0]
    heights = {name: line.get_ydata()[0] for name, line in display.ends_.items()}
    assert heights == {"buy nothing": 0.5, "buy everything": 0.9}
    assert len(display.ax_.get_legend().get_texts()) == 5
    plt.close("all")
    with pytest.raises(DataError, match="chosen names point 1 of 'nobody'"):
        TradeoffDisplay.from_curve(rival, chosen={"nobody": rival.choose()})


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (AlternatingTreeClassifier, WEIGHTS),
        (CascadeClassifier, WEIGHTS),
        (StaticSubsetClassifier, WEIGHTS),
        (CSTCClassifier, WEIGHTS),
        (MyopicClassifier, [0.0, 0.5, 1.0]),
        (ASTCClassifier, [1, 2, 10]),
    ],
)
def test_every_method_has_a_curve(problem, kind, values):
    model, X, y = problem
    method = kind(model.sensors, costs=model.costs)
    curve = tradeoff_curve(method, X, y, values, cv=4)
    assert curve.fold_error.shape == (3, 4)
    assert curve.mean_cost[0] <= curve.mean_cost[-1]


def test_a_method_without_cost_weights_needs_its_own_values(problem):
    model, X, y = problem
    with pytest.raises(
        ParameterError, match="is traced by 'reject', of which there are"
    ):
        tradeoff_curve(MyopicClassifier(model.sensors, costs=model.costs), X, y)


# progress ---------------------------------------------------------------------------------


class Listener:
    """Keeps what it hears; says stop after some points."""

    def __init__(self, stop_after=None):
        self.stop_after, self.at_most, self.steps = stop_after, None, []

    def setup(self, estimator, context):
        self.at_most = context.max_subtasks

    def teardown(self, estimator, context):
        self.steps.append("torn down")

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.steps.append(context.task_name)
        return len(self.steps) == self.stop_after


def test_a_verbose_curve_tells_each_point_and_what_is_left(problem, capsys):
    model, X, y = problem
    tradeoff_curve(model.set_params(verbose=True), X, y, [0.1, 0.02, 0.001], cv=4)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 5  # and buying nothing, and everything
    assert all("a point: mean cost" in line for line in told[:3])
    assert "buying nothing: mean cost 0," in told[3]
    assert "buying everything: mean cost 10," in told[4]
    assert "(step 1 of at most 5)" in told[0]
    assert "left" not in told[-1]


def test_callbacks_hear_of_each_point_and_can_end_the_automatic_grid(problem):
    model, X, y = problem
    listener = Listener()
    whole = tradeoff_curve(model.set_callbacks(listener), X, y, cv=4)
    ends = ["buying nothing", "buying everything"]
    points = ["a point"] * len(whole)
    assert listener.steps == [*points, *ends, "fit", "torn down"]
    assert len(listener.steps) - 2 <= listener.at_most
    hasty = Listener(stop_after=8)
    assert len(tradeoff_curve(model.set_callbacks(hasty), X, y, cv=4)) == 8


def test_callbacks_hear_of_the_points_that_a_budget_is_picked_from(problem):
    model, X, y = problem
    listener = Listener()
    picked = SensorTreeClassifierCV(
        model.sensors, costs=model.costs, cost_weights=[0.1, 0.001], budget=2.0, cv=4
    )
    picked.set_callbacks(listener).fit(X, y)
    told = [*["a point"] * 2, "buying nothing", "buying everything"]
    assert listener.steps == [*told, "fit on all rows", "fit", "torn down"]
