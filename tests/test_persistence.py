"""Claims about model files: the same answers, nothing but our error, never half a file."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
import tracemalloc
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fuzz_model_file import RAW, Fuzzer, with_digest
from models import KINDS, SENSORS, fitted, numbers, text_frame
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, RobustScaler, StandardScaler

import sensortree
from sensortree import (
    Leaf,
    Node,
    Program,
    Sensor,
    SensorTree,
    SensorTreeClassifier,
    SensorTreeClassifierCV,
    load,
    save,
)
from sensortree.exceptions import DataError, MissingDependencyError, ModelFileError
from sensortree.persistence import codecs, files, scorers
from sensortree.persistence.fields import Fields
from sensortree.persistence.files import MAX_BYTES, parse, render
from sensortree.persistence.model import read_model, write_model
from sensortree.policy.policy import fingerprint

ROOT = Path(__file__).parents[1]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.json"


def saved(kind: str) -> bytes:
    return render(write_model(fitted(kind)[0], None))


def reloaded(kind: str):
    return read_model(parse(saved(kind)))


# the same answers -------------------------------------------------------------------------

QUESTIONS = ("predict", "predict_proba", "apply", "acquired", "acquisition_cost")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_loaded_model_answers_as_the_fitted_one_to_the_last_bit(kind, question):
    model, X, prices = fitted(kind)
    loaded = reloaded(kind)
    expected = getattr(model, question)(X, prices)
    answered = getattr(loaded, question)(X, prices)
    assert answered.dtype.kind == expected.dtype.kind
    np.testing.assert_array_equal(answered, expected)
    for row in range(3):
        paid = None if prices is None else prices[row : row + 1]
        one = getattr(loaded, question)(X[row : row + 1], paid)
        np.testing.assert_array_equal(one, expected[row : row + 1])


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"scaled decisions"}))
def test_a_loaded_policy_has_the_digest_of_the_fitted_one(kind):
    assert reloaded(kind).policy_.digest == fitted(kind)[0].policy_.digest


@pytest.mark.parametrize("kind", KINDS)
def test_saving_what_was_loaded_gives_the_same_file(kind):
    assert render(write_model(reloaded(kind), None)) == saved(kind)


def test_a_policy_alone_can_be_saved(path):
    model, X, _ = fitted("quadratic logistic")
    save(model.policy_, path)
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))
    assert load(path).certificate_ is None


def test_a_file_holds_certificate_and_reports_as_plain_data():
    model, loaded = fitted("quadratic logistic")[0], reloaded("quadratic logistic")
    assert loaded.certificate_["upper"] == model.certificate_.upper
    assert loaded.certificate_["reach"] == np.inf
    assert loaded.decision_report_["risk"] == model.decision_report_.risk
    assert loaded.structure_report_["subsets"] == model.structure_report_.subsets
    assert loaded.tree_ == model.tree_
    assert loaded.sensors_ == model.sensors_
    assert loaded.n_features_in_ == 4


def test_a_deep_tree_can_be_stored():
    names = [f"x{i}" for i in range(255)]
    vertex = Leaf(names)
    for known in reversed(range(255)):
        vertex = Node(names[:known], Leaf(names[:known]), vertex)
    sensors = sensortree.SensorSet(
        tuple(names), tuple((i,) for i in range(255)), np.ones(255)
    )
    from sensortree.persistence.trees import read_tree, write_tree

    tree = SensorTree(vertex)
    form = json.loads(json.dumps(write_tree(tree, sensors)))
    read = read_tree(Fields(form, "tree"), sensors)
    assert read.nodes[-1].sensors == tree.nodes[-1].sensors
    assert read.n_leaves == 256


def test_loading_and_predicting_import_no_scikit_learn(path):
    save(fitted("pandas")[0], path)
    code = f"""
