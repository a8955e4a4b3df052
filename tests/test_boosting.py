"""Boosted leaves: rounds follow the data, and a masked booster answers for any subset."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from sensortree import Program, SensorTreeClassifier
from sensortree.constants import BOOSTED_UNJUDGED
from sensortree.leaves import boosting
from sensortree.leaves.boosting import BoostedEngine
from sensortree.leaves.coding import coded
from sensortree.leaves.sklearn_private import boosted_rounds
from sensortree.structure.masking import MaskedScreen

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
Y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int) + (X[:, 2] > 1)
FOLD = np.arange(600) % 5


def engine(y=Y, **parameters):
    return BoostedEngine(y, int(y.max()) + 1, **{"fold": FOLD, **parameters})


def log_loss(said, y):
    return -np.log(np.maximum(said[np.arange(len(y)), y], 1e-12)).mean()


def test_a_row_is_judged_without_its_fold():
    said, n_rounds = engine().judge(X)
    changed = X.copy()
    changed[FOLD == 2] = 0.0  # what is held out does not matter to who judges it
    without = BoostedEngine(Y, 3, fold=FOLD)._without([2], coded(X))
    again = BoostedEngine(Y, 3, fold=FOLD)._without([2], coded(changed))
    for fold in (without, again):
        fold.X_judged = X[FOLD == 2]
        scores = fold.boost(0, n_rounds)[-1]
        np.testing.assert_array_equal(fold.answer(scores), said[FOLD == 2])


def test_of_many_rows_folds_are_held_out_several_at_a_time(monkeypatch):
    monkeypatch.setattr(boosting, "BOOSTED_MANY_ROWS", 600)
    said, n_rounds = engine().judge(X)
    for group in ([0, 3], [1, 4], [2]):
        without = engine()._without(group, coded(X))
        scores = without.boost(0, n_rounds)[-1]
        np.testing.assert_array_equal(
            without.answer(scores), said[np.isin(FOLD, group)]
        )


def test_the_more_columns_the_fewer_bins_each_of_them_has():
    narrow, wide = np.zeros((40, 2)), np.zeros((40, 1_000))
    narrow[:, 0] = wide[:, 0] = np.arange(40)
    y = np.arange(40) % 2
    bins = [BoostedEngine(y, 2).fit(X, 1).max_bins for X in (narrow, wide)]
    assert bins == [255, 32]


def test_noise_gets_fewer_rounds_than_a_signal():
    noise = RNG.integers(0, 2, 600)
    signal = (X[:, 0] * X[:, 1] + 0.2 * X[:, 2] > 0).astype(int)
    assert engine(noise).judge(X)[1] < engine(signal).judge(X)[1]


@pytest.mark.slow
def test_the_number_of_rounds_is_better_than_many_more():
    said, n_rounds = engine().judge(X)
    folds = [engine()._without([f], coded(X)) for f in range(5)]
    more = np.empty_like(said)
    for fold in folds:
        more[fold.judged] = fold.posterior(fold.boost(0, 5 * n_rounds)[-1], 3)
    assert log_loss(said, Y) < log_loss(more, Y)


def test_what_is_kept_is_an_ordinary_booster_with_the_rounds_of_the_folds():
    _, n_rounds = engine().judge(X)
    fitted = engine().fit(X, n_rounds)
    assert type(fitted) is HistGradientBoostingClassifier
    assert len(boosted_rounds(fitted)) == n_rounds
    assert len(boosted_rounds(engine().fit(X))) == BOOSTED_UNJUDGED


def test_nothing_known_is_answered_by_the_weighted_prior():
    weight = np.where(Y == 0, 3.0, 1.0)
    said, _ = engine(weight=weight).judge(np.empty((600, 0)))
    prior = np.bincount(Y, weight) / weight.sum()
    np.testing.assert_allclose(said, np.tile(prior, (600, 1)))


def test_a_class_that_a_fold_takes_away_is_not_expected_there():
    y = np.where(FOLD == 0, 2, (X[:, 0] > 0).astype(int))
    said, _ = engine(y).judge(X)
    np.testing.assert_array_equal(said[FOLD == 0, 2], 0.0)
    np.testing.assert_allclose(said.sum(axis=1), 1.0)


def test_one_class_in_all_other_folds_is_all_there_is():
    y = (FOLD == 0).astype(int)
    said, _ = engine(y).judge(X)
    np.testing.assert_array_equal(said[FOLD == 0], [[1.0, 0.0]] * 120)


def test_rows_that_are_never_held_out_are_judged_by_the_fit_to_all():
    fold = np.where(np.arange(600) < 20, -1, FOLD)
    judge = engine(fold=fold)
    said, n_rounds = judge.judge(X)
    expected = judge.fit(X, n_rounds).predict_proba(X[:20])
    np.testing.assert_allclose(said[:20], expected)


def test_weights_and_gaps_reach_the_trees():
    gaps = X.copy()
    gaps[::3, 0] = np.nan
    weight = np.where(Y == 1, 10.0, 1.0)
    plain, weighted = engine().judge(gaps)[0], engine(weight=weight).judge(gaps)[0]
    assert weighted[:, 1].mean() > plain[:, 1].mean()
    assert np.isfinite(plain).all()


# the masked booster ---------------------------------------------------------------------


def screen(**parameters):
    blocks = [X[:, [0]], X[:, [1, 2]], X[:, [3]]]
    return MaskedScreen(blocks, Y, np.ones(600), FOLD, **parameters)


@pytest.mark.parametrize("subset", [[], [0], [1], [0, 1], [0, 1, 2]])
def test_the_screen_says_what_its_boosters_say_of_blanked_rows(subset, monkeypatch):
    fitted = []
    fit = HistGradientBoostingClassifier.fit

    def spy(self, *rows):
        fitted.append(fit(self, *rows))
        return self

    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", spy)
    masked = screen()
    owner = np.array([0, 1, 1, 2])
    blanked = np.where(np.isin(owner, subset), X, np.nan)
    expected = np.empty((600, 3))
    for half, booster in enumerate(fitted):
        rows = half == FOLD % 2
        expected[rows] = booster.predict_proba(blanked[rows])
    np.testing.assert_allclose(masked.scores(subset), expected, atol=1e-5)


def test_what_is_kept_changes_nothing():
    fresh, used = screen(), screen()
    for subset in ([0], [1], [0, 2]):
        used.scores(subset)
    np.testing.assert_array_equal(used.scores([0, 1]), fresh.scores([0, 1]))


def test_two_sensors_tell_what_neither_tells_alone():
    masked = screen()
    alone = min(log_loss(masked.scores([sensor]), Y) for sensor in (0, 1, 2))
    assert log_loss(masked.scores([0, 1]), Y) < alone - 0.1


def test_with_boosted_leaves_a_search_trains_no_classifier():
    grid = np.random.default_rng(3).normal(size=(500, 6))
    y = (grid[:, 0] + grid[:, 1] * grid[:, 2] > 0).astype(int)
    model = SensorTreeClassifier(
        classifier="boosted", structure="chain", program=Program(fallback=False)
    ).fit(grid, y)
    report = model.structure_report_
    assert report.n_classifiers == 0
    assert report.n_screened > 6
    trained = SensorTreeClassifier(
        classifier="boosted",
        structure="chain",
        n_exact="all",
        n_leaves=2,
        program=Program(fallback=False),
    ).fit(grid, y)
    assert trained.structure_report_.n_classifiers > 6
