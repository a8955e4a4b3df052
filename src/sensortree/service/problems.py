"""Every error in one shape: application/problem+json (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from sensortree.exceptions import SensorTreeError, SessionError, StorageError

MEDIA_TYPE = "application/problem+json"
# What SQLite names when there is no room.
FULL = "SQLITE_FULL"


class RefusedError(Exception):
    """A request that is not done.

    Parameters
    ----------
    status : int
        HTTP status.
    kind : str
        One word or two that programs can tell refusals apart by.
    detail : str
        What was expected, what came, what to do.
    headers : mapping of str to str, default=None
    """

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
    ):
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.headers = dict(headers or {})


def refusal_of(error: SensorTreeError) -> RefusedError:
    """What an error of the library means to whoever asked."""
    if isinstance(error, StorageError):
        if error.code == FULL:
            return RefusedError(
                507, "storage-full", "the storage of the service is full."
            )
        said = "the storage of the service cannot be used now; try again later."
        return RefusedError(503, "storage", said, {"Retry-After": "5"})
    if isinstance(error, SessionError):
        return RefusedError(409, "session", str(error))
    return RefusedError(422, "values", str(error))


def problem(refusal: RefusedError, request: str) -> bytes:
    """The document of a refusal; `request` is the number of what was asked."""
    document = {
        "type": f"urn:sensortree:problem:{refusal.kind}",
        "title": HTTPStatus(refusal.status).phrase,
        "status": refusal.status,
        "detail": refusal.detail,
        "request": request,
    }
    return to_json(document)


def to_json(document: Any) -> bytes:
    """A document in ASCII, whatever texts are in it."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
