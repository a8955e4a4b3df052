"""Claims about what comes in: readings, names, classes, lines, weights and orders."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold
from sklearn.preprocessing import FunctionTransformer
from typer.testing import CliRunner

from sensortree import (
    Program,
    QuadraticLogisticRegression,
    Sensor,
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    StaticSubsetClassifier,
)
from sensortree.cli.app import app
from sensortree.cli.preparing import first_sensors_file, grouped
from sensortree.cli.sensors_file import read_sensors_file
from sensortree.cli.tables import DataFile
from sensortree.estimators.validation import read_rows
from sensortree.exceptions import DataError, ParameterError, SensorError
from sensortree.leaves.folds import first_of_runs, order_of_rows
from sensortree.results import TradeoffCurve

NAN = float("nan")
TWO = {"a": [0], "b": [1]}
BOTH = {"sensors": ["a", "b"]}
A_THEN_B = {"sensors": ["a"], "negative": {"sensors": ["a"]}, "positive": BOTH}


def two_columns(n_rows=80, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_rows, 2))
    return X, (X.sum(axis=1) > 0).astype(int)


def fitted(structure=BOTH, **parameters):
    X, y = two_columns()
    return SensorTreeClassifier(TWO, structure=structure, **parameters).fit(X, y)


# readings too large to reckon with --------------------------------------------------------

TOO_LARGE = r"1e\+160 in row {} of sensor 'b', column 'x1'; a reading is at most 1e\+70"


@pytest.mark.parametrize("classifier", ["logistic2", "boosted"])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "apply", "explain"])
def test_a_reading_that_cannot_be_squared_is_refused_by_its_place(method, classifier):
    X, _ = two_columns()
    X[0, 1] = 1e160
    with pytest.raises(DataError, match=TOO_LARGE.format(0)):
        getattr(fitted(classifier=classifier), method)(X[:1])


def test_the_row_that_is_named_is_the_row_of_the_table():
    X, _ = two_columns()
    X[7, 1] = 1e160
    with pytest.raises(DataError, match=TOO_LARGE.format(7)):
        fitted().predict(X)


def test_a_session_refuses_what_a_table_refuses():
    session = fitted().policy_.session()
    session.tell("a", [0.0])
    with pytest.raises(DataError, match=r"1e\+160 of sensor 'b', column 'x1'; a read"):
        session.tell("b", [1e160])


def test_a_reading_that_cannot_be_squared_is_not_learned_from():
    X, y = two_columns()
    X[3, 1] = 1e160
    with pytest.raises(DataError, match=TOO_LARGE.format(3)):
        SensorTreeClassifier(TWO, structure=BOTH).fit(X, y)


def test_what_a_transformer_makes_must_not_be_too_large_either():
    X, y = two_columns()
    squared = FunctionTransformer(np.square)
    sensors = {"a": [0], "b": Sensor([1], transformer=squared)}
    X[3, 1] = 1e80
    with pytest.raises(DataError, match=r"1e\+160 in row 3 of sensor 'b'"):
        SensorTreeClassifier(sensors, structure=BOTH).fit(X, y)


def test_the_leaf_classifier_alone_refuses_what_it_cannot_square():
    X, y = two_columns()
    model = QuadraticLogisticRegression().fit(X, y)
    with pytest.raises(DataError, match=r"1e\+160 in row 0, column 1; a reading"):
        model.predict_proba([[0.0, 1e160]])


@pytest.mark.filterwarnings("ignore::sensortree.exceptions.UnseenWarning")
@pytest.mark.parametrize("unit", [1.0, 1e-60, 1e60], ids=str)
def test_readings_that_are_allowed_give_probabilities(unit):
    X, y = two_columns()
    model = SensorTreeClassifier(TWO, structure=A_THEN_B).fit(X * unit, y)
    far = np.array([[1e70, -1e70], [1e70, 1e70], [-1e70, 0.0], [0.0, 1e70]])
    assert np.isfinite(model.predict_proba(far)).all()


def test_readings_too_small_to_reckon_with_are_refused_by_their_column():
    X, y = two_columns()
    said = (
        "no reading of sensor 'b', column 'x1' is larger than .*; give the readings in"
    )
    with pytest.raises(DataError, match=said):
        SensorTreeClassifier(TWO, structure=BOTH).fit(X * [1.0, 1e-160], y)


@pytest.mark.filterwarnings("ignore::sensortree.exceptions.UnseenWarning")
def test_readings_that_are_allowed_are_answered_alike_in_batch_and_session():
    model = fitted(A_THEN_B, program=Program(decision_features="raw"))
    far = np.array([[1e70, -1e70], [1e70, 1e70], [-1e70, 0.0], [0.0, 1e70]])
    for row, proba in zip(far, model.predict_proba(far), strict=True):
        values = {"a": row[:1], "b": row[1:]}
        decision = model.policy_.acquire(lambda name, _, told=values: told[name])
        np.testing.assert_array_equal(decision.proba, proba)


def test_a_column_without_spread_says_nothing_whatever_it_reads_later():
    X, _ = two_columns(200)
    X[:, 1] = 0.1  # its computed mean is not quite 0.1
    y = (X[:, 0] > 0).astype(int)
    model = QuadraticLogisticRegression().fit(X, y)
    same, other = model.predict_proba([[1.0, 0.1], [1.0, 0.2]])
    np.testing.assert_allclose(other, same, atol=0.05)


@pytest.mark.parametrize("huge", [10**400, -(10**400)])
def test_an_integer_beyond_all_floats_is_refused_as_a_value(huge):
    session = fitted().policy_.session()
    with pytest.raises(DataError, match="sensor 'a'"):
        session.tell("a", [huge])


def test_an_integer_beyond_all_floats_is_refused_as_a_price():
    with pytest.raises(SensorError, match="finite"):
        Sensor([0], 10**400)


# the command line -------------------------------------------------------------------------


def run(*arguments, code=0, typed=None):
    result = CliRunner().invoke(app, list(map(str, arguments)), input=typed)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, (result.stdout, result.stderr)
    return result


def write_table(path: Path, labels: tuple[str, str], extra: str = "cost") -> Path:
    """Rows of two columns, one more, and a target that the sum of the two decides."""
    X, y = two_columns()
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", extra, "y"])
        for i, row in enumerate(X):
            writer.writerow([*row, f"kept {i}", labels[y[i]]])
    return path


def fit_table(folder: Path, data: Path, more: str = "") -> Path:
    sensors, model = folder / "sensors.toml", folder / "model.json"
    sensors.write_text(
        f'target = "y"\ncost_weight = 1e-6\n{more}\n'
        '[sensors.a]\ncolumns = ["a"]\ncost = 1\n[sensors.b]\ncolumns = ["b"]\ncost = 1\n'
    )
    run("fit", data, "--sensors", sensors, "--structure", "cascade", "-o", model)
    return model


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("input")
    return fit_table(folder, write_table(folder / "data.csv", ("0", "1")))


@pytest.mark.parametrize("name", ["line", "answer", "probability_1", "cost", "problem"])
def test_a_kept_column_never_takes_the_name_of_an_answer(model, tmp_path, name):
    data = write_table(tmp_path / "data.csv", ("0", "1"), extra=name)
    result = run("predict", model, data, "--keep", name, code=2)
    said = " ".join(result.stderr.replace("│", " ").split())
    assert f"the answers have a column '{name}' already; rename that of" in said


def test_a_kept_column_of_another_name_stands_beside_the_answers(model, tmp_path):
    data = write_table(tmp_path / "data.csv", ("0", "1"), extra="patient")
    lines = run("predict", model, data, "--keep", "patient").stdout.splitlines()
    assert lines[0] == (
        "patient,line,answer,probability_0,probability_1,cost,leaf,sensors,problem"
    )
    assert lines[1].startswith("kept 0,")


# Surrogates are no characters, and no file of UTF-8 holds them.
NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)


@settings(deadline=None, max_examples=200)
@given(
    names=st.lists(NAMES, min_size=2, max_size=5, unique=True),
    classes=st.lists(NAMES, min_size=2, max_size=4, unique=True),
    file_name=NAMES,
)
def test_init_writes_what_can_be_read_whatever_things_are_called(
    tmp_path_factory, names, classes, file_name
):
    *columns, target = names
    cells = {name: ["text"] * len(classes) for name in columns}
    data = DataFile(Path(file_name), {**cells, target: classes}, range(len(classes)))
    labels, sensors = np.array(classes, dtype=object), grouped(columns, None)
    text = first_sensors_file(data, target, labels, {}, sensors)
    path = tmp_path_factory.mktemp("init") / "sensors.toml"
    with_losses = text.replace('# unit = "dollars"', 'unit = "dollars"')
    with_losses = with_losses.replace("# [loss]\n# ", "[loss]\n")
    with_losses = with_losses.replace(" = 1.0\n# ", " = 1.0\n")
    # A table ends where the next begins, and keys of the top come before all tables.
    path.write_bytes(with_losses.encode())
    read = read_sensors_file(path)
    assert (read.target, read.unit) == (target, "dollars")
    assert [sensor.columns for sensor in read.sensors.values()] == [
        (column,) for column in columns
    ]
    assert list(read.sensors) == columns
    assert read.loss is not None
    assert set(read.loss) == set(classes)


@pytest.mark.parametrize(
    "labels",
    [
        ("NA", "N/A"),
        ("9007199254740992", "9007199254740993"),
        ("-9223372036854775809", "3"),
        ("1e20", "2e20"),
        ("007", "008"),
        ("1.0", "2.0"),
    ],
    ids=" ".join,
)
def test_classes_come_back_as_they_are_written(tmp_path, labels):
    data = write_table(tmp_path / "data.csv", labels)
    model = fit_table(tmp_path, data)
    lines = run("predict", model, data).stdout.splitlines()
    answers = [line["answer"] for line in csv.DictReader(lines)]
    assert set(answers) == set(labels)
    report = json.loads(run("evaluate", model, data, "--target", "y", "--json").stdout)
    truth = [line["y"] for line in csv.DictReader(data.read_text().splitlines())]
    wrong = np.mean([a != b for a, b in zip(answers, truth, strict=True)])
    assert report["error"] == pytest.approx(wrong)


def test_a_class_is_not_taken_for_its_neighbour_of_the_same_float(tmp_path):
    labels = ("9007199254740992", "9007199254740994")
    model = fit_table(tmp_path, write_table(tmp_path / "data.csv", labels))
    others = write_table(tmp_path / "other.csv", ("9007199254740993", labels[1]))
    result = run("evaluate", model, others, "--target", "y", code=3)
    assert "'9007199254740993' is not a class of the model" in result.stderr


def test_one_number_written_in_two_ways_is_not_two_classes(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("a,b,y\n1,2,1\n2,1,0\n3,4,1.0\n")
    (tmp_path / "s.toml").write_text('[sensors.a]\ncolumns = ["a"]\ncost = 1\n')
    sensors = ("--sensors", tmp_path / "s.toml", "--target", "y")
    result = run("check", data, *sensors, code=1)
    assert "line 4, column 'y': '1.0' is the number that line 2 writes as '1'" in (
        " ".join(result.stderr.split())
    )


def test_a_loss_may_write_the_number_of_a_class_as_it_likes(tmp_path):
    data = write_table(tmp_path / "data.csv", ("1.0", "2.0"))
    model = fit_table(tmp_path, data, "[loss]\n1 = 3\n2 = 5\n")
    assert json.loads(run("inspect", model, "--json").stdout)["loss"] == [
        [0.0, 3.0],
        [5.0, 0.0],
    ]


def test_a_class_that_a_loss_forgets_is_named_as_a_key(tmp_path):
    data = write_table(tmp_path / "data.csv", ("well", "not well"))
    sensors = tmp_path / "s.toml"
    sensors.write_text(
        'target = "y"\n[loss]\nwell = 1\n[sensors.a]\ncolumns = "a"\ncost = 1'
    )
    result = run("check", data, "--sensors", sensors, code=1)
    assert 'add "not well" = ...' in " ".join(result.stderr.split())


def test_large_identifiers_are_different_categories(tmp_path):
    data = tmp_path / "data.csv"
    lines = [
        f"{9007199254740992 + i % 2},{i % 7},{i % 2}" for i in range(40)
    ]  # the two are one float
    data.write_text("\n".join(["who,b,y", *lines]))
    sensors = tmp_path / "s.toml"
    sensors.write_text(
        'target = "y"\n[sensors.who]\ncolumns = "who"\ncost = 0\n'
        'transformer = "one-hot"\n'
    )
    model = tmp_path / "model.json"
    run("fit", data, "--sensors", sensors, "-o", model)
    report = json.loads(run("evaluate", model, data, "--target", "y", "--json").stdout)
    assert report["error"] == 0


def test_parquet_keeps_all_digits_of_a_class(tmp_path):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, y = two_columns()
    labels = [9007199254740992 + int(code) for code in y]
    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": labels})
    frame.write_parquet(tmp_path / "data.parquet")
    model = fit_table(tmp_path, tmp_path / "data.parquet")
    shown = json.loads(run("inspect", model, "--json").stdout)
    assert shown["classes"] == [9007199254740992, 9007199254740993]


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'"tell"',
        b"[" * 100_000,
        b'{"tell": ' * 100_000,
        b'{"tell": {"a": ' + b"[" * 100_000,
        b'{"tell": {"a": 1' + b"0" * 400 + b"}}",
        b'{"tell": {"a": 1' + b"0" * 5_000 + b"}}",
        b'{"tell": {"a": NaN}}',  # which training never missed
        b'{"tell": {"a": -Infinity}}',
        b'{"tell": {"a": 1e160}}',
        b'{"tell": {"a": {}}}',
        b'{"tell": {"a": [[1]]}}',
        b'{"tell": {"a": {"a": [1]}}}',
        b'{"tell": {"a": "much"}}',
        b'{"tell": [1]}',
        b'{"tell": {"\\ud800": 1}}',
        b'{"unavailable": 3}',
        b'{"unavailable": "\xff"}',
        b"\xff\xfe",
        b"\x00",
    ],
    ids=lambda line: line[:24].decode("ascii", "backslashreplace"),
)
def test_a_bad_line_is_answered_by_one_line_and_the_session_lives_on(model, line):
    typed = line + b'\n{"tell": {"a": 1.0, "b": 1.0}}\n'
    said = run("ask", model, "--strict", "--stdin", typed=typed).stdout.splitlines()
    first, error, decision = map(json.loads, said)
    assert list(first) == ["step"]
    assert list(error) == ["error"]
    assert decision["decision"]["label"] == 1


@pytest.mark.parametrize("value", ["1" + "0" * 400, "1" + "0" * 5_000, "[" * 100_000])
def test_a_sensors_file_beyond_all_numbers_is_refused(tmp_path, value):
    path = tmp_path / "s.toml"
    path.write_text(f'[sensors.a]\ncolumns = "a"\ncost = {value}\n')
    with pytest.raises(SensorError):
        read_sensors_file(path)


# folds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_values", [1, 2, 5, 1_000])
def test_rows_are_ordered_as_if_all_columns_were_looked_at(n_values):
    rng = np.random.default_rng(n_values)
    X = rng.integers(0, n_values, size=(200, 4)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    order = order_of_rows(X.T, 200)
    assert order.tolist() == np.lexsort(X.T[::-1]).tolist()
    filled = np.nan_to_num(X[order], nan=-1.0)
    _, first = np.unique(filled, axis=0, return_index=True)
    assert first_of_runs(X[order].T, 200).tolist() == sorted(first)


def test_a_yes_or_no_with_a_tenth_of_noise_is_learned():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(2_500, 1)).astype(float)
    y = np.where(rng.random(2_500) < 0.1, 1 - X[:, 0], X[:, 0])
    model = SensorTreeClassifier(cost_weight=0.01).fit(X[:500], y[:500])
    assert 1 - model.score(X[500:], y[500:]) < 0.13


def test_a_rule_on_yes_and_no_that_never_errs_is_learned():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(600, 3)).astype(float)
    y = (X[:, 0] != X[:, 1]).astype(int)
    model = SensorTreeClassifier(cost_weight=0.01).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) == 1.0
    assert model.acquisition_cost(X[400:]).max() == 2.0


def test_many_rows_of_few_readings_count_as_many():
    # A standard error by distinct rows would be that of a dozen rows: nothing is clear.
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, size=(1_000, 1)).astype(float)
    y = np.where(rng.random(1_000) < 0.4, 1 - X[:, 0], X[:, 0])
    compared = SensorTreeClassifier(cost_weight=0.01).fit(X, y).comparison_
    assert compared.chosen != "nothing"
    lead = compared.risk["nothing"] - compared.risk[compared.chosen]
    assert lead > 2 * compared.error["nothing"] > 0
    assert compared.error["nothing"] < 0.05


@pytest.mark.parametrize("cv", [KFold(4), 4], ids=["splitter", "number"])
def test_rows_of_weight_zero_do_not_matter_to_folds(cv):
    X, y = two_columns()
    more, wrong = two_columns(60, seed=1)
    order = np.random.default_rng(0).permutation(140)
    mixed = np.vstack([X, more])[order]
    labels, weight = np.r_[y, 1 - wrong][order], np.repeat([1.0, 0.0], [80, 60])[order]
    kept = weight > 0
    model = SensorTreeClassifier(TWO, structure=A_THEN_B, cv=cv)
    without = model.fit(mixed[kept], labels[kept], weight[kept]).predict_proba(X)
    with_them = model.fit(mixed, labels, weight).predict_proba(X)
    np.testing.assert_array_equal(with_them, without)


def test_pairs_of_rows_speak_of_the_table_that_was_given():
    X, y = two_columns()
    weight = np.ones(80)
    weight[[0, 5, 41]] = 0
    pairs = list(KFold(4).split(X))
    given = SensorTreeClassifier(TWO, cv=pairs)
    rows = read_rows(given, given._settings(), X, y, weight, None)
    np.testing.assert_array_equal(rows.fold, rows.rows // 20)


def test_a_row_of_weight_zero_need_not_be_held_out():
    X, y = two_columns()
    weight = np.ones(80)
    weight[79] = 0
    pairs = [(np.arange(40, 79), np.arange(40)), (np.arange(40), np.arange(40, 79))]
    SensorTreeClassifier(TWO, structure=BOTH, cv=pairs).fit(X, y, weight)


# order of declaration ---------------------------------------------------------------------


def test_declared_order_does_not_decide_which_rows_are_held_out_together():
    X, y = two_columns()
    folds = []
    for names in ("ab", "ba"):
        model = SensorTreeClassifier({name: TWO[name] for name in names})
        rows = read_rows(model, model._settings(), X, y, None, None)
        fold = np.empty(len(X), dtype=int)
        fold[rows.rows] = rows.fold
        folds.append(fold)
    np.testing.assert_array_equal(*folds)


@pytest.mark.parametrize("seed", range(5))
def test_declared_order_changes_nothing_where_nothing_is_equal(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(160, 4))
    y = (X @ rng.normal(size=4) + rng.normal(size=160) > 0).astype(int)
    columns = {f"s{i}": [i] for i in range(4)}
    costs = {f"s{i}": 1 + 0.1 * i for i in range(4)}
    turned = dict(reversed(columns.items()))
    for method, more in (
        (SensorTreeClassifier, {"structure": "cascade"}),
        (StaticSubsetClassifier, {}),
    ):
        one, other = (
            method(declared, costs=costs, cost_weight=0.02, **more).fit(X, y)
            for declared in (columns, turned)
        )
        np.testing.assert_array_equal(one.acquired(X), other.acquired(X)[:, ::-1])
        np.testing.assert_allclose(
            one.predict_proba(X), other.predict_proba(X), atol=1e-6
        )


# wide sensors -----------------------------------------------------------------------------


def test_a_sensor_of_a_thousand_columns_fits_into_a_gigabyte_and_ten_seconds():
    program = """
        import resource
        import numpy as np
        from sensortree import SensorTreeClassifier, SensorTreeError

        X = np.random.default_rng(0).normal(size=(200, 1000))
        y = X[:, 0] > 0
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            SensorTreeClassifier({"wide": slice(0, 1000)}).fit(X, y).predict(X)
        except SensorTreeError as error:
            print(error)  # saying what it takes is as good
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert used < 2**20, f"{used} KiB"
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=10
    )


# targets of a curve -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["budget", "max_error"])
@pytest.mark.parametrize("value", [NAN, -1.0, "2", True], ids=str)
def test_a_curve_refuses_a_target_that_is_no_number(name, value):
    curve = TradeoffCurve.from_points([(1, 0.4), (2, 0.3)], [0.9, 0.3])
    with pytest.raises(ParameterError, match=f"{name} must be None or a number"):
        curve.choose(**{name: value})


@pytest.mark.parametrize("name", ["budget", "max_error"])
def test_a_search_for_a_target_refuses_nan(name):
    X, y = two_columns()
    with pytest.raises(ParameterError, match=f"{name} must be None or a number"):
        SensorTreeClassifierCV(TWO, **{name: NAN}).fit(X, y)


def test_no_error_is_known_at_a_cost_that_is_nan():
    curve = TradeoffCurve.from_points([(1, 0.4), (2, 0.3)], [0.9, 0.3])
    assert np.isnan(curve.error_at_cost(NAN, mix=False))
