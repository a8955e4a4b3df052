"""Claims about plans of three purchases on cells, and the trees that they give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sensortree import Leaf, Node, Sensor, SensorTreeClassifier, SensorTreeRegressor
from sensortree.estimators.validation import read_rows
from sensortree.learning.prepare import prepare
from sensortree.progress import TextProgress
from sensortree.sensors.loss import SCORES, Loss
from sensortree.structure import planning
from sensortree.structure.cells import (
    Answers,
    Scores,
    Squares,
    cells,
    cells_of,
    cells_of_numbers,
    stopping_of,
)
from sensortree.structure.planning import Planner, plan_for
from sensortree.structure.search import run_search

NAMES = ("a", "b", "c", "d", "e", "f", "g")


def search_of(X, y, model=None, weight=None, prices=None, **parameters):
    """What a search looks at, with no leaf fitted."""
    model = model or SensorTreeClassifier
    model = model(structure="planned", **{"cost_weight": 1.0, **parameters})
    settings = model._settings()
    rows = read_rows(model, settings, X, y, weight, prices, None)
    return prepare(rows, settings.priced_for(rows.loss), TextProgress(False)).search


def tree_of(X, y, cost_weight: float = 1.0, **parameters):
    search = search_of(X, y, cost_weight=cost_weight, **parameters)
    return run_search(search, "planned", cost_weight, None)[0]


def frame(X) -> pd.DataFrame:
    return pd.DataFrame(X, columns=NAMES[: X.shape[1]])


def planner_of(search, cost_weight: float = 1.0) -> Planner:
    return plan_for(search.subsets, cost_weight, frozenset())


def enumerated(planner: Planner, rows, known, depth: int) -> float:
    """The value of the best plan, one purchase, one cell and one row after another."""
    subsets, weight = planner.subsets, planner.weight
    best = float(planner.stopping.risk(planner.stopping.sums[rows].sum(axis=0)))
    for sensor in range(len(subsets.names)) if depth else ():
        more = None if sensor in known else subsets.extend(known, sensor)
        if more is None:
            continue
        cost = np.broadcast_to(subsets.cost(more, known), len(weight))
        value = planner.cost_weight * float(weight[rows] @ cost[rows])
        for cell in np.unique(planner.codes[rows, sensor]):
            part = rows[planner.codes[rows, sensor] == cell]
            value += enumerated(planner, part, more, depth - 1)
        best = min(best, value)
    return best


def bits(n: int, n_sensors: int = 5, seed: int = 0):
    """The context says which of two matters; a third is needed beside one of them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, n_sensors)).astype(float)
    y = np.where(X[:, 0] == 1, X[:, 1], (X[:, 2] + X[:, 3]) % 2).astype(int)
    return X, np.where(rng.random(n) < 0.1, 1 - y, y)


SHOPS = {
    "plain": {},
    "free": {"sensors": {"a": Sensor(["a"], cost=0.0)}},
    "loss": {"loss": [[0, 1], [5, 0]]},
    "three classes": {"classes": 3},
    "brier": {"risk": "brier"},
    "log-loss": {"risk": "log_loss"},
    "a person": {"refer_cost": 0.3},
    "weights": {"weights": True},
    "prices of rows": {"own": True},
    "a discount": {
        "sensors": {
            "b": Sensor(["b"], cost=0.08, group="blood", discounted_cost=0.03),
            "c": Sensor(["c"], cost=0.08, group="blood", discounted_cost=0.03),
        }
    },
    "what must come before": {"sensors": {"c": Sensor(["c"], cost=0.01, after=["a"])}},
    "one of two": {
        "sensors": {
            "c": Sensor(["c"], cost=0.01, one_of="either"),
            "d": Sensor(["d"], cost=0.01, one_of="either"),
        }
    },
    "a cap": {"max_cost": 0.07},
}


