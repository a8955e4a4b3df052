"""The ledger: what was asked, answered and decided, each record chained to the last.

A record is chained by the hash

    h_n = SHA-256 of [n, at, tenant, session, kind, c_n, h_{n-1}],
    c_n = SHA-256 of salt_n and body_n,

written as JSON. Whoever changes, removes or moves a record would have to write all later
hashes anew, and whoever has noted a receipt ("n:h_n") sees that. The body goes into the
chain only through c_n, and the salt is random: when values must go, body and salt are
removed together, the chain still holds, and c_n lets nobody guess what they were.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sensortree.exceptions import StorageError

Kind = Literal[
    "created", "asked", "told", "unavailable", "decided", "deleted", "pruned"
]

BEGINNING = "0" * 64  # h_0
SALT_BYTES = 16

# What is written stays: only body and salt may go, both, and for good.
TABLE = """
CREATE TABLE IF NOT EXISTS ledger (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT,
    salt BLOB,
    commitment TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS ledger_of_session ON ledger (session);
CREATE TRIGGER IF NOT EXISTS ledger_is_not_deleted BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'records of the ledger stay'); END;
CREATE TRIGGER IF NOT EXISTS ledger_is_not_changed BEFORE UPDATE ON ledger
WHEN NEW.body IS NOT NULL OR NEW.salt IS NOT NULL OR OLD.number IS NOT NEW.number
    OR OLD.at IS NOT NEW.at OR OLD.tenant IS NOT NEW.tenant
    OR OLD.session IS NOT NEW.session OR OLD.kind IS NOT NEW.kind
    OR OLD.commitment IS NOT NEW.commitment OR OLD.hash IS NOT NEW.hash
BEGIN SELECT RAISE(ABORT, 'records of the ledger stay as they are'); END;
"""
FIELDS = "number, at, tenant, session, kind, body, salt, commitment, hash"


@dataclass(frozen=True)
class Record:
    """One thing that happened."""

    number: int  # 1, 2, 3 and so on
    at: str  # in UTC
    tenant: str  # whose, and of which session; "" of what belongs to none
    session: str
    kind: str  # what happened
    body: str | None  # details as JSON; None once they were pruned
    salt: bytes | None  # goes with the body
    commitment: str  # c_n
    hash: str  # h_n

    @property
    def receipt(self) -> str:
        """What a client may keep, to check the ledger against it later."""
        return f"{self.number}:{self.hash}"

    def to_dict(self) -> dict[str, Any]:
        """Give the record as plain values for JSON."""
        return {
            "number": self.number,
            "at": self.at,
            "session": self.session,
            "kind": self.kind,
            "body": None if self.body is None else json.loads(self.body),
            "hash": self.hash,
        }


# written ----------------------------------------------------------------------------------


def append(
    connection: sqlite3.Connection,
    kind: Kind,
    body: dict[str, Any],
    tenant: str = "",
    session: str = "",
) -> Record:
    """Write the next record, within the transaction that is open."""
    number, previous = last(connection)
    text, salt = json.dumps(body, sort_keys=True), secrets.token_bytes(SALT_BYTES)
    commitment = commit_to(salt, text)
    at = now()
    fields = (number + 1, at, tenant, session, kind)
    record = Record(*fields, text, salt, commitment, link(fields, commitment, previous))
    connection.execute(
        f"INSERT INTO ledger ({FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        tuple(vars(record).values()),
    )
    return record


def last(connection: sqlite3.Connection) -> tuple[int, str]:
    """Number and hash of the last record; of the beginning, if there is none."""
    found = connection.execute(
        "SELECT number, hash FROM ledger ORDER BY number DESC LIMIT 1"
    ).fetchone()
    return (0, BEGINNING) if found is None else (found[0], found[1])


def commit_to(salt: bytes, body: str) -> str:
    """The commitment c_n to a body."""
    return hashlib.sha256(salt + body.encode()).hexdigest()


def link(fields: tuple[Any, ...], commitment: str, previous: str) -> str:
    """The hash h_n that chains a record to the one before."""
    text = json.dumps([*fields, commitment, previous], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def now() -> str:
    """The current time, as records write it."""
    return as_text(datetime.now(UTC))


def as_text(time: datetime) -> str:
    """A time in UTC, to the microsecond, such that later is greater as text."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def records(
    connection: sqlite3.Connection, session: str | None = None
) -> Iterator[Record]:
    """Records in their order: all, or those of one session."""
    where, what = ("", ()) if session is None else ("WHERE session = ?", (session,))
    rows = connection.execute(
        f"SELECT {FIELDS} FROM ledger {where} ORDER BY number", what
    )
    return (Record(*row) for row in rows)


