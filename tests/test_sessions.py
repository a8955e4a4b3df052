"""Claims about sessions: what is refused, what a state holds, and who may change it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from sensortree import Program, Sensor, SensorTreeClassifier, SensorTreeError
from sensortree.exceptions import DataError, SensorError, SessionError

BOTH = {"sensors": ["a", "b"]}
A_FIRST = {"sensors": ["a"], "negative": {"sensors": ["a"]}, "positive": BOTH}
KEY = b"sixteen bytes or more"
NAN = float("nan")


class Fails:
    """A classifier that is out of order."""

    def predict_proba(self, readings):
        raise RuntimeError("out of order")


def ordinals(days):
    return days.map(date.toordinal)


def nested(depth=100_000):
    """A list within a list within a list, deeper than recursion goes."""
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.fixture(scope="module")
def policy():
    """Buys a, then b for positive rows: a reads two numbers, b a category for 1.5 + fee."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a0", "a1"])
    frame["b0"] = rng.choice(["red", "green"], 80)
    frame["price"] = rng.choice([1.0, 2.0], 80)
    sensors = {
        "a": Sensor(["a0", "a1"], cost=0.1, group="g"),
        "b": Sensor(["b0"], "price", OneHotEncoder(), group="g", fee=0.2),
    }
    y = frame["a0"] + (frame["b0"] == "red") > 0
    model = SensorTreeClassifier(
        sensors, structure=A_FIRST, program=Program(decision_features="raw"), cv=None
    )
    fitted = model.fit(frame, y).policy_
    coef = np.zeros_like(fitted.decisions[0].coef)
    coef[0] = 1.0
    return replace(fitted, decisions=(replace(fitted.decisions[0], coef=coef),))


