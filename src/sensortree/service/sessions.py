"""Examples under way: sessions in the database, each with its model and version.

What is here are changes for the `Writer`: functions of a connection, whose transaction is
open. Each writes the session, its records in the ledger, the watch and the reply that is
kept for its key, all or nothing.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from sensortree.policy.reasons import by_class
from sensortree.policy.session import Session
from sensortree.service import ledger, models
from sensortree.service.database import Change
from sensortree.service.models import Model, Models
from sensortree.service.schemas import RefusedError, to_json

# What happened to a session, for the ledger.
Happened = tuple[ledger.Kind, dict[str, Any]]


class Reply(NamedTuple):
    """An answer that can be given again: an HTTP status, and JSON."""

    status: int
    body: bytes


@dataclass(frozen=True)
class Row:
    """A session as it is stored."""

    id: str
    tenant: str
    name: str  # name and version of its model
    model: str
    revision: int  # counts its changes
    state: str  # what `Session.to_dict` gave, as JSON
    created: str
    changed: str
    ended: bool  # whether it is decided
    watched: bool  # whether `Watched` has counted it
    receipt: str  # of its last record in the ledger

    def head(self) -> dict[str, Any]:
        """The session as lists show it."""
        return {
            "id": self.id,
            "model": self.name,
            "version": self.model,
            "revision": self.revision,
            "created": self.created,
            "changed": self.changed,
            "decided": bool(self.ended),
            "receipt": self.receipt,
        }


FIELDS = ", ".join(field.name for field in fields(Row))

# read -------------------------------------------------------------------------------------


def find(connection: sqlite3.Connection, tenant: str, id: str) -> Row:
    """A session of a tenant; those of others do not exist for it."""
    found = connection.execute(
        f"SELECT {FIELDS} FROM sessions WHERE id = ? AND tenant = ?", (id, tenant)
    ).fetchone()
    if found is None:
        raise RefusedError(404, "no-session", "there is no such session.")
    return Row(*found)


def listed(
    connection: sqlite3.Connection, tenant: str, after: str | None, limit: int
) -> dict[str, Any]:
    """Sessions of a tenant, oldest first, a page at a time."""
    start = 0
    if after is not None:
        found = connection.execute(
            "SELECT number FROM sessions WHERE id = ? AND tenant = ?", (after, tenant)
        ).fetchone()
        if found is None:
            raise RefusedError(404, "no-session", "there is no session to go on after.")
        (start,) = found
    rows = connection.execute(
        f"SELECT {FIELDS} FROM sessions WHERE tenant = ? AND number > ? "
        "ORDER BY number LIMIT ?",
        (tenant, start, limit + 1),
    ).fetchall()
    sessions = [Row(*row).head() for row in rows[:limit]]
    return {
        "sessions": sessions,
        "next": sessions[-1]["id"] if len(rows) > limit else None,
    }


def resumed(row: Row, served: Models) -> tuple[Model, Session]:
    """A stored session, with the model that it was begun with."""
    model = served.by_version.get(row.model)
    if model is None:
        raise RefusedError(
            409,
            "no-model",
            f"the session was begun with version {row.model[:12]} of model "
            f"{row.name!r}, which this service does not have; serve that file, too.",
        )
    return model, model.policy.resume(json.loads(row.state))


def shown(row: Row, session: Session) -> dict[str, Any]:
    """A session as responses show it, with its reason as one sentence."""
    state = json.loads(row.state)
    told = {**state["known"]}
    told.update({event[1]: event[2] for event in state["log"] if event[0] == "tell"})
    step = session.step
    plain = {**step._asdict(), "why": None if step.why is None else step.why.text}
    plain["proba"] = by_class(plain.pop("classes"), step.proba)
    return {
        **row.head(),
        "spent": step.spent,
        "told": told,
        "step": plain,
        "decision": session.decision().to_dict() if step.sensor is None else None,
    }


class SessionCache:
    """The sessions that were changed last, so that they need no replay.

    A session is used only if its state is that of the database, since changes may have been
    undone there. The cache belongs to the thread of the `Writer`; it keeps the last `most`.
    """

    def __init__(self, served: Models, most: int = 2_000):
        self._served, self._most = served, most
        self._kept: OrderedDict[str, tuple[str, Session]] = OrderedDict()

    def take(self, row: Row) -> tuple[Model, Session]:
        """A stored session to change; unless it is kept afterwards, it is dropped."""
        state, session = self._kept.pop(row.id, ("", None))
        model = self._served.by_version.get(row.model)
        if session is None or model is None or state != row.state:
            return resumed(row, self._served)
        return model, session

    def keep(self, row: Row, session: Session) -> None:
        """Keep a session that has been changed."""
        self._kept[row.id] = row.state, session
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


# changed ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stored:
    """A session that is to be changed: whose, which, and at which revision, if any."""

    cache: SessionCache
    tenant: str
    id: str
    revision: int | None

    def find(self, connection: sqlite3.Connection) -> Row:
        """The session, unless somebody else has changed it since."""
        row = find(connection, self.tenant, self.id)
        if self.revision is not None and self.revision != row.revision:
            raise RefusedError(
                409,
                "stale-revision",
                f"the session is at revision {row.revision}, not {self.revision}: "
                f"somebody else has changed it; get it, and decide anew.",
            )
        return row


def begun(
    model: Model, tenant: str, begin: Callable[[], Session], most: int
) -> Change[Reply]:
    """Keep a session that begins now; a tenant may have `most`."""

    def change(connection: sqlite3.Connection) -> Reply:
        have = connection.execute(
            "SELECT sessions FROM tenants WHERE tenant = ?", (tenant,)
        ).fetchone()
        if have is not None and have[0] >= most:
            raise RefusedError(
                429,
                "too-many-sessions",
                f"there are {have[0]} sessions, which is as many as may be; delete some.",
            )
        session = begin()
        id, at = secrets.token_urlsafe(16), ledger.now()
        state = session.to_dict()
        row = Row(
            id, tenant, model.name, model.version, 0, "", at, at, False, False, ""
        )
        told = {key: state[key] for key in ("known", "limit", "prices", "log")}
        happened = {"model": model.name, "version": model.version, **told}
        row = _went_on(connection, row, model, session, state, ("created", happened))
        connection.execute(
            f"INSERT INTO sessions ({FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            tuple(vars(row).values()),
        )
        return Reply(201, to_json(shown(row, session)))

    return change


def tell(stored: Stored, sensor: str, values: Any, correct: bool) -> Change[Reply]:
    """Tell a session the values of a sensor, or correct them."""

    def act(model: Model, session: Session) -> Happened:
        read = model.saved.as_written(sensor, values)
        session.tell(sensor, read, replace=correct)
        return "told", {"sensor": sensor, "values": values, "correct": correct}

    return _changed(stored, act)


def unavailable(stored: Stored, sensor: str, because: str | None) -> Change[Reply]:
    """Tell a session that a sensor is unavailable."""

    def act(model: Model, session: Session) -> Happened:
        session.unavailable(sensor, because)
        return "unavailable", {"sensor": sensor, "because": because}

    return _changed(stored, act)


def _changed(
    stored: Stored, act: Callable[[Model, Session], Happened]
) -> Change[Reply]:
    def change(connection: sqlite3.Connection) -> Reply:
        row = stored.find(connection)
        model, session = stored.cache.take(row)
        happened = act(model, session)
        state = session.to_dict()
        if json.dumps(state) != row.state:  # what is told twice changes nothing
            row = _went_on(connection, row, model, session, state, happened)
            connection.execute(
                "UPDATE sessions SET revision = ?, state = ?, changed = ?, ended = ?, "
                "watched = ?, receipt = ? WHERE id = ?",
                (
                    *(row.revision, row.state, row.changed, row.ended, row.watched),
                    *(row.receipt, row.id),
                ),
            )
        stored.cache.keep(row, session)
        return Reply(200, to_json(shown(row, session)))

    return change


def delete(stored: Stored) -> Change[Reply]:
    """Delete a session; its records stay in the ledger until they are pruned."""

    def change(connection: sqlite3.Connection) -> Reply:
        row = stored.find(connection)
        connection.execute("DELETE FROM sessions WHERE id = ?", (row.id,))
        connection.execute("DELETE FROM replies WHERE session = ?", (row.id,))
        ledger.append(connection, "deleted", {}, row.tenant, row.id)
        return Reply(204, b"")

    return change


def _went_on(
    connection: sqlite3.Connection,
    row: Row,
    model: Model,
    session: Session,
    state: Mapping[str, Any],
    happened: Happened,
) -> Row:
    """Record what happened, and how the session responds."""
    step = session.ask()
    responded: Happened
    if step is None:
        responded = "decided", session.decision().to_dict()
    else:
        asked = {"sensor": step.sensor, "cost": step.cost, "spent": step.spent}
        responded = "asked", asked
    for kind, body in (happened, responded):
        record = ledger.append(connection, kind, body, row.tenant, row.id)
    if step is None and not row.watched:
        # Whether it began as training rows do.
        own_prices = bool(state["prices"]) and not model.policy.sensors.varying.size
        alike = not state["known"] and state["limit"] is None and not own_prices
        seen = models.with_decision(
            models.read_watch(connection, model.version),
            model.reference,
            session.decision(),
            {one.sensor for one in session.unseen},
            alike,
        )
        models.write_watch(connection, model.version, seen)
    return replace(
        row,
        revision=row.revision + 1,
        state=json.dumps(state),
        changed=record.at,
        ended=step is None,
        watched=row.watched or step is None,
        receipt=record.receipt,
    )


# once -------------------------------------------------------------------------------------


def once(
    tenant: str, key: str | None, request: bytes, change: Change[Reply]
) -> Change[Reply]:
    """Make a change once for its key, if any: a repeated request gets the first reply.

    A key may not stand for two different requests.
    """
    if key is None:
        return change
    asked = hashlib.sha256(request).hexdigest()

    def at_most_once(connection: sqlite3.Connection) -> Reply:
        found = connection.execute(
            "SELECT request, status, body FROM replies WHERE tenant = ? AND key = ?",
            (tenant, key),
        ).fetchone()
        if found is not None:
            if found[0] != asked:
                raise RefusedError(
                    422,
                    "key-used",
                    "the Idempotency-Key was used with another request; take a new one.",
                )
            return Reply(found[1], found[2].encode())
        reply = change(connection)
        session = json.loads(reply.body)["id"] if reply.body else ""
        connection.execute(
            "INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                *(tenant, key, asked, session),
                *(reply.status, reply.body.decode(), ledger.now()),
            ),
        )
        return reply

    return at_most_once
