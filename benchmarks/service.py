"""How many steps a second the service takes, with every session on disk.

    python -m benchmarks.service                 20 seconds, 12 clients
    python -m benchmarks.service --seconds 60 --clients 48

A real server (uvicorn, synchronous=FULL) in a process of its own, and clients in another:
each thread of it has one connection (http.client), and takes one session after the other
from its beginning to its decision, row by row of the breast cancer data. A step is one
request that was acknowledged: a session begun, or a sensor told. Beside it, what limits it:
processor time of the server and of the clients for each step, and how long one `fsync` of
the same disk takes.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

from sensortree import SensorTreeClassifier, save

WARM_UP = 2.0  # seconds that are not counted


def main() -> int:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=12)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        X = write_model(Path(folder) / "model.json")
        for line in measure(Path(folder), X, arguments.seconds, arguments.clients):
            print(line)
    return 0


def write_model(path: Path) -> np.ndarray[Any, Any]:
    """A model of ten sensors, each of three columns; gives the rows."""
    X, y = load_breast_cancer(return_X_y=True)
    sensors = {f"s{j}": [3 * j, 3 * j + 1, 3 * j + 2] for j in range(10)}
    model = SensorTreeClassifier(sensors, cost_weight=0.002, classifier="linear")
    save(model.fit(X, y), path)
    return np.asarray(X)


def start(folder: Path, port: int, **process_options: Any) -> subprocess.Popen[bytes]:
    """The service as a process; ready when this returns."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "sensortree", "serve", f"toy={folder}/model.json"),
            *("--database", f"{folder}/sessions.sqlite3", "--port", str(port)),
            *("--rate", "100000"),
        ],
        stderr=subprocess.DEVNULL,
        **process_options,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with closing(connect(port)) as connection:
                ask(connection, "GET", "/readyz")
            return process
        except OSError:
            time.sleep(0.05)
    process.kill()
    raise RuntimeError("the service did not start; run it alone to see why")


def connect(port: int) -> http.client.HTTPConnection:
    """A connection that waits for nothing before it sends."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: Any = None,
    token: str = "",
) -> dict[str, Any]:
    """One request; what it answers."""
    text = None if body is None else json.dumps(body)
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, path, text, headers)
    response = connection.getresponse()
    said = response.read()
    if response.status >= 300:
        raise RuntimeError(f"{response.status}: {said!r}")
    found: dict[str, Any] = json.loads(said)
    return found


class Client(threading.Thread):
    """Takes sessions to their decision, one after the other, and notes each time."""

    def __init__(self, port: int, X: np.ndarray[Any, Any], seed: int, until: float):
        super().__init__()
        self._port, self._X, self._until = port, X, until
        self._rng = np.random.default_rng(seed)
        self.steps: list[tuple[float, float]] = []  # when acknowledged, after how long

    def run(self) -> None:
        """Ask until the time is over."""
        connection = connect(self._port)
        while time.perf_counter() < self._until:
            row = self._X[self._rng.integers(len(self._X))]
            session = self._timed(connection, "/v1/sessions", {"model": "toy"})
            while not session["decided"] and time.perf_counter() < self._until:
                j = int(session["step"]["sensor"][1:])
                body = {
                    "sensor": session["step"]["sensor"],
                    "values": row[3 * j : 3 * j + 3].tolist(),
                    "revision": session["revision"],
                }
                path = f"/v1/sessions/{session['id']}/tell"
                session = self._timed(connection, path, body)
        connection.close()

    def _timed(
        self, connection: http.client.HTTPConnection, path: str, body: Any
    ) -> dict[str, Any]:
        began = time.perf_counter()
        found = ask(connection, "POST", path, body)
        ended = time.perf_counter()
        self.steps.append((ended, ended - began))
        return found


def measure(
    folder: Path, X: np.ndarray[Any, Any], seconds: float, clients: int
) -> list[str]:
    """Run the clients against a service, and say how it went."""
    port = free_port()
    process = start(folder, port)
    try:
        began = time.perf_counter()
        threads = [
            Client(port, X, n, began + WARM_UP + seconds) for n in range(clients)
        ]
        mine, theirs = processor_time(), server_time(process.pid)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        mine = processor_time() - mine
        theirs = server_time(process.pid) - theirs
    finally:
        process.terminate()
        process.wait(30)
    steps = [step for thread in threads for step in thread.steps]
    times = sorted(t for at, t in steps if at > began + WARM_UP)
    return [
        f"clients                    {clients}",
        f"steps acknowledged a second {len(times) / seconds:8.0f}",
        f"median, ms                 {1e3 * times[len(times) // 2]:8.1f}",
        f"p99, ms                    {1e3 * times[int(0.99 * len(times))]:8.1f}",
        f"slowest, ms                {1e3 * times[-1]:8.1f}",
        f"server, ms of processor a step  {1e3 * theirs / len(steps):6.2f}",
        f"clients, ms of processor a step {1e3 * mine / len(steps):6.2f}",
        f"one fsync, ms              {1e3 * fsync_time(folder):8.1f}",
        f"load of the machine before {os.getloadavg()[2]:8.1f} on {os.cpu_count()} cores",
    ]


def processor_time() -> float:
    """Seconds of processor that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def server_time(pid: int) -> float:
    """Seconds of processor that another process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fsync_time(folder: Path) -> float:
    """Median time to force one page to the disk."""
    times = []
    with open(folder / "page", "wb") as file:
        for _ in range(50):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
