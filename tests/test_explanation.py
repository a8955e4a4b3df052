"""Claims about why a row goes its way."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from toys import BLOOD, forked_policy, per_row_prices, toy_policy

from sensortree import (
    ASTCClassifier,
    CascadeClassifier,
    MyopicClassifier,
    PathDisplay,
    Program,
    Sensor,
    SensorTreeClassifier,
)
from sensortree.exceptions import DataError
from sensortree.reports.explanation import Purchase, explain
from sensortree.sensors.table import Table
from sensortree.text import chance_words

matplotlib.use("Agg")

STOPS = Table(np.array([[-1.0, np.inf]]))
BUYS = Table(np.array([[1.5, 0.0]]))


@dataclass(frozen=True, eq=False)
class RecordingTable(Table):
    """A table that notes which columns were read."""

    read: set[int] = field(default_factory=set)

    def take(self, rows: Any, columns: Any) -> Any:
        self.read.update(columns)
        return super().take(rows, columns)


def adds_up(explanation) -> None:
    for passage in explanation.nodes:
        total = passage.intercept + sum(c.contribution for c in passage.contributions)
        assert total == pytest.approx(passage.score, abs=1e-9)
        sizes = [abs(c.contribution) for c in passage.contributions]
        assert sizes == sorted(sizes, reverse=True)


def test_the_toys_way_is_told_from_the_start_to_the_answer():
    # a = 1.5, so g = 2 * 1.5 = 3: buy b for 3, answer "yes".
    told = explain(toy_policy(), BUYS)
    assert told.start == (Purchase("a", 1.0),)
    (node,) = told.nodes
    assert (node.node, node.known, node.spent) == (0, ("a",), 1.0)
    assert (node.score, node.taken, node.rerouted) == (3.0, "positive", False)
    (a,) = node.contributions
    assert (a.name, a.value, a.standardised, a.contribution) == ("A", 1.5, 1.5, 3.0)
    assert node.intercept == 0.0
    assert node.bought == (Purchase("b", 3.0),)
    # the other way is to stop; six of ten training rows did
    assert node.other_cost == (0.0, 0.0)
    assert (node.share_negative, node.share_positive) == (0.6, 0.4)
    assert (told.leaf, told.known, told.answer) == (1, ("a", "b"), "yes")
    assert told.probabilities == {"no": 0.2, "yes": 0.8}
    assert told.expected_loss is None
    assert (told.spent, told.everything) == (4.0, 4.0)


def test_the_other_branch_has_a_price():
    told = explain(toy_policy(), STOPS)
    assert told.nodes[0].taken == "negative"
    assert told.nodes[0].bought == ()
    assert told.nodes[0].other_cost == (3.0, 3.0)
    assert (told.leaf, told.spent) == (0, 1.0)
    discounted = explain(toy_policy(terms=BLOOD), STOPS)
    assert discounted.nodes[0].other_cost == (2.0, 2.0)


def test_a_discount_is_told_with_the_purchase():
    told = explain(toy_policy(terms=BLOOD), BUYS)
    assert told.nodes[0].bought == (Purchase("b", 2.0),)
    assert (told.spent, told.everything) == (3.0, 3.0)


def test_the_losses_to_expect_are_told_where_there_is_a_loss_matrix():
    # .2 and .8: "no" is wrong in .8 of cases at 6, "yes" in .2 at 4
    told = explain(toy_policy(loss=[[0, 4], [6, 0]]), BUYS)
    assert told.expected_loss == pytest.approx({"no": 4.8, "yes": 0.8})
    assert "yes (probability 80 %; expected loss 0.8, of no 4.8)" in str(told)
    assert "expected loss 0.8" in told.details


def test_what_cannot_be_afforded_is_said():
    # b would make it 4; with 2 the row is served best at the node itself, by training
    told = explain(toy_policy(max_cost=2.0), BUYS)
    assert (told.nodes[0].rerouted, told.rerouted_at, told.leaf) == (True, 0, ~0)
    assert (told.place, told.answer, told.spent) == ("node 0", "no", 1.0)
    assert "would buy b (3), which is beyond max_cost (2); stops instead" in str(told)
    assert "too dear, so the best within max_cost" in told.details
    # where stopping at the node looked worse than leaf 0, the row is sent there
    sent = explain(toy_policy(max_cost=2.0, stop_loss=0.9), BUYS)
    assert (sent.rerouted_at, sent.leaf, sent.place) == (0, 0, "leaf 0")
    broke = explain(toy_policy(max_cost=0.5), BUYS)
    assert (broke.nodes, broke.start, broke.place) == ((), (), "the start")
    assert broke.spent == 0.0


def test_prices_of_the_row_are_features_with_a_name():
    table = Table(np.array([[1.5, 0.0]]), np.array([[np.nan, 5.0]]))
    told = explain(per_row_prices(toy_policy()), table)
    names = {c.name: c for c in told.nodes[0].contributions}
    assert set(names) == {"A", "price of b"}
    assert names["price of b"].value == 5.0
    assert names["price of b"].contribution == pytest.approx(-0.5)
    assert told.nodes[0].bought == (Purchase("b", 5.0),)
    assert (told.spent, told.everything) == (6.0, 6.0)
    adds_up(told)


@pytest.mark.parametrize("features", ["posterior+raw", "quadratic", "raw", "posterior"])
def test_contributions_add_up_to_the_score_on_iris(features):
    X, y = load_iris(return_X_y=True)
    model = SensorTreeClassifier(
        {"sepal": [0, 1], "petal": [2], "width": [3]},
        cost_weight=0.02,
        program=Program(decision_features=features),
    ).fit(X, y)
    leaves, costs = model.apply(X), model.acquisition_cost(X)
    answers, acquired = model.predict(X), model.acquired(X)
    for row in range(0, 150, 7):
        told = model.explain(X[row])
        adds_up(told)
        assert (told.leaf, told.answer) == (leaves[row], answers[row])
        assert told.spent == pytest.approx(costs[row], abs=1e-12)
        assert told.known == tuple(
            np.array(model.sensors_.names)[acquired[row]].tolist()
        )
        bought = [*told.start, *(p for node in told.nodes for p in node.bought)]
        assert {p.sensor for p in bought} == set(told.known)
        assert sum(p.price for p in bought) == pytest.approx(told.spent, abs=1e-12)
        json.dumps(told.to_dict(), allow_nan=False)


def test_features_of_three_classes_have_their_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names[y]
    model = SensorTreeClassifier(
        {"sepal": list(X.columns[:2]), "petal": list(X.columns[2:])},
        cost_weight=0.01,
        program=Program(decision_features="quadratic", fallback=False),
        root_sensors=["sepal"],
        structure="cascade",
    ).fit(X, names)
    told = model.explain(X.iloc[60])
    found = {c.name for c in told.nodes[0].contributions}
    assert {
        "P(versicolor)",
        "P(virginica)",
        "largest probability",
        "lead",
        "entropy",
        "entropy²",
        "P(versicolor) × lead",
        "sepal length (cm)",
    } <= found
    assert len(found) == len(told.nodes[0].contributions)


def test_missing_readings_and_transformers_are_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + (np.abs(X[:, 0]) < 0.7) * X[:, 2] > 0
    X[rng.random(200) < 0.3, 1] = np.nan
    model = SensorTreeClassifier(
        {
            "old": Sensor([0, 1], transformer=SimpleImputer(add_indicator=True)),
            "new": Sensor([2], cost=2.0),
        },
        cost_weight=0.02,
        root_sensors=["old"],
    ).fit(X, y)
    told = model.explain(X[0])
    assert {"x0", "x1", "x1 is missing"} <= {
        c.name for c in told.nodes[0].contributions
    }
    adds_up(told)
    boosted = SensorTreeClassifier(
        {"old": [0, 1], "new": [2]},
        cost_weight=0.02,
        root_sensors=["old"],
        classifier="boosted",
    ).fit(X, y)
    row = int(np.flatnonzero(np.isnan(X[:, 1]))[0])
    told = boosted.explain(X[row])
    names = {c.name: c for c in told.nodes[0].contributions}
    assert names["x1"].value is None
    assert names["x1"].contribution == 0.0
    assert names["x1 is missing"].value == 1.0
    adds_up(told)
    json.dumps(told.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("transformer", "name"),
    [
        (make_pipeline(StandardScaler(), PolynomialFeatures(2)), "x0 x1"),
        (Nystroem(n_components=4, random_state=0), "nystroem0"),
    ],
)
def test_what_a_transformer_makes_of_the_readings_has_its_names(
    two_sensors, transformer, name
):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(
        sensors,
        costs=costs,
        cost_weight=0.01,
        program=Program(decision_features=transformer),
    ).fit(X, y)
    told = model.explain(X[0])
    assert name in {c.name for c in told.nodes[0].contributions}
    adds_up(told)


def test_a_row_may_come_in_any_form():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = SensorTreeClassifier(cost_weight=0.02).fit(X, y)
    told = model.explain(X.iloc[[70]])
    assert model.explain(X.iloc[70]) == told
    plain = SensorTreeClassifier(cost_weight=0.02).fit(X.to_numpy(), y)
    row = X.to_numpy()[70]
    assert plain.explain(row) == plain.explain(row.tolist()) == plain.explain([row])
    with pytest.raises(DataError, match="one row, got 2; ask for rows one by one"):
        model.explain(X.iloc[:2])


def test_a_series_of_words_and_numbers_is_one_row():
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"colour": rng.choice(["red", "blue"], 80), "size": rng.random(80)}
    )
    y = (frame["colour"] == "red") & (frame["size"] > 0.3)
    model = SensorTreeClassifier(
        {
            "colour": Sensor("colour", transformer=OneHotEncoder()),
            "size": Sensor("size"),
        },
        cost_weight=0.01,
    ).fit(frame, y)
    assert model.explain(frame.iloc[3]).answer == model.predict(frame.iloc[[3]])[0]


def test_nothing_is_read_that_was_not_bought(two_sensors):
    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=0.01).fit(X, y)
    stops = np.flatnonzero(~model.acquired(X)[:, 1])[:5]
    assert len(stops) == 5
    for row in stops:
        trap = X[row].copy()
        trap[2:] = np.nan
        assert model.explain(trap) == model.explain(X[row])
        table = RecordingTable(X[[row]])
        assert explain(model.policy_, table).known == ("cheap",)
        assert table.read == {0, 1}


def test_the_text_names_scores_purchases_and_the_other_way():
    assert explain(toy_policy(), BUYS).details == (
        "'yes' at leaf 1 (probability 0.8); spent 4 of 4\n"
        "start: buy a (1)\n"
        "node 0: g = +3 > 0, buy b (3)\n"
        "  +3  A = 1.5\n"
        "  +0  intercept\n"
        "  not taken: stop, margin -3; 60.0 % of training rows"
    )


# in plain words ---------------------------------------------------------------------------


def test_the_text_says_what_is_likely_what_is_bought_and_what_that_changes():
    assert str(explain(toy_policy(), BUYS)) == (
        "yes (probability 80 %); spent 4, everything would cost 4\n"
        "1. buys a (1), as everybody does\n"
        "2. knows a: so far no (probability 90 %)\n"
        "   buys b (3): it changes the answer for 4 of 4 like this\n"
        "   for it: A = 1.5\n"
        "3. knows a, b: the way ends here"
    )


def test_who_stops_is_told_what_more_would_change_and_cost():
    assert str(explain(toy_policy(), STOPS)) == (
        "no (probability 90 %); spent 1, everything would cost 4\n"
        "1. buys a (1), as everybody does\n"
        "2. knows a: so far no (probability 90 %)\n"
        "   stops here: b would change the answer for 6 of 6 like this, and cost 3\n"
        "   for it: A = -1"
    )


def test_a_choice_of_several_is_told_against_the_nearest_and_against_stopping():
    # counted in no file of version 1, so nothing is said of what changes
    told = str(explain(forked_policy(), Table(np.array([[1.5, 0.0, np.inf]]))))
    assert told.splitlines()[2:] == [
        "2. knows a: so far no (probability 90 %)",
        "   buys b (3)",
        "   for it rather than buy c (5): what is usual here; against it: A = 1.5",
        "   for it rather than stop: A = 1.5",
        "3. knows a, b: the way ends here",
    ]


def test_who_can_afford_nothing_is_told_so():
    broke = str(explain(toy_policy(max_cost=0.5), BUYS))
    assert broke.splitlines()[1:] == ["1. buys nothing, since it can afford no more"]


def test_a_one_hot_group_is_one_influence_with_the_value_of_its_column():
    frame, model = smokers()
    for row in (0, 1, 2, 3):
        told = model.explain(frame.iloc[row])
        adds_up(told)
        (node, *_) = told.nodes
        words = [influence.words for influence in node.influences]
        assert len(set(words)) == len(words)
        values = frame.iloc[row]
        missing = np.isnan(values["age"])
        assert set(words) == {
            "the probability",
            f"smoking = {values['smoking']}",
            "age is missing" if missing else f"age = {values['age']:g}",
        }
        total = node.intercept + sum(i.contribution for i in node.influences)
        assert total == pytest.approx(node.score, abs=1e-9)
        sizes = [abs(i.contribution) for i in node.influences]
        assert sizes == sorted(sizes, reverse=True)


COLUMNS = {"sepal": [0, 1], "petal": [2], "width": [3]}
METHODS = (
    SensorTreeClassifier(cost_weight=0.01),
    SensorTreeClassifier(cost_weight=0.05, loss=[[0, 1, 9], [1, 0, 9], [30, 30, 0]]),
    SensorTreeClassifier(cost_weight=0.002, max_cost=4.0),
    SensorTreeClassifier(cost_weight=0.01, structure="exhaustive"),
    MyopicClassifier(),
    CascadeClassifier(),
    ASTCClassifier(),
)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: str(m)[:60])
def test_what_every_method_says_of_a_row_is_so(method):
    X, y = load_iris(return_X_y=True)
    y = load_iris().target_names[y]
    model = clone(method).set_params(
        sensors=COLUMNS, costs={"sepal": 1, "petal": 2, "width": 4}
    )
    policy = model.fit(X, y).policy_
    answers, proba = model.predict(X), model.predict_proba(X)
    for row in range(0, 150, 6):
        told = model.explain(X[row])
        chance = chance_words(proba[row].max())
        if policy.loss.matrix is None:
            assert str(told).startswith(f"{answers[row]} (probability {chance});")
        else:
            assert str(told).startswith(f"{answers[row]} (probability ")
        session = policy.session()
        for fork, lines in zip(told.forks, told.steps[1:], strict=False):
            assert lines[0].startswith(f"knows {', '.join(fork.known)}: so far ")
            assert f"so far {fork.answer} (" in lines[0]
            (taken,) = [b for b in fork.branches if b.taken] or [None]
            if taken is not None and taken.change is not None:
                assert taken.change.rows == pytest.approx(
                    taken.share * sum(b.change.rows for b in fork.branches if b.change)
                )
                assert 0 <= taken.change.changed <= taken.change.rows
        while (step := session.ask()) is not None:
            if step.why is not None:
                assert str(step.why).startswith("so far ")
            session.tell(step.sensor, X[row][COLUMNS[step.sensor]].tolist())
        last = session.step.why
        if told.forks and last is not None and not last.bought:
            assert last.text.partition("; ")[2] in str(told)


def smokers():
    """Rows in which age is missing now and then, and an ECG that is dear."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "smoking": rng.choice(["never", "former", "current"], 400),
            "age": rng.integers(20, 80, 400).astype(float),
            "ecg": rng.normal(size=400),
        }
    )
    score = (frame["smoking"] == "current") + (frame["age"] - 50) / 15 + frame["ecg"]
    frame.loc[[1, 5, 9], "age"] = np.nan
    intake = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["smoking"]),
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age"]),
    )
    model = SensorTreeClassifier(
        {
            "intake": Sensor(["smoking", "age"], transformer=intake),
            "ecg": Sensor(["ecg"], cost=5.0),
        },
        cost_weight=0.01,
        root_sensors=["intake"],
        program=Program(fallback=False),
    )
    return frame, model.fit(frame, np.where(score > 0, "ill", "well"))


