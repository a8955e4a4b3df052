"""Claims about answering in waves: each reading is bought once, whatever happens."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bureau import Bureau, charges

from benchmarks.postgres import LACKING, find_postgres, postgres
from sensortree import Sensor, SensorTreeClassifier, save
from sensortree.dask import (
    Lookup,
    PostgresLedger,
    SqliteLedger,
    acquire,
    answers,
    bill_of,
)
from sensortree.exceptions import (
    DataError,
    OracleError,
    ParameterError,
    SensorError,
    StorageError,
    UnseenWarning,
)
from sensortree.waves.ledger import Outcome, exact, total

SENSORS = {
    "a": Sensor(["a"], cost=0.1),
    "b": Sensor(["b"], cost=0.7, discounted_cost=0.4, group="blood"),
    "c": Sensor(["c", "c2"], cost=1.1, discounted_cost=0.8, group="blood"),
    "d": Sensor(["d"], cost=2.3),
}
COLUMNS = {"a": [0], "b": [1], "c": [2, 3], "d": [4]}
NAMES = ["a", "b", "c", "c2", "d"]


def population(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    score = X[:, 0]
    for column in (1, 2, 4):
        score = np.where(np.abs(score) < 0.6, X[:, column], score)
    return X, np.where(score > 0, "yes", "no")


@pytest.fixture(scope="module")
def model():
    X, y = population(1500, 0)
    return SensorTreeClassifier(
        SENSORS,
        cost_weight=0.01,
        structure="chain",
        classifier="linear",
        outages=True,
    ).fit(pd.DataFrame(X, columns=NAMES), y)


@pytest.fixture(scope="module")
def X():
    return population(400, 1)[0]


@pytest.fixture
def bureau(X, tmp_path):
    (tmp_path / "notes").mkdir()
    return {s: Bureau(X, c, tmp_path / "notes", s) for s, c in COLUMNS.items()}


@pytest.fixture(scope="module")
def server():
    programs = find_postgres()
    pytest.importorskip("psycopg", reason="the extra 'postgres' is absent")
    if programs is None:
        pytest.skip(LACKING)
    with postgres(programs, "fsync=off") as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def ledger(request, tmp_path):
    if request.param == "sqlite":
        made = SqliteLedger(tmp_path / "run.sqlite3")
    else:
        address = request.getfixturevalue("server")
        made = PostgresLedger(address, f"run_{uuid.uuid4().hex}")
    yield made
    made.close()


@pytest.fixture
def sqlite(tmp_path):
    made = SqliteLedger(tmp_path / "run.sqlite3")
    yield made
    made.close()


def frame(X):
    return pd.DataFrame(X, columns=NAMES)


def written(model, ledger):
    """Everything that was answered, in the order of whole-number keys."""
    (found,) = answers(model.policy_, ledger)
    order = np.argsort(found.key)
    spent = [found.spent[i] for i in order]
    around = [found.around[i] for i in order]
    return found.label[order], found.outputs[order], spent, found.because[order], around


def on_paper(costs):
    return [exact(float(cost)) for cost in costs]


def check_as_in_batch(model, X, ledger, bill):
    label, said, spent, because, _ = written(model, ledger)
    assert (label == model.predict(frame(X))).all()
    assert said.tobytes() == model.predict_proba(frame(X)).tobytes()
    assert spent == on_paper(model.acquisition_cost(frame(X)))
    assert set(because) == {"policy"}
    acquired = model.acquired(frame(X)).sum(axis=0).tolist()
    assert {s: b.bought for s, b in bill.sensors.items()} == {
        s: n for s, n in zip(COLUMNS, acquired, strict=True) if n
    }
    assert bill.spent == total(spent)
    assert bill == bill_of(ledger)


def check_bought_once(bill, folder):
    found = charges(folder)
    assert all(len(tokens) == 1 for tokens in found.values())
    assert len(found) == sum(line.bought for line in bill.sensors.values())


# as in batch ------------------------------------------------------------------------------


def test_purchases_money_and_answers_are_those_of_batch_prediction(
    model, X, bureau, ledger, tmp_path
):
    bill = acquire(model.policy_, range(len(X)), bureau, ledger, block_rows=150)
    check_as_in_batch(model, X, ledger, bill)
    check_bought_once(bill, tmp_path / "notes")
    assert bill.rows == len(X)
    assert "400 rows stopped" in str(bill)
    assert bill.to_dict()["spent"] == str(bill.spent)


def test_a_second_call_buys_nothing(model, X, bureau, ledger, tmp_path):
    first = acquire(model.policy_, range(len(X)), bureau, ledger)
    calls = sum(sum(t.values()) for t in charges(tmp_path / "notes").values())
    assert acquire(model.policy_, range(len(X)), bureau, ledger) == first
    again = sum(sum(t.values()) for t in charges(tmp_path / "notes").values())
    assert again == calls


def test_the_old_name_of_outputs_warns_and_gives_the_same(model, X, bureau, sqlite):
    acquire(model.policy_, range(20), bureau, sqlite)
    (found,) = answers(model.policy_, sqlite)
    with pytest.warns(FutureWarning, match=r"now Answers\.outputs"):
        assert found.said is found.outputs


def test_known_columns_cost_nothing_and_open_their_group(model, X, bureau, sqlite):
    rows = frame(X)[["b", "c", "c2"]].iloc[:60]
    bill = acquire(model.policy_, rows, bureau, sqlite)
    _, said, spent, _, _ = written(model, sqlite)
    assert not {"b", "c"} & set(bill.sensors)
    for i in range(60):
        known = {"b": X[i, [1]], "c": X[i, [2, 3]]}
        decision = model.policy_.acquire(lambda s, _, i=i: X[i, COLUMNS[s]], known)
        assert said[i].tobytes() == decision.proba.tobytes()
        assert float(spent[i]) == decision.spent


def test_an_example_pays_its_own_prices(sqlite):
    X, y = population(600, 3)
    table = frame(X).assign(
        price=np.round(np.random.default_rng(4).uniform(0, 3, 600), 2)
    )
    sensors = {**SENSORS, "d": Sensor(["d"], cost="price")}
    model = SensorTreeClassifier(
        sensors, cost_weight=0.01, structure="chain", classifier="linear"
    ).fit(table, y)
    oracles = {
        s: (lambda ask, c=c: X[list(ask.keys)][:, c]) for s, c in COLUMNS.items()
    }
    bill = acquire(model.policy_, table[["price"]], oracles, sqlite)
    _, said, spent, _, _ = written(model, sqlite)
    assert spent == on_paper(model.acquisition_cost(table))
    assert said.tobytes() == model.predict_proba(table).tobytes()
    assert bill.sensors["d"].bought


def test_text_columns_are_read_as_in_a_table(sqlite):
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {"word": rng.choice(["red", "blue", "green"], 500), "x": rng.normal(size=500)}
    )
    y = (table["word"] == "red") | ((table["word"] == "blue") & (table["x"] > 0))
    table.loc[::50, "x"] = np.nan
    model = SensorTreeClassifier(
        {"w": ["word"], "x": ["x"]}, costs={"w": 1, "x": 2}, cost_weight=0.01
    ).fit(table, y)
    oracles = {
        "w": lambda ask: [[table["word"][k]] for k in ask.keys],
        "x": lambda ask: {k: {"x": table["x"][k]} for k in ask.keys},
    }
    acquire(model.policy_, table.index, oracles, sqlite, block_rows=200)
    label, said, _, _, _ = written(model, sqlite)
    assert said.tobytes() == model.predict_proba(table).tobytes()
    assert (label == model.predict(table)).all()


def test_a_limit_of_each_example_is_kept(sqlite):
    X, y = population(500, 6)
    model = SensorTreeClassifier(
        SENSORS,
        cost_weight=0.001,
        structure="chain",
        classifier="linear",
        max_cost=1.2,
    ).fit(frame(X), y)
    oracles = {
        s: (lambda ask, c=c: X[list(ask.keys)][:, c]) for s, c in COLUMNS.items()
    }
    acquire(model.policy_, range(100), oracles, sqlite)
    _, said, spent, _, _ = written(model, sqlite)
    assert spent == on_paper(model.acquisition_cost(frame(X[:100])))
    assert said.tobytes() == model.predict_proba(frame(X[:100])).tobytes()


# oracles that fail ------------------------------------------------------------------------


def test_who_is_refused_a_sensor_goes_the_way_of_a_session(model, X, bureau, ledger):
    def sell(ask):
        return [None if key % 3 == 0 else X[key, [1]] for key in ask.keys]

    bill = acquire(model.policy_, range(200), {**bureau, "b": sell}, ledger)
    label, said, spent, because, around = written(model, ledger)
    assert bill.sensors["b"].unavailable
    assert bill.lost == bill.reserved == 0
    for i in range(200):

        def oracle(sensor, columns, i=i):
            return None if sensor == "b" and i % 3 == 0 else X[i, COLUMNS[sensor]]

        decision = model.policy_.acquire(oracle)
        assert label[i] == decision.label
        assert said[i].tobytes() == decision.proba.tobytes()
        assert float(spent[i]) == decision.spent
        assert because[i] == decision.stopped_because
        assert around[i] == decision.around
    assert "b" in around


def test_what_fails_is_asked_again_with_the_same_token(model, X, bureau, sqlite):
    asked: dict[str, set[int]] = {}

    def sell(ask):
        for token in ask.tokens:
            asked.setdefault(token, set()).add(ask.attempt)
        if ask.attempt == 1:
            raise ConnectionError("no line")
        rows = [X[key, [1]] for key in ask.keys]
        if ask.attempt == 2:
            rows[0] = TimeoutError("this one alone")
        return rows

    flaky = Lookup(sell, size=20, backoff=0.001)
    bill = acquire(model.policy_, range(100), {**bureau, "b": flaky}, sqlite)
    check_as_in_batch(model, X[:100], sqlite, bill)
    assert len(asked) == bill.sensors["b"].bought
    assert {1, 2} in asked.values()
    assert {1, 2, 3} in asked.values()


def test_no_answer_in_time_is_lost_and_its_money_stays_set_aside(
    model, X, bureau, sqlite
):
    async def sell(ask):
        if 5 in ask.keys:
            await asyncio.sleep(60)
        return X[list(ask.keys)][:, [0]]

    slow = Lookup(sell, size=1, at_once=20, timeout=0.05, attempts=2, backoff=0)
    bill = acquire(model.policy_, range(20), {**bureau, "a": slow}, sqlite)
    assert bill.sensors["a"].lost == 1
    assert bill.lost == Decimal("0.1")
    assert sqlite.orders(["5"])[0].reason == "TimeoutError: no answer within 0.05 s"
    _, said, _, because, _ = written(model, sqlite)
    assert because[5] == "unavailable"
    rest = np.arange(20) != 5
    assert (said[rest] == model.predict_proba(frame(X[:20]))[rest]).all()


def test_an_oracle_that_is_broken_ends_the_run_and_nothing_is_given_up(
    model, X, bureau, sqlite, tmp_path
):
    def broken(ask):
        raise NameError("token")

    lookup = Lookup(broken, size=10, at_once=1, attempts=1)
    with pytest.raises(
        OracleError, match=r"3 calls in a row.*NameError: token"
    ) as error:
        acquire(model.policy_, range(len(X)), {**bureau, "b": lookup}, sqlite)
    assert "goes on" in error.value.__notes__[0]
    assert {o.sensor for o in sqlite.unsettled()} == {"b"}
    assert sqlite.totals().lost == 0
    bill = acquire(model.policy_, range(len(X)), bureau, sqlite)
    check_as_in_batch(model, X, sqlite, bill)
    check_bought_once(bill, tmp_path / "notes")


MALFORMED = {
    "a page": (lambda ask: "<html>502 Bad Gateway</html>", "gave str; give a sequence"),
    "bytes": (lambda ask: b"502", "gave bytes; give a sequence"),
    "a number": (lambda ask: 502, "gave int; give a sequence"),
    "one number": (lambda ask: np.array(502), "gave ndarray; give a sequence"),
    "nothing": (lambda ask: None, "gave NoneType; give a sequence"),
    "a set": (lambda ask: set(ask.keys), "gave set; give a sequence"),
    "too few": (lambda ask: np.ones((1, 1)), "gave 1 readings of"),
    "none": (lambda ask: [], "gave 0 readings of"),
    "too many": (lambda ask: [[1.0]] * 99, "gave 99 readings of"),
    "other keys": (lambda ask: {"error": "busy"}, "for which it was not asked"),
    "two values": (lambda ask: [[1.0, 2.0]] * len(ask.keys), "was told 2 values"),
    "other columns": (
        lambda ask: [{"detail": "busy"}] * len(ask.keys),
        "was told column 'detail'",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_reply_is_asked_for_again(model, X, bureau, sqlite, name):
    said, _ = MALFORMED[name]

    def sell(ask):
        return said(ask) if ask.attempt < 3 else X[list(ask.keys)][:, [0]]

    lookup = Lookup(sell, size=7, attempts=3, backoff=0)
    bill = acquire(model.policy_, range(30), {**bureau, "a": lookup}, sqlite)
    check_as_in_batch(model, X[:30], sqlite, bill)


@pytest.mark.parametrize("name", MALFORMED)
def test_rows_whose_replies_stay_malformed_go_on_and_the_run_does_too(
    model, X, bureau, sqlite, name, caplog
):
    said, message = MALFORMED[name]

    async def sell(ask):
        return said(ask) if 5 in ask.keys else X[list(ask.keys)][:, [0]]

    lookup = Lookup(sell, size=4, attempts=2, backoff=0)
    bill = acquire(model.policy_, range(30), {**bureau, "a": lookup}, sqlite)
    assert bill.sensors["a"].lost == 4
    assert message in sqlite.orders(["5"])[0].reason
    assert "malformed reply for 'a', attempt 2" in caplog.text
    _, said, _, because, _ = written(model, sqlite)
    assert set(because[4:8]) == {"unavailable"}
    rest = np.delete(np.arange(30), range(4, 8))
    assert (said[rest] == model.predict_proba(frame(X[:30]))[rest]).all()


def test_one_malformed_reading_is_asked_for_again_alone(model, X, bureau, sqlite):
    asked = []

    def sell(ask):
        asked.append(ask.keys)
        return [
            [X[k, 0]] if k != 5 or ask.attempt > 1 else [1.0, 2.0] for k in ask.keys
        ]

    lookup = Lookup(sell, attempts=2, backoff=0)
    bill = acquire(model.policy_, range(30), {**bureau, "a": lookup}, sqlite)
    check_as_in_batch(model, X[:30], sqlite, bill)
    assert asked[1:] == [(5,)]


def test_replies_that_are_malformed_call_after_call_end_the_run(model, bureau, sqlite):
    lookup = Lookup(lambda ask: "502", size=5, attempts=2, backoff=0)
    with pytest.raises(
        OracleError, match=r"failed in 3 calls in a row.*gave str; give"
    ):
        acquire(model.policy_, range(100), {**bureau, "a": lookup}, sqlite)


def test_a_call_that_ends_the_run_leaves_no_other_without_its_answer(
    model, X, bureau, sqlite
):
    begun = threading.Barrier(3)

    def sell(ask):
        begun.wait(10)
        if 0 in ask.keys:
            raise OracleError("the account is closed")
        time.sleep(0.1)
        return X[list(ask.keys)][:, [0]]

    three = {**bureau, "a": Lookup(sell, size=5, at_once=3)}
    with pytest.raises(OracleError, match="the account is closed"):
        acquire(model.policy_, range(30), three, sqlite)
    assert [o.key for o in sqlite.unsettled()] == list("01234")
    assert dict(sqlite.bought("a")) == {i: [X[i, 0]] for i in range(5, 15)}


def test_a_reading_that_cannot_be_read_is_paid_and_done_without(
    model, X, bureau, sqlite
):
    def sell(ask):
        return [["n/a"] if key == 7 else [X[key, 0]] for key in ask.keys]

    bill = acquire(model.policy_, range(50), {**bureau, "a": sell}, sqlite)
    assert (bill.sensors["a"].bought, bill.sensors["a"].unusable) == (49, 1)
    assert bill.sensors["a"].spent == Decimal("5.0")
    _, said, _, because, _ = written(model, sqlite)
    assert because[7] == "unavailable"
    rest = np.arange(50) != 7
    assert (said[rest] == model.predict_proba(frame(X[:50]))[rest]).all()


def test_values_that_training_never_saw_are_warned_of_once(model, X, bureau, sqlite):
    def sell(ask):
        return [[9e9 if key < 2 else X[key, 0]] for key in ask.keys]

    with pytest.warns(UnseenWarning, match=r"column 'a' of sensor 'a'.*2 such rows"):
        acquire(model.policy_, range(50), {**bureau, "a": sell}, sqlite, block_rows=20)


def test_no_more_rows_a_second_are_asked_for_than_said(model, X, bureau, sqlite):
    asked: list[tuple[float, int]] = []

    def sell(ask):
        asked.append((time.time(), len(ask.keys)))
        return X[list(ask.keys)][:, [0]]

    slow, began = Lookup(sell, size=10, per_second=200), time.time()
    acquire(model.policy_, range(100), {**bureau, "a": slow}, sqlite, block_rows=50)
    assert sum(n for _, n in asked) == 100
    for (
        at,
        _,
    ) in asked:  # the ten of a call are asked for at once, then there is a pause
        assert sum(n for t, n in asked if t <= at) <= 10 + 200 * (at - began)


def test_calls_do_not_bunch_where_orders_are_written_slowly(
    model, X, bureau, sqlite, monkeypatch
):
    asked: list[float] = []
    claim, calls = SqliteLedger.claim, []

    def slow_at_first(ledger, sensor, *arguments):
        if sensor == "a":
            calls.append(sensor)
            time.sleep(0.5 if len(calls) <= 5 else 0.0)
        return claim(ledger, sensor, *arguments)

    def sell(ask):
        asked.append(time.time())
        return X[list(ask.keys)][:, [0]]

    monkeypatch.setattr(SqliteLedger, "claim", slow_at_first)
    lookup = Lookup(sell, size=10, per_second=100, at_once=5)
    acquire(model.policy_, range(200), {**bureau, "a": lookup}, sqlite)
    for at in asked:  # five calls in half a second, and two that a busy machine delayed
        assert sum(at <= other < at + 0.45 for other in asked) <= 7


# money ------------------------------------------------------------------------------------


def test_eight_workers_never_spend_more_than_the_limit(
    model, X, bureau, ledger, tmp_path
):
    limit, worst = Decimal("61.7"), []
    ended = threading.Event()

    def look():
        while not ended.wait(0.002):
            worst.append(ledger.totals().bound)

    watcher = threading.Thread(target=look)
    watcher.start()
    small = {s: Lookup(oracle, size=20, at_once=8) for s, oracle in bureau.items()}
    try:
        bill = acquire(
            model.policy_,
            range(len(X)),
            small,
            ledger,
            limit=limit,
            block_rows=50,
            blocks_at_once=8,
        )
    finally:
        ended.set()
        watcher.join()
    assert max(worst) <= limit
    assert bill.spent <= limit
    assert limit - bill.spent < Decimal("2.3")  # less than the dearest sensor is left
    assert bill.because["money"]
    check_bought_once(bill, tmp_path / "notes")
    more = acquire(model.policy_, range(len(X)), bureau, ledger)
    check_as_in_batch(model, X, ledger, more)
    check_bought_once(more, tmp_path / "notes")


def test_who_cannot_be_paid_for_is_answered_where_it_stands(model, X, bureau, sqlite):
    bill = acquire(model.policy_, range(20), bureau, sqlite, limit=0)
    assert bill.spent == 0
    assert bill.because == {"money": 20}
    _, said, _, _, _ = written(model, sqlite)
    assert (said == model.policy_.step({}).proba).all()


def test_tenths_add_up_as_on_paper(ledger):
    ledger.begin("model", "str")
    keys = [str(i) for i in range(30)]
    claim = ledger.claim("a", keys, [exact(0.1)] * 30, exact(0.3))
    assert claim.granted == keys[:3]
    assert claim.denied == keys[3:]
    assert ledger.totals().reserved == Decimal("0.3")


# orders -----------------------------------------------------------------------------------


def test_a_key_is_ordered_once_and_what_came_first_stays(ledger):
    ledger.begin("model", "str")
    price = exact(2.5)
    assert ledger.claim("a", ["x"], [price], None).granted == ["x"]
    again = ledger.claim("a", ["x", "y"], [price, price], None)
    assert again.granted == ["y"]
    assert again.there["x"].state == "ordered"
    first = ledger.settle("a", [Outcome("x", "bought", "[1.0]")])
    late = ledger.settle("a", [Outcome("x", "bought", "[2.0]")])
    assert first["x"].reading == late["x"].reading == "[1.0]"
    sums = ledger.totals()
    assert (sums.spent, sums.reserved) == (price, price)


def test_what_is_refused_frees_its_money_and_what_is_lost_does_not(ledger):
    ledger.begin("model", "str")
    ledger.claim("a", ["x", "y"], [exact(1.5), exact(2)], None)
    ledger.settle(
        "a", [Outcome("x", "unavailable"), Outcome("y", "lost", None, "gone")]
    )
    assert ledger.totals()[:3] == (0, 0, 2)
    bill = bill_of(ledger)
    assert (bill.sensors["a"].unavailable, bill.sensors["a"].lost) == (1, 1)
    assert "up to 2 more" in str(bill)


def test_orders_that_were_cut_off_wait_for_a_person_if_asked(model, X, bureau, sqlite):
    run = sqlite.begin(model.policy_.digest, "int")
    sqlite.claim("a", ["3", "4"], [exact(0.1)] * 2, None)
    bill = acquire(model.policy_, range(10), bureau, sqlite, unsettled="hold")
    assert bill.because["unsettled"] == 2
    assert [(o.key, o.sensor) for o in sqlite.unsettled()] == [("3", "a"), ("4", "a")]
    sqlite.settle_by_hand(3, "a", X[3, [0]].tolist())
    sqlite.settle_by_hand(4, "a", X[4, [0]].tolist())
    with pytest.raises(StorageError, match="it is bought; see unsettled"):
        sqlite.settle_by_hand(4, "a", None)
    bill = acquire(model.policy_, range(10), bureau, sqlite, unsettled="hold")
    check_as_in_batch(model, X[:10], sqlite, bill)
    assert run == sqlite.begin(model.policy_.digest, "int")


def test_what_was_bought_can_be_read(model, X, bureau, ledger):
    acquire(model.policy_, range(10), bureau, ledger)
    assert dict(ledger.bought("a")) == {i: [X[i, 0]] for i in range(10)}


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = {path!r}
import numpy as np
from bureau import Bureau
from sensortree import load
from sensortree.dask import Lookup, SqliteLedger, acquire
folder = Path({folder!r})
X = np.load(folder / "X.npy")
left = [int(sys.argv[1])]
def fails(ask):
    left[0] -= 1
    if left[0] == 0:  # asked and charged, or not: nobody will know
        if sys.argv[2] == "after":
            bureau[ask.sensor].fails = None
            bureau[ask.sensor](ask)
        os.kill(os.getpid(), signal.SIGKILL)
columns = {columns!r}
bureau = {{s: Bureau(X, c, folder / "notes", s, fails) for s, c in columns.items()}}
oracles = {{s: Lookup(b, size=40) for s, b in bureau.items()}}
ledger = SqliteLedger(folder / "run.sqlite3")
acquire(load(folder / "model.json").policy_, range(len(X)), oracles, ledger, block_rows=150)
"""


