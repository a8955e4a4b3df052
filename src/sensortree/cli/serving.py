"""`serve` and `token`: models that are asked over HTTP, and who may ask them."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sensortree.cli import options
from sensortree.cli.console import emit

EXTRA = "serving needs {}, which is not installed; run pip install 'sensortree[serve]'."


class Scope(StrEnum):
    """What a token may do."""

    read = "read"
    ask = "ask"
    admin = "admin"


def serve(
    model: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            show_default=False,
            help="Model files, as FILE or NAME=FILE. Of several with one name the last "
            "is asked, and sessions stay with theirs.",
        ),
    ],
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Where it listens; elsewhere than on loopback it needs tokens.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Its port.")
    ] = 8000,
    database: Annotated[
        Path,
        typer.Option(
            "--database",
            metavar="FILE",
            dir_okay=False,
            help="Sessions and ledger; made if it is not there.",
        ),
    ] = Path("sensortree.sqlite3"),
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="TOML",
            exists=True,
            dir_okay=False,
            show_default=False,
            help="Who may ask; `token` writes its entries. SENSORTREE_TOKEN in the "
            "environment is one more, with all scopes.",
        ),
    ] = None,
    rate: Annotated[
        float,
        typer.Option(
            "--rate", metavar="N", help="Requests a second of each token, over time."
        ),
    ] = 1_000.0,
    max_body: Annotated[
        int, typer.Option("--max-body", metavar="BYTES", help="The largest request.")
    ] = 1 << 20,
    max_sessions: Annotated[
        int,
        typer.Option(
            "--max-sessions", metavar="N", help="Sessions that a tenant may have."
        ),
    ] = 100_000,
    log_values: Annotated[
        bool, typer.Option("--log-values", help="Log what is sent, values and all.")
    ] = False,
) -> None:
    """Serve models over HTTP: a page, an API, and a ledger that loses nothing."""
    from sensortree.exceptions import MissingDependencyError
    from sensortree.service.limits import Limits
    from sensortree.service.shelf import open_shelf
    from sensortree.service.tokens import read_tokens

    try:
        from sensortree.service.run import serve as run
    except ModuleNotFoundError as error:
        if str(error.name).startswith("sensortree"):
            raise
        raise MissingDependencyError(EXTRA.format(error.name)) from error
    burst = max(1, int(2 * rate))
    limits = Limits(max_body, sessions=max_sessions, rate=rate, burst=burst)
    tokens = read_tokens(token_file, os.environ)
    run(open_shelf(model), database, host, port, tokens, limits, log_values)


def token(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", show_default=False, help="Who it is for; logs show it."
        ),
    ],
    token_file: Annotated[
        Path,
        typer.Option(
            "--token-file",
            metavar="TOML",
            dir_okay=False,
            show_default=False,
            help="File that its entry is added to: its hash, not the token.",
        ),
    ],
    tenant: Annotated[
        str,
        typer.Option(
            "--tenant", metavar="TENANT", help="Whose sessions it sees and begins."
        ),
    ] = "default",
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            "--scope",
            show_default=False,
            help="What it may do, repeatable: read models and sessions; ask; admin, "
            "which is metrics, watch and ledger. By default read and ask.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Make a token for `serve`; it is printed once, and stored nowhere."""
    from sensortree.service import tokens

    scopes = tuple(s.value for s in scope or (Scope.read, Scope.ask))
    made = tokens.new_token()
    tokens.add_entry(token_file, name, tenant, scopes, made)
    document = {"token": made, "name": name, "tenant": tenant, "scopes": list(scopes)}
    emit("token", document, made, as_json)
