"""`serve`: run the service on a port, until it is told to end."""

from __future__ import annotations

import gc
import ipaddress
import logging
import sys
import warnings
from pathlib import Path

import uvicorn

from sensortree.exceptions import ParameterError
from sensortree.service.app import make_app
from sensortree.service.limits import Limits
from sensortree.service.shelf import Shelf
from sensortree.service.tokens import Tokens

GRACE = 10  # seconds for requests that are under way when the service ends
SWITCH = 0.0005  # seconds that one thread may keep others waiting


def serve(
    shelf: Shelf,
    database: Path,
    host: str,
    port: int,
    tokens: Tokens,
    limits: Limits,
    log_values: bool,
) -> None:
    """Serve models until a signal ends it.

    Parameters
    ----------
    shelf : Shelf
    database : Path
    host, port : str, int
    tokens : Tokens
        There may be none if the host is a loopback address.
    limits : Limits
    log_values : bool
        Whether values are logged.
    """
    if not len(tokens) and not is_loopback(host):
        raise ParameterError(
            f"on {host} others can reach the service, so that it needs tokens; make one "
            f"with `sensortree token`, and give it with --token-file."
        )
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s"
    )
    warnings.simplefilter("ignore")  # what training never saw is counted by the watch
    sys.setswitchinterval(SWITCH)
    app = make_app(
        shelf,
        database,
        tokens=tokens if len(tokens) else None,
        limits=limits,
        log_values=log_values,
    )
    gc.collect()
    gc.freeze()  # what stays for good is not looked through again and again
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
        ws="none",
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