def test_a_client_that_is_killed_while_it_buys_goes_on_from_the_ledger(
    model, X, bureau, sqlite, tmp_path
):
    save(model, tmp_path / "model.json")
    np.save(tmp_path / "X.npy", X)
    path = [str(Path(__file__).parent), *filter(None, sys.path)]
    script = KILLED.format(path=path, folder=str(tmp_path), columns=COLUMNS)
    for calls, when in ((3, "after"), (6, "before")):
        command = [sys.executable, "-c", script, str(calls), when]
        assert subprocess.run(command).returncode == -signal.SIGKILL
        assert sqlite.unsettled()
    bill = acquire(model.policy_, range(len(X)), bureau, sqlite)
    check_as_in_batch(model, X, sqlite, bill)
    check_bought_once(bill, tmp_path / "notes")
    asked = [n for t in charges(tmp_path / "notes").values() for n in t.values()]
    assert max(asked) > 1  # what was cut off was asked for again, and charged once


# rows and keys ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([1, 2, 1], "key 1 is that of two rows"),
        ([1.0, 2.0], "1.0 is no key"),
        (["a", None], "None is no key"),
        (["a", ""], "'' is no key"),
        (["a", 1], "some keys are numbers and others text"),
        ("abc", "got str"),
        (np.ones((3, 2)), "got an array of shape"),
    ],
)
def test_rows_without_good_keys_are_refused(model, bureau, sqlite, rows, message):
    with pytest.raises(DataError, match=message):
        acquire(model.policy_, rows, bureau, sqlite)
    assert sqlite.totals().bound == 0