def test_a_loaded_model_and_a_session_say_the_same(tmp_path):
    from sensortree import load, save

    frame, model = smokers()
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    for row in range(12):
        assert str(loaded.explain(frame.iloc[row])) == str(
            model.explain(frame.iloc[row])
        )
        known = {"intake": frame.iloc[row][["smoking", "age"]].tolist()}
        why = loaded.policy_.step(known).why
        told = loaded.explain(frame.iloc[row]).nodes[-1]
        assert why.text == model.policy_.step(known).why.text
        assert [i.words for i in why.influences] == [i.words for i in told.influences]
        json.dumps(why.to_dict(), allow_nan=False)


def test_what_changed_is_the_share_among_training_rows_that_went_the_same_way():
    # The training rows themselves, in the sample: about what was counted out of fold.
    frame, model = smokers()
    policy = model.policy_
    bought = model.acquired(frame)[:, 1]
    assert 0 < bought.sum() < 400
    intake = policy.places[~0].classifier
    reading = policy.reader.read(Table(frame), 0, np.arange(400))[0]
    before = policy.classes[intake.predict(reading)]
    changed = (before != model.predict(frame))[bought].mean()
    row = int(np.flatnonzero(bought)[0])
    (branch,) = [b for b in model.explain(frame.iloc[row]).forks[0].branches if b.taken]
    # judged out of fold, rows may go another way than the final classifiers send them
    assert branch.change.rows == pytest.approx(bought.sum(), rel=0.1)
    assert branch.change.share == pytest.approx(changed, abs=0.05)


