"""A PostgreSQL server of Debian's package, in a temporary folder on a free port."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "postgres"  # whom Debian's package adds; a server does not run as root
INIT = ("--auth=trust", "--username=tests", "--no-sync", "--no-locale", "-E", "UTF8")
SECONDS = 30.0  # to start
LACKING = "PostgreSQL is not installed: `make cluster`, or apt-get install postgresql"


def find_postgres() -> Path | None:
    """Folder of the newest server's programs; None if there is none."""
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(found, key=lambda path: int(path.parts[-3]), default=None)
    if newest is not None:
        return newest.parent
    on_path = shutil.which("initdb")
    return None if on_path is None else Path(on_path).resolve().parent


@contextmanager
def postgres(programs: Path, *settings: str) -> Iterator[str]:
    """Address of a server that is there until the end of the block."""
    user = USER if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if user is not None:
            shutil.chown(folder, user, user)
        data, port = f"{folder}/data", _free_port()
        _run([programs / "initdb", *INIT, "-D", data], user)
        server = subprocess.Popen(
            [
                *(programs / "postgres", "-D", data, "-p", str(port), "-k", folder),
                *("-c", "listen_addresses=127.0.0.1"),
                *(word for setting in settings for word in ("-c", setting)),
            ],
            user=user,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            address = f"host=127.0.0.1 port={port} user=tests dbname=postgres"
            _wait(programs, port, server)
            yield address
        finally:
            server.send_signal(signal.SIGINT)  # who is still there is sent away
            try:
                server.wait(SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _run(command: list[object], user: str | None) -> None:
    words = [str(word) for word in command]
    subprocess.run(words, user=user, cwd="/", check=True, capture_output=True)


def _wait(programs: Path, port: int, server: subprocess.Popen[bytes]) -> None:
    """Until the server answers."""
    end = time.monotonic() + SECONDS
    ready = [str(programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-q"]
    while subprocess.run(ready).returncode:
        if time.monotonic() > end or server.poll() is not None:
            raise RuntimeError("the PostgreSQL server did not start")
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
