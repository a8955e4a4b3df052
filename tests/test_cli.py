"""Claims about the command line: every command end to end, and every bad file."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sensortree
from sensortree.cli.app import app

ROOT = Path(__file__).parents[1]
HEAD = ["id", "age", "city", "glucose", "crp", "price_scan", "scan", "sick"]
SENSORS = """\
target = "sick"
unit = "dollars"
cost_weight = 0.01

[sensors.history]
columns = ["age", "city"]
cost = 0
transformer = { city = "one-hot", age = "scale" }

[sensors.glucose]
columns = ["glucose"]
cost = 2.0
group = "blood"
fee = 0.5

[sensors.crp]
columns = "crp"
cost = 3.0
group = "blood"
fee = 0.5
transformer = ["impute", "scale"]

[sensors.scan]
columns = ["scan"]
cost = "price_scan"
after = ["glucose"]
"""
PLAIN = """\
[sensors.glucose]
columns = ["glucose"]
cost = 2.0

[sensors.scan]
columns = ["scan"]
cost = 5.0
"""


def rows(n_rows: int = 120) -> list[list[object]]:
    """Patients: glucose says a little, the scan nearly everything."""
    rng = np.random.default_rng(0)
    city = rng.choice(["north", "south", "1"], n_rows)
    glucose, noise = rng.normal(size=(2, n_rows)).round(3)
    crp = rng.normal(size=n_rows).round(3)
    sick = (glucose + 0.4 * noise > 0).astype(int)
    return [
        [
            i,
            40 + i % 30,
            city[i],
            glucose[i],
            "" if i % 40 == 7 else crp[i],
            5 + i % 3,
            round(2.0 * sick[i] + 0.3 * crp[i], 3),
            sick[i],
        ]
        for i in range(n_rows)
    ]


def write_csv(path: Path, lines: list[list[object]], delimiter: str = ",") -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(lines)
    return path


def run(*arguments: object, code: int = 0, typed: str | None = None):
    result = CliRunner().invoke(app, list(map(str, arguments)), input=typed)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, (result.stdout, result.stderr)
    return result


def document(*arguments: object, typed: str | None = None) -> dict:
    result = run(*arguments, "--json", typed=typed)
    form = json.loads(result.stdout)
    assert form["schema"] == f"sensortree/{arguments[0]}"
    assert form["version"] == 1
    return form


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A table, a sensors file, and the model of both."""
    folder = tmp_path_factory.mktemp("cli")
    write_csv(folder / "data.csv", [HEAD, *rows()])
    (folder / "sensors.toml").write_text(SENSORS)
    (folder / "plain.toml").write_text(PLAIN)
    for sensors, model in (("sensors", "model"), ("plain", "plain")):
        run(
            *("fit", folder / "data.csv", "--sensors", folder / f"{sensors}.toml"),
            *("--target", "sick", "--structure", "cascade"),
            *("-o", folder / f"{model}.json"),
        )
    return folder


# preparing --------------------------------------------------------------------------------


def test_what_init_writes_can_be_fitted_as_it_is(folder, tmp_path):
    data, sensors = folder / "data.csv", tmp_path / "sensors.toml"
    run("init", data, "--target", "sick", "-o", sensors)
    text = sensors.read_text()
    assert '[sensors.city]\ncolumns = ["city"]  # text, 3 different' in text
    assert "\ntransformer" not in text
    assert 'columns = ["crp"]  # numbers, 3 missing' in text
    model = tmp_path / "model.json"
    run("fit", data, "--sensors", sensors, "--structure", "cascade", "-o", model)
    assert sensortree.load(model).sensors_.names == tuple(HEAD[1:-1])  # not the id


def test_init_leaves_out_columns_that_name_their_row(tmp_path):
    lines = [[i, f"p{i}", i / 7, i % 9, "" if i else 1, i % 2] for i in range(30)]
    head = ["number", "name", "weight", "age", "last", "sick"]
    data = write_csv(tmp_path / "data.csv", [head, *lines])
    form = document("init", data, "--target", "sick", "-o", tmp_path / "s.toml")
    assert list(form["sensors"]) == ["weight", "age", "last"]
    assert form["left_out"] == {
        "number": "is an identifier (30 different integers in 30 rows)",
        "name": "is an identifier (30 different texts in 30 rows)",
    }
    text = (tmp_path / "s.toml").read_text()
    assert (
        "# name is an identifier (30 different texts in 30 rows)\n# [sensors.name]"
        in (text)
    )


def test_init_says_what_to_do_about_a_table_that_takes_minutes(
    folder, tmp_path, monkeypatch
):
    from sensortree.cli import preparing

    arguments = ("init", folder / "data.csv", "--target", "sick", "-o")
    assert "--max-time 60" not in run(*arguments, tmp_path / "s.toml").stderr
    monkeypatch.setattr(preparing, "MANY", 100)
    assert "--max-time 60" in run(*arguments, tmp_path / "t.toml").stderr


def test_init_groups_columns_by_what_their_names_begin_with(tmp_path):
    lines = [["blood_a", "blood_b", "age", "sick"], [1, "x", 3, 0], [2, "y", 4, 1]]
    data = write_csv(tmp_path / "data.csv", lines)
    output = tmp_path / "s.toml"
    form = document(
        *("init", data, "--target", "sick", "--group-by-prefix", "_", "-o", output)
    )
    assert form["sensors"] == {"blood": ["blood_a", "blood_b"], "age": ["age"]}


def test_names_that_are_no_toml_keys_are_quoted(tmp_path):
    lines = [["crp [mg/l]", 'the "x"', "sick"], [1, 3, 0], [2, 4, 1]]
    data, output = write_csv(tmp_path / "data.csv", lines), tmp_path / "s.toml"
    run("init", data, "--target", "sick", "-o", output)
    form = document("check", data, "--sensors", output)
    assert list(form["sensors"]) == ["crp [mg/l]", 'the "x"']


def test_check_says_what_is_there(folder):
    arguments = ("check", folder / "data.csv", "--sensors", folder / "sensors.toml")
    form = document(*arguments)
    assert form["rows"] == 120
    assert form["unused_columns"] == ["id"]
    assert form["sensors"]["crp"] == {"columns": ["crp"], "cost": 3.0, "missing": 3}
    assert form["everything"] is None  # the scan's price differs
    result = run(*arguments)
    assert "fit together" in result.stdout
    assert "warning: not used: id" in result.stderr


# learning ---------------------------------------------------------------------------------


