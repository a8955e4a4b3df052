"""Oracles: what a session calls for the values of a sensor, and what if it fails."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from sensortree.exceptions import SessionError

if TYPE_CHECKING:
    from sensortree.policy.session import Session

LOG = logging.getLogger("sensortree.session")  # sensors and prices; values never

Oracle = Callable[[str, tuple[str, ...]], Any]
AsyncOracle = Callable[[str, tuple[str, ...]], Awaitable[Any]]
OnError = Literal["raise", "unavailable"]


def check_on_error(on_error: str) -> None:
    """Refuse any other way to treat an oracle's error."""
    if on_error not in ("raise", "unavailable"):
        raise SessionError(
            f"on_error must be 'raise' or 'unavailable', got {on_error!r}."
        )


@contextmanager
def handled(session: Session, sensor: str, on_error: OnError) -> Iterator[None]:
    """Raise an oracle's error with its session, or take the sensor as unavailable.

    What the session itself refuses is always raised: that is the caller's mistake.
    """
    try:
        yield
    except BaseException as error:
        ours = isinstance(error, SessionError) or not isinstance(error, Exception)
        if on_error == "raise" or ours:
            vars(error)["session"] = session
            error.add_note(
                f"While sensor {sensor!r} was asked for. What was bought before is in "
                f"this exception's .session, which can be run again."
            )
            raise
        LOG.debug("oracle of %r failed: %s", sensor, type(error).__name__)
        session.unavailable(sensor, because=error_text(error))


def error_text(error: BaseException) -> str:
    """An error as one line: its type, and what it says."""
    kind = type(error).__name__
    return f"{kind}: {error}" if str(error) else kind


async def within(answer: Awaitable[Any], timeout: float | None) -> Any:
    """The awaited value; a TimeoutError if it takes longer than `timeout` seconds."""
    if timeout is None:
        return await answer
    import asyncio

    try:
        async with asyncio.timeout(timeout) as limit:
            return await answer
    except TimeoutError as error:
        if not limit.expired():  # the oracle's own
            raise
        raise TimeoutError(f"no answer within {timeout:g} s") from error


def take(session: Session, sensor: str, values: Any) -> None:
    """Tell what an oracle gave; None says that the sensor is unavailable."""
    if values is None:
        session.unavailable(sensor)
    else:
        session.tell(sensor, values)
