"""`ask`: one example, sensor by sensor, by a person or a program."""

from __future__ import annotations

import json
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sensortree.cli import options
from sensortree.cli.console import emit, to_json

if TYPE_CHECKING:
    from sensortree.persistence.saved import SavedModel
    from sensortree.policy.session import Session
    from sensortree.policy.steps import Decision, Step

ADVICE = (
    'Type each value; Enter if it is missing, "?" if the sensor cannot be had, Ctrl-C to '
    "leave."
)


NEEDED = 'this model needs {}; type it, or "?" if the sensor cannot be had.'


class _UnavailableError(Exception):
    """The person says that a sensor cannot be had."""


def ask(
    model: options.Model,
    stdin: Annotated[
        bool,
        typer.Option(
            "--stdin",
            help='Speak JSON lines: read {"tell": {"blood": {"crp": 3}}} or '
            '{"unavailable": "xray"}, write steps and the decision.',
        ),
    ] = False,
    limit: Annotated[
        float | None,
        typer.Option(
            "--limit",
            metavar="COST",
            min=0,
            show_default=False,
            help="The most that this example may spend.",
        ),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            metavar="SENSOR=PRICE",
            show_default=False,
            help="Price of a sensor for this example, where prices differ; repeatable.",
        ),
    ] = None,
    strict: options.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Ask for one sensor after the other until the model decides."""
    from sensortree.cli.models import open_model

    loaded = open_model(model, strict)
    session = loaded.policy_.session(limit=limit, prices=_prices(price, loaded))
    if stdin:
        _converse(session, loaded)
        return
    typer.echo(ADVICE, err=True)
    while (step := session.ask()) is not None:
        _question(session, step, loaded, err=as_json)
    decision, why = session.decision(), session.step.why
    text = _decision_text(decision, loaded)
    if why is not None and not why.bought:
        text += f"\nwhy: {why}"
    emit("ask", decision.to_dict(), text, as_json)


# a person ---------------------------------------------------------------------------------


def _question(session: Session, step: Step, model: SavedModel, err: bool) -> None:
    """Ask for the values of one sensor, until they can be used."""
    from sensortree.exceptions import DataError

    assert step.sensor is not None
    why = "everybody is asked this" if step.why is None else step.why
    typer.echo(
        f"\n{step.sensor} costs {model.about_.money(step.cost)} (spent {step.spent:g}, "
        f"at most {step.worst_case_remaining:g} to come)\n  {why}",
        err=err,
    )
    try:
        values = [_value(column, model, err) for column in step.columns]
    except _UnavailableError:
        session.unavailable(step.sensor)
        return
    try:
        session.tell(step.sensor, values)
    except DataError as error:
        lacking = [c for c, v in zip(step.columns, values, strict=True) if v != v]
        old = model.policy_.reader.seen is None  # it cannot fill what is missing
        said = NEEDED.format(", ".join(lacking)) if lacking and old else f"{error}"
        typer.echo(f"  {said}", err=True)


def _value(column: str, model: SavedModel, err: bool) -> Any:
    """One value, asked for until it is one."""
    from sensortree.exceptions import DataError

    while True:
        typed = _typed(f"  {column}: ", err)
        if typed == "?":
            raise _UnavailableError
        try:
            return _read(column, typed, model)
        except DataError as error:
            typer.echo(f"  {error}", err=True)


def _read(column: str, typed: str, model: SavedModel) -> Any:
    """What was typed for a column: a category, a date or a number."""
    from dataclasses import replace

    from sensortree.cells.formats import PLAIN_FORMAT

    written = model.written_
    if column not in written.formats:  # not learned from a file, but typed all the same
        written = replace(written, formats={column: PLAIN_FORMAT})
    return written.of(column, typed)


def _typed(prompt: str, err: bool) -> str:
    """What the person types."""
    from sensortree.exceptions import SessionError

    typer.echo(prompt, nl=False, err=err)
    line = sys.stdin.readline()
    if not line:
        raise SessionError("the input ended before the decision.")
    return line.strip()


# a program --------------------------------------------------------------------------------


def _converse(session: Session, model: SavedModel) -> None:
    """JSON lines in, JSON lines out, until the decision."""
    from sensortree.exceptions import SensorTreeError, SessionError

    if isinstance(sys.stdin, TextIOWrapper):  # bytes that are no UTF-8 make bad JSON
        sys.stdin.reconfigure(encoding="utf-8", errors="backslashreplace")
    _say_step(session)
    while session.ask() is not None and (line := sys.stdin.readline()):
        if not line.strip():
            continue
        try:
            _apply(session, model, line)
        except SensorTreeError as error:
            typer.echo(to_json({"error": str(error)}))
            continue
        _say_step(session)
    if session.ask() is not None:
        raise SessionError(
            f"the input ended before the decision; the model still asks for "
            f"{session.step.sensor!r}."
        )


def _say_step(session: Session) -> None:
    step = session.ask()
    if step is None:
        typer.echo(to_json({"decision": session.decision().to_dict()}))
    else:
        typer.echo(to_json({"step": step.to_dict()}))


def _apply(session: Session, model: SavedModel, line: str) -> None:
    """Do what one line says."""
    from sensortree.exceptions import SessionError

    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:  # also brackets without end
        raise SessionError(f"the line is not JSON ({error}).") from error
    if not isinstance(message, dict) or len(message) != 1:
        raise SessionError('a line holds {"tell": {...}} or {"unavailable": "..."}.')
    ((event, what),) = message.items()
    if event == "tell" and isinstance(what, dict):
        for sensor, values in what.items():
            session.tell(sensor, model.as_written(sensor, values))
    elif event == "unavailable" and isinstance(what, str):
        session.unavailable(what)
    else:
        raise SessionError(
            f'a line holds {{"tell": {{...}}}} or {{"unavailable": "..."}}, got {event!r}.'
        )


# both -------------------------------------------------------------------------------------


def _prices(given: list[str] | None, model: SavedModel) -> dict[str, float] | None:
    """Prices of this example, of every sensor that has no price of its own."""
    prices = {}
    for text in given or []:
        name, _, price = text.rpartition("=")
        try:
            prices[name] = float(price)
        except ValueError as error:
            raise typer.BadParameter(
                f"{text!r} must be SENSOR=PRICE.", param_hint="--price"
            ) from error
    for name in (model.sensors_.names[j] for j in model.sensors_.varying):
        if name not in prices:
            raise typer.BadParameter(
                f"the price of sensor {name!r} differs between examples; pass --price "
                f"{name}=...",
                param_hint="--price",
            )
    return prices or None


def _decision_text(decision: Decision, model: SavedModel) -> str:
    said = decision.to_dict()
    if decision.classes:
        likely = said["proba"][str(decision.label)]
        guess = f"{decision.label} (probability {likely:.3g})"
    else:
        guess = f"{decision.prediction:.4g} ± {decision.spread:.2g}"
    bought = ", ".join(decision.acquired) or "nothing"
    because = {
        "policy": "",
        "limit": "; it could afford no more",
        "unavailable": "; a sensor could not be had",
    }[decision.stopped_because]
    answer = f"answer: {guess}"
    if decision.referred:
        answer = f"hand over to a person; best guess: {guess}"
    return (
        f"\n{answer}\n"
        f"spent {model.about_.money(decision.spent)} on {bought}; everything else would "
        f"have cost {decision.saved:g} more{because}"
    )
