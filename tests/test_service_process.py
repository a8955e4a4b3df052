"""Claims about the service as a process: killed, ended, and asked what nobody would ask."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="the service needs the extra serve")

from toys import toy_policy

from benchmarks.service import ask, connect, free_port, start
from sensortree import save
from sensortree.service import database, ledger

CLIENTS = 8


@pytest.fixture
def folder(tmp_path):
    save(toy_policy(), tmp_path / "model.json")
    return tmp_path


def faults(folder):
    connection = database.open_to_read(folder / "sessions.sqlite3")
    try:
        return ledger.verify(connection).faults
    finally:
        connection.close()


class Teller(threading.Thread):
    """Begins sessions and tells values until the service is gone; notes what it was told.

    `acknowledged` has what each session was acknowledged to know, `pending` the request
    whose answer never came.
    """

    def __init__(self, port, seed):
        super().__init__()
        self.port, self.rng = port, np.random.default_rng(seed)
        self.acknowledged, self.pending, self.tells = {}, None, 0

    def run(self):
        connection = connect(self.port)
        try:
            while True:
                session = self.post(connection, "/v1/sessions", {"model": "toy"})
                self.acknowledged[session["id"]] = session
                for sensor in ("a", "b"):
                    values = [round(float(self.rng.normal()), 6)]
                    body = {"sensor": sensor, "values": values}
                    path = f"/v1/sessions/{session['id']}/tell"
                    self.acknowledged[session["id"]] = self.post(connection, path, body)
                    self.tells += 1
        except (OSError, http.client.HTTPException):
            connection.close()

    def post(self, connection, path, body):
        key = f"k{self.rng.integers(2**60)}"
        self.pending = path, body, key
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        said = response.read()
        assert response.status in (200, 201), said
        self.pending = None
        return json.loads(said)


def load(port, round):
    tellers = [Teller(port, 100 * round + n) for n in range(CLIENTS)]
    for teller in tellers:
        teller.start()
    return tellers


def check_nothing_is_lost(port, tellers):
    """Check that all that was acknowledged is there, and that all goes on."""
    with closing(connect(port)) as connection:
        _check(connection, tellers)


def _check(connection, tellers):
    for teller in tellers:
        unsure = teller.pending
        for id, known in teller.acknowledged.items():
            found = ask(connection, "GET", f"/v1/sessions/{id}")
            if unsure is None or id not in unsure[0]:
                assert found == known
            for sensor, values in known["told"].items():
                assert found["told"][sensor] == values
        if unsure is not None:  # who never heard an answer asks again
            path, body, key = unsure
            headers = {"Content-Type": "application/json", "Idempotency-Key": key}
            answers = []
            for _ in range(2):
                connection.request("POST", path, json.dumps(body), headers)
                response = connection.getresponse()
                answers.append((response.status, json.loads(response.read())))
            assert answers[0] == answers[1]
            assert answers[0][0] in (200, 201)
            before = teller.acknowledged.get(answers[0][1]["id"], {"revision": 0})
            assert answers[0][1]["revision"] == before["revision"] + 1


@pytest.mark.slow
def test_killed_ten_times_under_load_it_loses_nothing_acknowledged(folder):
    told, port = 0, free_port()
    for round in range(10):
        process = start(folder, port)
        tellers = load(port, round)
        time.sleep(0.5 + 0.1 * round)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
        for teller in tellers:
            teller.join(30)
        assert sum(teller.tells for teller in tellers) > 20
        told += sum(teller.tells for teller in tellers)
        assert faults(folder) == ()
        process = start(folder, port)
        check_nothing_is_lost(port, tellers)
        process.terminate()
        assert process.wait(30) == -signal.SIGTERM
    assert faults(folder) == ()
    sys.stderr.write(f"{told} acknowledged tells, none lost\n")


def test_told_to_end_it_answers_what_has_come_and_keeps_it(folder):
    port = free_port()
    process = start(folder, port)
    tellers = load(port, 0)
    time.sleep(0.7)
    process.terminate()
    assert process.wait(30) == -signal.SIGTERM
    for teller in tellers:
        teller.join(30)
    assert sum(teller.tells for teller in tellers) > 0
    assert not (folder / "sessions.sqlite3-wal").exists()
    assert faults(folder) == ()
    process = start(folder, port)
    check_nothing_is_lost(port, tellers)
    process.terminate()
    process.wait(30)


@pytest.mark.slow
def test_on_a_disk_that_fills_up_nothing_acknowledged_is_lost(folder):
    # The largest file that the process may write stands for the end of the disk.
    port = free_port()

    def tight():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))

    process = start(folder, port, preexec_fn=tight)
    connection = connect(port)
    made, status = [], 201
    while status == 201:
        headers = {"Content-Type": "application/json"}
        known = {"model": "toy", "known": {"a": [1.0]}}
        connection.request("POST", "/v1/sessions", json.dumps(known), headers)
        response = connection.getresponse()
        said, status = json.loads(response.read()), response.status
        if status == 201:
            made.append(said)
        assert len(made) < 50_000
    assert status in (503, 507)
    assert "storage" in said["type"]
    assert ask(connection, "GET", f"/v1/sessions/{made[-1]['id']}") == made[-1]
    process.kill()
    process.wait(30)
    connection.close()
    process = start(folder, port)
    connection = connect(port)
    for session in made:
        assert ask(connection, "GET", f"/v1/sessions/{session['id']}") == session
    ask(connection, "POST", "/v1/sessions", {"model": "toy"})
    connection.close()
    process.terminate()
    process.wait(30)
    assert faults(folder) == ()


def test_a_database_that_is_none_is_named_before_anything_is_served(folder):
    (folder / "sessions.sqlite3").write_text("a recipe " * 1000)
    command = [
        *(sys.executable, "-m", "sensortree", "serve", str(folder / "model.json")),
        *("--database", str(folder / "sessions.sqlite3"), "--port", "0"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "is no database; name another file" in done.stderr


# schemathesis -----------------------------------------------------------------------------

# A model and a session that are there, so that it comes past the first lines. 422 is what
# is of the right form, but nothing that this model can use.
SETTINGS = """
[parameters]
"path.model" = "toy"

