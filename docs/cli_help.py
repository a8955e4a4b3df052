"""Brings the help texts on the page cli.md up to date: ``python docs/cli_help.py``.

Each block of the page that begins with ``$ sensortree ... --help`` is what the program
prints; a test compares them.
"""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from sensortree.cli.app import app

PAGE = Path(__file__).parent / "cli.md"
BLOCK = re.compile(r"^```console\n\$ sensortree ([a-z ]*)--help\n.*?^```$", re.M | re.S)


def help_text(command: str) -> str:
    """What the program prints about a command, or about itself."""
    result = CliRunner().invoke(
        app, [*command.split(), "--help"], terminal_width=80, prog_name="sensortree"
    )
    return "\n".join(line.rstrip() for line in result.stdout.strip().splitlines())


def up_to_date(page: str) -> str:
    """The page with the program's help texts in it."""

    def block(found: re.Match[str]) -> str:
        command = found[1]
        return f"```console\n$ sensortree {command}--help\n{help_text(command)}\n```"

    return BLOCK.sub(block, page)


if __name__ == "__main__":
    PAGE.write_text(up_to_date(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
