"""Rows whose log ended: readings in place of what was not bought, and what they lose."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from sensortree import Program, SensorTreeClassifier, SensorTreeRegressor
from sensortree.leaves.boosting import BoostedEngine
from sensortree.leaves.fitting import judge_leaf_classifiers
from sensortree.leaves.logistic import LogisticEngine
from sensortree.leaves.regression import RidgeEngine
from sensortree.leaves.regressors import BoostedNumbers
from sensortree.leaves.rows import Continued, TrainingRows, expectation, expected
from sensortree.logs.continuing import LogRows, continue_rows
from sensortree.logs.gaussians import learn_gaussians, numbers_among, patterns_of
from sensortree.logs.leaves import LoggedClassifiers
from sensortree.sensors.sensor import resolve_sensors
from sensortree.sensors.table import Table
from sensortree.tree.tree import Leaf, SensorTree

ALL = frozenset({"first", "second"})


def sensor_set(n_columns=2):
    names = ["first", "second"]
    columns = {"first": [0], "second": list(range(1, n_columns))}
    costs = dict.fromkeys(names, 1.0)
    return resolve_sensors(columns, costs, Table(np.zeros((3, n_columns))))[0]


def two_classes(n_rows, seed=0, slope=(0.8, -0.6)):
    """A second reading that goes with the first, differently in each class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n_rows)
    first = rng.normal(size=n_rows) + y
    second = np.array(slope)[y] * first + 0.5 * rng.normal(size=n_rows) + 2 * y
    # the second is bought where the first is low
    bought = rng.random(n_rows) < 1 / (1 + np.exp(first))
    return np.column_stack([first, second]), y, bought


# Gaussians --------------------------------------------------------------------------------


def learned(X, y, bought):
    known = np.column_stack([np.ones(len(X), bool), bought])
    patterns = patterns_of(known, ~bought)
    values = np.where(known, X, np.nan)
    return learn_gaussians(values, known, y, 2, patterns), values, known, patterns


def test_what_goes_with_what_is_learned_from_rows_that_are_not_complete():
    X, y, bought = two_classes(20_000)
    gaussians, *_ = learned(X, y, bought)
    scale = gaussians.scale[1] / gaussians.scale[0]
    for c, slope in enumerate((0.8, -0.6)):
        covariance = gaussians.covariance[c]
        assert covariance[0, 1] / covariance[0, 0] * scale == pytest.approx(
            slope, abs=0.03
        )
        # who bought is not who is there: the mean of those who bought is off
        mean = gaussians.mean[c] * gaussians.scale + gaussians.center
        assert mean[1] == pytest.approx(X[y == c, 1].mean(), abs=0.05)
        assert abs(X[bought & (y == c), 1].mean() - X[y == c, 1].mean()) > 0.1


def test_readings_are_drawn_as_those_that_were_bought_are_spread():
    X, y, bought = two_classes(20_000)
    gaussians, values, _, patterns = learned(X, y, bought)
    drawn = gaussians.drawn(values, patterns, y, seed=0)
    assert (drawn[bought] == X[bought]).all()
    assert (drawn[:, 0] == X[:, 0]).all()
    for c in range(2):
        rows = ~bought & (y == c)
        told, true = drawn[rows, 1], X[rows, 1]
        assert told.mean() == pytest.approx(true.mean(), abs=0.06)
        assert np.corrcoef(X[rows, 0], told)[0, 1] == pytest.approx(
            np.corrcoef(X[rows, 0], true)[0, 1], abs=0.05
        )
    assert (drawn == gaussians.drawn(values, patterns, y, seed=0)).all()


def test_nothing_that_was_filled_leaves_the_range_of_what_was_bought():
    X, y, bought = two_classes(500)
    gaussians, values, _, patterns = learned(X, y, bought)
    other = np.where(bought, np.arange(500), np.flatnonzero(bought)[0])
    for filled in (
        gaussians.drawn(values, patterns, y, seed=1),
        gaussians.moved(values, other, patterns, y),
    ):
        assert filled[:, 1].min() >= X[bought, 1].min() - 1e-12
        assert filled[:, 1].max() <= X[bought, 1].max() + 1e-12


def test_only_numbers_without_gaps_move():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    X[:, 1] = X[:, 1] > 0  # yes or no
    X[3, 2] = np.nan  # a gap
    known = np.ones(X.shape, bool)
    assert numbers_among(X, known).tolist() == [0, 3]
    known[3, 2] = False  # which was not bought
    assert numbers_among(X, known).tolist() == [0, 2, 3]


def test_too_many_columns_are_left_as_they_are():
    X = np.random.default_rng(0).normal(size=(60, 700))
    known = np.ones(X.shape, bool)
    known[30:, 350:] = False
    values = np.where(known, X, np.nan)
    patterns = patterns_of(known, ~known.all(axis=1))
    level = np.zeros(60, int)
    gaussians = learn_gaussians(values, known, level, 1, patterns)
    assert not len(gaussians.columns)
    other = np.arange(60) % 30
    moved = gaussians.moved(values, other, patterns, level)
    assert (moved[30:, 350:] == X[:30, 350:]).all()


