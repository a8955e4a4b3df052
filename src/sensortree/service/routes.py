"""The routes: sessions, which are kept; models; and operations of the service."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, FastAPI, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from sensortree.exceptions import SensorTreeError, SessionError
from sensortree.persistence.saved import SavedModel
from sensortree.policy.session import Session
from sensortree.service import ledger, schemas, sessions
from sensortree.service.database import Change, Writer, open_to_read, storage_error
from sensortree.service.gate import Limits
from sensortree.service.models import SHORT, Model, Models, read_watch, summary
from sensortree.service.schemas import PROBLEM_TYPE, RefusedError, to_json
from sensortree.service.sessions import Reply
from sensortree.service.tokens import Caller, Scope
from sensortree.text import listed, plain

# Refusals that every route may give, and those of routes that take values or change.
ANY = (400, 401, 403, 404, 405, 408, 413, 422, 429, 500, 503)
CHANGING = (*ANY, 409, 507)


def answered(document: Any, status: int = 200) -> Response:
    """A response that holds a document."""
    return Response(to_json(document), status, media_type="application/json")


def described(statuses: tuple[int, ...]) -> dict[int | str, dict[str, Any]]:
    """Refusals for the description of the API."""
    schema = {"$ref": "#/components/schemas/Problem"}
    content = {PROBLEM_TYPE: {"schema": schema}}
    return {
        status: {"description": "Refused.", "content": content}
        for status in sorted(statuses)
    }


REFUSALS = described(ANY)


def gives(form: Any, refusals: Any = REFUSALS) -> dict[str, Any]:
    """What a route gives, and what it refuses, for the description of the API."""
    return {"response_model": form, "responses": refusals}


JSON = gives(dict[str, Any])


def needs(scope: Scope) -> Any:
    """The caller, if the token has a scope."""

    async def check(request: Request) -> Caller:
        caller: Caller = request.state.caller
        if scope not in caller.scopes:
            why = f"the token has no scope {scope!r}, which this needs."
            raise RefusedError(403, "scope", why)
        return caller

    return Depends(check)


Reader = Annotated[Caller, needs("read")]
Asker = Annotated[Caller, needs("ask")]
Admin = Annotated[Caller, needs("admin")]
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


class Service:
    """Models, database and counts: what the routes work with."""

    def __init__(self, models: Models, database: Path, limits: Limits):
        self.models, self.limits = models, limits
        for model in models.versions:  # what takes a while is done before it is asked
            model.prepare()
        self.cache = sessions.SessionCache(models)
        self.registry = CollectorRegistry()
        self.registry.register(self)  # which calls `collect`
        self._database, self._written = database, -math.inf
        self._writer = Writer(database)
        self._reader, self._turn = open_to_read(database), Lock()

    def close(self) -> None:
        """Finish pending changes, and close the database."""
        self._writer.close()
        self._reader.close()

    def model(self, name: str) -> Model:
        """A model by its name."""
        found = self.models.find(name)
        if found is None:
            there = listed(model.name for model in self.models.current)
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
        """Check that the database can be written, at most once a second."""

        def sign_of_life(connection: sqlite3.Connection) -> None:
            now = ledger.now()
            connection.execute("INSERT OR REPLACE INTO alive VALUES (1, ?)", (now,))

        if time.monotonic() > self._written + 1:
            await asyncio.wrap_future(self._writer.change(sign_of_life))
            self._written = time.monotonic()

    def watched(self, model: Model) -> dict[str, Any]:
        """What was seen of a model in use."""
        seen = self.read(lambda connection: read_watch(connection, model.version))
        return summary(model.reference, seen)

    def collect(self) -> Iterable[Metric]:
        """Give Prometheus what was seen of models in use."""
        of = ("model", "version")
        counts = {
            key: CounterMetricFamily(
                f"sensortree_{key}", f"Sessions {what}.", labels=labels
            )
            for key, what, labels in [
                ("decided", "decided", of),
                ("compared", "compared with training", of),
                ("bought", "that bought a sensor", (*of, "sensor")),
                ("unavailable", "that could not have a sensor", (*of, "sensor")),
                ("unseen", "told values that training never saw", (*of, "sensor")),
                ("answers", "that gave an answer", (*of, "answer")),
            ]
        }
        spent = CounterMetricFamily(
            "sensortree_spent", "Cost of all sessions.", labels=of
        )
        drift = {
            key: GaugeMetricFamily(
                f"sensortree_drift_{key}", help, labels=(*of, "quantity")
            )
            for key, help in {
                "training": "Mean in training.",
                "observed": "Mean in use.",
                "evidence": "Evidence of drift; an alarm at 1.",
                "alarm": "Whether there was an alarm.",
            }.items()
        }
        for model in self.models.versions:
            who, seen = (model.name, model.version[:SHORT]), self.watched(model)
            spent.add_metric(who, seen["spent"])
            for key, family in counts.items():
                by_label = seen[key]
                if isinstance(by_label, int):
                    family.add_metric(who, by_label)
                    continue
                for label, count in by_label.items():
                    family.add_metric((*who, label), count)
            for one in seen["quantities"]:
                values = {**one, "alarm": one["alarm"] is not None}
                for key, gauge in drift.items():
                    if values[key] is not None:
                        gauge.add_metric((*who, one["quantity"]), values[key])
        yield from (*counts.values(), spent, *drift.values())


# sessions ---------------------------------------------------------------------------------


def add_sessions(app: FastAPI, service: Service) -> None:
    """Add the routes of sessions: begun, told, corrected, listed, deleted."""
    refusals, most = described(CHANGING), service.limits.sessions
    reply = gives(schemas.SessionReply, refusals)

    async def make(
        request: Request, caller: Caller, key: str | None, change: Change[Reply]
    ) -> Response:
        asked = request.scope["path"].encode() + b"\n" + request.state.body
        return await service.change(sessions.once(caller.tenant, key, asked, change))

    def stored(caller: Caller, id: str, revision: int | None) -> sessions.Stored:
        return sessions.Stored(service.cache, caller.tenant, id, revision)

    def row_of(caller: Caller, id: str) -> sessions.Row:
        found: sessions.Row = service.read(
            lambda connection: sessions.find(connection, caller.tenant, id)
        )
        return found

    @app.post("/v1/sessions/{session}/tell", **reply)
    async def tell(
        request: Request,
        id: schemas.SessionId,
        wanted: schemas.TellRequest,
        caller: Asker,
        key: Key = None,
    ) -> Response:
        """Tell the values of a sensor; other values than before are refused."""
        session = stored(caller, id, wanted.revision)
        change = sessions.tell(session, wanted.sensor, wanted.values, correct=False)
        return await make(request, caller, key, change)

    @app.post("/v1/sessions", status_code=201, **reply)
    async def create_session(
        request: Request, wanted: schemas.SessionRequest, caller: Asker, key: Key = None
    ) -> Response:
        """Begin a session; it stays with the current version of the model."""
        model = service.model(wanted.model)

        def begin() -> Session:
            known = model.as_written(wanted.known or {})
            return model.policy.session(known, wanted.limit, wanted.prices)

        change = sessions.begun(model, caller.tenant, begin, most)
        return await make(request, caller, key, change)

    @app.post("/v1/resume", status_code=201, **reply)
    async def resume_session(
        request: Request, wanted: schemas.ResumeRequest, caller: Asker, key: Key = None
    ) -> Response:
        """Continue a session that was begun elsewhere, from its state."""
        model = service.model(wanted.model)

        def begin() -> Session:
            try:
                return model.policy.resume(wanted.state)
            except SessionError as error:
                raise RefusedError(422, "state", str(error)) from error

        change = sessions.begun(model, caller.tenant, begin, most)
        return await make(request, caller, key, change)

    @app.get("/v1/sessions", **gives(schemas.SessionList))
    async def list_sessions(
        caller: Reader, after: schemas.After = None, limit: schemas.PageSize = 100
    ) -> Response:
        """List the sessions of the token's tenant, oldest first."""
        return answered(
            service.read(lambda c: sessions.listed(c, caller.tenant, after, limit))
        )

    @app.get("/v1/sessions/{session}", **reply)
    async def get_session(id: schemas.SessionId, caller: Reader) -> Response:
        """Give a session: what was told, and what it asks for or decided."""
        row = row_of(caller, id)
        _, session = sessions.resumed(row, service.models)
        return answered(sessions.shown(row, session))

    @app.get("/v1/sessions/{session}/why", **JSON)
    async def session_reason(id: schemas.SessionId, caller: Reader) -> Response:
        """Explain the current step of a session, with every contribution."""
        _, session = sessions.resumed(row_of(caller, id), service.models)
        why = session.step.why
        return answered({"why": None if why is None else why.to_dict()})

    @app.get("/v1/sessions/{session}/state", **JSON)
    async def session_state(id: schemas.SessionId, caller: Reader) -> Response:
        """Give the state of a session, as `Policy.resume` takes it."""
        return Response(row_of(caller, id).state, media_type="application/json")

    @app.get("/v1/sessions/{session}/ledger", **gives(schemas.Records))
    async def session_records(id: schemas.SessionId, caller: Reader) -> Response:
        """Give the records of a session in the ledger."""
        row_of(caller, id)
        records = service.read(
            lambda c: [record.to_dict() for record in ledger.records(c, id)]
        )
        return answered({"records": records})

    @app.post("/v1/sessions/{session}/correct", **reply)
    async def correct(
        request: Request,
        id: schemas.SessionId,
        wanted: schemas.TellRequest,
        caller: Asker,
        key: Key = None,
    ) -> Response:
        """Correct the values of a sensor; the session is replayed with them."""
        session = stored(caller, id, wanted.revision)
        change = sessions.tell(session, wanted.sensor, wanted.values, correct=True)
        return await make(request, caller, key, change)

    @app.post("/v1/sessions/{session}/unavailable", **reply)
    async def unavailable(
        request: Request,
        id: schemas.SessionId,
        wanted: schemas.UnavailableRequest,
        caller: Asker,
        key: Key = None,
    ) -> Response:
        """Report a sensor as unavailable; the session goes on without it."""
        session = stored(caller, id, wanted.revision)
        change = sessions.unavailable(session, wanted.sensor, wanted.because)
        return await make(request, caller, key, change)

    @app.delete("/v1/sessions/{session}", status_code=204, responses=refusals)
    async def delete_session(
        id: schemas.SessionId, caller: Asker, revision: OnRevision = None
    ) -> Response:
        """Delete a session; what happened in it stays in the ledger."""
        await service.change(sessions.delete(stored(caller, id, revision)))
        return Response(status_code=204)