@pytest.mark.parametrize("shop", SHOPS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_plan_is_worth_what_enumeration_finds(shop, seed):
    case = dict(SHOPS[shop])
    X, y = bits(90, seed=seed)
    rng = np.random.default_rng(seed)
    if case.pop("classes", 2) == 3:
        y = y + (X[:, 4] * (rng.random(90) < 0.8)).astype(int)
    weight = rng.uniform(0.5, 2, 90) if case.pop("weights", False) else None
    prices = rng.uniform(0.0, 0.08, X.shape) if case.pop("own", False) else None
    special = case.pop("sensors", {})
    sensors = {n: special.get(n, Sensor([n], cost=0.03)) for n in NAMES[:5]}
    search = search_of(
        frame(X), y, weight=weight, prices=prices, sensors=sensors, **case
    )
    planner = planner_of(search)
    rows = np.arange(len(planner.weight))
    plan = planner.plan(rows, frozenset())
    assert plan.value == pytest.approx(enumerated(planner, rows, frozenset(), 3))
    assert plan.value < plan.stop
    known = planner.after(frozenset(), plan.first)
    half = np.flatnonzero(planner.codes[:, 0] == 1)
    assert planner.plan(half, known).value == pytest.approx(
        enumerated(planner, half, known, 3)
    )


@pytest.mark.parametrize("risk", ["squared", "absolute", "pinball"])
def test_so_is_a_plan_for_numbers(risk):
    X, bit = bits(90)
    y = 3.0 * bit + np.random.default_rng(1).normal(0, 0.3, 90)
    search = search_of(
        frame(X), y, SensorTreeRegressor, risk=risk, costs=dict.fromkeys(NAMES[:5], 0.1)
    )
    planner = planner_of(search)
    rows = np.arange(90)
    plan = planner.plan(rows, frozenset())
    assert plan.value == pytest.approx(enumerated(planner, rows, frozenset(), 3))
    assert plan.value < 0.7 * plan.stop


def halves(y, judge, n_classes: int, prior, repeats: int = 3_000) -> float:
    """What random halves of a cell lose, each by what the other half says."""
    rng = np.random.default_rng(0)
    total = 0.0
    for _ in range(repeats):
        one = rng.random(len(y)) < 0.5
        for learned in (one, ~one):
            said = np.bincount(y[learned], minlength=n_classes) + 2.0 * prior
            said = np.tile(said / said.sum(), ((~learned).sum(), 1))
            total += judge(y[~learned], said).sum()
    return total / repeats


@pytest.mark.parametrize("counts", [(7, 3), (5, 5), (20, 3), (3, 1), (12, 9, 2)])
@pytest.mark.parametrize("kind", ["error", "matrix", "brier", "log_loss"])
def test_stopping_loses_what_random_halves_lose(counts, kind):
    n = len(counts)
    prior = np.arange(2.0, n + 2) / np.arange(2.0, n + 2).sum()
    matrix = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) ** 2.0
    if kind in SCORES:
        loss = Loss(score=SCORES[kind])
        stopping = Scores(prior[None], loss, np.full(n, np.inf))
    else:
        loss = Loss(matrix if kind == "matrix" else None)
        stopping = Answers(prior[None], matrix if kind == "matrix" else 1.0 - np.eye(n))
    found = stopping.risk(np.array(counts, dtype=float))
    y = np.repeat(np.arange(n), counts)
    assert found == pytest.approx(halves(y, loss.judge, n, prior), rel=0.08)


def test_squared_loss_of_halves():
    y = np.random.default_rng(0).normal(1.0, 2.0, 20)
    rng, total = np.random.default_rng(1), 0.0
    for _ in range(4_000):
        one = rng.permutation(20) < 10
        for half in (one, ~one):
            total += ((y[~half] - y[half].sum() / 12) ** 2).sum()
    sums = np.array([20.0, y.sum(), (y**2).sum()])
    found = Squares(np.array([[1.0, 0.0, 0.0]])).risk(sums)
    assert found == pytest.approx(total / 4_000, rel=0.01)


