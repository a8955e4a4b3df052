"""The database: one SQLite file, one writer, and nothing acknowledged that is not on disk.

All changes go through one thread. It takes what has come meanwhile, lets each change happen
in a savepoint of its own, and commits them together: one `fsync` (synchronous=FULL) for all
that waited for it. Only then are they answered. A change that is refused undoes itself and
no other; if the commit fails, all of its changes are undone and all are told so.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from sensortree.exceptions import StorageError
from sensortree.service import ledger

Answer = TypeVar("Answer")
Change = Callable[[sqlite3.Connection], Answer]

APPLICATION = 0x53545245  # "STRE", in the header of our files
VERSION = 1
MOST_AT_ONCE = 256  # changes in one commit
PATIENCE_MS = 5_000  # for another process that is writing

TABLES = """
CREATE TABLE IF NOT EXISTS sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    model TEXT NOT NULL,
    revision INTEGER NOT NULL,
    state TEXT NOT NULL,
    created TEXT NOT NULL,
    changed TEXT NOT NULL,
    ended INTEGER NOT NULL,
    watched INTEGER NOT NULL,
    receipt TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS sessions_of_tenant ON sessions (tenant, number);
CREATE TABLE IF NOT EXISTS tenants (
    tenant TEXT PRIMARY KEY, sessions INTEGER NOT NULL
);
CREATE TRIGGER IF NOT EXISTS a_session_more AFTER INSERT ON sessions
BEGIN
    INSERT INTO tenants VALUES (NEW.tenant, 1)
    ON CONFLICT (tenant) DO UPDATE SET sessions = sessions + 1;
END;
CREATE TRIGGER IF NOT EXISTS a_session_less AFTER DELETE ON sessions
BEGIN
    UPDATE tenants SET sessions = sessions - 1 WHERE tenant = OLD.tenant;
