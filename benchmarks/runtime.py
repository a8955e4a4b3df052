"""What it takes to ask a model where nothing is learned.

    python -m benchmarks.runtime

A fitted model is saved, and then asked in new processes: loaded, one row predicted and
explained, one session run to its decision. "Alone" has NumPy and narwhals and cannot import
anything else that is installed; "fitted" unpickles the classifier, with scikit-learn.
Megabytes on disk are those of the installed packages, without what Python compiles; seconds
are of the processor, the least of several runs, Python's start included; memory is the most
that a process held (on Linux).
"""

from __future__ import annotations

import pickle
import re
import resource
import subprocess
import sys
import tempfile
from importlib.metadata import distribution, requires
from pathlib import Path

import numpy as np

import sensortree

RUNS = 7
ALONE = ("numpy", "narwhals")
BLOCKED = ("sklearn", "scipy", "joblib", "threadpoolctl", "pandas", "polars", "pyarrow")
# What a process does once it has a model: names `path` and `row` are given.
ASK = """
model.predict_proba(row), model.explain(row)
model.policy_.acquire(lambda sensor, columns: [0.3] * len(columns))
"""
# The most memory so far, in kilobytes; what getrusage says is that of the parent, too.
MEMORY = """
print(next(line.split()[1] for line in open("/proc/self/status") if "VmHWM" in line))
"""
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        if root in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{root!r}}", name=root)
sys.meta_path.insert(0, Block())
"""
WAYS = {
    "alone": BLOCK.format(blocked=BLOCKED)
    + "import sensortree; model = sensortree.load(path)",
    "fitted": "import pickle; model = pickle.load(open(path + '.pickle', 'rb'))",
    "nothing but Python": "model = None",
}


def write_model(path: Path) -> list[list[float]]:
    """Fit and save a model of six sensors; give a row to ask it about."""
    X = np.random.default_rng(0).normal(size=(400, 12))
    y = np.where(np.abs(X[:, 0]) < 0.7, X[:, 4] + X[:, 5], X[:, 0]) > 0
    sensors = {
        f"sensor {i}": sensortree.Sensor([2 * i, 2 * i + 1], cost=1.0 + i)
        for i in range(6)
    }
    model = sensortree.SensorTreeClassifier(sensors, cost_weight=0.01).fit(X, y)
    sensortree.save(model, path)
    Path(f"{path}.pickle").write_bytes(pickle.dumps(model))
    return X[:1].tolist()


def asked(way: str, path: Path, row: list[list[float]]) -> tuple[float, float]:
    """Least seconds, and megabytes of memory, of a process that asks a model."""
    code = f"path, row = {str(path)!r}, {row!r}\n{WAYS[way]}\n"
    code += MEMORY if way == "nothing but Python" else ASK + MEMORY
    seconds, memory = [], 0.0
    for _ in range(RUNS):
        started = _processor()
        ran = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        seconds.append(_processor() - started)
        memory = int(ran.stdout) / 1024
    return min(seconds), memory


def _processor() -> float:
    """Seconds of the processor that processes begun here have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def megabytes(names: tuple[str, ...]) -> float:
    """Size on disk of installed packages."""
    files = [f for name in names for f in distribution(name).files or ()]
    paths = [Path(f.locate()) for f in files if f.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 2**20


def own_megabytes() -> float:
    """Size on disk of this package."""
    root = Path(sensortree.__file__).parent
    return sum(path.stat().st_size for path in root.rglob("*.py")) / 2**20


def core() -> tuple[str, ...]:
    """Packages that a plain installation brings."""
    lines = [line for line in requires("sensortree") or () if "extra ==" not in line]
    return tuple(re.split(r"[<>=!~; \[]", line)[0] for line in lines)


def main() -> None:
    """Print a table."""
    own = own_megabytes()
    sizes = {"alone": own + megabytes(ALONE), "fitted": own + megabytes(core())}
    print("| | MB on disk | s | MB of memory |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        row = write_model(path)
        for way in WAYS:
            seconds, memory = asked(way, path, row)
            size = f"{sizes[way]:.0f}" if way in sizes else "–"
            print(f"| {way} | {size} | {seconds:.2f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
