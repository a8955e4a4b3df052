"""The application: routes, who may take them, and what they answer."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, FastAPI, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from sensortree._version import __version__
from sensortree.exceptions import SensorTreeError
from sensortree.persistence.saved import SavedModel
from sensortree.service import ledger, metrics, pages, schemas, sessions, watch
from sensortree.service.database import Change, Writer, open_to_read, storage_error
from sensortree.service.gate import OPEN, OUR_FAULT, Gate
from sensortree.service.limits import Limits
from sensortree.service.problems import (
    MEDIA_TYPE,
    RefusedError,
    problem,
    refusal_of,
    to_json,
)
from sensortree.service.sessions import Reply
from sensortree.service.shelf import Model, Shelf
from sensortree.service.tokens import Caller, Scope, Tokens
from sensortree.text import listed as named
from sensortree.text import plain

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


def make_app(
    shelf: Shelf,
    database: Path,
    *,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    log_values: bool = False,
) -> Gate:
    """The whole service as an ASGI application.

    Parameters
    ----------
    shelf : Shelf
    database : Path
    tokens : Tokens, default=None
        None lets in whoever comes by loopback.
    limits : Limits, default=None
    log_values : bool, default=False
    """
    service = Service(shelf, database, limits or Limits())

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await run_in_threadpool(service.close)

    app = FastAPI(
        title="sensortree",
        version=__version__,
        description="Which measurement to buy next, and when to stop.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
    )
    _refuse_in_one_shape(app)
    _add_sessions(app, service)  # first, since they are asked for most
    _add_models(app, service)
    _add_pages(app, service)
    _add_operations(app, service)
    return Gate(app, tokens, service.limits, service.requests, log_values)


# errors -----------------------------------------------------------------------------------


def _refuse_in_one_shape(app: FastAPI) -> None:
    def respond(request: Request, refusal: RefusedError) -> Response:
        return Response(
            problem(refusal, request.state.request),
            refusal.status,
            refusal.headers,
            MEDIA_TYPE,
        )

    async def refused(request: Request, error: Any) -> Response:
        return respond(request, error)

    async def library(request: Request, error: Any) -> Response:
        return respond(request, refusal_of(error))

    async def http(request: Request, error: Any) -> Response:
        said = {404: "there is nothing here.", 405: "this is not done that way."}
        detail = said.get(error.status_code, "the request cannot be read.")
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(_methods(app, request))
        refusal = RefusedError(error.status_code, "http", detail, headers)
        return respond(request, refusal)

    async def malformed(request: Request, error: Any) -> Response:
        first = error.errors()[0]  # without its input, which is a value
        where = ".".join(map(str, first["loc"]))
        return respond(request, RefusedError(400, "form", f"{where}: {first['msg']}."))

    async def failed(request: Request, error: Any) -> Response:
        return respond(request, RefusedError(500, "internal", OUR_FAULT))

    app.add_exception_handler(Exception, failed)  # the gate logs it
    app.add_exception_handler(RefusedError, refused)
    app.add_exception_handler(SensorTreeError, library)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, malformed)


def _methods(app: FastAPI, request: Request) -> list[str]:
    """Methods of all routes that a path has."""
    found: set[str] = set()
    for route in app.routes:
        if route.matches(request.scope)[0] != Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return sorted(found)


def described(statuses: tuple[int, ...]) -> dict[int | str, dict[str, Any]]:
    """Refusals for the description of the API."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": "Refused.", "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted(statuses)
    }


# models -----------------------------------------------------------------------------------


def _add_models(app: FastAPI, service: Service) -> None:
    refusals = described(ANY)

    @app.get("/v1/models", response_model=schemas.Models, responses=refusals)
    async def list_models(caller: Reader) -> Response:
        """List the models, the current version of each."""
        cards = [model.card() for model in service.shelf.current]
        return answered({"models": cards})

    @app.get("/v1/models/{model}", response_model=schemas.ModelCard, responses=refusals)
    async def model_card(name: schemas.ModelName, caller: Reader) -> Response:
        """Give what a model is about: sensors, prices, classes, held-out score."""
        return answered(plain(service.model(name).card()))

    @app.post(
        "/v1/models/{model}/step", response_model=schemas.StepReply, responses=refusals
    )
    async def step(
        name: schemas.ModelName, wanted: schemas.StepRequest, caller: Asker
    ) -> Response:
        """Say what to do next by what is known; nothing is kept."""
        model = service.model(name)
        policy = model.policy
        found = policy.step(
            model.as_written(wanted.known),
            unavailable=wanted.unavailable,
            limit=wanted.limit,
            prices=wanted.prices,
            free=wanted.free,
        )
        said = found.to_dict()
        decision = None
        if found.sensor is None:
            label = policy.classes[policy.loss.answer(found.proba[None])[0]]
            decision = {
                "label": plain(label),
                "proba": said["proba"],
                "spent": found.spent,
                "referred": found.referred,
            }
        return answered({"step": said, "decision": decision})

    @app.post(
        "/v1/models/{model}/answers", response_model=schemas.Answers, responses=refusals
    )
    async def answers(
        name: schemas.ModelName, wanted: schemas.AnswersRequest, caller: Asker
    ) -> Response:
        """Answer whole rows with what the model buys of each; nothing is kept."""
        if len(wanted.rows) > service.limits.rows:
            said = f"more than {service.limits.rows:,} rows; send fewer at a time."
            raise RefusedError(422, "rows", said)
        saved = service.model(name).saved
        found = await run_in_threadpool(
            lambda: [_answer(saved, *row) for row in enumerate(wanted.rows)]
        )
        return answered({"answers": found})

    @app.post(
        "/v1/models/{model}/explanation",
        response_model=dict[str, Any],
        responses=refusals,
    )
    async def explanation(
        name: schemas.ModelName, wanted: schemas.ExplanationRequest, caller: Asker
    ) -> Response:
        """Explain the way of one row: every node, what decided, what it cost."""
        saved = service.model(name).saved
        columns = saved.sensors_.column_names
        _check_columns(wanted.values, columns)
        values = saved.written_.of_columns(wanted.values)
        row = [values.get(column) for column in columns]
        filled = np.array([np.nan if v is None else v for v in row], dtype=object)
        found = await run_in_threadpool(saved.explain, filled)
        return answered(plain(found.to_dict()))


