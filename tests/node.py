"""The JavaScript runtime under Node, and Python's answers to the same."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sensortree.exceptions import SensorTreeError
from sensortree.page.build import without_comments
from sensortree.persistence.files import render
from sensortree.persistence.model import write_model
from sensortree.policy.policy import Policy
from sensortree.tree.paths import path_bill

RUNTIME = files("sensortree.page").joinpath("runtime.js")
SCRIPT = Path(__file__).with_name("runtime.mjs")
NODE = shutil.which("node")

needs_node = pytest.mark.skipif(
    NODE is None, reason="no Node: `node` is not installed; `make browser` installs it"
)


def run_job(policy: Policy, folder: Path, **job: Any) -> dict[str, Any]:
    """What the runtime says to a job, in one process of Node."""
    model = json.loads(render(write_model(policy, None)))
    path = folder / "job.json"
    path.write_text(
        json.dumps({"model": model, "fingerprint": policy.digest, **job}),
        encoding="utf-8",
    )
    runtime = folder / "runtime.js"  # as it stands in a page
    runtime.write_text(without_comments(RUNTIME.read_text(encoding="utf-8")))
    done = subprocess.run(
        [str(NODE), str(SCRIPT), str(runtime), str(path)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def told_rows(model: Any, X: Any, prices: Any) -> list[dict[str, Any]]:
    """Rows as sessions are told them: values of all columns, and prices by sensor."""
    policy = model.policy_
    columns = [np.asarray(X)[:, i] for i in range(X.shape[1])]
    if not isinstance(X, np.ndarray):
        columns = [np.asarray(X[name]) for name in X.columns]
    sensors, rows = policy.sensors, []
    for row in range(len(X)):
        values = [_plain(column[row]) for column in columns]
        told: dict[str, float | None] = {}
        for sensor, name in enumerate(sensors.names):
            at = sensors.terms[sensor].price_column
            if at is not None:
                told[name] = values[at]
            elif prices is not None:
                told[name] = _plain(prices[row, sensor])
        rows.append({"values": values, "prices": told})
    return rows


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if value is None or value != value else value


def python_rows(model: Any, X: Any, prices: Any) -> list[dict[str, Any]]:
    """Python's answers to all rows at once, in the form of the runtime."""
    policy = model.policy_
    places = model.apply(X, prices).tolist()
    proba, cost = model.predict_proba(X, prices), model.acquisition_cost(X, prices)
    labels = model.predict(X, prices).tolist()
    referred = model.referred(X, prices).tolist()
    return [
        {
            "label": labels[row],
            "referred": referred[row],
            "place": place,
            "spent": float(cost[row]),
            "proba": proba[row].tolist(),
            "route": _route(model, X, prices, row, place),
            "acquired": list(path_bill(policy.places[place].path, policy.sensors)),
        }
        for row, place in enumerate(places)
    ]


def _route(model: Any, X: Any, prices: Any, row: int, place: int) -> list[list[Any]]:
    """Nodes that a row passed, each with whether its score was above 0.

    Without a cap they are those above the leaf; with one, a row may be sent elsewhere.
    """
    if model.policy_.max_cost is None:
        signs = model.policy_.tree.path_signs[place]
        return [
            [node, bool(signs[node] > 0)] for node in np.flatnonzero(signs).tolist()
        ]
    one = X[row : row + 1]
    told = model.explain(one, None if prices is None else prices[row : row + 1])
    return [[passage.node, passage.taken == "positive"] for passage in told.nodes]


def follow(policy: Policy, script: dict[str, Any]) -> Any:
    """What Python's session says to a script, in the form of the runtime."""
    try:
        session = policy.session(**script["given"])
    except SensorTreeError:
        return None
    steps: list[Any] = []

    def say() -> None:
        step = session.step
        said = step._asdict()
        said["why"] = None if step.why is None else step.why
        said["decision"] = session.decision() if session.ask() is None else None
        steps.append(said)

    say()
    for kind, *told in script["events"]:
        try:
            getattr(session, kind)(*told)
        except SensorTreeError:
            steps.append(None)
        else:
            say()
    return {"steps": steps, "state": session.to_dict()}
