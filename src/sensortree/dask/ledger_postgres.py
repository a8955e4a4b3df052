"""`PostgresLedger`: the ledger of a run in a PostgreSQL database, for many machines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any

from sensortree.dask.entries import Outcome
from sensortree.dask.ledger import Ledger, tables
from sensortree.exceptions import MissingDependencyError, ParameterError, StorageError

AT_ONCE = 10_000  # lines that are fetched at a time
TYPES = {
    "money": "NUMERIC",
    "real": "DOUBLE PRECISION",
    "bytes": "BYTEA",
    "by_key": "",
}
# What the columns of a bulk are, by the table that it goes to.
LINES = {
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
        self.address, self.schema = address, schema
        self._turn, self._process = RLock(), 0
        self._connection: Any = None

    def __repr__(self) -> str:
        return (
            f"PostgresLedger(schema={self.schema!r})"  # an address may have a password
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"address": self.address, "schema": self.schema}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # made anew when unpickled

    def close(self) -> None:
        """Let go of the connection; using the ledger again opens it again."""
        with self._turn:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def now(self) -> float:
        """Seconds by the clock of the server."""
        with self._look() as desk:
            found = desk.all("SELECT extract(epoch FROM clock_timestamp())")
        return float(found[0][0])

    @contextmanager
    def _change(self) -> Iterator[_PostgresDesk]:
        with self._transaction() as desk:
            # Whoever changes something waits here for those who came before.
            desk.all("SELECT 1 FROM totals WHERE name = 'spent' FOR UPDATE")
            yield desk

    @contextmanager
    def _look(self) -> Iterator[_PostgresDesk]:
        with self._transaction() as desk:
            yield desk

    @contextmanager
    def _transaction(self) -> Iterator[_PostgresDesk]:
        with self._turn, self._errors():
            connection = self._open()
            with connection.transaction():
                yield _PostgresDesk(connection)

    def _stream(self, statement: str) -> Iterator[tuple[Any, ...]]:
        with self._errors():
            connection = self._connect()
            try:
                with connection.transaction(), connection.cursor("lines") as cursor:
                    cursor.itersize = AT_ONCE
                    cursor.execute(statement)
                    yield from cursor
            finally:
                connection.close()

    def _open(self) -> Any:
        """The connection of this process, opened again if it was lost."""
        lost = self._connection is None or self._connection.closed
        if lost or self._process != os.getpid():
            self._connection = self._connect()
            self._process = os.getpid()
        return self._connection

    def _connect(self) -> Any:
        psycopg = _psycopg()
        connection = psycopg.connect(self.address, autocommit=True)
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
                    for statement in tables(**TYPES):
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
                f"the ledger {self} cannot be used ({str(error).strip()}); what it says is "
                f"as it was. See that the server can be reached, and call again.",
                getattr(error, "sqlstate", "") or "",
            ) from error


class _PostgresDesk:
    """A transaction of PostgreSQL; see `Desk`."""

    def __init__(self, connection: Any):
        self._connection = connection

    def all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        statement = statement.replace("{keys}", "(SELECT unnest(?::text[]))")
        found: list[tuple[Any, ...]] = self._execute(statement, values).fetchall()
        return found

    def run(self, statement: str, *values: Any) -> None:
        self._execute(statement, values)

    def many(self, statement: str, lines: Sequence[tuple[Any, ...]]) -> None:
        if lines:
            table = statement.split()[2]
            kinds = LINES[table].split()
            places = ", ".join(f"?::{kind}[]" for kind in kinds)
            columns = [list(column) for column in zip(*lines, strict=True)]
            bulk = statement.format(lines=f"SELECT * FROM unnest({places})")
            self._execute(bulk, columns)

    def settle(self, sensor: str, lines: Sequence[Outcome]) -> None:
        keys, states, readings, reasons = map(list, zip(*lines, strict=True))
        self._execute(
            "UPDATE orders SET state = new.state, reading = new.reading, "
            "reason = new.reason FROM unnest(?::text[], ?::text[], ?::text[], ?::text[]) "
            "AS new (key, state, reading, reason) "
            "WHERE orders.key = new.key AND orders.sensor = ?",
            (keys, states, readings, reasons, sensor),
        )

    def _execute(self, statement: str, values: Sequence[Any]) -> Any:
        return self._connection.execute(statement.replace("?", "%s"), values)


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise MissingDependencyError(
            "psycopg is needed for a ledger in PostgreSQL and is not installed; run "
            "pip install 'sensortree[postgres]', or take SqliteLedger on one machine."
        ) from error
    return psycopg
