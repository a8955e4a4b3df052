"""Where a ledger is kept: `SqliteLedger` on one machine, `PostgresLedger` for several."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sensortree.exceptions import MissingDependencyError, ParameterError, StorageError
from sensortree.waves.ledger import Ledger, tables

# in a file --------------------------------------------------------------------------------

APPLICATION = 0x53545241  # "STRA", in the header of our files
PATIENCE_S = 120.0  # for other processes that are writing
SQLITE = {"money": "TEXT", "real": "REAL", "bytes": "BLOB", "by_key": "WITHOUT ROWID"}


class SqliteLedger(Ledger):
    """The ledger of a run in an SQLite file.

    Any number of threads and processes of one machine may use it at once. Do not put it on
    a network drive that several machines share: SQLite's locks do not hold there. Use
    `PostgresLedger` instead.

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
        super().__init__()
        self.path = Path(path).absolute()

    def __repr__(self) -> str:
        return f"SqliteLedger({str(self.path)!r})"

    def now(self) -> float:
        """Seconds by the clock of the machine."""
        return time.time()

    @contextmanager
    def _begin(self, change: bool) -> Iterator[None]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE" if change else "BEGIN")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise

    def _run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        if "{keys}" in statement:
            statement = statement.replace("{keys}", "(SELECT value FROM json_each(?))")
            values = (*values[:-1], json.dumps(values[-1]))
        return list(self._connection.execute(statement, values).fetchall())

    def _insert(self, statement: str, lines: Sequence[tuple[Any, ...]]) -> None:
        places = f"VALUES ({', '.join('?' * len(lines[0]))})"
        self._connection.executemany(statement.format(lines=places), lines)

    def _lines(self, connection: Any, statement: str) -> Iterator[tuple[Any, ...]]:
        yield from connection.execute(statement)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=PATIENCE_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            run = connection.execute
            (application,) = run("PRAGMA application_id").fetchone()
            (others,) = run("SELECT count(*) FROM sqlite_master").fetchone()
            if others and application != APPLICATION:
                raise StorageError(
                    f"{self.path} is a database of another program; name another file."
                )
            run("PRAGMA journal_mode = WAL")
            run("PRAGMA synchronous = FULL")
            if not others:
                run("BEGIN IMMEDIATE")
                for statement in tables(**SQLITE):
                    run(statement)
                run(f"PRAGMA application_id = {APPLICATION}")
                run("COMMIT")
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
                f"the ledger {self.path} cannot be used ({error}); nothing in it has "
                f"changed. Make the file and its folder writable, and call again.",
                getattr(error, "sqlite_errorname", "") or "",
            ) from error


# on a server ------------------------------------------------------------------------------

AT_ONCE = 10_000  # lines that are fetched at a time
POSTGRES = {
    "money": "NUMERIC",
    "real": "DOUBLE PRECISION",
    "bytes": "BYTEA",
    "by_key": "",
}
# Types of the columns that lines are inserted into, by table.
COLUMN_TYPES = {
    "orders": "text text text numeric text text text",
    "answers": "text int text text int numeric bytea text text",
}


class PostgresLedger(Ledger):
    """The ledger of a run in a schema of a PostgreSQL database.

    It needs the extra ``postgres``. Any number of processes of any number of machines may
    use it at once. How to connect travels to the workers with it; leave a password out of
    `address`, and have it in the environment (``PGPASSWORD``) or in ``~/.pgpass`` of each.

    Parameters
    ----------
    address : str
        As libpq takes it: ``"postgresql://host/database"``, or ``"host=... dbname=..."``.
    schema : str, default="sensortree"
        One run; it is made if it is not there.
    """

    def __init__(self, address: str, schema: str = "sensortree"):
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise ParameterError(
                f"schema is a name of lower-case letters, digits and underscores, got "
                f"{schema!r}."
            )
        super().__init__()
        self.address, self.schema = address, schema

    def __repr__(self) -> str:
        # An address may hold a password.
        return f"PostgresLedger(schema={self.schema!r})"

    def now(self) -> float:
        """Seconds by the clock of the server."""
        return float(self._read("SELECT extract(epoch FROM clock_timestamp())")[0][0])

    @contextmanager
    def _begin(self, change: bool) -> Iterator[None]:
        with self._connection.transaction():
            if change:  # wait for those that came before
                self._run("SELECT 1 FROM totals WHERE name = 'spent' FOR UPDATE")
            yield

    def _run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        statement = statement.replace("{keys}", "(SELECT unnest(?::text[]))")
        cursor = self._connection.execute(statement.replace("?", "%s"), values)
        return list(cursor.fetchall()) if cursor.description else []

    def _insert(self, statement: str, lines: Sequence[tuple[Any, ...]]) -> None:
        types = COLUMN_TYPES[statement.split()[2]].split()
        places = ", ".join(f"?::{each}[]" for each in types)
        columns = [list(column) for column in zip(*lines, strict=True)]
        self._run(statement.format(lines=f"SELECT * FROM unnest({places})"), *columns)

    def _lines(self, connection: Any, statement: str) -> Iterator[tuple[Any, ...]]:
        with connection.transaction(), connection.cursor("lines") as cursor:
            cursor.itersize = AT_ONCE
            cursor.execute(statement)
            yield from cursor

    def _connect(self) -> Any:
        connection = _psycopg().connect(self.address, autocommit=True)
        try:
            connection.execute("SET client_min_messages = warning")
            connection.execute(
                "SELECT set_config('search_path', %s, false)", [self.schema]
            )
            there = connection.execute(
                "SELECT count(*) FROM information_schema.tables "
                "WHERE table_schema = %s AND table_name = 'totals'",
                [self.schema],
            ).fetchone()
            if not there[0]:
                with connection.transaction():
                    # Two that begin at once make it one after the other.
                    connection.execute(
                        "SELECT pg_advisory_xact_lock(hashtext(%s))", [self.schema]
                    )
                    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
                    for statement in tables(**POSTGRES):
                        connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        psycopg = _psycopg()
        try:
            yield
        except psycopg.Error as error:
            if isinstance(error, psycopg.OperationalError):
                with suppress(psycopg.Error):
                    self.close()
            raise StorageError(
                f"the ledger {self} cannot be used ({str(error).strip()}); nothing in it "
                f"has changed. Check that the server can be reached, and call again.",
                getattr(error, "sqlstate", "") or "",
            ) from error


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise MissingDependencyError(
            "psycopg is needed for a ledger in PostgreSQL and is not installed; run "
            "pip install 'sensortree[postgres]', or use SqliteLedger on one machine."
        ) from error
    return psycopg