def test_a_key_that_comes_again_in_another_block_is_refused(model, bureau, ledger):
    rows = [*range(10), 3]
    with pytest.raises(DataError, match="key '3' is that of two rows"):
        acquire(model.policy_, rows, bureau, ledger, block_rows=10)
    bill = acquire(model.policy_, range(10), bureau, ledger)
    assert bill.rows == 10


def test_a_part_of_a_sensor_s_columns_is_refused(model, X, bureau, sqlite):
    with pytest.raises(DataError, match="rows lack column 'c2' of sensor 'c'"):
        acquire(model.policy_, frame(X)[["a", "c"]], bureau, sqlite)
    bill = acquire(model.policy_, frame(X)[["a", "c"]], bureau, sqlite, known=["a"])
    assert "a" not in bill.sensors


def test_keys_may_be_a_column(model, X, bureau, sqlite):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    rows = pl.DataFrame({"id": np.arange(30), "a": X[:30, 0]})
    with pytest.raises(DataError, match="name the column of their keys"):
        acquire(model.policy_, rows, bureau, sqlite)
    bill = acquire(model.policy_, rows, bureau, sqlite, key="id", block_rows=20)
    assert bill.rows == 30


def test_another_model_and_other_keys_are_refused(model, X, bureau, ledger):
    acquire(model.policy_, range(3), bureau, ledger)
    with pytest.raises(DataError, match="are of type int"):
        acquire(model.policy_, ["1"], bureau, ledger)
    with pytest.raises(StorageError, match="another model"):
        ledger.begin("other", "int")