# the ways that were not taken -------------------------------------------------------------


def branches_of(told, number=0):
    return {
        branch.words: (branch.taken, branch.margin, branch.cost, branch.share)
        for branch in told.forks[number].branches
    }


def test_a_fork_names_the_way_taken_and_all_others():
    # a = 1.5: g0 = 1.5 and g1 = -.5, so b is bought; both nodes know a.
    told = explain(forked_policy(), Table(np.array([[1.5, 0.0, np.inf]])))
    (fork,) = told.forks
    assert (fork.nodes, fork.known, fork.spent) == ((0, 1), ("a",), 1.0)
    assert not fork.rerouted
    # stopping lacks 1.5 at node 0; c lacks .5 at node 1
    assert branches_of(told) == {
        "stop": (False, -1.5, (0.0, 0.0), 0.6),
        "buy b (3)": (True, 0.5, (3.0, 3.0), 0.3),
        "buy c (5)": (False, -0.5, (5.0, 5.0), 0.1),
    }
    assert [b.place for b in fork.branches] == [0, 1, 2]
    assert fork.branches[1].bought == (Purchase("b", 3.0),)


def test_ways_behind_a_node_that_was_not_passed_have_a_margin_too():
    # a = -1 stops at node 0: g0 = -1, and g1 would be -3
    told = explain(forked_policy(), Table(np.array([[-1.0, np.inf, np.inf]])))
    assert [passage.node for passage in told.nodes] == [0]
    margins = {words: branch[1] for words, branch in branches_of(told).items()}
    assert margins == {"stop": 1.0, "buy b (3)": -1.0, "buy c (5)": -3.0}


