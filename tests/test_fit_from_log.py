"""Trees learned from logs, in which another rule decided what was bought."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss
from typer.testing import CliRunner

from sensortree import (
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    MyopicClassifier,
    Program,
    QuadraticLogisticRegression,
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    SensorTreeRegressor,
    StaticSubsetClassifier,
    evaluate_from_log,
    load,
    tradeoff_curve,
)
from sensortree.cli.app import app
from sensortree.exceptions import DataError, ParameterError, TreeError
from sensortree.leaves.logistic import Fewer, LinearLogisticRegression
from sensortree.leaves.rows import Observations
from sensortree.policy.classifiers import LogisticScorer
from sensortree.tree.tree import Leaf, Node, SensorTree

SENSORS = {"pulse": [0], "blood": [1], "x-ray": [2]}
COSTS = {"pulse": 1, "blood": 2, "x-ray": 3}
COST_WEIGHT = 0.01


class Trap:
    """What must not be looked at."""

    def _caught(self, *_: object) -> None:
        raise AssertionError("a cell was read that was not bought")

    __float__ = __int__ = __str__ = __eq__ = __ne__ = __lt__ = __bool__ = _caught
    __hash__ = __index__ = _caught


def rows_of_three(n_rows: int, seed: int = 0):
    """Three readings, of which each tells something; the first says who is unclear."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    y = (X @ [1.0, 1.0, 0.7] + 0.5 * rng.normal(size=n_rows) > 0).astype(int)
    return X, y


def bought_in_order(X, seed: int = 1):
    """Pulse for all; blood where the pulse is high; the x-ray where blood is low."""
    rng = np.random.default_rng(seed)
    second = rng.random(len(X)) < 1 / (1 + np.exp(-X[:, 0]))
    third = second & (rng.random(len(X)) < 1 / (1 + np.exp(X[:, 1])))
    return np.stack([np.ones(len(X), int), 2 * second, 3 * third], axis=1)


def tree(**parameters):
    given = {"costs": COSTS, "cost_weight": COST_WEIGHT, "classifier": "linear"}
    return SensorTreeClassifier(SENSORS, **{**given, **parameters})


def hidden(X, acquired):
    return np.where(acquired > 0, X, np.nan)


def fingerprint(model):
    return model.policy_.digest


def test_a_log_in_which_everything_was_bought_gives_the_fit_of_today():
    X, y = rows_of_three(300)
    acquired = np.tile([1, 2, 3], (300, 1))
    assert fingerprint(tree().fit(X, y, acquired=acquired)) == fingerprint(
        tree().fit(X, y)
    )


@pytest.mark.parametrize("label_influenced_buying", [False, True])
def test_what_was_not_bought_is_never_read(label_influenced_buying):
    X, y = rows_of_three(300)
    acquired = bought_in_order(X)
    said = {
        "acquired": acquired,
        "label_influenced_buying": label_influenced_buying,
    }
    clean = tree().fit(hidden(X, acquired), y, **said)
    wild = tree().fit(np.where(acquired > 0, X, 1e300), y, **said)
    trapped = X.astype(object)
    trapped[acquired == 0] = Trap()
    caught = tree().fit(trapped, y, **said)
    assert fingerprint(clean) == fingerprint(wild) == fingerprint(caught)


def test_what_was_not_bought_is_never_read_in_a_frame():
    X, y = rows_of_three(300)
    acquired = bought_in_order(X)
    frame = pd.DataFrame({"pulse": X[:, 0], "blood": X[:, 1], "x-ray": X[:, 2]})
    text = frame.astype(object)
    text.loc[acquired[:, 2] == 0, "x-ray"] = "not done"
    model = SensorTreeClassifier(costs=COSTS, cost_weight=COST_WEIGHT)
    clean = model.fit(frame, y, acquired=acquired).predict_proba(frame[:50])
    garbled = model.fit(text, y, acquired=acquired).predict_proba(frame[:50])
    assert (clean == garbled).all()