def test_a_sensor_without_an_oracle_is_named(model, bureau, sqlite):
    del bureau["c"]
    with pytest.raises(SensorError, match="no oracle gives 'c'"):
        acquire(model.policy_, range(3), bureau, sqlite)


def test_a_model_is_no_policy(model, bureau, sqlite):
    with pytest.raises(ParameterError, match=r"give model\.policy_"):
        acquire(model, range(3), bureau, sqlite)


def test_a_file_of_another_program_is_no_ledger(tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "x.db") as other:
        other.execute("CREATE TABLE t (a)")
    other.close()
    with pytest.raises(StorageError, match="of another program"):
        SqliteLedger(tmp_path / "x.db").totals()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": 0}, "size of a Lookup"),
        ({"patience": 0}, "patience of a Lookup"),
        ({"timeout": 0}, "timeout of a Lookup is above 0"),
        ({"per_second": -1.0}, "per_second of a Lookup is above 0"),
        ({"backoff": "1"}, "backoff of a Lookup is a number"),
    ],
)
def test_a_lookup_that_cannot_be_is_refused(wrong, message):
    with pytest.raises(ParameterError, match=message):
        Lookup(print, **wrong)


def test_progress_tells_rows_money_and_time(model, bureau, sqlite, capsys):
    acquire(model.policy_, range(50), bureau, sqlite, block_rows=20, verbose=True)
    said = capsys.readouterr().err
    assert "50 rows stopped of 50, " in said
    assert f"{bill_of(sqlite).spent} spent" in said


