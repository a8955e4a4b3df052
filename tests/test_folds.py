"""Folds: classes and equal readings are spread, groups are whole, order does not matter."""

import csv
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from typer.testing import CliRunner

from sensortree import (
    CSTCClassifier,
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    SensorTreeRegressor,
    SensorTreeRegressorCV,
    load,
    tradeoff_curve,
)
from sensortree.baselines.cstc import split_rows
from sensortree.baselines.linear_tree import linear_data
from sensortree.cli.app import app
from sensortree.curves.held_out import HeldOutFolds
from sensortree.estimators.validation import read_rows
from sensortree.exceptions import DataError, FewRowsWarning
from sensortree.leaves.folds import assign_folds, by_content
from sensortree.leaves.rows import Observations
from sensortree.progress import TextProgress


def discrete(n_rows=300, seed=0):
    """Two yes-or-no sensors that only together say the class."""
    X = np.random.default_rng(seed).integers(0, 2, size=(n_rows, 2)).astype(float)
    return X, (X[:, 0] != X[:, 1]).astype(int)


def visits(n_patients=60, n_visits=4, seed=0):
    """Patients, each with a class and readings of its own, and visits that repeat them."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n_patients, 2)), n_visits, axis=0)
    y = np.repeat(rng.integers(0, 2, n_patients), n_visits)
    X += 0.001 * rng.normal(size=X.shape)
    return X, y, np.repeat(np.arange(n_patients), n_visits)


def read(model, X, y, weight=None, groups=None):
    """Training rows, and the fold of each row of X; -1 where it does not count."""
    rows = read_rows(model, model._settings(), X, y, weight, None, groups=groups)
    fold = np.full(len(X), -1)
    fold[rows.rows] = rows.fold
    return rows, fold


def counts(fold, which, n_folds=5):
    """Rows of each fold among some, (n_folds,)."""
    return np.bincount(fold[which], minlength=n_folds)


def deal(y, reading=None, group=None, n_folds=5, seed=0):
    """Folds of rows that are sorted already."""
    reading = np.arange(len(y)) if reading is None else reading
    return assign_folds(y, reading, n_folds, group, np.unique(y), seed)


# classes and readings ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_each_fold_has_as_many_rows_of_a_class_as_any_other_but_one(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(203, 2)), rng.choice(4, 203, p=[0.6, 0.3, 0.05, 0.05])
    _, fold = read(SensorTreeClassifier(), X, y)
    assert np.ptp(counts(fold, fold >= 0)) <= 1
    for code in range(4):
        assert np.ptp(counts(fold, y == code)) <= 1


def test_equal_rows_are_spread_over_the_folds():
    X, y = discrete()
    _, fold = read(SensorTreeClassifier(), X, y)
    cell = (2 * X[:, 0] + X[:, 1]).astype(int)
    for held_out in range(5):
        assert set(cell[fold != held_out]) == {0, 1, 2, 3}
    for one in range(4):
        assert counts(fold, cell == one).min() > 0


@pytest.mark.parametrize("n_readings", [4, 16, 50])
def test_noise_is_held_out_as_noise(n_readings):
    # The most frequent class of a reading, as other folds have it, is right half the time.
    # Were readings of a class dealt out evenly, it would seem to be right more often.
    wrong = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        reading, y = np.sort(rng.integers(0, n_readings, 200)), rng.integers(0, 2, 200)
        fold = deal(y, reading, seed=seed)
        for f in range(5):
            kept = fold != f
            seen = np.bincount(reading[kept], 2 * y[kept] - 1, n_readings)
            guess = np.where(seen == 0, 0.5, seen > 0)[reading[~kept]]
            wrong.append(np.abs(guess - y[~kept]).mean())
    assert np.mean(wrong) == pytest.approx(0.5, abs=0.015)


def test_what_two_sensors_say_together_is_learned_from_300_rows():
    X, y = discrete()
    model = SensorTreeClassifier(cost_weight=0.05, structure="exhaustive").fit(X, y)
    assert model.score(*discrete(seed=1)) == 1.0


def test_low_and_high_numbers_are_in_every_fold():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    _, fold = read(SensorTreeRegressor(), X, y)
    quarter = np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), y)
    for one in range(4):
        assert np.ptp(counts(fold, quarter == one)) <= 2
    assert np.ptp(counts(fold, fold >= 0)) <= 1


def test_rows_are_drawn_and_not_dealt_in_the_order_of_their_readings():
    X = np.arange(100.0)[:, None]
    _, fold = read(SensorTreeClassifier(), X, np.arange(100) % 2)
    assert len(set(np.diff(fold))) > 3


def test_the_only_row_of_a_class_is_never_held_out():
    with pytest.warns(
        FewRowsWarning, match="class 1 has a single row; that row cannot"
    ):
        fold = deal(np.array([0, 0, 0, 0, 1]), n_folds=3)
    assert fold[-1] == -1
    assert set(fold[:-1]) == {0, 1, 2}


def test_two_rows_of_a_class_are_in_two_folds():
    for seed in range(20):
        y = np.r_[np.zeros(31, int), 1, 1]
        assert len(set(deal(y, seed=seed)[-2:])) == 2


def test_one_row_is_not_held_out_from_itself():
    assert assign_folds(np.zeros(1, int), np.zeros(1, int), 5).tolist() == [-1]


# order and seed ---------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
def test_the_order_of_rows_changes_neither_tree_nor_predictions(grouped):
    X, y = discrete(200)
    y = np.where(np.random.default_rng(1).random(200) < 0.1, 1 - y, y)
    groups = np.random.default_rng(2).integers(0, 80, 200) if grouped else None
    order = np.random.default_rng(3).permutation(200)
    one = SensorTreeClassifier(structure="exhaustive").fit(X, y, groups=groups)
    again = None if groups is None else groups[order]
    other = SensorTreeClassifier(structure="exhaustive")
    other.fit(X[order], y[order], groups=again)
    assert str(one.tree_) == str(other.tree_)
    assert one.about_.held_out == other.about_.held_out
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_what_groups_are_called_changes_nothing():
    X, y = discrete(200)
    groups = np.random.default_rng(2).integers(0, 80, 200)
    names = np.random.default_rng(4).permutation(80)
    rows, _ = read(SensorTreeClassifier(), X, y, groups=groups)
    renamed, _ = read(SensorTreeClassifier(), X, y, groups=names[groups])
    np.testing.assert_array_equal(rows.fold, renamed.fold)
    np.testing.assert_array_equal(rows.unit, renamed.unit)


def test_groups_are_numbered_by_what_they_hold():
    group = np.array([7, 7, 3, 3, 5])
    cell = np.array([1, 2, 0, 2, 1])
    assert by_content(group, cell, np.ones(5)).tolist() == [2, 2, 0, 0, 1]


def test_another_seed_gives_other_folds_and_the_same_seed_the_same():
    X, y = discrete()
    X = X + np.random.default_rng(0).normal(size=X.shape)
    folds = [
        read(SensorTreeClassifier(random_state=seed), X, y)[1] for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(folds[0], folds[1])
    assert (folds[0] != folds[2]).mean() > 0.5


def test_a_generator_is_taken_as_scikit_learn_takes_it():
    X, y = discrete()
    X = X + np.random.default_rng(0).normal(size=X.shape)
    state = np.random.RandomState(0)
    drawn = read(SensorTreeClassifier(random_state=state), X, y)[1]
    np.testing.assert_array_equal(drawn, read(SensorTreeClassifier(), X, y)[1])
    again = read(SensorTreeClassifier(random_state=state), X, y)[1]
    assert (drawn != again).any()


@pytest.mark.parametrize(
    ("kind", "folds"),
    [(SensorTreeClassifierCV, 3), (SensorTreeRegressorCV, 3)],
)
def test_the_seed_reaches_the_folds_of_a_curve(kind, folds):
    X, y = discrete(90)
    X = X + np.random.default_rng(0).normal(size=X.shape)
    y = y.astype(float) if kind is SensorTreeRegressorCV else y

    def held_out(seed):
        plain = kind(cv=folds, random_state=seed)._plain()
        quiet = TextProgress(verbose=False)
        return HeldOutFolds(plain, X, y, folds, None, None, quiet).data.fold

    np.testing.assert_array_equal(held_out(1), held_out(1))
    assert (held_out(1) != held_out(2)).any()


# groups -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_group_is_never_split_and_classes_are_spread(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 60, 400)
    X, y = rng.normal(size=(400, 2)), rng.choice(3, 400, p=[0.6, 0.3, 0.1])
    _, fold = read(SensorTreeClassifier(), X, y, groups=groups)
    assert len(set(zip(groups, fold, strict=True))) == len(set(groups))
    for code in range(3):
        assert counts(fold, y == code).min() >= 0.7 * (y == code).sum() / 5
        assert counts(fold, y == code).max() <= 1.3 * (y == code).sum() / 5


def test_groups_are_spread_as_evenly_as_scikit_learn_spreads_them():
    ours, theirs = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        groups = rng.integers(0, 40, 300)
        y = (rng.random(40) < 0.3).astype(int)[groups]
        fold = deal(y, group=np.unique(groups, return_inverse=True)[1])
        ours.append(np.std([y[fold == f].mean() for f in range(5)]))
        splitter = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
        tests = [test for _, test in splitter.split(y, y, groups)]
        theirs.append(np.std([y[test].mean() for test in tests]))
    assert np.mean(ours) <= 1.1 * np.mean(theirs)


def test_groups_of_one_row_are_no_groups():
    X, y = discrete()
    rows, fold = read(SensorTreeClassifier(), X, y)
    grouped, same = read(SensorTreeClassifier(), X, y, groups=np.arange(len(y)))
    np.testing.assert_array_equal(np.sort(rows.fold), np.sort(grouped.fold))
    cells = [np.column_stack([X, y, f]) for f in (fold, same)]
    np.testing.assert_array_equal(*[c[np.lexsort(c.T)] for c in cells])


def test_a_row_of_weight_two_is_a_row_twice_in_its_group():
    rng = np.random.default_rng(0)
    X, y, weight = *discrete(150), rng.integers(1, 4, 150)
    X[:, 0] += 0.5 * rng.normal(size=150)
    y = np.where(rng.random(150) < 0.1, 1 - y, y)
    model = SensorTreeClassifier(
        structure="exhaustive", cost_weight=0.05, classifier="logistic2"
    )
    weighted = model.fit(X, y, sample_weight=weight)
    score, likely = weighted.about_.held_out, weighted.predict_proba(X)
    copies = np.repeat(np.arange(150), weight)
    model.fit(X[copies], y[copies], groups=copies)
    np.testing.assert_allclose(model.predict_proba(X), likely, atol=1e-6)
    assert model.about_.held_out.rows == score.rows == 150
    assert model.about_.held_out.risk == pytest.approx(score.risk)
    assert model.about_.held_out.risk_se == pytest.approx(score.risk_se)


def test_a_classifier_that_remembers_patients_is_found_out():
    X, y, patient = visits()
    neighbour = SensorTreeClassifier(
        classifier=KNeighborsClassifier(1), structure="cascade", cost_weight=0.001
    )
    alone = neighbour.fit(X, y).about_.held_out
    together = neighbour.fit(X, y, groups=patient).about_.held_out
    assert alone.error < 0.05
    assert together.error > 0.3
    assert (alone.rows, together.rows) == (240, 60)


def test_labels_may_be_a_list_a_series_words_or_of_several_kinds():
    X, y, patient = visits(20)
    plain = read(SensorTreeClassifier(), X, y, groups=patient)[1]
    words = [f"patient {p}" for p in patient]
    mixed = np.array([p if p % 2 else str(p) for p in patient.tolist()], dtype=object)
    kinds = [
        words,
        pd.Series(words, dtype="category"),
        pd.Series(patient, dtype="Int64"),
        patient.astype(float),
        mixed,
        pd.to_datetime("2020-01-01") + pd.to_timedelta(patient, unit="D"),
    ]
    for labels in kinds:
        fold = read(SensorTreeClassifier(), X, y, groups=labels)[1]
        np.testing.assert_array_equal(fold, plain)


@pytest.mark.parametrize(
    "gap", [None, np.nan, pd.NA, pd.NaT, ""], ids=["None", "nan", "NA", "NaT", "empty"]
)
def test_a_gap_in_groups_is_refused_by_its_row(gap):
    X, y, patient = visits(10)
    labels = patient.astype(object)
    labels[7] = gap
    with pytest.raises(DataError, match="groups has a gap in row 7; give a row that"):
        SensorTreeClassifier().fit(X, y, groups=labels)
    weight = np.ones(len(y))
    weight[7] = 0
    read(SensorTreeClassifier(), X, y, weight, labels)  # the row is not there


def test_too_few_labels_are_refused():
    X, y, patient = visits(10)
    with pytest.raises(DataError, match="groups has 39 labels for 40 rows of X; give"):
        SensorTreeClassifier().fit(X, y, groups=patient[:-1])
    with pytest.raises(DataError, match="groups must be one label for each row"):
        SensorTreeClassifier().fit(X, y, groups=np.ones((40, 2)))


def test_with_fewer_groups_than_folds_each_is_a_fold_and_that_is_said():
    X, y, _ = visits(30)
    clinic = np.arange(len(y)) % 3
    with pytest.warns(FewRowsWarning, match="3 groups for 5 folds; .* cv=3 asks for"):
        _, fold = read(SensorTreeClassifier(), X, y, groups=clinic)
    assert len(set(fold)) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(SensorTreeClassifier(cv=3), X, y, groups=clinic)


def test_a_single_group_is_refused():
    X, y, _ = visits(10)
    with pytest.raises(DataError, match="all rows into one group, so that none can be"):
        SensorTreeClassifier().fit(X, y, groups=np.zeros(40))
    read(SensorTreeClassifier(cv=None), X, y, groups=np.zeros(40))


def test_the_only_group_of_a_class_is_never_held_out():
    y = np.r_[np.zeros(20, int), 1, 1]
    group = np.r_[np.arange(20) // 2, 10, 10]
    with pytest.warns(FewRowsWarning, match="class 1 has a single group; that group"):
        fold = deal(y, group=group)
    assert fold[-2:].tolist() == [-1, -1]
    assert set(fold[:-2]) == set(range(5))


def test_no_fold_holds_all_groups_of_a_class():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 12, 60)
        group = np.unique(group, return_inverse=True)[1]
        y = (np.isin(group, [0, 1])).astype(int)
        fold = deal(y, group=group, seed=seed)
        assert len(set(fold[y == 1])) == 2


# splitters of the user's own --------------------------------------------------------------


@pytest.mark.parametrize("splitter", [GroupKFold(4), StratifiedGroupKFold(4)])
def test_a_splitter_is_told_of_the_groups(splitter):
    X, y, patient = visits()
    weight = np.ones(len(y))
    weight[:3] = 0
    _, fold = read(SensorTreeClassifier(cv=splitter), X, y, weight, patient)
    counted = weight > 0
    expected = np.full(len(y), -1)
    parts = splitter.split(X[counted], y[counted], patient[counted])
    for number, (_, test) in enumerate(parts):
        expected[np.flatnonzero(counted)[test]] = number
    np.testing.assert_array_equal(fold, expected)


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")
def test_a_splitter_that_takes_a_group_apart_is_refused():
    X, y, patient = visits()
    for cv in (KFold(4, shuffle=True, random_state=0), list(KFold(7).split(X))):
        with pytest.raises(
            DataError, match=r"others of its group .* such as GroupKFold"
        ):
            SensorTreeClassifier(cv=cv).fit(X, y, groups=patient)


# standard errors --------------------------------------------------------------------------


def test_rows_of_a_group_are_one_observation():
    # Of groups of four equal values, the standard error is that of the groups.
    values = np.random.default_rng(0).normal(size=25)
    unit = np.repeat(np.arange(25), 4)
    every = Observations.of_rows(unit, np.ones(100))
    noise = every.noise(np.repeat(values, 4))
    assert noise == pytest.approx(values.std() / 5)
    assert every.each(np.repeat(values, 4)).mean() == pytest.approx(values.mean())


def test_what_differs_within_a_group_evens_out():
    every = Observations.of_rows(np.repeat(np.arange(50), 2), np.ones(100))
    assert every.noise(np.tile([1.0, -1.0], 50)) == 0.0


def test_groups_of_different_size_count_by_their_rows():
    # Linearised ratio: the sums of what rows differ from the mean by, over all rows.
    rng = np.random.default_rng(0)
    unit, values = rng.integers(0, 12, 80), rng.normal(size=80)
    sums = np.bincount(unit, values - values.mean())
    noise = Observations.of_rows(unit, np.ones(80)).noise(values)
    assert noise == pytest.approx(np.sqrt((sums**2).sum()) / 80)


def test_a_distinct_row_of_many_is_many_observations():
    X, y = discrete()
    rows, _ = read(SensorTreeClassifier(), X, y)
    first, _ = rows.distinct()
    assert len(first) == 20  # four cells in five folds
    wrong = np.arange(20) % 2
    each = rows.observations().each(wrong.astype(float))
    assert len(each) == 300
    length = np.diff(np.r_[first, 300])
    assert each.mean() == pytest.approx(np.repeat(wrong, length).mean())
    assert each.std() == pytest.approx(np.repeat(wrong, length).std())


# everything above fit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        SensorTreeClassifier(structure="cascade", classifier="linear"),
        SensorTreeRegressor(structure="cascade", regressor="linear"),
    ],
    ids=["classes", "numbers"],
)
@pytest.mark.parametrize("n_folds", [3, 5], ids=["apart", "shared"])
def test_a_curve_holds_groups_out_together(model, n_folds):
    X, y, patient = visits(30)
    y = y if isinstance(model, SensorTreeClassifier) else y + X[:, 0]
    quiet = TextProgress(verbose=False)
    folds = HeldOutFolds(model, X, y, n_folds, None, None, quiet, groups=patient)
    for _, _, part in folds.tests:
        others = np.setdiff1d(np.arange(len(y)), part.rows)
        assert not set(patient[part.rows]) & set(patient[others])
    for _, prepared in folds._folds:
        inner = prepared.leaves.data
        assert len(set(zip(inner.unit, inner.fold, strict=True))) == len(
            set(inner.unit)
        )


def test_a_curve_of_patients_who_are_remembered_says_so():
    X, y, patient = visits(40)
    model = SensorTreeClassifier(
        classifier=KNeighborsClassifier(1), structure="cascade"
    )
    alone = tradeoff_curve(model, X, y, [0.0001], cv=3)
    together = tradeoff_curve(model, X, y, [0.0001], cv=3, groups=patient)
    assert alone.error[0] < 0.05
    assert together.error[0] > 0.25


def test_a_curve_wants_three_groups():
    X, y, _ = visits(30)
    model = SensorTreeClassifier(structure="cascade", classifier="linear")
    with pytest.raises(DataError, match="a single group where others are held out"):
        tradeoff_curve(model, X, y, [0.01], cv=2, groups=np.arange(len(y)) % 2)


def test_a_budget_is_met_on_groups_that_were_held_out():
    X, y, patient = visits(40)
    model = SensorTreeClassifierCV(
        budget=2, cv=3, cost_weights=[1, 0.001], structure="cascade"
    )
    model.set_params(classifier=KNeighborsClassifier(1))
    model.fit(X, y, groups=patient)
    assert model.curve_.error.min() > 0.25
    (other,) = model.fit_budgets(X, y, [2], groups=patient)
    assert other.chosen_ == model.chosen_


def test_a_path_holds_groups_out_together():
    X, y, patient = visits(40)
    model = SensorTreeClassifier(
        classifier=KNeighborsClassifier(1), structure="cascade"
    )
    (one,) = model.fit_path(X, y, [0.001], groups=patient)
    assert one.about_.held_out.error > 0.25


def test_groups_are_routed_as_weights_are():
    X, y, patient = visits(20)
    model = SensorTreeClassifier(structure="cascade", classifier="linear")
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(groups=True)
        said = cross_val_score(
            model, X, y, cv=GroupKFold(2), params={"groups": patient}
        )
    assert said.shape == (2,)


def test_of_distinct_rows_groups_that_share_one_are_held_out_together():
    rng = np.random.default_rng(0)
    X, y = np.arange(40.0)[:, None] // 2, np.arange(40) // 2 % 2
    groups = rng.permutation(np.arange(40) // 4)
    model = CSTCClassifier()
    rows = read_rows(model, model._settings(), X, y, None, None, groups=groups)
    train, held_out = split_rows(linear_data(rows, None), 5)
    apart = [set(groups[np.isin(X[:, 0], part)]) for part in (train, held_out)]
    assert apart[0] | apart[1] == set(groups)
    assert not apart[0] & apart[1] or len(train) == len(held_out)


def test_rows_in_chunks_do_not_take_groups_yet():
    pytest.importorskip("dask", reason="the extra 'dask' is absent")
    from sensortree.dask import DaskSensorTreeClassifier
    from sensortree.exceptions import ParameterError

    X, y, patient = visits(20)
    with pytest.raises(ParameterError, match="does not take groups yet; leave it out"):
        DaskSensorTreeClassifier().fit(X, y, groups=patient)


def test_the_leaf_classifier_need_not_take_weights():
    X, y, patient = visits(20)
    leaf = LogisticRegression()
    model = SensorTreeClassifier(classifier=leaf, structure="cascade")
    assert model.fit(X, y, groups=patient).about_.held_out.rows == 20


# the command line -------------------------------------------------------------------------

SENSORS = """
[sensors.pulse]
columns = ["pulse"]
cost = 1.0

