"""Claims about the structured solver: hard problems, other arrays, threads, stopping."""

from __future__ import annotations

import warnings

import array_api_strict
import numpy as np
import pytest
from strategies import random_problem

from sensortree.exceptions import CertificateWarning, ProblemError
from sensortree.program import SurrogateProblem, chunks, solve
from sensortree.program.solvers.base import Options
from sensortree.program.solvers.structured import chunk, interior_point, rows
from sensortree.program.solvers.structured.shape import TreeShape


def changed(problem, **parts):
    same = {
        "negative": problem.negative,
        "positive": problem.positive,
        "features": problem.features,
        "lost_if_negative": problem.lost_if_negative,
        "lost_if_positive": problem.lost_if_positive,
    }
    return SurrogateProblem(**{**same, **parts})


def in_blocks(monkeypatch, n_rows):
    """Let the solver take so many rows at a time."""
    monkeypatch.setattr(chunk, "BLOCK_VALUES", 1)
    monkeypatch.setattr(chunk, "BLOCK_ROWS", n_rows)


def cascade_problem(n_leaves, n_samples=100, seed=0):
    """A chain: every node's negative child is a leaf."""
    rng = np.random.default_rng(seed)
    n_nodes = n_leaves - 1
    X = np.c_[rng.normal(size=(n_samples, 3)), np.ones(n_samples)]
    kept = (rng.random((n_samples, n_leaves)) < 0.7) + 0.2 * rng.random(n_leaves)
    below = kept[:, ::-1].cumsum(axis=1)[:, ::-1]
    return SurrogateProblem(
        [-1] * n_nodes,
        [*range(1, n_nodes), -1],
        [X] * n_nodes,
        below[:, 1:],
        kept[:, :-1],
    )


def rare_columns(problem, seed=0):
    """Add 0/1 columns with 1 to 3 ones each, standardised: some separate their node."""
    rng = np.random.default_rng(seed)
    n = problem.n_samples
    rare = np.zeros((n, 6))
    for column in range(6):
        rare[rng.choice(n, 1 + column % 3, replace=False), column] = 1.0
    rare = (rare - rare.mean(axis=0)) / rare.std(axis=0)
    return changed(problem, features=[np.c_[f, rare] for f in problem.features])


BASE = random_problem(11, n_samples=120, n_leaves=6, n_features=5)
SCALES = np.array([1e-8, 1e8, 1.0, 1e4, 1.0])
FIRST = BASE.lost_if_negative.copy()
FIRST[:, 2] = 0.0
HARD = {
    "constant columns": changed(
        BASE,
        features=[np.c_[f, np.full(120, 7.0), np.zeros(120)] for f in BASE.features],
    ),
    "duplicated columns": changed(BASE, features=[np.c_[f, f] for f in BASE.features]),
    "collinear columns": changed(
        BASE,
        features=[np.c_[f, f @ np.ones(5), f @ np.arange(5)] for f in BASE.features],
    ),
    "columns from 1e-8 to 1e8": changed(
        BASE, features=[f * SCALES for f in BASE.features]
    ),
    "rare binary columns": rare_columns(BASE),
    "more columns than rows": random_problem(
        12, n_samples=15, n_leaves=4, n_features=30
    ),
    "separable nodes": random_problem(13, n_samples=6, n_leaves=3, n_features=6),
    "one example": random_problem(14, n_samples=1, n_leaves=5),
    "two leaves": random_problem(15, n_samples=90, n_leaves=2),
    "a cascade of 64 leaves": cascade_problem(64),
    "zero weights on one side of a node": changed(BASE, lost_if_negative=FIRST),
    "a node that no example needs": changed(
        BASE,
        lost_if_negative=FIRST,
        lost_if_positive=np.where(np.arange(5) == 2, 0.0, BASE.lost_if_positive),
    ),
    "savings from 1e-6 to 1e3": changed(
        BASE,
        lost_if_negative=BASE.lost_if_negative * np.logspace(-6, 3, 120)[:, None],
        lost_if_positive=BASE.lost_if_positive * np.logspace(-6, 3, 120)[:, None],
    ),
    "a repeated example": changed(
        BASE,
        features=[np.repeat(f[:1], 120, axis=0) for f in BASE.features],
    ),
}