[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "422", "5xx"]

[[operations]]
include-path-regex = "sessions/.*/"
parameters = {{ "path.session" = "{session}" }}
"""


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("schemathesis", path=os.path.dirname(sys.executable)) is None,
    reason="schemathesis is not installed",
)
def test_schemathesis_finds_nothing(folder):
    token = "x" * 40
    port = free_port()
    process = start(folder, port, env={**os.environ, "SENSORTREE_TOKEN": token})
    try:
        with closing(connect(port)) as connection:
            made = ask(connection, "POST", "/v1/sessions", {"model": "toy"}, token)
        settings = SETTINGS.format(session=made["id"])
        (folder / "schemathesis.toml").write_text(settings)
        done = subprocess.run(
            [
                os.path.join(os.path.dirname(sys.executable), "schemathesis"),
                *("--config-file", str(folder / "schemathesis.toml")),
                *("run", f"http://127.0.0.1:{port}/openapi.json"),
                *("--header", f"Authorization: Bearer {token}"),
                *("--seed", "0", "--max-examples", "100", "--no-color"),
            ],
            capture_output=True,
            text=True,
            timeout=1200,
            cwd=folder,
        )
    finally:
        process.terminate()
        process.wait(30)
    assert done.returncode == 0, done.stdout[-8000:]
    assert faults(folder) == ()


# the clients of the page ------------------------------------------------------------------


def clients_of_the_page():
    page = Path(__file__).parents[1] / "docs" / "deploying.md"
    found = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S):
        assert len([line for line in block.splitlines() if line.strip()]) <= 34
        exec(compile(block, "deploying.md", "exec"), found)
    return found


def test_the_clients_of_the_page_ask_until_the_decision(folder):
    pytest.importorskip("httpx2", reason="the asynchronous client is built on it")
    clients, token = clients_of_the_page(), "x" * 40
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = start(folder, port, env={**os.environ, "SENSORTREE_TOKEN": token})
    asked = []

    def slow(sensor, columns):
        asked.append((sensor, columns))
        if sensor == "b":
            time.sleep(0.5)
        return [1.0]

    async def slow_async(sensor, columns):
        asked.append((sensor, columns))
        if sensor == "b":
            await asyncio.sleep(60)
        return {"A": 1.0}

    try:
        found = [
            clients["acquire"](url, "toy", slow, token, timeout=0.1),
            asyncio.run(
                clients["acquire_async"](url, "toy", slow_async, token, timeout=0.1)
            ),
        ]
        with pytest.raises(RuntimeError, match="the token is wrong"):
            clients["acquire"](url, "toy", slow, "wrong")
    finally:
        process.terminate()
        process.wait(30)
    assert asked == [("a", ["A"]), ("b", ["B"])] * 2
    for decision in found:
        assert decision["acquired"] == ["a"]
        assert decision["unavailable"] == {"b": "TimeoutError"}


def test_who_never_hears_an_answer_asks_again_with_the_same_key(folder):
    clients = clients_of_the_page()
    port = free_port()
    process = start(folder, port)
    real, lost = clients["urlopen"], []

    def unsure(request, timeout):
        response = real(request, timeout=timeout)
        if len(lost) < 2:
            lost.append(request.headers["Idempotency-key"])
            response.close()
            raise TimeoutError
        return response

    clients["post"].__globals__["urlopen"] = unsure
    try:
        url = f"http://127.0.0.1:{port}"
        decision = clients["acquire"](url, "toy", lambda *asked: [-1.0])
        with closing(connect(port)) as connection:
            sessions = ask(connection, "GET", "/v1/sessions")["sessions"]
    finally:
        process.terminate()
        process.wait(30)
    assert decision["label"] == "no"
    assert len({*lost}) == 1
    assert len(sessions) == 1