def test_a_fitted_model_knows_its_columns_by_name_and_needs_no_frames(folder):
    model = sensortree.load(folder / "model.json")
    assert model.feature_names_in_.tolist() == [*HEAD[1:5], "scan", "price_scan"]
    assert model.policy_.reader.frame is None
    assert model.policy_.columns_of["history"] == ("age", "city")


def test_the_command_line_fits_what_the_library_fits(folder):
    data = np.array([[line[3], line[6], line[7]] for line in rows()], dtype=float)
    fitted = sensortree.SensorTreeClassifier(
        {"glucose": [0], "scan": [1]},
        costs={"glucose": 2.0, "scan": 5.0},
        structure="cascade",
    ).fit(data[:, :2], data[:, 2].astype(int))
    model = sensortree.load(folder / "plain.json")
    X = data[:, :2]
    assert np.array_equal(model.predict_proba(X), fitted.predict_proba(X))


def test_options_win_over_the_sensors_file(folder, tmp_path):
    form = document(
        *("fit", folder / "data.csv", "--sensors", folder / "sensors.toml"),
        *("--structure", "cascade", "--cost-weight", 0.5, "--max-cost", 4),
        *("-o", tmp_path / "m.json"),
    )
    assert form["cost_weight"] == 0.5
    assert sensortree.load(tmp_path / "m.json").policy_.max_cost == 4
    assert form["certificate"]["lower"] <= form["certificate"]["upper"]


def test_losses_of_the_sensors_file_are_by_class(folder, tmp_path):
    sensors = tmp_path / "s.toml"
    sensors.write_text(f"{PLAIN}\n[loss]\n0 = {{ 1 = 20 }}\n1 = {{ 0 = 90 }}\n")
    arguments = ("--target", "sick", "--structure", "cascade")
    data, model = folder / "data.csv", tmp_path / "m.json"
    run("fit", data, "--sensors", sensors, *arguments, "-o", model)
    form = document("inspect", model)
    assert form["loss"] == [[0.0, 20.0], [90.0, 0.0]]
    assert form["cost_weight"] == 1.0  # money on both sides


@pytest.mark.parametrize("classifier", ["auto", "boosted"])
def test_missing_numbers_and_text_need_no_transformer(folder, tmp_path, classifier):
    sensors = tmp_path / "s.toml"
    columns = '[sensors.both]\ncolumns = ["glucose", "crp", "city"]\ncost = 0\n'
    sensors.write_text(columns)
    arguments = ("fit", folder / "data.csv", "--sensors", sensors, "--target", "sick")
    model = tmp_path / "m.json"
    run(*arguments, "--classifier", classifier, "-o", model)
    form = document("evaluate", model, folder / "data.csv")
    assert form["error"] < 0.2
    assert form["rows_left_out"] == 0


def test_a_transformer_of_numbers_refuses_text(folder, tmp_path):
    sensors = tmp_path / "s.toml"
    sensors.write_text(
        '[sensors.city]\ncolumns = ["city"]\ncost = 1\ntransformer = "scale"\n'
    )
    result = run(
        *("check", folder / "data.csv", "--sensors", sensors, "--target", "sick"),
        code=1,
    )
    assert re.search(r"column 'city': '(north|south)' is not a number", result.stderr)
    assert "take scale from [sensors.city]" in " ".join(result.stderr.split())


def test_a_budget_and_a_cost_weight_together_are_wrong_usage(folder, tmp_path):
    result = run(
        *("fit", folder / "data.csv", "--sensors", folder / "plain.toml"),
        *("--target", "sick", "--budget", 3, "--cost-weight", 1),
        *("-o", tmp_path / "m.json"),
        code=2,
    )
    assert "not both" in result.stderr


def test_a_curve_is_a_table_json_csv_and_a_picture(folder, tmp_path):
    arguments = (
        *("curve", folder / "data.csv", "--sensors", folder / "plain.toml"),
        *("--target", "sick", "--structure", "cascade", "--cv", 2),
        *("--cost-weights", "0.001,0.05,1"),
    )
    picture = tmp_path / "curve.svg"
    form = document(*arguments, "--plot", picture)
    assert len(form["points"]) == 3
    assert "<svg" in picture.read_text()
    lines = run(*arguments, "--csv").stdout.splitlines()
    assert lines[0] == "cost_weight,mean_cost,error"
    assert len(lines) == 4
    assert run(*arguments).stdout.strip()
    measured = run(*arguments, "--csv", "--metric", "auroc").stdout.splitlines()
    assert measured[0] == "cost_weight,mean_cost,error,auroc"
    areas = [float(line.split(",")[-1]) for line in measured[1:]]
    assert areas == [point["auroc"] for point in form["points"]]
    beside = run(*arguments, "--metric", "log_loss", "--plot", tmp_path / "other.svg")
    assert beside.stdout.splitlines()[0].endswith("log_loss")
    assert "mean log-loss" in (tmp_path / "other.svg").read_text()


def test_a_budget_is_met(folder, tmp_path):
    model = tmp_path / "m.json"
    run(
        *("fit", folder / "data.csv", "--sensors", folder / "plain.toml"),
        *("--target", "sick", "--structure", "cascade", "--budget", 4, "-o", model),
    )
    form = document("evaluate", model, folder / "data.csv", "--target", "sick")
    assert form["cost"] <= 4.5


def test_compare_measures_methods_on_held_out_rows(folder):
    form = document(
        *("compare", folder / "data.csv", "--sensors", folder / "plain.toml"),
        *("--target", "sick", "--structure", "cascade", "--cv", 2),
    )
    lines = {line["method"]: line for line in form["methods"]}
    assert lines["everything"]["mean_cost"] == 7.0
    assert lines["nothing"]["mean_cost"] == 0.0
    assert lines["nothing"]["error"] > lines["everything"]["error"]
    assert 0 < lines["sensor tree"]["mean_cost"] <= 7.0


@pytest.mark.parametrize("sensors", ["plain.toml", "sensors.toml"])
@pytest.mark.parametrize("extra", [(), ("--max-cost", 3), ("--loss", 50)])
def test_curve_and_compare_measure_the_same(folder, sensors, extra):
    """One definition of everything and nothing, and of a method, on the same folds."""
    given = (
        *(folder / "data.csv", "--sensors", folder / sensors, "--target", "sick"),
        *("--structure", "chain", "--classifier", "linear", "--cv", 4, *extra),
    )
    curve = document("curve", *given, "--cost-weights", "0.02,1")
    compared = document("compare", *given, "--cost-weight", 0.02)
    lines = {line["method"]: line for line in compared["methods"]}
    for name in ("everything", "nothing"):
        assert [lines[name]["mean_cost"], lines[name]["loss"]] == curve[name]
    point = next(p for p in curve["points"] if p["cost_weight"] == 0.02)
    line = lines["sensor tree"]
    assert (line["mean_cost"], line["loss"]) == (point["mean_cost"], point["error"])