def test_a_score_of_zero_has_no_margin_and_takes_the_negative_way():
    told = explain(forked_policy(), Table(np.array([[0.0, np.inf, np.inf]])))
    assert branches_of(told)["stop"][:2] == (True, 0.0)
    assert str(told.forks[0].branches[0].margin) == "0.0"


def test_a_way_that_is_too_dear_is_said_beside_the_one_taken_instead():
    # a = 3 decides for c, 6 dollars in all; within 4 dollars b is served best.
    told = explain(forked_policy(max_cost=4.0), Table(np.array([[3.0, 0.0, np.inf]])))
    assert told.forks[0].rerouted
    taken = {words: branch[:2] for words, branch in branches_of(told).items()}
    assert taken == {
        "stop": (False, -3.0),
        "buy b (3)": (True, -1.0),
        "buy c (5)": (False, 1.0),
    }
    assert "not taken: buy c (5), margin +1, too dear" in told.details
    assert "would buy c (5), which is beyond max_cost (4); buys b (3)" in str(told)


def test_no_way_is_taken_by_a_row_that_has_to_stop_at_a_node():
    told = explain(toy_policy(max_cost=2.0), BUYS)
    assert (told.leaf, told.forks[0].rerouted) == (~0, True)
    assert not any(branch.taken for branch in told.forks[0].branches)