def test_what_a_person_costs_bounds_what_stopping_loses():
    X, y = bits(90)
    for risk in ("error", "brier"):
        dear, cheap = (
            stopping_of(search_of(X, y, risk=risk, refer_cost=cost).subsets.data)
            for cost in (10.0, 0.01)
        )
        even = np.array([10.0, 10.0])
        assert cheap.risk(even) == pytest.approx(0.2, abs=0.02)
        assert dear.risk(even) > 4


def test_parity_of_three_is_seen_where_two_show_nothing():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 6))
    y = X[:, :3].sum(axis=1) % 2 ^ (rng.random(300) < 0.05)
    tree = tree_of(frame(X), y, costs=dict.fromkeys(NAMES[:6], 0.06))
    assert [set(leaf.sensors) for leaf in tree.leaves] == [{"a", "b", "c"}]


@pytest.mark.parametrize("text", [True, False])
def test_a_context_of_text_or_numbers_has_a_branch_for_each_value(text):
    rng = np.random.default_rng(0)
    context, shown = rng.integers(0, 5, 300), rng.integers(0, 2, (300, 5))
    y = shown[np.arange(300), context] ^ (rng.random(300) < 0.05)
    X = frame(np.column_stack([context, shown]))
    if text:
        X["a"] = np.array(["red", "blue", "green", "grey", "white"])[context]
    tree = tree_of(X, y, costs={**dict.fromkeys(NAMES[1:6], 0.1), "a": 0.05})
    assert sorted(sorted(leaf.sensors) for leaf in tree.leaves) == [
        ["a", name] for name in NAMES[1:6]
    ]


def test_a_multiplexer_is_found():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 6))
    y = X[np.arange(300), 2 + 2 * X[:, 0] + X[:, 1]] ^ (rng.random(300) < 0.05)
    tree = tree_of(frame(X), y, costs=dict.fromkeys(NAMES[:6], 0.04))
    assert sorted("".join(sorted(leaf.sensors)) for leaf in tree.leaves) == [
        "abc",
        "abd",
        "abe",
        "abf",
    ]


def test_a_sensor_that_is_read_beside_a_discount_follows_it():
    # Either tells; c is dearer alone, and cheaper once b has opened their group.
    X, y = bits(400)
    y = (X[:, 1] + X[:, 2]).astype(int) % 2
    blood = {"group": "blood", "discounted_cost": 0.05}
    sensors = {
        "a": Sensor(["a"], cost=0.1),
        "b": Sensor(["b"], cost=0.25, **blood),
        "c": Sensor(["c"], cost=0.25, **blood),
    }
    tree = tree_of(frame(X[:, :3]), y, sensors=sensors)
    assert tree.leaves[0].sensors == {"b", "c"}
    alone = {n: Sensor([n], cost=s.cost) for n, s in sensors.items()}
    assert tree_of(frame(X[:, :3]), y, sensors=alone).leaves[0].sensors == set()


def test_no_vertex_is_beyond_the_cap_or_before_what_must_come_first():
    X, y = bits(400)
    sensors = {n: Sensor([n], cost=0.02) for n in NAMES[:5]}
    sensors["c"] = Sensor(["c"], cost=0.02, after=["d"])
    tree = tree_of(frame(X), y, sensors=sensors, max_cost=0.06)
    known = [v.sensors for v in (*tree.nodes, *tree.leaves)]
    assert max(map(len, known)) == 3
    assert any("c" in names for names in known)
    assert all("d" in names for names in known if "c" in names)


def test_rows_that_pay_more_buy_less():
    # b tells all; who has a = 1 pays .6 for it, more than a wrong answer costs them
    X, _ = bits(400)
    y = X[:, 1].astype(int)
    prices = np.column_stack([np.zeros(400), np.where(X[:, 0] == 1, 0.6, 0.1)])
    search = search_of(frame(X[:, :2]), y, prices=prices)
    tree = run_search(search, "planned", 1.0, None)[0]
    assert isinstance(tree.root, Node)
    assert tree.root.sensors == {"a"}
    assert {leaf.sensors for leaf in tree.leaves} == {
        frozenset("a"),
        frozenset("ab"),
    }