def test_who_buys_nothing_knows_what_is_free(tmp_path):
    """The sensor that says all costs nothing: to buy nothing is to be right."""
    lines = [[i % 2, (i * 7) % 5, i % 2] for i in range(80)]
    data = write_csv(tmp_path / "d.csv", [["known", "other", "sick"], *lines])
    sensors = tmp_path / "s.toml"
    sensors.write_text(
        "target = 'sick'\n"
        "[sensors.known]\ncolumns = ['known']\ncost = 0\n"
        "[sensors.other]\ncolumns = ['other']\ncost = 1\n"
    )
    given = (data, "--sensors", sensors, "--structure", "chain")
    assert document("curve", *given, "--cost-weights", "1")["nothing"] == [0.0, 0.0]
    methods = document("compare", *given)["methods"]
    (nothing,) = [line for line in methods if line["method"] == "nothing"]
    assert (nothing["mean_cost"], nothing["error"]) == (0.0, 0.0)


def test_compare_prints_a_table(folder):
    result = run(
        *("compare", folder / "data.csv", "--sensors", folder / "sensors.toml"),
        *("--structure", "cascade", "--cv", 2),
    )
    assert re.search(
        r"^method +error +mean cost \(dollars\) +total$", result.stdout, re.M
    )


# using ------------------------------------------------------------------------------------


def test_evaluate_is_the_cost_report(folder):
    arguments = ("evaluate", folder / "model.json", folder / "data.csv")
    form = document(*arguments, "--target", "sick")
    spend = sum(sensor["spend"] for sensor in form["sensors"])
    assert form["n_rows"] == 120
    assert spend == pytest.approx(form["cost"])
    assert "everything would cost" in run(*arguments, "--target", "sick").stdout


def test_evaluate_warns_of_rows_that_the_model_was_learned_from(folder, tmp_path):
    other = tmp_path / "others.csv"
    other.write_bytes((folder / "data.csv").read_bytes())
    model = folder / "model.json"
    warning = "learned from a file of this name"
    assert warning in " ".join(
        run("evaluate", model, folder / "data.csv").stderr.split()
    )
    assert warning not in " ".join(run("evaluate", model, other).stderr.split())


def test_a_model_knows_which_column_it_learned(folder):
    form = document("evaluate", folder / "model.json", folder / "data.csv")
    assert form["n_rows"] == 120


def test_a_model_that_learned_no_named_column_asks_for_one(folder, tmp_path):
    model, path = sensortree.load(folder / "plain.json"), tmp_path / "model.json"
    sensortree.save(replace(model.policy_, about=sensortree.results.About()), path)
    result = run("evaluate", path, folder / "data.csv", code=2)
    assert "name the column of the right answers" in " ".join(result.stderr.split())


def test_report_writes_one_page(folder, tmp_path):
    output = tmp_path / "report.html"
    arguments = ("report", folder / "model.json", folder / "data.csv", "-o", output)
    run(*arguments, "--title", "Ward <7>")
    page = output.read_text(encoding="utf-8")
    assert "<h1>Ward &lt;7&gt;</h1>" in page
    assert "120 examples of data.csv; asked is sick" in page
    assert "dollars" in page
    assert "--force" in run(*arguments, code=2).stderr
    assert document(*arguments, "--force")["output"] == str(output)


def test_predict_writes_what_the_model_says(folder, tmp_path):
    output = tmp_path / "out.csv"
    run(
        *("predict", folder / "plain.json", folder / "data.csv"),
        *("--keep", "id", "-o", output),
    )
    with open(output, newline="") as file:
        lines = list(csv.DictReader(file))
    model = sensortree.load(folder / "plain.json")
    X = np.array([[line[3], line[6]] for line in rows()], dtype=float)
    assert [int(line["answer"]) for line in lines] == model.predict(X).tolist()
    cost = [float(line["cost"]) for line in lines]
    assert cost == model.acquisition_cost(X).tolist()
    assert [line["id"] for line in lines] == [str(i) for i in range(120)]
    assert {line["sensors"] for line in lines} <= {"glucose", "glucose scan"}


def test_what_a_row_does_not_buy_may_be_empty(folder, tmp_path):
    answers = document("predict", folder / "plain.json", folder / "data.csv")["rows"]
    cheap = [i for i, row in enumerate(answers) if row["sensors"] == "glucose"]
    assert 0 < len(cheap) < 120
    lines = rows()
    for i in cheap:
        lines[i][6] = ""
    data = write_csv(tmp_path / "data.csv", [HEAD, *lines])
    again = document("predict", folder / "plain.json", data)["rows"]
    assert again == answers
    bought = next(i for i in range(120) if i not in cheap)
    lines[bought][6] = ""
    data = write_csv(tmp_path / "data.csv", [HEAD, *lines])
    refused = run("predict", folder / "plain.json", data, "--strict", code=3)
    assert f"line {bought + 2}: " in refused.stderr
    assert "column 'scan'" in refused.stderr


def test_text_that_looks_like_numbers_stays_text_where_the_model_knows_text(
    folder, tmp_path
):
    answers = document("predict", folder / "model.json", folder / "data.csv")["rows"]
    lines = rows()
    same = [i for i, line in enumerate(lines) if line[2] == "1"]
    data = write_csv(tmp_path / "data.csv", [HEAD, *(lines[i] for i in same)])
    again = document("predict", folder / "model.json", data)["rows"]
    known = [answers[i] for i in same]
    for row in (*again, *known):
        row.pop("line")
    assert again == known


def test_explain_and_predict_count_rows_by_the_line_of_the_file(folder):
    arguments = ("explain", folder / "model.json", folder / "data.csv")
    rows = document("predict", folder / "model.json", folder / "data.csv")["rows"]
    assert [row["line"] for row in rows] == list(range(2, 122))
    form = document(*arguments, "--line", 4)
    assert form["line"] == rows[2]["line"] == 4
    assert (form["answer"], form["spent"]) == (rows[2]["answer"], rows[2]["cost"])
    said = run(*arguments, "--line", 4).stdout
    assert "1. buys history (0 dollars), as everybody does" in said
    assert "start: buy history" in run(*arguments, "--details").stdout
    assert document(*arguments)["line"] == 2
    said = run(*arguments, "--line", 122, code=2).stderr
    assert "rows are from 2 to 121" in " ".join(said.replace("│", " ").split())


