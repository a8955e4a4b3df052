"""Oracles: what a session calls for the values of a sensor, to its end or an error."""

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


def run(session: Session, oracle: Oracle, on_error: OnError = "raise") -> Decision:
    """Call an oracle for what is bought and nothing else, to the decision.

    Parameters
    ----------
    oracle : callable
        Given a sensor's name and its columns, returns the values; None says that the
        sensor is unavailable.
    on_error : {"raise", "unavailable"}, default="raise"
        What an exception of the oracle, or a reading that the sensor cannot use, does:
        it goes up to the caller, or makes the sensor unavailable. What goes up leaves
        the session where it stood, to be run again, and carries it as ``session``.

    Returns
    -------
    decision : Decision
        Its ``unavailable`` says which sensors failed, and why.
    """
    for sensor, columns in _asked(session, on_error):
        with handled(session, sensor, on_error):
            take(session, sensor, oracle(sensor, columns))
    return session.decision()


async def run_async(
    session: Session,
    oracle: AsyncOracle,
    on_error: OnError = "raise",
    timeout: float | None = None,
) -> Decision:
    """Await an oracle for what is bought and nothing else, to the decision.

    Parameters
    ----------
    oracle : callable
        As in `run`, but what it returns is awaited.
    on_error : {"raise", "unavailable"}, default="raise"
    timeout : float, default=None
        Seconds that each sensor may take; then it is cancelled, which is a
        `TimeoutError`. It needs asyncio; other event loops have limits of their own.
    """
    for sensor, columns in _asked(session, on_error):
        with handled(session, sensor, on_error):
            take(session, sensor, await within(oracle(sensor, columns), timeout))
    return session.decision()


def _asked(
    session: Session, on_error: OnError
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Sensors that a session asks for, one after another, with their columns."""
    if on_error not in ("raise", "unavailable"):
        raise SessionError(
            f"on_error must be 'raise' or 'unavailable', got {on_error!r}."
        )
    while (step := session.ask()) is not None and step.sensor is not None:
        yield step.sensor, step.columns


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
