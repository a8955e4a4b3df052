"""Claims about time: it is kept, told from the start, and accounted for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sensortree import (
    AlternatingTreeClassifier,
    CascadeClassifier,
    Program,
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    StaticSubsetClassifier,
    save,
    tradeoff_curve,
)
from sensortree.learning.fit import STAGES
from sensortree.progress import Stopwatch, TextProgress

FOLDS = 4


class Clock:
    """Time that passes only when a classifier is fitted: a second each."""

    now = 0.0

    def __call__(self):
        return Clock.now


class Slow(LogisticRegression):
    """A classifier whose fit takes a second of the clock."""

    def fit(self, X, y, sample_weight=None):
        Clock.now += 1.0
        return super().fit(X, y, sample_weight)


@pytest.fixture
def clock(monkeypatch):
    Clock.now = 0.0
    monkeypatch.setattr("sensortree.progress.monotonic", Clock())
    return Clock


@pytest.fixture
def rows():
    X = np.random.default_rng(3).normal(size=(240, 7))
    return X, X[:, 0] + (X[:, 1] > 0) * X[:, 2] + 0.5 * X[:, 5] > 0


def slow(**parameters):
    return SensorTreeClassifier(classifier=Slow(), cv=FOLDS, **parameters)


def seconds_of_one_tree(model):
    """Its classifiers are judged without each fold, and fitted to all rows."""
    return (FOLDS + 1) * len(model.policy_.classifiers)


# keeping it -------------------------------------------------------------------------------


@pytest.mark.parametrize("max_time", [1.0, 20.0, 40.0])
def test_max_time_is_kept_but_for_one_step_and_one_tree(clock, rows, max_time):
    model = slow(max_time=max_time, program=Program(fallback=False)).fit(*rows)
    one_step = 3 * FOLDS  # extensions that are compared by their own classifier
    # Leaves that nobody reaches were part of the tree, too.
    pruned = 2 * model.structure_report_.pruned * (FOLDS + 1)
    spent = clock.now
    assert spent <= max_time + one_step + seconds_of_one_tree(model) + pruned
    assert model.structure_report_.stopped == "max_time was over"
    clock.now = 0.0
    slow(program=Program(fallback=False)).fit(*rows)
    assert clock.now > spent


def test_no_candidate_is_compared_when_time_is_over(clock, rows):
    model = slow(max_time=20.0).fit(*rows)
    assert set(model.comparison_.risk) <= {"chain", "one set", "nothing"}
    clock.now = 0.0
    assert len(slow().fit(*rows).comparison_.risk) > 3


def test_a_curve_out_of_time_is_what_was_measured(clock, rows):
    X, y = rows
    whole = tradeoff_curve(slow(structure="chain"), X, y, cv=FOLDS)
    all_of_it, clock.now = clock.now, 0.0
    max_time = 0.4 * all_of_it
    part = tradeoff_curve(slow(structure="chain", max_time=max_time), X, y, cv=FOLDS)
    assert clock.now < 0.6 * all_of_it
    assert 1 <= len(part) < len(whole)
    # A point is the same, whether there was time for others or not.
    same = np.isin(whole.cost_weight, part.cost_weight)
    np.testing.assert_array_equal(whole.fold_cost[same], part.fold_cost)


def test_without_time_a_curve_has_the_point_that_buys_nothing(clock, rows):
    curve = tradeoff_curve(slow(max_time=1e-9), *rows, cv=FOLDS)
    assert curve.points == [curve.nothing]
    assert curve.mean_cost.tolist() == [0.0]
    assert curve.everything is None


def test_a_budget_out_of_time_is_met_by_what_was_measured(clock, rows):
    X, y = rows
    model = SensorTreeClassifierCV(classifier=Slow(), cv=FOLDS, budget=2.0)
    whole = model.fit(X, y)
    all_of_it, clock.now = clock.now, 0.0
    n_points = len(whole.curve_)
    hasty = SensorTreeClassifierCV(
        classifier=Slow(), cv=FOLDS, budget=2.0, max_time=0.4 * all_of_it
    ).fit(X, y)
    assert clock.now < all_of_it
    assert len(hasty.curve_) < n_points
    assert hasty.acquisition_cost(X).mean() <= 2.0


# telling it -------------------------------------------------------------------------------


class Listener:
    """Counts what it hears."""

    def __init__(self):
        self.at_most, self.steps = None, 0

    def setup(self, estimator, context):
        self.at_most = context.max_subtasks

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.steps += context.task_name != "fit"


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"structure": "chain", "n_leaves": 3},
        {"structure": "branched", "cost_weight": 0.0},
        {"structure": "greedy", "n_leaves": 3},
        {"structure": "cascade"},
        {"sensors": {"a": [0, 1], "b": [2, 3, 4, 5, 6]}},
    ],
)
def test_a_fit_says_from_the_start_how_many_steps_it_can_take(rows, parameters):
    listener = Listener()
    SensorTreeClassifier(**parameters).set_callbacks(listener).fit(*rows)
    assert 0 < listener.steps <= listener.at_most


def test_each_line_has_the_steps_that_there_can_be_and_what_is_left_of_max_time(
    monkeypatch, capsys
):
    times = iter([0.0, 0.0, 2.0, 2.0, 5.0])
    monkeypatch.setattr("sensortree.progress.monotonic", lambda: next(times))
    progress = TextProgress(verbose=True, at_most=5, max_time=10.0)
    progress.step("reading")
    told = capsys.readouterr().err
    assert told.endswith("2.0 s  reading (step 1 of at most 5, 8 s of max_time left)\n")
    progress.expect(left=1)
    progress.step("decisions")
    assert capsys.readouterr().err.endswith("5.0 s  decisions\n")


def test_a_first_curve_is_told_before_it_is_refined(rows, capsys):
    X, y = rows
    model = SensorTreeClassifier(
        {"a": [0, 3], "b": [1, 2], "c": [4, 5, 6]}, verbose=True
    )
    curve = tradeoff_curve(model, X, y, cv=FOLDS)
    told = capsys.readouterr().err.splitlines()
    (first,) = (i for i, line in enumerate(told) if "a first curve of 7 points" in line)
    assert first == 7
    assert sum("a point" in line for line in told[first:]) == len(curve) - 7


# accounting for it ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        SensorTreeClassifier,
        AlternatingTreeClassifier,
        CascadeClassifier,
        StaticSubsetClassifier,
    ],
)
def test_every_second_of_a_fit_is_in_its_report(clock, rows, kind):
    model = kind(classifier=Slow()).fit(*rows)
    report = model.fit_report_
    assert tuple(report.seconds) == STAGES
    # Time passes only where classifiers are fitted, whoever asked for them.
    assert report.seconds["leaf classifiers"] == sum(report.seconds.values())
    assert report.seconds["leaf classifiers"] == clock.now
    assert report.n_judged >= report.n_kept == len(model.policy_.classifiers)
    assert f"{report.n_kept} kept" in str(report)


def test_decisions_that_are_only_compared_are_counted(rows):
    given = {"structure": "cascade", "classifier": "linear", "outages": False}
    alone = SensorTreeClassifier(program=Program(fallback=False), cv=FOLDS, **given)
    assert alone.fit(*rows).fit_report_.n_learned == 1
    compared = SensorTreeClassifier(cv=FOLDS, **given)
    assert compared.fit(*rows).fit_report_.n_learned == 1 + FOLDS


def test_models_of_a_path_count_their_own_time_only(clock, rows):
    path = slow(structure="cascade", outages=False).fit_path(*rows, [0.01, 0.001])
    first, second = path
    assert first.fit_report_.seconds["leaf classifiers"] == clock.now
    assert second.fit_report_.seconds["leaf classifiers"] == 0.0
    assert second.fit_report_.n_judged == 0


def test_a_budget_counts_the_curve_too(clock, rows):
    model = SensorTreeClassifierCV(
        classifier=Slow(), cv=FOLDS, cost_weights=[0.1, 0.01], budget=3.0
    ).fit(*rows)
    assert sum(model.fit_report_.seconds.values()) == pytest.approx(clock.now)
    assert model.fit_report_.seconds["curve"] > 0


def test_a_stage_inside_another_is_not_counted_twice(monkeypatch):
    times = iter([0.0, 1.0, 3.0, 7.0, 15.0])
    monkeypatch.setattr("sensortree.progress.monotonic", lambda: next(times))
    watch = Stopwatch()
    with watch.stage("outer"), watch.stage("inner"):
        pass
    # 1 to 3 and 7 to 15 are the outer's, 3 to 7 is the inner's.
    assert watch.seconds == {"outer": 10.0, "inner": 4.0}


def test_time_is_not_saved_with_a_model(rows, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    model = SensorTreeClassifier(structure="cascade").fit(*rows)
    save(model, tmp_path / "model.json")
    assert "fit_report" not in (tmp_path / "model.json").read_text()
    again = SensorTreeClassifier(structure="cascade").fit(*rows)
    save(again, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (
        tmp_path / "model.json"
    ).read_text()