# on a cluster -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip(
        "distributed", reason="the extra 'dask' is absent"
    )
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


def test_workers_of_a_client_do_the_same(model, X, bureau, ledger, client, tmp_path):
    bill = acquire(
        model.policy_, range(len(X)), bureau, ledger, client=client, block_rows=90
    )
    check_as_in_batch(model, X, ledger, bill)
    check_bought_once(bill, tmp_path / "notes")


def test_partitions_of_a_dask_frame_are_blocks(model, X, bureau, sqlite, client):
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is absent")
    rows = dd.from_pandas(frame(X)[["a"]], npartitions=3)
    bill = acquire(model.policy_, rows, bureau, sqlite, client=client, block_rows=50)
    assert bill.rows == len(X)
    assert "a" not in bill.sensors
    _, said, _, _, _ = written(model, sqlite)
    assert said.tobytes() == model.predict_proba(frame(X)).tobytes()


@pytest.mark.slow
def test_workers_that_are_killed_buy_nothing_twice(model, ledger, tmp_path):
    distributed = pytest.importorskip(
        "distributed", reason="the extra 'dask' is absent"
    )
    X, _ = population(6000, 9)
    (tmp_path / "notes").mkdir()
    oracles = {
        s: Lookup(Bureau(X, c, tmp_path / "notes", s), size=50, per_second=8000)
        for s, c in COLUMNS.items()
    }
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        ended = threading.Event()

        def kill():
            for _ in range(3):
                if ended.wait(1.5):
                    return
                pids = client.run(os.getpid).values()
                for pid in list(pids)[:1]:  # there may be none
                    os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            bill = acquire(
                model.policy_,
                range(len(X)),
                oracles,
                ledger,
                client=client,
                block_rows=1000,
            )
        finally:
            ended.set()
            killer.join()
    check_as_in_batch(model, X, ledger, bill)
    check_bought_once(bill, tmp_path / "notes")
