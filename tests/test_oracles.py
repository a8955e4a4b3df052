"""Claims about oracles: what happens to a session when one fails."""

from __future__ import annotations

import asyncio
import json

import pytest
from toys import forked_policy, toy_policy

from sensortree.exceptions import SessionError

READINGS = {"a": [1.0], "b": [2.0]}


def laboratory(sensor, columns):
    return READINGS[sensor]


def without(broken, error):
    """An oracle of which one sensor fails."""

    def oracle(sensor, columns):
        if sensor == broken:
            raise error
        return READINGS[sensor]

    return oracle


@pytest.mark.parametrize("error", [OSError("no line"), KeyboardInterrupt()])
def test_an_error_of_an_oracle_carries_the_session_which_can_go_on(error):
    with pytest.raises(type(error)) as caught:
        toy_policy().acquire(without("b", error))
    assert caught.value is error
    session = caught.value.session
    assert (session.spent, session.ask().sensor) == (1.0, "b")  # a was paid for
    assert session.run(laboratory).spent == 4.0


def test_the_error_says_where_what_was_bought_is():
    with pytest.raises(OSError, match="no line") as caught:
        toy_policy().acquire(without("b", OSError("no line")))
    (note,) = caught.value.__notes__
    assert "'b'" in note
    assert ".session" in note


def test_a_sensor_whose_oracle_fails_is_unavailable_by_choice():
    # With a = 1 the policy wants b; without it, it answers where it stands.
    oracle = without("b", OSError("no line"))
    decision = toy_policy().acquire(oracle, on_error="unavailable")
    assert decision.label == "no"
    assert decision.stopped_because == "unavailable"
    assert decision.unavailable == {"b": "OSError: no line"}
    assert decision.acquired == ("a",)


def test_an_error_without_words_is_told_by_its_type():
    decision = toy_policy().acquire(without("b", OSError()), on_error="unavailable")
    assert decision.unavailable == {"b": "OSError"}


def test_none_says_unavailable_without_a_reason():
    decision = toy_policy().acquire(lambda sensor, columns: None)
    assert decision.unavailable == {"a": None}


def test_a_reading_that_cannot_be_used_is_unavailable_by_choice():
    readings = {"a": [1.0], "b": [1.0, 2.0]}
    decision = toy_policy().acquire(
        lambda sensor, columns: readings[sensor], on_error="unavailable"
    )
    assert "DataError" in decision.unavailable["b"]
    assert decision.spent == 1.0


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_who_wants_to_leave_is_never_an_unavailable_sensor(error):
    with pytest.raises(type(error)):
        toy_policy().acquire(without("b", error), on_error="unavailable")


def test_a_sensor_that_is_had_after_all_has_not_failed():
    session = toy_policy().session()
    session.unavailable("b", because="the device is being cleaned")
    session.tell("a", [1.0])
    session.tell("b", [2.0])
    assert session.decision().unavailable == {}


def test_why_a_sensor_failed_survives_the_state():
    policy = toy_policy()
    session = policy.session()
    session.unavailable("b", because="the device is being cleaned")
    again = policy.resume(json.loads(json.dumps(session.to_dict())))
    again.tell("a", [1.0])
    assert again.decision().unavailable == {"b": "the device is being cleaned"}


def test_a_state_without_reasons_is_as_it_always_was():
    session = toy_policy().session()
    session.unavailable("b")
    assert session.to_dict()["log"] == [["unavailable", "b"]]


def test_a_reason_must_be_text():
    with pytest.raises(SessionError, match="must be text, got int"):
        toy_policy().session().unavailable("b", because=3)


def test_another_way_to_treat_errors_is_refused_before_anything_is_bought():
    called = []
    with pytest.raises(SessionError, match="'raise' or 'unavailable', got 'ignore'"):
        toy_policy().acquire(lambda *asked: called.append(asked), on_error="ignore")
    assert called == []


# awaited ----------------------------------------------------------------------------------


def slow(sensor_that_hangs):
    async def oracle(sensor, columns):
        if sensor == sensor_that_hangs:
            await asyncio.sleep(60)
        return READINGS[sensor]

    return oracle


def test_a_sensor_that_takes_too_long_is_unavailable_by_choice():
    policy = toy_policy()
    decision = asyncio.run(
        policy.acquire_async(slow("b"), on_error="unavailable", timeout=0.01)
    )
    assert decision.unavailable == {"b": "TimeoutError: no answer within 0.01 s"}
    assert decision.spent == 1.0


def test_a_timeout_that_is_raised_carries_the_session():
    with pytest.raises(TimeoutError, match=r"within 0\.01 s") as caught:
        asyncio.run(toy_policy().acquire_async(slow("b"), timeout=0.01))
    assert caught.value.session.run(laboratory).spent == 4.0


def test_a_cancelled_task_leaves_its_session():
    async def cancelled():
        session = toy_policy().session()
        task = asyncio.create_task(session.run_async(slow("b"), "unavailable"))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return session

    session = asyncio.run(cancelled())
    assert session.ask().sensor == "b"
    assert session.run(laboratory).spent == 4.0


def test_sessions_of_one_policy_can_be_awaited_side_by_side():
    policy = forked_policy()

    async def one(value):
        async def oracle(sensor, columns):
            await asyncio.sleep(0.001)
            return [value]

        return (await policy.acquire_async(oracle)).place

    async def all_of_them():
        return await asyncio.gather(*(one(value) for value in (-1.0, 1.0, 3.0) * 5))

    assert asyncio.run(all_of_them()) == [0, 1, 2] * 5