def test_the_text_lists_ways_by_how_near_they_were():
    told = explain(forked_policy(), Table(np.array([[1.5, 0.0, np.inf]])))
    assert told.details == (
        "'yes' at leaf 1 (probability 0.8); spent 4 of 9\n"
        "start: buy a (1)\n"
        "node 0: g = +1.5 > 0, go on\n"
        "  +1.5  A = 1.5\n"
        "  +0  intercept\n"
        "node 1: g = -0.5 ≤ 0, buy b (3)\n"
        "  +1.5  A = 1.5\n"
        "  -2  intercept\n"
        "  taken: buy b (3), margin +0.5; 30.0 % of training rows\n"
        "  not taken: buy c (5), margin -0.5; 10.0 % of training rows\n"
        "  not taken: stop, margin -1.5; 60.0 % of training rows"
    )


def test_plain_data_have_the_ways_too():
    told = explain(forked_policy(), Table(np.array([[1.5, 0.0, np.inf]])))
    form = json.loads(json.dumps(told.to_dict(), allow_nan=False))
    (fork,) = form["forks"]
    assert fork["nodes"] == [0, 1]
    assert fork["branches"][1] == {
        "place": 1,
        "bought": [{"sensor": "b", "price": 3.0}],
        "taken": True,
        "margin": 0.5,
        "cost": [3.0, 3.0],
        "share": 0.3,
        "change": None,
        "would_change": None,
    }
    assert fork["answer"] == "no"
    assert fork["probabilities"] == {"no": 0.9, "yes": 0.1}


