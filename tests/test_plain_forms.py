"""Claims about the forms of public objects: plain JSON, and a repr that says something."""

from __future__ import annotations

import json
import math
from datetime import date
from inspect import isclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from toys import toy_policy

import sensortree
from sensortree import SensorTreeClassifier
from sensortree.text import plain

OBJECTS = {
    name: getattr(module, name)
    for module in (sensortree, sensortree.results)
    for name in module.__all__
    if isclass(getattr(module, name))
    and not issubclass(getattr(module, name), BaseException)
}


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """One or more objects of every public class; a new class is added here."""
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = np.where(X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0, 1, 0)
    sensors = {"cheap": [0], "dear": sensortree.Sensor([1], cost=5.0)}
    model = SensorTreeClassifier(sensors, cost_weight=0.02, structure="cascade")
    model.fit(X, y)
    path = tmp_path_factory.mktemp("models") / "model.json"
    sensortree.save(model, path)
    policy, session = model.policy_, model.policy_.session()
    first = session.step
    session.tell("cheap", X[0, :1])
    curve = sensortree.tradeoff_curve(model, X, y, [0.01, 0.1], cv=2)
    log = {"acquired": np.tile([1, 2], (len(X), 1))}
    found = [
        sensortree.evaluate_from_log(model, X, y, **log),
        sensortree.compare_from_log(model, policy, X, y, **log),
        first,
        session,
        session.step,
        policy.step({"cheap": [0.1]}).why,
        policy.acquire(lambda sensor, columns: [3.0]),
        policy,
        sensortree.results.MaskedPolicy(policy),
        model.tree_,
        model.tree_.root,
        model.tree_.leaves[0],
        model.sensors_,
        model.sensors_.terms[0],
        sensors["dear"],
        model.certificate_,
        model.comparison_,
        model.decision_report_,
        model.calibration_report_,
        model.structure_report_,
        model.fit_report_,
        model.explain(X[0]),
        model.report(X, y),
        curve,
        curve.choose(budget=3.0),
        sensortree.load(path),
        sensortree.load(path).about_,
        sensortree.results.HeldOut(0.2, 0.01, 0.1, 0.01, 0.1, 0.01, 2.5, 0.1, 120),
        sensortree.TreeDisplay.from_estimator(model),
        sensortree.PathDisplay.from_explanation(model.explain(X[0])),
        sensortree.SensorUseDisplay.from_estimator(model, X, y),
        sensortree.TradeoffDisplay.from_curve(curve),
        sensortree.LogDisplay(["old"], [[0.2, 0.1, 0.3]], [[3.0, 2.0, 4.0]]),
        model,
        sensortree.Program(l2=0.1),
        *(
            estimator()
            for estimator in OBJECTS.values()
            if issubclass(estimator, BaseEstimator)
        ),
    ]
    return found


def test_there_is_a_sample_of_every_public_class(samples):
    missing = [
        name
        for name, each in OBJECTS.items()
        if not any(type(s) is each for s in samples)
    ]
    assert missing == []


def test_no_repr_shows_an_address(samples):
    assert [repr(s) for s in samples if " at 0x" in repr(s)] == []


def test_every_dict_form_is_plain_json(samples):
    found = [s for s in samples if hasattr(s, "to_dict")]
    assert len(found) > 10
    for each in found:
        text = json.dumps(each.to_dict(), allow_nan=False)
        assert json.loads(text) == each.to_dict(), type(each).__name__


def test_the_repr_of_a_session_shows_no_value():
    session = toy_policy().session()
    session.tell("a", [1234.5])
    assert repr(session) == "Session(asks for 'b', spent 1)"
    session.unavailable("b")
    assert repr(session) == "Session(stopped at node 0, spent 1)"


def test_a_step_as_a_dict():
    # With a = 1 in hand, g = 2: four of ten training rows went on to b as well.
    step = toy_policy().step({"a": [1.0]})
    assert step.to_dict() == {
        "action": "acquire",
        "sensor": "b",
        "sensors": ["b"],
        "columns": ["B"],
        "cost": 3.0,
        "spent": 1.0,
        "worst_case_remaining": 3.0,
        "proba": {"no": 0.9, "yes": 0.1},
        "why": step.why.to_dict(),
        "referred": False,
    }
    assert step.why.to_dict()["score"] == 2.0
    assert math.isclose(step.why.to_dict()["share"], 0.4)


def test_a_decision_as_a_dict():
    session = toy_policy().session()
    session.unavailable("b", because="out of order")
    session.tell("a", [1.0])
    assert session.decision().to_dict() == {
        "label": "no",
        "proba": {"no": 0.9, "yes": 0.1},
        "spent": 1.0,
        "saved": 3.0,
        "acquired": ["a"],
        "place": -1,
        "stopped_because": "unavailable",
        "rerouting_loss": pytest.approx(0.1),
        "unavailable": {"b": "out of order"},
        "around": None,
        "referred": False,
    }


@pytest.mark.parametrize(
    ("label", "written"),
    [
        (np.str_("ill"), "ill"),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.datetime64("2024-02-29"), "2024-02-29"),
        (date(2024, 2, 29), "2024-02-29"),
        (np.bytes_(b"ill"), "ill"),
        (float("nan"), None),
    ],
)
def test_a_label_of_any_type_becomes_plain(label, written):
    assert plain(label) == written
    assert type(plain(label)) is type(written)