import sys, sensortree
model = sensortree.load({str(path)!r})
model.predict_proba([[40, "f", "some", 1.0], [60, "m", "none", float("nan")]])
print(sorted({{"sklearn", "scipy", "joblib", "skops"}} & set(sys.modules)))
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_the_file_of_the_first_format_version_is_still_read():
    loaded = load(ROOT / "tests" / "model_v1.json")
    rows = [[30, "f", "some", 0.5], [70, "m", "none", np.nan], [55, "f", "new", 3.0]]
    frame = pd.DataFrame(rows, columns=["age", "sex", "pain", "crp"])
    answers = json.loads((ROOT / "tests" / "model_v1_answers.json").read_text())
    assert loaded.predict(frame).tolist() == answers["predict"]
    np.testing.assert_allclose(
        loaded.predict_proba(frame), answers["predict_proba"], rtol=1e-12
    )
    assert loaded.acquisition_cost(frame).tolist() == answers["acquisition_cost"]


def named(names, labels, amount):
    """A model whose names, labels and amounts are of given types."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = labels[(X[:, 0] + np.where(np.abs(X[:, 0]) < 0.5, X[:, 1], 0) > 0).astype(int)]
    a, b, c, lab, method = names
    sensors = {
        a: Sensor([a], cost=amount(2.0), group=lab, fee=amount(0.5), one_of=method),
        b: Sensor([b], cost=amount(1.0), group=lab),
        c: Sensor([c], cost=amount(1.0), after=[b]),
    }
    tree = {"sensors": [a], "negative": {"sensors": [a]}}
    tree["positive"] = {"sensors": [a, b, c]}
    frame = pd.DataFrame(X, columns=pd.Index([a, b, c], dtype=object))
    cost_weight, max_cost = amount(0.01), amount(4.5)
    model = SensorTreeClassifier(
        sensors,
        structure=tree,
        cost_weight=cost_weight,
        max_cost=max_cost,
        outages=True,
    )
    return model.fit(frame, y)


@pytest.mark.parametrize("amount", [float, np.float64, np.float32])
def test_names_of_numpys_types_have_the_digest_of_pythons(path, amount):
    names, labels = ["a", "b", "c", "lab", "method"], ["no", "yes"]
    plain = named(names, np.array(labels, dtype=object), float)
    of_numpy = np.empty(2, dtype=object)
    of_numpy[:] = [np.str_(label) for label in labels]
    model = named([*np.array(names)], of_numpy, amount)
    save(model, path)
    assert load(path).policy_.digest == model.policy_.digest
    if amount is not np.float32:  # of which 0.01 is another number
        assert model.policy_.digest == plain.policy_.digest


@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        ("a", np.str_("a")),
        (3, np.int64(3)),
        (0.1, np.float64(0.1)),
        (True, np.bool_(True)),
        (("a", 1), (np.str_("a"), np.uint8(1))),
        ({"a": frozenset("b")}, {np.str_("a"): frozenset([np.str_("b")])}),
    ],
)
def test_a_digest_does_not_know_numpys_scalars_from_pythons(ours, numpys):
    assert fingerprint(ours) == fingerprint(numpys)


def test_the_model_of_an_old_file_has_the_digest_that_its_sessions_know():
    # Frozen at dd8f495: states that were put away hold it. What is new in a policy must
    # not change the digest of models that do not have it.
    loaded = load(ROOT / "tests" / "model_v1.json")
    assert loaded.policy_.digest.startswith("17e7df4c1fb0c955d0ff940b38539dfa")


# what is asked of X -----------------------------------------------------------------------


def test_columns_are_checked_by_number_and_by_name():
    loaded = reloaded("price column")
    _, X, _ = fitted("price column")
    with pytest.raises(DataError, match="X has 4 columns, but the model was fitted"):
        loaded.predict(X.to_numpy()[:, :4])
    with pytest.raises(DataError, match="column 0 of X is 'q', expected 'p'"):
        loaded.predict(X[["q", "p", "r", "s", "price"]])
    with pytest.raises(DataError, match="two-dimensional"):
        loaded.predict(X.to_numpy()[0])
    with pytest.raises(DataError, match="'text' in row 0 of sensor 'a', col"):
        loaded.predict(X.assign(q="text"))


def test_frames_of_pandas_own_types_are_read():
    loaded = reloaded("boosted, NaN")
    X = fitted("boosted, NaN")[1][:8]
    frame = pd.DataFrame(X).astype("Float64")
    np.testing.assert_array_equal(loaded.predict_proba(frame), loaded.predict_proba(X))


def test_a_model_with_prices_of_each_example_asks_for_them():
    with pytest.raises(DataError, match="give prices="):
        reloaded("prices beside").predict(fitted("prices beside")[1])


# what cannot be written -------------------------------------------------------------------


def test_only_fitted_models_are_saved(path):
    with pytest.raises(
        ModelFileError, match="cannot save a SensorTreeClassifier; give"
    ):
        save(SensorTreeClassifier(), path)
    assert not path.exists()


FOREIGN = {
    "classifier": r"leaf that knows 'a'(, 'b')? is a KNeighborsClassifier, which a model",
    "pipeline": r"leaf that knows 'a'(, 'b')? is a Pipeline, which a model file cannot",
    "transformer": "the transformer of sensor 'a' is a RobustScaler",
    "decisions": "the transformer given as decision_features is a PolynomialFeatures",
}


@cache
def with_foreign_part(name: str):
    """A fitted model that only skops can write, and X."""
    X, y = numbers()
    frame, ill = text_frame()
    if name == "transformer":
        frame = frame[["age", "crp"]]
        sensors = {
            "a": Sensor(["age"], transformer=RobustScaler()),
            "b": Sensor(["crp"], transformer=SimpleImputer()),
        }
        return SensorTreeClassifier(sensors).fit(frame, ill), frame
    parameters = {
        "classifier": {"classifier": KNeighborsClassifier()},
        "pipeline": {
            "classifier": make_pipeline(StandardScaler(), LogisticRegression())
        },
        "decisions": {
            "program": Program(
                decision_features=PolynomialFeatures(2, include_bias=False)
            )
        },
    }[name]
    structure = {
        "sensors": ["a"],
        "negative": {"sensors": ["a"]},
        "positive": {"sensors": ["a", "b"]},
    }
    model = SensorTreeClassifier(SENSORS, structure=structure, **parameters)
    return model.fit(X, y), X


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_parts_are_refused_by_name(path, name):
    model, _ = with_foreign_part(name)
    with pytest.raises(ModelFileError, match=FOREIGN[name]) as caught:
        save(model, path)
    assert "foreign='skops'" in str(caught.value)
    assert not path.exists()


@pytest.mark.skipif(not find_spec("skops"), reason="needs the extra 'skops'")
@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_parts_go_through_skops_and_are_read_only_if_trusted(path, name):
    model, X = with_foreign_part(name)
    save(model, path, foreign="skops")
    with pytest.raises(
        ModelFileError, match=r"written by skops; if you trust the file"
    ):
        load(path)
    trusted = [
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neighbors._kd_tree.newObj",
    ]
    loaded = load(path, trusted=trusted)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.apply(X), model.apply(X))


@pytest.mark.skipif(not find_spec("skops"), reason="needs the extra 'skops'")
def test_a_type_that_is_not_trusted_is_named(path):
    save(with_foreign_part("classifier")[0], path, foreign="skops")
    with pytest.raises(ModelFileError, match=r"skops cannot read .*KDTree"):
        load(path, trusted=[])


def test_without_skops_the_error_names_the_extra(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(MissingDependencyError, match=r"sensortree\[skops\]"):
        scorers.write_foreign(KNeighborsClassifier(), "a leaf", "skops")


def test_another_way_to_write_foreign_parts_is_refused():
    with pytest.raises(ModelFileError, match="foreign must be None or 'skops'"):
        scorers.write_foreign(KNeighborsClassifier(), "a leaf", "pickle")


# codecs -----------------------------------------------------------------------------------

# What was read is a size for what comes after it: two rows of as many numbers as `low` has.
TOY = codecs.record(
    dict,
    low=codecs.Codec(list, lambda f, key, _: f.integers(key, 0, 9)),
    rows=codecs.array(2, "low"),
    name=codecs.later(codecs.TEXT),
)


def test_a_record_is_read_as_it_was_written():
    given = {"low": [3, 4], "rows": np.array([[1.0, 2.0], [3.0, 4.0]]), "name": "a"}
    form = TOY.write(given)
    assert form == {"low": [3, 4], "rows": [1.0, 2.0, 3.0, 4.0], "name": "a"}
    read = TOY.whole(Fields(form, ""), {})
    np.testing.assert_array_equal(read.pop("rows"), given.pop("rows"))
    assert read == given


def test_none_of_a_later_key_is_not_written_and_read_from_older_files():
    form = TOY.write({"low": [1], "rows": np.ones((2, 1)), "name": None})
    assert list(form) == ["low", "rows"]
    assert TOY.whole(Fields(form, ""), {})["name"] is None


def test_a_shape_that_does_not_fit_what_was_read_is_refused():
    with pytest.raises(ModelFileError, match=r"toy\.rows has 3 entries, expected 4"):
        TOY.whole(Fields({"low": [1, 2], "rows": [1, 2, 3]}, "toy"), {})


def test_a_dict_is_a_list_of_named_objects_each_named_once():
    codec = codecs.keyed(codecs.record(dict, why=codecs.TEXT), "name", codecs.TEXT)
    listed = codec.write({"a": {"why": "x"}, "b": {"why": "y"}})
    assert listed == [{"name": "a", "why": "x"}, {"name": "b", "why": "y"}]
    assert codec.read(Fields({"k": listed}, ""), "k", {}) == {
        "a": {"why": "x"},
        "b": {"why": "y"},
    }
    with pytest.raises(ModelFileError, match=r"k\[2\] is the second of name 'a'"):
        codec.read(Fields({"k": [*listed, listed[0]]}, ""), "k", {})


# pickle -----------------------------------------------------------------------------------


def test_a_fitted_classifier_can_be_pickled_and_load_refuses_the_pickle(path):
    model, X, _ = fitted("pandas")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    path.write_bytes(pickle.dumps(model))
    with pytest.raises(ModelFileError, match=r"looks like a pickle .* can run code"):
        load(path)


# bad files --------------------------------------------------------------------------------

GOOD = saved("quadratic logistic")

BAD_TEXTS = {
    "empty": (b" \n", "the model file is empty"),
    "truncated": (GOOD[:2000], "the file is truncated"),
    "truncated in a string": (GOOD[:10], "the file is truncated"),
    "not JSON": (b"hello", "the file is not JSON: Expecting value: line 1 column 1"),
    "not ASCII": (b'{"format": "\xff\xfe"}', "the file is not JSON in ASCII"),
    "zip": (b"PK\x03\x04", "zip archive"),
    "gzip": (b"\x1f\x8b\x08", "pickle or joblib"),
    "a list": (b"[1]", "holds one JSON object, this one holds a list"),
    "another format": (b'{"format": "x"}', "not a sensortree model"),
    "nested": (b'{"a": ' + b"[" * 33 + b"]" * 33 + b"}", "more than 32 deep"),
    "twice": (b'{"a": 1, "a": 2}', "the key 'a' occurs twice"),
    "NaN": (b'{"a": NaN}', "the file holds NaN, which is not JSON"),
    "Infinity": (b'{"a": -Infinity}', "the file holds -Infinity"),
    "digits": (b'{"a": ' + b"9" * 5000 + b"}", "a number of more than"),
    "long string": (b'{"a": "' + b"x" * 5000 + b'"}', "a string of more than 4096"),
    "wrong digest": (GOOD.replace(b'"a"', b'"q"'), "digest does not match"),
    "no digest": (GOOD.replace(b'"digest"', b'"digit"'), "'digest' is not 64"),
    "future": (GOOD.replace(b'version": 2', b'version": 3'), "from the future"),
    "version": (GOOD.replace(b'version": 2', b'version": "1"'), "positive integer"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_what_is_no_model_file_is_told_so(path, name):
    text, message = BAD_TEXTS[name]
    path.write_bytes(text)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def put(place: str, value):
    """A change: set what stands at a place such as 'tree.negative.0'."""

    def change(document):
        *way, last = [
            int(k) if re.fullmatch(r"-?\d+", k) else k for k in place.split(".")
        ]
        for key in way:
            document = document[key]
        if value is DELETE:
            del document[last]
        else:
            document[last] = value

    return change


DELETE = object()
LOGISTIC = next(
    i
    for i, c in enumerate(json.loads(GOOD)["classifiers"])
    if c["classifier"]["kind"] == "logistic"
)
BAD_VALUES = {
    "cyclic": ("tree.positive.1", 0, "cyclic or joins up again: node 0 is met twice"),
    "joined": ("tree.positive.1", 1, "cyclic or joins up again"),
    "leaf twice": ("tree.positive.1", -2, "leaves are not met once each"),
    "not connected": ("tree.positive.0", -2, "is not connected"),
    "child out of range": ("tree.negative.0", 2, "tree.negative is out of range"),
    "unknown sensor": ("tree.leaf_sensors.0", [5], r"tree.leaf_sensors\[0\] is out of"),
    "child knows less": ("tree.leaf_sensors.2", [1], "the tree of the file cannot be"),
    "infinite": ("flow.total_loss", "@endless", "number that is not finite"),
    "huge": ("problem.cost_weight", 10**400, "a number that is too large"),
    "negative": ("problem.sensors.0.cost", -1, "holds a number below 0"),
    "truth value": ("problem.cost_weight", True, "must be a number, got a truth value"),
    "column twice": ("problem.sensors.0.columns", [0, 0], "names a position twice"),
    "column of two": (
        "problem.sensors.0.columns",
        [0, 1, 2],
        "the sensors of the file",
    ),
    "width": ("reader.widths.0", 3, "says 3 for sensor 'a', which gives 2 values"),
    "missing": ("flow", DELETE, "flow is missing"),
    "unknown key": ("tree.colour", 1, "tree.colour is not a key of this format"),
    "one class": ("problem.classes.values", ["no"], "at least two different classes"),
    "class type": ("problem.classes.type", "complex", "is no type of classes"),
    "kind": (f"classifiers.{LOGISTIC}.classifier.kind", "svm", "no kind of classifier"),
    "short": (f"classifiers.{LOGISTIC}.classifier.coef.0", DELETE, "entries, expected"),
    "scale": (f"classifiers.{LOGISTIC}.classifier.scale.0", 0, "nothing divides"),
    "no classifier": ("classifiers.0", DELETE, "classifiers for 2 of the 3 sets"),
    "coefficients": ("decisions.nodes.0.coef.0", DELETE, "entries, expected"),
    "features": ("decisions.nodes.0.features", 9, "is out of range"),
    "parts": ("decisions.features.0.parts.0", "cubes", "must be a transformer or one"),
    "text": ("flow.node_rows.0", "many", "must hold numbers only"),
    "surrogate": ("problem.columns.0", "\ud800", "half of a surrogate pair"),
    "skops": (
        f"classifiers.{LOGISTIC}.classifier",
        {"kind": "skops", "type": "os.system", "data": []},
        "is a os.system, written by skops",
    ),
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_a_value_that_does_not_fit_is_named_though_the_digest_is_right(path, name):
    place, value, message = BAD_VALUES[name]
    document = json.loads(GOOD)
    put(place, value)(document)
    path.write_bytes(with_digest(document))
    with pytest.raises(ModelFileError, match=message):
        load(path)


@cache
def at_a_budget():
    X, y = numbers()[:2]
    model = SensorTreeClassifierCV(
        SENSORS, cost_weights=[1.0, 0.02, 0.001], cv=3, budget=2.0, unit="EUR"
    )
    return model.fit(X, y)


def test_a_file_holds_outages_and_the_curve_that_a_model_was_picked_from():
    model = at_a_budget()
    text = render(write_model(model, None))
    assert violations(json.loads(text), SCHEMA) == []
    loaded = read_model(parse(text))
    assert loaded.outage_report_ == model.outage_report_
    assert loaded.outage_report_.outages
    assert loaded.curve_.to_dict() == model.curve_.to_dict()
    assert loaded.chosen_ == model.chosen_
    assert render(write_model(loaded, None)) == text


def test_files_without_outages_and_curve_are_read_as_before(path):
    document = json.loads(render(write_model(at_a_budget(), None)))
    del document["curve"]["metrics"], document["curve"]["end_metrics"]
    path.write_bytes(with_digest(document))
    assert (load(path).curve_.metrics, load(path).curve_.end_metrics) == ({}, {})
    del document["outages"], document["curve"]
    path.write_bytes(with_digest(document))
    loaded = load(path)
    assert (loaded.outage_report_, loaded.curve_, loaded.chosen_) == (None, None, None)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("curve.measure", "", "curve.measure must be text, not empty"),
        ("curve.cost_weight", [0.001, 1.0, 2.0], "cost_weight must not ascend"),
        ("curve.cost_weight", [], "must hold 1 to 10,000 numbers"),
        ("curve.fold_error.0", DELETE, "fold_error has 8 entries, expected 9"),
        ("curve.nothing", [1.0], "curve.nothing has 1 entries, expected 2"),
        ("curve.chosen.index", 3, "curve.chosen.index is out of range"),
        ("curve.chosen.rule", "luck", "curve.chosen.rule must be one of 'budget'"),
        ("curve.chosen.target", "2", "curve.chosen.target must be a number"),
        ("curve.colour", 1, "curve.colour is not a key"),
        ("curve.metrics.f1", [1.0], "curve.metrics.f1 is not a key"),
        ("curve.metrics.auroc", [1.0], "curve.metrics.auroc has 1 entries, expected 3"),
        ("curve.end_metrics.some", {}, "curve.end_metrics.some is not a key"),
        ("outages.0.share", -1, "share holds a number below 0"),
        ("outages.0.sensor", 99, "sensor is out of range"),
    ],
)
def test_a_curve_or_an_outage_that_cannot_be_is_named(path, place, value, message):
    document = json.loads(render(write_model(at_a_budget(), None)))
    put(place, value)(document)
    path.write_bytes(with_digest(document))
    with pytest.raises(ModelFileError, match=message):
        load(path)


def boosted_with(**changes):
    document = json.loads(saved("boosted, two classes"))
    (entry, *_) = (
        c["classifier"]
        for c in document["classifiers"]
        if c["classifier"]["kind"] == "boosted"
    )
    for key, (at, value) in changes.items():
        entry[key][at] = value
    return with_digest(document)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": (0, 0)}, "a tree with a cycle"),
        ({"right": (0, 1)}, "trees that join up"),
        ({"left": (0, 10**6)}, "left is out of range"),
        ({"feature": (0, 99)}, "feature is out of range"),
        ({"feature": (0, -1)}, "trees that join up, or nodes outside"),
        ({"number": (1, {"float": "NaN"})}, "not finite"),
        ({"roots": (0, 1)}, "trees that join up, or nodes outside"),
    ],
)
def test_boosted_trees_must_be_trees(path, changes, message):
    path.write_bytes(boosted_with(**changes))
    with pytest.raises(ModelFileError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": (0, 0)}, "size is out of range"),
        ({"size": (0, 99)}, "size is out of range"),
        ({"readings": (0, 99)}, "readings is out of range"),
        ({"readings": (0, -1)}, "readings is out of range"),
        ({"size": (slice(None), [])}, "readings has"),
    ],
)
def test_sets_of_levels_must_be_sets_of_readings(path, changes, message):
    document = json.loads(saved("boosted, levels"))
    for entry in document["classifiers"]:
        for key, (at, value) in changes.items():
            entry["classifier"].get("sets", {key: [None]})[key][at] = value
    path.write_bytes(with_digest(document))
    with pytest.raises(ModelFileError, match=message):
        load(path)


# limits -----------------------------------------------------------------------------------

HUGE = {
    "brackets": (b"[" * MAX_BYTES, "more than 32 deep"),
    "braces": (b'{"a":' * (MAX_BYTES // 5), "more than|truncated"),
    "closing": (b"]" * MAX_BYTES, "not JSON"),
    "lists": (b"[" + b"[]," * (MAX_BYTES // 3 - 1) + b"]", "200,000 lists"),
    "strings": (b"[" + b'"a",' * (MAX_BYTES // 4 - 1) + b"]", "500,000 strings"),
    "one string": (b'"' + b"a" * (MAX_BYTES - 2) + b'"', "a string of more than"),
    "quotes": (b'"' * MAX_BYTES, "500,000 strings"),
    "backslashes": (b"\\" * MAX_BYTES, "not JSON"),
    "floats": (
        b"[" + b"1.5," * 799_990 + b" " * (MAX_BYTES - 3_199_963) + b"1]",
        "holds one JSON object",
    ),
    "zeros": (b"[" + b"0," * (MAX_BYTES // 2 - 2) + b"0]", "800,000 values"),
    "one number": (b"1" * MAX_BYTES, "a number of more than"),
    "blanks": (b" " * MAX_BYTES, "the model file is empty"),
    "blanks in an object": (b"{" + b" " * (MAX_BYTES - 2) + b"}", "not a sensortree"),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_file_of_the_largest_size_is_refused_within_64_mib(path, name):
    text, message = HUGE[name]
    path.write_bytes(text)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=message):
        load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 64 * 2**20


def test_a_larger_file_is_refused_before_it_is_read_unless_asked_for(path):
    save(fitted("three classes")[0], path)
    size = path.stat().st_size
    with pytest.raises(ModelFileError, match=r"larger than .* load\(path, max_bytes="):
        load(path, max_bytes=size - 1)
    assert load(path, max_bytes=size).tree_ == fitted("three classes")[0].tree_


SLOW = {
    "a key at the end twice": lambda d: {
        **{f"k{i}": 0 for i in range(200_000)},
        "@once": 0,
    },
    "many sensors in a chain": lambda d: d["problem"].update(
        columns=[f"x{i}" for i in range(9_999)],
        sensors=[
            {
                **d["problem"]["sensors"][0],
                "name": f"s{i}",
                "columns": [i],
                "after": [f"s{i - 1}"] * (0 < i <= 300),
            }
            for i in range(9_999)
        ],
    ),
    "too many prerequisites": lambda d: d["problem"]["sensors"][0].update(
        after=[f"s{i}" for i in range(301)]
    ),
}


@pytest.mark.parametrize("name", SLOW)
def test_what_would_take_long_to_check_is_refused(path, name):
    document = json.loads(GOOD)
    text = with_digest(SLOW[name](document) or document)
    path.write_bytes(text.replace(b'"@once"', b'"k0"'))
    with pytest.raises(ModelFileError):
        load(path)


def test_a_tree_of_too_many_nodes_is_refused(path):
    document = json.loads(GOOD)
    document["tree"]["negative"] = [0] * 10_001
    path.write_bytes(with_digest(document))
    with pytest.raises(ModelFileError, match="more than 10,000 nodes"):
        load(path)


@pytest.mark.parametrize(
    ("n_files", "n_messages"),
    [(300, 40), pytest.param(1_000, 80, marks=pytest.mark.slow)],
)
def test_mutated_files_are_refused_or_are_models(tmp_path, n_files, n_messages):
    fuzzer = Fuzzer(tmp_path, seed=20)
    fuzzer.run(n_files)
    assert fuzzer.counts["refused"] > n_files / 2
    assert fuzzer.counts["read"] > n_files / 50
    assert len(fuzzer.messages) > n_messages


# never half a file ------------------------------------------------------------------------


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    path, monkeypatch, broken
):
    save(fitted("quadratic logistic")[0], path)
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(files.os, broken, full)
    with pytest.raises(OSError, match="no space left"):
        save(fitted("three classes")[0], path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_link_stays_a_link_and_permissions_stay(path, tmp_path):
    save(fitted("quadratic logistic")[0], path)
    path.chmod(0o640)
    link = tmp_path / "current.json"
    link.symlink_to(path)
    save(fitted("three classes")[0], link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert len(load(path).classes_) == 3


def test_a_process_killed_while_it_saves_leaves_a_whole_file(path, tmp_path):
    others = [tmp_path / "one.json", tmp_path / "two.json"]
    for other, kind in zip(others, ("pandas", "boosted, NaN"), strict=True):
        save(fitted(kind)[0], other)
    whole = [other.read_bytes() for other in others]
    path.write_bytes(whole[0])
    code = f"""
