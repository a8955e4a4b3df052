"""Routes of sessions, which are kept."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any

from fastapi import FastAPI, Header, Query, Request, Response

from sensortree.service import ledger, schemas, sessions
from sensortree.service.database import Change
from sensortree.service.service import (
    ANY,
    CHANGING,
    Asker,
    Reader,
    Service,
    answered,
    described,
)
from sensortree.service.sessions import Reply
from sensortree.service.tokens import Caller

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="The same key gives the same answer, and the change is made once.",
    ),
]
OnRevision = Annotated[
    int | None,
    Query(ge=0, le=2**53, description="The revision that is to be deleted."),
]


def add_sessions(app: FastAPI, service: Service) -> None:
    """Add the routes of sessions: begun, told, corrected, listed, deleted."""
    refusals, most = described(CHANGING), service.limits.sessions

    async def make(
        request: Request, caller: Caller, key: str | None, change: Change[Reply]
    ) -> Response:
        asked = request.scope["path"].encode() + b"\n" + request.state.body
        return await service.change(sessions.once(caller.tenant, key, asked, change))

    reply: dict[str, Any] = {
        "response_model": schemas.SessionReply,
        "responses": refusals,
    }

    @app.post("/v1/sessions/{session}/tell", **reply)
    async def tell(
        request: Request,
        id: schemas.SessionId,
        wanted: schemas.TellRequest,
        caller: Asker,
        key: Key = None,
    ) -> Response:
        """Tell the values of a sensor; other values than before are refused."""
        change = sessions.tell(
            service.warm,
            *(caller.tenant, id, wanted.revision, wanted.sensor, wanted.values),
            correct=False,
        )
        return await make(request, caller, key, change)

    @app.post("/v1/sessions", status_code=201, **reply)
    async def create_session(
        request: Request, wanted: schemas.SessionRequest, caller: Asker, key: Key = None
    ) -> Response:
        """Begin a session; it stays with the version of the model that there is now."""
        beginning = sessions.Beginning(wanted.known, wanted.limit, wanted.prices)
        model = service.model(wanted.model)
        change = sessions.create(model, caller.tenant, beginning, most)
        return await make(request, caller, key, change)

    @app.post("/v1/resume", status_code=201, **reply)
    async def resume_session(
        request: Request, wanted: schemas.ResumeRequest, caller: Asker, key: Key = None
    ) -> Response:
        """Go on with a session that was begun elsewhere, from its state."""
        model = service.model(wanted.model)
        change = sessions.take_over(model, caller.tenant, wanted.state, most)
        return await make(request, caller, key, change)

    @app.get(
        "/v1/sessions", response_model=schemas.SessionList, responses=described(ANY)
    )
    async def list_sessions(
        caller: Reader, after: schemas.After = None, limit: schemas.PageSize = 100
    ) -> Response:
        """List the sessions of the token's tenant, in the order of their beginning."""
        return answered(
            service.read(lambda c: sessions.listed(c, caller.tenant, after, limit))
        )

    @app.get("/v1/sessions/{session}", **reply)
    async def get_session(id: schemas.SessionId, caller: Reader) -> Response:
        """Give a session as it stands: what was told, what it asks for or decided."""
        row = service.read(lambda c: sessions.find(c, caller.tenant, id))
        _, session = sessions.resumed(row, service.shelf)
        return answered(sessions.shown(row, session))

    @app.get(
        "/v1/sessions/{session}/why",
        response_model=dict[str, Any],
        responses=refusals,
    )
    async def session_reason(id: schemas.SessionId, caller: Reader) -> Response:
        """Say why a session stands where it does, with every contribution."""
        row = service.read(lambda c: sessions.find(c, caller.tenant, id))
        _, session = sessions.resumed(row, service.shelf)
        why = session.step.why
        return answered({"why": None if why is None else why.to_dict()})

    @app.get(
        "/v1/sessions/{session}/state",
        response_model=dict[str, Any],
        responses=refusals,
    )
    async def session_state(id: schemas.SessionId, caller: Reader) -> Response:
        """Give the state of a session, as `Policy.resume` takes it."""
        row = service.read(lambda c: sessions.find(c, caller.tenant, id))
        return Response(row.state, media_type="application/json")

    @app.get(
        "/v1/sessions/{session}/ledger",
        response_model=schemas.Records,
        responses=described(ANY),
    )
    async def session_records(id: schemas.SessionId, caller: Reader) -> Response:
        """Give the records of a session in the ledger."""

        def query(connection: sqlite3.Connection) -> list[dict[str, Any]]:
            sessions.find(connection, caller.tenant, id)
            return [record.to_dict() for record in ledger.records(connection, id)]

        return answered({"records": service.read(query)})

    @app.post("/v1/sessions/{session}/correct", **reply)
    async def correct(
        request: Request,
        id: schemas.SessionId,
        wanted: schemas.TellRequest,
        caller: Asker,
        key: Key = None,
    ) -> Response:
        """Correct the values of a sensor; the session goes its way anew."""
        change = sessions.tell(
            service.warm,
            *(caller.tenant, id, wanted.revision, wanted.sensor, wanted.values),
            correct=True,
        )
        return await make(request, caller, key, change)

    @app.post("/v1/sessions/{session}/unavailable", **reply)
    async def unavailable(
        request: Request,
        id: schemas.SessionId,
        wanted: schemas.UnavailableRequest,
        caller: Asker,
        key: Key = None,
    ) -> Response:
        """Say that a sensor cannot be had; the session goes on without it."""
        change = sessions.unavailable(
            service.warm,
            *(caller.tenant, id, wanted.revision, wanted.sensor, wanted.because),
        )
        return await make(request, caller, key, change)

    @app.delete("/v1/sessions/{session}", status_code=204, responses=refusals)
    async def delete_session(
        id: schemas.SessionId, caller: Asker, revision: OnRevision = None
    ) -> Response:
        """Delete a session; what happened in it stays in the ledger."""
        await service.change(sessions.delete(caller.tenant, id, revision))
        return Response(status_code=204)
