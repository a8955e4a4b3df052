"""A simulated seller of readings: honours tokens, and remembers what it charged."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import numpy as np


class Bureau:
    """Sells the columns of one sensor, by row, and notes each call in a folder.

    It charges a token once, however often it is asked: what it has charged is the set of
    tokens in its notes.
    """

    def __init__(self, X, columns, folder, sensor, fails=None):
        self.X, self.columns, self.sensor = X, columns, sensor
        self.folder, self.fails = Path(folder), fails

    def __call__(self, ask):
        assert ask.sensor == self.sensor
        if self.fails is not None:
            self.fails(ask)
        note = json.dumps([self.sensor, list(ask.keys), list(ask.tokens)])
        name = f"{self.sensor}-{os.getpid()}-{threading.get_ident()}.jsonl"
        with (self.folder / name).open("a") as notes:
            notes.write(note + "\n")
        return self.X[np.array(ask.keys, dtype=int)][:, self.columns]


def charges(folder):
    """Tokens that were charged, by sensor and key, and how often each was asked for."""
    found = {}
    for path in sorted(Path(folder).glob("*.jsonl")):
        for line in path.read_text().splitlines():
            sensor, keys, tokens = json.loads(line)
            for key, token in zip(keys, tokens, strict=True):
                of = found.setdefault((sensor, key), {})
                of[token] = of.get(token, 0) + 1
    return found