import itertools, sensortree
from sensortree.persistence.files import replace_file
from pathlib import Path
texts = [Path(p).read_bytes() for p in {list(map(str, others))!r}]
print("ready", flush=True)
for text in itertools.cycle(texts):
    replace_file(Path({str(path)!r}), text)
"""
    seen = set()
    rng = np.random.default_rng(0)
    for _ in range(8):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        time.sleep(float(rng.uniform(0.0, 0.03)))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        text = path.read_bytes()
        assert text in whole
        seen.add(text)
        load(path)
    assert seen


# the published schema ---------------------------------------------------------------------

SCHEMA = json.loads((ROOT / "docs" / "model-schema.json").read_text(encoding="utf-8"))
JSON_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": int,
}


def violations(value, schema, where="file"):
    """What of a value does not follow a schema, for the words that ours uses."""
    known = {
        *("$schema", "$defs", "title", "description", "$ref", "anyOf", "const", "enum"),
        *(
            "type",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "minItems",
        ),
        *("maxItems", "minLength", "maxLength", "minimum", "pattern"),
    }
    assert set(schema) <= known, set(schema) - known
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return violations(value, SCHEMA["$defs"][name], where)
    found = []
    if "anyOf" in schema:
        tries = [violations(value, one, where) for one in schema["anyOf"]]
        found += [] if not all(tries) else min(tries, key=len)
    if "const" in schema and value != schema["const"]:
        found.append(f"{where} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is none of {schema['enum']}")
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(
            isinstance(value, JSON_TYPES[n])
            and (n == "boolean" or not isinstance(value, bool))
            for n in names
        ):
            return [f"{where} is not {names}"]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [
            f"{where}.{k} misses" for k in schema.get("required", []) if k not in value
        ]
        extra = schema.get("additionalProperties", True)
        for key, item in value.items():
            if key in properties:
                found += violations(item, properties[key], f"{where}.{key}")
            elif extra is False:
                found.append(f"{where}.{key} is not known")
            elif isinstance(extra, dict):
                found += violations(item, extra, f"{where}.{key}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1e9):
            found.append(f"{where} has {len(value)} items")
        for i, item in enumerate(value):
            found += violations(item, schema.get("items", {}), f"{where}[{i}]")
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1e9):
            found.append(f"{where} has a length of {len(value)}")
        if not re.search(schema.get("pattern", ""), value):
            found.append(f"{where} does not match")
    if isinstance(value, (int, float)) and value < schema.get("minimum", -np.inf):
        found.append(f"{where} is below the minimum")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_files_follow_the_published_schema(kind):
    assert violations(json.loads(saved(kind)), SCHEMA) == []


@pytest.mark.parametrize(
    "name", ["truth value", "missing", "unknown key", "kind", "parts"]
)
def test_the_schema_refuses_what_the_reader_refuses(name):
    place, value, _ = BAD_VALUES[name]
    assert value not in RAW
    document = json.loads(GOOD)
    put(place, value)(document)
    assert violations(document, SCHEMA)


def test_the_schema_knows_every_kind_that_is_written():
    registries = {
        "classifier": scorers.CLASSIFIERS,
        "transformer": scorers.TRANSFORMERS,
    }
    for name, kinds in registries.items():
        forms = [f for f in SCHEMA["$defs"][name]["anyOf"] if "properties" in f]
        assert [f["properties"]["kind"]["const"] for f in forms] == list(kinds)


def test_a_session_goes_on_with_the_loaded_model(path):
    model, X, _ = fitted("pandas")
    session = model.policy_.session()
    sensor = session.ask().sensor
    columns = list(session.ask().columns)
    session.tell(sensor, X.iloc[0][columns].to_dict())
    save(model, path)
    loaded = load(path)
    assert loaded.policy_.digest == model.policy_.digest
    resumed = loaded.policy_.resume(json.loads(json.dumps(session.to_dict())))
    assert resumed.step.sensor == session.step.sensor
    np.testing.assert_array_equal(resumed.step.proba, session.step.proba)


def test_a_loaded_model_reports_and_explains_as_the_fitted_one_did(path):
    model, X, _ = fitted("quadratic logistic")
    save(model, path)
    loaded, y = load(path), model.predict(X)
    assert loaded.report(X, y).to_dict() == model.report(X, y).to_dict()
    assert str(loaded.explain(X[0])) == str(model.explain(X[0]))
