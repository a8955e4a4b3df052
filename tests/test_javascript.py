"""The JavaScript runtime says what Python says: rows, sessions, refusals."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import models
import numpy as np
import pytest
from conftest import data_folder
from node import NODE, RUNTIME, follow, needs_node, python_rows, run_job, told_rows
from shops import open_shop

from sensortree import (
    AlternatingTreeClassifier,
    ASTCClassifier,
    CascadeClassifier,
    CSTCClassifier,
    MyopicClassifier,
    Program,
    Sensor,
    SensorTreeClassifier,
    StaticSubsetClassifier,
)
from sensortree.persistence.files import render
from sensortree.persistence.model import write_model
from sensortree.results import Reason

pytestmark = needs_node

EXACT = ("label", "place", "acquired", "route", "referred")
CLOSE = 1e-12  # of probabilities: sums are made in another order


def differences(found: list[Any], expected: list[Any]) -> list[Any]:
    """Rows whose route, answer, cost or purchases differ, or whose probabilities do."""
    assert len(found) == len(expected)
    odd = []
    for row, (ours, theirs) in enumerate(zip(expected, found, strict=True)):
        wrong = [key for key in EXACT if ours[key] != theirs[key]]
        # A session rounds money to fifteen digits, so that it adds up on paper.
        if ours["spent"] != pytest.approx(theirs["spent"], rel=1e-14, abs=0):
            wrong.append("spent")
        if np.abs(np.subtract(ours["proba"], theirs["proba"])).max() > CLOSE:
            wrong.append("proba")
        odd += [(row, key, ours[key], theirs[key]) for key in wrong]
    return odd


# models of every kind ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", models.KINDS)
def test_every_kind_of_model_answers_every_row_as_python_does(kind, tmp_path):
    model, X, prices = models.fitted(kind)
    rows = run_job(model.policy_, tmp_path, rows=told_rows(model, X, prices))["rows"]
    assert differences(rows, python_rows(model, X, prices)) == []


def test_a_level_that_training_never_saw_goes_where_python_sends_it(tmp_path):
    model, X, _ = models.fitted("boosted, levels")
    asked = X[:60].assign(town="elsewhere")
    with pytest.warns(match="training never saw: 'elsewhere'"):
        expected = python_rows(model, asked, None)
    rows = run_job(model.policy_, tmp_path, rows=told_rows(model, asked, None))["rows"]
    assert differences(rows, expected) == []


REAL = {
    "heart": lambda: SensorTreeClassifier(
        cost_weight=0.0003, structure="cascade", program=Program(fallback=False)
    ),
    "pima": lambda: SensorTreeClassifier(
        cost_weight=0.002, classifier="boosted", structure="exhaustive"
    ),
    "pima, branched": lambda: SensorTreeClassifier(
        cost_weight=0.001, structure="branched"
    ),
    "pima, ASTC": lambda: ASTCClassifier(budget=20.0),
    "pima, CSTC": lambda: CSTCClassifier(cost_weight=0.01, depth=5),
    "heart, cascade": lambda: CascadeClassifier(cost_weight=0.0005),
    "heart, myopic": lambda: MyopicClassifier(reject=0.5),
    "heart, alternating": lambda: AlternatingTreeClassifier(
        cost_weight=0.002, structure="cascade"
    ),
    "landsat": lambda: SensorTreeClassifier(
        cost_weight=0.01, classifier="linear", structure="exhaustive"
    ),
    "landsat, static": lambda: StaticSubsetClassifier(cost_weight=0.01),
    "letter": lambda: SensorTreeClassifier(
        cost_weight=0.01, classifier="linear", structure="chain"
    ),
}
FILES = {"heart": "heart_cleveland", "landsat": "satimage"}


@cache
def real(name: str) -> tuple[Any, np.ndarray]:
    """A model learned on the training rows of a real data set, and all rows of it."""
    folder, set_name = data_folder(), name.partition(",")[0]
    assert folder is not None
    with np.load(folder / f"{FILES.get(set_name, set_name)}.npz") as arrays:
        data = {key: arrays[key] for key in arrays}
    X, y = data["X"].astype(np.float64), data["y"]
    there = ~np.isnan(X).any(axis=1)
    X, y = X[there], y[there]
    columns = {
        str(sensor): np.flatnonzero(data["sensor_of_feature"] == at).tolist()
        for at, sensor in enumerate(data["sensor_names"])
    }
    model = REAL[name]().set_params(
        sensors=columns,
        costs=dict(zip(columns, data["sensor_costs"].tolist(), strict=True)),
    )
    train = np.random.default_rng(0).permutation(len(X))[:1500]
    return model.fit(X[train], y[train]), X


@pytest.mark.parametrize("name", REAL)
def test_every_row_of_the_real_data_has_pythons_route_answer_and_cost(name, tmp_path):
    if data_folder() is None:
        pytest.skip(
            "no real data: SENSORTREE_DATA does not name a folder with letter.npz"
        )
    model, X = real(name)
    rows = run_job(model.policy_, tmp_path, rows=told_rows(model, X, None))["rows"]
    assert differences(rows, python_rows(model, X, None)) == []
    ends = {row["place"] for row in rows}
    assert len(ends) > 1 or "static" in name  # rows do take different ways


# sessions ---------------------------------------------------------------------------------


def random_script(
    rng: np.random.Generator, policy: Any, values: dict[str, list[Any]], prices: Any
) -> dict[str, Any]:
    """Answers, outages, corrections and mistakes in a random order, under a limit."""
    names, total = list(values), float(np.sum(policy.sensors.costs))

    def told(name: str) -> list[Any]:
        other = list(values)[int(rng.integers(len(values)))]
        numbers = values[name] if rng.random() < 0.8 else values[other]
        return list(numbers)

    free = [n for n in names if rng.random() < 0.1]
    events: list[list[Any]] = []
    for _ in range(int(rng.integers(1, 3 * len(names) + 2))):
        name = names[int(rng.integers(len(names)))]
        if rng.random() < 0.25:
            because = ["it is broken"] if rng.random() < 0.3 else []
            events.append(["unavailable", name, *because])
        else:
            events.append(["tell", name, told(name), bool(rng.random() < 0.5)])
    limit = None if rng.random() < 0.5 else float(np.round(total * rng.random(), 2))
    known = {name: values[name] for name in free}
    given = {"known": known, "limit": limit, "prices": prices}
    return {"given": given, "events": events}


def check_reason(ours: Reason, theirs: dict[str, Any]) -> None:
    """Why a step was taken: names, words and numbers."""
    told = {c.pop("name"): c for c in theirs["contributions"]}
    assert told.keys() == {c.name for c in ours.contributions}
    for each in ours.contributions:
        expected = {k: v for k, v in vars(each).items() if k != "name"}
        found = {key: told[each.name][key] for key in expected}
        assert found == pytest.approx(expected, abs=1e-9, rel=1e-9)
    words = {i.words: i.contribution for i in ours.influences}
    assert dict(theirs["influences"]) == pytest.approx(words, abs=1e-9)
    np.testing.assert_allclose(theirs["proba"], ours.proba, rtol=0, atol=CLOSE)
    change = None if ours.change is None else vars(ours.change)
    assert theirs["change"] == pytest.approx(change)
    assert theirs["bought"] == list(ours.bought)


def check_step(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """One step of a session, Python's and the runtime's."""
    for key in ("action", "sensor", "cost", "spent", "worst_case_remaining"):
        assert ours[key] == theirs[key], key
    assert list(ours["sensors"]) == theirs["sensors"]
    assert list(ours["columns"]) == theirs["columns"]
    np.testing.assert_allclose(theirs["proba"], ours["proba"], rtol=0, atol=CLOSE)
    why = ours["why"]
    assert (why is None) == (theirs["why"] is None)
    if why is not None:
        assert theirs["why"]["node"] == why.node
        assert theirs["why"]["score"] == pytest.approx(why.score, abs=1e-9, rel=1e-9)
        assert theirs["why"]["share"] == pytest.approx(why.share, abs=CLOSE)
        check_reason(why, theirs["why"])
    decision = ours["decision"]
    assert (decision is None) == (theirs["decision"] is None)
    if decision is not None:
        found = theirs["decision"]
        for key in (
            *("label", "spent", "saved", "place", "stopped_because", "around"),
            "referred",
        ):
            assert found[key] == getattr(decision, key), key
        assert found["acquired"] == list(decision.acquired)
        assert found["unavailable"] == decision.unavailable
        assert found["rerouting_loss"] == pytest.approx(
            decision.rerouting_loss, abs=CLOSE
        )


@pytest.mark.parametrize("seed", range(40))
def test_sessions_with_outages_limits_and_corrections_go_step_by_step(seed, tmp_path):
    """Random terms: groups, fees, prerequisites, prices by example, caps, losses."""
    shop, rng = open_shop(seed), np.random.default_rng(seed)
    policy = shop.model.policy_
    scripts = [
        random_script(rng, policy, shop.values(row), shop.told_prices(row))
        for row in range(len(shop.X))
    ]
    check_sessions(policy, scripts, tmp_path)


def check_sessions(policy: Any, scripts: list[Any], folder: Any) -> list[Any]:
    """Follow scripts in Python and in JavaScript; the decisions that were reached."""
    sessions = run_job(policy, folder, sessions=scripts)["sessions"]
    ends = []
    for script, found in zip(scripts, sessions, strict=True):
        expected = follow(policy, script)
        if expected is None:
            assert "refused" in found
            continue
        for ours, theirs in zip(expected["steps"], found["steps"], strict=True):
            if ours is None:
                assert theirs == {"refused": True}
            else:
                check_step(ours, theirs)
                ends.append(ours["decision"])
        assert found["state"] == json.loads(json.dumps(expected["state"]))
        policy.resume(found["state"])
    return [decision for decision in ends if decision is not None]


@pytest.mark.parametrize("terms", ["plain", "groups and prerequisites"])
def test_sessions_go_the_same_detours_around_what_cannot_be_had(terms, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    noise = 2 * np.array([0.6, 0.8, 1.0, 1.2]) * rng.normal(size=(500, 4))
    X = (2 * y[:, None] - 1) + noise
    sensors: Any = {name: Sensor([i], cost=1.0) for i, name in enumerate("abcd")}
    if terms != "plain":
        sensors = {
            "a": Sensor([0], cost=1.3, group="lab", fee=0.5),
            "b": Sensor([1], cost=1.1, group="lab", fee=0.7, one_of="method"),
            "c": Sensor([2], cost=0.9, after=["a"], one_of="method"),
            "d": Sensor([3], cost=0.4),
        }
    model = SensorTreeClassifier(sensors, cost_weight=0.01, outages=True).fit(X, y)
    policy, scripts = model.policy_, []
    for row in X[:150]:
        values = {name: [float(x)] for name, x in zip("abcd", row, strict=True)}
        script = random_script(rng, policy, values, {})
        for name in rng.permutation(list("abcd")).tolist():
            lost = rng.random() < 0.4
            told = ["unavailable", name] if lost else ["tell", name, values[name]]
            script["events"].insert(int(rng.integers(len(script["events"]) + 1)), told)
        scripts.append(script)
    ends = check_sessions(policy, scripts, tmp_path)
    assert len({decision.around for decision in ends}) > 2  # and None


# the documentation ------------------------------------------------------------------------


def test_the_example_of_the_documentation_runs(tmp_path):
    page = Path(__file__).parents[1] / "docs" / "deploying.md"
    (example,) = re.findall(r"^```js\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    model, X, _ = models.fitted("three classes")
    (tmp_path / "model.json").write_bytes(render(write_model(model, None)))
    (tmp_path / "runtime.js").write_text(RUNTIME.read_text("utf-8"), "utf-8")
    bought = {name: X[0, list(at)].tolist() for name, at in sold(model)}
    script = f"""
      const SensorTree = require("./runtime.js");
      const text = require("fs").readFileSync("model.json", "utf8");
      const buy = async (step) => ({json.dumps(bought)})[step.sensor];
      (async () => {{ {example.replace("session.decision();", "")}
        console.log(JSON.stringify(session.decision())); }})();
    """
    (tmp_path / "example.js").write_text(script, "utf-8")
    done = subprocess.run(
        [str(NODE), "example.js"], cwd=tmp_path, capture_output=True, check=True
    )
    decision = json.loads(done.stdout)
    assert decision["label"] == model.predict(X[:1])[0]
    assert decision["spent"] == model.acquisition_cost(X[:1])[0]


def sold(model: Any) -> Any:
    """Sensors of a model with their columns."""
    return zip(model.sensors_.names, model.sensors_.columns, strict=True)
