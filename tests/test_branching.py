"""Claims about trees that branch: looking ahead, many ways at a vertex, cut to size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from states import growth_data, where_to_look

from sensortree import Sensor, SensorTreeClassifier
from sensortree.structure.branching import (
    SubsetView,
    VertexRows,
    cover,
    grow_branches,
    left_out,
)
from sensortree.structure.losses import ranks


def test_a_sensor_that_tells_where_to_look_is_bought_first():
    X, y, sensors = where_to_look(3_000)
    model = SensorTreeClassifier(
        sensors, cost_weight=0.02, structure="branched", n_leaves=32
    ).fit(X[:1_000], y[:1_000])
    bought = model.acquired(X[1_000:])
    names = model.sensors_.names
    state = X[1_000:, :3].argmax(axis=1)
    assert bought[:, names.index("state")].all()
    right = [bought[i, names.index(f"s{state[i]}")] for i in range(len(state))]
    assert np.mean(right) > 0.95
    assert model.acquisition_cost(X[1_000:]).mean() < 2.2
    assert model.score(X[1_000:], y[1_000:]) > 0.97


def test_a_chain_does_not_see_that():
    X, y, sensors = where_to_look(3_000)
    model = SensorTreeClassifier(sensors, cost_weight=0.02, structure="chain")
    model.fit(X[:1_000], y[:1_000])
    assert model.acquisition_cost(X[1_000:]).mean() > 2.5


def test_noise_grows_nothing_that_is_kept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 6)), rng.integers(0, 2, 400)
    model = SensorTreeClassifier(cost_weight=0.01, structure="branched").fit(X, y)
    assert not model.acquisition_cost(X).any()


@pytest.mark.parametrize("n_leaves", [2, 5, 12])
def test_branching_ends_with_the_leaves_it_may_have(n_leaves):
    X, y, _ = where_to_look(600)
    root, steps = grow_branches(growth_data(X, y), n_leaves, frozenset())

    def leaves(vertex) -> int:
        if not vertex.children:
            return 1
        return vertex.stops + sum(map(leaves, vertex.children))

    assert steps
    assert leaves(root) <= n_leaves


def test_losses_of_a_larger_subset_by_an_update_are_its_own():
    X, y, _ = where_to_look(300)
    here = VertexRows(growth_data(X, y), np.arange(0, 300, 2))
    small = frozenset({0, 3})
    larger = [small | {4}, small | {4, 5}, small | {1}]
    updated = SubsetView(here, small).losses_with(larger)
    # but for degrees of freedom, which add up only nearly
    for subset, losses in zip(larger, updated, strict=True):
        np.testing.assert_allclose(losses, SubsetView(here, subset).losses, rtol=1e-3)


def test_growth_to_more_leaves_finds_what_was_weighed():
    X, y, _ = where_to_look(300)
    data = growth_data(X, y)
    grow_branches(data, 4, frozenset())
    before = len(data.weighed)
    afresh = replace(data, weighed={})
    _, steps = grow_branches(afresh, 8, frozenset())
    assert steps
    assert grow_branches(data, 8, frozenset())[1] == steps
    assert len(data.weighed) - before < len(afresh.weighed)


@pytest.mark.parametrize(("further", "bought"), [(0, [{0}]), (10_000, [])])
def test_what_pays_only_two_purchases_later_is_bought(further, bought, monkeypatch):
    monkeypatch.setattr("sensortree.structure.branching.BRANCH_BEAM_ROWS", further)
    # Four classes, two bits, of which each of two states has sensors of its own. The
    # first sensor tells the state; least squares then makes .25 of a Brier score of
    # each bit: .25 does not pay for two purchases at .145, .5 pays for three.
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (2_000, 5))
    own = np.where(X[:, :1] > 0, X[:, 1:3], X[:, 3:5]) > 0
    root, _ = grow_branches(growth_data(X, own @ [1, 2], price=0.145), 8, frozenset())
    assert [child.subset for child in root.children] == bought
    assert all(child.children for child in root.children)


def test_what_is_predicted_of_a_row_has_not_seen_it():
    rng = np.random.default_rng(0)
    features, targets = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    weight = rng.integers(1, 4, 30).astype(float)
    moved = targets.copy()
    moved[7] += 100.0
    before = left_out(features, targets, weight)
    after = left_out(features, moved, weight)
    np.testing.assert_allclose(after[7], before[7], atol=1e-9)
    assert np.abs(after[8] - before[8]).max() > 1e-3


def test_purchases_beside_each_other_must_clearly_pay():
    worth = np.array([[1.0, 0.9], [1.0, 1.1]]).repeat(50, axis=0)
    picked, who, total = cover(worth, worth, np.ones(100))
    assert picked == [0, 1]
    assert [group.sum() for group in who] == [50, 50]
    assert total == pytest.approx(105.0)
    noise = np.random.default_rng(0).normal(0, 5, (100, 1))
    picked, _, _ = cover(worth, worth + noise * [[0.0, 1.0]], np.ones(100))
    assert len(picked) == 1


def test_what_adds_less_clearly_is_not_bought(monkeypatch):
    worth = np.array([[1.0, 0.9], [1.0, 1.1]]).repeat(50, axis=0)
    gains = worth.copy()
    gains[:, 1] += np.tile([0.2, -0.2], 50)
    # To each of 50 rows the second adds .3 or -.1: 5 in all, with an error of
    # sqrt(25 * .3^2 + 25 * .1^2) = 1.58.
    assert len(cover(worth, gains, np.ones(100))[0]) == 1
    monkeypatch.setattr("sensortree.structure.branching.BRANCH_ERRORS", 2.0)
    assert len(cover(worth, gains, np.ones(100))[0]) == 2


def test_weight_two_is_a_row_twice():
    X, y, sensors = where_to_look(400)
    weight = np.random.default_rng(1).integers(1, 3, 400)
    model = SensorTreeClassifier(
        sensors, cost_weight=0.02, structure="branched", classifier="logistic2"
    )
    weighted = model.fit(X, y, sample_weight=weight).tree_
    row = np.repeat(np.arange(400), weight)
    repeated = model.fit(X[row], y[row], groups=row).tree_
    assert weighted == repeated


def test_what_a_sensor_needs_is_bought_with_it():
    X, y, sensors = where_to_look(800)
    sensors["s0"] = Sensor([3], cost=1.0, after=["s1"])
    model = SensorTreeClassifier(
        sensors, cost_weight=0.02, structure="branched", n_leaves=32
    ).fit(X, y)
    for vertex in (*model.tree_.leaves, *model.tree_.nodes):
        assert "s0" not in vertex.sensors or "s1" in vertex.sensors


def test_nobody_pays_more_than_the_cap():
    X, y, sensors = where_to_look(800)
    model = SensorTreeClassifier(
        sensors, cost_weight=0.02, structure="branched", max_cost=2.0
    ).fit(X, y)
    assert model.acquisition_cost(X).max() <= 2.0


def test_stakes_are_what_mistakes_cost():
    X, y, sensors = where_to_look(800)
    model = SensorTreeClassifier(
        sensors, cost_weight=1.0, loss={0: 50.0, 1: 50.0}, structure="branched"
    ).fit(X, y)
    assert model.score(X, y) > 0.95


def test_boosted_leaves_branch_too():
    X, y, sensors = where_to_look(2_000)
    X = np.exp(X)  # ranks are the same, and that is all that boosted leaves see
    model = SensorTreeClassifier(
        sensors, cost_weight=0.02, structure="branched", classifier="boosted"
    ).fit(X[:1_000], y[:1_000])
    assert model.score(X[1_000:], y[1_000:]) > 0.95
    assert model.acquisition_cost(X[1_000:]).mean() < 2.3


def test_ranks_do_not_see_how_far_readings_are_apart():
    block = np.array([[1.0], [np.nan], [3.0], [2.0], [3.0]])
    found = ranks(block, np.ones(5))[:, 0]
    np.testing.assert_allclose(found, [0.125, np.nan, 0.75, 0.375, 0.75])
    np.testing.assert_allclose(ranks(np.exp(block), np.ones(5))[:, 0], found)