def test_explain_names_the_ways_not_taken_and_draws_them(folder, tmp_path):
    arguments = ("explain", folder / "model.json", folder / "data.csv")
    page = tmp_path / "why.html"
    form = document(*arguments, "-o", page)
    branches = [branch for fork in form["forks"] for branch in fork["branches"]]
    assert {branch["taken"] for branch in branches} == {True, False}
    assert "not taken: " in run(*arguments, "--details").stdout
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!DOCTYPE html>")
    assert "<svg" in html
    assert "exists; pass --force" in run(*arguments, "-o", page, code=2).stderr


def test_inspect_shows_sensors_tree_and_certificate(folder):
    result = run("inspect", folder / "model.json")
    for line in (
        r"^sensor +cost \(dollars\) +terms +columns$",
        r"^glucose +2.5 +2 in all after another of blood +glucose$",
        r"^scan +varies +needs glucose +scan$",
        r"^target: sick$",
        r"^learned from: 120 rows of data.csv$",
        r"^prices in: dollars$",
        r"^held-out rows: error 0\.\d+ ± 0\.\d+, mean cost .* dollars$",
    ):
        assert re.search(line, result.stdout, re.MULTILINE), line
    assert "node 0 knows history" in result.stdout
    assert "certificate of the linear program: optimum in [" in result.stdout
    form = document("inspect", folder / "model.json")
    assert form["digest"] in result.stdout
    assert form["sensors"][3]["after"] == ["glucose"]
    assert re.search(r"^without +blocked +usual +turning +detour$", result.stdout, re.M)
    assert set(form["outages"]) <= {s["sensor"] for s in form["sensors"]}
    assert all(0 < outage["share"] <= 1 for outage in form["outages"].values())
    assert (form["curve"], form["curve_text"]) == (None, "")


@pytest.mark.parametrize(
    ("kind", "begin"),
    [
        ("svg", b"<svg "),
        ("html", b"<!DOCTYPE html>"),
        ("txt", b"buy glucose, +2: node 0, 100.0 % of rows\n"),
        ("png", b"\x89PNG\r"),
    ],
)
def test_plot_draws_the_tree(folder, tmp_path, kind, begin):
    output = tmp_path / f"tree.{kind}"
    run("plot", folder / "plain.json", "-o", output, "--unit", "dollars")
    assert output.read_bytes().startswith(begin)


@pytest.mark.parametrize("kind", ["svg", "html"])
def test_plot_needs_no_matplotlib_for_text(folder, tmp_path, kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    output = tmp_path / f"tree.{kind}"
    run("plot", folder / "plain.json", "-o", output, "--unit", "dollars")
    model = sensortree.load(folder / "plain.json")
    drawn = {"svg": model.to_svg, "html": model.to_html}[kind](unit="dollars")
    assert output.read_text(encoding="utf-8") == drawn


def test_plot_folds_to_as_many_lines_as_asked(folder, tmp_path):
    output = tmp_path / "tree.txt"
    run("plot", folder / "plain.json", "-o", output, "--leaves", 1)
    (line,) = output.read_text(encoding="utf-8").splitlines()
    assert re.search(r"\d leaves, 100.0 % of rows; answers: ", line)


def test_plot_refuses_an_ending_that_is_no_picture(folder, tmp_path):
    result = run("plot", folder / "plain.json", "-o", tmp_path / "tree.doc", code=2)
    assert "use .svg, .html, .txt, .png or .pdf" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", ["model.json", "plain.json"])
def test_verify_agrees_with_a_good_model(folder, model):
    form = document("verify", folder / model)
    assert form["rows_asked"] == 50
    assert form["checked"][-1] == "answers"
    assert "digest right" in run("verify", folder / model).stdout


def test_verify_refuses_a_damaged_model(folder, tmp_path):
    damaged = tmp_path / "model.json"
    text = (folder / "plain.json").read_bytes()
    damaged.write_bytes(text.replace(b'"glucose"', b'"GLUCOSE"', 1))
    result = run("verify", damaged, code=1)
    assert f"{damaged}: the file's digest does not match" in result.stderr


def test_a_model_that_is_no_model_is_refused_by_name(folder):
    result = run("inspect", folder / "data.csv", code=1)
    assert "data.csv: " in result.stderr


# money ------------------------------------------------------------------------------------


def euros(folder: Path, path: Path, *head: str) -> Path:
    """Prices in euros, and what else a sensors file begins with."""
    lines = ["target = 'sick'", "unit = 'EUR'", *head]
    for name, cost in (("age", 2), ("glucose", 20), ("scan", 180)):
        lines += [f"[sensors.{name}]", f"columns = ['{name}']", f"cost = {cost}"]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_check_names_the_sensors_that_can_never_pay(folder, tmp_path):
    sensors = euros(folder, tmp_path / "s.toml")
    arguments = ("check", folder / "data.csv", "--sensors", sensors)
    assert "'scan' can never pay: at cost_weight=0.01" in run(*arguments).stderr
    assert document(*arguments)["never_pay"] == ["scan"]
    sensors = euros(folder, tmp_path / "s.toml", "loss = 500")
    result = run(*arguments)
    assert "never pay" not in result.stderr
    assert "loss: 500 EUR for a wrong answer\ncost_weight 1," in result.stdout
    assert document(*arguments)["never_pay"] == []
    euros(folder, tmp_path / "s.toml", "loss = { 0 = 60, 1 = 500 }")
    said = run(*arguments).stdout
    assert "cost_weight 1," in said
    assert "any other" in said


def test_a_price_in_a_column_pays_if_it_does_for_somebody(folder, tmp_path):
    sensors = tmp_path / "s.toml"
    sensors.write_text(
        "target = 'sick'\ncost_weight = 0.1\n"  # prices are 5, 6 and 7
        "[sensors.scan]\ncolumns = ['scan']\ncost = 'price_scan'\n"
    )
    arguments = ("check", folder / "data.csv", "--sensors", sensors)
    assert document(*arguments)["never_pay"] == ["scan"]
    sensors.write_text(sensors.read_text().replace("0.1", "0.09"))
    assert document(*arguments)["never_pay"] == []


def test_a_mistake_costs_the_same_by_option_as_by_file(folder, tmp_path):
    plain = euros(folder, tmp_path / "plain.toml")
    said = euros(folder, tmp_path / "said.toml", "loss = 500")
    start = ("fit", folder / "data.csv", "--structure", "chain", "--sensors")
    by_file = document(*start, said, "-o", tmp_path / "a.json")
    by_option = document(*start, plain, "--loss", 500, "-o", tmp_path / "b.json")
    assert by_file["digest"] == by_option["digest"]
    assert by_file["cost_weight"] == 1
    assert "a wrong answer costs 500 EUR" in run("inspect", tmp_path / "a.json").stdout


def test_a_loss_by_its_old_name_works_and_the_new_one_is_named(folder, tmp_path):
    plain = euros(folder, tmp_path / "plain.toml")
    old = euros(folder, tmp_path / "old.toml", "mistake_cost = 500")
    start = ("fit", folder / "data.csv", "--structure", "cascade", "--sensors")
    new = run(*start, plain, "--loss", 500, "-o", tmp_path / "a.json", "--json")
    by_file = run(*start, old, "-o", tmp_path / "b.json", "--json")
    option = (plain, "--mistake-cost", 500)
    by_option = run(*start, *option, "-o", tmp_path / "c.json", "--json")
    digests = {json.loads(said.stdout)["digest"] for said in (new, by_file, by_option)}
    assert len(digests) == 1
    assert "old.toml: mistake_cost is now called loss." in by_file.stderr
    assert "--mistake-cost is now called --loss." in by_option.stderr
    both = run(*start, *option, "--loss", 3, "-o", tmp_path / "d.json", code=2)
    assert "leave out --mistake-cost" in " ".join(both.stderr.split())


def test_a_fit_that_buys_nothing_says_so_and_why(folder, tmp_path):
    sensors = euros(folder, tmp_path / "s.toml", "cost_weight = 1")
    result = run(
        *("fit", folder / "data.csv", "--sensors", sensors),
        *("-o", tmp_path / "m.json"),
    )
    assert result.stderr.count("the model buys nothing: ") == 1
    assert "(loss=...)" in result.stderr


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("loss = 0", "loss must be above 0"),
        ("loss = 'much'", "loss must be a finite number"),
        ("mistake_cost = 5\nloss = { 0 = 1, 1 = 1 }", "both say what wrong answers"),
    ],
)
def test_a_loss_that_cannot_be_is_refused(folder, tmp_path, head, message):
    sensors = euros(folder, tmp_path / "s.toml", head)
    result = run("check", folder / "data.csv", "--sensors", sensors, code=1)
    assert message in result.stderr