def test_leaves_learn_from_every_row_that_bought_their_sensors():
    X, y = rows_of_three(400)
    acquired = bought_in_order(X)
    given = SensorTree(
        Node(
            frozenset({"pulse"}),
            Leaf(frozenset({"pulse"})),
            Node(
                frozenset({"pulse", "blood"}),
                Leaf(frozenset({"pulse", "blood"})),
                Leaf(frozenset(SENSORS)),
            ),
        )
    )
    given_penalty = LinearLogisticRegression(C=1.0)
    parameters = {"classifier": given_penalty, "calibrate_leaves": False}
    model = tree(structure=given, program=Program(fallback=False), **parameters)
    model.fit(hidden(X, acquired), y, acquired=acquired)
    both = acquired[:, 1] > 0
    alone = tree(structure=given, program=Program(fallback=False), **parameters)
    alone.fit(X[both], y[both])
    subset = frozenset({"pulse", "blood"})
    new = rows_of_three(20, seed=5)[0][:, :2]
    assert np.allclose(
        model.policy_.classifiers[subset].predict_proba(new),
        alone.policy_.classifiers[subset].predict_proba(new),
        atol=1e-3,
    )


def test_a_tree_from_the_log_beats_complete_rows_and_filling_in_means():
    X, y = rows_of_three(1500)
    X_new, y_new = rows_of_three(20_000, seed=2)
    rng = np.random.default_rng(3)
    # Who looks ill has more bought, so that few of the healthy are complete.
    goes_on = rng.random((1500, 2)) < 1 / (1 + np.exp(2.0 - 1.5 * X[:, :2]))
    second = goes_on[:, 0]
    third = second & goes_on[:, 1]
    acquired = np.stack([np.ones(1500, int), 2 * second, 3 * third], axis=1)

    def risk(model):
        cost = model.acquisition_cost(X_new).mean()
        return (model.predict(X_new) != y_new).mean() + COST_WEIGHT * cost

    seen = hidden(X, acquired)
    filled = np.where(np.isnan(seen), np.nanmean(seen, axis=0), seen)
    from_log = risk(tree().fit(seen, y, acquired=acquired))
    assert from_log < risk(tree().fit(X[third], y[third]))
    assert from_log < risk(tree().fit(filled, y))


def test_the_order_of_rows_does_not_matter():
    X, y = rows_of_three(300)
    acquired = bought_in_order(X)
    order = np.random.default_rng(4).permutation(300)
    one = tree().fit(hidden(X, acquired), y, acquired=acquired)
    other = tree().fit(hidden(X, acquired)[order], y[order], acquired=acquired[order])
    assert fingerprint(one) == fingerprint(other)


def test_what_hardly_any_row_bought_is_out_of_reach_and_reported():
    X, y = rows_of_three(300)
    acquired = bought_in_order(X)
    acquired[5:, 2] = 0
    model = tree().fit(hidden(X, acquired), y, acquired=acquired)
    assert "x-ray" not in model.tree_.sensors
    assert model.structure_report_.out_of_reach == [["x-ray"]]
    assert "x-ray" in str(model.structure_report_)
    json.dumps(model.structure_report_.to_dict())


def test_sensors_never_bought_together_are_not_bought_together():
    X, y = rows_of_three(600)
    blood = np.arange(600) % 2 == 0
    acquired = np.stack([np.ones(600, int), 2 * blood, 2 * ~blood], axis=1)
    model = tree().fit(hidden(X, acquired), y, acquired=acquired)
    assert model.structure_report_.out_of_reach == [["blood", "x-ray"]]
    assert all({"blood", "x-ray"} - leaf.sensors for leaf in model.tree_.leaves)


def test_a_given_tree_that_the_log_does_not_reach_is_refused():
    X, y = rows_of_three(300)
    acquired = bought_in_order(X)
    acquired[5:, 2] = 0
    given = SensorTree(Leaf(frozenset(SENSORS)))
    with pytest.raises(TreeError, match="'x-ray', which the log holds of too few rows"):
        tree(structure=given).fit(hidden(X, acquired), y, acquired=acquired)


