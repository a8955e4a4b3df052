"""Answering in waves while everything fails: each lookup bought once, and how fast.

    python -m benchmarks.waves                    a million rows, SQLite and PostgreSQL
    python -m benchmarks.waves --rows 20000       a look
    python -m benchmarks.waves --undisturbed      how fast if nothing fails, on threads

Five simulated lookups fail, break after they have charged, hang until nobody waits, and one
has a rate limit. Workers are killed ten times and the client twice (SIGKILL), by how much
of the money is spent. Then the ledger is held to the policy's batch prediction (purchases
by sensor, money, probabilities to the last bit) and to the sellers' own notes of what they
charged. Below, eight workers with a limit of half the money.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.postgres import LACKING, find_postgres, postgres
from benchmarks.sellers import CALL, CHARGE, Seller, noted
from sensortree import Policy, Sensor, SensorTreeClassifier, load, save
from sensortree.dask import (
    Ask,
    Lookup,
    PostgresLedger,
    SqliteLedger,
    acquire,
    answers,
    bill_of,
)
from sensortree.sensors.table import Table
from sensortree.waves.ledger import Ledger, exact, total

SENSORS = {
    "register": Sensor([0], cost=0.05),
    "address": Sensor([1], cost=0.35),
    "score": Sensor([2, 3], cost=1.2, discounted_cost=0.9, group="bureau"),
    "history": Sensor([4], cost=2.4, discounted_cost=2.1, group="bureau"),
    "visit": Sensor([5], cost=7.95),
}
RATE = {"register": 4_000.0}  # rows a second
BLOCK_ROWS = 20_000
WINDOW = 10.0  # seconds over which the rate is looked at


def main() -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=10, help="of workers")
    parser.add_argument("--client-kills", type=int, default=2)
    parser.add_argument("--ledgers", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--undisturbed", action="store_true")
    parser.add_argument("--client", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        return run_client(*arguments.client)
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    for name in arguments.ledgers:
        sys.stdout.flush()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            make(Path(folder), arguments.rows)
            if arguments.undisturbed:
                with ledger_of(name, folder) as (ledger, _):
                    measure(Path(folder), ledger, arguments.rows)
                continue
            with ledger_of(name, folder) as (ledger, address):
                run(Path(folder), ledger, address, arguments)
                check(Path(folder), ledger)
            with ledger_of(name, folder + "/limit") as (ledger, _):
                check_limit(Path(folder), ledger, min(arguments.rows, 40_000))
    return 0


# what is answered -------------------------------------------------------------------------


def population(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows of five sensors, each of which settles a part of what others leave open."""
    X = rng.normal(size=(n, 6))
    score = X[:, 0]
    for column in (1, 2, 4, 5):
        score = np.where(np.abs(score) < 0.7, X[:, column], score)
    return X, score > 0


def make(folder: Path, rows: int) -> None:
    """Write a model, the rows to be answered, and a folder for notes."""
    rng = np.random.default_rng(0)
    X, y = population(20_000, rng)
    model = SensorTreeClassifier(
        SENSORS,
        cost_weight=0.004,
        structure="chain",
        classifier="linear",
        outages=False,
    ).fit(X, y)
    save(model, folder / "model.json")
    np.save(folder / "rows.npy", population(rows, rng)[0])
    (folder / "notes").mkdir()
    (folder / "limit").mkdir()


def lookups(folder: Path, policy: Policy) -> dict[str, Lookup]:
    """The sellers, and how they are asked."""
    made = {}
    for name, columns in zip(policy.sensors.names, policy.sensors.columns, strict=True):
        seller = Seller(
            name, str(folder / "rows.npy"), tuple(columns), str(folder / "notes")
        )
        made[name] = Lookup(
            seller,
            size=1000,
            per_second=RATE.get(name),
            attempts=8,
            backoff=0.05,
            timeout=2.0,
        )
    return made


@contextmanager
def ledger_of(name: str, folder: str) -> Iterator[tuple[Ledger, str]]:
    """A new ledger, and how another process finds it."""
    with ExitStack() as stack:
        ledger: Ledger
        if name == "sqlite":
            address = f"{folder}/run.sqlite3"
            ledger = SqliteLedger(address)
        else:
            programs = find_postgres()
            if programs is None:
                raise SystemExit(LACKING)
            address = stack.enter_context(postgres(programs))
            ledger = PostgresLedger(address)
        try:
            yield ledger, address
        finally:
            ledger.close()


# a client that is killed ------------------------------------------------------------------


