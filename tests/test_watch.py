"""Claims about the watch: what is counted, and what is compared with training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from toys import toy_policy

from benchmarks.watch import first_alarm, learn, population, spending_more
from sensortree.policy.about import About
from sensortree.sensors.table import Table
from sensortree.service.drift_test import Bets
from sensortree.service.models import (
    SPEND,
    Watched,
    read_watched,
    reference_of,
    summary,
    with_decision,
)


def policy(rows=1_000, **parameters):
    return replace(toy_policy(**parameters), about=About(rows=rows))


def decided(policy, a, **beginning):
    session = policy.session(**beginning)
    session.tell("a", [a])
    if session.ask() is not None:
        session.tell("b", [0.0])
    return session.decision()


def test_training_says_what_is_spent_and_how_often_a_sensor_is_bought():
    # Of ten rows four bought b: 0.6 * 1 + 0.4 * 4 = 2.2 of at most 4 dollars. a is bought
    # by everybody, so that there is nothing to compare.
    found = reference_of(policy())
    assert found.scale == 4.0
    assert set(found.expected) == {"rate of b", SPEND}
    assert found.expected["rate of b"].mean == pytest.approx(0.4)
    assert found.expected[SPEND].mean * 4 == pytest.approx(2.2)


def test_more_training_rows_leave_less_open():
    widths = [
        reference_of(policy(rows)).expected[SPEND].high
        - reference_of(policy(rows)).expected[SPEND].low
        for rows in (100, 10_000)
    ]
    assert widths[1] < widths[0] / 5


def test_a_cap_that_leaves_exceed_makes_training_no_reference():
    assert reference_of(policy(max_cost=2.0)).expected == {}


def test_every_decision_is_counted_and_only_ordinary_ones_are_compared():
    model = policy()
    reference, seen = reference_of(model), Watched()
    seen = with_decision(seen, reference, decided(model, 1.0), ["a"], True)
    seen = with_decision(seen, reference, decided(model, -1.0), [], True)
    seen = with_decision(seen, reference, decided(model, 1.0, limit=1), [], False)
    assert (seen.decided, seen.compared, seen.spent) == (3, 2, 6.0)
    assert seen.bought == {"a": 3, "b": 1}
    assert seen.answers == {"yes": 1, "no": 2}
    assert seen.unseen == {"a": 1}
    assert seen.bets["rate of b"].total == 1.0
    assert seen.bets[SPEND].total == 1.0 + 0.25


def test_what_is_stored_is_what_was_seen():
    import json

    model = policy()
    seen = with_decision(
        Watched(), reference_of(model), decided(model, 1.0), ["b"], True
    )
    assert read_watched(json.dumps(seen.to_dict())) == seen


def test_everybody_buying_is_an_alarm_and_says_from_when():
    model = policy()
    reference, seen, decision = reference_of(model), Watched(), decided(model, 1.0)
    for _ in range(60):
        seen = with_decision(seen, reference, decision, [], True)
    found = {one["quantity"]: one for one in summary(reference, seen)["quantities"]}
    spend = found[SPEND]
    assert spend["direction"] == "above"
    assert spend["observed"] == pytest.approx(4.0)
    assert spend["evidence"] >= 1
    assert 5 < spend["alarm"] < 60
    assert seen.bets[SPEND].alarm == spend["alarm"]


def test_the_benchmark_bets_as_the_service_does():
    rng = np.random.default_rng(1)
    model = learn(400, rng)
    reference, seen = reference_of(model), Watched()
    X, _ = population(400, rng)
    place = spending_more(model, model.apply(Table(X)), rng)
    place[100:] = place.max()
    alarms = []
    for number, leaf in enumerate(place):
        names = model.places[leaf].names
        decision = decided(policy(), -1.0)
        decision = replace(
            decision,
            acquired=names,
            spent=model.price(model.places[leaf].path, frozenset()),
        )
        seen = with_decision(seen, reference, decision, [], True)
        alarms += [number + 1 for bets in seen.bets.values() if bets.alarm is not None]
    assert alarms
    assert first_alarm(model, reference, place) == alarms[0]


def test_nothing_seen_is_no_alarm():
    found = summary(reference_of(policy()), Watched())["quantities"]
    assert [one["alarm"] for one in found] == [None, None]
    assert [one["observed"] for one in found] == [None, None]
    assert Bets().alarm is None


@pytest.mark.slow
def test_alarms_are_seldom_false_and_come_soon():
    # A part of what python -m benchmarks.watch measures.
    false, found = 0, []
    for run in range(60):
        rng = np.random.default_rng([2_000, run])
        model = learn(2_000, rng)
        reference = reference_of(model)
        place = model.apply(Table(population(10_000, rng)[0]))
        false += first_alarm(model, reference, place) is not None
        drifted = spending_more(model, place, rng)
        first = first_alarm(model, reference, drifted, only=SPEND)
        found.append(np.inf if first is None else first)
    assert false <= 3
    assert np.median(found) <= 1_000
