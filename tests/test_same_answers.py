"""Claims about the digests of answers: they tell one bit, and nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import sensortree

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def answers(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import answers

    return answers


# digests ----------------------------------------------------------------------------------


@dataclass
class Pair:
    left: float
    right: object


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array([1.0]), np.nextafter([1.0], 2.0)),
        (0.1 + 0.2, 0.3),
        (0.0, -0.0),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (1, 1.0),
        (1, True),
        ("1", 1),
        (None, "None"),
        (["ab"], ["a", "b"]),
        ([[1], 2], [[1, 2]]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Pair(1.0, None), Pair(1.0, 0)),
    ],
)
def test_values_that_are_not_the_same_have_other_digests(answers, one, other):
    assert answers.digest(one) != answers.digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float64(0.5), 0.5),
        (float("nan"), np.float64("nan")),
        ((1, 2), [1, 2]),
        (np.array(["a", None], dtype=object), ["a", None]),
        (np.arange(6.0).reshape(2, 3).T, np.array([[0.0, 3], [1, 4], [2, 5]])),
        ({"b", "a"}, {"a", "b"}),
    ],
)
def test_the_same_values_have_the_same_digest(answers, one, other):
    assert answers.digest(one) == answers.digest(other)


def test_a_value_that_cannot_be_digested_is_refused(answers):
    with pytest.raises(TypeError, match="a object has no digest"):
        answers.digest([object()])


# comparing --------------------------------------------------------------------------------

FITS = ["given", "astc"]


@pytest.fixture
def before(answers, tmp_path):
    path = tmp_path / "before.json"
    assert answers.main(["-o", str(path), *FITS]) == 0
    return path


def test_the_same_code_gives_the_same_digests(answers, before, capsys):
    assert answers.main(["--compare", str(before), *FITS]) == 0
    document = json.loads(before.read_text("utf-8"))
    n_digests = sum(len(document[name]) for name in FITS)
    assert n_digests > 40
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"2 fits, {n_digests} digests, 0 differ"


def test_a_last_bit_of_an_answer_is_told(answers, before, capsys, monkeypatch):
    asked = sensortree.ASTCClassifier.predict_proba

    def nudged(self, X, **prices):
        return np.nextafter(asked(self, X, **prices), 2.0)

    monkeypatch.setattr(sensortree.ASTCClassifier, "predict_proba", nudged)
    capsys.readouterr()
    assert answers.main(["--compare", str(before), *FITS]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == ["astc: predict_proba differs"]
    assert last.endswith(" digests, 1 differ")


def test_a_fit_that_fails_differs(answers, before, capsys, monkeypatch):
    def fail():
        raise ValueError("on purpose")

    monkeypatch.setitem(answers.FITS, "astc", fail)
    capsys.readouterr()
    assert answers.main(["--compare", str(before), *FITS]) == 1
    printed = capsys.readouterr()
    assert "astc: predict is gone" in printed.out
    assert "on purpose" in printed.err
    assert answers.main(["-o", str(before), *FITS]) == 1


def test_what_is_gone_and_what_is_new_differ(answers):
    found = answers.differences(
        {"a": {"x": "1", "y": "2"}}, {"a": {"y": "2", "z": "3"}}
    )
    assert found == ["a: x is gone", "a: z is new"]


def test_other_versions_are_told(answers, capsys):
    document = {answers.MAKERS: {**answers.makers(), "numpy": "1.0"}, "a": {"x": "1"}}
    assert answers.compare(document, {"a": {"x": "1"}}, []) == 0
    assert "made with numpy 1.0, this is" in capsys.readouterr().out


def test_a_fit_that_is_unknown_is_refused(answers):
    with pytest.raises(SystemExit, match="there is no fit 'gven'"):
        answers.wanted_fits(["gven"])


def test_every_classifier_of_the_package_is_fitted(answers):
    classifiers = {name for name in sensortree.__all__ if "Classifier" in name}
    source = Path(answers.__file__).read_text("utf-8")
    assert {name for name in classifiers if f"{name}(" in source} == classifiers