LONG = {"a cascade of 64 leaves": pytest.mark.slow}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=LONG.get(name, ())) for name in HARD]
)
def test_hard_problems_end_in_a_certified_answer(name):
    problem = HARD[name]
    solution = solve(problem)
    assert solution.certificate.converged
    reference = solve(problem, "scipy-path").certificate.upper
    assert solution.certificate.upper == pytest.approx(reference, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", HARD)
def test_hard_problems_with_penalties_end_in_a_certified_answer(name):
    for penalty in ({"l2": 1e-3}, {"l1": 1e-2}, {"l2": 1.0, "l1": 0.1}):
        assert solve(HARD[name], **penalty).certificate.converged, penalty


def test_no_example_that_matters_is_answered_at_once():
    nothing = np.zeros_like(BASE.lost_if_negative)
    solution = solve(changed(BASE, lost_if_negative=nothing, lost_if_positive=nothing))
    assert solution.iterations == 0
    assert solution.certificate.upper == 0


def test_a_lone_leaf_has_nothing_to_solve():
    solution = solve(SurrogateProblem([], [], [], np.empty((5, 0)), np.empty((5, 0))))
    assert solution.coef == []
    assert solution.certificate.converged


def test_nodes_may_be_numbered_in_any_order_that_puts_parents_first():
    # Breadth first instead of depth first: the tree of the paper's figure, one deeper.
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(50, 2)), np.ones(50)]
    weights = rng.random((2, 50, 5))
    breadth = SurrogateProblem(
        [1, 3, -1, -1, -1], [2, 4, -1, -1, -1], [X] * 5, *weights
    )
    order = [0, 1, 3, 4, 2]  # depth first
    depth = SurrogateProblem(
        [1, 2, -1, -1, -1], [4, 3, -1, -1, -1], [X] * 5, *weights[:, :, order]
    )
    one, other = solve(breadth), solve(depth)
    assert one.certificate.upper == pytest.approx(other.certificate.upper, rel=1e-9)
    np.testing.assert_allclose(np.array(one.coef)[order], other.coef, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_every_edge_of_the_tree_is_walked_once_from_one_level_to_the_next(seed):
    problem = random_problem(seed, n_samples=2, n_leaves=12)
    tree = TreeShape.of(problem)
    walked = []
    for level, edges in enumerate(tree.edges):
        for run in edges:
            parents, children = (
                range(part.start, part.stop) for part in (run.parents, run.children)
            )
            assert set(children) <= set(range(100)[tree.levels[level + 1]])
            walked += [
                (run.side, tree.order[parent], tree.order[child])
                for parent, child in zip(parents, children, strict=True)
            ]
    there = [
        (side, parent, int(child))
        for side, children in enumerate((problem.negative, problem.positive))
        for parent, child in enumerate(children)
        if child >= 0
    ]
    assert sorted(walked) == there


def test_a_balanced_tree_has_two_runs_of_edges_per_level():
    # 8 leaves: 1, 2 and 4 nodes.
    tree = TreeShape.of(
        SurrogateProblem(
            [1, 2, -1, -1, 5, -1, -1],
            [4, 3, -1, -1, 6, -1, -1],
            [np.ones((1, 1))] * 7,
            *np.ones((2, 1, 7)),
        )
    )
    assert [len(edges) for edges in tree.edges] == [2, 2, 0]


@pytest.mark.parametrize("seed", range(5))
def test_cuts_divide_the_nodes_until_each_pair_was_on_two_sides_of_one(seed):
    tree = TreeShape.of(random_problem(seed, n_samples=2, n_leaves=12))
    pairs = [
        (above, below)
        for cut in tree.cuts
        for above in range(100)[cut.above]
        for below in range(100)[cut.below]
    ]
    n_nodes = len(tree.order)
    assert sorted(pairs) == [
        (j, k) for j in range(n_nodes) for k in range(j + 1, n_nodes)
    ]


def test_a_chain_is_cut_in_the_middle():
    # 8 nodes of one coefficient each; each cut has half of them on either side.
    chain = [*range(1, 8), -1]
    tree = TreeShape.of(
        SurrogateProblem([-1] * 8, chain, [np.ones((1, 1))] * 8, *np.ones((2, 1, 8)))
    )
    halves = [(cut.above.stop - cut.above.start, cut.node) for cut in tree.cuts]
    assert halves == [(4, 4), (2, 2), (2, 6), (1, 1), (1, 3), (1, 5), (1, 7)]


# other arrays -----------------------------------------------------------------------------


def strict(problem):
    to = array_api_strict.asarray
    return changed(
        problem,
        features=[to(f) for f in problem.features],
        lost_if_negative=to(problem.lost_if_negative),
        lost_if_positive=to(problem.lost_if_positive),
    )


@pytest.mark.parametrize("penalty", [{}, {"l2": 0.5}, {"l1": 0.5}], ids=str)
def test_the_array_standard_is_enough(penalty):
    mine, theirs = solve(BASE, **penalty), solve(strict(BASE), **penalty)
    assert theirs.certificate.converged
    assert theirs.certificate.upper == pytest.approx(mine.certificate.upper, rel=1e-9)
    np.testing.assert_allclose(
        np.concatenate(theirs.coef), np.concatenate(mine.coef), atol=1e-6
    )


@pytest.mark.parametrize("name", ["collinear columns", "separable nodes"])
def test_a_nearly_singular_newton_matrix_of_other_arrays_is_solved_too(name):
    assert solve(strict(HARD[name])).certificate.converged


def test_general_solvers_ask_for_numpy_arrays():
    with pytest.raises(
        ProblemError, match="use solver='structured' for arrays of another"
    ):
        solve(strict(BASE), "scipy")


# blocks and threads -----------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_number_of_threads_changes_nothing(monkeypatch, n_jobs):
    in_blocks(monkeypatch, 20)
    one, more = solve(BASE), solve(BASE, n_jobs=n_jobs)
    for mine, theirs in zip(one.coef, more.coef, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_two_runs_give_the_same_bits():
    one, two = solve(BASE), solve(BASE)
    for mine, theirs in zip(one.coef, two.coef, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("n_rows", [1, 7, 1 << 20])
def test_the_size_of_blocks_changes_no_optimum(monkeypatch, n_rows):
    optimum = solve(BASE, tol=1e-9).certificate.upper
    in_blocks(monkeypatch, n_rows)
    assert solve(BASE, tol=1e-9).certificate.upper == pytest.approx(optimum, rel=1e-9)


def test_matrices_that_are_large_are_summed_in_fewer_parts(monkeypatch):
    in_blocks(monkeypatch, 10)  # 12 blocks of 120 rows; 25 coefficients
    apart = solve(BASE)
    monkeypatch.setattr(chunks, "ROOM_FOR_MATRICES", 2 * 25**2)
    together = chunk.Blocks.of_problem(BASE, 1).rows.chunks
    assert [len(some.blocks) for some in together] == [6, 6]
    assert solve(BASE).certificate.upper == pytest.approx(
        apart.certificate.upper, rel=1e-9
    )


# the Newton step --------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [{}, {"l2": 0.1}, {"l1": 0.1}])
def test_correctors_end_at_the_same_optimum_in_fewer_iterations(monkeypatch, penalty):
    without = solve(BASE, **penalty)
    monkeypatch.setattr(interior_point, "MANY", 1)
    corrected = solve(BASE, **penalty)
    assert corrected.certificate.converged
    assert corrected.certificate.upper == pytest.approx(
        without.certificate.upper, rel=1e-6
    )
    assert corrected.iterations < without.iterations


@pytest.mark.parametrize("name", HARD)
def test_hard_problems_are_certified_with_correctors_too(monkeypatch, name):
    monkeypatch.setattr(interior_point, "MANY", 1)
    assert solve(HARD[name]).certificate.converged


def test_a_corrector_that_shortens_the_step_is_not_followed(monkeypatch):
    without = solve(BASE)
    monkeypatch.setattr(interior_point, "MANY", 1)
    correct = interior_point.InteriorPoint._correct

    def shorten(self, newton, mu, lengths):
        correct(self, newton, mu, lengths)
        return 0.0, 0.0

    monkeypatch.setattr(interior_point.InteriorPoint, "_correct", shorten)
    np.testing.assert_array_equal(solve(BASE).coef, without.coef)


# the Newton matrix ------------------------------------------------------------------------


def first_point(problem):
    options = Options(*[np.zeros(sum(problem.n_features))] * 2, tol=1e-6)
    path = interior_point.InteriorPoint(chunk.Blocks.of_problem(problem, 1), options)
    path.start(1.0)
    return path


def newton_matrix(problem, roughly):
    """Upper triangle of the Newton matrix at the first point."""
    return np.triu(first_point(problem).blocks.newton(roughly))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_newton_matrix_does_what_going_up_and_down_the_tree_does(seed, own):
    problem = random_problem(seed, n_leaves=9)
    array = problem.features[0]
    features = [array.copy() if own else array for _ in range(problem.n_nodes)]
    problem = changed(problem, features=features)
    path = first_point(problem)
    upper = np.triu(path.blocks.newton(roughly=False))
    S = upper + np.triu(upper, 1).T
    applied = np.stack([path.blocks.apply(unit) for unit in np.eye(len(S))])
    np.testing.assert_allclose(S, applied, atol=1e-10 * np.abs(S).max())


@pytest.mark.parametrize("seed", range(5))
def test_products_in_single_precision_are_right_to_their_precision(seed):
    problem = random_problem(seed, n_leaves=7)
    rough, exact = (newton_matrix(problem, roughly) for roughly in (True, False))
    error = np.abs(rough - exact).max() / np.abs(exact).max()
    assert 0 < error < 1e-6


@pytest.mark.parametrize("n_rows", [1, 13, 60])
def test_the_rows_that_are_multiplied_at_a_time_change_no_matrix(monkeypatch, n_rows):
    problem = random_problem(3, n_samples=60, n_leaves=7)
    whole = newton_matrix(problem, False)
    monkeypatch.setattr(rows, "PRODUCT_ROWS", n_rows)
    np.testing.assert_allclose(newton_matrix(problem, False), whole, rtol=1e-10)


@pytest.mark.parametrize("l2", [0.0, 0.01])
@pytest.mark.parametrize("name", ["rare binary columns", "separable nodes"])
def test_single_precision_decides_nothing_in_the_end(monkeypatch, name, l2):
    mixed = solve(HARD[name], l2=l2).certificate
    monkeypatch.setattr(interior_point, "ROUGH_GAP", np.inf)  # never
    double = solve(HARD[name], l2=l2).certificate
    assert mixed.upper == pytest.approx(double.upper, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_asked_closely_all_products_are_double(monkeypatch, l2):
    def refused(self, S):
        raise AssertionError("a product in single precision")

    monkeypatch.setattr(rows.Rows, "add_rough_matrix", refused)
    assert solve(BASE, tol=1e-9, l2=l2).certificate.converged


def test_a_matrix_that_single_precision_cannot_tell_is_made_again(monkeypatch):
    seen = []
    newton = chunk.Blocks.newton

    def watched(self, roughly):
        seen.append(roughly)
        return newton(self, roughly)

    monkeypatch.setattr(chunk.Blocks, "newton", watched)
    monkeypatch.setattr(interior_point, "ROUGH_CONDITION", 0.0)  # none is good enough
    assert solve(BASE, l2=0.1).certificate.converged
    assert seen[:3] == [True, False, False]
    assert not any(seen[1:])


@pytest.mark.parametrize("shape", [(3, 5, 40), (21, 63, 1000), (63, 70, 2000)])
def test_a_product_by_tiles_is_the_product(shape):
    m, k, n = shape
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(m, n)), rng.normal(size=(k, n))
    S = np.ones((m, k))
    rows.add_product(S, X, Y)
    np.testing.assert_allclose(S, 1.0 + X @ Y.T, atol=1e-10)


# stopping ---------------------------------------------------------------------------------


def test_a_callback_sees_progress_and_can_stop():
    seen = []

    def stop_at_4(progress):
        seen.append(progress)
        return progress.iteration == 4

    with pytest.warns(CertificateWarning, match="stopped after 4 iterations"):
        solution = solve(BASE, callback=stop_at_4)
    assert [p.iteration for p in seen] == [0, 1, 2, 3, 4]
    assert not solution.certificate.converged
    full = solve(BASE).certificate
    assert solution.certificate.lower <= full.upper <= solution.certificate.upper + 1e-9


@pytest.mark.parametrize("at", [0, 3, 7])
def test_an_interrupt_leaves_the_best_point_so_far_certified(at):
    def interrupt(progress):
        if progress.iteration == at:
            raise KeyboardInterrupt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        solution = solve(BASE, callback=interrupt)
    assert solution.iterations == at
    assert np.isfinite(solution.certificate.upper)
    assert solution.certificate.lower <= solve(BASE).certificate.upper


def test_a_tolerance_out_of_reach_is_not_silent():
    with pytest.warns(CertificateWarning, match="leave some out, add a small l2"):
        solution = solve(HARD["two leaves"], tol=1e-17)
    assert not solution.certificate.converged
    assert solution.certificate.gap < 1e-9
