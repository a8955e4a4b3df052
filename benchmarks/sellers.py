"""A simulated seller of lookups: fails, hangs, honours tokens, notes what it charged."""

from __future__ import annotations

import os
import random
import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sensortree.dask import Ask

# What is noted of each row that is charged, and of each call.
CHARGE = np.dtype([("key", "<i8"), ("token", "S32")])
CALL = np.dtype([("at", "<f8"), ("rows", "<i8")])


@dataclass(frozen=True)
class Seller:
    """Sells some columns of a file of rows.

    Of its calls, `refused` fail before anything is charged, `broken` after it, so that the
    answer is lost, and `hanging` answer only when nobody waits any more. A token is
    charged once: what was charged is the set of tokens in its notes.

    Attributes
    ----------
    sensor : str
    rows : str
        File of all rows (.npy), of which it sells `columns`.
    columns : tuple of int
    notes : str
        Folder of its notes, a file for each process.
    refused, broken, hanging : float
        Shares of its calls.
    hangs : float
        Seconds.
    """

    sensor: str
    rows: str
    columns: tuple[int, ...]
    notes: str
    refused: float = 0.02
    broken: float = 0.01
    hanging: float = 0.002
    hangs: float = 4.0

    def __call__(self, ask: Ask) -> Any:
        """Answer, or fail."""
        keys = np.array(ask.keys, dtype=np.int64)
        self._note("calls", np.array([(time.time(), len(keys))], CALL))
        fate = random.random()
        if fate < self.refused:
            raise ConnectionError("refused")
        charged = np.empty(len(keys), CHARGE)
        charged["key"], charged["token"] = keys, ask.tokens
        self._note("charges", charged)
        if fate < self.refused + self.broken:
            raise ConnectionError("the line broke")
        if fate < self.refused + self.broken + self.hanging:
            time.sleep(self.hangs)
        return _file(self.rows)[keys][:, self.columns]

    def _note(self, what: str, lines: Any) -> None:
        name = f"{self.sensor}-{what}-{os.getpid()}-{threading.get_ident()}"
        with open(Path(self.notes) / name, "ab") as notes:
            notes.write(lines.tobytes())


@lru_cache
def _file(path: str) -> Any:
    return np.load(path, mmap_mode="r")


def noted(folder: str, sensor: str, what: str, dtype: np.dtype[Any]) -> Any:
    """All notes of a kind about a sensor."""
    size = dtype.itemsize
    found = []
    for path in sorted(Path(folder).glob(f"{sensor}-{what}-*")):
        content = (
            path.read_bytes()
        )  # who was killed while writing has left part of a line
        found.append(np.frombuffer(content[: len(content) // size * size], dtype))
    return np.concatenate(found) if found else np.empty(0, dtype)
