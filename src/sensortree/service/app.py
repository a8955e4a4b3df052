"""The application: routes, who may take them, and what they answer."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from sensortree._version import __version__
from sensortree.exceptions import SensorTreeError
from sensortree.service import ledger, metrics, pages, schemas
from sensortree.service.gate import OPEN, OUR_FAULT, Gate
from sensortree.service.limits import Limits
from sensortree.service.model_routes import add_models
from sensortree.service.problems import (
    MEDIA_TYPE,
    RefusedError,
    problem,
    refusal_of,
)
from sensortree.service.service import (
    ANY,
    Admin,
    Reader,
    Service,
    answered,
    described,
)
from sensortree.service.session_routes import add_sessions
from sensortree.service.shelf import Shelf
from sensortree.service.tokens import Tokens


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
    add_sessions(app, service)  # first, since they are asked for most
    add_models(app, service)
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
