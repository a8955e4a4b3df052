"""Oracles: whom a session asks for the values of a sensor, and what if they fail."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from sensortree.exceptions import SessionError

if TYPE_CHECKING:
    from sensortree.policy.session import Session
    from sensortree.policy.steps import Decision

LOG = logging.getLogger("sensortree.session")  # sensors and prices; values never

Oracle = Callable[[str, tuple[str, ...]], Any]
AsyncOracle = Callable[[str, tuple[str, ...]], Awaitable[Any]]
OnError = Literal["raise", "unavailable"]


def run(session: Session, oracle: Oracle, on_error: OnError) -> Decision:
    """Call an oracle for what a session buys, to the decision; see `Session.run`."""
    check_on_error(on_error)
    while (step := session.ask()) is not None and step.sensor is not None:
        with _heeded(session, step.sensor, on_error):
            _take(session, step.sensor, oracle(step.sensor, step.columns))
    return session.decision()


async def run_async(
    session: Session, oracle: AsyncOracle, on_error: OnError, timeout: float | None
) -> Decision:
    """Await an oracle for what a session buys; see `Session.run_async`."""
    check_on_error(on_error)
    while (step := session.ask()) is not None and step.sensor is not None:
        with _heeded(session, step.sensor, on_error):
            answer = oracle(step.sensor, step.columns)
            _take(session, step.sensor, await within(answer, timeout))
    return session.decision()


def check_on_error(on_error: str) -> None:
    """Refuse what is no way to treat an oracle's error."""
    if on_error not in ("raise", "unavailable"):
        raise SessionError(
            f"on_error must be 'raise' or 'unavailable', got {on_error!r}."
        )


@contextmanager
def _heeded(session: Session, sensor: str, on_error: OnError) -> Iterator[None]:
    """Let what an oracle raises go up with its session, or be a reason to do without.

    That the session itself refuses something is always raised: the caller's mistake.
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


def _take(session: Session, sensor: str, values: Any) -> None:
    """Tell what an oracle gave; None says that the sensor is unavailable."""
    if values is None:
        session.unavailable(sensor)
    else:
        session.tell(sensor, values)
