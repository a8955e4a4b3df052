"""A session's answer is a function of what it was told, not of the order of telling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from shops import ROWS, open_shop, random_cap

from sensortree import Leaf, SensorTree, SensorTreeClassifier
from sensortree.policy.classifiers import ConstantScorer
from sensortree.policy.flow import Detour, Detours, Flow

ORDERS = 12
SENSORS = {"a": [0], "b": [1], "c": [2]}


def facts(session) -> Any:
    """What is known, what was paid for it, and what cannot be had."""
    state, allowance = session.to_dict(), session._allowance
    told = {name: values for kind, name, *values in state["log"] if kind == "tell"}
    return (
        tuple(sorted({**state["known"], **told})),
        tuple(sorted(session._acquired)),
        round(session.spent, 9),
        frozenset(allowance.unavailable),
    )


def said(session) -> Any:
    """All that a session says: what it asks for, or its decision."""
    step = session.step
    found = [step.action, step.sensors, round(step.cost, 9), step.proba.tobytes()]
    found.append(round(step.worst_case_remaining, 9))
    if step.action == "stop":
        end = session.decision()
        found += [end.label, end.place, end.around, end.stopped_because, end.referred]
        found += [round(end.rerouting_loss, 12), round(end.saved, 9), end.spent]
    return tuple(found)


def led(session, values, lost, gifts, rng) -> Iterator[Any]:
    """A session to which outages and gifts are told at any time; itself at each time."""
    names = [*lost, *gifts]
    waiting = [names[i] for i in rng.permutation(len(names))]
    at_once = rng.random() < 0.4
    while True:
        yield session
        step = session.ask()
        if waiting and (step is None or at_once or rng.random() < 0.5):
            name = waiting.pop()
        elif step is None:
            return
        else:
            name = step.sensor
            waiting = [other for other in waiting if other != name]
        if name in lost:
            session.unavailable(name)
        else:
            session.tell(name, values[name])


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_the_same_facts_give_the_same_answer_in_whatever_order_they_were_told(first):
    pairs = differ = 0
    for seed in range(first, first + 20):
        shop, rng = open_shop(seed), np.random.default_rng(seed)
        for row in range(0, ROWS, 3):
            values, names = shop.values(row), list(shop.offers)
            limit, fate = random_cap(rng, shop, 0.5), rng.random(len(names))
            known = {n: values[n] for n, f in zip(names, fate, strict=True) if f < 0.15}
            lost = [n for n, f in zip(names, fate, strict=True) if 0.15 <= f < 0.5]
            gifts = [n for n, f in zip(names, fate, strict=True) if f > 0.87]
            answers = defaultdict(list)
            for _ in range(ORDERS):
                session = shop.model.policy_.session(
                    known, limit, shop.told_prices(row)
                )
                for stage in led(session, values, lost, gifts, rng):
                    answers[facts(stage)].append(said(stage))
            for found in answers.values():
                pairs += len(found) * (len(found) - 1) // 2
                differ += sum(a != b for i, a in enumerate(found) for b in found[:i])
    assert pairs > 1000
    assert differ == 0, f"{differ} of {pairs} pairs differ"


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_what_it_buys_for_a_place_leads_to_that_place(first):
    for seed in range(first, first + 20):
        shop, rng = open_shop(seed), np.random.default_rng(seed)
        policy = replace(shop.model.policy_, detours=None)
        for row in range(ROWS):
            limit = random_cap(rng, shop, 0.6)
            session = policy.session(None, limit, shop.told_prices(row))
            for name in shop.offers:
                if rng.random() < 0.3:
                    session.unavailable(name)
            while (step := session.ask()) is not None:
                session.tell(step.sensor, shop.values(row)[step.sensor])
            end = session.decision()
            assert set(end.acquired) == policy.places[end.place].sensors


def fitted(tree: Any) -> Any:
    """A policy of a given tree on three sensors of cost 1."""
    X = np.random.default_rng(0).normal(size=(80, 3))
    model = SensorTreeClassifier(SENSORS, structure=tree, cv=None)
    return model.fit(X, X.sum(axis=1) > 0).policy_


def test_a_second_outage_reopens_a_session_that_stopped_at_the_start():
    # All buy a and b. A way without b is known, to c; none without a.
    both, all_three = {"sensors": ["a", "b"]}, {"sensors": ["a", "b", "c"]}
    policy = fitted({"sensors": ["a", "b"], "negative": both, "positive": all_three})
    flow = Flow(
        np.ones(0), np.ones((1, 2)), np.ones((0, 1)), np.ones(0), np.ones(0), 0.5
    )
    around = {"b": Detour(SensorTree(Leaf(["c"])), (), flow, 0.25)}
    says = {frozenset("c"): ConstantScorer(np.array([0.3, 0.7]))}
    policy = replace(policy, detours=Detours(around, says))
    for order in permutations("ab"):
        session = policy.session()
        for name in order:
            session.unavailable(name)
        assert session.ask().sensor == "c"


def test_a_reading_that_is_there_is_used_where_it_stops():
    # Who goes up buys a, and then c; who goes down buys b.
    up = {"sensors": ["a"], "negative": {"sensors": ["a", "c"]}}
    up["positive"] = {"sensors": ["a", "c"]}
    policy = fitted({"sensors": [], "negative": {"sensors": ["b"]}, "positive": up})
    upward = np.zeros_like(policy.decisions[0].coef)
    upward[-1] = 1.0
    decisions = (replace(policy.decisions[0], coef=upward), policy.decisions[1])
    policy = replace(policy, decisions=decisions)
    for order in permutations("abc"):
        session = policy.session()
        for name in order:
            if name == "a":
                session.tell("a", [0.5])
            else:
                session.unavailable(name)
        end = session.decision()
        assert end.place == ~1
        assert end.spent == (1.0 if order.index("a") < order.index("c") else 0.0)
        expected = policy.classifiers[frozenset("a")].predict_proba(np.array([[0.5]]))
        assert np.array_equal(end.proba, expected[0])