def test_a_gap_is_a_cell_that_may_tell():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    gap = rng.random(400) < 0.3
    X[gap, 0] = np.nan
    search = search_of(frame(X), gap.astype(int), classifier="boosted", cost_weight=0.1)
    codes = cells_of(search.subsets.data)
    lost = np.isnan(search.subsets.data.blocks[0][:, 0])
    assert set(codes[lost, 0]).isdisjoint(codes[~lost, 0])
    tree = run_search(search, "planned", 0.1, None)[0]
    assert [set(leaf.sensors) for leaf in tree.leaves] == [{"a"}]


def test_clusters_of_several_columns_tell_where_to_look():
    rng = np.random.default_rng(0)
    state = rng.integers(0, 3, 600)
    place = 4 * np.eye(3)[state] @ rng.normal(size=(3, 3)) + rng.normal(
        0, 0.2, (600, 3)
    )
    shown = rng.integers(0, 2, (600, 3))
    y = shown[np.arange(600), state]
    sensors = {"state": Sensor([0, 1, 2], cost=0.05)}
    sensors |= {f"s{j}": Sensor([3 + j], cost=0.05) for j in range(3)}
    tree = tree_of(np.hstack([place, shown]), y, sensors=sensors)
    assert {frozenset({"state", f"s{j}"}) for j in range(3)} == {
        leaf.sensors for leaf in tree.leaves
    }


def test_clusters_do_not_depend_on_the_order_of_rows_or_columns():
    rng = np.random.default_rng(0)
    block = rng.normal(size=(300, 3)) + 5 * np.eye(3)[rng.integers(0, 3, 300)]
    order = rng.permutation(300)
    one = cells(block, np.ones(300), number=2)
    other = cells(block[order][:, ::-1], np.ones(300), number=2)
    pairs = set(zip(one[order].tolist(), other.tolist(), strict=True))
    assert len(pairs) == len(set(one.tolist())) == 4


def test_rare_levels_of_a_category_share_a_cell():
    level = np.repeat(np.arange(12), np.arange(12, 0, -1))
    coded = cells(np.eye(12)[level], np.ones(len(level)), (tuple(range(12)),))
    assert coded.max() == 7
    assert [len(set(level[coded == c])) for c in range(8)] == [1] * 7 + [5]


def test_numbers_are_cut_finer_where_rows_are_many():
    assert [cells_of_numbers(n) for n in (30, 50, 100, 300, 5_000)] == [2, 2, 3, 4, 4]
    zero = np.r_[np.zeros(60), np.arange(1.0, 41.0)]
    # a heap at one end does not hide the rest
    assert len(set(cells(zero[:, None], np.ones(100), number=2))) == 2


def test_more_leaves_grow_the_same_tree_on():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 6))
    y = X[np.arange(400), 2 + 2 * X[:, 0] + X[:, 1]]
    seen = None
    for n_leaves in (1, 2, 3, 4, 16):
        search = search_of(
            frame(X), y, n_leaves=n_leaves, costs=dict.fromkeys(NAMES[:6], 0.04)
        )
        tree, report = run_search(search, "planned", 1.0, None)
        assert tree.n_leaves <= n_leaves
        steps = [(step["added"], step["subset"]) for step in report.steps]
        if seen is not None:
            assert steps[: len(seen)] == seen
        seen = steps
    assert len(seen) == 6


def test_noise_is_not_worth_a_price():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (1_000, 6)), rng.integers(0, 2, 1_000)
    assert tree_of(frame(X), y, costs=dict.fromkeys(NAMES[:6], 0.04)).root == Leaf([])