# rows that go on --------------------------------------------------------------------------


def logged(X, y, bought, fold=None):
    blocks = [X[:, :1], np.where(bought[:, None], X[:, 1:], np.nan)]
    held = np.column_stack([np.ones(len(X), bool), bought])
    fold = np.arange(len(X)) % 5 if fold is None else fold
    return LogRows(sensor_set(X.shape[1]), blocks, held, y, fold, False)


def test_a_row_keeps_its_own_readings_and_takes_no_more_than_it_lacks():
    X, y, bought = two_classes(600)
    log = continue_rows(logged(X, y, bought), frozenset({"first"}))
    filled = log.features(ALL)
    assert (filled[:, 0] == X[:, 0]).all()
    assert (filled[bought, 1] == X[bought, 1]).all()
    off = filled[~bought, 1] - X[~bought, 1]
    spread = X[~bought, 1].std()
    assert np.sqrt((off**2).mean()) < 0.75 * spread * np.sqrt(2)
    for c in range(2):  # as in its class: the slope is that of all rows
        rows = ~bought & (y == c)
        slope = np.polyfit(X[rows, 0], filled[rows, 1], 1)[0]
        assert slope == pytest.approx((0.8, -0.6)[c], abs=0.15)


def test_a_category_is_that_of_the_stand_in():
    X, y, bought = two_classes(600)
    level = np.eye(3)[np.random.default_rng(1).integers(3, size=600)]
    X = np.hstack([X, level])
    log = continue_rows(logged(X, y, bought), frozenset({"first"}))
    filled = log.features(ALL)
    assert (filled[:, 2:].sum(axis=1) == 1).all()
    assert (filled[:, 2:] == level[log.other[0]]).all()


def test_rows_drawn_for_a_leaf_without_a_fold_know_nothing_of_the_fold():
    X, y, bought = two_classes(600)
    fold = np.arange(600) % 5

    def taught(readings):
        log = logged(readings, y, bought)
        continued = continue_rows(log, frozenset({"first"}))
        rows = TrainingRows(
            reader=None,
            blocks=log.blocks,
            y=y,
            classes=np.arange(2),
            weight=np.ones(600),
            weighted=False,
            fold=fold,
            continued=continued,
        )
        return LoggedClassifiers(rows, None, None)._teaching(ALL, 0.5, 0)

    elsewhere = X.copy()
    elsewhere[fold == 0] += 3.0
    for one, other in zip(taught(X), taught(elsewhere), strict=True):
        np.testing.assert_array_equal(one, other)
    values, labels, weight = taught(X)
    n_real = int((bought & (fold != 0)).sum())
    n_lacking = int((~bought & (fold != 0)).sum())
    assert len(values) == len(labels) == n_real + 10 * n_lacking
    assert weight.sum() == pytest.approx(n_real + 0.5 * n_lacking)


# what leaves lose, doubly robust ----------------------------------------------------------


def lossy(told, other_told, level, other, has):
    """Rows of which only the second sensor may be lacking."""
    n_rows = len(has)
    none = [np.zeros((n_rows, 1))] * 2
    return Continued(
        sensor_set(),
        (none,),
        (ALL,),
        np.column_stack([np.ones(n_rows, bool), has]),
        level,
        n_rows,
        np.arange(n_rows),
        other[None],
        np.stack([told, other_told], axis=1)[None],
    )


def test_what_was_told_puts_right_who_stands_in_badly():
    # What is lost is linear in what was told; stand-ins are not like those they stand for,
    # and losses of filled readings say nothing.
    rng = np.random.default_rng(0)
    has = np.arange(2000) < 1000
    t = np.where(has, rng.normal(size=2000), rng.normal(size=2000) + 0.7)
    true = 1 + 0.3 * t + 0.1 * rng.normal(size=2000)
    other = np.where(has, np.arange(2000), rng.integers(1000, size=2000))
    log = lossy(t[:, None], t[other][:, None], np.zeros(2000, int), other, has)
    lost = np.where(has, true, 5.0)
    by_matching = np.where(has, true, true[other]).mean()
    right = log.put_right(lost, ALL)
    assert abs(by_matching - true.mean()) > 0.08
    assert right.mean() == pytest.approx(true.mean(), abs=0.02)
    assert (right[has] == true[has]).all()