# asking -----------------------------------------------------------------------------------


def test_a_questionnaire_ends_in_the_answer_of_predict(folder):
    answers = document("predict", folder / "plain.json", folder / "data.csv")["rows"]
    for i in (0, 1, 2, 3):
        line = rows()[i]
        typed = f"{line[3]}\n{line[6]}\n"
        form = document("ask", folder / "plain.json", typed=typed)
        assert form["label"] == answers[i]["answer"]
        assert form["spent"] == answers[i]["cost"]
        assert " ".join(form["acquired"]) == answers[i]["sensors"]


def test_every_question_is_asked_with_a_reason(folder):
    said = run("ask", folder / "plain.json", typed="0.05\n0.1\n").stdout
    assert "glucose costs 2" in said
    assert "everybody is asked this" in said
    assert re.search(r"so far class [01] \(probability \d+ %\); scan changes", said)
    stopped = run("ask", folder / "plain.json", typed="3\n").stdout
    assert re.search(r"why: so far .*; stops here: scan would change the", stopped)


def test_what_cannot_be_is_asked_for_again(folder):
    typed = "fifty\n50\nnowhere\n50\nNorth\n" + "0.1\n" * 5
    strict = ("ask", folder / "model.json", "--strict", "--price", "scan=6")
    result = run(*strict, typed=typed)
    assert "'fifty' is not a number" in result.stderr
    assert "'nowhere' in column 'city' of sensor" in result.stderr
    assert "training had '1', 'north', 'south'" in result.stderr
    assert "history costs 0 dollars" in result.stdout
    assert re.search(r"answer: [01] \(probability", result.stdout)


def test_a_question_mark_says_that_a_sensor_cannot_be_had(folder):
    form = document("ask", folder / "plain.json", typed="?\n?\n")
    assert form["stopped_because"] == "unavailable"
    assert form["acquired"] == []


def test_a_value_that_training_never_missed_is_asked_for_again_if_strict(folder):
    result = run("ask", folder / "plain.json", "--strict", typed="\n3\n3\n")
    assert "no value in column 'glucose' of sensor 'glucose', which" in result.stderr
    assert result.stdout.count("glucose costs 2") == 2


def test_what_training_never_saw_is_one_rule_for_all_commands(folder, tmp_path):
    lines = rows()
    lines[0][3] = "-87000"  # glucose, which everybody buys
    data = write_csv(tmp_path / "data.csv", [HEAD, *lines])
    odd = "-87000 in"
    commands = {
        "predict": ("predict", folder / "plain.json", data),
        "evaluate": ("evaluate", folder / "plain.json", data, "--target", "sick"),
        "explain": ("explain", folder / "plain.json", data, "--line", 2),
    }
    for name, command in commands.items():
        result = run(*command)
        assert result.stderr.count(odd) == 1, name
        assert f"{odd} line 2, column 'glucose'" in result.stderr, name
        code = 1 if name == "explain" else 3  # the other rows are answered
        assert odd in run(*command, "--strict", code=code).stderr, name
    told = json.dumps({"tell": {"glucose": -87000}}) + "\n"
    told += json.dumps({"tell": {"glucose": 0.1, "scan": 0.1}}) + "\n"
    ask = ("ask", folder / "plain.json", "--stdin")
    assert odd in run(*ask, typed=told).stderr
    assert odd in run(*ask, "--strict", typed=told).stdout.splitlines()[1]
    assert document(*commands["evaluate"])["unseen"][0]["n_rows"] == 1
    assert "glucose" in run("inspect", folder / "plain.json").stdout


def test_a_price_that_differs_must_be_given(folder):
    result = run("ask", folder / "model.json", code=2)
    assert "--price scan=..." in " ".join(result.stderr.split())
    result = run("ask", folder / "model.json", "--price", "scan", code=2)
    assert "must be SENSOR=PRICE" in result.stderr


def test_a_questionnaire_that_ends_early_is_an_error(folder):
    result = run("ask", folder / "plain.json", typed="", code=1)
    assert "ended before the decision" in result.stderr


def test_json_lines_carry_a_session(folder):
    typed = [
        '{"tell": {"glucose": {"glucose": 0.05}}}',
        '{"tell": {"xray": [1]}}',
        "glucose?",
        '{"say": 1}',
        '{"unavailable": "scan"}',
    ]
    result = run("ask", folder / "plain.json", "--stdin", typed="\n".join(typed))
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    kinds = [next(iter(line)) for line in lines]
    assert kinds == ["step", "step", "error", "error", "error", "decision"]
    assert lines[0]["step"]["sensor"] == "glucose"
    assert lines[0]["step"]["columns"] == ["glucose"]
    assert lines[0]["step"]["why"] is None
    why = lines[1]["step"]["why"]
    assert "scan changes the answer for" in why["text"]
    assert why["change"]["changed"] <= why["change"]["rows"]
    assert why["influences"][0]["words"] in ("the probability", "glucose = 0.05")
    assert "'xray' is not a sensor" in lines[2]["error"]
    assert lines[-1]["decision"]["stopped_because"] == "unavailable"
    assert lines[-1]["decision"]["spent"] == 2.0


