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


def over_splits(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean over splits of every measure; each split lists its settings in one order."""
    groups: dict[int, list[dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault(line["split"], []).append(line)
    merged = []
    for same in zip(*groups.values(), strict=True):
        measures = {
            key: sum(line[key] for line in same) / len(same)
            for key, value in same[0].items()
            if isinstance(value, float) and key != "cost_weight"
        }
        merged.append({**same[0], **measures, "splits": len(same)})
        del merged[-1]["split"]
    return merged


def append(path: Path, lines: list[dict[str, Any]]) -> None:
    """Add lines to the results: six digits, nothing empty; cost weights are exact keys."""
    with path.open("a", encoding="utf-8") as file:
        for line in lines:
            kept = {
                key: float(f"{value:.6g}")
                if isinstance(value, float) and key != "cost_weight"
                else value
                for key, value in line.items()
                if value is not None
            }
            file.write(json.dumps(kept, separators=(",", ":")) + "\n")