def test_a_page_has_the_picture_and_every_way_the_taken_one_bold():
    told = explain(forked_policy(), Table(np.array([[1.5, 0.0, np.inf]])))
    part, page = told._repr_html_(), told.to_html("<why>")
    assert part in page
    assert "<title>&lt;why&gt;</title>" in page
    assert PathDisplay.from_explanation(told).to_svg() in part
    lines = re.findall(r"<tr([^>]*)>(<td.*?)</tr>", part)
    cells = [re.findall("<td[^>]*>(.*?)</td>", line) for _, line in lines]
    assert cells == [
        ["stop", "-1.5", "0", "0", "60.0 %"],
        ["buy b", "+0.5", "3", "3", "30.0 %"],
        ["buy c", "-0.5", "5", "5", "10.0 %"],
    ]
    assert ["bold" in style for style, _ in lines] == [False, True, False]


def test_every_fork_has_one_way_decided_and_the_row_takes_it():
    X, y = load_iris(return_X_y=True)
    model = SensorTreeClassifier(
        {"sepal": [0, 1], "petal": [2], "width": [3]},
        cost_weight=0.002,
        structure="exhaustive",
        root_sensors=["sepal"],
    ).fit(X, y)
    sizes = set()
    for row in X[::7]:
        told = model.explain(row)
        assert sum(len(fork.nodes) for fork in told.forks) >= len(told.nodes)
        for fork in told.forks:
            sizes.add(len(fork.branches))
            (taken,) = [branch for branch in fork.branches if branch.taken]
            assert taken.margin >= 0
            others = [b.margin for b in fork.branches if not b.taken]
            assert max(others) <= 0
            assert sum(b.share for b in fork.branches) == pytest.approx(1)
        bought = [
            p for f in told.forks for b in f.branches if b.taken for p in b.bought
        ]
        assert bought == [p for node in told.nodes for p in node.bought]
    assert max(sizes) > 2


# the picture ------------------------------------------------------------------------------


def test_the_picture_draws_the_taken_way_thick_and_the_rest_pale():
    display = explain(toy_policy(), BUYS).plot()
    assert isinstance(display, PathDisplay)
    assert [v.share for v in display.vertices] == [
        1.0,
        0.0,
        1.0,
    ]  # node, leaf 0, leaf 1
    root, stop, buy = display.edges_
    assert root.get_linewidth() == buy.get_linewidth() > 4 * stop.get_linewidth()
    assert [t.get_text() for t in display.edge_labels_] == [
        "buy a, +1",
        "stop",
        "buy b, +3",
    ]
    assert display.nodes_[0].get_text() == "a\nnode 0\nso far no (0.90)"
    assert [cells[-1].get_text() for cells in display.leaves_] == ["", "yes (0.80)"]
    assert [cells[2].get_text() for cells in display.leaves_] == ["1", "4"]


def test_a_row_that_stops_at_a_node_is_answered_there_in_the_picture():
    told = explain(toy_policy(max_cost=2.0), BUYS)
    display = PathDisplay.from_explanation(told, unit="dollars").plot()
    assert [v.share for v in display.vertices] == [1.0, 0.0, 0.0]
    assert display.nodes_[0].get_text() == "a\nnode 0\nno (0.90)"
    broke = PathDisplay.from_explanation(explain(toy_policy(max_cost=0.5), BUYS))
    assert not any(v.share for v in broke.vertices)


def test_the_picture_has_the_rows_own_and_discounted_prices():
    table = Table(np.array([[1.5, 0.0]]), np.array([[np.nan, 5.5]]))
    policy = per_row_prices(toy_policy(terms=BLOOD))
    display = explain(policy, table).plot()
    # 5.50 in full, 1 less since blood was drawn for a
    assert display.edge_labels_[-1].get_text() == "buy b, +4.50"
    assert display.leaves_[1][2].get_text() == "5.50"


def test_the_picture_fits_given_axes(two_sensors):
    from matplotlib import pyplot

    X, y, sensors, costs = two_sensors
    model = SensorTreeClassifier(sensors, costs=costs, cost_weight=0.01).fit(X, y)
    ax = pyplot.figure().add_subplot()
    display = model.explain(X[0]).plot(ax)
    assert display.ax_ is ax
    pyplot.close("all")
