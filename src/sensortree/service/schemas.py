"""What requests, answers and refusals look like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from sensortree.exceptions import SensorTreeError, SessionError, StorageError

PROBLEM_TYPE = "application/problem+json"
FULL = "SQLITE_FULL"  # what SQLite says when there is no room

# One value of a table; null is a value that is missing.
Value = bool | int | float | str | None
Values = dict[str, Value] | list[Value]
Prices = dict[str, float | None]

ModelName = Annotated[
    str,
    Path(
        alias="model",
        max_length=200,
        description="Name of a model, or NAME@VERSION, of which 8 digits are enough.",
    ),
]
SessionId = Annotated[
    str, Path(alias="session", pattern=r"^[A-Za-z0-9_-]{22}$", description="A session.")
]
After = Annotated[
    str | None,
    Query(
        pattern=r"^[A-Za-z0-9_-]{22}$",
        description="Session that the page goes on after.",
    ),
]
PageSize = Annotated[int, Query(ge=1, le=500, description="Most that are listed.")]


def _whole(number: Any) -> Any:
    """An integer that JSON has written as 3.0."""
    whole = isinstance(number, float) and number.is_integer()
    return int(number) if whole else number


# At most what every JSON reader holds exactly; a revision never comes near.
Revision = Annotated[
    Annotated[int, Field(ge=0, le=2**53), BeforeValidator(_whole)] | None,
    Field(
        description="The revision that is to be changed; 409 if there is a later one."
    ),
]


class Request(BaseModel):
    """A request body; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class Terms(Request):
    """What one example may spend, and its prices."""

    limit: float | None = Field(None, ge=0, description="The most that may be spent.")
    prices: Prices | None = Field(
        None, description="Prices of this example, by sensor."
    )


class StepRequest(Terms):
    """What is known of one example."""

    known: dict[str, Values] = Field(
        default_factory=dict, description="Values by sensor: by column, or in order."
    )
    unavailable: list[str] = Field(
        default_factory=list, description="Sensors that cannot be had."
    )
    free: list[str] = Field(
        default_factory=list, description="Known sensors that were not paid for."
    )


class Example(Terms):
    """One row: values by column. Columns left out are unavailable."""

    values: dict[str, Value]


class AnswersRequest(Request):
    """Rows that are to be answered."""

    rows: list[Example]


class ExplanationRequest(Request):
    """One row that is to be explained: values by column."""

    values: dict[str, Value]


class SessionRequest(Terms):
    """How a session begins."""

    model: str = Field(max_length=200, description="Name, or NAME@VERSION.")
    known: dict[str, Values] | None = None


class ResumeRequest(Request):
    """A session that was begun elsewhere: the unsigned result of `Session.to_dict`."""

    model: str = Field(max_length=200, description="Name, or NAME@VERSION.")
    state: dict[str, Any]


class TellRequest(Request):
    """Values of a sensor."""

    sensor: str
    values: Values
    revision: Revision = None


class UnavailableRequest(Request):
    """A sensor that is unavailable."""

    sensor: str
    because: str | None = Field(None, max_length=500)
    revision: Revision = None


# answers ----------------------------------------------------------------------------------


class SensorCard(BaseModel):
    """A sensor of a model."""

    name: str
    columns: list[str]
    cost: float
    price_differs: bool


class ModelCard(BaseModel):
    """What a model is about."""

    name: str
    version: str
    target: str
    unit: str
    fitted: str
    rows: int | None
    classes: list[str]
    held_out: dict[str, float] | None
    max_cost: float | None
    sensors: list[SensorCard]


class Models(BaseModel):
    """The models, the current version of each."""

    models: list[ModelCard]


class NextStep(BaseModel):
    """What to do next; see `Step`."""

    action: str
    sensor: str | None
    sensors: list[str]
    columns: list[str]
    cost: float
    spent: float
    worst_case_remaining: float
    proba: dict[str, float]
    referred: bool = False


class SessionStep(NextStep):
    """What to do next in a session, and why in a sentence."""

    why: str | None


class StepAnswer(NextStep):
    """What to do next, and why with every contribution."""

    why: dict[str, Any] | None


class Answered(BaseModel):
    """The answer from what is known."""

    label: Value
    proba: dict[str, float]
    spent: float
    referred: bool = False


class StepReply(BaseModel):
    """The next step, or the answer."""

    step: StepAnswer
    decision: Answered | None


class DecisionAnswer(Answered):
    """The answer of a session; see `Decision`."""

    saved: float
    acquired: list[str]
    place: int
    stopped_because: str
    rerouting_loss: float
    unavailable: dict[str, str | None]
    around: str | None = None


class Answers(BaseModel):
    """Answers, in the order of the rows."""

    answers: list[DecisionAnswer]


class SessionHead(BaseModel):
    """A session in a list."""

    id: str
    model: str
    version: str
    revision: int
    created: str
    changed: str
    decided: bool
    receipt: str


class SessionReply(SessionHead):
    """A session: what was told, what it asks for, or what it decided."""

    spent: float
    told: dict[str, list[Value]]
    step: SessionStep
    decision: DecisionAnswer | None


class SessionList(BaseModel):
    """A page of sessions; `next` begins the following one."""

    sessions: list[SessionHead]
    next: str | None


class RecordReply(BaseModel):
    """A record of the ledger; its details are null once they were pruned."""

    number: int
    at: str
    session: str
    kind: str
    body: dict[str, Any] | None
    hash: str


class Records(BaseModel):
    """Records in their order."""

    records: list[RecordReply]


class LedgerHead(BaseModel):
    """The last record of the ledger."""

    records: int
    receipt: str


class Health(BaseModel):
    """Whether the service is well."""

    status: str


# refusals --------------------------------------------------------------------------------


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request: str


class RefusedError(Exception):
    """A request is refused.

    `kind` is a word or two by which programs tell refusals apart; `detail` is for people:
    what was expected, what came, what to do.
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
    """The refusal that tells a caller about an error of the library."""
    if isinstance(error, StorageError):
        if error.code == FULL:
            return RefusedError(
                507, "storage-full", "the storage of the service is full."
            )
        why = "the storage of the service cannot be used now; try again later."
        return RefusedError(503, "storage", why, {"Retry-After": "5"})
    if isinstance(error, SessionError):
        return RefusedError(409, "session", str(error))
    return RefusedError(422, "values", str(error))


def our_fault() -> RefusedError:
    """The refusal after a failure of ours; details go to the log only."""
    return RefusedError(500, "internal", "the service failed; this is our fault.")


def refused(refusal: RefusedError, request: str) -> Response:
    """The response to what is refused; `request` is the number of what was asked."""
    document = {
        "type": f"urn:sensortree:problem:{refusal.kind}",
        "title": HTTPStatus(refusal.status).phrase,
        "status": refusal.status,
        "detail": refusal.detail,
        "request": request,
    }
    body = to_json(document)
    return Response(body, refusal.status, refusal.headers, PROBLEM_TYPE)


def to_json(document: Any) -> bytes:
    """A document as JSON, in ASCII."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