def test_contradictions_are_named_with_row_and_sensor():
    X, y = rows_of_three(300)
    acquired = bought_in_order(X)
    seen = hidden(X, acquired)
    row = int(np.flatnonzero(acquired[:, 1])[0])
    lost = seen.copy()
    lost[row, 1] = np.nan
    with pytest.raises(DataError, match=f"'blood' was bought in row {row}"):
        tree().fit(lost, y, acquired=acquired)
    row = int(np.flatnonzero(acquired[:, 1] == 0)[0])
    with pytest.raises(DataError, match=rf"row {row} holds {X[row, 1]} of .*'blood'"):
        tree().fit(X, y, acquired=acquired, unbought="refuse")
    with pytest.raises(DataError, match="y has no label in row 3"):
        tree().fit(seen, np.where(np.arange(300) == 3, np.nan, y), acquired=acquired)
    with pytest.raises(DataError, match="not in what order"):
        tree().fit(seen, y, acquired=acquired > 0)
    nobody = np.where([True, True, False], acquired, 0)
    with pytest.raises(DataError, match="'x-ray' was bought for no row"):
        tree().fit(seen, y, acquired=nobody)
    with pytest.raises(ParameterError, match="there is none; give acquired"):
        tree().fit(X, y, label_influenced_buying=True)


def test_a_mask_in_one_order_says_the_same_as_positions():
    X, y = rows_of_three(300)
    acquired = bought_in_order(X)
    seen = hidden(X, acquired)
    order = ["pulse", "blood", "x-ray"]
    one = tree().fit(seen, y, acquired=acquired)
    other = tree().fit(seen, y, acquired=acquired > 0, order=order)
    assert fingerprint(one) == fingerprint(other)


def test_a_label_that_was_known_is_put_right_if_it_is_said():
    X, y = rows_of_three(2000)
    rng = np.random.default_rng(6)
    second = rng.random(2000) < np.where(y == 1, 0.9, 0.1)
    acquired = np.stack([np.ones(2000, int), 2 * second, 3 * second], axis=1)
    seen = hidden(X, acquired)
    whole = frozenset(SENSORS)
    said, unsaid = (
        tree(
            structure=SensorTree(Leaf(whole)),
            program=Program(fallback=False),
            calibrate_leaves=False,
        )
        .fit(seen, y, acquired=acquired, label_influenced_buying=influenced)
        .predict_proba(X)[:, 1]
        .mean()
        for influenced in (True, False)
    )
    assert abs(said - y.mean()) < 0.03 < 0.1 < unsaid - y.mean()


@pytest.mark.parametrize(
    "method",
    [
        AlternatingTreeClassifier,
        ASTCClassifier,
        CascadeClassifier,
        CSTCClassifier,
        MyopicClassifier,
        StaticSubsetClassifier,
    ],
)
def test_every_method_learns_from_logs_and_reads_only_what_was_bought(method):
    X, y = rows_of_three(300)
    acquired = bought_in_order(X)
    trapped = X.astype(object)
    trapped[acquired == 0] = Trap()
    model = method(SENSORS, costs=COSTS).fit(trapped, y, acquired=acquired)
    assert (model.predict(X) == y).mean() > 0.7


def test_held_out_rows_of_a_curve_are_looked_at_as_in_a_fit():
    X, y = rows_of_three(600)
    acquired = bought_in_order(X)
    trapped = X.astype(object)
    trapped[acquired == 0] = Trap()
    weights = [1.0, 0.02, 0.001]
    model = tree(structure="cascade")
    curve = tradeoff_curve(model, trapped, y, weights, acquired=acquired)
    truth = tradeoff_curve(model, X, y, weights)
    assert np.allclose(curve.mean_cost, truth.mean_cost, atol=0.6)
    assert np.allclose(curve.error, truth.error, atol=0.06)


def test_a_budget_is_kept_by_a_tree_from_a_log():
    X, y = rows_of_three(600)
    acquired = bought_in_order(X)
    model = SensorTreeClassifierCV(
        SENSORS,
        costs=COSTS,
        classifier="linear",
        structure="cascade",
        budget=3,
        cost_weights=[1, 0.1, 0.06, 0.03],
    )
    model.fit(hidden(X, acquired), y, acquired=acquired)
    assert 0 < model.acquisition_cost(rows_of_three(2000, seed=9)[0]).mean() < 3.5


