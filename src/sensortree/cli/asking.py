"""`ask`, `serve`, `token` and `ledger`: a model that asks, here or over HTTP."""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from datetime import UTC, datetime
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sensortree.cli import options
from sensortree.cli.console import emit, to_json
from sensortree.cli.options import flag, option
from sensortree.exceptions import (
    DataError,
    MissingDependencyError,
    SensorTreeError,
    SessionError,
    StorageError,
)

if TYPE_CHECKING:
    from sensortree.persistence.saved import SavedModel
    from sensortree.policy.session import Session
    from sensortree.policy.steps import Decision, Step

ADVICE = (
    'Type each value; Enter if it is missing, "?" if the sensor is unavailable, Ctrl-C to '
    "leave."
)
NEEDED = 'this model needs {}; type it, or "?" if the sensor is unavailable.'
EXTRA = "serving needs {}, which is not installed; run pip install 'sensortree[serve]'."
LINE_FORMS = 'a line holds {"tell": {...}} or {"unavailable": "..."}'
FAULTS_SHOWN = 20


class Scope(StrEnum):
    """What a token may do."""

    read = "read"
    ask = "ask"
    admin = "admin"


class _UnavailableError(Exception):
    """The person typed that a sensor is unavailable."""


def ask(
    model: options.Model,
    stdin: bool = flag(
        "--stdin",
        'Speak JSON lines: read {"tell": {"blood": {"crp": 3}}} or '
        '{"unavailable": "xray"}, write steps and the decision.',
    ),
    limit: float | None = option(
        "--limit COST", "The most that this example may spend.", min=0
    ),
    price: list[str] | None = option(
        "--price SENSOR=PRICE",
        "Price of a sensor for this example, where prices differ; repeatable.",
    ),
    strict: options.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Ask for one sensor after another until the model decides."""
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


def _prices(given: list[str] | None, model: SavedModel) -> dict[str, float] | None:
    """Prices of this example; every sensor whose price varies needs one."""
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


def _question(session: Session, step: Step, model: SavedModel, err: bool) -> None:
    """Ask for the values of one sensor, and tell them to the session."""
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
        needed = NEEDED.format(", ".join(lacking))
        typer.echo(f"  {needed if lacking and old else error}", err=True)


def _value(column: str, model: SavedModel, err: bool) -> Any:
    """Ask for one value until it can be read."""
    from sensortree.cells.words import PLAIN_FORMAT

    # Numbers are typed even if the model was not learned from a file.
    form = model.formats_.get(column, PLAIN_FORMAT)
    while True:
        typer.echo(f"  {column}: ", nl=False, err=err)
        line = sys.stdin.readline()
        if not line:
            raise SessionError("the input ended before the decision.")
        typed = line.strip()
        if typed == "?":
            raise _UnavailableError
        try:
            return model.value_of(column, typed, form)
        except DataError as error:
            typer.echo(f"  {error}", err=True)


def _converse(session: Session, model: SavedModel) -> None:
    """Read and write JSON lines until the decision."""
    if isinstance(sys.stdin, TextIOWrapper):  # bytes that are no UTF-8 make bad JSON
        sys.stdin.reconfigure(encoding="utf-8", errors="backslashreplace")
    _write_step(session)
    while session.ask() is not None and (line := sys.stdin.readline()):
        if not line.strip():
            continue
        try:
            _apply(session, model, line)
        except SensorTreeError as error:
            typer.echo(to_json({"error": str(error)}))
        else:
            _write_step(session)
    if session.ask() is not None:
        raise SessionError(
            f"the input ended before the decision; the model still asks for "
            f"{session.step.sensor!r}."
        )


def _write_step(session: Session) -> None:
    step = session.ask()
    if step is None:
        typer.echo(to_json({"decision": session.decision().to_dict()}))
    else:
        typer.echo(to_json({"step": step.to_dict()}))


def _apply(session: Session, model: SavedModel, line: str) -> None:
    """Carry out one line."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:  # also brackets without end
        raise SessionError(f"the line is not JSON ({error}).") from error
    if not isinstance(message, dict) or len(message) != 1:
        raise SessionError(f"{LINE_FORMS}.")
    ((event, what),) = message.items()
    if event == "tell" and isinstance(what, dict):
        for sensor, values in what.items():
            session.tell(sensor, model.as_written(sensor, values))
    elif event == "unavailable" and isinstance(what, str):
        session.unavailable(what)
    else:
        raise SessionError(f"{LINE_FORMS}, got {event!r}.")


def _decision_text(decision: Decision, model: SavedModel) -> str:
    from sensortree.policy.reasons import number_words

    if decision.classes:
        likely = decision.to_dict()["proba"][str(decision.label)]
        guess = f"{decision.label} (probability {likely:.3g})"
    else:
        guess = number_words(decision.prediction, decision.spread)
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


# over HTTP --------------------------------------------------------------------------------


def serve(
    model: list[str] = typer.Argument(
        ...,
        metavar="MODEL",
        help="Model files, as FILE or NAME=FILE. Of several with one name the last "
        "is asked, and sessions stay with theirs.",
    ),
    host: str = option(
        "--host ADDRESS",
        "Where it listens; elsewhere than on loopback it needs tokens.",
        "127.0.0.1",
    ),
    port: int = option("--port N", "Its port.", 8000, min=0, max=65535),
    database: Path = option(
        "--database FILE",
        "Sessions and ledger; made if it is not there.",
        Path("sensortree.sqlite3"),
        dir_okay=False,
    ),
    token_file: Path | None = option(
        "--token-file TOML",
        "Who may ask; `token` writes its entries. SENSORTREE_TOKEN in the "
        "environment is one more, with all scopes.",
        **options.IS_FILE,
    ),
    rate: float = option(
        "--rate N", "Requests a second of each token, over time.", 1_000.0
    ),
    max_body: int = option("--max-body BYTES", "The largest request.", 1 << 20),
    max_sessions: int = option(
        "--max-sessions N", "Sessions that a tenant may have.", 100_000
    ),
    log_values: bool = flag("--log-values", "Log what is sent, values and all."),
) -> None:
    """Serve models over HTTP: a page, an API, and a ledger that loses nothing."""
    try:
        from sensortree.service.app import serve as run
        from sensortree.service.gate import Limits
        from sensortree.service.models import open_models
        from sensortree.service.tokens import read_tokens
    except ModuleNotFoundError as error:
        if str(error.name).startswith("sensortree"):
            raise
        raise MissingDependencyError(EXTRA.format(error.name)) from error
    burst = max(1, int(2 * rate))
    limits = Limits(max_body, sessions=max_sessions, rate=rate, burst=burst)
    tokens = read_tokens(token_file, os.environ)
    run(open_models(model), database, host, port, tokens, limits, log_values)


def token(
    name: str = typer.Argument(
        ..., metavar="NAME", help="Who it is for; logs show it."
    ),
    token_file: Path = option(
        "--token-file TOML",
        "File that its entry is added to: its hash, not the token.",
        ...,
        dir_okay=False,
    ),
    tenant: str = option(
        "--tenant TENANT", "Whose sessions it sees and begins.", "default"
    ),
    scope: list[Scope] | None = option(
        "--scope SCOPE",
        "What it may do, repeatable: read models and sessions; ask; admin, which is "
        "metrics, watch and ledger. By default read and ask.",
    ),
    as_json: options.Json = False,
) -> None:
    """Make a token for `serve`; it is printed once, and stored nowhere."""
    from sensortree.service import tokens

    scopes = tuple(map(str, scope or (Scope.read, Scope.ask)))
    made = tokens.new_token()
    tokens.add_entry(token_file, name, tenant, scopes, made)
    document = {"token": made, "name": name, "tenant": tenant, "scopes": list(scopes)}
    emit("token", document, made, as_json)


ledger = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check or prune the ledger that `serve` writes.",
)
Database = Annotated[
    Path,
    typer.Argument(
        metavar="DATABASE", help="Database of the service.", **options.IS_FILE
    ),
]


