"""Claims about threads: many may ask one policy, one at a time may use a session."""

from __future__ import annotations

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event

import numpy as np
import pytest
from models import KINDS, fitted
from toys import toy_policy

from sensortree import load, save
from sensortree.exceptions import SessionError

N_THREADS = 8


@pytest.fixture
def switching():
    """Let threads change places as often as they can, so that a race is likely."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def in_threads(work):
    """What each of several threads answers, all of which begin at once."""
    gate = Barrier(N_THREADS)

    def begin(number):
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(begin, range(N_THREADS)))


def values(model, X, row, columns):
    block = model._table(X, None).take([row], columns)
    return np.asarray(block, dtype=object).ravel().tolist()


def asked(model, X, prices, row, without=None):
    """The decision about a row that is told sensor by sensor, but for one of them."""
    sensors, own = model.sensors_, {}
    for at in sensors.varying:
        column = sensors.terms[at].price_column
        price = (
            prices[row, at] if column is None else values(model, X, row, [column])[0]
        )
        own[sensors.names[at]] = float(price)

    def oracle(sensor, columns):
        if sensor == without:
            return None
        return values(model, X, row, sensors.columns[sensors.index(sensor)])

    return model.policy_.acquire(oracle, prices=own).to_dict()


def answers(model, X, prices):
    """What a model says of some rows in every way that it can be asked."""
    told = [
        model.policy_.digest,
        model.predict_proba(X, prices).tolist(),
        model.acquisition_cost(X, prices).tolist(),
    ]
    for row in range(12):
        own = None if prices is None else prices[row]
        told.append(model.explain(X[row : row + 1], own).to_dict())
        missed = (None, *model.sensors_.names)
        told += [asked(model, X, prices, row, without) for without in missed]
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_threads_are_answered_as_if_they_were_alone(kind, tmp_path, switching):
    model, X, prices = fitted(kind)
    save(model, tmp_path / "model.json")
    alone = answers(load(tmp_path / "model.json"), X, prices)
    fresh = load(tmp_path / "model.json")  # nothing of it is worked out yet
    together = in_threads(lambda number: answers(fresh, X, prices))
    for one in together:
        assert one == alone


def test_threads_that_work_out_detours_at_once_hold_the_same_ones(monkeypatch):
    # Every thread works them out before any is done; a session compares by identity.
    gate, policy = Barrier(N_THREADS), toy_policy()

    def slowly(self):
        gate.wait(10)
        return {"b": replace(self)}

    monkeypatch.setattr(type(policy), "_detour_policies", slowly)
    found = in_threads(lambda number: policy.around["b"])
    assert all(each is found[0] for each in found)


# sessions ---------------------------------------------------------------------------------


class Waiting:
    """A classifier that is busy until it may go on."""

    def __init__(self):
        self.busy, self.go_on = Event(), Event()

    def predict_proba(self, readings):
        self.busy.set()
        assert self.go_on.wait(10)
        return np.tile([0.5, 0.5], (len(readings), 1))


@pytest.mark.parametrize(
    "use",
    [
        lambda session: session.tell("b", [1.0]),
        lambda session: session.unavailable("b"),
        lambda session: session.step,
        lambda session: session.decision(),
        lambda session: session.to_dict(),
    ],
)
def test_a_session_that_another_thread_is_using_refuses(use):
    policy, waiting = toy_policy(), Waiting()
    classifiers = dict.fromkeys(policy.classifiers, waiting)
    session = replace(policy, classifiers=classifiers).session()
    session.tell("a", [-1.0])
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(session.decision)
        assert waiting.busy.wait(10)
        try:
            with pytest.raises(SessionError, match="another thread"):
                use(session)
        finally:
            waiting.go_on.set()
        assert other.result().label == "no"
    assert session.decision().label == "no"  # and now it may be used again


def test_a_session_can_be_passed_on_to_another_thread():
    session = toy_policy().session()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(session.tell, "a", [1.0]).result()
    session.tell("b", [1.0])
    assert session.decision().spent == 4.0


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_a_session_can_be_copied(again):
    session = toy_policy().session()
    session.tell("a", [1.0])
    other = again(session)
    other.tell("b", [1.0])
    assert other.decision().spent == 4.0
    assert session.ask().sensor == "b"