def test_numbers_are_learned_from_logs_too():
    X, _ = rows_of_three(500)
    y = X @ [1.0, 1.0, 0.7]
    acquired = bought_in_order(X)
    model = SensorTreeRegressor(
        SENSORS, costs=COSTS, cost_weight=0.01, regressor="linear"
    )
    model.fit(hidden(X, acquired), y, acquired=acquired)
    assert model.score(X, y) > 0.8


def test_the_command_line_fits_from_a_log(tmp_path):
    X, y = rows_of_three(300)
    acquired = bought_in_order(X)
    cells = np.where(acquired > 0, X.astype(str), "not done")
    frame = pd.DataFrame(cells, columns=list(SENSORS))
    frame.insert(0, "stay", np.arange(300))
    frame["ill"] = np.where(y == 1, "yes", "no")
    frame.loc[7, "ill"] = ""  # nobody knows
    frame.to_csv(tmp_path / "patients.csv", index=False)
    rows, sensors = np.nonzero(acquired)
    orders = {
        "stay": rows,
        "sensor": np.array(list(SENSORS))[sensors],
        "time": acquired[rows, sensors],
    }
    pd.DataFrame(orders).to_csv(tmp_path / "orders.csv", index=False)
    declared = [
        f'[sensors.{name}]\ncolumns = ["{name}"]\ncost = {COSTS[name]}\n'
        for name in SENSORS
    ]
    (tmp_path / "sensors.toml").write_text('target = "ill"\n' + "".join(declared))
    answer = CliRunner().invoke(
        app,
        [
            *("fit", str(tmp_path / "patients.csv")),
            *("--sensors", str(tmp_path / "sensors.toml")),
            *("--log", str(tmp_path / "orders.csv"), "--id", "stay"),
            *("--output", str(tmp_path / "model.json"), "--cost-weight", "0.01"),
        ],
    )
    assert answer.exit_code == 0, answer.output
    model = load(tmp_path / "model.json")
    new, truth = rows_of_three(500, seed=3)
    assert (model.predict(new) == np.where(truth == 1, "yes", "no")).mean() > 0.75


def test_a_policy_whose_last_sensor_is_hardly_ever_bought_is_refused():
    X, y = rows_of_three(600)
    acquired = bought_in_order(X)
    acquired[:, 2] = np.where(np.arange(600) % 50 == 0, acquired[:, 2], 0)
    whole = SensorTree(Leaf(frozenset(SENSORS)))
    model = tree(structure=whole).fit(X[:300], y[:300])
    seen = hidden(X, acquired)[300:]
    found = evaluate_from_log(model, seen, y[300:], acquired=acquired[300:])
    assert "of its 300 rows" in found.refused


def test_readings_do_not_decide_where_a_log_is_ended():
    # One in fifty has the x-ray, which the policy wants wherever blood is unclear.
    X, y = rows_of_three(4000)
    rng = np.random.default_rng(8)
    blood = rng.random(4000) < 0.6
    scan = blood & (rng.random(4000) < 0.02)
    acquired = np.stack([np.ones(4000, int), 2 * blood, 3 * scan], axis=1)
    model = tree(cost_weight=0.001).fit(X[:500], y[:500])
    truth = model.acquisition_cost(X[500:]).mean()
    seen = hidden(X, acquired)[500:]
    found = evaluate_from_log(model, seen, y[500:], acquired=acquired[500:])
    assert found.refused or found.cost.low < truth < found.cost.high


def test_rows_with_the_same_stand_in_are_one_observation_together():
    # Rows 0 and 1 are looked at through row 7, row 2 through itself.
    seen = Observations.of_rows(np.array([7, 7, 2]), np.ones(3))
    assert seen.each(np.array([1.0, 2.0, 6.0])).tolist() == [
        3 + 3 * 2 / 3,
        3 - 3 * 2 / 3,
    ]


