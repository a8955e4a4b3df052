"""The command line where the target is a number."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from typer.testing import CliRunner

import sensortree
from sensortree.cli.app import app

RUNNER = CliRunner()
SENSORS = "--sensors", "sensors.toml"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The diabetes data as a table, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    frame = load_diabetes(as_frame=True, scaled=False).frame[::2]
    frame = frame[["bmi", "bp", "s5", "sex", "target"]]
    frame.to_csv("rows.csv", index=False)
    return tmp_path


def run(*arguments, code=0):
    result = RUNNER.invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.output


def test_a_target_of_many_numbers_is_learned_as_a_number(folder):
    run("init", "rows.csv", "--target", "target")
    text = (folder / "sensors.toml").read_text()
    assert 'target = "target"\ntask = "regression"' in text
    assert "target: 1" in run("check", "rows.csv", "--sensors", "sensors.toml")
    fitted = json.loads(
        run("fit", "rows.csv", *SENSORS, "--classifier", "linear", "--json")
    )
    assert fitted["certificate"]["gap"] <= 1e-6
    model = sensortree.load(folder / "model.json")
    assert model.policy_.loss.name == "squared"
    said = run("predict", "model.json", "rows.csv")
    assert "spread" in said.splitlines()[0]
    report = json.loads(run("evaluate", "model.json", "rows.csv", "--json"))
    assert report["fit"]["r2"] > 0.3
    assert "answers: numbers" in run("inspect", "model.json")


def test_where_it_is_not_clear_the_task_is_asked_for(folder):
    rng = np.random.default_rng(0)
    pairs = zip(rng.normal(size=400), rng.integers(0, 15, 400), strict=True)
    lines = [f"{x:.3f},{n}" for x, n in pairs]
    (folder / "few.csv").write_text("a,n\n" + "\n".join(lines) + "\n")
    run("init", "few.csv", "--target", "n", "--task", "regression", "-o", "s.toml")
    said = run("init", "few.csv", "--target", "n", "-o", "t.toml", code=1)
    assert "--task" in said
    assert "15 different numbers" in " ".join(said.split())


def test_losses_of_classes_are_refused_for_a_number(folder):
    run("init", "rows.csv", "--target", "target")
    said = run("fit", "rows.csv", *SENSORS, "--loss", "5", code=1)
    assert "no number is simply wrong" in " ".join(said.split())
