"""Claims about the engine of logistic leaves: the same minimum, in less time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sensortree import SensorTreeClassifier
from sensortree.curves.shared_leaves import PairedEngine
from sensortree.exceptions import DataError, WideBasisWarning
from sensortree.leaves import ridge, standardising
from sensortree.leaves.descent import Diagonal, Factored, descend
from sensortree.leaves.logistic import LogisticEngine
from sensortree.policy.classifiers import ConstantScorer, LogisticScorer


def rows(n_rows=300, width=3, n_classes=3, seed=0, noise=1.0):
    """Readings, and classes that depend on them by themselves and in pairs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, width)) * [1.0, 5.0, 0.2, 1.0, 1.0][:width] + 3.0
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    score = Z @ rng.normal(size=(width, n_classes)) + np.outer(
        Z[:, 0] * Z[:, 1], rng.normal(size=n_classes)
    )
    y = (score + noise * rng.gumbel(size=score.shape)).argmax(axis=1)
    return X, y


def scikit_learns(scorer, C, X, y, weight=None):
    """Its logistic regression on the same basis, as exact as it gets."""
    model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=500)
    return model.fit(scorer.basis(X), y, weight)


def weighted_loss(scorer, X, y, weight, C):
    """What is minimised, from the scorer's own arrays."""
    truth = scorer.predict_proba(X)[np.arange(len(y)), y]
    return -weight @ np.log(truth) + (scorer.coef**2).sum() / (2 * C)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_the_minimum_is_scikit_learns(n_classes, C):
    X, y = rows(n_classes=n_classes)
    solution = LogisticEngine(y, n_classes, C=C).fit(X)
    scorer = solution.scorer
    other = scikit_learns(scorer, C, X, y)
    np.testing.assert_allclose(scorer.coef, other.coef_.T, atol=1e-6)
    said = other.predict_proba(scorer.basis(X))
    np.testing.assert_allclose(scorer.predict_proba(X), said, atol=1e-6)


def test_a_minimum_with_many_coefficients_is_scikit_learns(monkeypatch):
    X, y = rows(800, 5, 4)
    monkeypatch.setattr(ridge, "LOGISTIC_NEWTON", 10)
    monkeypatch.setattr(ridge, "LOGISTIC_MUCH", 10)
    monkeypatch.setattr(ridge, "LOGISTIC_KEPT_LARGE", 1e-4)
    scorer = LogisticEngine(y, 4, C=1.0).fit(X).scorer
    other = scikit_learns(scorer, 1.0, X, y)
    said = other.predict_proba(scorer.basis(X))
    excess = weighted_loss(scorer, X, y, np.ones(800), 1.0) - (
        -np.log(said[np.arange(800), y]).sum() + (other.coef_**2).sum() / 2
    )
    # What a step promises is an estimate of what is left.
    assert -1e-9 < excess < 10 * ridge.LOGISTIC_KEPT_LARGE
    np.testing.assert_allclose(scorer.predict_proba(X), said, atol=1e-3)