def run(folder: Path, ledger: Ledger, address: str, arguments: Any) -> None:
    """Start a client, kill it where it is to be killed, until one comes to the end."""
    policy = load(folder / "model.json").policy_
    whole = money_of(policy, np.load(folder / "rows.npy", mmap_mode="r"))
    kind = type(ledger).__name__
    clients, began = 0, time.time()
    for at in [*shares(arguments.client_kills), 2.0]:
        killing = ",".join(str(Decimal(s) * whole) for s in shares(arguments.kills))
        command = [sys.executable, "-m", "benchmarks.waves", "--client", str(folder)]
        process = subprocess.Popen([*command, kind, address, killing])
        clients += 1
        while process.poll() is None:
            time.sleep(0.2)
            if ledger.totals().spent >= whole * Decimal(at):
                os.kill(process.pid, signal.SIGKILL)
                break
        code = process.wait()
        if code not in (0, -signal.SIGKILL):
            raise SystemExit(f"a client ended with {code}")
    seconds = time.time() - began
    samples = [json.loads(s) for s in (folder / "memory").read_text().splitlines()]
    kills = (
        (folder / "kills").read_text().split() if (folder / "kills").exists() else []
    )
    half = len(samples) // 2
    print(f"\n{kind}: {arguments.rows:,} rows")
    print(f"  clients killed {clients - 1}, workers killed {len(kills)}")
    print(f"  {seconds:.0f} s, {arguments.rows / seconds:,.0f} rows a second, all told")
    for who in ("client", "worker"):
        first, second = (max(s[who] for s in part) for part in halves(samples, half))
        print(f"  memory of a {who}: {first:.0f} MB at most, then {second:.0f} MB")


def halves(samples: list[Any], half: int) -> tuple[list[Any], list[Any]]:
    """Both halves of what was sampled, neither empty."""
    return samples[: max(half, 1)], samples[min(half, len(samples) - 1) :]


def shares(n: int) -> list[float]:
    """How much is spent where something is killed n times."""
    return [(i + 0.5) / n for i in range(n)]


def run_client(folder: str, kind: str, address: str, killing: str) -> int:
    """Acquire on a cluster of two processes, some of which are killed on the way."""
    import distributed

    made = {"SqliteLedger": SqliteLedger, "PostgresLedger": PostgresLedger}
    ledger = made[kind](address)
    policy = load(Path(folder) / "model.json").policy_
    n_rows = len(np.load(Path(folder) / "rows.npy", mmap_mode="r"))
    marks = [Decimal(mark) for mark in killing.split(",") if mark]
    ended = threading.Event()
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        cluster.adapt(minimum=2, maximum=2)  # also where a restart took too long
        killer = threading.Thread(
            target=watch, args=(client, ledger, marks, Path(folder), ended)
        )
        killer.start()
        try:
            acquire(
                policy,
                range(n_rows),
                lookups(Path(folder), policy),
                ledger,
                client=client,
                block_rows=BLOCK_ROWS,
            )
        finally:
            ended.set()
            killer.join()
    return 0


def watch(
    client: Any, ledger: Ledger, marks: list[Decimal], folder: Path, ended: Any
) -> None:
    """Kill a worker whenever so much is spent, and note how much memory is used."""
    import psutil

    before = folder / "kills"
    marks = marks[len(before.read_text().split()) if before.exists() else 0 :]
    while not ended.wait(0.2):
        workers = psutil.Process().children(recursive=True)
        sizes = [size(worker) for worker in workers]
        sample = {"client": size(psutil.Process()), "worker": max(sizes, default=0.0)}
        with (folder / "memory").open("a") as memory:
            memory.write(json.dumps(sample) + "\n")
        if marks and ledger.totals().spent >= marks[0]:
            victims = sorted(client.run(os.getpid, on_error="ignore").values())
            if not victims:
                continue
            marks.pop(0)
            victim = victims[len(marks) % len(victims)]
            os.kill(victim, signal.SIGKILL)
            with before.open("a") as kills:
                kills.write(f"{victim}\n")


def size(process: Any) -> float:
    """Megabytes that a process has in memory."""
    import psutil

    try:
        return float(process.memory_info().rss) / 2**20
    except psutil.Error:
        return 0.0


# a run that nothing disturbs --------------------------------------------------------------


def measure(folder: Path, ledger: Ledger, n_rows: int) -> None:
    """Rows a second on the threads of one process, with sellers that never fail."""
    policy = load(folder / "model.json").policy_
    X = np.load(folder / "rows.npy", mmap_mode="r")

    def sell(ask: Ask) -> Any:
        columns = policy.sensors.columns[policy.sensors.index(ask.sensor)]
        return X[np.array(ask.keys)][:, list(columns)]

    oracles = {name: Lookup(sell) for name in policy.sensors.names}
    began, used = time.time(), time.process_time()
    bill = acquire(policy, range(n_rows), oracles, ledger)
    seconds, used = time.time() - began, time.process_time() - used
    bought = sum(line.bought for line in bill.sensors.values())
    print(
        f"{type(ledger).__name__}: {n_rows:,} rows, {bought:,} purchases: "
        f"{seconds:.0f} s, {n_rows / seconds:,.0f} rows a second "
        f"({n_rows / used:,.0f} a second of this process)"
    )