def test_json_lines_that_end_early_are_an_error(folder):
    result = run("ask", folder / "plain.json", "--stdin", typed="", code=1)
    assert "still asks for 'glucose'" in result.stderr


def test_a_program_is_told_what_python_is_told(folder):
    session = sensortree.load(folder / "plain.json").policy_.session()
    lines = []
    while (step := session.ask()) is not None:
        lines.append({"step": step.to_dict()})
        session.tell(step.sensor, [0.5] * len(step.columns))
    lines.append({"decision": session.decision().to_dict()})
    tells = [
        {"tell": {line["step"]["sensor"]: [0.5] * len(line["step"]["columns"])}}
        for line in lines[:-1]
    ]
    typed = "\n".join(map(json.dumps, tells))
    result = run("ask", folder / "plain.json", "--stdin", typed=typed)
    assert list(map(json.loads, result.stdout.splitlines())) == lines


# bad data files ---------------------------------------------------------------------------

GOOD = [["glucose", "scan", "sick"], ["0.1", "0.2", "0"], ["0.3", "0.4", "1"]]


def joined(lines: list[list[str]], delimiter: str = ",") -> bytes:
    return "\n".join(delimiter.join(line) for line in lines).encode()


BAD_TABLES = {
    "empty": (b"", r"bad\.csv is empty"),
    "header only": (joined(GOOD[:1]), r"a header and no rows"),
    "missing column": (
        b"glucose,sick\n1,0\n2,1\n",
        r"bad\.csv has no column 'scan', which \[sensors\.scan\] of .*plain\.toml names",
    ),
    "missing target": (
        b"glucose,scan\n1,0\n2,1\n",
        r"no column 'sick', which the target",
    ),
    "no header": (b"1,2,0\n3,4,1\n", r"line 1: the header holds numbers only"),
    "one class": (joined([*GOOD[:2]]), r"has one class only, 0"),
    "ragged row": (
        joined([*GOOD, ["1", "2"]]),
        r"line 4: there are 2 cells, but the header has 3 columns",
    ),
    "open quote": (
        b'glucose,scan,sick\n1,2,0\n"3,4,1\n5,6,0\n',
        r"line 4: this is no CSV",
    ),
    "long line": (
        b"x" * (2**20 + 1),
        r"line 1: the line is longer than 1,048,576 characters",
    ),
}


@pytest.mark.parametrize(
    ("command", "case"),
    [*(("check", case) for case in BAD_TABLES), ("fit", "missing column")],
)
def test_a_bad_table_is_refused_with_its_place(folder, tmp_path, command, case):
    contents, message = BAD_TABLES[case]
    bad, output = tmp_path / "bad.csv", tmp_path / "m.json"
    bad.write_bytes(contents)
    arguments = (bad, "--sensors", folder / "plain.toml", "--target", "sick")
    more = ("-o", output) if command == "fit" else ()
    result = run(command, *arguments, *more, code=1)
    assert re.search(message, result.stderr), result.stderr
    assert result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


def test_a_line_without_end_is_not_read_to_its_end(folder, tmp_path):
    bad = tmp_path / "bad.csv"
    with open(bad, "wb") as file:
        file.truncate(2**30)  # a hole of a gigabyte
    result = run("init", bad, "--target", "sick", "-o", tmp_path / "s.toml", code=1)
    assert "longer than 1,048,576 characters" in result.stderr


def test_the_delimiter_can_be_said(tmp_path):
    for delimiter, said in ((";", ";"), ("\t", "tab")):
        data = write_csv(tmp_path / "data.csv", GOOD, delimiter)
        form = document(
            *("init", data, "--target", "sick", "--delimiter", said),
            *("-o", tmp_path / "s.toml", "--force"),
        )
        assert list(form["sensors"]) == ["glucose", "scan"]