def test_how_often_a_row_stands_in_for_others_is_no_spread():
    seen = Observations.of_rows(np.array([7, 7, 2]), np.ones(3))
    assert seen.each(np.full(3, 5.0)).tolist() == [5.0, 5.0]


# leaves that are pulled towards fewer sensors ---------------------------------------------


def test_a_classifier_of_fewer_columns_is_one_of_more():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)) * [1, 5, 0.2, 2] + [0, 3, -1, 7]
    for columns in ([1, 3], [3, 0]):  # in their order, and not
        chosen = np.array(columns)
        center, scale = rng.normal(size=2), rng.uniform(0.5, 2, size=2)
        scorer = LogisticScorer(
            center, scale, 2, rng.normal(size=(5, 3)), rng.normal(size=3)
        )
        of_more = X.mean(axis=0), X.std(axis=0)
        coef = Fewer(chosen, {0: scorer}).in_terms_of(*of_more)[0]
        more = LogisticScorer(*of_more, 2, coef[:, :-1].T, coef[:, -1])
        np.testing.assert_allclose(more.scores(X), scorer.scores(X[:, chosen]))


def quadratic_log(n_rows=400, seed=0):
    """What six readings of the pulse say is hard to learn; few rows bought blood too."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 7))
    score = X[:, :6] @ np.linspace(0.5, 1.5, 6) + X[:, 6] + rng.normal(size=n_rows)
    acquired = np.stack([np.ones(n_rows), 2 * (rng.random(n_rows) < 0.2)], axis=1)
    return X, (score > 0).astype(int), acquired.astype(int)


def leaf_of_all(kind, X, y, acquired):
    """The classifier of all sensors that is learned from a log."""
    whole = frozenset({"pulse", "blood"})
    shown = X.copy()
    shown[acquired[:, 1] == 0, 6] = np.nan
    model = SensorTreeClassifier(
        {"pulse": list(range(6)), "blood": [6]},
        classifier=kind,
        structure=SensorTree(Leaf(whole)),
        program=Program(fallback=False),
        calibrate_leaves=False,
    )
    return model.fit(shown, y, acquired=acquired).policy_.classifiers[whole]


def loss(classifier, X, y):
    return log_loss(y, classifier.predict_proba(X))


def test_a_leaf_of_more_sensors_does_not_forget_what_many_rows_say_of_fewer():
    X, y, acquired = quadratic_log()
    both = acquired[:, 1] > 0
    alone = QuadraticLogisticRegression().fit(X[both], y[both])
    pulled = leaf_of_all("logistic2", X, y, acquired)
    new, right, _ = quadratic_log(2000, seed=1)
    assert loss(pulled, new, right) < 0.8 * loss(alone, new, right)


def test_a_penalty_that_was_given_is_kept():
    X, y, acquired = quadratic_log()
    both = acquired[:, 1] > 0
    given = QuadraticLogisticRegression(C=0.1)
    learned = leaf_of_all(given, X, y, acquired)
    alone = given.fit(X[both], y[both])
    np.testing.assert_allclose(
        learned.predict_proba(X[both]), alone.predict_proba(X[both]), atol=1e-6
    )


def test_a_quadratic_fit_reads_only_what_was_bought_and_is_the_same_twice():
    X, y = rows_of_three(300)
    acquired = bought_in_order(X)
    quadratic = {"classifier": "logistic2"}
    clean = tree(**quadratic).fit(hidden(X, acquired), y, acquired=acquired)
    trapped = X.astype(object)
    trapped[acquired == 0] = Trap()
    caught = tree(**quadratic).fit(trapped, y, acquired=acquired)
    assert fingerprint(clean) == fingerprint(caught)


def test_a_quadratic_fit_of_a_log_in_which_everything_was_bought_is_that_of_today():
    X, y = rows_of_three(300)
    acquired = np.tile([1, 2, 3], (300, 1))
    quadratic = {"classifier": "logistic2"}
    logged = tree(**quadratic).fit(X, y, acquired=acquired)
    assert fingerprint(logged) == fingerprint(tree(**quadratic).fit(X, y))