# models -----------------------------------------------------------------------------------


def add_models(app: FastAPI, service: Service) -> None:
    """Add the routes that keep nothing: models, steps, answers, explanations."""

    @app.get("/v1/models", **gives(schemas.Models))
    async def list_models(caller: Reader) -> Response:
        """List the models, the current version of each."""
        cards = [model.card() for model in service.models.current]
        return answered({"models": cards})

    @app.get("/v1/models/{model}", **gives(schemas.ModelCard))
    async def model_card(name: schemas.ModelName, caller: Reader) -> Response:
        """Give what a model is about: sensors, prices, classes, held-out score."""
        return answered(plain(service.model(name).card()))

    @app.post("/v1/models/{model}/step", **gives(schemas.StepReply))
    async def step(
        name: schemas.ModelName, wanted: schemas.StepRequest, caller: Asker
    ) -> Response:
        """Say what to do next, from what is known; nothing is kept."""
        model = service.model(name)
        policy = model.policy
        found = policy.step(
            model.as_written(wanted.known),
            unavailable=wanted.unavailable,
            limit=wanted.limit,
            prices=wanted.prices,
            free=wanted.free,
        )
        next_step = found.to_dict()
        decision = None
        if found.sensor is None:
            label = policy.classes[policy.loss.answer(found.proba[None])[0]]
            decision = {
                "label": plain(label),
                "proba": next_step["proba"],
                "spent": found.spent,
                "referred": found.referred,
            }
        return answered({"step": next_step, "decision": decision})

    @app.post("/v1/models/{model}/answers", **gives(schemas.Answers))
    async def answers(
        name: schemas.ModelName, wanted: schemas.AnswersRequest, caller: Asker
    ) -> Response:
        """Answer whole rows, using only what the model buys; nothing is kept."""
        if len(wanted.rows) > service.limits.rows:
            why = f"more than {service.limits.rows:,} rows; send fewer at a time."
            raise RefusedError(422, "rows", why)
        saved = service.model(name).saved
        found = await run_in_threadpool(
            lambda: [_answer(saved, *row) for row in enumerate(wanted.rows)]
        )
        return answered({"answers": found})

    @app.post("/v1/models/{model}/explanation", **JSON)
    async def explanation(
        name: schemas.ModelName, wanted: schemas.ExplanationRequest, caller: Asker
    ) -> Response:
        """Explain the path of one row: every node, its reasons and its cost."""
        saved = service.model(name).saved
        columns = saved.sensors_.column_names
        _check_columns(wanted.values, columns)
        values = {c: saved.value_of(c, v) for c, v in wanted.values.items()}
        row = [values.get(column) for column in columns]
        filled = np.array([np.nan if v is None else v for v in row], dtype=object)
        found = await run_in_threadpool(saved.explain, filled)
        return answered(plain(found.to_dict()))


