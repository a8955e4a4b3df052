"""Claims about calibrated leaves: plain numbers that answer as scikit-learn does."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fuzz_model_file import with_digest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sensortree import QuadraticLogisticRegression, SensorTreeClassifier, load, save
from sensortree.exceptions import ModelFileError
from sensortree.leaves.boosting import BoostedTrees
from sensortree.leaves.compiling import compile_classifier
from sensortree.policy.classifiers import (
    CalibratedScorer,
    ConstantScorer,
    Isotonic,
    MeanScorer,
    Sigmoid,
)

METHODS = ("sigmoid", "isotonic", "temperature")
CLASSIFIERS = {
    "logistic": LogisticRegression(max_iter=1000),
    "quadratic": QuadraticLogisticRegression(),
    "boosted": BoostedTrees(),
    "histogram": HistGradientBoostingClassifier(max_iter=5, random_state=0),
}
X3, Y3 = load_iris(return_X_y=True)
X2, Y2 = X3[50:], (Y3[50:] == 2).astype(int)
DATA = {"two classes": (X2, Y2), "three classes": (X3, Y3)}


@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_calibrated_classifier_answers_as_plain_arrays(name, method, data, ensemble):
    X, y = DATA[data]
    theirs = CalibratedClassifierCV(
        CLASSIFIERS[name], method=method, ensemble=ensemble, cv=3
    ).fit(X, y)
    ours = compile_classifier(theirs)
    assert type(ours) is (MeanScorer if ensemble else CalibratedScorer)
    np.testing.assert_allclose(
        ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_row_is_answered_the_same_alone_and_among_others(method):
    scorer = compile_classifier(
        CalibratedClassifierCV(BoostedTrees(), method=method, ensemble=False).fit(
            X3, Y3
        )
    )
    together = scorer.predict_proba(X3)
    alone = np.concatenate([scorer.predict_proba(X3[i : i + 1]) for i in range(150)])
    np.testing.assert_array_equal(alone, together)


def test_a_frozen_classifier_is_looked_into():
    fitted = LogisticRegression(max_iter=1000).fit(X3[::2], Y3[::2])
    theirs = CalibratedClassifierCV(FrozenEstimator(fitted)).fit(X3[1::2], Y3[1::2])
    ours = compile_classifier(theirs)
    assert ours is not theirs
    np.testing.assert_allclose(ours.predict_proba(X3), theirs.predict_proba(X3))


@pytest.mark.parametrize(
    "inside", [LinearSVC(), CalibratedClassifierCV(LogisticRegression(max_iter=1000))]
)
def test_what_is_not_plain_inside_stays_as_it_is(inside):
    theirs = CalibratedClassifierCV(inside, cv=3).fit(X3, Y3)
    assert compile_classifier(theirs) is theirs


def test_where_every_class_is_impossible_all_are_equally_likely():
    # Each of three outputs says 0 below 1; at 2 only the second is likely.
    steps = Isotonic((np.array([1.0, 2.0]),) * 3, (np.array([0.0, 1.0]),) * 3)
    said = steps.proba(np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), True)
    np.testing.assert_array_equal(said, [[1 / 3] * 3, [0.0, 1.0, 0.0]])


def test_a_sigmoid_neither_overflows_nor_leaves_0_to_1():
    sigmoid = Sigmoid(np.array([-1.0]), np.array([0.0]))
    said = sigmoid.proba(np.array([[-1e9], [0.0], [1e9]]), True)
    np.testing.assert_array_equal(said, [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])


# files ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return SensorTreeClassifier(
        {"sepal": [0, 1], "petal": [2, 3]}, structure="cascade", calibration="isotonic"
    ).fit(X2, Y2)


def test_no_part_of_a_calibrated_policy_is_pickled_for_its_digest(model, monkeypatch):
    import pickle
    from dataclasses import replace

    def refuse(*args, **named):
        raise AssertionError("pickled")

    monkeypatch.setattr(pickle, "dumps", refuse)
    assert replace(model.policy_).digest == model.policy_.digest


def changed(model, path, change):
    """A file of which the first calibrated classifier was changed."""
    save(model, path)
    document = json.loads(path.read_bytes())
    calibrated = [
        entry["classifier"]
        for entry in document["classifiers"]
        if entry["classifier"]["kind"] == "calibrated"
    ]
    change(calibrated[0])
    path.write_bytes(with_digest(document))
    return path


BAD = {
    "method": (
        lambda c: c.update(method="magic"),
        "must be one of 'sigmoid', 'isotonic'",
    ),
    "too many": (
        lambda c: c["outputs"].append([0.0, 1.0]),
        "has 2 entries, expected 1",
    ),
    "odd": (lambda c: c["outputs"][0].pop(), "points without a probability"),
    "falling": (lambda c: c["outputs"][0].reverse(), "must rise, to probabilities"),
    "empty": (lambda c: c["outputs"][0].clear(), "has 0 entries, expected 2"),
    "no list": (lambda c: c["outputs"].__setitem__(0, 3), "must be a list"),
    "no scores": (
        lambda c: c.update(classifier={"kind": "constant", "proba": [0.5, 0.5]}),
        "classifier has no scores",
    ),
    "skops inside": (
        lambda c: c.update(classifier={"kind": "skops", "type": "x.Y", "data": []}),
        "written by skops",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_numbers_that_calibrate_nothing_are_refused(model, tmp_path, name):
    change, message = BAD[name]
    path = changed(model, tmp_path / "model.json", change)
    with pytest.raises(ModelFileError, match=message):
        load(path, trusted=[])


def test_the_leaf_that_knows_nothing_is_not_calibrated(model):
    assert isinstance(model.policy_.classifiers[frozenset()], ConstantScorer)
