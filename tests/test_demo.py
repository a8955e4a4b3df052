"""The demo, and the study of its patients: what is printed is what was computed."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from sensortree import demo

EXAMPLE = Path(__file__).parents[1] / "examples" / "heart_patients.py"


def load_example():
    """The example as a module."""
    spec = spec_from_file_location("heart_patients", EXAMPLE)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


heart = load_example()


@pytest.fixture(scope="module")
def study():
    return heart.run_study(quick=True)


def numbers(line: str) -> list[float]:
    """The numbers of a line of the report, as they are printed."""
    found = re.findall(r"-?\d[\d,]*\.?\d*", line)
    return [float(number.replace(",", "")) for number in found]


def line_of(text: str, name: str) -> str:
    """What a table says about a name."""
    (rest,) = re.findall(rf"^{re.escape(name)}( +\d.*)$", text, re.MULTILINE)
    return rest


def test_the_demo_reports_and_draws(tmp_path, capsys):
    folder = tmp_path / "new" / "folder"
    assert demo.main(["--output", str(folder), "--quick"]) == 0
    printed = capsys.readouterr().out
    for picture in (folder / "tree.png", folder / "tradeoff.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert str(picture) in printed
    assert (folder / "tree.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_demo_reports_on_patients_that_it_did_not_learn_from():
    text, curve = demo.report(quick=True)
    assert "fitted on 181 patients" in text
    assert "THE OTHER 122 PATIENTS\n122 rows; a wrong answer counts as 4,000" in text
    assert str(curve) in text
    everything = sum(price for _, price in demo.TESTS.values())
    assert f"everything would cost {everything:.0f}: " in text


def test_the_study_reports_and_draws(tmp_path, capsys):
    assert heart.main(["--output", str(tmp_path), "--quick"]) == 0
    printed = capsys.readouterr().out
    for picture in ("tree.png", "tradeoff.png", "tree.svg"):
        assert str(tmp_path / picture) in printed


def test_the_first_page_of_the_site_shows_the_demos_tree():
    shown = Path(__file__).parents[1] / "docs" / "images" / "tree.svg"
    assert shown.read_text(encoding="utf-8") == demo.tree_display().to_svg()


def test_the_report_fits_a_terminal(study):
    lines = heart.report(study, []).splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 90


def test_the_comparison_prints_the_means_over_the_patients(study):
    text = heart.report(study, [])
    for name, held in study.methods.items():
        n = len(study.y)
        cost = held.acquired @ [price for _, price in demo.TESTS.values()]
        accuracy = np.mean(held.correct)
        total = np.mean(cost) + demo.WRONG_ANSWER * (1 - accuracy)
        all_tests = sum(price for _, price in demo.TESTS.values())
        assert numbers(line_of(text, name)) == pytest.approx(
            [
                round(100 * accuracy, 1),
                round(100 * np.std(held.correct, ddof=1) / n**0.5, 1),
                round(np.mean(cost), 2),
                round(np.std(cost, ddof=1) / n**0.5, 2),
                round(100 * (1 - np.mean(cost) / all_tests), 1),
                round(total, 2),
            ]
        )


def test_the_tests_are_ordered_as_often_as_printed(study):
    text = heart.report(study, [])
    ordered = study.methods[heart.TREE].acquired.mean(axis=0)
    for (name, (_, price)), share in zip(demo.TESTS.items(), ordered, strict=True):
        assert numbers(line_of(text, name))[:2] == [price, round(100 * share, 1)]


def test_buying_everything_is_a_logistic_regression_on_all_columns(study):
    """The same protocol, written with scikit-learn alone."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y = demo.load_patients()
    model = make_pipeline(
        make_column_transformer(
            (
                OneHotEncoder(handle_unknown="ignore"),
                ["cp", "restecg", "slope", "thal"],
            ),
            remainder=StandardScaler(),
        ),
        LogisticRegression(max_iter=1000),
    )
    folds = RepeatedStratifiedKFold(n_splits=2, n_repeats=1, random_state=0)
    sizes = [len(test) for _, test in folds.split(X, y)]
    expected = np.average(cross_val_score(model, X, y, cv=folds), weights=sizes)
    assert study.methods[heart.EVERYTHING].correct.mean() == pytest.approx(expected)


def test_the_majority_is_right_about_the_patients_without_disease(study):
    *_, majority = study.methods.values()
    np.testing.assert_array_equal(majority.correct, study.y == 0)
    assert not majority.acquired.any()


def test_the_label_is_the_one_described():
    X, y = demo.load_patients()
    assert (len(y), int(y.sum())) == (303, 83)
    assert "target" not in X


def test_every_column_belongs_to_a_test():
    X, _ = demo.load_patients()
    read = [column for columns, _ in demo.TESTS.values() for column in columns]
    assert sorted(read) == sorted(X.columns)


def test_the_leaves_of_the_printed_tree_hold_all_patients(study):
    text = heart.report(study, [])
    leaves = re.findall(r"leaf \d stops \(([\d.]+) %, ([\d.]+)\)", text)
    assert len(leaves) == len(demo.TESTS)
    assert sum(float(share) for share, _ in leaves) == pytest.approx(100, abs=0.4)
    prices = np.cumsum([price for _, price in demo.TESTS.values()])
    assert [float(cost) for _, cost in leaves] == pytest.approx(
        prices.round(2).tolist()
    )


def test_the_certificate_is_printed(study):
    words = " ".join(heart.report(study, []).split())
    assert " ".join(str(study.model.certificate_).split()) in words


def test_an_unfavourable_result_is_called_so(study):
    """A tree that buys everything and is always wrong has nothing to be said for it."""
    tree = study.methods[heart.TREE]
    bad = heart.HeldOut(np.zeros_like(tree.correct), np.ones_like(tree.acquired))
    worse = replace(study, methods=study.methods | {heart.TREE: bad})
    words = " ".join(heart.report(worse, []).split())
    assert "spends 0 % less on tests" in words
    assert "percentage points fewer of the patients" in words
    assert "dollars per patient more than those of the best other method" in words


def test_the_difference_in_accuracy_is_paired_over_the_patients(study):
    """Both methods answer the same patients, so their difference has its own error."""
    tree, everything = study.methods[heart.TREE], study.methods[heart.EVERYTHING]
    lost = 100 * (everything.correct - tree.correct)
    error = np.std(lost, ddof=1) / len(lost) ** 0.5
    words = " ".join(heart.report(study, []).split())
    assert f"answers {abs(lost.mean()):.1f} ± {error:.1f} percentage points" in words
    assert f"({abs(lost.mean()) / error:.1f} standard errors)" in words


def test_a_tree_that_equals_a_rival_has_no_difference_to_judge(study):
    equal = replace(
        study, methods=study.methods | {heart.TREE: study.methods[heart.EVERYTHING]}
    )
    words = " ".join(heart.report(equal, []).split())
    assert (
        "answers 0.0 ± 0.0 percentage points more of the patients correctly. " in words
    )


def test_a_missing_package_ends_with_a_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "sklego.datasets", None)
    assert demo.main(["--output", str(tmp_path), "--quick"]) == 1
    assert "pip install 'sensortree[demo]'" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_ends_with_a_sentence(tmp_path, capsys):
    occupied = tmp_path / "file"
    occupied.touch()
    assert demo.main(["--output", str(occupied), "--quick"]) == 1
    assert "File exists" in capsys.readouterr().err
