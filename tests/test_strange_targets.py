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


# lines below the table -------------------------------------------------------------------

TABLE = [(f"P{i:03}", str(i % 9), str(30 + i), "ab"[i % 2]) for i in range(30)]
BELOW = ["Total", "Source: hospital, 2024", "N = 30", "* p < 0.05", "Quelle: Klinik"]


@pytest.mark.parametrize("target_first", [True, False])
@pytest.mark.parametrize("footers", [[name] for name in BELOW] + [BELOW], ids=str)
def test_what_stands_padded_below_a_table_is_no_row_and_no_class(
    tmp_path, footers, target_first
):
    header = ["y", "a", "b"] if target_first else ["a", "b", "y"]
    order = [3, 1, 2] if target_first else [1, 2, 3]
    rows = [[row[i] for i in order] for row in TABLE]
    path = written(tmp_path, [header, *rows, *([name, "", ""] for name in footers)])
    data, answers, _ = read_target(read_data(path), "y", "auto")
    assert (set(answers), len(data)) == ({"a", "b"}, 30)
    lines = ", ".join(map(str, range(32, 32 + len(footers))))
    assert any(f"{lines} " in note and "left out" in note for note in data.notes)


@pytest.mark.parametrize(
    "last",
    [
        ("Total", "120", "1335", ""),
        ("Grand total:", "120", "", ""),
        ("Mean", "4.0", "44.5", ""),
        ("Source:", "hospital", "", ""),
        ("Source: Smith", "2024"),
        ("Exported on Monday", ""),
        ("Summe", "120", "1335", "30"),
    ],
    ids=str,
)
def test_sums_below_a_table_are_no_row(tmp_path, last):
    path = written(tmp_path, [("id", "a", "b", "y"), *TABLE, last])
    data = read_data(path)
    assert len(data) == 30
    assert any("line 32 is a title or a remark" in note for note in data.notes)


@pytest.mark.parametrize(
    "last",
    [
        ("P999", "", "", ""),  # an example of which nothing is known
        ("", "", "", "a"),
        ("", "7", "", ""),
        ("P888", "7", "", ""),
        ("?", "", "", ""),
    ],
    ids=str,
)
def test_a_row_with_little_in_it_is_a_row(tmp_path, last):
    path = written(tmp_path, [("id", "a", "b", "y"), *TABLE, last])
    assert len(read_data(path)) == 31


@pytest.mark.parametrize(
    "rows",
    [
        [("Ann", "", "")],  # one example, of whom nothing is known
        [("Ann", "", ""), ("Bob", "", "")],
        [("low", "1", "2"), ("high", "2", "1"), ("low", "", "")],
        [("Total", "1", "2"), ("Part", "2", "1"), ("Total", "3", "3")],
    ],
    ids=str,
)
def test_a_name_that_stands_above_too_or_alone_is_a_row(tmp_path, rows):
    path = written(tmp_path, [("who", "a", "b"), *rows])
    assert len(read_data(path)) == len(rows)


def written(folder, rows):
    path = folder / "data.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    return path


# what `check` says of losses -------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("", "loss: 1 for a wrong answer cost_weight"),
        ("loss = 500", "loss: 500 dollars for a wrong answer cost_weight"),
        ('risk = "log_loss"', "loss: log_loss cost_weight"),
        (
            "[loss]\nill = 900\nwell = 20.5",
            "class answered as loses dollars ill any other 900 well any other 20.5",
        ),
        (
            "[loss]\nill = { well = 900 }\nwell = { ill = 20 }",
            "class answered as loses dollars ill well 900 well ill 20",
        ),
    ],
)
def test_check_shows_the_losses(tmp_path, declared, said):
    path = written(tmp_path, [("a", "y"), *((i % 7, c) for i, c in enumerate(CLASSES))])
    sensors = tmp_path / "s.toml"
    sensors.write_text(
        f'target = "y"\nunit = "dollars"\n{declared}\n'
        '[sensors.a]\ncolumns = ["a"]\ncost = 1\n'
    )
    assert said in run("check", path, "--sensors", sensors)


def test_check_says_how_the_distance_from_a_number_is_judged(tmp_path):
    path = written(tmp_path, [("a", "y"), *((i % 7, x) for i, x in enumerate(AMOUNTS))])
    sensors = tmp_path / "s.toml"
    sensors.write_text('target = "y"\n[sensors.a]\ncolumns = ["a"]\ncost = 1\n')
    assert "loss: squared distance" in run("check", path, "--sensors", sensors)
