"""Handing over to a person: an exit with a price, learned as all decisions are."""

from __future__ import annotations

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sensortree
from sensortree import (
    AlternatingTreeClassifier,
    CascadeClassifier,
    Leaf,
    Node,
    Program,
    SensorTree,
    SensorTreeClassifier,
    cascade_tree,
)
from sensortree.cli.app import app
from sensortree.exceptions import BudgetWarning, DataError, ParameterError, TreeError
from sensortree.structure.trees import with_exits

pytestmark = pytest.mark.filterwarnings("ignore::sensortree.exceptions.PriceWarning")

SENSORS = {"free": [0], "dear": [1]}
COSTS = {"free": 0.0, "dear": 3.0}


def doubtful(n=600, seed=0):
    """Near 0 the free reading says little, the dear one more, and some nobody knows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    near = np.abs(X[:, 0]) < 0.8
    return X, X[:, 0] + near * 1.2 * X[:, 1] + 0.7 * rng.normal(size=n) > 0


def tree_of(refer_cost, method=SensorTreeClassifier, **parameters):
    X, y = doubtful()
    parameters = {"cost_weight": 0.02, "classifier": "linear", **parameters}
    return method(SENSORS, costs=COSTS, refer_cost=refer_cost, **parameters).fit(X, y)


# the tree ---------------------------------------------------------------------------------


def test_a_leaf_becomes_a_decision_between_an_answer_and_a_person():
    tree = with_exits(SensorTree(Leaf(["a"])))
    assert tree.root == Node(["a"], Leaf(["a"], False), Leaf(["a"], True))


def test_nodes_where_nobody_can_stop_get_an_exit_before_them():
    buys = Node(["a"], Leaf(["a", "b"], False), Leaf(["a", "c"], False))
    assert with_exits(SensorTree(buys)).root == Node(["a"], buys, Leaf(["a"], True))


def test_where_nothing_is_known_there_is_no_exit_before_the_nodes():
    buys = Node([], Leaf(["b"], False), Leaf(["c"], False))
    assert with_exits(SensorTree(buys)).root == buys


def test_exits_are_added_once():
    tree = with_exits(cascade_tree(["a", "b", "c"]))
    assert with_exits(tree) == tree


def test_trees_that_refer_survive_their_dicts():
    tree = with_exits(cascade_tree(["a", "b"]))
    assert SensorTree.from_dict(tree.to_dict()) == tree
    assert "refers" not in str(cascade_tree(["a", "b"]).to_dict())


def test_only_leaves_refer():
    form = {"sensors": [], "refers": True}
    children = {"negative": {"sensors": []}, "positive": {"sensors": ["a"]}}
    with pytest.raises(TreeError, match="only a leaf 'refers'"):
        SensorTree.from_dict({**form, **children})
    with pytest.raises(TreeError, match="must be True, False or None, got 'yes'"):
        Leaf(["a"], refers="yes")


# learning ---------------------------------------------------------------------------------


def test_a_person_who_costs_nothing_gets_everybody():
    model = tree_of(0.0)
    X, _ = doubtful()
    assert model.referred(X).all()
    assert model.acquisition_cost(X).sum() == 0


def test_a_person_dearer_than_every_mistake_gets_nobody():
    X, _ = doubtful()
    dear, without = tree_of(2.0), tree_of(None)
    assert not dear.referred(X).any()
    assert (dear.predict_proba(X) == without.predict_proba(X)).all()
    assert (dear.apply(X) == without.apply(X)).all()


def test_the_dearer_the_person_the_fewer_are_handed_over():
    X, _ = doubtful(2000, seed=1)
    shares = [tree_of(c).referred(X).mean() for c in (0.05, 0.1, 0.2, 0.3)]
    assert sorted(shares, reverse=True) == shares
    assert 0 < shares[-1] < shares[0] < 1


def test_who_is_handed_over_would_have_been_mistaken_more_often():
    X, y = doubtful(2000, seed=1)
    model = tree_of(0.2)
    wrong, referred = model.predict(X) != y, model.referred(X)
    assert wrong[referred].mean() > 0.2 > wrong[~referred].mean()


def test_risk_on_new_rows_is_below_that_of_doing_without_a_person():
    X, y = doubtful(4000, seed=1)

    def risk(model, price):
        lost = np.where(model.referred(X), price, model.predict(X) != y)
        return (lost + 0.02 * model.acquisition_cost(X)).mean()

    for price in (0.1, 0.2, 0.3):
        assert risk(tree_of(price), price) < min(price, risk(tree_of(None), price))


def test_the_risk_that_is_certified_is_that_of_the_exits_too():
    X, y = doubtful()
    parameters = {"cv": None, "program": Program(errors="observed", fallback=False)}
    model = tree_of(0.2, structure="cascade", **parameters)
    assert model.certificate_.converged
    assert model.referred(X).any()
    lost = np.where(model.referred(X), 0.2, model.predict(X) != y)
    lost = lost + 0.02 * model.acquisition_cost(X)
    kept = model.decision_report_.risk[model.decision_report_.kept]
    assert kept == pytest.approx(lost.mean())


@pytest.mark.parametrize(
    ("method", "given"),
    [
        (AlternatingTreeClassifier, {"decision_features": "posterior"}),
        (
            CascadeClassifier,
            {
                "program": Program.as_published(
                    savings="tight", decision_features="posterior"
                )
            },
        ),
    ],
)
def test_other_methods_that_learn_decisions_hand_over_too(method, given):
    X, y = doubtful(2000, seed=1)
    model = tree_of(0.15, method, **given)
    referred, wrong = model.referred(X), model.predict(X) != y
    assert 0 < referred.mean() < 1
    assert wrong[referred].mean() > wrong[~referred].mean()


@pytest.mark.parametrize("risk", ["brier", "log_loss"])
def test_probabilities_that_lose_more_than_a_person_are_handed_over(risk):
    X, _ = doubtful(2000, seed=1)
    model = tree_of(0.3 if risk == "log_loss" else 0.1, risk=risk)
    sure, referred = model.predict_proba(X).max(axis=1), model.referred(X)
    assert 0 < referred.mean() < 1
    assert sure[referred].mean() < sure[~referred].mean()


def test_prices_of_mistakes_and_persons_are_in_one_unit():
    X, _ = doubtful(2000, seed=1)
    errors = tree_of(0.2, cost_weight=0.02)
    money = tree_of(100.0, cost_weight=10.0, loss=500.0)
    assert (errors.referred(X) == money.referred(X)).all()
    assert 0 < errors.referred(X).mean() < 1


def test_a_class_that_is_dear_to_hand_over_is_handed_over_less():
    X, y = doubtful(2000, seed=1)

    def share(price):
        return tree_of({False: 0.15, True: price}).referred(X)[y].mean()

    assert share(0.6) < share(0.15)


def test_a_column_may_say_what_each_example_costs():
    X, y = doubtful()
    busy = np.random.default_rng(3).random(len(X)) < 0.5
    frame = pd.DataFrame(X, columns=["free", "dear"])
    frame["price"] = np.where(busy, 2.0, 0.1)
    sensors = {"free": ["free"], "person": ["price"], "dear": ["dear"]}
    model = SensorTreeClassifier(
        sensors,
        costs={"free": 0.0, "person": 0.0, "dear": 3.0},
        cost_weight=0.02,
        classifier="linear",
        refer_cost="price",
    ).fit(frame, y)
    referred = model.referred(frame)
    assert referred[~busy].mean() > 0.3
    assert not referred[busy].any()


def test_the_order_of_rows_of_two_prices_does_not_matter():
    X, y = doubtful(200)
    twice = pd.DataFrame(np.vstack([X, X]), columns=["free", "dear"])
    twice["price"] = np.r_[np.full(200, 0.05), np.full(200, 5.0)]
    sensors = {"known": ["free", "price"], "dear": ["dear"]}
    model = SensorTreeClassifier(
        sensors, costs={"known": 0}, refer_cost="price", classifier="linear"
    )
    order = np.random.default_rng(0).permutation(400)
    target = np.r_[y, y]
    first = model.fit(twice, target).policy_.digest
    assert model.fit(twice.iloc[order], target[order]).policy_.digest == first


def test_a_tree_of_ones_own_keeps_its_leaves_and_gets_exits_that_are_used():
    own = {
        "sensors": ["free"],
        "negative": {"sensors": ["free"], "refers": False},
        "positive": {"sensors": ["free", "dear"]},
    }
    tree = tree_of(0.1, structure=own).tree_
    kinds = {(leaf.sensors, leaf.refers) for leaf in tree.leaves}
    assert (frozenset(["free"]), False) in kinds
    assert (frozenset(["free"]), True) not in kinds
    assert (frozenset(["free", "dear"]), True) in kinds


def test_free_readings_may_decide_who_is_handed_over_where_nothing_pays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))  # the dear reading is noise
    y = X[:, 0] + rng.normal(size=600) > 0
    model = SensorTreeClassifier(
        SENSORS, costs=COSTS, cost_weight=0.02, classifier="linear", refer_cost=0.2
    ).fit(X, y)
    assert model.acquisition_cost(X).sum() == 0
    assert 0 < model.referred(X).mean() < 1


def test_without_a_price_trees_are_what_they_were():
    X, _ = doubtful()
    model = tree_of(None)
    assert {leaf.refers for leaf in model.tree_.leaves} == {None}
    assert model.policy_.referral is None
    assert not model.referred(X).any()


# what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refer_cost", "said"),
    [
        ({"maybe": 1.0}, "names class 'maybe', which y does not have"),
        ({True: 1.0}, "hand over an example of class False"),
        ({True: 1.0, False: -1.0}, "refer_cost of False must be finite and at least 0"),
        ({True: 1.0, False: "x"}, "refer_cost of False must be a number"),
        ("price", "names column 'price', which X does not have"),
        ("x1", "which sensor 'dear' reads at a price"),
        (-1.0, "refer_cost"),
        ({True: np.inf, False: 0.0}, "refer_cost of True must be finite"),
    ],
)
def test_costs_that_mean_nothing_are_refused(refer_cost, said):
    with pytest.raises(ParameterError, match=said):
        tree_of(refer_cost)


def test_a_column_that_lacks_a_price_is_refused_by_its_row():
    X, y = doubtful(60)
    frame = pd.DataFrame({"free": X[:, 0], "price": 0.1})
    frame.loc[7, "price"] = np.nan
    with pytest.raises(DataError, match="holds nan in row 7"):
        SensorTreeClassifier(
            {"free": ["free", "price"]}, costs={"free": 0}, refer_cost="price"
        ).fit(frame, y)


def test_a_tree_that_refers_needs_a_price():
    own = {
        "sensors": ["free"],
        "negative": {"sensors": ["free", "dear"]},
        "positive": {"sensors": ["free"], "refers": True},
    }
    with pytest.raises(ParameterError, match="nothing says what a person costs"):
        tree_of(None, structure=own)


# asking -----------------------------------------------------------------------------------


def test_sessions_hand_over_whom_tables_hand_over():
    X, _ = doubtful(40, seed=2)
    model = tree_of(0.2)
    referred = model.referred(X)
    assert 0 < referred.sum() < len(X)
    for row, wanted in zip(X, referred, strict=True):
        session = model.policy_.session()
        session.run(lambda name, _, row=row: [row[SENSORS[name][0]]])
        assert session.decision().referred == wanted
        assert session.step.referred == wanted
        assert session.step.to_dict()["referred"] is bool(wanted)


def test_files_keep_who_is_handed_over(tmp_path):
    X, _ = doubtful(200, seed=2)
    for refer_cost in (0.2, {False: 0.1, True: 0.3}):
        model = tree_of(refer_cost)
        sensortree.save(model, tmp_path / "model.json")
        loaded = sensortree.load(tmp_path / "model.json")
        assert (loaded.referred(X) == model.referred(X)).all()
        assert loaded.tree_ == model.tree_
        assert loaded.policy_.digest == model.policy_.digest
        kept, own = loaded.policy_.referral, model.policy_.referral
        assert (kept.by_class == own.by_class).all()


def test_detours_hand_over_too():
    model = tree_of(0.25, cost_weight=0.005, outages=True)
    assert model.policy_.detours is not None
    detour = model.policy_.around["dear"]
    assert any(leaf.refers for leaf in detour.tree.leaves)


# reports, curves --------------------------------------------------------------------------


def test_reports_say_who_is_handed_over_and_what_that_costs():
    X, y = doubtful(500, seed=3)
    model = tree_of(0.25)
    report, referred = model.report(X, y), model.referred(X)
    wrong = model.predict(X) != y
    use = report.referral
    assert use.share == pytest.approx(referred.mean())
    assert use.cost == pytest.approx(0.25 * referred.mean())
    assert use.error == pytest.approx(wrong[~referred].mean())
    assert use.guess_error == pytest.approx(wrong[referred].mean())
    assert report.error == pytest.approx(wrong.mean())
    assert report.loss == pytest.approx(np.where(referred, 0.25, wrong).mean())
    spent = 0.02 * model.acquisition_cost(X).mean()
    assert report.total == pytest.approx(report.loss + spent)
    assert f"handed over to a person: {100 * referred.mean():.1f}%" in str(report)
    assert report.to_dict()["referral"]["share"] == use.share


def test_reports_without_a_person_say_nothing_of_one():
    X, y = doubtful(100)
    report = tree_of(None).report(X, y)
    assert report.referral is None
    assert "person" not in str(report)


def test_curves_count_what_persons_cost():
    X, y = doubtful(300)
    model = SensorTreeClassifier(
        SENSORS, costs=COSTS, classifier="linear", refer_cost=0.1
    )
    curve = sensortree.tradeoff_curve(model, X, y, cost_weights=[0.02], cv=3)
    assert curve.measure == "loss"
    assert curve.error.max() < 0.1  # at most what it costs to hand over everybody
    assert curve.nothing[1] > 0.1  # which nobody does who buys nothing


def test_scorers_count_what_persons_cost():
    X, y = doubtful(300)
    model = tree_of(0.0)
    assert sensortree.cost_adjusted_scorer(0.02)(model, X, y) == 0.0


def test_budgets_are_of_sensors_not_of_persons():
    X, y = doubtful(300)
    model = sensortree.SensorTreeClassifierCV(
        SENSORS, costs=COSTS, classifier="linear", refer_cost=0.1, budget=1.0, cv=3
    )
    with pytest.warns(BudgetWarning, match="a lower loss costs"):
        model.fit(X, y)
    assert model.acquisition_cost(X).mean() < 1.2
    assert model.referred(X).any()


# the command line -------------------------------------------------------------------------

DECLARED = """
target = "ill"
cost_weight = 0.02
{}
[sensors.free]
columns = ["free"]
cost = 0
[sensors.dear]
columns = ["dear"]
cost = 3
"""


def run(*words, told=None):
    result = CliRunner().invoke(app, list(map(str, words)), input=told)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("referral")
    X, y = doubtful(400)
    frame = pd.DataFrame(X, columns=["free", "dear"])
    frame["ill"] = np.where(y, "yes", "no")
    frame.to_csv(folder / "rows.csv", index=False)
    (folder / "sensors.toml").write_text(DECLARED.format("refer_cost = 0.2"))
    (folder / "without.toml").write_text(DECLARED.format(""))
    return folder


def test_the_command_line_hands_over(files):
    model = files / "model.json"
    run("fit", files / "rows.csv", "--sensors", files / "sensors.toml", "-o", model)
    option = files / "option.json"
    declared = ["--sensors", files / "without.toml", "--refer-cost", "0.2"]
    run("fit", files / "rows.csv", *declared, "-o", option)
    loaded = sensortree.load(model)
    assert sensortree.load(option).policy_.digest == loaded.policy_.digest
    rows = pd.read_csv(files / "rows.csv")[["free", "dear"]]
    said = pd.read_csv(StringIO(run("predict", model, files / "rows.csv")))
    assert (said["referred"] == loaded.referred(rows)).all()
    assert said["referred"].any()
    assert "a person costs 0.2" in run("inspect", model)
    evaluated = json.loads(run("evaluate", model, files / "rows.csv", "--json"))
    assert evaluated["referral"]["share"] == pytest.approx(said["referred"].mean())


def test_the_command_line_says_whom_to_hand_over(files):
    model = files / "asked.json"
    declared = ["--sensors", files / "sensors.toml", "-o", model]
    run("fit", files / "rows.csv", *declared)
    rows = pd.read_csv(files / "rows.csv")[["free", "dear"]]
    referred = sensortree.load(model).referred(rows)
    for wanted, words in ((True, "hand over to a person; best guess: "), (False, "")):
        row = rows[referred == wanted].iloc[0]
        told = f"{row['free']}\n{row['dear']}\n"
        assert f"{words}" in run("ask", model, told=told)
        assert ("answer: " in run("ask", model, told=told)) is not wanted


# words and pictures -----------------------------------------------------------------------


def test_explanations_steps_and_pictures_say_who_is_handed_over():
    X, y = doubtful(300, seed=2)
    model = tree_of(0.2)
    row = X[model.referred(X)][0]
    told = model.explain(row)
    assert told.referred
    assert str(told).startswith("hand over to a person; best guess: ")
    assert "hands over to a person" in str(told)
    assert told.to_dict()["referred"] is True
    values = {name: [row[column]] for name, [column] in SENSORS.items()}
    session = model.policy_.session(values)
    assert session.step.why.text.endswith("; hands over to a person")
    assert ">to a person" in model.to_svg()
    assert ">to a person" not in tree_of(None).to_svg()
    assert "are handed over to a person" in model.report_page(X, y)
    answered = model.explain(X[~model.referred(X)][0])
    assert not answered.referred
    assert "to a person" not in answered.summary