# what must hold ---------------------------------------------------------------------------


def money_of(policy: Policy, X: Any) -> Decimal:
    """What batch prediction would spend on all rows, exactly."""
    amounts = []
    for start in range(0, len(X), 50_000):
        costs = policy.acquisition_cost(Table(np.array(X[start : start + 50_000])))
        prices, counts = np.unique(costs, return_counts=True)
        pairs = zip(prices.tolist(), counts.tolist(), strict=True)
        amounts += [exact(price) * count for price, count in pairs]
    return total(amounts)


def check(folder: Path, ledger: Ledger) -> None:
    """Hold the ledger to batch prediction, and to the sellers' notes."""
    policy = load(folder / "model.json").policy_
    X = np.load(folder / "rows.npy", mmap_mode="r")
    bill = bill_of(ledger)
    acquired = np.zeros(len(policy.sensors), dtype=np.int64)
    rows, different = 0, 0
    for found in answers(policy, ledger):
        table = Table(np.array(X[found.key]))
        said = policy.predict_proba(table)
        different += int(
            (said.view(np.int64) != found.outputs.view(np.int64)).any(1).sum()
        )
        different += int((policy.predict(table) != found.label).sum())
        acquired += policy.acquired(table).sum(axis=0)
        rows += len(found.key)
    whole = money_of(policy, X)
    wanted = dict(zip(policy.sensors.names, acquired.tolist(), strict=True))
    bought = {s: bill.sensors[s].bought for s in bill.sensors}
    hold = {
        "every row is answered": rows == len(X) == bill.rows,
        "answers are those of batch prediction, to the last bit": different == 0,
        "purchases by sensor are the policy's": bought
        == {s: n for s, n in wanted.items() if n},
        f"money is the policy's ({whole:,})": bill.spent == whole,
        "nothing is open or lost": not bill.reserved and not bill.lost,
    }
    again = 0
    for sensor, n in bought.items():
        charged = noted(str(folder / "notes"), sensor, "charges", CHARGE)
        tokens, keys = np.unique(charged["token"]), np.unique(charged["key"])
        once = len(tokens) == len(keys) == n
        hold[f"{sensor}: {n:,} bought, {len(tokens):,} charged, no key twice"] = once
        again += len(charged) - len(tokens)
    for words, holds in hold.items():
        print(f"  {'yes' if holds else 'NO '}  {words}")
    print(f"  {again:,} lookups were asked for again after they had been charged")
    for sensor, rate in RATE.items():
        calls = noted(str(folder / "notes"), sensor, "calls", CALL)
        print(f"  {sensor}: at most {busiest(calls):,.0f} rows a second over {WINDOW:g} s,"
              f" {rate:,.0f} allowed")  # fmt: skip
    if not all(hold.values()):
        raise SystemExit("the ledger is wrong")


def busiest(calls: Any) -> float:
    """Most rows that were asked for in a second, on average over a window."""
    order = np.argsort(calls["at"])
    at, rows = calls["at"][order], np.cumsum(calls["rows"][order])
    first = np.searchsorted(at, at - WINDOW)
    before = np.where(first > 0, rows[first - 1], 0)
    return float(np.max(rows - before) / WINDOW)


def check_limit(folder: Path, ledger: Ledger, n_rows: int) -> None:
    """Eight worker processes at once, with half of the money."""
    import distributed

    policy = load(folder / "model.json").policy_
    X = np.load(folder / "rows.npy", mmap_mode="r")[:n_rows]
    limit = money_of(policy, X) / 2
    oracles = lookups(folder, policy)
    ended, worst = threading.Event(), [Decimal(0)]

    def look() -> None:
        while not ended.wait(0.01):
            worst[0] = max(worst[0], ledger.totals().bound)

    with (
        distributed.LocalCluster(
            n_workers=8,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            bill = acquire(
                policy,
                range(n_rows),
                oracles,
                ledger,
                client=client,
                limit=limit,
                block_rows=max(n_rows // 24, 1),
            )
        finally:
            ended.set()
            watcher.join()
    holds = worst[0] <= limit and bill.spent <= limit
    print(f"  {'yes' if holds else 'NO '}  eight workers, limit {limit:,}: "
          f"{bill.spent:,} spent, never more than {worst[0]:,} with what was set aside,"
          f" {bill.because.get('money', 0):,} of {n_rows:,} rows wait")  # fmt: skip
    if not holds:
        raise SystemExit("the limit was exceeded")


if __name__ == "__main__":
    raise SystemExit(main())
