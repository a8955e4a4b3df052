"""Claims about what a policy is compared with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sensortree import Sensor, SensorTreeClassifier, load, save
from sensortree.exceptions import ModelFileError
from sensortree.learning.fit import best_fixed_set
from sensortree.learning.settings import Settings
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.rows import TrainingRows
from sensortree.persistence import model as model_file
from sensortree.persistence.fields import Fields
from sensortree.persistence.scorers import Known
from sensortree.sensors.loss import Loss
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.sensor import SensorSet


def judged(**right):
    """Leaves that have judged some subsets: which of four rows each answers rightly."""
    sensors = SensorSet(("a", "b"), ((0,), (1,)), np.array([1.0, 2.0]), ("A", "B"))
    y = np.array([0, 0, 1, 1])
    posteriors = {}
    for names, which in right.items():
        sure = np.where(np.array(which, bool), y, 1 - y)
        posteriors[frozenset(names.strip("_"))] = np.eye(2)[sure]
    data = TrainingRows(
        SensorReader(sensors, {}, (1, 1), False),
        [np.zeros((4, 1))] * 2,
        y,
        np.array([0, 1]),
        np.ones(4),
        False,
        np.zeros(4, np.intp),
        loss=Loss(),
    )
    return LeafClassifiers(data, None, None, posteriors=posteriors)


RIGHT = {"_": [1, 1, 0, 0], "a": [1, 1, 1, 0], "ab": [1, 1, 1, 1]}


@pytest.mark.parametrize(
    ("cost_weight", "expected"),
    [
        (0.01, "ab"),  # errors 2, 1, 0 of 4 at 0, .01, .03
        (0.2, "a"),  # .5, .25 + .2, .6
        (0.3, ""),  # .5, .55, .9
        (0.25, ""),  # .5, .5, .75: of equals the cheapest
    ],
)
def test_the_best_fixed_set_has_the_least_error_and_weighted_cost(
    cost_weight, expected
):
    chosen = best_fixed_set(judged(**RIGHT), Settings(cost_weight=cost_weight))
    assert chosen == frozenset(expected)


def test_the_best_fixed_set_is_within_max_cost():
    settings = Settings(cost_weight=0.01, max_cost=2.0)
    assert best_fixed_set(judged(**RIGHT), settings) == frozenset("a")


def fitted(two_sensors, **parameters):
    X, y, sensors, costs = two_sensors
    parameters = {"sensors": sensors, "costs": costs, "cost_weight": 0.01, **parameters}
    return SensorTreeClassifier(**parameters).fit(X, y)


def test_a_fit_keeps_everything_nothing_and_the_best_fixed_set(two_sensors):
    found = {b.name: b for b in fitted(two_sensors).policy_.baselines}
    assert list(found) == ["everything", "best fixed set", "nothing"]
    assert found["everything"].sensors == {"cheap", "dear"}
    assert found["nothing"].sensors == frozenset()
    X, y, *_ = two_sensors
    answers = found["everything"].classifier.predict(X)
    assert (np.array(["no", "yes"])[answers] == y).mean() > 0.9


def test_nothing_knows_what_is_free(two_sensors):
    model = fitted(two_sensors, costs={"cheap": 0, "dear": 9})
    assert model.policy_.baselines[-1].sensors == {"cheap"}


def test_everything_is_no_baseline_where_not_all_may_be_bought(two_sensors):
    sensors = {
        "cheap": Sensor([0, 1], 1, one_of="scan"),
        "dear": Sensor([2, 3], 9, one_of="scan"),
    }
    model = fitted(two_sensors, sensors=sensors, costs=None)
    assert [b.name for b in model.policy_.baselines] == ["best fixed set", "nothing"]


def test_no_answer_depends_on_baselines_and_so_no_digest(two_sensors):
    policy = fitted(two_sensors).policy_
    assert policy.digest == replace(policy, baselines=None).digest


def test_baselines_are_saved_and_loaded(two_sensors, tmp_path):
    model, X = fitted(two_sensors), two_sensors[0]
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json").policy_.baselines
    for one, other in zip(model.policy_.baselines, loaded, strict=True):
        assert (one.name, one.sensors) == (other.name, other.sensors)
        columns = X[
            :, [0, 1] * ("cheap" in one.sensors) + [2, 3] * ("dear" in one.sensors)
        ]
        np.testing.assert_array_equal(
            one.classifier.predict_proba(columns),
            other.classifier.predict_proba(columns),
        )


def test_a_bulky_baseline_is_not_saved(two_sensors, tmp_path, monkeypatch):
    model = fitted(two_sensors, cost_weight=5)  # buys nothing
    monkeypatch.setattr(model_file, "BULKY", 50)
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json").policy_
    assert [b.name for b in loaded.baselines] == ["best fixed set", "nothing"]
    assert loaded.digest == model.policy_.digest


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("magic", "must be one of 'everything', .*, got 'magic'"),
        ("nothing", "has no classifier, and no vertex"),
    ],
)
def test_a_baseline_that_cannot_be_is_refused(name, message):
    known = Known(SensorSet(("a",), ((0,),), np.ones(1)), (1,), 2, None)
    entry = {"name": name, "sensors": [], "classifier": None}
    with pytest.raises(ModelFileError, match=message):
        model_file.read_baselines(Fields({"baselines": [entry]}, ""), {}, known)


def test_a_baseline_answers_as_the_classifier_of_its_sensors(two_sensors):
    """It is as exact as comparisons are; another fit is not made for it."""
    X = two_sensors[0]
    same = {"classifier": "logistic2"}
    everything = fitted(two_sensors, cost_weight=5, **same).policy_.baselines[0]
    tree = {"sensors": ["cheap", "dear"]}
    leaf = fitted(two_sensors, structure=tree, **same).policy_
    exact = leaf.classifiers[frozenset({"cheap", "dear"})]
    near = everything.classifier.predict_proba(X)
    np.testing.assert_allclose(near, exact.predict_proba(X), atol=0.02)
    assert (near.argmax(axis=1) == exact.predict(X)).mean() > 0.99
