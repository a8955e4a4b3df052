"""The command line where the target is a number."""

import json
import re

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


def test_what_init_proposes_for_a_number_is_what_fit_takes(folder):
    """Every line that is marked as a comment, with its marks removed, alone."""
    run("init", "rows.csv", "--target", "target")
    path = folder / "sensors.toml"
    text = path.read_text()
    assert "loss" not in text
    assert "mistake" not in text
    proposed = re.findall(r"^# ((?:\w+) = .*)$", text, flags=re.M)
    assert [line.split(" = ")[0] for line in proposed] == [
        "unit",
        "risk",
        "cost_weight",
        "max_cost",
    ]
    for line in proposed:
        path.write_text(text.replace(f"# {line}", line))
        run("check", "rows.csv", *SENSORS)
    path.write_text(re.sub(r"^# (risk|cost_weight) =", r"\1 =", text, flags=re.M))
    run("fit", "rows.csv", *SENSORS, "--classifier", "linear")
    assert sensortree.load(folder / "model.json").policy_.loss.name == "absolute"


@pytest.mark.parametrize("risk", ["squared", "absolute"])
def test_methods_are_compared_for_a_number_or_refused_by_name(folder, risk):
    run("init", "rows.csv", "--target", "target")
    leaf = "--classifier", "linear", "--risk", risk
    said = json.loads(run("compare", "rows.csv", *SENSORS, *leaf, "--cv", 3, "--json"))
    assert said["cost_weight"] > 0
    lines = {line["method"]: line for line in said["methods"]}
    for name in ("sensor tree", "one subset for all", "everything", "nothing"):
        line = lines[name]
        assert line["error"] > 0
        paid = said["cost_weight"] * line["mean_cost"]
        assert line["total"] == pytest.approx(line["loss"] + paid)
    assert lines["sensor tree"]["error"] < lines["nothing"]["error"]
    for name in ("alternating tree", "cascade", "CSTC"):
        assert (
            lines[name]["refused"] == "it learns classes, and the target is a number."
        )
    text = run("compare", "rows.csv", *SENSORS, *leaf, "--cv", 3)
    assert "mean distance" in text.splitlines()[0]


def test_classes_that_are_numbers_are_compared_as_the_task_says(folder):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    lines = [f"{a:.3f},{int(a > 0)}" for a in x]
    (folder / "two.csv").write_text("a,n\n" + "\n".join(lines) + "\n")
    run("init", "two.csv", "--target", "n", "-o", "t.toml")
    given = "two.csv", "--sensors", "t.toml", "--classifier", "linear", "--cv", 3
    assert "CSTC" in run("compare", *given)
    assert "mean distance" in run("compare", *given, "--task", "regression")


def test_large_numbers_are_written_without_exponents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = 1e9 * (X.sum(axis=1) + 0.1 * rng.normal(size=200)) + 3e9
    lines = [f"{a:.3f},{b:.3f},{t:.1f}" for (a, b), t in zip(X, y, strict=True)]
    (tmp_path / "big.csv").write_text("a,b,sales\n" + "\n".join(lines) + "\n")
    run("init", "big.csv", "--target", "sales")
    leaf = "--classifier", "linear", "--risk", "absolute"
    texts = [run("fit", "big.csv", *SENSORS, *leaf).partition("linear program")[0]]
    texts += [run("evaluate", "model.json", "big.csv")]
    texts += [run("compare", "big.csv", *SENSORS, *leaf, "--cv", 3)]
    texts += [run("curve", "big.csv", *SENSORS, *leaf, "--cv", 3).split("\n", 1)[1]]
    texts += [run("explain", "model.json", "big.csv", "--line", 2)]
    for text in texts[:3] + texts[4:]:
        assert not re.search(r"\de\+\d", text), text


def test_a_report_of_numbers_is_refused_with_the_command_that_gives_it(folder):
    run("init", "rows.csv", "--target", "target")
    run("fit", "rows.csv", *SENSORS, "--classifier", "linear")
    said = " ".join(run("report", "model.json", "rows.csv", code=1).split())
    assert "as `sensortree evaluate` does" in said
