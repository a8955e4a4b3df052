"""Claims about codes: decisions see each level of a number that takes few values."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import product

import models
import numpy as np
import pandas as pd
import pytest
from models import CODED, codes, fitted, route_by_code

from sensortree import (
    AlternatingTreeClassifier,
    CascadeClassifier,
    MyopicClassifier,
    Program,
    Sensor,
    SensorTreeClassifier,
    SensorTreeRegressor,
    load,
    save,
)
from sensortree.learning import pose
from sensortree.learning.pose import level_parts, shown_by_all, shown_levels
from sensortree.policy.decisions import PARTS, Posterior, Raw, Transformed
from sensortree.reports.rules import plain_rules
from sensortree.sensors.table import Table
from sensortree.sensors.transforms import Levels

# The right tree, and leaves that are the same whatever is compared.
GIVEN = {"structure": route_by_code(), "cost_weight": 0.11, "classifier": "logistic2"}
WORDS = np.array(["north", "east", "south", "west", "home"])


def as_text(X):
    """The same table with a word for each code."""
    frame = pd.DataFrame(X, columns=list(CODED))
    frame["code"] = WORDS[X[:, 0].astype(int)]
    return frame


def everyone():
    """All tables of a code and five answers, each as likely as the others."""
    return np.array([[c, *s] for c in range(5) for s in product((0.0, 1.0), repeat=5)])


def risk(model, X, shown):
    """Error and price, at .11 a piece, of whoever can come; one in ten is told wrongly."""
    right = X[np.arange(len(X)), 1 + X[:, 0].astype(int)]
    error = np.where(model.predict(shown) == right, 0.1, 0.9).mean()
    return error + 0.11 * model.acquisition_cost(shown).mean()


@cache
def by_code(n=300, seed=0, **parameters):
    X, y = codes(n, seed)
    return SensorTreeClassifier(CODED, **{**GIVEN, **parameters}).fit(X, y)


# what it is for ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_code_sends_people_where_a_word_does(seed):
    # The one right answer of five is bought: .1 is told wrongly, and .11 is paid.
    X, y = codes(300, seed)
    names = {name: Sensor([name], cost=s.cost) for name, s in CODED.items()}
    by_word = SensorTreeClassifier(names, **GIVEN).fit(as_text(X), y)
    table = everyone()
    found = risk(by_code(seed=seed), table, table)
    assert found <= risk(by_word, table, as_text(table)) + 0.02
    assert found == pytest.approx(0.21, abs=0.02)


def test_without_levels_a_code_loses_its_way(monkeypatch):
    monkeypatch.setattr(pose, "CELL_LEVELS", 0)
    X, y = codes(300)
    model = SensorTreeClassifier(CODED, **GIVEN).fit(X, y)
    assert risk(model, everyone(), everyone()) > 0.25


# which levels -----------------------------------------------------------------------------


def levels_of(*columns, weight=None):
    readings = np.array(columns, dtype=float).T
    weight = np.ones(len(readings)) if weight is None else np.asarray(weight)
    parts = level_parts(shown_levels(readings, weight))
    if not parts:
        return []
    (part,) = parts
    found = part.transformer
    return list(zip(found.readings, found.levels.tolist(), strict=True))


def test_three_to_eight_levels_are_seen_one_by_one():
    rows = np.arange(720)
    assert levels_of(rows % 2, rows % 9, rows) == []
    three = [(1, 0.0), (1, 1.0), (1, 2.0)]
    assert levels_of(rows % 2, rows % 3) == three
    assert levels_of(rows % 8) == [(0, float(level)) for level in range(8)]


def test_many_levels_are_many_however_rows_are_sorted():
    # the first rows are all alike
    assert levels_of(np.repeat(np.arange(9), 300)) == []


def test_a_level_that_few_rows_show_has_no_column():
    # 4 of 100 rows show a 7, less than a twentieth
    values = np.repeat([1.0, 2.0, 3.0, 7.0], [32, 32, 32, 4])
    assert levels_of(values) == [(0, 1.0), (0, 2.0), (0, 3.0)]
    assert (0, 7.0) in levels_of(values, weight=np.where(values == 7, 2.0, 1.0))


def test_a_gap_is_no_level():
    values = [0.0, 1.0, np.nan, np.nan] * 20
    assert levels_of(values) == []  # two levels, and a gap
    assert levels_of([*values, *[5.0] * 20]) == [(0, 0.0), (0, 1.0), (0, 5.0)]


def test_a_row_of_weight_two_is_a_row_twice():
    values, weight = [1.0, 2.0, 3.0], [30.0, 30.0, 3.0]
    rows = np.repeat(values, [30, 30, 3])
    assert levels_of(values, weight=weight) == levels_of(rows)


def test_a_node_of_very_many_readings_sees_no_levels():
    rows = np.arange(120)
    assert len(levels_of(*[rows % 5] * 25)) == 125  # and 25 readings: 150
    assert levels_of(*[rows % 5] * 26) == []


def test_levels_of_many_columns_are_stretched_less():
    """By as much as they are many, so that together they do not fit few rows."""
    rows = np.arange(200.0)
    one, four = np.array([rows % 5]).T, np.array([rows % 5] * 4).T
    scales = []
    for readings in (one, four):
        parts = (Raw(), *level_parts(shown_levels(readings, np.ones(200))))
        features = pose.fit_decision_features(
            parts, readings, None, np.empty((200, 0)), np.ones(200)
        )
        scales.append(features.scale[-1])
    assert scales == pytest.approx([0.4, 1.6])  # one of five: √(.2 · .8)


# what is seen -----------------------------------------------------------------------------

TOY = Levels(2, (1, 1, 1), np.array([0.0, 1.0, 4.0]))


def test_a_level_is_one_and_what_is_none_is_zero_and_a_gap_stays_one():
    X = np.array([[9, 0], [9, 4], [9, 2], [9, -0.0], [9, np.nan]])
    expected = [[1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0], [np.nan] * 3]
    np.testing.assert_array_equal(TOY.transform(X), expected)
    assert TOY.names(["age", "code"]) == ("code is 0", "code is 1", "code is 4")


def test_a_number_that_is_no_code_leaves_the_linear_term_to_speak():
    decision = by_code().policy_.decisions[0]
    likely = np.array([[0.5, 0.5]] * 2)
    columns = decision.features.columns(
        np.array([[2.5], [3.0]]), likely, np.empty((2, 0))
    )
    np.testing.assert_array_equal(columns[0, 3:], [2.5, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(columns[1, 3:], [3.0, 0, 0, 0, 1, 0])


def test_a_gap_counts_as_the_mean_and_one_column_says_so():
    decision = fitted("numeric codes")[0].policy_.decisions[0]
    may_miss = decision.features.may_miss
    assert np.flatnonzero(may_miss).tolist() == [3]  # the reading's, not each level's
    gap, likely = np.array([[np.nan]]), np.array([[0.5, 0.5]])
    values = decision.features(gap, likely, np.empty((1, 0)))
    np.testing.assert_array_equal(values[0, 3:], [0, 0, 0, 0, 0, 0, 1, 1])


def test_all_rows_one_row_and_a_session_are_the_same_to_the_last_bit():
    model, X, _ = fitted("numeric codes")
    at_once = model.predict_proba(X), model.apply(X)
    for row, values in enumerate(X[:40]):
        np.testing.assert_array_equal(
            model.predict_proba(values[None])[0], at_once[0][row]
        )
        session = model.policy_.session()
        while session.step.sensor is not None:
            at = list(CODED).index(session.step.sensor)
            session.tell(session.step.sensor, values[at])
        np.testing.assert_array_equal(session.step.proba, at_once[0][row])
        assert session.decision().place == at_once[1][row]


# who sees them ----------------------------------------------------------------------------


def parts_of(model):
    return [type(part) for part in model.policy_.decisions[0].features.parts]


def test_only_the_default_sees_levels():
    assert parts_of(by_code()) == [Posterior, Raw, Transformed]
    for name in set(PARTS) - {"posterior+raw"}:
        found = parts_of(
            by_code(program=Program(decision_features=name, fallback=False))
        )
        assert found == [type(part) for part in PARTS[name]]


def test_regressors_see_levels_too():
    X, y = codes(300)
    target = y + np.random.default_rng(1).normal(scale=0.1, size=300)
    model = SensorTreeRegressor(CODED, structure=route_by_code(), cost_weight=0.01)
    assert parts_of(model.fit(X, target))[-1] is Transformed


OTHERS = {
    "as published": lambda **given: SensorTreeClassifier.as_published(**given),
    "published, chain": lambda **_: SensorTreeClassifier.as_published(
        CODED, structure="chain", cost_weight=0.05
    ),
    "quadratic": lambda **given: SensorTreeClassifier(
        **given, program=Program(decision_features="quadratic")
    ),
    "posterior": lambda **given: SensorTreeClassifier(
        **given, program=Program(decision_features="posterior")
    ),
    "cascade": lambda **_: CascadeClassifier(
        CODED, order=list(CODED), cost_weight=0.05
    ),
    "alternating": lambda **given: AlternatingTreeClassifier(**given),
    "myopic": lambda **_: MyopicClassifier(CODED, reject=0.3),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_published_or_compared_or_asked_for_is_as_without(name, monkeypatch):
    X, y = codes(300)
    given = {"sensors": CODED, "structure": route_by_code(), "cost_weight": 0.05}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = OTHERS[name](**given).fit(X, y).policy_.digest
        monkeypatch.setattr(pose, "CELL_LEVELS", 0)
        assert OTHERS[name](**given).fit(X, y).policy_.digest == made


def test_readings_of_many_values_are_looked_at_as_without(monkeypatch):
    X, y = models.numbers()
    digests = []
    for most in (8, 0):
        monkeypatch.setattr(pose, "CELL_LEVELS", most)
        model = SensorTreeClassifier(models.SENSORS, structure=models.GIVEN)
        digests.append(model.fit(X, y).policy_.digest)
    assert digests[0] == digests[1]


# in words ---------------------------------------------------------------------------------


def test_an_explanation_names_the_level():
    model = by_code()
    row = np.array([[3.0, 0, 0, 0, 1, 0]])
    told = model.explain(row)
    names = {c.name for node in told.nodes for c in node.contributions}
    assert {"x0", "x0 is 0", "x0 is 3", "x0 is 4"} <= names
    assert "x0 = 3" in str(told)
    for node in told.nodes:
        total = node.intercept + sum(c.contribution for c in node.contributions)
        assert total == pytest.approx(node.score, abs=1e-9)
    # What the level and the number add is one thing.
    assert sum("x0" in i.words for i in told.nodes[0].influences) == 1


def test_a_rule_names_the_level():
    X, _ = codes(400, seed=5)
    rules = plain_rules(by_code().policy_, Table(X))
    assert [(r.words, r.agrees) for r in rules if r.words == "x0 is 2"] == [
        ("x0 is 2", 1.0)
    ]


def test_a_saved_model_sees_the_same_levels(tmp_path):
    model = by_code()
    save(model, tmp_path / "model.json")
    loaded, table = load(tmp_path / "model.json"), everyone()
    assert loaded.policy_.digest == model.policy_.digest
    np.testing.assert_array_equal(
        loaded.predict_proba(table), model.predict_proba(table)
    )
    assert str(loaded.explain(table[:1])) == str(model.explain(table[:1]))


# rows in chunks ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [1, 7, 100])
def test_levels_of_all_rows_are_those_of_chunks(n_rows):
    rng = np.random.default_rng(0)
    readings = np.column_stack(
        [rng.integers(k, size=200) for k in (2, 5, 8, 9, 200)]
    ).astype(float)
    readings[::5, 1] = np.nan
    weight = rng.integers(1, 4, 200).astype(float)
    whole = shown_levels(readings, weight)
    chunks = (
        shown_levels(readings[at : at + n_rows], weight[at : at + n_rows])
        for at in range(0, 200, n_rows)
    )
    found = shown_by_all(chunks)
    assert whole == found
    assert whole[3:] == [None, None]
