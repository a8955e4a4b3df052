"""Claims about how decisions are learned: judged out of fold, refined, never worse."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from sensortree import (
    AlternatingTreeClassifier,
    Leaf,
    Node,
    Program,
    QuadraticLogisticRegression,
    SensorTree,
    SensorTreeClassifier,
    exhaustive_tree,
)
from sensortree.estimators.validation import folds_of_splits
from sensortree.exceptions import DataError, FewRowsWarning
from sensortree.learning.pose import fit_decision_features
from sensortree.leaves.task import CLASSES
from sensortree.policy.decisions import PARTS, Posterior
from sensortree.program.refinement import (
    alternate,
    best_cut,
    best_direction,
    best_threshold,
    learn_upwards,
)
from sensortree.program.risk import RoutingProblem, product_form


def random_problem(seed: int, n: int = 60) -> RoutingProblem:
    rng = np.random.default_rng(seed)
    tree = exhaustive_tree(["a", "b", "c"], ["a"])
    phi = np.column_stack([rng.normal(size=(n, 2)), np.ones(n)])
    risk = rng.random((n, tree.n_leaves))
    return RoutingProblem(tree, (phi,) * tree.n_nodes, risk, rng.random(n) + 0.1, 2.0)


def random_coef(problem: RoutingProblem, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=d) for d in problem.n_features]


# the routing problem ----------------------------------------------------------------------


def test_its_risk_is_the_papers_product_form():
    problem = random_problem(0)
    coef = random_coef(problem, 1)
    paths = problem.tree.positive_paths, problem.tree.negative_paths
    per_row = product_form(problem.leaf_risk, problem.margins(coef), *paths)
    expected = np.average(per_row, weights=problem.weight)
    assert problem.risk(coef) == pytest.approx(expected, rel=1e-12)


def test_constant_decisions_lead_every_example_to_their_leaf():
    problem = random_problem(0)
    for leaf in range(problem.tree.n_leaves):
        margins = problem.margins(problem.constant_coef(leaf))
        assert set(problem.tree.route(margins)) == {leaf}
        assert problem.risk(problem.constant_coef(leaf)) == pytest.approx(
            problem.constant_risk()[leaf]
        )


# alternating minimisation -----------------------------------------------------------------


@given(seed=st.integers(0, 10**6), l2=st.sampled_from([0.0, 0.1, 10.0]))
def test_alternating_never_raises_the_risk_and_repeats_itself(seed, l2):
    problem = random_problem(seed)
    start = random_coef(problem, seed + 1)
    for improve in (best_direction, best_cut):
        end = alternate(problem, start, l2, improve)
        assert problem.risk(end) <= problem.risk(start) + 1e-12
        again = alternate(problem, start, l2, improve)
        for one, other in zip(end, again, strict=True):
            np.testing.assert_array_equal(one, other)


@given(seed=st.integers(0, 10**6))
def test_a_node_is_improved_again_only_if_its_rows_or_gains_changed(seed):
    problem = random_problem(seed)
    widths = range(3, 3 + problem.tree.n_nodes)  # which tell the nodes apart
    features = tuple(np.pad(problem.features[0], ((0, 0), (n - 3, 0))) for n in widths)
    problem = replace(problem, features=features)
    asked = {n: [] for n in widths}

    def improve(phi, gain, theta, l2):
        asked[phi.shape[1]].append((phi.tobytes(), gain.tobytes()))
        return best_direction(phi, gain, theta, l2)

    alternate(problem, random_coef(problem, seed + 1), 0.1, improve)
    for visits in asked.values():
        assert visits
        assert all(one != next_one for one, next_one in pairwise(visits))


@pytest.mark.parametrize("seed", range(5))
def test_decisions_learned_upwards_are_at_rest(seed):
    problem = random_problem(seed)
    coef = learn_upwards(problem, 0.1, best_direction)
    again = alternate(problem, coef, 0.1, best_direction)
    assert problem.risk(again) == pytest.approx(problem.risk(coef))


def test_decisions_learned_upwards_find_what_features_tell():
    # The signs of two features say which of four leaves is free of risk.
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    tree = SensorTree(
        Node(
            [], Node([], Leaf([]), Leaf(["a"])), Node([], Leaf(["b"]), Leaf(["a", "b"]))
        )
    )
    phi = np.column_stack([x, np.ones(400)])
    best = 2 * (x[:, 0] > 0) + (x[:, 1] > 0)
    risk = 1.0 - np.eye(4)[best]
    problem = RoutingProblem(tree, (phi,) * 3, risk, np.ones(400), 2.0)
    assert problem.risk(learn_upwards(problem, 1e-3, best_direction)) < 0.02


@given(seed=st.integers(0, 10**6))
def test_the_threshold_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    score = np.round(rng.normal(size=12), 1)  # some scores tie
    gain = rng.normal(size=12)
    theta = best_threshold(np.array([1.0, 0.0]), score, gain)
    phi = np.column_stack([score, np.ones(12)])
    reached = gain[phi @ theta > 0].sum()
    every = [gain[score > cut].sum() for cut in [-np.inf, *score]]
    assert reached == pytest.approx(max(every), abs=1e-12)


def test_a_node_where_one_side_is_better_for_all_becomes_constant():
    theta = best_threshold(
        np.array([1.0, 2.0]), np.array([3.0, 1.0]), np.array([1.0, 1])
    )
    np.testing.assert_array_equal(theta, [0.0, 1.0])
    theta = best_threshold(np.array([1.0, 2.0]), np.array([3.0, 1.0]), -np.ones(2))
    np.testing.assert_array_equal(theta, [0.0, -1.0])


def test_the_direction_is_the_weighted_logistic_regressions():
    rng = np.random.default_rng(0)
    phi, gain = rng.normal(size=(50, 3)), rng.normal(size=50)
    theta = best_direction(phi, gain, np.zeros(3), l2=0.5)
    pull = np.abs(gain) / (1 + np.exp(np.sign(gain) * (phi @ theta)))
    gradient = 0.5 * theta - phi.T @ (np.sign(gain) * pull)
    np.testing.assert_allclose(gradient, 0, atol=1e-4)


def test_the_cut_wins_what_the_regression_misses():
    # Going positive gains 1 above 1 and loses 1 below, but for one far example that loses
    # 3 and pulls the regression's threshold. Counting puts it back.
    x = np.repeat(np.r_[np.linspace(-2, 2, 41), 6.0], 30)  # enough rows to count
    gain = np.where(x > 1, 1.0, -1.0)
    gain[x == 6] = -3.0
    tree = exhaustive_tree(["a", "b"], ["a"])
    phi = np.column_stack([x, np.ones(len(x))])
    risk = np.column_stack([np.maximum(gain, 0), np.maximum(-gain, 0)])
    problem = RoutingProblem(tree, (phi,), risk, np.ones(len(x)), 3.0)
    plain = alternate(problem, [np.zeros(2)], 0.0, best_direction)
    cut = alternate(problem, [np.zeros(2)], 0.0, best_cut)
    assert problem.risk(cut) * 42 == pytest.approx(3.0)  # only the far one is lost
    assert problem.risk(plain) > problem.risk(cut)


# out of fold ------------------------------------------------------------------------------


def test_a_classifier_that_memorises_is_found_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)  # nothing to learn
    neighbour = KNeighborsClassifier(1)
    model = SensorTreeClassifier(classifier=neighbour, cv=None, cost_weight=0.01)
    assert model.fit(X, y).decision_report_.risk["one leaf"] == pytest.approx(0.01)
    model = SensorTreeClassifier(classifier=neighbour, cost_weight=0.01).fit(X, y)
    assert model.decision_report_.risk["one leaf"] > 0.4


def test_the_users_splitter_is_honoured_in_the_users_row_order():
    # The classifier is right on a row exactly if its fold was trained on the other half:
    # with the folds crossed, held-out rows are always wrong.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] > 0).astype(int)
    half = rng.integers(0, 2, 100)
    flipped = np.where(half == 1, 1 - y, y)
    same = {"program": Program(errors="observed"), "structure": "cascade"}
    # All rows together say nothing, so that their evidence is for the largest penalty.
    same["classifier"] = QuadraticLogisticRegression(C=1.0)
    crossed = SensorTreeClassifier(cv=PredefinedSplit(half), **same)
    crossed = crossed.fit(X, flipped).decision_report_.risk["one leaf"]
    mixed = SensorTreeClassifier(cv=KFold(2, shuffle=True, random_state=0), **same)
    mixed = mixed.fit(X, flipped).decision_report_.risk["one leaf"]
    assert crossed > 0.9 > mixed
    listed = SensorTreeClassifier(cv=list(PredefinedSplit(half).split()), **same)
    assert listed.fit(X, flipped).decision_report_.risk["one leaf"] == crossed


def test_a_splitter_must_hold_each_row_out_once():
    X, y = load_iris(return_X_y=True)
    model = SensorTreeClassifier(cv=ShuffleSplit(3, random_state=0))
    with pytest.raises(
        DataError, match=r"cv holds row \d+ out \d times; each row must"
    ):
        model.fit(X, y)
    with pytest.raises(DataError, match="cv holds row 2 out 0 times"):
        folds_of_splits([(np.array([1, 2]), np.array([0, 1]))], 3, np.arange(3))


def test_rare_classes_and_tiny_data_still_fit():
    X = np.arange(8.0)[:, None] * [1, -1]
    y = np.array(["a", "a", "a", "b", "b", "b", "b", "rare"])
    with pytest.warns(FewRowsWarning):
        model = SensorTreeClassifier().fit(X, y)
    assert model.predict(X).shape == (8,)


# smoothed errors --------------------------------------------------------------------------


def test_the_posterior_of_least_log_loss_is_trusted():
    y = np.array([0, 0, 1, 1])
    good = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]])
    dull = np.full((4, 2), 0.5)
    sure_and_wrong = np.array([[1.0, 0], [1.0, 0], [1.0, 0], [0, 1.0]])
    a, b, c = (frozenset(name) for name in "abc")
    rows = SimpleNamespace(y=y, weight=np.ones(4))
    assert CLASSES.trusted({a: dull, b: good, c: sure_and_wrong}, rows) is good
    assert CLASSES.trusted({a: dull, c: sure_and_wrong}, rows) is None


def test_smoothed_errors_need_probabilities_from_rows_held_out():
    X, y = load_iris(return_X_y=True)
    for parameters in ({"cv": None}, {"classifier": LinearSVC()}):
        smoothed = SensorTreeClassifier(**parameters).fit(X, y)
        observed = SensorTreeClassifier(
            program=Program(errors="observed"), **parameters
        ).fit(X, y)
        assert smoothed.decision_report_ == observed.decision_report_


# decision features ------------------------------------------------------------------------


def test_posterior_features_of_three_classes():
    columns = Posterior()(np.empty((1, 0)), np.array([[0.2, 0.5, 0.3]]))
    entropy = -(0.2 * np.log(0.2) + 0.5 * np.log(0.5) + 0.3 * np.log(0.3))
    np.testing.assert_allclose(columns, [[0.5, 0.3, 0.5, 0.2, entropy]])


def test_posterior_features_of_a_sure_answer_are_finite():
    columns = Posterior()(np.empty((1, 0)), np.array([[1.0, 0.0]]))
    np.testing.assert_array_equal(columns, [[0.0, 1.0, 0.0]])


def test_a_posterior_that_never_varies_says_nothing():
    prior = np.tile([0.1, 0.2, 0.7], (50, 1))
    features = fit_decision_features(
        PARTS["posterior"], np.empty((50, 0)), prior, np.empty((50, 0)), np.ones(50)
    )
    values = features(np.empty((50, 0)), prior, np.empty((50, 0)))
    np.testing.assert_allclose(values[:, :-1], 0, atol=1e-9)


def test_where_nothing_is_known_a_decision_sees_nothing(two_sensors):
    X, y, sensors, costs = two_sensors
    tree = SensorTree(Node([], Leaf([]), Leaf(["cheap", "dear"])))
    model = SensorTreeClassifier(sensors, costs=costs, structure=tree).fit(X, y)
    (decision,) = model.policy_.decisions
    assert decision.features.center.shape == (0,)  # no constants, only the intercept
    assert decision.coef.shape == (1,)


@pytest.mark.parametrize(
    "features", [*PARTS, Nystroem(random_state=0, n_components=20)]
)
def test_all_decision_features_fit_and_predict(features, two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(
        sensors,
        costs=costs,
        cost_weight=0.02,
        program=Program(decision_features=features),
    ).fit(X, y)
    assert model.score(X, y) > 0.85
    # the transformer given is left unfitted
    assert not hasattr(features, "components_")


def test_unbought_columns_are_not_looked_at_by_posteriors(two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=0.02).fit(X, y)
    hidden = X.copy()
    hidden[np.ix_(~model.acquired(X)[:, 1], [2, 3])] = np.nan
    np.testing.assert_array_equal(model.predict_proba(hidden), model.predict_proba(X))


# the switches -----------------------------------------------------------------------------


def test_as_published_turns_every_switch_off():
    program = Program.as_published(l2=3)
    model = SensorTreeClassifier.as_published(
        {"a": [0]}, cost_weight=0.5, program=program
    )
    assert model.sensors == {"a": [0]}
    assert (model.cost_weight, model.cv, model.program.l2) == (0.5, None, 3)
    assert (program.savings, program.errors) == ("published", "observed")
    assert program.decision_features == "raw"
    assert (program.refine, program.fallback) == (False, False)


def test_the_refined_risk_is_at_most_the_linear_programs(two_sensors):
    X, y, sensors, costs = two_sensors
    for cost_weight in (0.003, 0.02, 0.06):
        report = SensorTreeClassifier(
            sensors,
            costs=costs,
            cost_weight=cost_weight,
            program=Program(errors="observed"),
        ).fit(X, y)
        risk = report.decision_report_.risk
        assert risk["refined"] <= risk["linear program"] + 1e-12


def test_calibration_wraps_the_leaf_classifier():
    X, y = load_iris(return_X_y=True)
    model = SensorTreeClassifier(calibration="sigmoid").fit(X, y)
    assert all(
        type(c).__name__ == "CalibratedScorer"
        for subset, c in model.policy_.classifiers.items()
        if subset  # nothing known: the class prior
    )
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_boosted_leaves_are_one_word():
    X, y = load_iris(return_X_y=True)
    model = SensorTreeClassifier(classifier="boosted", cost_weight=0.001).fit(X, y)
    assert model.score(X, y) > 0.93


def test_automatic_ridge_is_in_the_unit_of_the_risk(two_sensors):
    # In cents instead of dollars, nothing but the unit changes.
    X, y, sensors, costs = two_sensors
    dollars = SensorTreeClassifier(sensors, costs=costs, cost_weight=0.02).fit(X, y)
    cents = {name: 100 * cost for name, cost in costs.items()}
    other = SensorTreeClassifier(sensors, costs=cents, cost_weight=0.0002).fit(X, y)
    np.testing.assert_array_equal(dollars.apply(X), other.apply(X))


# a path of cost weights -------------------------------------------------------------------


def test_a_path_is_the_same_as_fits_one_by_one(two_sensors):
    X, y, sensors, costs = two_sensors
    weights = [0.1, 0.02, 0.001]
    model = SensorTreeClassifier(sensors, costs=costs)
    for weight, fitted in zip(weights, model.fit_path(X, y, weights), strict=True):
        alone = SensorTreeClassifier(sensors, costs=costs, cost_weight=weight).fit(X, y)
        np.testing.assert_array_equal(fitted.predict_proba(X), alone.predict_proba(X))
        np.testing.assert_array_equal(fitted.apply(X), alone.apply(X))
        assert fitted.n_features_in_ == alone.n_features_in_
        assert fitted.cost_weight == weight
    assert not hasattr(model, "policy_")


class Counting(KNeighborsClassifier):
    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        return super().fit(X, y)


def test_a_path_fits_each_leaf_classifier_once():
    X, y = load_iris(return_X_y=True)
    Counting.fits = 0
    model = SensorTreeClassifier(
        classifier=Counting(), cv=3, structure="cascade", outages=False
    )
    model.fit_path(X, y, np.geomspace(0.001, 0.1, 7))
    assert Counting.fits == 4 * (3 + 1)  # subsets of the cascade, folds and all rows


# alternating minimisation as a classifier -------------------------------------------------


def test_more_random_starts_are_never_worse(two_sensors):
    X, y, sensors, costs = two_sensors
    few, many = (
        AlternatingTreeClassifier(
            sensors, costs=costs, cost_weight=0.02, n_starts=n, random_state=1
        ).fit(X, y)
        for n in (1, 5)
    )
    assert many.training_risks_.shape == (5,)
    assert many.training_risks_[0] == few.training_risks_[0]
    assert many.training_risks_.min() <= few.training_risks_.min()


def test_it_buys_the_dear_sensor_where_the_cheap_one_is_unsure(two_sensors):
    X, y, sensors, costs = two_sensors
    model = AlternatingTreeClassifier(sensors, costs=costs, cost_weight=0.02).fit(X, y)
    bought = model.acquired(X)[:, 1]
    assert bought[X[:, 1] < 0.5].mean() > 0.8
    assert bought[X[:, 1] > 1.0].mean() < 0.1


def test_no_warning_is_given_in_an_ordinary_fit():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SensorTreeClassifier().fit(X, y)


def test_decisions_leave_very_many_readings_to_the_posterior():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 202))
    y = X[:, 0] + X[:, 201] > 0
    sensors = {"wide": list(range(200)), "a": [200], "b": [201]}
    model = SensorTreeClassifier(
        sensors,
        cost_weight=0.001,
        structure="cascade",
        classifier="linear",
        program=Program(fallback=False),
    ).fit(X, y)
    widths = {
        len(node.sensors & {"wide"}): decision.coef.size
        for node, decision in zip(
            model.tree_.nodes, model.policy_.decisions, strict=True
        )
    }
    assert widths
    assert all(width < 20 for width in widths.values())


def test_an_or_of_five_is_asked_to_its_end_though_guesses_are_often_right_by_luck():
    # With hindsight most rows have their best leaf at the start: the few that come by the
    # later nodes then do not tell what these should do.
    X = (np.random.default_rng(0).random((1000, 5)) < 0.25).astype(float)
    y = X.any(axis=1)
    model = SensorTreeClassifier(
        structure="cascade",
        classifier="linear",
        cost_weight=0.04,
        program=Program(fallback=False),
    ).fit(X, y)
    risk = np.mean(model.predict(X) != y) + 0.04 * model.acquisition_cost(X).mean()
    everything = 5 * 0.04
    assert risk < 0.19 < everything