@ledger.command(cls=options.Command)
def verify(
    database: Database,
    receipt: list[str] | None = option(
        "--receipt NUMBER:HASH",
        "A record that must be there, as an answer of the service, or this command, "
        "has named it; repeatable.",
    ),
    as_json: options.Json = False,
) -> None:
    """Check that no record was edited, deleted or moved; say which one was."""
    from sensortree.service.database import open_to_read, storage_errors
    from sensortree.service.ledger import verify as verify_ledger

    with storage_errors(database), closing(open_to_read(database)) as connection:
        found = verify_ledger(connection, tuple(receipt or ()))
    summary = f"{found.records:,} records hold, {found.pruned:,} of them pruned"
    if not found.faults or as_json:
        text = f"{summary}\nlast: {found.head}"
        emit("ledger-verify", vars(found), text, as_json)
    if found.faults:
        more = len(found.faults) - FAULTS_SHOWN
        rest = [f"and {more} more"] if more > 0 else []
        lines = [*found.faults[:FAULTS_SHOWN], *rest]
        raise StorageError("the ledger does not hold:\n  " + "\n  ".join(lines))


@ledger.command(cls=options.Command)
def prune(
    database: Database,
    before: str = option(
        "--before DATE",
        "Date or time, in UTC unless it says otherwise, as 2026-01-31.",
        ...,
    ),
    as_json: options.Json = False,
) -> None:
    """Remove all values before a date for good; the chain of the ledger stays whole."""
    from sensortree.service.database import prune as prune_database
    from sensortree.service.ledger import as_text

    try:
        time = datetime.fromisoformat(before)
    except ValueError as error:
        raise typer.BadParameter(
            f"{before!r} is no date; write it as 2026-01-31.", param_hint="--before"
        ) from error
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    if time > datetime.now(UTC):
        raise typer.BadParameter(
            f"{before} is in the future; what is yet to come cannot be pruned.",
            param_hint="--before",
        )
    gone = prune_database(database, as_text(time))
    text = (
        f"{gone['sessions']:,} sessions and the details of {gone['records']:,} records "
        f"before {gone['before']} removed\nlast: {gone['receipt']}"
    )
    emit("ledger-prune", gone, text, as_json)
