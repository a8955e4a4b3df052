"""Results as JSON lines: read what is there, append what is new."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Line = dict[str, Any]
FOLDER = Path(__file__).resolve().parent.parent / "docs" / "results"


def read(path: Path) -> list[Line]:
    """Lines of the results so far; one without its end was never finished."""
    if not path.exists():
        return []
    whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def append(path: Path, lines: Iterable[Line]) -> None:
    """Add lines in one write, so that a run that is killed leaves whole lines.

    Six digits, nothing empty; cost weights are exact keys.
    """
    text = "".join(
        json.dumps(kept(line), separators=(",", ":")) + "\n" for line in lines
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    drop_unfinished(path)
    with path.open("ab", buffering=0) as file:
        file.write(text.encode())


def replace_lines(path: Path, lines: Iterable[Line]) -> None:
    """Put other lines in place of all that are there, at once."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    append(new, lines)
    new.replace(path)


def kept(line: Line) -> Line:
    """What is kept of a line."""
    return {
        key: float(f"{value:.6g}")
        if isinstance(value, float) and key != "cost_weight"
        else value
        for key, value in line.items()
        if value is not None
    }


def drop_unfinished(path: Path) -> None:
    """Cut off a last line without its end."""
    if path.exists() and not (content := path.read_bytes()).endswith(b"\n"):
        with path.open("r+b") as file:
            file.truncate(content.rfind(b"\n") + 1)
