"""Claims about values that training never saw: one rule, wherever they come from."""

from __future__ import annotations

import json
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

import sensortree
from sensortree import Leaf, Sensor, SensorTree, SensorTreeClassifier
from sensortree.exceptions import DataError, ModelFileError, UnseenWarning
from sensortree.persistence.model import read_model, write_model
from sensortree.results import MaskedPolicy
from sensortree.sensors.seen import MARGIN

N = 120
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(20, 80, N),
        "sex": RNG.choice(["F", "M"], N),
        "crp": np.where(RNG.random(N) < 0.2, np.nan, RNG.uniform(0, 10, N)),
    }
)
FRAME.loc[[0, 1], "age"] = 20.0, 80.0  # so that its reach is -40 to 140
Y = (FRAME["age"] > 50) ^ (FRAME["sex"] == "F")
# Everybody pays for the intake and nobody for blood.
SENSORS = {"intake": Sensor(["age", "sex"], 0.01), "blood": Sensor(["crp"], 1e6)}


@pytest.fixture(scope="module")
def model():
    model = SensorTreeClassifier(SENSORS, structure="cascade", cv=3).fit(FRAME, Y)
    assert (model.acquired(FRAME) == [True, False]).all()
    return model


def one(**values):
    """A row that is like those of training but for some values."""
    return pd.DataFrame([{"age": 50.0, "sex": "F", "crp": 1.0, **values}])


ODD = {
    "a level": (
        {"sex": "female"},
        "'female' in row 0, column 'sex' of sensor 'intake'",
    ),
    "a number": (
        {"age": -87000},
        "-87000 in row 0, column 'age' of sensor 'intake'; tra",
    ),
    "a first gap": (
        {"age": np.nan},
        "no value in row 0, column 'age' of sensor 'intake'",
    ),
    "a gap of text": (
        {"sex": None},
        "no value in row 0, column 'sex' of sensor 'intake'",
    ),
}
ANSWERS = [
    "predict",
    "predict_proba",
    "apply",
    "acquired",
    "acquisition_cost",
    "explain",
]


@pytest.mark.parametrize("method", ANSWERS)
@pytest.mark.parametrize("case", ODD)
def test_every_answer_warns_once_of_what_training_never_saw(model, case, method):
    values, message = ODD[case]
    with pytest.warns(UnseenWarning, match=message) as told:
        getattr(model, method)(one(**values))
    assert len(told) == 1
    assert told[0].filename == __file__


@pytest.mark.parametrize("method", ANSWERS)
@pytest.mark.parametrize("case", ODD)
def test_a_strict_model_refuses_it(model, case, method):
    values, message = ODD[case]
    strict = load_again(model).set_strict()
    with pytest.raises(DataError, match=message):
        getattr(strict, method)(one(**values))
    getattr(strict, method)(one())  # and nothing else


def load_again(model):
    """A copy of a model, by way of its file."""
    with tempfile.TemporaryDirectory() as folder:
        sensortree.save(model, Path(folder) / "model.json")
        return sensortree.load(Path(folder) / "model.json")


def told(values):
    return {"age": values["age"].iloc[0], "sex": values["sex"].iloc[0]}


@pytest.mark.parametrize("case", ODD)
def test_tables_sessions_steps_and_oracles_agree(model, case):
    values, _ = ODD[case]
    row = one(**values)
    policy, intake = model.policy_, told(row)
    asks = {
        "session": lambda policy: policy.session().tell("intake", intake),
        "known": lambda policy: policy.session({"intake": intake}),
        "step": lambda policy: policy.step({"intake": intake}),
        "acquire": lambda policy: policy.acquire(lambda sensor, columns: intake),
        "masked": lambda policy: MaskedPolicy(policy).predict(row, [[True, False]]),
        "act": lambda policy: MaskedPolicy(policy).act(row, [[True, False]]),
    }
    for name, ask in asks.items():
        with pytest.warns(UnseenWarning) as said:
            ask(policy)
        assert len(said) == 1, name
        with pytest.raises(DataError, match="values that training never saw"):
            ask(replace(policy, strict=True))


def test_a_session_is_strict_by_itself_and_stays_as_it_was(model):
    session = model.policy_.session(strict=True)
    before = session.to_dict()
    with pytest.raises(
        DataError, match="'female' in column 'sex' of sensor 'intake'; tr"
    ):
        session.tell("intake", [50.0, "female"])
    assert session.to_dict() == before
    session.tell("intake", [50.0, "F"])
    assert session.unseen == ()