def _check_columns(values: dict[str, Any], columns: tuple[str, ...]) -> None:
    for column in values:
        if column not in columns:
            raise RefusedError(
                422,
                "values",
                f"{column!r} is no column of the model; it reads {named(columns)}.",
            )


def _answer(saved: SavedModel, number: int, row: schemas.Example) -> dict[str, Any]:
    """Buy what the model asks for of a row that is there, and decide."""
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


# sessions ---------------------------------------------------------------------------------


def _add_sessions(app: FastAPI, service: Service) -> None:
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


# pages ------------------------------------------------------------------------------------


def _add_pages(app: FastAPI, service: Service) -> None:
    html: dict[str, Any] = {
        "response_class": pages.HTML,
        "responses": described(ANY),
    }

    @app.get("/", **html)
    async def start(caller: Reader) -> Response:
        """Ask in a browser: the page of the model, or a list of pages."""
        models = service.shelf.current
        if len(models) == 1:
            return pages.HTML(await run_in_threadpool(pages.of_model, models[0]))
        return pages.HTML(pages.list_of(models))

    @app.get("/models/{model}", **html)
    async def page(name: schemas.ModelName, caller: Reader) -> Response:
        """Ask one model in a browser."""
        model = service.model(name)
        return pages.HTML(await run_in_threadpool(pages.of_model, model))

    @app.get("/watch", **html)
    async def watch_page(caller: Admin) -> Response:
        """Look at all models in use, beside their training."""
        seen = [(model, service.watched(model)) for model in service.shelf.models]
        return pages.HTML(pages.of_watch(seen))


# operations -------------------------------------------------------------------------------


def _add_operations(app: FastAPI, service: Service) -> None:
    @app.get(
        "/v1/models/{model}/watch",
        response_model=dict[str, Any],
        responses=described(ANY),
    )
    async def model_watch(name: schemas.ModelName, caller: Admin) -> Response:
        """Give what was seen of a model in use, beside its training."""
        return answered(service.watched(service.model(name)))

    @app.get("/v1/ledger", response_model=schemas.LedgerHead, responses=described(ANY))
    async def ledger_head(caller: Admin) -> Response:
        """Give the receipt of the last record, to be noted elsewhere."""
        number, digest = service.read(ledger.last)
        return answered({"records": number, "receipt": f"{number}:{digest}"})

    @app.get(
        "/metrics",
        responses={
            200: {"content": {metrics.MEDIA_TYPE: {"schema": {"type": "string"}}}},
            **described(ANY),
        },
        response_class=Response,
    )
    async def prometheus(caller: Admin) -> Response:
        """Give counts and times for Prometheus."""
        seen = [
            (model.name, model.version, service.watched(model))
            for model in service.shelf.models
        ]
        text = service.requests.text() + metrics.watch_text(seen)
        return Response(text, headers={"Content-Type": metrics.MEDIA_TYPE})

    @app.get("/healthz", response_model=schemas.Health, responses=described((405,)))
    async def alive() -> Response:
        """Say that the service is there."""
        return answered({"status": "ok"})

    @app.get(
        "/readyz",
        response_model=schemas.Health,
        responses=described((405, 503, 507)),
    )
    async def ready() -> Response:
        """Say that the database can be written."""
        await service.check()
        return answered({"status": "ok"})

    @app.get("/openapi.json", response_model=dict[str, Any], responses=described(ANY))
    async def openapi(caller: Reader) -> Response:
        """Describe the API."""
        return answered(description(app, service.shelf))


def description(app: FastAPI, shelf: Shelf) -> dict[str, Any]:
    """The OpenAPI document: with tokens, refusals, and examples that are there."""
    document = app.openapi()
    parts = document["components"]
    forms = parts["schemas"]
    forms["Problem"] = schemas.Problem.model_json_schema()
    for name in ("HTTPValidationError", "ValidationError"):
        forms.pop(name, None)
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    model = shelf.current[0]
    sensor = model.policy.sensors.names[0]
    for form in ("SessionRequest", "ResumeRequest"):
        forms[form]["properties"]["model"]["examples"] = [model.name]
    for form in ("TellRequest", "UnavailableRequest"):
        forms[form]["properties"]["sensor"]["examples"] = [sensor]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["security"] = [] if path in OPEN else [{"token": []}]
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "model":
                    parameter["example"] = model.name
    return document
