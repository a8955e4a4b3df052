"""Claims about outages: where examples go if a sensor cannot be had."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain, combinations, pairwise, permutations

import numpy as np
import pytest

import sensortree
from sensortree import Leaf, Node, Sensor, SensorTree, SensorTreeClassifier
from sensortree.exceptions import ModelFileError
from sensortree.learning.detours import reduced
from sensortree.policy.flow import NOWHERE, START, turning_node

SENSORS = {"a": [0], "b": [1], "c": [2], "d": [3]}


def rows(n_rows: int, seed: int = 0):
    """Four views of one thing, each with noise of its own, the first with least."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    noise = np.array([0.6, 0.8, 1.0, 1.2])
    return (2 * y[:, None] - 1) + 2 * noise * rng.normal(size=(n_rows, 4)), y


@pytest.fixture(scope="module")
def model():
    X, y = rows(600)
    return SensorTreeClassifier(SENSORS, cost_weight=0.01).fit(X, y)


@pytest.fixture(scope="module")
def ward():
    """Groups with a fee, what comes after something, and two of which one may be had."""
    X, y = rows(600, seed=1)
    sensors = {
        "a": Sensor([0], cost=1.3, group="lab", fee=0.5),
        "b": Sensor([1], cost=1.1, group="lab", fee=0.7, one_of="method"),
        "c": Sensor([2], cost=0.9, after=["a"], one_of="method"),
        "d": Sensor([3], cost=0.4),
    }
    model = SensorTreeClassifier(sensors, cost_weight=0.01, outages=True)
    return model.fit(X, y)


def examined(policy, row, lost=(), limit=None):
    """A session to its end, with some sensors that cannot be had."""
    session = policy.session(limit=limit)
    for sensor in lost:
        session.unavailable(sensor)
    while (step := session.ask()) is not None:
        at = list(policy.sensors.names).index(step.sensor)
        session.tell(step.sensor, row[[at]])
    return session


def losses(policy, X, y, lost):
    """Mean of what wrong answers and purchases cost without some sensors."""
    ends = [examined(policy, row, lost).decision() for row in X]
    wrong = [end.label != label for end, label in zip(ends, y, strict=True)]
    return np.mean(wrong) + policy.cost_weight * np.mean([end.spent for end in ends])


# what is learned ----------------------------------------------------------------------


def test_without_the_first_sensor_others_are_asked_for(model):
    policy = model.policy_
    first = policy.step({}).sensor
    assert replace(policy, detours=None).step({}, unavailable=[first]).action == "stop"
    step = policy.step({}, unavailable=[first])
    assert step.action == "acquire"
    assert step.sensor != first


def test_detours_lower_the_risk_on_rows_that_nobody_has_seen(model):
    X, y = rows(400, seed=7)
    policy = model.policy_
    plain = replace(policy, detours=None)
    usual = losses(policy, X, y, ())
    before = np.mean([losses(plain, X, y, [s]) - usual for s in SENSORS])
    after = np.mean([losses(policy, X, y, [s]) - usual for s in SENSORS])
    assert after < before / 2


def test_a_detour_is_taken_if_its_validated_risk_is_lower(model):
    outages = model.outage_report_.outages
    taken = {s for s, o in outages.items() if o.detour and o.detour < o.turning}
    assert taken == set(model.policy_.detours.around)
    assert set(outages) == set(model.tree_.sensors)
    for sensor in taken:
        assert f"{outages[sensor].detour:.4f} taken" in str(model.outage_report_)


def test_no_detour_is_taken_where_nothing_else_is_worth_its_price():
    # The second column says nothing, so that without the first it is best to stop.
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = SensorTreeClassifier(cost_weight=0.05).fit(X, X[:, 0] > 0)
    assert model.tree_.sensors == {"x0"}
    assert model.policy_.detours is None
    assert model.policy_.step({}, unavailable=["x0"]).action == "stop"


def test_a_detour_buys_neither_its_sensor_nor_what_comes_after_it(ward):
    assert "a" in ward.policy_.detours.around
    for sensor, detour in ward.policy_.detours.around.items():
        gone = {"a": {"a", "c"}}.get(sensor, {sensor})
        assert not detour.tree.sensors & gone
        for leaf in detour.tree.leaves:
            assert ward.sensors_.admissible(leaf.sensors)


def test_predictions_do_not_depend_on_detours(model):
    X, y = rows(600)
    plain = SensorTreeClassifier(SENSORS, cost_weight=0.01, outages=False).fit(X, y)
    assert plain.policy_.detours is None
    assert plain.outage_report_ is None
    assert replace(model.policy_, detours=None).digest == plain.policy_.digest
    assert model.policy_.digest != plain.policy_.digest
    assert np.array_equal(plain.predict_proba(X), model.predict_proba(X))


