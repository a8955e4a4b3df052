"""The lower bounds of pyproject.toml as a list that pip installs exactly.

``python .ci/lowest.py`` prints what the library and every extra ask for, ``>=`` read as
``==``, and after it the tools that the tests are written with, which have no bounds of
their own, at the versions of constraints.txt. A condition such as
``python_version < "3.15"`` stays in its line: pip decides. `make lowest` installs the list.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TOOLS = "test"  # the dependency group
BOUND = re.compile(
    r"(?P<name>[\w.-]+)(?P<extras>\[[\w,-]+\])?>=(?P<version>[\w.]+)"
    r"(?P<without>(,!=[\w.]+)*)(?P<marker>\s*;.*)?"
)


def lowest(project: dict[str, Any]) -> list[str]:
    """Pins of the dependencies and of all extras, each once, in the order of the file."""
    name, extras = project["name"], project["optional-dependencies"]
    asked = [
        *project["dependencies"],
        *(line for one in extras.values() for line in one),
    ]
    ours = re.compile(rf"{re.escape(name)}\[[\w,]+\]")
    return list(dict.fromkeys(pin(line) for line in asked if not ours.fullmatch(line)))


def pin(requirement: str) -> str:
    """One requirement at its lower bound."""
    found = BOUND.fullmatch(requirement)
    if found is None:
        raise ValueError(
            f"pyproject.toml asks for {requirement!r}, which is not of the form "
            "'name>=version' or 'name>=version,!=other': it has no lowest version."
        )
    name, extras, version, marker = found.group("name", "extras", "version", "marker")
    return f"{name}{extras or ''}=={version}{marker or ''}"


def tools(names: Iterable[str], constraints: str) -> list[str]:
    """Those lines of constraints.txt that pin the tools."""
    pins = {plain(line.partition("==")[0]): line for line in constraints.split()}
    return [pins[plain(name)] for name in names]


def plain(name: str) -> str:
    """Name of a package as all spellings of it agree."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Print the list."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    named = settings["dependency-groups"][TOOLS]
    print("\n".join([*lowest(settings["project"]), *tools(named, constraints)]))


if __name__ == "__main__":
    main()
