"""Claims about strangers' tables: every command ends in a result, nothing edited."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from benchmarks.ugly import TABLES, commands, typed_answers, write_tables
from sensortree.cli.app import app

# Rows that cannot be used are said by the exit code: one dose is in another unit.
INCOMPLETE = {("limits and units", c) for c in ("evaluate", "predict", "report")}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("ugly"))


@pytest.mark.parametrize("name", TABLES)
def test_every_command_goes_through_an_ugly_table_unedited(paths, name):
    path, table = paths[name], TABLES[name]
    found = {}
    for command, arguments in commands(path, table.target).items():
        typed = ""
        if command == "ask":
            typed = typed_answers(path.with_suffix(".json"), path)
        result = CliRunner().invoke(app, [*arguments, "--json"], input=typed)
        code = 3 if (name, command) in INCOMPLETE else 0
        assert result.exit_code == code, (command, result.output, result.exception)
        found[command] = json.loads(result.stdout)
        if command == "init":
            said = result.stderr
    assert sorted(found["init"]["left_out"]) == sorted(table.left_out)
    for sentence in table.said:
        assert sentence in said
    doubts = found["check"]["doubts"]
    assert [line.split("'")[1] for line in doubts] == list(table.doubted)
    # It learned something: fewer errors than the most frequent answer makes.
    counts = found["check"]["classes"].values()
    assert found["evaluate"]["error"] < 0.8 * (1 - max(counts) / sum(counts))
    # One row is answered alike by three commands.
    first = found["predict"]["rows"][0]
    assert found["ask"]["label"] == found["explain"]["answer"] == first["answer"]
    assert found["ask"]["spent"] == first["cost"]
    assert found["explain"]["line"] == first["line"] == 2


def test_what_init_says_of_a_column_is_written_as_it_would_be_used(tmp_path):
    from typer.testing import CliRunner

    from sensortree.cli.app import app

    lines = [f"0{1 + i % 9}.05.2024,{i % 7},{i % 2}" for i in range(60)]
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["seen,age,ill", *lines]) + "\n", encoding="utf-8")
    sensors = tmp_path / "sensors.toml"
    told = ["init", str(data), "--target", "ill", "--output", str(sensors)]
    assert CliRunner().invoke(app, told).exit_code == 0
    lines = sensors.read_text("utf-8").splitlines()
    (said,) = [line for line in lines if line.startswith("# seen holds dates")]
    assert 'transformer = "date"' in said


def test_codes_with_zeros_in_front_are_doubted_and_stay(tmp_path):
    from typer.testing import CliRunner

    from sensortree.cli.app import app

    codes = ["01067", "10115", "80331"]
    lines = [f"{codes[i % 3]},{i % 7},{i % 2}" for i in range(60)]
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["zip,age,ill", *lines]) + "\n", encoding="utf-8")
    sensors = tmp_path / "sensors.toml"
    told = ["init", str(data), "--target", "ill", "--output", str(sensors)]
    result = CliRunner().invoke(app, told)
    assert "'zip' is written as codes are ('01067')" in result.stderr
    assert 'transformer = "one-hot"' in result.stderr
    assert "\n[sensors.zip]\n" in sensors.read_text("utf-8")
    assert "'age'" not in result.stderr