def test_the_order_of_rows_columns_and_classes_does_not_matter():
    X = np.random.default_rng(5).integers(0, 3, (250, 6)).astype(float)
    y = (X.sum(axis=1) > 5).astype(int)
    costs = dict(zip(NAMES, (0.02, 0.02, 0.03, 0.03, 0.02, 0.05), strict=False))
    rng = np.random.default_rng(1)
    tree = tree_of(frame(X), y, costs=costs)
    rows, columns = rng.permutation(250), list(rng.permutation(NAMES[:6]))
    other = tree_of(frame(X).iloc[rows][columns], 1 - y[rows], costs=costs)
    assert tree.n_leaves > 2
    assert {leaf.sensors for leaf in other.leaves} == {
        leaf.sensors for leaf in tree.leaves
    }
    # a useless sensor that nobody would pay for changes nothing
    beside = frame(np.column_stack([X, rng.normal(size=250)]))
    again = tree_of(beside, y, costs={**costs, "g": 1_000.0})
    assert again == tree


def test_the_order_of_rows_does_not_matter_to_numbers_that_are_cut():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 4))
    y = (np.where(X[:, 0] > 0, X[:, 1], X[:, 2]) > 0).astype(int)
    rows, costs = rng.permutation(400), dict.fromkeys(NAMES[:4], 0.03)
    tree = tree_of(frame(X), y, costs=costs)
    assert tree.n_leaves > 1
    assert tree_of(frame(X[rows]), y[rows], costs=costs) == tree


def test_a_class_that_is_not_among_the_rows_is_no_trouble():
    X, y = bits(200)
    y[:3] = 2
    search = search_of(frame(X), y, risk="brier", costs=dict.fromkeys(NAMES[:5], 0.02))
    data = search.subsets.data
    some = np.flatnonzero(data.y < 2)
    for loss in (data.loss, Loss(), Loss(1.0 - np.eye(3))):
        stopping = stopping_of(replace(data.take(some), loss=loss))
        assert np.isfinite(stopping.risk(np.array([3.0, 4.0, 0.0])))


def test_numbers_that_are_mostly_equal_have_few_levels():
    X, bit = bits(200)
    y = np.where(np.arange(200) < 150, 0.0, 5.0 * bit)
    tree = tree_of(
        frame(X), y, model=SensorTreeRegressor, risk="absolute", cost_weight=0.01
    )
    assert tree.n_leaves >= 1


def test_rows_of_weight_two_are_rows_twice():
    X, y = bits(200)
    weight = np.random.default_rng(0).integers(1, 4, 200)
    repeated = np.repeat(np.arange(200), weight)
    costs = dict.fromkeys(NAMES[:5], 0.03)
    once = search_of(frame(X), y, weight=weight, costs=costs)
    each = search_of(frame(X[repeated]), y[repeated], costs=costs)
    assert (
        run_search(once, "planned", 1.0, None)[0]
        == run_search(each, "planned", 1.0, None)[0]
    )


def test_of_very_many_sensors_the_promising_are_planned_with(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (500, 1_000)).astype(float)
    y = X[np.arange(500), np.where(X[:, 7] == 1, 400, 900)].astype(int)
    entries = []
    products = planning._products
    monkeypatch.setattr(
        planning,
        "_products",
        lambda *a: entries.append(products(*a).size) or products(*a),
    )
    tree = tree_of(X, y, costs={f"x{j}": 0.05 for j in range(1_000)})
    assert {leaf.sensors for leaf in tree.leaves} == {
        frozenset({"x7", "x400"}),
        frozenset({"x7", "x900"}),
    }
    # all pairs once, two classes each; third purchases within their limits
    assert len(entries) < 1_000
    assert sum(entries) < 2 * 2_000**2 + 4 * planning.PLAN_WORK
    assert max(entries) <= 1.1 * planning.PLAN_AT_ONCE


def test_a_value_that_no_row_of_a_vertex_shows_is_no_cell_to_plan_in():
    # Classes are even, so an empty cell is in doubt; cells of a that have rows are pure.
    a = np.repeat([0, 1, 2, 2], 50)
    y = np.r_[np.repeat([0, 1], 50), np.tile([0, 1], 50)]
    planner = planner_of(search_of(frame(np.c_[a, y * 0 + 1, y]), y), 0.3)
    some = np.flatnonzero(planner.codes[:, 0] < 2)
    assert len(some) == 100
    plan = planner.plan(some, frozenset())
    assert planner.sensors[plan.first] == 0
