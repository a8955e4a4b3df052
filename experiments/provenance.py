"""With what lines were measured: commit, versions, machine; one entry per kind of run."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sensortree import __version__

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "lightgbm", "pystreed")


def note_run(path: Path, seeds: str) -> int:
    """Add this run to a file of runs, unless it is there; give its number."""
    runs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    this = {**provenance(), "seeds": seeds}
    if this not in runs:
        runs.append(this)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
    return int(runs.index(this))


def provenance() -> dict[str, Any]:
    """What a result depends on besides its settings."""
    versions = {"sensortree": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "-"
    sources = ("src", "experiments", "benchmarks")
    return {
        "commit": git("rev-parse", "--short", "HEAD"),
        "date": datetime.now(UTC).date().isoformat(),
        "changed": bool(git("status", "--porcelain", "--", *sources)),
        "versions": versions,
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}",
    }


def git(*arguments: str) -> str:
    """What git says, or nothing where there is no repository."""
    try:
        said = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return said.stdout.strip()


def processor() -> str:
    """Name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    names = [i.split(":", 1)[1].strip() for i in text.splitlines() if "model name" in i]
    return names[0] if names else platform.machine()