def test_who_stands_in_well_puts_right_what_is_expected_badly():
    # Stand-ins are told the same; what is lost is far from linear in what was told.
    rng = np.random.default_rng(1)
    t = rng.normal(size=1000)
    t = np.concatenate([t, t + 1e-3 * rng.normal(size=1000)])
    has = np.arange(2000) < 1000
    true = np.sin(5 * t) + t**2 + 0.1 * rng.normal(size=2000)
    other = np.arange(2000) % 1000
    log = lossy(t[:, None], t[other][:, None], np.zeros(2000, int), other, has)
    right = log.put_right(np.where(has, true, -3.0), ALL)
    assert right.mean() == pytest.approx(true.mean(), abs=0.02)


def test_levels_are_put_right_each_by_its_own_rows():
    rng = np.random.default_rng(2)
    level = np.arange(4000) % 2
    has = np.arange(4000) < 2000
    other = np.where(has, np.arange(4000), np.arange(4000) - 2000)
    told = np.zeros((4000, 1))
    true = level + 0.1 * rng.normal(size=4000)
    log = lossy(told, told, level, other, has)
    right = log.put_right(np.where(has, true, 0.5), ALL)
    for c in range(2):
        assert right[~has & (level == c)].mean() == pytest.approx(c, abs=0.03)


def test_what_is_lost_is_as_it_is_where_everything_was_bought():
    t, level = np.zeros((50, 1)), np.zeros(50, int)
    log = lossy(t, t, level, np.arange(50), np.ones(50, bool))
    lost = np.random.default_rng(0).normal(size=50)
    assert (log.put_right(lost, ALL) == lost).all()
    assert (log.put_right(lost, frozenset({"first"})) == lost).all()


def test_an_expectation_meets_the_mean_of_what_it_learned_from():
    rng = np.random.default_rng(3)
    told, level = rng.normal(size=(200, 3)), rng.integers(4, size=200)
    value = rng.normal(size=200) ** 2
    found = expectation(told, level, value, 4)
    assert expected(found, told, level).mean() == pytest.approx(value.mean())


# rows of weight 0 are judged, and not learned from ----------------------------------------


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("boosted", [False, True])
def test_a_row_of_weight_0_is_judged_and_teaches_nothing(numbers, boosted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + X[:, 1] if numbers else (X[:, 0] + X[:, 1] > 0).astype(int)
    fold, weight = np.arange(400) % 5, (np.arange(400) < 250).astype(float)

    def judged(labels):
        if numbers:
            kind = BoostedNumbers if boosted else RidgeEngine
            return kind(labels, weight, fold).judge(X)[0]
        kind = BoostedEngine if boosted else LogisticEngine
        return kind(labels, 2, weight, fold).judge(X)[0]

    wrong = np.where(weight > 0, y, -y if numbers else 1 - y)
    one, other = judged(y), judged(wrong)
    np.testing.assert_allclose(one, other, atol=1e-5)
    if not numbers:
        assert (one.argmax(axis=1) == y)[weight == 0].mean() > 0.85


def test_a_classifier_of_the_user_is_taught_by_some_rows_and_judges_all():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    taught, whole = np.arange(300) < 150, frozenset({"first"})
    fold = np.arange(300) % 5
    said = [
        judge_leaf_classifiers(
            GaussianNB(), {whole: X}, labels, 2, None, fold, None, taught
        )[whole]
        for labels in (y, np.where(taught, y, 1 - y))
    ]
    np.testing.assert_array_equal(*said)


def from_log_and_from_all(estimator, X, target, bought):
    """A model of all sensors, from a log and from a table without gaps."""
    acquired = np.column_stack([np.ones(len(X), int), 2 * bought])
    seen = np.where(acquired > 0, X, np.nan)
    given = {"structure": SensorTree(Leaf(ALL)), "program": Program(fallback=False)}
    sensors = {"first": [0], "second": [1]}
    return (
        estimator(sensors, **given).fit(seen, target, acquired=acquired),
        estimator(sensors, **given).fit(X, target),
    )


@pytest.mark.parametrize("kind", ["linear", "logistic2", "boosted"])
def test_all_kinds_of_leaves_are_learned_from_a_log(kind):
    X, y, bought = two_classes(1500, slope=(0.5, 0.5))
    estimator = partial(SensorTreeClassifier, classifier=kind)
    logged, whole = from_log_and_from_all(estimator, X, y, bought)
    new, right, _ = two_classes(2000, seed=5, slope=(0.5, 0.5))
    assert logged.score(new, right) > whole.score(new, right) - 0.03


@pytest.mark.parametrize("kind", ["linear", "quadratic", "boosted"])
def test_numbers_of_all_kinds_are_learned_from_a_log(kind):
    X, _, bought = two_classes(400, slope=(0.5, 0.5))
    estimator = partial(SensorTreeRegressor, regressor=kind)
    logged, whole = from_log_and_from_all(estimator, X, X.sum(axis=1), bought)
    new, _, _ = two_classes(2000, seed=5, slope=(0.5, 0.5))
    right = new.sum(axis=1)
    assert logged.score(new, right) > whole.score(new, right) - 0.05
