"""Claims about targets as strangers write them: marks for gaps, lines below the table."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from sensortree.cells.words import NOTHING
from sensortree.cli.app import app
from sensortree.cli.problem import read_target
from sensortree.cli.tables import read_data
from sensortree.exceptions import DataError

CLASSES = ["well"] * 30 + ["ill"] * 30
AMOUNTS = [f"{40 + i * 1.37:.2f}" for i in range(60)]


def run(*arguments, code=0):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, (result.output, result.exception)
    return " ".join(result.output.split())


def target_of(tmp_path, cells, task="auto"):
    """What is read of a target: the lines that are left, their answers, the notes."""
    path = tmp_path / "data.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = [(i % 7, i % 5, cell) for i, cell in enumerate(cells)]
        csv.writer(file).writerows([("a", "b", "y"), *rows])
    data, answers, notes = read_target(read_data(path), "y", task)
    return data.lines, answers.tolist(), " ".join(notes)


ALWAYS = sorted(NOTHING - {"", "none", "nil"})


@pytest.mark.parametrize("answers", [CLASSES, AMOUNTS], ids=["classes", "amounts"])
@pytest.mark.parametrize("mark", [*ALWAYS, "Unknown", "N/A", "<NA>"])
def test_a_row_whose_target_is_a_mark_for_a_gap_is_left_out_and_counted(
    tmp_path, answers, mark
):
    lines, found, notes = target_of(
        tmp_path, [*answers[:40], mark, mark, *answers[40:]]
    )
    assert len(lines) == 60
    assert {42, 43}.isdisjoint(lines)
    assert list(map(str, found)) == list(map(str, map(type(found[0]), answers)))
    assert "2 rows are left out: their y is" in notes


@pytest.mark.parametrize(
    ("cells", "classes"),
    [
        (["none", "mild", "severe", "?"], {"none", "mild", "severe"}),
        (["+", "-", "?"], {"+", "-"}),
        (["-", "+", "++", "n/a"], {"-", "+", "++"}),
        (["nil", "some", "unknown"], {"nil", "some"}),
        (["yes", "NA", ""], {"yes", "NA"}),  # else there is nothing to tell apart
        (["0", "1", "#N/A"], {0, 1}),
    ],
)
def test_a_mark_that_is_an_answer_among_the_others_stays_a_class(
    tmp_path, cells, classes
):
    _, found, notes = target_of(tmp_path, cells * 10)
    assert set(found) == classes
    if "NA" in classes:
        assert "'NA' is taken for a class" in notes


def test_texts_among_amounts_have_no_answer_either(tmp_path):
    cells = [*AMOUNTS[:50], "see chart", "ERR", *AMOUNTS[50:]]
    lines, found, notes = target_of(tmp_path, cells)
    assert found == list(map(float, AMOUNTS))
    assert {52, 53}.isdisjoint(lines)
    assert "2 rows are left out: their y is 'ERR' or 'see chart'." in notes


def test_a_target_of_marks_only_is_refused(tmp_path):
    with pytest.raises(DataError, match="'y' is empty in all rows"):
        target_of(tmp_path, ["?", "-"] * 20, "regression")


@pytest.mark.parametrize("answers", [CLASSES, AMOUNTS], ids=["classes", "amounts"])
def test_every_command_counts_the_rows_without_an_answer(
    tmp_path, answers, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = [f"{(i < 30) + rng.normal():.2f}" for i in range(60)]
    rows = [*zip(x, answers, strict=True), ("1.1", "?"), ("0.3", "n/a"), ("0.2", "")]
    for name, some in (("train.csv", rows), ("new.csv", rows[25:])):
        with open(name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("x", "y"), *some])
    said = "3 rows are left out: their y is"
    assert said in run("init", "train.csv", "--target", "y")
    assert said in run("check", "train.csv", "--sensors", "sensors.toml")
    assert said in run("fit", "train.csv", "--sensors", "sensors.toml")
    assert said in run("evaluate", "model.json", "new.csv")
    if answers is CLASSES:
        assert said in run("report", "model.json", "new.csv")
    result = CliRunner().invoke(app, ["evaluate", "model.json", "new.csv", "--json"])
    assert json.loads(result.stdout)["rows_left_out"] == 3


def test_an_answer_that_is_no_number_is_said_by_its_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{i % 9},{amount}" for i, amount in enumerate(AMOUNTS))
    (tmp_path / "train.csv").write_text(f"x,y\n{rows}\n")
    (tmp_path / "new.csv").write_text("x,y\n1,50.2\n2,ERR\n3,?\n4,61\n")
    run("init", "train.csv", "--target", "y")
    run("fit", "train.csv", "--sensors", "sensors.toml")
    said = run("evaluate", "model.json", "new.csv", code=3)
    assert "line 3: 'ERR' is not a number" in said
    assert "1 rows are left out: their y is '?'." in said