@pytest.fixture(scope="module")
def tolerant():
    """Buys one number, which may be missing, and a second one."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[::7, 0] = NAN
    model = SensorTreeClassifier(
        {"a": [0], "b": [1]}, structure=BOTH, classifier="boosted", cv=None
    )
    return model.fit(X, X[:, 1] > 0).policy_


def begun(policy, **given):
    """A session in which all kinds of things have happened."""
    session = policy.session({"a": [1.0, 2.0]}, 9.0, {"b": 1.5}, **given)
    session.tell("a", [2.0, 2.5], replace=True)
    session.unavailable("b")
    session.tell("b", ["red"])
    return session


def shown(session):
    """All that a session shows."""
    step = session.step
    return session.to_dict(), session.spent, step[:7], step.proba.tolist()


# what is told -----------------------------------------------------------------------------

BAD = {
    "a value within a value": ([[1.0], 2.0], "told a list for one of its columns"),
    "a mapping as a value": ([{}, 2.0], "told a dict for one of its columns"),
    "an array as a value": ([np.ones(1), 2.0], "told a ndarray for one of its columns"),
    "a table": (np.ones((1, 2)), r"a table of shape \(1, 2\); tell the values of one"),
    "a frame": (pd.DataFrame({"a0": [1.0], "a1": [2.0]}), "a table of shape"),
    "a set": ({1.0, 2.0}, "a set, which has no order"),
    "a number beyond all floats": ([10**400, 1.0], "a number that is too large"),
    "a number beyond all text": ([10**9999, 1.0], "a number that is too large"),
    "a fraction beyond all floats": ([Fraction(10**400), 1.0], "that is too large"),
    "nested lists": ([nested(), 2.0], "told a list for one of its columns"),
    "an object": ([object(), 2.0], "of sensor 'a', column 'a0', is not a number"),
    "an imaginary number": ([1j, 2.0], "column 'a0', is not a number"),
    "nothing": ([], "told 0 values, but reads 2 columns"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_value_is_refused_and_nothing_changes(policy, case):
    values, message = BAD[case]
    session = policy.session(prices={"b": 1.5})
    before = shown(session)
    with pytest.raises(DataError, match=message):
        session.tell("a", values)
    assert shown(session) == before


def test_a_category_that_nobody_has_seen_is_refused(policy):
    session = policy.session({"a": [1.0, 2.0]}, prices={"b": 1.5})
    before = shown(session)
    with pytest.raises(DataError, match=r"unknown categories \['blue'\]"):
        session.tell("b", ["blue"])
    assert shown(session) == before


def reads_days():
    """A policy of one sensor, a day that a transformer turns into a number."""
    X = pd.DataFrame({"day": [date(2020, 1, 1 + day % 28) for day in range(60)]})
    model = SensorTreeClassifier(
        {"when": Sensor(["day"], transformer=FunctionTransformer(ordinals))},
        structure={"sensors": ["when"]},
        cv=None,
    )
    return model.fit(X, np.arange(60) % 28 > 14).policy_


def test_what_a_transformer_cannot_read_is_refused_with_its_words():
    session = reads_days().session()
    with pytest.raises(
        DataError, match=r"'when' cannot read what it was told \(TypeError: .*'int'"
    ):
        session.tell("when", [3])
    assert session.to_dict()["log"] == []


@pytest.mark.parametrize(
    "values",
    [
        [np.float32(1.0), np.int64(2)],
        [Fraction(1), Decimal(2)],
        np.array([1, 2]),
        pd.Series([1.0, 2.0]),
        (np.array(1.0), True + 1),
    ],
)
def test_numbers_of_any_type_may_be_told_and_written(policy, values):
    session = policy.session(prices={"b": 1.5})
    session.tell("a", values)
    assert json.loads(json.dumps(session.to_dict()))["log"][0][2] == [1.0, 2.0]


@pytest.mark.parametrize("sensor", [None, 3, ["a"], {"a": 1}, np.array(["a", "b"])])
def test_a_sensor_is_given_by_its_name(policy, sensor):
    session = policy.session(prices={"b": 1.5})
    with pytest.raises(SensorError, match="a sensor is given by its name, got"):
        session.tell(sensor, [1.0, 2.0])
    with pytest.raises(SensorError, match="a sensor is given by its name, got"):
        session.unavailable(sensor)


@pytest.mark.parametrize("known", [["a"], "a", 3, [("a", [1.0, 2.0])]])
def test_what_is_known_is_a_mapping(policy, known):
    for ask in (policy.session, policy.step):
        with pytest.raises(DataError, match="known must be a mapping of sensors"):
            ask(known, prices={"b": 1.5})


@pytest.mark.parametrize("what", ["free", "unavailable"])
def test_a_step_refuses_names_of_no_sensor(policy, what):
    for names, message in (
        (["zzz"], "'zzz' is not a sensor"),
        ("a", f"{what} must list names of sensors, got str; write {what}="),
        (3, f"{what} must list names of sensors, got int"),
        ([["a"]], "a sensor is given by its name, got list"),
    ):
        with pytest.raises(SensorError, match=message):
            policy.step({}, prices={"b": 1.5}, **{what: names})


def test_a_session_is_what_it_was_if_a_classifier_fails():
    X = np.random.default_rng(0).normal(size=(60, 2))
    tree = {"sensors": [], "negative": {"sensors": ["b"]}, "positive": A_FIRST}
    model = SensorTreeClassifier({"a": [0], "b": [1]}, structure=tree, cv=None)
    policy = model.fit(X, X[:, 0] > 0).policy_
    upward = np.zeros_like(policy.decisions[0].coef)
    upward[-1] = 1.0
    policy = replace(
        policy,
        decisions=(replace(policy.decisions[0], coef=upward), policy.decisions[1]),
        classifiers={**policy.classifiers, frozenset({"a"}): Fails()},
    )
    session = policy.session()
    session.unavailable("b")
    before = shown(session)
    with pytest.raises(RuntimeError, match="out of order"):
        session.tell("a", [1.0])  # it is paid for, and then judged
    assert shown(session) == before
    assert session.ask().sensor == "a"


# limits and prices ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", ["NaN", "negative", "infinite", "beyond", "far beyond"]
)
def test_a_limit_or_price_is_finite_and_at_least_0(tolerant, case):
    amounts = {"NaN": NAN, "negative": -1, "infinite": np.inf, "beyond": 10**400}
    amount = amounts.get(case, 10**9999)
    with pytest.raises(SensorError, match="limit of a session must be finite and at"):
        tolerant.session(limit=amount)
    if amount == amount:
        with pytest.raises(SensorError, match="price of sensor 'b' must be finite and"):
            tolerant.session(prices={"b": amount})


@pytest.mark.parametrize("amount", ["3", True, [3.0], nested(), Decimal(3)])
def test_a_limit_or_price_is_a_number(tolerant, amount):
    with pytest.raises(SensorError, match="limit of a session must be a number, got"):
        tolerant.session(limit=amount)
    with pytest.raises(SensorError, match="price of sensor 'b' must be a number, got"):
        tolerant.session(prices={"b": amount})


@pytest.mark.parametrize("prices", [[1.0, 2.0], "b", 3.0, {"b"}])
def test_prices_are_a_mapping(tolerant, prices):
    with pytest.raises(SensorError, match=r"prices must be a mapping .*\{'a': 12.5\}"):
        tolerant.session(prices=prices)


def test_a_price_may_be_given_for_any_sensor_and_for_no_others(tolerant):
    assert tolerant.step({"a": [0.0]}, prices={"b": 7.5}).cost == 7.5
    assert tolerant.step({"a": [0.0]}, prices={"b": np.float32(7.5)}).cost == 7.5
    with pytest.raises(SensorError, match="'zzz' is not a sensor"):
        tolerant.session(prices={"zzz": 1.0})
    with pytest.raises(SensorError, match="a sensor is given by its name, got int"):
        tolerant.session(prices={1: 1.0})


@pytest.mark.parametrize("own", [None, NAN, np.float64(NAN)])
def test_none_or_nan_is_the_sensors_own_price(tolerant, own):
    assert tolerant.step({"a": [0.0]}, prices={"a": 9.0, "b": own}).cost == 1.0
    state = tolerant.session(prices={"a": 9.0, "b": own}).to_dict()
    assert state["prices"] == {"a": 9.0, "b": None}


@pytest.mark.parametrize("prices", [None, {}, {"a": 1.0}, {"b": None}, {"b": NAN}])
def test_a_price_that_is_a_column_must_be_given(policy, prices):
    with pytest.raises(
        SensorError, match=r"differs between .* prices=\{'b': \.\.\.\}\.$"
    ):
        policy.session(prices=prices)


def test_a_price_that_varied_in_fit_must_be_given_or_said_to_be_the_sensors_own():
    X = np.random.default_rng(0).normal(size=(60, 2))
    prices = np.tile([[NAN, 4.0], [NAN, 4.0]], (30, 1))
    model = SensorTreeClassifier(
        {"a": [0], "b": [1]}, costs={"a": 1.0, "b": 4.0}, structure=BOTH, cv=None
    ).fit(X, X[:, 0] > 0, prices=prices)
    with pytest.raises(SensorError, match=r"\{'b': \.\.\.\} \(None for its own price"):
        model.policy_.session()
    assert model.policy_.step({"a": [0.0]}, prices={"b": None}).cost == 4.0


def test_what_a_session_shows_adds_up_on_paper():
    # As binary fractions 0.1 + 0.2 is 0.30000000000000004, 0.7 - 0.4 0.29999999999999993.
    X = np.random.default_rng(0).normal(size=(60, 3))
    sensors = {
        "a": Sensor([0], cost=0.1),
        "b": Sensor([1], cost=0.2, group="g"),
        "c": Sensor([2], cost=0.7, discounted_cost=0.3, group="g"),
    }
    model = SensorTreeClassifier(
        sensors, structure={"sensors": ["a", "b", "c"]}, cv=None
    ).fit(X, X[:, 0] > 0)
    for prices in (None, {"a": 0.1}):
        session = model.policy_.session(prices=prices)
        assert session.ask().worst_case_remaining == 0.6
        session.tell("a", [0.0])
        session.tell("b", [0.0])
        step = session.ask()
        assert (step.spent, step.cost, step.worst_case_remaining) == (0.3, 0.3, 0.3)
        session.tell("c", [0.0])
        assert session.decision().spent == 0.6


def test_what_a_group_gives_for_nothing_adds_up_to_0():
    # As binary fractions 0.1 + 0.2 + 0.3 - (0.3 + 0.2 + 0.1) is not 0.
    X = np.random.default_rng(0).normal(size=(60, 4))
    sensors = {"a": Sensor([0], cost=1.0, group="g")} | {
        name: Sensor([column], cost=column / 10, discounted_cost=0.0, group="g")
        for column, name in enumerate("bcd", start=1)
    }
    model = SensorTreeClassifier(sensors, structure={"sensors": list("abcd")}, cv=None)
    policy = model.fit(X, X[:, 0] > 0).policy_
    for prices in (None, {"b": 0.1}):
        step = policy.step({"a": [0.0]}, prices=prices)
        assert (step.cost, step.worst_case_remaining) == (0.0, 0.0)


# states -----------------------------------------------------------------------------------


def test_a_missing_value_is_null_in_a_state(tolerant):
    for missing in (None, NAN, pd.NA, np.datetime64("NaT")):
        session = tolerant.session()
        session.tell("a", [missing])
        state = json.loads(json.dumps(session.to_dict(), allow_nan=False))
        assert state["log"] == [["tell", "a", [None], False]]
        resumed = tolerant.resume(state)
        assert shown(resumed) == shown(session)
        resumed.tell("a", [NAN])  # the same
        assert resumed.to_dict() == state


def test_a_state_with_nan_is_read_as_well(tolerant):
    session = tolerant.session({"a": [NAN]})
    state = session.to_dict()
    state["known"]["a"][0] = NAN
    assert shown(tolerant.resume(state)) == shown(session)


def test_what_json_cannot_hold_may_be_told_but_not_put_away():
    session = reads_days().session()
    session.tell("when", [date(2020, 1, 20)])
    assert session.decision().label
    with pytest.raises(SessionError, match="'when' was told date, which JSON cannot"):
        session.to_dict()


FIELDS = {
    "format": "other",
    "format_version": 2,
    "model": "another",
    "known": {"a": [1.0, 2.0], "b": ["red"]},
    "limit": 100.0,
    "prices": {"b": 0.0},
    "log": [],
}


def test_a_state_is_a_mapping(policy):
    for state in ([], "state", None, 3, nested(), b"{}"):
        with pytest.raises(SessionError, match=r"is a mapping, got .*to_dict"):
            policy.resume(state)


@pytest.mark.parametrize("field", FIELDS)
def test_a_state_lacks_no_field(policy, field):
    state = begun(policy).to_dict()
    del state[field]
    with pytest.raises(SessionError, match=r"to_dict\(\) returned"):
        policy.resume(state)


WRONG = {
    "format": ("text", ["x"], "is not that of a session"),
    "a version that is no number": ("format_version", True, "is not that of a session"),
    "model": ("model", 3, "'model' of a session's state must be text, got int"),
    "known": ("known", [["a", [1.0]]], "'known' .* must be a mapping, got list"),
    "prices": ("prices", [1.0, 2.0], "'prices' .* must be a mapping, got list"),
    "log": ("log", {"tell": "a"}, "'log' .* must be a list, got dict"),
    "an event": ("log", ["tell"], "holds a str that is no event"),
    "an unknown event": ("log", [["buy", "a"]], "holds a list that is no event"),
    "an event too short": ("log", [["tell", "a"]], "holds a list that is no event"),
    "an event too long": ("log", [["unavailable", "a", 1]], "that is no event"),
    "an event of no sensor": ("log", [["unavailable", 3]], "that is no event"),
    "values that are text": ("log", [["tell", "b", "red", False]], "that is no event"),
    "replace": ("log", [["tell", "b", ["red"], "no"]], "that is no event"),
    "nested lists": ("log", nested(), "that is no event"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_state_of_another_form_is_refused(policy, case):
    field, value, message = WRONG[case]
    state = {**begun(policy).to_dict(), field if field != "text" else "format": value}
    with pytest.raises(SessionError, match=message):
        policy.resume(state)


# signatures -------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [KEY, KEY.decode(), "\u20ac" * 6])
def test_a_signed_session_is_resumed_with_its_key_and_signs_on(policy, key):
    session = begun(policy, key=key)
    state = json.loads(json.dumps(session.to_dict()))
    resumed = policy.resume(state, key=key)
    assert shown(resumed) == shown(session)
    assert resumed.to_dict()["signature"] == state["signature"]


def test_text_and_its_bytes_are_the_same_key(policy):
    policy.resume(begun(policy, key=KEY).to_dict(), key=KEY.decode())


def test_a_signature_outlives_a_passage_through_javascript(policy):
    # JSON.stringify(JSON.parse(...)) writes 2.0 as 2, and keys may come in any order.
    state = begun(policy, key=KEY).to_dict()
    text = json.dumps(dict(reversed(state.items())))
    assert "2.0" in text
    policy.resume(json.loads(text.replace(".0", "")), key=KEY)


@pytest.mark.parametrize("field", FIELDS)
def test_a_signed_state_of_which_any_field_was_changed_is_refused(policy, field):
    state = begun(policy, key=KEY).to_dict()
    assert state[field] != FIELDS[field]
    state[field] = FIELDS[field]
    with pytest.raises(SessionError, match=r"signature of the state is|not that of a"):
        policy.resume(state, key=KEY)
    del state[field]
    with pytest.raises(SessionError, match=r"signature of the state is|not that of a"):
        policy.resume(state, key=KEY)


def test_a_field_that_was_added_to_a_signed_state_is_refused(policy):
    state = {**begun(policy, key=KEY).to_dict(), "more": 1}
    with pytest.raises(SessionError, match="signature of the state is wrong"):
        policy.resume(state, key=KEY)


@pytest.mark.parametrize("signature", [None, 3, "", "0" * 64, "\u20ac", "\ud800"])
def test_a_state_without_its_signature_is_refused(policy, signature):
    state = begun(policy, key=KEY).to_dict()
    state["signature"] = signature
    with pytest.raises(
        SessionError, match=r"no signature, so|signature of the state is"
    ):
        policy.resume(state, key=KEY)


def test_an_unsigned_state_is_refused_where_there_is_a_key(policy):
    with pytest.raises(SessionError, match="no signature, so it may be anybody's"):
        policy.resume(begun(policy).to_dict(), key=KEY)


def test_a_state_that_was_signed_with_another_key_is_refused(policy):
    with pytest.raises(SessionError, match="signature of the state is wrong"):
        policy.resume(begun(policy, key=KEY).to_dict(), key=KEY + b"x")


def test_a_signed_state_is_refused_without_a_key(policy):
    with pytest.raises(SessionError, match="the state is signed; resume it with key="):
        policy.resume(begun(policy, key=KEY).to_dict())


@pytest.mark.parametrize("inner", [nested(), {1: 2}, {"x": np.inf}, object()])
def test_what_cannot_be_signed_is_refused(policy, inner):
    state = {**begun(policy, key=KEY).to_dict(), "log": inner}
    with pytest.raises(SessionError, match="holds what JSON cannot"):
        policy.resume(state, key=KEY)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (b"short", "at least 16 bytes, got 5; make one with secrets"),
        ("", "at least 16 bytes, got 0"),
        (12345678901234567, "must be bytes or text, got int"),
    ],
)
def test_a_key_is_long_enough(policy, key, message):
    with pytest.raises(SessionError, match=message):
        policy.session(prices={"b": 1.5}, key=key)
    with pytest.raises(SessionError, match=message):
        policy.resume(begun(policy).to_dict(), key=key)


# anything at all --------------------------------------------------------------------------

JUNK = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2.5,
        NAN,
        float("inf"),
        1e100,
        -1e100,
        10**400,
        2**70,
    ),
    *("", "a", "b", "red", "blue", "tell", "unavailable", "nan", "\ud800", "a" * 1000),
    *([], {}, [[]], [1.0, 2.0], ["red"], [None], [[1.0, 2.0]], {"a": 1}, {"b": [1]}),
    *({"a0": 1.0, "a1": 2.0}, {"b0": "green"}, ["tell", "a", [0.0, 0.0], True]),
    *(["unavailable", "b"], ["unavailable", "a"], nested(5000)),
]


def places_within(value, path=()):
    """Where a value could be changed: every member of every list and mapping in it."""
    members = []
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    for name, inner in members:
        yield (*path, name)
        yield from places_within(inner, (*path, name))


def mutated(state, rng):
    """A state with something in it replaced, left out, doubled or swapped."""
    state = copy.deepcopy(state)
    for _ in range(int(rng.integers(1, 4))):
        places = list(places_within(state))
        *way, last = places[int(rng.integers(len(places)))]
        holder = state
        for name in way:
            holder = holder[name]
        kind = rng.choice(["replace", "leave out", "double", "swap"])
        if kind == "leave out":
            del holder[last]
        elif kind == "double" and isinstance(holder, list):
            holder.insert(last, copy.deepcopy(holder[last]))
        elif kind == "swap" and isinstance(holder, list):
            other = int(rng.integers(len(holder)))
            holder[last], holder[other] = holder[other], holder[last]
        else:
            holder[last] = JUNK[int(rng.integers(len(JUNK)))]
            break  # what is nested is not gone through again
    return state


@pytest.mark.parametrize("seed", range(4))
def test_any_state_is_a_session_or_refused_in_our_own_words(policy, seed):
    rng = np.random.default_rng(seed)
    state = begun(policy).to_dict()
    refused = 0
    for _ in range(150):
        try:
            session = policy.resume(mutated(state, rng))
        except SensorTreeError:
            refused += 1
            continue
        written = json.loads(json.dumps(session.to_dict(), allow_nan=False))
        assert shown(policy.resume(written)) == shown(session)
    assert 0 < refused < 150


@pytest.mark.filterwarnings("ignore::sensortree.exceptions.UnseenWarning")
@pytest.mark.parametrize("seed", range(4))
def test_anything_told_is_taken_or_refused_and_then_nothing_changes(policy, seed):
    rng = np.random.default_rng(seed)
    session = policy.session(limit=2.0, prices={"b": 1.5})
    refused = 0
    for _ in range(150):
        one, other, sensor = (JUNK[i] for i in rng.integers(len(JUNK), size=3))
        sensor = sensor if rng.random() < 0.2 else str(rng.choice(["a", "b"]))
        values = one if rng.random() < 0.5 else [one, other]
        before = shown(session)
        try:
            if rng.random() < 0.2:
                session.unavailable(sensor)
            else:
                session.tell(sensor, values, bool(rng.random() < 0.5))
        except SensorTreeError:
            refused += 1
            assert shown(session) == before
        assert shown(policy.resume(session.to_dict())) == shown(session)
    assert 0 < refused < 150
