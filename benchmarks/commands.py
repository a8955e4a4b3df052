"""Seconds of the commands on a messy table of 600 patients.

    python -m benchmarks.commands

Nine sensors with one-hot columns and missing values (`benchmarks.fit.clinical`), written to
a table and a sensors file in a temporary folder. Processor
seconds of the processes and of what they start, start-up included.
"""

from __future__ import annotations

import csv
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.fit import clinical

NUMBERS = ("age", "weight", "pressure", "sodium", "potassium", "enzyme", "ecg1", "ecg2")
NAMES = (*NUMBERS, "stress1", "stress2", "ward", "pain", "scan", "smoker")
SENSORS = {
    "history": (["age", "weight", "pressure"], 1, None),
    "smoker": (["smoker"], 1, "one-hot"),
    "ward": (["ward"], 2, "one-hot"),
    "pain": (["pain"], 1, "one-hot"),
    "blood": (["sodium", "potassium"], 7, "impute"),
    "enzyme": (["enzyme"], 9, "impute"),
    "cardiogram": (["ecg1", "ecg2"], 15, "impute"),
    "scan": (["scan"], 40, "one-hot"),
    "stress": (["stress1", "stress2"], 80, "impute"),
}
ON = ["ward.csv", "--sensors", "sensors.toml"]
COMMANDS = {
    "fit": ["fit", *ON, "-o", "model.json"],
    "fit --budget 20": ["fit", *ON, "--budget", "20", "-o", "budget.json"],
    "curve": ["curve", *ON],
    "compare": ["compare", *ON],
}


def write_table(folder: Path) -> None:
    """Write the table and the sensors file."""
    table = clinical()
    with (folder / "ward.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow([*NAMES, "ill"])
        for row, ill in zip(table.X, table.y, strict=True):
            numbers = ["" if np.isnan(v) else f"{v:.4f}" for v in row[:10]]
            levels = [f"level {int(v)}" for v in row[10:]]
            lines.writerow([*numbers, *levels, "yes" if ill else "no"])
    said = ['target = "ill"', "cost_weight = 0.002"]
    for name, (columns, cost, transformer) in SENSORS.items():
        said += [f"[sensors.{name}]", f"columns = {columns}", f"cost = {cost}"]
        said += [] if transformer is None else [f'transformer = "{transformer}"']
    (folder / "sensors.toml").write_text("\n".join(said) + "\n", encoding="utf-8")


def seconds(command: list[str], folder: Path) -> float:
    """Processor time of a command and what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "sensortree", *command],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a table."""
    print("| command | s |\n|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder)
        for shown, command in COMMANDS.items():
            print(f"| {shown} | {seconds(command, folder):.1f} |", flush=True)


if __name__ == "__main__":
    main()