def test_a_session_that_comes_back_does_not_warn_again(model):
    session = model.policy_.session()
    with pytest.warns(UnseenWarning):
        session.tell("intake", [50.0, "female"])
    again = model.policy_.resume(session.to_dict())
    assert [found.value for found in again.unseen] == ["female"]


def test_what_nobody_bought_is_not_looked_at(model):
    model.predict(one(crp=-1e9))


def test_a_gap_is_nothing_new_where_training_had_some():
    both = SensorTree(Leaf(["intake", "blood"]))
    model = SensorTreeClassifier(SENSORS, structure=both, cv=3).fit(FRAME, Y)
    model.predict(one(crp=np.nan))
    with pytest.warns(UnseenWarning, match="column 'crp'"):
        model.predict(one(crp=1e9))


@pytest.mark.parametrize(
    ("age", "odd"),
    [
        (20 - 60 * MARGIN, 0),
        (19 - 60 * MARGIN, 1),
        (80 + 60 * MARGIN, 0),
        (81 + 60 * MARGIN, 1),
        (20, 0),
    ],
)
def test_a_number_may_be_twice_as_far_outside_as_those_of_training_are_apart(
    model, age, odd
):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.predict(one(age=age))
    assert len(said) == odd


def test_a_column_that_never_varied_does_not_say_what_is_far():
    X = np.column_stack([np.linspace(-1, 1, 60), np.zeros(60)])
    both = SensorTree(Leaf(["x0", "x1"]))
    model = SensorTreeClassifier(structure=both).fit(X, X[:, 0] > 0).set_strict()
    model.predict([[0.5, 1e6]])


def test_a_report_counts_rows_by_column(model):
    odd = FRAME.assign(sex=FRAME["sex"].where(FRAME.index > 2, "X"))
    odd.loc[5, "age"] = 1e6
    with pytest.warns(UnseenWarning, match=r"\(3 such rows\)"):
        report = model.report(odd, Y)
    found = [(u.column, u.what, u.row, u.n_rows) for u in report.unseen]
    assert found == [("sex", "level", 0, 3), ("age", "range", 5, 1)]
    assert "never seen in training" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["unseen"][0]["column"] == "sex"


def test_rows_of_several_leaves_are_told_together():
    X = RNG.normal(size=(200, 2))
    y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    model = SensorTreeClassifier(structure="exhaustive", cost_weight=0.001).fit(X, y)
    odd = np.full((200, 2), 1e6) * np.sign(X)
    assert len(np.unique(model.apply(X))) > 1
    with pytest.warns(UnseenWarning, match=r"\(200 such rows\)") as said:
        model.predict(odd)
    assert len(said) == 1


def test_columns_of_a_users_transformer_are_looked_at_too():
    encoder = OneHotEncoder(handle_unknown="ignore")
    sensors = {"intake": Sensor("sex", 0.01, encoder), "age": Sensor("age", 0.01)}
    X = FRAME[["sex", "age"]]
    all_of_it = SensorTree(Leaf(["intake", "age"]))
    model = SensorTreeClassifier(sensors, structure=all_of_it, cv=3).fit(X, Y)
    with pytest.warns(UnseenWarning, match="'female' in row 0, column 'sex'"):
        model.predict(one(sex="female")[["sex", "age"]])


def test_rows_of_training_are_never_odd(model):
    model.set_strict(True).predict(FRAME)
    model.set_strict(False)


def test_what_was_seen_is_in_the_file_and_not_in_the_way_of_older_ones(model, tmp_path):
    loaded = load_again(model)
    assert loaded.policy_.reader.seen == model.policy_.reader.seen
    assert loaded.policy_.digest == model.policy_.digest
    forgetful = replace(model.policy_, reader=replace(model.policy_.reader, seen=None))
    sensortree.save(forgetful, tmp_path / "model.json")
    sensortree.load(tmp_path / "model.json").predict(one(sex="female"))


WRONG = {
    "a share above 1": {"missing": 1.5, "levels": ["F"]},
    "numbers out of order": {"missing": 0.0, "low": 3.0, "middle": 2.0, "high": 4.0},
    "a level that is a list": {"missing": 0.0, "levels": [["F"]]},
    "something else": {"missing": 0.0, "colour": "red"},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_says_nonsense_of_training_is_refused(model, case):
    document = {
        "format": "sensortree-model",
        "format_version": 2,
        "digest": "",
        **write_model(model, None),
    }
    document["reader"]["seen"][0][1] = WRONG[case]
    with pytest.raises(ModelFileError, match="seen"):
        read_model(document)


def test_strictness_is_no_part_of_what_a_model_is(model):
    strict = replace(model.policy_, strict=True)
    assert strict.digest == model.policy_.digest