def test_models_of_a_path_have_the_detours_of_a_fit(model):
    X, y = rows(600)
    path = SensorTreeClassifier(SENSORS).fit_path(X, y, [0.001, 0.01])
    assert path[1].policy_.digest == model.policy_.digest


def test_without_folds_no_detour_is_learned():
    X, y = rows(200)
    model = SensorTreeClassifier(SENSORS, cost_weight=0.01, cv=None, outages=True)
    assert model.fit(X, y).policy_.detours is None


def test_a_tree_of_ones_own_has_detours_within_it():
    X, y = rows(400)
    tree = SensorTree(Node(["a"], Leaf(["a"]), Leaf(["a", "b"])))
    sensors = {"a": [0], "b": [1]}
    model = SensorTreeClassifier(sensors, structure=tree, cost_weight=0.01)
    model.fit(X[:, :2], y)
    assert model.policy_.step({}, unavailable=["a"]).sensor == "b"


# where examples turn ------------------------------------------------------------------

# a ─ stop | b ─ (b) stop | c
TREE = SensorTree(
    Node(["a"], Leaf(["a"]), Node(["a", "b"], Leaf(["a", "b"]), Leaf(["a", "b", "c"])))
)


@pytest.mark.parametrize(
    ("sensor", "turns"),
    [("a", [START] * 3), ("b", [NOWHERE, 0, 0]), ("c", [NOWHERE, NOWHERE, 1])],
)
def test_an_example_turns_before_all_leaves_ahead_know_the_sensor(sensor, turns):
    assert [turning_node(TREE, leaf, sensor) for leaf in range(3)] == turns


def test_a_tree_without_a_sensor_decides_no_more_than_is_left_to_decide():
    def without(sensor):
        return SensorTree(reduced(TREE.root, frozenset(sensor)))

    one, two = Leaf(["a"]), Leaf(["a", "b"])
    assert without("c") == SensorTree(Node(["a"], one, two))
    # Whether to stop with a is asked once, not before and after b would have come.
    assert without("b") == SensorTree(Node(["a"], one, Leaf(["a", "c"])))
    assert without("abc") == SensorTree(Leaf([]))


# sessions -----------------------------------------------------------------------------


def outages(names):
    """No sensor, each, and each pair."""
    return chain.from_iterable(combinations(names, r) for r in (0, 1, 2))


def test_what_is_spent_on_a_detour_is_the_price_of_what_was_acquired(ward):
    X, _ = rows(30, seed=3)
    sensors = ward.sensors_
    for lost in outages(sensors.names):
        for row in X:
            end = examined(ward.policy_, row, lost).decision()
            known, total = [], 0.0
            for name in end.acquired:
                total += sensors.cost_of([name], known)
                known.append(name)
            assert end.spent == pytest.approx(total, abs=1e-12)
            assert sensors.admissible(end.acquired)
            assert not set(end.acquired) & set(lost)


@pytest.mark.parametrize("limit", [0.0, 0.4, 1.0, 1.8, 2.7])
def test_no_limit_is_exceeded_on_a_detour(ward, limit):
    X, _ = rows(20, seed=4)
    capped = replace(ward.policy_, max_cost=limit)
    for lost in outages(ward.sensors_.names):
        for row in X:
            by_limit = examined(ward.policy_, row, lost, limit).decision()
            by_cap = examined(capped, row, lost).decision()
            assert by_limit.spent <= limit
            assert (by_limit.spent, by_limit.label) == (by_cap.spent, by_cap.label)


def test_a_step_says_the_most_that_may_be_spent_with_detours_too(ward):
    X, _ = rows(20, seed=5)
    for lost in outages(ward.sensors_.names):
        for row, limit in ((row, limit) for row in X for limit in (None, 2.0)):
            session = ward.policy_.session(limit=limit)
            for sensor in lost:
                session.unavailable(sensor)
            said = []
            while (step := session.ask()) is not None:
                said.append(step.spent + step.worst_case_remaining)
                at = list(ward.sensors_.names).index(step.sensor)
                session.tell(step.sensor, row[[at]])
            assert all(session.spent <= most + 1e-12 for most in said)


def test_it_does_not_matter_in_which_order_outages_are_told(ward):
    X, _ = rows(20, seed=6)
    for lost in combinations(SENSORS, 2):
        for row in X:
            ends = [
                examined(ward.policy_, row, order).decision()
                for order in permutations(lost)
            ]
            assert ends[0].acquired == ends[1].acquired
            assert np.array_equal(ends[0].proba, ends[1].proba)


