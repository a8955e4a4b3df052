"""Claims about the benchmarks: they solve, in each way, the problem they say they do."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import random_problem

from benchmarks import dask_fit, shapes
from benchmarks.problems import synthetic
from benchmarks.rivals import RIVALS
from experiments.data import few, load
from sensortree import Leaf, Node, SensorTree, exhaustive_tree
from sensortree.program import SOLVERS, solve
from sensortree.program.risk import RoutingProblem


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "name",
    ["highs-recursive", "clarabel-recursive", "clarabel-margins", "highs-simplex"],
)
def test_the_benchmark_s_own_rivals_are_certified(monkeypatch, name, seed):
    monkeypatch.setitem(SOLVERS, name, RIVALS[name])
    problem = random_problem(seed, n_leaves=3 + seed)
    certificate = solve(problem, name).certificate
    assert certificate.converged
    assert certificate.upper == pytest.approx(
        solve(problem).certificate.upper, rel=1e-6
    )


def sorted_sensors(tree):
    return sorted(sorted(leaf.sensors) for leaf in tree.leaves)


@pytest.mark.parametrize("shape", shapes.SHAPES)
def test_a_tree_in_another_shape_has_the_same_leaves_and_choices(shape):
    tree = exhaustive_tree(["a", "b", "c", "d"], root=["a"])
    shaped = shapes.SHAPES[shape](tree)
    assert sorted_sensors(shaped) == sorted_sensors(tree)
    assert sorted(map(len, shapes.many_ways(shaped).values())) == sorted(
        map(len, shapes.many_ways(tree).values())
    )


def three_states_on_a_line():
    # Leaf k is right for state k only. The first node of the chain asks for state 1,
    # which no line separates from 0 and 2 together.
    nothing = frozenset()
    tree = SensorTree(
        Node(nothing, Node(nothing, Leaf(["0"]), Leaf(["2"])), Leaf(["1"]))
    )
    state = np.repeat([0, 1, 2], 50)
    phi = np.column_stack([state - 1.0, np.ones(len(state))])
    right = state[:, None] == np.array([0, 2, 1])
    return RoutingProblem(tree, (phi, phi), 1.0 - right, np.ones(len(state)), 1.0)


def mean_risk(problem, ways):
    coef = shapes.soft(problem, problem, ways)
    leaf, _ = shapes.followed(problem, ways, coef)
    return shapes.reached(problem, leaf).mean()


def test_a_node_with_three_children_separates_three_states_on_a_line():
    problem = three_states_on_a_line()
    assert mean_risk(problem, shapes.many_ways(problem.tree)) == 0


def test_a_chain_that_asks_for_the_middle_first_does_not():
    problem = three_states_on_a_line()
    assert mean_risk(problem, shapes.two_ways(problem.tree)) >= 1 / 3


def test_two_way_nodes_go_where_the_tree_routes():
    problem = three_states_on_a_line()
    coef = [np.array([1.0, -0.5]), np.array([1.0, 0.0])]
    ways = shapes.two_ways(problem.tree)
    leaf, _ = shapes.followed(problem, ways, shapes.two_scores(coef))
    np.testing.assert_array_equal(leaf, problem.tree.route(problem.margins(coef)))


def test_the_shapes_benchmark_fills_its_table(monkeypatch):
    monkeypatch.setattr(shapes, "load", lambda name: few(load(name)))
    rows = list(shapes.lines("line", 0.012))
    assert len(rows) == 1 + len(shapes.RULES) * len(shapes.SHAPES)
    assert all(row.count("|") == 14 for row in rows)


def test_steps_out_of_core_are_those_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_fit, "forest", lambda n_rows: synthetic(n_rows, 8, 6))
    dask_fit.save(3_000, tmp_path)
    within, outside = (
        dask_fit.steps(tmp_path, 20_000, 2, memory) for memory in (0.0, 1e-3)
    )
    assert outside["gap_so_far"] == within["gap_so_far"]
    assert outside["chunks_in_memory"] == 0 < outside["chunks"] == within["chunks"]
