"""`ledger`: check and prune what a service has written down."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from sensortree.cli import options
from sensortree.cli.console import emit

ledger = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check or prune the ledger that `serve` writes.",
)

Database = Annotated[
    Path,
    typer.Argument(
        metavar="DATABASE",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="Database of the service.",
    ),
]
SHOWN = 20


@ledger.command()
def verify(
    database: Database,
    receipt: Annotated[
        list[str] | None,
        typer.Option(
            "--receipt",
            metavar="NUMBER:HASH",
            show_default=False,
            help="A record that must be there, as an answer of the service, or this "
            "command, has named it; repeatable.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check that no record was edited, deleted or moved; say which one was."""
    from sensortree.exceptions import StorageError
    from sensortree.service.database import open_to_read, storage_errors
    from sensortree.service.ledger import verify as verify_ledger

    with storage_errors(database):
        connection = open_to_read(database)
        try:
            found = verify_ledger(connection, tuple(receipt or ()))
        finally:
            connection.close()
    said = f"{found.records:,} records hold, {found.pruned:,} of them pruned"
    if not found.faults or as_json:
        emit("ledger-verify", vars(found), f"{said}\nlast: {found.head}", as_json)
    if found.faults:
        more = len(found.faults) - SHOWN
        lines = [*found.faults[:SHOWN], *([f"and {more} more"] if more > 0 else [])]
        raise StorageError("the ledger does not hold:\n  " + "\n  ".join(lines))


@ledger.command()
def prune(
    database: Database,
    before: Annotated[
        str,
        typer.Option(
            "--before",
            metavar="DATE",
            show_default=False,
            help="Date or time, in UTC unless it says otherwise, as 2026-01-31.",
        ),
    ],
    as_json: options.Json = False,
) -> None:
    """Remove all values before a date for good; the chain of the ledger stays whole."""
    from sensortree.service.database import prune as prune_database

    said = prune_database(database, _time(before))
    emit(
        "ledger-prune",
        said,
        f"{said['sessions']:,} sessions and the details of {said['records']:,} records "
        f"before {said['before']} removed\nlast: {said['receipt']}",
        as_json,
    )


def _time(given: str) -> str:
    """A date or time as the ledger writes times."""
    from sensortree.service.ledger import as_text

    try:
        time = datetime.fromisoformat(given)
    except ValueError as error:
        raise typer.BadParameter(
            f"{given!r} is no date; write it as 2026-01-31.", param_hint="--before"
        ) from error
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    if time > datetime.now(UTC):
        raise typer.BadParameter(
            f"{given} is in the future; what is yet to come cannot be pruned.",
            param_hint="--before",
        )
    return as_text(time)