def _check_columns(values: dict[str, Any], columns: tuple[str, ...]) -> None:
    for column in values:
        if column not in columns:
            why = f"{column!r} is no column of the model; it reads {listed(columns)}."
            raise RefusedError(422, "values", why)


def _answer(saved: SavedModel, number: int, row: schemas.Example) -> dict[str, Any]:
    """Buy what the model asks for from a given row, and decide."""
    policy = saved.policy_
    _check_columns(row.values, policy.sensors.column_names)

    def look_up(sensor: str, columns: tuple[str, ...]) -> Any:
        if not any(column in row.values for column in columns):
            return None  # cannot be had
        told = {column: row.values.get(column) for column in columns}
        return saved.as_written(sensor, told)

    try:
        return policy.acquire(look_up, limit=row.limit, prices=row.prices).to_dict()
    except SensorTreeError as error:
        raise RefusedError(422, "values", f"row {number}: {error}") from error


# the service ------------------------------------------------------------------------------


def add_operations(app: FastAPI, service: Service) -> None:
    """Add the routes for operators: watch, ledger, metrics, health."""

    @app.get("/v1/models/{model}/watch", **JSON)
    async def model_watch(name: schemas.ModelName, caller: Admin) -> Response:
        """Compare a model in use with its training."""
        return answered(service.watched(service.model(name)))

    @app.get("/v1/ledger", **gives(schemas.LedgerHead))
    async def ledger_head(caller: Admin) -> Response:
        """Give the receipt of the last record, for you to keep elsewhere."""
        number, digest = service.read(ledger.last)
        return answered({"records": number, "receipt": f"{number}:{digest}"})

    @app.get(
        "/metrics",
        responses={
            200: {"content": {CONTENT_TYPE_LATEST: {"schema": {"type": "string"}}}},
            **REFUSALS,
        },
        response_class=Response,
    )
    async def metrics(caller: Admin) -> Response:
        """Give counts and times for Prometheus."""
        headers = {"Content-Type": CONTENT_TYPE_LATEST}
        return Response(generate_latest(service.registry), headers=headers)

    @app.get("/healthz", **gives(schemas.Health, described((405,))))
    async def alive() -> Response:
        """Say that the service is running."""
        return answered({"status": "ok"})

    @app.get("/readyz", **gives(schemas.Health, described((405, 503, 507))))
    async def ready() -> Response:
        """Say that the database can be written."""
        await service.check()
        return answered({"status": "ok"})