@pytest.mark.parametrize("factored", [5, 2_500])
@pytest.mark.parametrize("cached", [0, 2**27])
def test_neither_the_way_nor_the_memory_moves_the_minimum(
    monkeypatch, factored, cached
):
    X, y = rows()
    expected = LogisticEngine(y, 3, C=1.0).fit(X).scorer
    monkeypatch.setattr(ridge, "LOGISTIC_FACTORED", factored)
    monkeypatch.setattr(ridge, "BASIS_KEPT", cached)
    monkeypatch.setattr(standardising, "BASIS_BLOCK", 64)
    scorer = LogisticEngine(y, 3, C=1.0).fit(X).scorer
    np.testing.assert_allclose(scorer.coef, expected.coef, atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_posteriors_out_of_fold_are_those_of_fits_without_the_fold(n_classes):
    X, y = rows(n_classes=n_classes)
    fold = np.random.default_rng(1).integers(0, 4, len(y))
    said, solution = LogisticEngine(y, n_classes, fold=fold, C=0.5).judge(X)
    basis = solution.scorer.basis(X)
    for held_out in range(4):
        train, test = fold != held_out, fold == held_out
        alone = LogisticRegression(C=0.5, tol=1e-8, max_iter=5000)
        expected = alone.fit(basis[train], y[train]).predict_proba(basis[test])
        # A few thousandths of a nat in the loss of 225 rows.
        assert np.abs(said[test] - expected).mean() < 0.002
        rows_tested = np.arange(test.sum())
        loss = -np.log(said[test][rows_tested, y[test]]).mean()
        assert loss == pytest.approx(
            -np.log(expected[rows_tested, y[test]]).mean(), abs=0.003
        )


def test_a_tight_comparison_is_the_fit_without_the_fold(monkeypatch):
    monkeypatch.setattr(ridge, "LOGISTIC_COMPARED", 1e-9)
    X, y = rows(n_classes=3)
    fold = np.arange(len(y)) % 3
    said, solution = LogisticEngine(y, 3, fold=fold, C=2.0).judge(X)
    basis = solution.scorer.basis(X)
    for held_out in range(3):
        train, test = fold != held_out, fold == held_out
        alone = LogisticRegression(C=2.0, solver="newton-cholesky", tol=1e-12)
        expected = alone.fit(basis[train], y[train]).predict_proba(basis[test])
        np.testing.assert_allclose(said[test], expected, atol=1e-4)


def test_where_there_is_much_to_compute_held_out_labels_still_do_not_leak(monkeypatch):
    """Labels at random: who has seen those of a row does better than the prior on it."""
    monkeypatch.setattr(ridge, "LOGISTIC_MUCH", 10)
    X, _ = rows(400, width=5)
    y = np.random.default_rng(3).integers(0, 4, 400)
    fold = np.arange(400) % 5
    said, solution = LogisticEngine(y, 4, fold=fold, C=1.0).judge(X)
    basis = solution.scorer.basis(X)
    truth = np.arange(400), y
    exact = np.empty_like(said)
    for held_out in range(5):
        train, test = fold != held_out, fold == held_out
        alone = LogisticRegression(solver="newton-cholesky", tol=1e-12)
        exact[test] = alone.fit(basis[train], y[train]).predict_proba(basis[test])
    seen = solution.scorer.predict_proba(X)
    leak = (np.log(said[truth]) - np.log(exact[truth])).mean()
    assert abs(leak) < 0.02 * (np.log(seen[truth]) - np.log(exact[truth])).mean()


def test_a_row_that_is_never_held_out_is_judged_by_all_rows(monkeypatch):
    monkeypatch.setattr(ridge, "LOGISTIC_COMPARED", 1e-9)
    X, y = rows()
    fold = np.arange(len(y)) % 3 - 1
    said, _ = LogisticEngine(y, 3, fold=fold, C=1.0).judge(X)
    scorer = LogisticEngine(y, 3, C=1.0).fit(X).scorer
    free = fold < 0
    np.testing.assert_allclose(said[free], scorer.predict_proba(X[free]), atol=1e-4)
    assert np.abs(said[~free] - scorer.predict_proba(X[~free])).max() > 1e-3


def test_without_folds_the_posterior_is_that_of_the_fit():
    X, y = rows()
    said, solution = LogisticEngine(y, 3).judge(X)
    np.testing.assert_allclose(said, solution.scorer.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("width", [2, 5])
def test_weights_are_repeated_rows(n_classes, width):
    X, y = rows(120, width, n_classes)
    times = np.random.default_rng(2).integers(1, 5, len(y))
    fold = np.arange(len(y)) % 5
    weighted = LogisticEngine(y, n_classes, times.astype(float), fold)
    again = LogisticEngine(y.repeat(times), n_classes, fold=fold.repeat(times))
    said, solution = weighted.judge(X)
    said_again, solution_again = again.judge(X.repeat(times, axis=0))
    np.testing.assert_allclose(said.repeat(times, axis=0), said_again, rtol=1e-6)
    assert solution.C == solution_again.C
    np.testing.assert_allclose(
        weighted.fit(X).scorer.coef,
        again.fit(X.repeat(times, axis=0)).scorer.coef,
        atol=1e-7,
    )


def test_the_penalty_has_the_largest_evidence():
    X, y = rows(150, noise=3.0)
    solution = LogisticEngine(y, 3).fit(X)
    basis = solution.scorer.basis(X)
    assert solution.C < 1

    def evidence(C):
        """The determinant of the whole Hessian, intercepts with a flat prior."""
        model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12)
        model.fit(basis, y)
        said = model.predict_proba(basis)
        extended = np.hstack([basis, np.ones((150, 1))])
        width = extended.shape[1]
        unsure = said[:, :, None] * np.eye(3) - said[:, :, None] * said[:, None, :]
        hessian = np.einsum("nab,ni,nj->aibj", unsure, extended, extended)
        hessian = hessian.reshape(3 * width, 3 * width)
        slopes = np.tile(np.arange(width) < width - 1, 3)
        loss = -np.log(said[np.arange(150), y]).sum() + (model.coef_**2).sum() / 2 / C
        eigenvalues = np.linalg.eigvalsh(hessian + np.diag(slopes / C))[1:]
        n_slopes = slopes.sum()
        return -loss - 0.5 * np.log(eigenvalues).sum() - 0.5 * n_slopes * np.log(C)

    tried = {power: evidence(3.0**power) for power in range(-5, 2)}
    best = max(tried, key=tried.__getitem__)
    assert round(np.log(solution.C) / np.log(3)) == best


def test_a_start_leads_to_the_same_minimum():
    X, y = rows()
    engine = LogisticEngine(y, 3, fold=np.arange(len(y)) % 5)
    _, start = engine.judge(X)
    warm, cold = engine.fit(X, start), engine.fit(X)
    assert warm.C == cold.C
    np.testing.assert_allclose(warm.scorer.coef, cold.scorer.coef, atol=1e-7)


def test_twice_is_the_same_to_the_last_bit():
    X, y = rows(n_classes=4)
    fold = np.arange(len(y)) % 5
    first, _ = LogisticEngine(y, 4, fold=fold).judge(X)
    second, _ = LogisticEngine(y, 4, fold=fold).judge(X)
    np.testing.assert_array_equal(first, second)


def test_a_constant_column_changes_nothing():
    X, y = rows()
    more = np.column_stack([X, np.full(len(X), 7.0)])
    plain = LogisticEngine(y, 3, C=1.0).fit(X).scorer
    wider = LogisticEngine(y, 3, C=1.0).fit(more).scorer
    np.testing.assert_allclose(
        wider.predict_proba(more), plain.predict_proba(X), atol=1e-8
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_that_separate_have_finite_coefficients(n_classes):
    X = np.arange(60.0)[:, None]
    y = np.arange(60) * n_classes // 60
    engine = LogisticEngine(y, n_classes, fold=np.arange(60) % 5)
    said, _ = engine.judge(X)
    assert (said.argmax(axis=1) == y).mean() > 0.9
    scorer = engine.fit(X).scorer
    assert np.isfinite(scorer.coef).all()
    assert np.isfinite(scorer.intercept).all()


def test_a_class_that_a_fold_takes_away_has_no_probability_there():
    X, y = rows(n_classes=3)
    fold = np.where(y == 2, 0, np.arange(len(y)) % 4)
    said, _ = LogisticEngine(y, 3, fold=fold).judge(X)
    np.testing.assert_array_equal(said[fold == 0][:, 2], 0.0)
    assert (said[fold != 0][:, 2] > 0).all()
    np.testing.assert_allclose(said.sum(axis=1), 1.0, rtol=1e-6)


def test_the_only_class_that_a_fold_leaves_is_certain():
    X, y = rows(n_classes=2)
    fold = np.where(y == 1, 0, 1)
    said, _ = LogisticEngine(y, 2, fold=fold).judge(X)
    np.testing.assert_array_equal(said, np.eye(2)[1 - y])


def test_without_columns_or_with_one_class_the_prior_answers():
    y = np.array([0, 1, 1, 1])
    weight = np.array([3.0, 1.0, 1.0, 1.0])
    said, solution = LogisticEngine(y, 2, weight, np.arange(4)).judge(np.empty((4, 0)))
    assert isinstance(solution.scorer, ConstantScorer)
    np.testing.assert_allclose(said, 0.5)
    said, _ = LogisticEngine(np.ones(4, int), 3, None, np.arange(4)).judge(np.eye(4))
    np.testing.assert_array_equal(said, np.tile([0.0, 1.0, 0.0], (4, 1)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_readings_that_are_no_numbers_are_named(bad):
    X, y = rows()
    X[3, 1] = bad
    with pytest.raises(DataError, match="NaN or infinite; give the sensor a transf"):
        LogisticEngine(y, 3).fit(X)


def test_a_basis_that_would_be_too_wide_is_linear_and_says_how_wide():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1000))
    y = (X[:, 0] > 0).astype(int)
    with pytest.warns(WideBasisWarning, match="1000 columns has 501500 terms"):
        scorer = LogisticEngine(y, 2).fit(X).scorer
    assert isinstance(scorer, LogisticScorer)
    assert scorer.degree == 1
    assert (scorer.predict(X) == y).all()


def test_a_tree_keeps_the_classifier_that_is_fitted_alone():
    X, y = rows(400, 4, 3)
    model = SensorTreeClassifier(cost_weight=0.001).fit(X, y)
    for known, scorer in model.policy_.classifiers.items():
        columns = sorted(int(name[1:]) for name in known)
        if columns:
            alone = LogisticEngine(y, 3).fit(X[:, columns]).scorer
            np.testing.assert_allclose(
                scorer.predict_proba(X[:, columns]),
                alone.predict_proba(X[:, columns]),
                atol=1e-8,
            )


def test_functions_side_by_side_end_where_each_ends_alone():
    """Quartic bowls around centers of their own, of very different depths."""
    rng = np.random.default_rng(0)
    centers, depth = rng.normal(size=(4, 6)), np.array([1e-3, 1.0, 10.0, 1e3])

    def functions(numbers, points):
        away = points - centers[numbers]
        value = depth[numbers] * ((away**2).sum(axis=1) + (away**4).sum(axis=1))
        return value, depth[numbers][:, None] * (2 * away + 4 * away**3)

    for curvature in (Factored(np.eye(3)), Diagonal(np.ones(6))):
        start = np.full((4, 6), 3.0)
        found, arrived = descend(functions, start, curvature, 1e-16, 500)
        assert arrived
        np.testing.assert_allclose(found, centers, atol=1e-5)


def test_each_function_comes_as_near_as_is_asked_of_it():
    def functions(numbers, points):
        return (points**4).sum(axis=1), 4 * points**3

    tol = np.array([1e-3, 1e-12])
    start = np.tile([2.0, 0.7, -1.1], (2, 1))
    found, _ = descend(functions, start, Diagonal(np.ones(3)), tol, 500)
    for k in (0, 1):
        alone, _ = descend(functions, start[:1], Diagonal(np.ones(3)), tol[k], 500)
        np.testing.assert_array_equal(found[k], alone[0])
    assert np.abs(found[1]).max() < np.abs(found[0]).max()


def test_a_function_that_is_never_lowered_stays_where_it_is():
    def functions(numbers, points):
        return np.zeros(len(points)), np.ones(points.shape)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, _ = descend(functions, np.zeros((2, 3)), Diagonal(np.ones(3)), 1e-9, 100)
    np.testing.assert_array_equal(found, np.zeros((2, 3)))


# folds of folds ---------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "n_classes"), [(300, 2), (300, 3), (2500, 3)])
def test_folds_judged_together_are_folds_judged_alone(n_rows, n_classes):
    X, y = rows(n_rows, n_classes=n_classes)
    fold = np.arange(n_rows) % 5
    together = PairedEngine(y, n_classes, fold=fold).judge_without_each(X)
    for out in range(5):
        rest = fold != out
        alone = LogisticEngine(y[rest], n_classes, fold=fold[rest])
        posterior, solution = alone.judge(X[rest])
        said, start = together[out]
        assert start.C == solution.C
        assert np.isnan(said[~rest]).all()
        # The penalty counts in units of each column, and these are of other rows.
        assert np.abs(said[rest] - posterior).max() < 0.03
        assert np.abs(said[rest] - posterior).mean() < 0.004


def test_of_two_folds_each_is_left_out_with_leaves_of_the_same_degree():
    X, y = rows(n_classes=2)
    linear = PairedEngine(y, 2, fold=np.arange(len(y)) % 2, degree=1)
    for _, solution in linear.judge_without_each(X).values():
        assert solution.scorer.degree == 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_of_a_fold_say_nothing_where_it_is_left_out(n_classes):
    X, y = rows(300, n_classes=n_classes)
    fold = np.arange(300) % 5
    lied = np.where(fold == 2, (y + 1) % n_classes, y)
    honest, other = (
        PairedEngine(t, n_classes, fold=fold).judge_without_each(X)[2]
        for t in (y, lied)
    )
    assert honest[1].C == other[1].C
    # Fits set out from one that has seen the labels, and end within a tenth of what is
    # compared.
    np.testing.assert_allclose(honest[0], other[0], atol=2e-3)


def test_a_class_that_two_folds_take_away_is_never_answered():
    X, y = rows(200, n_classes=2)
    fold = np.where(y == 1, np.arange(200) % 2, np.arange(200) % 5)
    said = PairedEngine(y, 2, fold=fold).judge_without_each(X)[0][0]
    assert (said[fold == 1] == [1.0, 0.0]).all()
    assert ((said[fold == 3] > 0) & (said[fold == 3] < 1)).all()


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_second_derivatives_are_how_the_gradient_changes(n_classes, scale):
    X, y = rows(200, n_classes=n_classes)
    weight = scale * np.random.default_rng(1).uniform(0.1, 2, size=200)
    fold = np.sort(np.arange(200) % 4)
    labels = ridge.FoldedLabels(y, weight, fold, n_classes, "evidence")
    problem = ridge.RidgeProblem(X, 2, labels, compared_only=False)
    shape = problem.n_outputs, problem.n_terms + 1
    coef = 0.3 * np.random.default_rng(2).normal(size=shape)
    hessian = problem.hessian(coef, out=1)
    free = np.inf  # no penalty
    step = 1e-5
    for k in (0, coef.size // 2, coef.size - 1):
        moved = np.array([coef, coef])
        moved.reshape(2, -1)[:, k] += [step, -step]
        _, gradient = problem.losses(free, moved, np.array([1, 1]))
        change = (gradient[0] - gradient[1]).ravel() / (2 * step)
        np.testing.assert_allclose(
            hessian[k], change, rtol=1e-4, atol=1e-5 * np.abs(hessian).max()
        )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_reading_far_out_that_hardly_counts_changes_nothing(n_classes):
    X, y = rows(n_classes=n_classes)
    weight = np.ones(len(y))
    weight[0] = 1e-60
    far = X.copy()
    far[0, 0] += 1e20
    near, out = (LogisticEngine(y, n_classes, weight).fit(Z).scorer for Z in (X, far))
    np.testing.assert_allclose(
        near.predict_proba(X[1:]), out.predict_proba(X[1:]), atol=1e-6
    )


def test_of_many_coefficients_the_penalty_loses_least_on_held_out_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 36))  # 702 terms: too many for evidence
    y = (X[:, 0] + X[:, 1] + rng.normal(size=600) > 0).astype(int)
    fold = np.arange(600) % 5

    def log_loss(C):
        likely, solution = LogisticEngine(y, 2, fold=fold, C=C).judge(X)
        return -np.log(likely[np.arange(600), y]).mean(), solution.C

    chosen, C = log_loss("evidence")
    assert C < 1
    assert chosen < 0.75 * log_loss(1.0)[0]
    assert chosen <= 1.05 * min(log_loss(3.0**power)[0] for power in range(-5, 2))
    # few coefficients are worth their evidence, and many rows need no choice
    assert not LogisticEngine(y, 2, fold=fold)._problem(X[:, :9]).wants_choice
    assert not LogisticEngine(y, 2, fold=fold, C=0.5)._problem(X).wants_choice


def test_a_penalty_chosen_by_rows_is_the_same_in_any_order_of_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 36))
    y = (X[:, 0] * X[:, 1] + rng.normal(size=500) > 0).astype(int)
    fold, order = np.arange(500) % 5, rng.permutation(500)
    likely, solution = LogisticEngine(y, 2, fold=fold).judge(X)
    turned, again = LogisticEngine(y[order], 2, fold=fold[order]).judge(X[order])
    assert again.C == solution.C
    np.testing.assert_allclose(turned, likely[order], atol=1e-3)