def test_a_bom_and_blank_lines_are_no_cells(tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes(b"\xef\xbb\xbf" + joined(GOOD).replace(b"\n", b"\r\n\r\n"))
    (tmp_path / "s.toml").write_text(PLAIN)
    arguments = ("--sensors", tmp_path / "s.toml", "--target", "sick")
    assert document("check", data, *arguments)["rows"] == 2


def test_one_bad_row_does_not_fail_the_others(folder, tmp_path):
    lines = [list(map(str, line)) for line in rows(8)]
    lines[2][3] = "high"  # glucose, which everybody buys
    lines[4] = lines[4][:3]
    lines[5][3] = ""
    data = write_csv(tmp_path / "data.csv", [HEAD, *lines])
    good = write_csv(tmp_path / "good.csv", [HEAD, *rows(8)])
    result = run("predict", folder / "plain.json", data, "--strict", "--json", code=3)
    found = json.loads(result.stdout)["rows"]
    expected = document("predict", folder / "plain.json", good)["rows"]
    problems = {row["line"]: row["problem"] for row in found if row["problem"]}
    assert problems.keys() == {4, 6, 7}
    assert problems[4] == "column 'glucose': 'high' is not a number"
    assert problems[6].startswith("there are 3 cells, but the header has 8 columns")
    assert "no value in column 'glucose' of sensor 'glucose'" in problems[7]
    assert all(row["answer"] is None for row in found if row["problem"])
    assert [row for row in found if not row["problem"]] == [
        row for row in expected if row["line"] not in problems
    ]
    assert "3 of 8 rows cannot be used" in result.stderr
    result = run("predict", folder / "plain.json", data, "--json", code=3)
    filled = json.loads(result.stdout)["rows"][5]
    assert filled["answer"] is not None
    assert "no value in line 7, column 'glucose'" in result.stderr
    said = run("explain", folder / "plain.json", data, "--line", 4, code=1).stderr
    assert "data.csv, line 4: column 'glucose': 'high' is not a number" in said


def test_a_bad_cell_that_a_row_does_not_buy_is_no_problem(folder, tmp_path):
    found = document("predict", folder / "plain.json", folder / "data.csv")["rows"]
    cheap = next(i for i, row in enumerate(found) if row["sensors"] == "glucose")
    lines = rows()
    lines[cheap][6] = "smudged"
    data = write_csv(tmp_path / "data.csv", [HEAD, *lines])
    assert document("predict", folder / "plain.json", data)["rows"] == found


def test_columns_that_the_tree_never_buys_may_be_absent(folder, tmp_path):
    sensors = tmp_path / "s.toml"
    sensors.write_text(PLAIN + '[sensors.dear]\ncolumns = ["age"]\ncost = 1000\n')
    model = tmp_path / "m.json"
    run(
        *("fit", folder / "data.csv", "--sensors", sensors, "--target", "sick"),
        *("-o", model),
    )
    whole = document("predict", model, folder / "data.csv")["rows"]
    kept = [HEAD.index(name) for name in ("glucose", "scan", "sick")]
    table = [[line[i] for i in kept] for line in [HEAD, *rows()]]
    data = write_csv(tmp_path / "data.csv", table)
    assert document("predict", model, data)["rows"] == whole
    data = write_csv(tmp_path / "data.csv", [line[:1] for line in table])
    result = run("predict", model, data, code=1)
    assert "no column 'scan', which the model names" in result.stderr


def test_rows_without_a_known_class_are_not_evaluated(folder, tmp_path):
    lines = [list(map(str, line)) for line in rows(20)]
    lines[3][7] = ""
    data = write_csv(tmp_path / "data.csv", [HEAD, *lines])
    arguments = ("evaluate", folder / "plain.json", data, "--target", "sick")
    form = document(*arguments)
    assert (form["n_rows"], form["rows_left_out"]) == (19, 1)
    lines[3][3] = "high"  # of a row that is not asked about
    write_csv(tmp_path / "data.csv", [HEAD, *lines])
    assert document(*arguments) == form
    lines[7][7] = "maybe"
    write_csv(tmp_path / "data.csv", [HEAD, *lines])
    result = run(*arguments, code=3)
    assert "line 9: 'maybe' is not a class of the model" in result.stderr
    for line in lines:
        line[7] = "maybe"
    write_csv(tmp_path / "data.csv", [HEAD, *lines])
    assert "nor is that of any other row" in run(*arguments, code=1).stderr


def test_parquet_is_read_like_csv(folder, tmp_path):
    polars = pytest.importorskip("polars", reason="no Parquet engine")
    table = polars.read_csv(folder / "data.csv")
    table.write_parquet(tmp_path / "data.parquet")
    for command, more in (("predict", ()), ("evaluate", ("--target", "sick"))):
        by_csv = document(command, folder / "model.json", folder / "data.csv", *more)
        by_parquet = document(
            command, folder / "model.json", tmp_path / "data.parquet", *more
        )
        lines = [row.pop("line") for row in by_csv.get("rows", [])]
        rows = [row.pop("row") for row in by_parquet.get("rows", [])]
        assert [line - 1 for line in lines] == rows  # which have no header above them
        assert by_parquet == by_csv


def test_a_parquet_file_that_is_none_is_refused(tmp_path):
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"glucose,sick\n1,0\n")
    result = run("init", bad, "--target", "sick", "-o", tmp_path / "s.toml", code=1)
    assert "is no Parquet file" in result.stderr


