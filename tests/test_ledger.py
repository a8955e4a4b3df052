"""Claims about the ledger, and about the database that it stands in."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sensortree.cli.app import app
from sensortree.exceptions import StorageError
from sensortree.service import database, ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions.sqlite3"


@pytest.fixture
def writer(path):
    writer = database.Writer(path)
    yield writer
    writer.close()


def told(number):
    return lambda connection: ledger.append(
        connection, "told", {"value": f"secret-{number}"}, "clinic", "s1"
    )


def write(path, count):
    writer = database.Writer(path)
    made = [writer.change(told(n)).result() for n in range(1, count + 1)]
    writer.close()
    return made


def verdict(path, *receipts):
    connection = database.open_to_read(path)
    try:
        return ledger.verify(connection, receipts)
    finally:
        connection.close()


def forge(path, *statements):
    """Change the file as somebody would who does not ask."""
    connection = sqlite3.connect(path)
    for name in ("ledger_is_not_deleted", "ledger_is_not_changed"):
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


# the chain --------------------------------------------------------------------------------


def test_a_ledger_that_nobody_touched_holds(path):
    made = write(path, 5)
    found = verdict(path, made[2].receipt)
    assert found.faults == ()
    assert (found.records, found.head) == (5, made[-1].receipt)


FORGERIES = {
    "edited details": (
        ['UPDATE ledger SET body = \'{"value": "other"}\' WHERE number = 3'],
        ["record 3 was edited: its details"],
    ),
    "edited session": (
        ["UPDATE ledger SET session = 's2' WHERE number = 3"],
        ["record 3 was edited or moved"],
    ),
    "edited hash": (
        [f"UPDATE ledger SET hash = '{'f' * 64}' WHERE number = 3"],
        ["record 3 was edited or moved", "record 4 was edited or moved"],
    ),
    "deleted": (
        ["DELETE FROM ledger WHERE number = 3"],
        ["record 3 is missing: deleted"],
    ),
    "deleted at the beginning": (
        ["DELETE FROM ledger WHERE number < 3"],
        ["records 1 to 2 are missing: deleted"],
    ),
    "deleted at the end": (
        ["DELETE FROM ledger WHERE number > 3"],
        ["records 4 to 5 are missing: deleted at the end"],
    ),
    "reordered": (
        [
            "UPDATE ledger SET number = 30 WHERE number = 3",
            "UPDATE ledger SET number = 3 WHERE number = 4",
            "UPDATE ledger SET number = 4 WHERE number = 30",
            "UPDATE sqlite_sequence SET seq = 5 WHERE name = 'ledger'",
        ],
        [f"record {n} was edited or moved" for n in (3, 4, 5)],
    ),
    "renumbered over a deleted one": (
        [
            "DELETE FROM ledger WHERE number = 3",
            "UPDATE ledger SET number = 3 WHERE number = 4",
            "UPDATE ledger SET number = 4 WHERE number = 5",
            "UPDATE sqlite_sequence SET seq = 4 WHERE name = 'ledger'",
        ],
        ["record 3 was edited or moved", "record 4 was edited or moved"],
    ),
    "details removed without a pruning": (
        ["UPDATE ledger SET body = NULL, salt = NULL WHERE number = 3"],
        ["record 3 has lost its details, and no pruning says why"],
    ),
}


@pytest.mark.parametrize("how", FORGERIES)
def test_a_forgery_is_located(path, how):
    statements, expected = FORGERIES[how]
    write(path, 5)
    forge(path, *statements)
    faults = verdict(path).faults
    assert len(faults) == len(expected)
    for fault, said in zip(faults, expected, strict=True):
        assert fault.startswith(said)


def test_a_ledger_written_anew_is_found_by_a_receipt(path, tmp_path):
    made = write(path, 5)
    other = tmp_path / "other.sqlite3"
    write(other, 5)
    assert verdict(other).faults == ()  # nothing inside betrays it
    assert verdict(other, made[2].receipt).faults == (
        "record 3 is not the one that the receipt is of",
    )
    short = tmp_path / "short.sqlite3"
    write(short, 2)
    assert "record 3, which a receipt is of, is missing" in (
        verdict(short, made[2].receipt).faults
    )


def test_what_is_no_receipt_is_refused(path):
    write(path, 1)
    with pytest.raises(StorageError, match="'abc' is no receipt"):
        verdict(path, "abc")


def test_the_program_itself_cannot_change_a_record(writer):
    writer.change(told(1)).result()
    for statement in (
        "DELETE FROM ledger",
        "UPDATE ledger SET body = '{}'",
        "UPDATE ledger SET kind = 'asked', body = NULL, salt = NULL",
    ):
        with pytest.raises(StorageError, match="records of the ledger stay"):
            writer.change(lambda c, s=statement: c.execute(s)).result()


# pruning ----------------------------------------------------------------------------------


def test_pruning_removes_values_and_keeps_the_chain(path):
    made = write(path, 4)
    assert b"secret-2" in path.read_bytes()
    said = database.prune(path, made[2].at)
    assert said["records"] == 2
    found = verdict(path, made[0].receipt, made[3].receipt)
    assert (found.faults, found.pruned, found.records) == ((), 2, 5)
    everything = b"".join(f.read_bytes() for f in path.parent.iterdir())
    assert b"secret-2" not in everything
    assert b"secret-3" in everything


def test_a_pruning_does_not_excuse_what_is_later_than_it_says(path):
    made = write(path, 4)
    database.prune(path, made[2].at)
    forge(path, "UPDATE ledger SET body = NULL, salt = NULL WHERE number = 4")
    assert verdict(path).faults == (
        "record 4 has lost its details, and no pruning says why",
    )


def test_a_service_goes_on_beside_a_pruning(path):
    writer = database.Writer(path)
    first = writer.change(told(1)).result()
    database.prune(path, ledger.now())
    third = writer.change(told(3)).result()
    writer.close()
    assert (first.number, third.number) == (1, 3)
    assert verdict(path).faults == ()


# the database -----------------------------------------------------------------------------


def test_a_refused_change_leaves_no_trace_and_disturbs_no_other(writer):
    began, go = threading.Event(), threading.Event()

    def wait(connection):
        began.set()
        go.wait(10)

    def refused(connection):
        ledger.append(connection, "told", {})
        raise ValueError("no")

    first = writer.change(wait)
    began.wait(10)  # what comes now is committed together
    before, middle, after = map(writer.change, (told(1), refused, told(2)))
    go.set()
    first.result(10)
    assert before.result(10).number == 1
    with pytest.raises(ValueError, match="no"):
        middle.result(10)
    assert after.result(10).number == 2


def test_a_full_database_says_so_and_keeps_what_it_has(path):
    writer = database.Writer(path)
    writer.change(told(0)).result()
    (pages,) = writer.change(
        lambda c: c.execute("PRAGMA page_count").fetchone()
    ).result()
    writer._connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    acknowledged = [1]

    def fill():
        acknowledged.extend(
            writer.change(told(n)).result().number for n in range(1, 10_000)
        )

    with pytest.raises(StorageError, match="is full, or its disk is") as caught:
        fill()
    assert caught.value.code == "SQLITE_FULL"
    writer._connection.execute("PRAGMA max_page_count = 1000000")
    assert writer.change(told("later")).result().number == acknowledged[-1] + 1
    writer.close()
    assert verdict(path).records == acknowledged[-1] + 1
    assert verdict(path).faults == ()


def test_what_is_no_database_is_refused_and_left_alone(path):
    path.write_text("a recipe, which is longer than the header of a database" * 20)
    before = path.read_bytes()
    with pytest.raises(StorageError, match="is no database; name another file"):
        database.Writer(path)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name)")
    connection.close()
    with pytest.raises(StorageError, match="of another program"):
        database.Writer(path)


def test_a_damaged_database_is_refused(path):
    write(path, 400)
    contents = bytearray(path.read_bytes())
    contents[8192:12288] = b"\xff" * 4096
    path.write_bytes(contents)
    with pytest.raises(StorageError, match="is damaged"):
        database.Writer(path)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs users as Unix has them")
def test_a_database_that_may_not_be_written_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.sqlite3"
        write(path, 2)
        before = path.read_bytes()
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        us = os.geteuid()
        try:
            if us == 0:  # who may write anything
                os.seteuid(65534)
            with pytest.raises(StorageError, match="let the service write the file"):
                database.Writer(path)
        finally:
            os.seteuid(us)
            Path(folder).chmod(0o755)
        assert path.read_bytes() == before


# the commands -----------------------------------------------------------------------------


def command(*arguments):
    return CliRunner().invoke(app, ["ledger", *map(str, arguments)])


def test_the_command_says_that_a_ledger_holds(path):
    made = write(path, 3)
    result = command("verify", path, "--receipt", made[1].receipt)
    assert result.exit_code == 0
    assert result.stdout == (
        f"3 records hold, 0 of them pruned\nlast: {made[-1].receipt}\n"
    )


def test_the_command_names_the_record_that_was_edited(path):
    write(path, 3)
    forge(path, "UPDATE ledger SET body = '{}' WHERE number = 2")
    result = command("verify", path)
    assert result.exit_code == 1
    assert "record 2 was edited" in result.stderr
    assert result.stdout == ""


def test_the_command_prunes_up_to_a_date(path):
    write(path, 3)
    result = command("prune", path, "--before", "2020-01-01")
    assert "0 sessions and the details of 0 records" in result.stdout
    assert verdict(path).pruned == 0
    result = command("prune", path, "--before", ledger.now())
    assert "details of 3 records" in result.stdout
    assert (verdict(path).pruned, verdict(path).faults) == (3, ())


@pytest.mark.parametrize(
    ("date", "said"), [("soon", "is no date"), ("2999-01-01", "is in the future")]
)
def test_what_cannot_be_pruned_before_is_refused(path, date, said):
    write(path, 1)
    result = command("prune", path, "--before", date)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StorageError, match="cannot be opened; let the service write"):
        database.Writer(tmp_path / "none" / "sessions.sqlite3")


def test_a_ledger_that_is_not_there_is_not_made(path):
    with pytest.raises(StorageError, match="there is no database"):
        verdict(path)
    with pytest.raises(StorageError, match="there is no database"):
        database.prune(path, ledger.now())
    assert not path.exists()


def test_changes_that_came_are_made_before_it_closes(path):
    writer = database.Writer(path)
    futures = [writer.change(told(n)) for n in range(50)]
    writer.close()
    assert [f.result().number for f in futures] == list(range(1, 51))
    with pytest.raises(StorageError, match="is closing"):
        writer.change(told(1))
