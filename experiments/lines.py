"""Results as JSON lines: read what is there, append what is new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "results"


def read(path: Path) -> list[dict[str, Any]]:
    """Lines of the results so far."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def append(path: Path, lines: list[dict[str, Any]]) -> None:
    """Add lines to the results."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