def test_parquet_without_a_library_names_one(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1")
    result = run("init", bad, "--target", "sick", "-o", tmp_path / "s.toml", code=1)
    assert "pip install polars" in result.stderr


# bad sensors files ------------------------------------------------------------------------

BAD_SENSORS = {
    "no toml": ("target = \n", r"s\.toml is not TOML: .*line 1"),
    "no sensors": ('target = "sick"\n', r"s\.toml: sensors is missing"),
    "unknown key at the top": (
        "targets = 1\n" + PLAIN,
        r"targets is not a key .*target\?",
    ),
    "unknown key": (
        PLAIN + "prize = 3\n",
        r"s\.toml, \[sensors\.scan\]: prize is not a key .*the keys are columns, cost",
    ),
    "no columns": ("[sensors.a]\ncost = 1\n", r"\[sensors\.a\]: columns are missing"),
    "no cost": (
        '[sensors.a]\ncolumns = ["scan"]\n',
        r"\[sensors\.a\]: cost is missing",
    ),
    "negative cost": (
        PLAIN.replace("5.0", "-5"),
        r"\[sensors\.scan\]: cost must be a finite number of at least 0, got -5",
    ),
    "columns that are no names": (
        PLAIN.replace('["scan"]', "[3]"),
        r"\[sensors\.scan\]: columns must list names, got \[3\]",
    ),
    "column of two sensors": (
        PLAIN.replace('["scan"]', '["scan", "glucose"]'),
        r"\[sensors\.scan\]: columns has 'glucose', which belongs to \[sensors\.glucose\]",
    ),
    "unknown sensor": (
        PLAIN + 'after = ["xray"]\n',
        r"\[sensors\.scan\]: after names 'xray', which is not a sensor",
    ),
    "fee without group": (
        PLAIN + "fee = 1\n",
        r"\[sensors\.scan\]: .*fee but no group",
    ),
    "unknown transformer": (
        PLAIN + 'transformer = "pca"\n',
        r"\[sensors\.scan\]: transformer must be one of 'one-hot'.*got 'pca'",
    ),
    "one-hot second": (
        PLAIN + 'transformer = ["impute", "one-hot"]\n',
        r"\[sensors\.scan\]: transformer has 'one-hot' after another",
    ),
    "transformer of another's column": (
        PLAIN + 'transformer = { age = "scale" }\n',
        r"\[sensors\.scan\]: transformer names column 'age'",
    ),
    "price column that a sensor reads": (
        PLAIN.replace("5.0", '"glucose"'),
        r"\[sensors\.scan\]: cost is column 'glucose', which \[sensors\.glucose\] reads",
    ),
    "price column that is not there": (
        PLAIN.replace("5.0", '"price"'),
        r"no column 'price', which the cost of \[sensors\.scan\]",
    ),
    "target in a sensor": (
        PLAIN.replace('["scan"]', '["scan", "sick"]'),
        r"column 'sick' is the target and belongs to a sensor",
    ),
    "loss of an unknown class": (
        PLAIN + "[loss]\n0 = 1\n2 = 1\n",
        r"\[loss\]: '2' is not a class of the target 'sick'",
    ),
    "loss without a class": (
        PLAIN + "[loss]\n0 = 1\n",
        r"\[loss\]: class '1' is missing",
    ),
    "mixed loss": (
        PLAIN + "[loss]\n0 = 1\n1 = { 0 = 3 }\n",
        r"\[loss\]: it mixes numbers and tables",
    ),
    "circle": (
        PLAIN.replace("2.0", '2.0\nafter = ["scan"]') + 'after = ["glucose"]\n',
        r"s\.toml: .*after",
    ),
}


@pytest.mark.parametrize("case", BAD_SENSORS)
def test_a_bad_sensors_file_is_refused_with_section_and_key(tmp_path, case):
    contents, message = BAD_SENSORS[case]
    data = write_csv(tmp_path / "data.csv", GOOD)
    (tmp_path / "s.toml").write_text(contents)
    result = run(
        *("fit", data, "--sensors", tmp_path / "s.toml", "--target", "sick"),
        *("-o", tmp_path / "m.json"),
        code=1,
    )
    assert re.search(message, result.stderr), result.stderr
    assert not (tmp_path / "m.json").exists()


def test_without_any_target_the_message_says_where_to_name_it(tmp_path):
    data = write_csv(tmp_path / "data.csv", GOOD)
    (tmp_path / "s.toml").write_text(PLAIN)
    result = run("check", data, "--sensors", tmp_path / "s.toml", code=1)
    assert 'add target = "..." or pass --target' in result.stderr


# what is written --------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["init", "fit", "predict", "plot"])
def test_nothing_is_replaced_without_force(folder, tmp_path, command):
    output = tmp_path / ("out.svg" if command == "plot" else "out")
    output.write_text("mine")
    data = folder / "data.csv"
    arguments = {
        "init": (data, "--target", "sick"),
        "fit": (
            *(data, "--sensors", folder / "plain.toml", "--target", "sick"),
            *("--structure", "cascade"),
        ),
        "predict": (folder / "plain.json", data),
        "plot": (folder / "plain.json",),
    }[command]
    result = run(command, *arguments, "-o", output, code=2)
    assert "pass --force" in result.stderr
    assert output.read_text() == "mine"
    run(command, *arguments, "-o", output, "--force")
    assert output.read_text() != "mine"
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


def test_a_folder_that_is_not_there_is_said_before_the_work(folder, tmp_path):
    output = tmp_path / "nowhere" / "m.json"
    arguments = ("fit", folder / "data.csv", "--sensors", folder / "plain.toml")
    result = run(*arguments, "--target", "sick", "-o", output, code=2)
    assert "there is no folder" in result.stderr


def test_a_file_that_is_not_there_is_wrong_usage(tmp_path):
    run("inspect", tmp_path / "model.json", code=2)
    run("fit", code=2)
    run("sing", code=2)


# the program ------------------------------------------------------------------------------


def program(*arguments: str, **more):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, "-m", "sensortree", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        **more,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    code = f"""
import sys
from sensortree.cli import main
sys.argv = ['sensortree', *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code
heavy = {{'numpy', 'sklearn', 'scipy', 'pandas', 'polars', 'matplotlib', 'narwhals'}}
print('heavy:', sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_the_help_of_each_command_fits_a_screen():
    commands = [command.callback.__name__ for command in app.registered_commands]
    for command in ("", *commands, "ledger", "ledger verify", "ledger prune"):
        arguments = [*command.split(), "--help"]
        result = CliRunner().invoke(app, arguments, terminal_width=80)
        assert len(result.stdout.splitlines()) <= 50, command


@pytest.mark.parametrize(
    "command", ["init", "check", "fit", "curve", "compare", "evaluate", "report"]
)
def test_how_files_are_written_is_one_panel_of_the_help(command):
    text = CliRunner().invoke(app, [command, "--help"], terminal_width=80).stdout
    panel = text.partition("How files are written (found out, unless you say it):")[2]
    names = re.findall(r"^  (--[a-z]+) ", panel, re.M)
    assert names == ["--delimiter", "--encoding", "--decimal", "--thousands"]


def test_without_the_extra_the_program_names_it():
    code = """
import sys
sys.modules['typer'] = None
from sensortree.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'sensortree[cli]'" in done.stderr


def test_the_program_runs_and_keeps_results_apart_from_messages(folder):
    done = program("inspect", str(folder / "plain.json"), "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["classes"] == [0, 1]
    done = program("inspect", str(folder / "data.csv"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")


def test_an_interrupted_program_says_so(folder):
    asked = subprocess.Popen(
        [sys.executable, "-m", "sensortree", "ask", str(folder / "plain.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"},
    )
    assert asked.stdout is not None
    asked.stdout.read(10)  # it asks
    asked.send_signal(signal.SIGINT)
    _, said = asked.communicate(timeout=60)
    assert asked.returncode == 130
    assert b"interrupted" in said


def test_progress_goes_to_stderr_with_the_time_that_is_left(folder, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    result = run(
        *("compare", folder / "data.csv", "--sensors", folder / "plain.toml"),
        *("--target", "sick", "--structure", "cascade", "--cv", 2, "--json"),
    )
    assert "left" in result.stderr
    assert json.loads(result.stdout)["cv"] == 2


def test_warnings_are_sentences_on_stderr(folder, tmp_path):
    lines = [*rows(40), [40, 50, "north", 0.1, 0.1, 5, 0.1, 2]]
    data = write_csv(tmp_path / "data.csv", [HEAD, *lines])
    result = run(
        *("fit", data, "--sensors", folder / "plain.toml", "--target", "sick"),
        *("--structure", "cascade", "-o", tmp_path / "m.json"),
    )
    assert "warning: class 2 has a single row" in result.stderr


def test_demo_runs(tmp_path):
    pytest.importorskip("sklego", reason="the extra 'demo' is absent")
    form = document("demo", "--quick", "-o", tmp_path / "demo")
    assert "sensor tree" in form["report"]
    written = sorted(p.suffix for p in (tmp_path / "demo").iterdir())
    assert written == [".png", ".png", ".svg"]


def test_reproduce_lists_the_experiments_of_a_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert {"ablation", "paper"} <= set(document("reproduce")["experiments"])
    assert "is not one of" in run("reproduce", "everything", code=2).stderr


def test_reproduce_runs_an_experiment(tmp_path, monkeypatch):
    experiments = tmp_path / "experiments"
    (experiments / "studies").mkdir(parents=True)
    (experiments / "run.py").write_text("import sys\nsys.exit(len(sys.argv[1:]))\n")
    (experiments / "studies" / "small.py").write_text('"""Small."""\n')
    monkeypatch.chdir(tmp_path)
    run("reproduce", "small", "pima", "heart", code=3)


def test_reproduce_without_a_checkout_says_where_experiments_are(tmp_path, monkeypatch):
    from sensortree.cli import app as program

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program, "__file__", str(tmp_path / "a" / "b" / "c" / "d.py"))
    assert "in a checkout" in run("reproduce", code=1).stderr


def test_completion_is_offered(monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    result = run("--show-completion", "bash")
    assert "complete" in result.stdout
