"""`SqliteLedger`: the ledger of a run in one file, for the processes of one machine."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from sensortree.dask.entries import Outcome
from sensortree.dask.ledger import Ledger, tables
from sensortree.exceptions import StorageError

APPLICATION = 0x53545241  # "STRA", in the header of our files
PATIENCE_S = 120.0  # for other processes that are writing
TYPES = {"money": "TEXT", "real": "REAL", "bytes": "BLOB", "by_key": "WITHOUT ROWID"}


class SqliteLedger(Ledger):
    """The ledger of a run in an SQLite file.

    Any number of threads and processes of one machine may use it at once. A file that
    several machines share over a network is no place for it: SQLite's locks do not hold
    there. Take `PostgresLedger`.

    Parameters
    ----------
    path : path-like
        It is made if it is not there.

    Examples
    --------
    >>> import tempfile
    >>> from sensortree.dask import SqliteLedger
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = SqliteLedger(f"{folder}/run.sqlite3")
    ...     print(ledger.totals().spent)
    ...     ledger.close()
    0
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path).absolute()
        self._turn, self._process = RLock(), 0
        self._connection: sqlite3.Connection | None = None

    def __repr__(self) -> str:
        return f"SqliteLedger({str(self.path)!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"])  # type: ignore[misc]  # made anew when unpickled

    def close(self) -> None:
        """Let go of the file; using the ledger again opens it again."""
        with self._turn:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def now(self) -> float:
        """Seconds by the clock of the machine."""
        return time.time()

    @contextmanager
    def _change(self) -> Iterator[_SqliteDesk]:
        with self._transaction("BEGIN IMMEDIATE") as desk:
            yield desk

    @contextmanager
    def _look(self) -> Iterator[_SqliteDesk]:
        with self._transaction("BEGIN") as desk:
            yield desk

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[_SqliteDesk]:
        with self._turn, self._errors():
            connection = self._open()
            connection.execute(begin)
            try:
                yield _SqliteDesk(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    def _stream(self, statement: str) -> Iterator[tuple[Any, ...]]:
        with self._errors():
            self._open()  # makes the file, if it is not there
            connection = sqlite3.connect(self.path, isolation_level=None)
            try:
                yield from connection.execute(statement)
            finally:
                connection.close()

    def _open(self) -> sqlite3.Connection:
        """The connection of this process; a forked one has none yet."""
        if self._connection is None or self._process != os.getpid():
            self._connection = self._connect()
            self._process = os.getpid()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=PATIENCE_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (others,) = connection.execute(
                "SELECT count(*) FROM sqlite_master"
            ).fetchone()
            if others and application != APPLICATION:
                raise StorageError(
                    f"{self.path} is a database of another program; name another file."
                )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            if not others:
                connection.execute("BEGIN IMMEDIATE")
                for statement in tables(**TYPES):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(
                f"the ledger {self.path} cannot be used ({error}); what it says is as it "
                f"was. Let the file and its folder be written, and call again.",
                getattr(error, "sqlite_errorname", "") or "",
            ) from error


class _SqliteDesk:
    """A transaction of SQLite; see `Desk`."""

    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection

    def all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        if "{keys}" in statement:
            statement = statement.replace("{keys}", "(SELECT value FROM json_each(?))")
            values = (*values[:-1], json.dumps(values[-1]))
        return self._connection.execute(statement, values).fetchall()

    def run(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement, values)

    def many(self, statement: str, lines: Sequence[tuple[Any, ...]]) -> None:
        if lines:
            places = f"VALUES ({', '.join('?' * len(lines[0]))})"
            self._connection.executemany(statement.format(lines=places), lines)

    def settle(self, sensor: str, lines: Sequence[Outcome]) -> None:
        self._connection.executemany(
            "UPDATE orders SET state = ?, reading = ?, reason = ? "
            "WHERE key = ? AND sensor = ?",
            [(o.state, o.reading, o.reason, o.key, sensor) for o in lines],
        )
