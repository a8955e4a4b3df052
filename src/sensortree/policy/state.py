"""`State`: a session as plain values for JSON; written, signed and read."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sensortree.exceptions import SessionError

FORMAT, FORMAT_VERSION = "sensortree-session", 1
GIVE = "give what session.to_dict() returned."

Values = tuple[Any, ...]
# What happened: ("tell", sensor, values, replace), or ("unavailable", sensor[, why]).
Event = tuple[Any, ...]


@dataclass(frozen=True)
class State:
    """What a session began with, as it was given, and what happened to it since."""

    model: str  # digest of the policy
    known: Mapping[str, Any]
    limit: float | None
    prices: Mapping[str, float | None]
    log: tuple[Event, ...]


# written ----------------------------------------------------------------------------------


def write_state(state: State, key: bytes | None) -> dict[str, Any]:
    """A state as values for JSON, which share nothing with it; signed if there is a key."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "model": state.model,
        "known": {name: _written(name, told) for name, told in state.known.items()},
        "limit": state.limit,
        "prices": dict(state.prices),
        "log": [
            [event[0], event[1], _written(event[1], event[2]), event[3]]
            if event[0] == "tell"
            else list(event)
            for event in state.log
        ],
    }
    if key is not None:
        document["signature"] = signature(document, key)
    return document


def _written(sensor: str, values: Iterable[Any]) -> list[Any]:
    """Values as JSON can hold them; None for NaN."""
    written = []
    for value in values:
        missing = isinstance(value, float) and math.isnan(value)
        if not isinstance(value, (str, int, float)) or value in (math.inf, -math.inf):
            shown = value if isinstance(value, float) else type(value).__name__
            raise SessionError(
                f"sensor {sensor!r} was told {shown}, which JSON cannot hold; tell numbers "
                f"and text if the session is to be put away."
            )
        written.append(None if missing else value)
    return written


# read -------------------------------------------------------------------------------------


def read_state(document: Any, key: bytes | None) -> State:
    """A state that was written by `write_state`, its form and signature checked."""
    if not isinstance(document, Mapping):
        raise SessionError(
            f"the state of a session is a mapping, got {_kind(document)}; {GIVE}"
        )
    if not (
        _equal(document.get("format"), FORMAT)
        and _equal(document.get("format_version"), FORMAT_VERSION)
    ):
        raise SessionError(
            f"the state is not that of a session, or of a later version; {GIVE}"
        )
    check_signature(document, key)
    return State(
        _field(document, "model", str, "text"),
        _field(document, "known", Mapping, "a mapping"),
        _field(document, "limit", object, "a number or None"),
        _field(document, "prices", Mapping, "a mapping"),
        tuple(map(_event, _field(document, "log", (list, tuple), "a list"))),
    )


def _field(document: Mapping[str, Any], name: str, kind: Any, what: str) -> Any:
    """A field of a state, of the kind that it must be."""
    if name not in document:
        raise SessionError(f"the state of a session lacks {name!r}; {GIVE}")
    if not isinstance(document[name], kind):
        raise SessionError(
            f"{name!r} of a session's state must be {what}, got "
            f"{_kind(document[name])}; {GIVE}"
        )
    return document[name]


def _event(entry: Any) -> Event:
    """One entry of the log."""
    match entry:
        case ["tell", str(sensor), list() | tuple() as values, bool(replace)]:
            return ("tell", sensor, values, replace)
        case ["unavailable", str(sensor)]:
            return ("unavailable", sensor)
        case ["unavailable", str(sensor), str(because)]:
            return ("unavailable", sensor, because)
    raise SessionError(
        f"the log of a session holds a {_kind(entry)} that is no event; {GIVE}"
    )


def _equal(found: Any, expected: Any) -> bool:
    return type(found) is type(expected) and found == expected


def _kind(value: Any) -> str:
    return type(value).__name__


# signed -----------------------------------------------------------------------------------


def signature(document: Mapping[str, Any], key: bytes) -> str:
    """HMAC-SHA256 of all of a state but its signature, as hexadecimal digits."""
    body = {name: value for name, value in document.items() if name != "signature"}
    try:
        text = json.dumps(_canonical(body), separators=(",", ":"), allow_nan=False)
    except (RecursionError, TypeError, ValueError) as error:
        raise SessionError(
            f"the state of a session holds what JSON cannot ({type(error).__name__}); "
            f"{GIVE}"
        ) from error
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _canonical(value: Any) -> Any:
    """A value such that equal states are the same JSON, whoever passed them on.

    Keys are in order, 2.0 is 2 as in JavaScript, and NaN is null.
    """
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("a key is not text")
        return {name: _canonical(value[name]) for name in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_canonical(inner) for inner in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() else value
    return value


def check_signature(document: Mapping[str, Any], key: bytes | None) -> None:
    """Refuse a state that was not signed with the key, or is signed while there is none."""
    signed = document.get("signature")
    if key is None:
        if signed is None:
            return
        raise SessionError(
            "the state is signed; resume it with key=, the one that the session was begun "
            "with."
        )
    if not isinstance(signed, str):
        raise SessionError(
            "the state has no signature, so it may be anybody's; begin the session with "
            "the same key=."
        )
    found = signed.encode("utf-8", "surrogatepass")
    if not hmac.compare_digest(found, signature(document, key).encode()):
        raise SessionError(
            "the signature of the state is wrong: it was changed, or signed with another "
            "key; go on from one that session.to_dict() returned."
        )
