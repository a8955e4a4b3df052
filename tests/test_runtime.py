"""Claims about asking where nothing is learned: NumPy and narwhals are enough."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from models import fitted

from benchmarks.runtime import ALONE, BLOCK, BLOCKED, core, megabytes, own_megabytes
from sensortree import save

ROOT = Path(__file__).parents[1]
KINDS = (
    "quadratic logistic",
    "boosted, NaN",
    "calibrated, isotonic",
    "calibrated, ensemble",
    "prices beside",
)


def alone(code: str, *arguments: object, typed: str = "") -> str:
    """What code prints that can import nothing but NumPy, narwhals and the commands."""
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            BLOCK.format(blocked=BLOCKED) + code,
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        input=typed,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.json"


PREDICT = """
import json, numpy as np, sensortree
model, (X, prices) = sensortree.load(sys.argv[1]), json.loads(sys.argv[2])
X = np.array(X, dtype=float)
prices = None if prices is None else np.array(prices)
row, own = X[0], None if prices is None else prices[0]
names = model.sensors_.names
print(json.dumps({
    "proba": model.predict_proba(X, prices).tolist(),
    "explained": model.explain(row, own).to_dict(),
    "asked": model.policy_.acquire(
        lambda sensor, columns: row[list(model.sensors_.columns[names.index(sensor)])],
        prices=None if own is None else dict(zip(names, own.tolist())),
    ).to_dict(),
    "drawn": len(model.to_svg()),
}))
sensortree.save(model, sys.argv[1] + ".again")
assert not set(sys.modules) & {"sklearn", "scipy", "joblib", "threadpoolctl"}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_asked_alone_as_it_is_asked_in_company(kind, path):
    model, X, prices = fitted(kind)
    save(model, path)
    X, prices = X[:20], None if prices is None else prices[:20]
    given = [None if v is None else v.tolist() for v in (X, prices)]
    told = json.loads(alone(PREDICT, path, json.dumps(given)))
    np.testing.assert_array_equal(told["proba"], model.predict_proba(X, prices))
    own = None if prices is None else prices[0]
    assert told["explained"] == model.explain(X[0], own).to_dict()
    assert told["asked"]["label"] == model.predict(X, prices)[0]
    assert told["drawn"] > 100
    assert path.with_name("model.json.again").read_bytes() == path.read_bytes()


def test_the_command_line_asks_alone(path):
    model, X, _ = fitted("quadratic logistic")
    save(model, path)
    typed = "".join(
        json.dumps({"tell": {name: X[0, columns].tolist()}}) + "\n"
        for name, columns in {"a": [0, 1], "b": [2, 3]}.items()
    )
    code = "from sensortree.cli import main; main()"
    last = alone(code, "ask", path, "--stdin", typed=typed).splitlines()[-1]
    assert json.loads(last)["decision"]["label"] == model.predict(X[:1])[0]


def test_who_wants_to_learn_is_told_what_is_missing():
    said = alone(
        """
import sensortree
try:
    sensortree.SensorTreeClassifier
except ImportError as error:
    print(type(error).__name__, error)
"""
    )
    assert said.startswith("MissingDependencyError SensorTreeClassifier needs sklearn")
    assert "pip install sensortree" in said


def test_the_page_tells_the_size_of_what_is_installed():
    page = (ROOT / "docs" / "saving.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (alone|fitted) \| (\d+) \|", page, re.M)
    measured = {"alone": ALONE, "fitted": core()}
    for way, shown in lines:
        size = own_megabytes() + megabytes(measured[way])
        assert size == pytest.approx(
            float(shown), rel=0.25
        )  # other versions, platforms
    assert len(lines) == 2