# pruned -----------------------------------------------------------------------------------


def prune(connection: sqlite3.Connection, before: str) -> Record:
    """Remove the details of all records before a time; a record says that it was done."""
    pruned = connection.execute(
        "UPDATE ledger SET body = NULL, salt = NULL "
        "WHERE at < ? AND body IS NOT NULL AND kind != 'pruned'",
        (before,),
    ).rowcount
    return append(connection, "pruned", {"before": before, "records": pruned})


# verified ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What a check of the ledger found."""

    records: int
    pruned: int  # records whose details were pruned, as a later record says
    head: str  # receipt of the last record, to be noted elsewhere
    faults: tuple[str, ...]  # what is wrong, and where; none if the ledger holds


def verify(connection: sqlite3.Connection, receipts: tuple[str, ...] = ()) -> Verdict:
    """Check every record against its contents, its neighbours, and noted receipts."""
    faults: list[str] = []
    prunings = list(_prunings(connection))
    count, pruned, previous, expected = 0, 0, BEGINNING, 1
    owed = dict(_read_receipt(receipt) for receipt in receipts)
    for record in records(connection):
        count += 1
        n = record.number
        if n > expected:
            faults.append(f"{_missing(expected, n - 1)}: deleted")
        fields = (n, record.at, record.tenant, record.session, record.kind)
        follows = n == expected
        if record.body is not None and record.salt is not None:
            if commit_to(record.salt, record.body) != record.commitment:
                faults.append(
                    f"record {n} was edited: its details are not those written"
                )
        elif any(n < later and record.at < before for later, before in prunings):
            pruned += 1
        else:
            faults.append(f"record {n} has lost its details, and no pruning says why")
        if follows and link(fields, record.commitment, previous) != record.hash:
            faults.append(
                f"record {n} was edited or moved: its hash is not that of what it says "
                f"and of record {n - 1}"
            )
        if owed.pop(n, record.hash) != record.hash:
            faults.append(f"record {n} is not the one that the receipt is of")
        previous, expected = record.hash, n + 1
    most = connection.execute(
        "SELECT seq FROM sqlite_sequence WHERE name = 'ledger'"
    ).fetchone()
    if most is not None and most[0] >= expected:
        faults.append(f"{_missing(expected, most[0])}: deleted at the end")
    faults += [f"record {n}, which a receipt is of, is missing" for n in owed]
    return Verdict(count, pruned, f"{expected - 1}:{previous}", tuple(faults))


def _prunings(connection: sqlite3.Connection) -> Iterator[tuple[int, str]]:
    """Number of each pruning that holds, and the time before which it was done."""
    for record in records(connection):
        if record.kind != "pruned" or record.body is None or record.salt is None:
            continue
        if commit_to(record.salt, record.body) == record.commitment:
            yield record.number, json.loads(record.body)["before"]


def _missing(first: int, final: int) -> str:
    return (
        f"record {first} is missing"
        if first == final
        else f"records {first} to {final} are missing"
    )


def _read_receipt(receipt: str) -> tuple[int, str]:
    """Number and hash of a receipt."""
    number, _, digest = receipt.partition(":")
    if not number.isdecimal() or len(digest) != len(BEGINNING):
        raise StorageError(
            f"{receipt!r} is no receipt; it is a number, a colon and {len(BEGINNING)} "
            f"digits, as an answer of the service has it."
        )
    return int(number), digest