[sensors.scan]
columns = ["scan"]
cost = 4.0
"""


@pytest.fixture
def table(tmp_path):
    """Visits of patients, whose readings say nothing but who they are."""
    X, y, patient = visits(50)
    lines = [
        [f"P-{who}", *map(float, readings), "yes" if sick else "no"]
        for who, readings, sick in zip(patient, X, y, strict=True)
    ]
    write(tmp_path / "visits.csv", lines)
    (tmp_path / "sensors.toml").write_text(SENSORS)
    return tmp_path


def write(path, lines):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["patient", "pulse", "scan", "sick"], *lines])


def told(command, folder, *more, code=0):
    """What a command prints of the visits."""
    given = [command, folder / "visits.csv", "--sensors", folder / "sensors.toml"]
    given += ["--target", "sick", *more]
    result = CliRunner().invoke(app, list(map(str, given)))
    assert result.exit_code == code, (result.stdout, result.stderr)
    return result


BOOSTED = ("--classifier", "boosted", "--structure", "cascade")


def test_fit_holds_a_column_of_groups_out_together(table):
    out = ("--output", table / "model.json", *BOOSTED, "--cost-weight", "0.001")
    told("fit", table, *out)
    alone = load(table / "model.json").about_.held_out
    result = told("fit", table, *out, "--groups", "patient", "--force")
    together = load(table / "model.json").about_.held_out
    assert (alone.rows, together.rows) == (200, 50)
    assert alone.error < 0.2 < together.error
    assert "not used" not in result.stderr
    assert load(table / "model.json").sensors_.names == ("pulse", "scan")


def test_curve_and_compare_hold_a_column_of_groups_out_together(table):
    weights = ("--cost-weights", "0.0001", "--cv", "3")
    errors = []
    for groups in ((), ("--groups", "patient")):
        said = told("curve", table, *BOOSTED, *weights, *groups, "--json")
        errors.append(json.loads(said.stdout)["points"][0]["error"])
    assert errors[0] < 0.2 < errors[1]
    lines = []
    for groups in ((), ("--groups", "patient")):
        said = told("compare", table, *BOOSTED, "--cv", "3", *groups, "--json")
        methods = json.loads(said.stdout)["methods"]
        lines.append(next(m for m in methods if m["method"] == "everything"))
    assert lines[0]["error"] < 0.2 < lines[1]["error"]
    assert lines[1]["error_se"] > 1.5 * lines[0]["error_se"]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("pulse", "column 'pulse' says which rows belong together, and belongs to a"),
        ("sick", "column 'sick' says which rows belong together, and is the target"),
        ("patients", "has no column 'patients', which --groups names; did you mean"),
    ],
)
def test_a_column_that_cannot_be_groups_is_refused(table, column, words):
    result = told("fit", table, "--groups", column, code=1)
    assert words in " ".join(result.stderr.split())


def test_an_empty_cell_of_groups_is_refused_by_its_line(table):
    path = table / "visits.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[5] = lines[5][lines[5].index(",") :]
    path.write_text("\n".join(lines), encoding="utf-8")
    result = told("fit", table, "--groups", "patient", code=1)
    words = "line 6, column 'patient': the cell is empty, so that nobody knows what"
    assert words in " ".join(result.stderr.split())
