"""Around every request: number, token, size, rate, metrics and log.

It is plain ASGI and comes before all parsing: a refused request is not read.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import re
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
)

from sensortree.exceptions import ParameterError
from sensortree.service.schemas import RefusedError, our_fault, refused
from sensortree.service.tokens import LOCAL, Caller, Tokens

LOG = logging.getLogger("sensortree.service")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Without a token, for health checks; they reveal nothing.
OPEN = frozenset({"/healthz", "/readyz"})
PATIENCE = 30.0  # seconds for a body
METHODS = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
LOOPBACK = re.compile(rb"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?")
SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]


# Seconds up to which requests are counted.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


@dataclass(frozen=True)
class Limits:
    """Limits of requests and sessions."""

    body: int = 1 << 20  # bytes of a request
    rows: int = 1_000  # of a batch
    sessions: int = 100_000  # that a tenant may have at a time
    rate: float = 1_000.0  # requests a second of each token, over time
    burst: int = 2_000  # requests of each token that may come at once

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ParameterError(
                    f"the limit of {name} must be above 0, got {value}."
                )


class Bucket:
    """A bucket of `size` permits that refills at `rate` a second, for one token."""

    def __init__(
        self, rate: float, size: float, clock: Callable[[], float] = time.monotonic
    ):
        self._rate, self._size, self._clock = rate, float(size), clock
        self._held, self._at = float(size), clock()

    def wait(self) -> float:
        """Take a permit, and return 0; or return the seconds until there is one."""
        now = self._clock()
        self._held = min(self._size, self._held + (now - self._at) * self._rate)
        self._at = now
        if self._held >= 1:
            self._held -= 1
            return 0.0
        return (1 - self._held) / self._rate


class Gate:
    """Lets requests through to an application, or refuses them.

    Without tokens, every local caller is let in.
    """

    def __init__(
        self,
        app: App,
        tokens: Tokens | None,
        limits: Limits,
        registry: CollectorRegistry,
        log_values: bool = False,
    ):
        self.app = app
        self._tokens, self._limits, self._log_values = tokens, limits, log_values
        self._buckets: dict[str, Bucket] = {}
        disable_created_metrics()  # else each series has another, of its birth
        self._count = Counter(
            "sensortree_requests_total",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "sensortree_request_seconds",
            "Seconds from a request to the end of its answer.",
            ("method", "route"),
            registry=registry,
            buckets=BUCKETS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the beginning and the end of the service."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        began, headers = time.perf_counter(), dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        own = REQUEST_ID.fullmatch(given) is not None
        request = given.decode() if own else secrets.token_hex(8)
        state = scope.setdefault("state", {})
        state["request"] = request
        status, body = 0, b""

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                more = [(b"x-request-id", request.encode()), *SAFE]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        try:
            state["caller"] = self._let_in(scope, headers)
            body = state["body"] = await read_body(receive, self._limits.body)
            await self.app(scope, replayed(body, receive), answer)
        except RefusedError as refusal:
            await refused(refusal, request)(scope, receive, answer)
        except Exception as error:  # its text may hold values: only where it was raised
            where = traceback.extract_tb(error.__traceback__)[-1]
            LOG.error(
                "%s %s at %s:%s",
                *(request, type(error).__name__, where.filename, where.lineno),
            )
            if not status:
                await refused(our_fault(), request)(scope, receive, answer)
        finally:
            self._note(scope, status, time.perf_counter() - began, request, body)

    def _let_in(self, scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        """The caller; raises a `RefusedError` if not authorised."""
        length = headers.get(b"content-length", b"0")
        if scope["path"] in OPEN:
            caller = Caller("anybody", "", frozenset())
        elif self._tokens is None:
            _check_local(headers)
            caller = LOCAL
        else:
            caller = self._known(scope, headers)
        if not length.isdigit() or int(length[:20]) > self._limits.body:
            raise _too_large(self._limits.body)
        if scope["path"] in OPEN:
            return caller
        new = Bucket(self._limits.rate, self._limits.burst)
        wait = self._buckets.setdefault(caller.name, new).wait()
        if wait:
            raise RefusedError(
                429,
                "rate",
                f"more than {self._limits.rate:g} requests a second; wait a little.",
                {"Retry-After": str(max(1, round(wait)))},
            )
        return caller

    def _known(self, scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        """The caller that a token names."""
        assert self._tokens is not None
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        path = scope["path"]  # of a page for browsers, or not
        page = path in ("/", "/watch") or path.startswith("/models/")
        page = page and scope["method"] == "GET"
        token = None
        if kind.lower() == b"bearer":
            token = given.strip().decode("latin-1")
        elif kind.lower() == b"basic" and page:
            token = _password(given)
        caller = None if token is None else self._tokens.find(token)
        if caller is None:
            # A browser asks for user and password; the token is the password.
            how = 'Basic realm="sensortree"' if page else 'Bearer realm="sensortree"'
            why = "the token is wrong." if token else "a token is needed."
            why += " Send Authorization: Bearer TOKEN."
            raise RefusedError(401, "token", why, {"WWW-Authenticate": how})
        return caller

    def _note(
        self, scope: Scope, status: int, seconds: float, request: str, body: bytes
    ) -> None:
        """Count and log a request: its route, never its path, and no values."""
        route = getattr(scope.get("route"), "path", "-")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._count.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        caller = scope["state"].get("caller")
        who = "-" if caller is None else caller.name
        LOG.info(
            "%s %s %s %d %.1f ms %s",
            *(request, method, route, status, 1e3 * seconds, who),
        )
        if self._log_values and body:
            LOG.info("%s sent %s", request, body.decode(errors="backslashreplace"))


async def read_body(receive: Receive, most: int) -> bytes:
    """The body of a request, unless it is too large or too slow."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False) and len(body) <= most:
        return body  # most come in one piece, with their headers
    parts, size = [body], len(body)
    try:
        async with asyncio.timeout(PATIENCE):
            while message.get("more_body", False) and size <= most:
                message = await receive()
                parts.append(message.get("body", b""))
                size += len(parts[-1])
    except TimeoutError as error:
        why = f"the body did not come within {PATIENCE:g} s."
        raise RefusedError(408, "slow", why, {"Connection": "close"}) from error
    if size > most:
        raise _too_large(most)
    return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """What an application receives: the body that was read, then what comes after."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


def _check_local(headers: dict[bytes, bytes]) -> None:
    """Refuse requests that another site makes a browser send."""
    host, origin = headers.get(b"host", b""), headers.get(b"origin")
    if not LOOPBACK.fullmatch(host):
        raise RefusedError(
            403, "host", "without tokens, the service answers to localhost."
        )
    if origin is not None and origin != b"http://" + host:
        raise RefusedError(403, "origin", "without tokens, no other site may ask.")


def _password(given: bytes) -> str | None:
    try:
        pair = base64.b64decode(given.strip(), validate=True)
    except binascii.Error:
        return None
    return pair.partition(b":")[2].decode("latin-1")


def _too_large(most: int) -> RefusedError:
    why = f"the body is larger than {most:,} bytes; send less at a time."
    return RefusedError(413, "too-large", why, {"Connection": "close"})
