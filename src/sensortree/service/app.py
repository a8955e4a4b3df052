"""The service as one application: errors in one shape, pages, and `serve`."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import logging
import sys
import warnings
from collections.abc import AsyncIterator, Callable
from functools import lru_cache, partial
from html import escape
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.routing import Match

from sensortree._version import __version__
from sensortree.exceptions import ModelFileError, ParameterError, SensorTreeError
from sensortree.page import to_page
from sensortree.reports.html import (
    STYLE,
    Markup,
    Words,
    bold,
    bullets,
    join,
    paragraph,
    section,
    table,
)
from sensortree.service import schemas
from sensortree.service.gate import OPEN, Gate, Limits
from sensortree.service.models import SHORT, SPEND, Model, Models
from sensortree.service.routes import (
    JSON,
    REFUSALS,
    Admin,
    Reader,
    Service,
    add_models,
    add_operations,
    add_sessions,
    answered,
)
from sensortree.service.schemas import RefusedError, our_fault, refusal_of, refused
from sensortree.service.tokens import Tokens

GRACE = 10  # seconds for requests that are under way when the service ends
SWITCH = 0.0005  # seconds that one thread may keep others waiting


def make_app(
    models: Models,
    database: Path,
    *,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    log_values: bool = False,
) -> Gate:
    """The whole service as an ASGI application; without tokens, for local callers."""
    service = Service(models, database, limits or Limits())

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
    add_operations(app, service)
    return Gate(app, tokens, service.limits, service.registry, log_values)


# errors -----------------------------------------------------------------------------------


def _refuse_in_one_shape(app: FastAPI) -> None:
    def http(request: Request, error: Any) -> RefusedError:
        known = {404: "there is nothing here.", 405: "this is not done that way."}
        detail = known.get(error.status_code, "the request cannot be read.")
        headers = dict(error.headers or {})
        if error.status_code == 405:  # methods of all routes that the path has
            there = [r for r in app.routes if r.matches(request.scope)[0] != Match.NONE]
            methods = [getattr(route, "methods", None) or set() for route in there]
            headers["Allow"] = ", ".join(sorted(set[str]().union(*methods)))
        return RefusedError(error.status_code, "http", detail, headers)

    def malformed(request: Request, error: Any) -> RefusedError:
        first = error.errors()[0]  # without its input, which is a value
        where = ".".join(map(str, first["loc"]))
        return RefusedError(400, "form", f"{where}: {first['msg']}.")

    refusals: dict[type[Exception], Callable[[Request, Any], RefusedError]] = {
        Exception: lambda request, error: our_fault(),  # the gate logs it
        RefusedError: lambda request, error: error,
        SensorTreeError: lambda request, error: refusal_of(error),
        HTTPException: http,
        RequestValidationError: malformed,
    }
    for kind, refusal_for in refusals.items():
        app.add_exception_handler(kind, partial(_respond, refusal_for))


async def _respond(
    refusal_for: Callable[[Request, Any], RefusedError], request: Request, error: Any
) -> Response:
    """Answer with the refusal of an error."""
    return refused(refusal_for(request, error), request.state.request)


def description(app: FastAPI, models: Models) -> dict[str, Any]:
    """The OpenAPI document, with tokens, refusals and real examples."""
    document = app.openapi()
    parts = document["components"]
    forms = parts["schemas"]
    forms["Problem"] = schemas.Problem.model_json_schema()
    for name in ("HTTPValidationError", "ValidationError"):
        forms.pop(name, None)
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    model = models.current[0]
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


# pages ------------------------------------------------------------------------------------


def _add_pages(app: FastAPI, service: Service) -> None:
    # A page loads and runs nothing from elsewhere; that of a model declares its own script.
    html: dict[str, Any] = {"response_class": HTMLResponse, "responses": REFUSALS}

    @app.get("/", **html)
    async def start(caller: Reader) -> Response:
        """Show the page of the model, or a list of pages."""
        models = service.models.current
        if len(models) == 1:
            return HTMLResponse(await run_in_threadpool(page_of, models[0]))
        links = [
            Markup(f'<a href="/models/{escape(m.name)}">{escape(m.name)}</a> ')
            for m in models
        ]
        targets = [model.policy.about.target for model in models]
        return HTMLResponse(_page("Models", bullets(map(join, links, targets))))

    @app.get("/models/{model}", **html)
    async def page(name: schemas.ModelName, caller: Reader) -> Response:
        """Show the page of one model."""
        model = service.model(name)
        return HTMLResponse(await run_in_threadpool(page_of, model))

    @app.get("/watch", **html)
    async def watch_page(caller: Admin) -> Response:
        """Show all models in use, compared with their training."""
        seen = [_watched(m, service.watched(m)) for m in service.models.versions]
        return HTMLResponse(_page("Models in use", "".join(seen)))

    @app.get("/openapi.json", **JSON)
    async def openapi(caller: Reader) -> Response:
        """Describe the API."""
        return answered(description(app, service.models))


COUNTS = ("bought", "unavailable", "unseen")


@lru_cache(maxsize=32)
def page_of(model: Model) -> str:
    """The page that asks for the sensors of a model."""
    try:
        return to_page(model.saved)
    except ModelFileError as error:
        why = f"<p>{escape(str(error))}</p>"
        return _page(model.name, f"{why}<p>The API answers at <code>/v1</code>.</p>")


def _watched(model: Model, seen: dict[str, Any]) -> str:
    """What was seen of one model in use, compared with its training."""
    quantities = seen["quantities"]
    n_alarms = sum(one["alarm"] is not None for one in quantities)
    alarms = f"{n_alarms} of {len(quantities)} quantities are not as in training."
    money = model.policy.about.money(seen["spent"])
    parts = [
        f'<div role="alert">{paragraph(bold(alarms))}</div>'
        if n_alarms
        else paragraph("No alarm."),
        paragraph(
            f"{seen['decided']:,} sessions decided, {seen['compared']:,} compared with "
            f"training; {money} spent."
        ),
        table(
            "Compared with training",
            ("quantity", "in training", "between", "in use", "evidence", "alarm"),
            map(_quantity, quantities),
        ),
        table(
            "By sensor",
            ("sensor", "bought", "unavailable", "values never seen"),
            [
                [name, *(f"{seen[key].get(name, 0):,}" for key in COUNTS)]
                for name in model.policy.sensors.names
            ],
        ),
    ]
    return section(f"{model.name} {model.version[:SHORT]}", parts)


def _quantity(one: dict[str, Any]) -> list[Words]:
    """The cells of one quantity."""

    def shown(number: float) -> str:
        return f"{number:.4g}" if one["quantity"] == SPEND else f"{number:.1%}"

    return [
        one["quantity"],
        shown(one["training"]),
        f"{shown(one['low'])} – {shown(one['high'])}",
        "–" if one["observed"] is None else shown(one["observed"]),
        f"{max(one['evidence'], 0):.0%}",
        "no"
        if one["alarm"] is None
        else bold(f"{one['direction']}, from session {one['alarm']:,}"),
    ]


def _page(title: str, body: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )


# run -------------------------------------------------------------------------------------


def serve(
    models: Models,
    database: Path,
    host: str,
    port: int,
    tokens: Tokens,
    limits: Limits,
    log_values: bool,
) -> None:
    """Serve models until a signal ends it; without tokens, on loopback only."""
    if not len(tokens) and not is_loopback(host):
        raise ParameterError(
            f"on {host} others can reach the service, so that it needs tokens; make one "
            f"with `sensortree token`, and give it with --token-file."
        )
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s"
    )
    warnings.simplefilter("ignore")  # what training never saw is counted by the watch
    sys.setswitchinterval(SWITCH)
    app = make_app(
        models,
        database,
        tokens=tokens if len(tokens) else None,
        limits=limits,
        log_values=log_values,
    )
    gc.collect()
    gc.freeze()  # what stays for good is not looked through again and again
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
        ws="none",
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