def test_it_does_not_matter_when_an_outage_is_told(model):
    # Nothing else is bought together with what is lost: each purchase is a single one.
    policy = model.policy_
    assert all(len(b - a) < 2 for path in policy.paths for a, b in pairwise(path))
    for lost in SENSORS:
        for row in rows(20, seed=6)[0]:
            asked = policy.acquire(
                lambda s, _, row=row, lost=lost: None if s == lost else row[SENSORS[s]]
            )
            told = examined(policy, row, [lost]).decision()
            assert (asked.acquired, asked.place) == (told.acquired, told.place)
            assert np.array_equal(asked.proba, told.proba)
            known = {s: row[SENSORS[s]] for s in told.acquired}
            assert policy.step(known, unavailable=[lost]).action == "stop"


def test_a_decision_says_which_detour_it_came_by_and_what_that_loses(model):
    policy, row = model.policy_, rows(1, seed=8)[0][0]
    first = policy.step({}).sensor
    end = examined(policy, row, [first]).decision()
    detour = policy.detours.around[first]
    assert end.around == first
    assert end.stopped_because == "unavailable"
    assert set(end.acquired) == set(detour.tree.leaves[end.place].sensors)
    more = detour.flow.total_loss - detour.usual_loss
    assert end.rerouting_loss == pytest.approx(more)
    assert examined(policy, row).decision().around is None


def test_what_is_known_is_not_paid_again_on_a_detour(model):
    # Sensors are asked for until one is missed; those before it are known by then.
    policy = model.policy_
    for row in rows(40, seed=9)[0]:
        usual = examined(policy, row).decision().acquired
        for lost in usual:
            end = examined(policy, row, [lost]).decision()
            assert len(set(end.acquired)) == len(end.acquired)
            before = usual[: usual.index(lost)]
            assert end.acquired[: len(before)] == before


def test_a_sensor_that_comes_after_all_leads_back_to_the_usual_way(model):
    policy, row = model.policy_, rows(1, seed=10)[0][0]
    usual = examined(policy, row).decision()
    first = usual.acquired[0]
    session = examined(policy, row, [first])
    assert session.decision().around == first
    session.tell(first, row[SENSORS[first]])
    while (step := session.ask()) is not None:
        session.tell(step.sensor, row[SENSORS[step.sensor]])
    end = session.decision()
    assert (end.around, end.place, end.stopped_because) == (None, usual.place, "policy")
    assert np.array_equal(end.proba, usual.proba)


def test_with_nothing_to_be_had_the_answer_is_the_prior(model):
    end = examined(model.policy_, rows(1)[0][0], SENSORS).decision()
    assert (end.spent, end.around, end.place) == (0, None, ~model.tree_.n_nodes)
    np.testing.assert_allclose(end.proba, model.policy_.flow.leaf_classes.sum(0) / 600)


def test_a_session_on_a_detour_is_put_away_and_taken_up_again(model):
    policy, row = model.policy_, rows(1, seed=11)[0][0]
    session = policy.session()
    session.unavailable(policy.step({}).sensor)
    state = json.loads(json.dumps(session.to_dict()))
    assert policy.resume(state).ask().sensor == session.ask().sensor
    assert "node" not in str(policy.resume(state).step.why)  # it has decided nothing
    step = session.ask()
    session.tell(step.sensor, row[SENSORS[step.sensor]])
    assert np.array_equal(
        policy.resume(session.to_dict()).step.proba, session.step.proba
    )


# the file -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model", "ward"])
def test_detours_are_saved(name, request, tmp_path):
    model = request.getfixturevalue(name)
    sensortree.save(model, tmp_path / "model.json")
    loaded = sensortree.load(tmp_path / "model.json")
    assert loaded.policy_.digest == model.policy_.digest
    for lost in outages(SENSORS):
        for row in rows(10, seed=12)[0]:
            mine, its = (
                examined(m.policy_, row, lost).decision() for m in (model, loaded)
            )
            assert (mine.acquired, mine.spent) == (its.acquired, its.spent)
            assert np.array_equal(mine.proba, its.proba)


def test_a_file_whose_detour_buys_what_it_is_to_do_without_is_refused(model, tmp_path):
    path = tmp_path / "model.json"
    detour = next(iter(model.policy_.detours.around.values()))
    other = next(iter(detour.tree.sensors))
    wrong = replace(model.policy_.detours, around={other: detour})
    with pytest.raises(ModelFileError, match="buys what it is to do without"):
        sensortree.save(replace(model.policy_, detours=wrong), path)
