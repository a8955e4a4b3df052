"""`Service`: models, database and counts; what all routes work with."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from sensortree.service import ledger, metrics, sessions, watch
from sensortree.service.database import Change, Writer, open_to_read, storage_error
from sensortree.service.limits import Limits
from sensortree.service.problems import (
    MEDIA_TYPE,
    RefusedError,
    to_json,
)
from sensortree.service.sessions import Reply
from sensortree.service.shelf import Model, Shelf
from sensortree.service.tokens import Caller, Scope
from sensortree.text import listed as named

# Refusals that every route may give, and those of routes that take values or change.
ANY = (400, 401, 403, 404, 405, 408, 413, 422, 429, 500, 503)
CHANGING = (*ANY, 409, 507)


def needs(scope: Scope) -> Any:
    """Who asks, if the token has a scope."""

    async def check(request: Request) -> Caller:
        caller: Caller = request.state.caller
        if scope not in caller.scopes:
            said = f"the token has no scope {scope!r}, which this needs."
            raise RefusedError(403, "scope", said)
        return caller

    return Depends(check)


Reader = Annotated[Caller, needs("read")]
Asker = Annotated[Caller, needs("ask")]
Admin = Annotated[Caller, needs("admin")]


class Service:
    """Models, database and counts: what the routes work with.

    Parameters
    ----------
    shelf : Shelf
    database : Path
    limits : Limits
    """

    def __init__(self, shelf: Shelf, database: Path, limits: Limits):
        self.shelf, self.limits = shelf, limits
        for model in shelf.models:  # what takes a while is done before it is asked
            model.prepare()
        self.warm = sessions.Warm(shelf)
        self.requests = metrics.Requests()
        self._database, self._written = database, -math.inf
        self._writer = Writer(database)
        self._reader, self._turn = open_to_read(database), Lock()

    def close(self) -> None:
        """Make the changes that have come, and close the database."""
        self._writer.close()
        self._reader.close()

    def model(self, name: str) -> Model:
        """A model by its name."""
        found = self.shelf.find(name)
        if found is None:
            there = named(model.name for model in self.shelf.current)
            raise RefusedError(
                404, "no-model", f"there is no such model; there are {there}."
            )
        return found

    async def change(self, change: Change[Reply]) -> Response:
        """Have a change made, and answer when it is on the disk."""
        reply = await asyncio.wrap_future(self._writer.change(change))
        return Response(reply.body, reply.status, media_type="application/json")

    def read(self, query: Callable[[sqlite3.Connection], Any]) -> Any:
        """Read what is in the database."""
        try:
            with self._turn:
                return query(self._reader)
        except sqlite3.Error as error:
            raise storage_error(error, self._database) from error

    async def check(self) -> None:
        """Write something, unless that was done a moment ago."""
        if time.monotonic() > self._written + 1:
            await asyncio.wrap_future(self._writer.change(_sign_of_life))
            self._written = time.monotonic()

    def watched(self, model: Model) -> dict[str, Any]:
        """What was seen of a model in use."""
        seen = self.read(lambda connection: watch.read(connection, model.version))
        return watch.summary(model.reference, seen)


def _sign_of_life(connection: sqlite3.Connection) -> None:
    """A change that proves that the database can be written."""
    connection.execute("INSERT OR REPLACE INTO alive VALUES (1, ?)", (ledger.now(),))


def answered(document: Any, status: int = 200) -> Response:
    """A document as an answer."""
    return Response(to_json(document), status, media_type="application/json")


def described(statuses: tuple[int, ...]) -> dict[int | str, dict[str, Any]]:
    """Refusals for the description of the API."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": "Refused.", "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted(statuses)
    }