END;
CREATE TABLE IF NOT EXISTS replies (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL,
    session TEXT NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS replies_of_session ON replies (session);
CREATE TABLE IF NOT EXISTS alive (one INTEGER PRIMARY KEY, at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS watches (model TEXT PRIMARY KEY, state TEXT NOT NULL);
"""


# opened -----------------------------------------------------------------------------------


def open_database(path: Path) -> sqlite3.Connection:
    """Open a database for writing; make it if it is not there, refuse what is not ours."""
    with _opening(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")  # refused here if it is read-only
        for statement in _statements(TABLES + ledger.TABLE):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open an existing database, only to read it."""
    if not path.is_file():
        raise StorageError(f"there is no database {path}; name the one of the service.")
    with _opening(path) as connection:
        connection.execute("PRAGMA query_only = ON")
    return connection


@contextlib.contextmanager
def _opening(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection, unless the database is damaged or that of another program."""
    with storage_errors(path), contextlib.ExitStack() as unless_opened:
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False
        )
        unless_opened.callback(connection.close)
        connection.execute(f"PRAGMA busy_timeout = {PATIENCE_MS}")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION and tables:
            raise StorageError(
                f"{path} is a database of another program; name another file."
            )
        if version > VERSION:
            raise StorageError(
                f"{path} is of a later version of sensortree; upgrade sensortree."
            )
        yield connection
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise StorageError(
                f"{path} is damaged ({found}); put back a copy, and hold it to the "
                f"receipts with `sensortree ledger verify`."
            )
        unless_opened.pop_all()


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; those of a trigger have some inside."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Say what is wrong with a database in words, and what can be done."""
    try:
        yield
    except sqlite3.Error as error:
        raise storage_error(error, path) from error


REMEDIES = {
    "SQLITE_FULL": "is full, or its disk is: nothing was written; free some space",
    "SQLITE_READONLY": "cannot be written; let the service write the file and its folder",
    "SQLITE_CANTOPEN": "cannot be opened; let the service write the file and its folder",
    "SQLITE_CORRUPT": "is damaged; put back a copy, and hold it to noted receipts with "
    "`sensortree ledger verify`",
    "SQLITE_NOTADB": "is no database; name another file",
    "SQLITE_BUSY": "is being written by another program; try again",
    "SQLITE_IOERR": "could not be read or written: nothing was acknowledged; look at its "
    "disk",
}


def storage_error(error: sqlite3.Error, path: Path) -> StorageError:
    """The error of a database in our words."""
    code = getattr(error, "sqlite_errorname", "") or ""
    for name, remedy in REMEDIES.items():
        if code.startswith(name):
            return StorageError(f"the database {path} {remedy}.", name)
    return StorageError(f"the database {path} cannot be used ({error}).", code)


# written ----------------------------------------------------------------------------------


class Writer:
    """The thread that makes all changes, in groups that are committed at once."""

    def __init__(self, path: Path):
        self.path = path
        self._connection = open_database(path)
        self._waiting: SimpleQueue[tuple[Change[Any], Future[Any]] | None] = (
            SimpleQueue()
        )
        self._closed, self._door = False, Lock()
        self._thread = Thread(target=self._work, name="writer", daemon=True)
        self._thread.start()

    def change(self, change: Change[Answer]) -> Future[Answer]:
        """Have a change made; its future answers when it is on the disk."""
        future: Future[Answer] = Future()
        with self._door:
            if self._closed:
                raise StorageError("the service is closing; try again in a moment.")
            self._waiting.put((change, future))
        return future

    def close(self) -> None:
        """Make the changes that have come, then close the database."""
        with self._door:
            if self._closed:
                return
            self._closed = True
            self._waiting.put(None)
        self._thread.join()
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    def _work(self) -> None:
        going = True
        while going:
            group = [self._waiting.get()]
            with contextlib.suppress(Empty):
                while len(group) < MOST_AT_ONCE:
                    group.append(self._waiting.get_nowait())
            going = None not in group
            changes = [each for each in group if each is not None]
            if changes:
                self._commit(changes)

    def _commit(self, group: list[tuple[Change[Any], Future[Any]]]) -> None:
        """Make some changes, and answer when all are on the disk."""
        # Requests that were cancelled meanwhile are dropped.
        group = [each for each in group if each[1].set_running_or_notify_cancel()]
        made: list[tuple[Future[Any], Any]] = []
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for change, future in group:
                try:
                    made.append((future, self._make(change)))
                except sqlite3.Error:
                    raise
                except Exception as refusal:
                    future.set_exception(refusal)
            self._connection.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            failure = (
                storage_error(error, self.path)
                if isinstance(error, sqlite3.Error)
                else error
            )
            for _, future in group:
                if not future.done():
                    future.set_exception(failure)
            return
        for future, answer in made:
            future.set_result(answer)

    def _make(self, change: Change[Any]) -> Any:
        """Make one change, or undo it whole."""
        self._connection.execute("SAVEPOINT one")
        try:
            answer = change(self._connection)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO one")
                self._connection.execute("RELEASE one")
            raise
        self._connection.execute("RELEASE one")
        return answer


# pruned -----------------------------------------------------------------------------------


def prune(path: Path, before: str) -> dict[str, Any]:
    """Remove all values before a time: of records, of sessions, of replies.

    The ledger keeps its chain; what is removed is overwritten in the file too.
    """
    if not path.is_file():
        raise StorageError(f"there is no database {path}; name the one of the service.")
    connection = open_database(path)
    try:
        with storage_errors(path):
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            gone = connection.execute(
                "DELETE FROM sessions WHERE changed < ?", (before,)
            ).rowcount
            connection.execute(
                "DELETE FROM replies WHERE at < ? OR (session != '' AND session NOT IN "
                "(SELECT id FROM sessions))",
                (before,),
            )
            record = ledger.prune(connection, before)
            connection.execute("COMMIT")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()
    return {"sessions": gone, "receipt": record.receipt, **record.to_dict()["body"]}
