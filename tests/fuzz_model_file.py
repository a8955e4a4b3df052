"""Mutated model files: each is refused by our error, or is a model that answers.

    python tests/fuzz_model_file.py --files 100000 --seed 0

Half of the mutations know JSON and put the digest right, so that they come past it.
"""

from __future__ import annotations

import argparse
import collections
import copy
import gc
import json
import signal
import tempfile
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from models import fitted

from sensortree import SensorTreeError, load, save
from sensortree.exceptions import ModelFileError
from sensortree.persistence.files import NO_DIGEST, digest_of

MAX_SECONDS = 1.0
MAX_MEMORY = 64 * 2**20
SEEDS = (
    *("quadratic logistic", "boosted, two classes", "boosted, NaN", "three classes"),
    "boosted, levels",
    *("pandas", "money", "price column", "quadratic decisions"),
)
HEAD = ("format", "format_version", "digest", "library_version")
# What json.dumps would not write.
RAW = {
    "@endless": "1e999",
    "@nan": "NaN",
    "@infinity": "-Infinity",
    "@digits": "9" * 5000,
    "@deep": "[" * 40 + "]" * 40,
    "@twice": '{"a": 1, "a": 1}',
}
HOSTILE = [
    *(None, True, False, -1, 0, 1, 2, 7, 2**31, 2**63, -(2**63), 2**64, 10**400),
    *(0.5, -0.0, 1e308, -1e308, 5e-324, -1e-300, "", "x", "x" * 5000, "\ud800", "\x00"),
    *([], {}, [[]], [0], [None], [[[[]]]], {"float": "NaN"}, {"float": "Infinity"}),
    *({"float": 3}, {"kind": "skops", "type": "os.system", "data": ["UEs="]}, "skops"),
    *("raw squares", "posterior", "boosted", "constant", "pipeline", "int8", "object"),
    *RAW,
]


class Fuzzer:
    """Writes mutations of some models' files, reads them, and counts what happens."""

    def __init__(self, folder: Path, seed: int):
        self.seed = seed
        self.path = folder / "mutated.json"
        self.texts, self.rows = [], []
        for kind in SEEDS:
            model, X, prices = fitted(kind)
            save(model, self.path)
            self.texts.append(self.path.read_bytes())
            self.rows.append((X[:5], prices))
        self.counts = collections.Counter()
        self.messages = collections.Counter()
        self.slowest, self.largest = 0.0, 0

    def run(self, n_files: int) -> None:
        """Try so many mutations; the first that breaks a claim raises."""
        signal.signal(signal.SIGALRM, _hangs)
        tracemalloc.start()
        try:
            for number in range(n_files):
                if number % 10_000 == 0:
                    gc.collect()  # what pytest or NumPy left must not count as ours
                rng = np.random.default_rng((self.seed, number))
                which = int(rng.integers(len(self.texts)))
                text = mutated(self.texts[which], rng)
                try:
                    self._try(text, which)
                except Exception as error:
                    name = f"broken-{self.seed}-{number}.json"
                    kept = Path(tempfile.gettempdir()) / name
                    kept.write_bytes(text)
                    raise AssertionError(
                        f"file {number} of seed {self.seed}, {kept}: {error!r}"
                    ) from error
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            tracemalloc.stop()

    def _try(self, text: bytes, which: int) -> None:
        self.path.write_bytes(text)
        signal.setitimer(signal.ITIMER_REAL, 20.0)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        start = time.process_time()
        model = None
        try:
            model = load(self.path)
        except ModelFileError as error:
            self.counts["refused"] += 1
            self.messages[_shape(str(error))] += 1
        seconds = time.process_time() - start
        memory = tracemalloc.get_traced_memory()[1] - before
        self.slowest = max(self.slowest, seconds)
        self.largest = max(self.largest, memory)
        if seconds > MAX_SECONDS or memory > MAX_MEMORY:
            raise RuntimeError(f"{seconds:.2f} s, {memory} bytes")
        if model is not None:
            self.counts["read" if text != self.texts[which] else "unchanged"] += 1
            self._ask(model, *self.rows[which])

    def _ask(self, model, X, prices) -> None:
        """A model that was read answers, or says why it cannot."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                said = model.predict_proba(X)
                assert said.shape == (len(X), len(model.classes_))
                assert np.isin(model.predict(X), model.classes_).all()
                assert (model.acquisition_cost(X) >= 0).all()
        except SensorTreeError:
            self.counts["of these do not fit the rows"] += 1

    def __str__(self) -> str:
        counted = ", ".join(f"{n} {what}" for what, n in self.counts.most_common())
        n_files = sum(self.counts[what] for what in ("refused", "read", "unchanged"))
        return (
            f"{n_files} files of seed {self.seed}: {counted}; "
            f"{len(self.messages)} different messages; slowest {self.slowest:.3f} s, "
            f"largest {self.largest / 2**20:.1f} MiB"
        )


def _hangs(*_):
    raise TimeoutError("20 seconds have passed")


def _shape(message: str) -> str:
    """A message without its particulars."""
    return "".join("0" if c.isdigit() else c for c in message)[:60]


def mutated(text: bytes, rng: np.random.Generator) -> bytes:
    """One mutation of a file's text: of its bytes, or of its values."""
    if rng.random() < 0.4:
        return _mutate_bytes(text, rng)
    document = json.loads(text)
    for _ in range(int(rng.integers(1, 4))):
        _mutate_value(document, rng)
    return with_digest(document)


def with_digest(document) -> bytes:
    """A document as text, its digest put right."""
    if "digest" in document:
        document = {**document, "digest": NO_DIGEST}
    text = json.dumps(document)
    for name, raw in RAW.items():
        text = text.replace(json.dumps(name), raw)
    encoded = text.encode()
    digest = digest_of(encoded, NO_DIGEST)
    return encoded.replace(NO_DIGEST.encode(), digest.encode(), 1)


def _mutate_bytes(text: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(text)
    kind = rng.integers(6)
    at, end = sorted(map(int, rng.integers(0, len(text), size=2)))
    end = min(end, at + 200)
    if kind == 0:
        for place in rng.integers(0, len(text), size=int(rng.integers(1, 9))):
            changed[place] = int(rng.integers(256))
    elif kind == 1:
        del changed[at:]
    elif kind == 2:
        del changed[at:end]
    elif kind == 3:
        changed[at:at] = changed[at:end]
    elif kind == 4:
        changed[at:at] = bytes(rng.choice([b"[", b"{", b'"', b"\\", b"0", b","])) * int(
            rng.integers(1, 3000)
        )
    else:
        place = int(rng.integers(len(text)))
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _mutate_value(document, rng: np.random.Generator) -> None:
    """Change something at a place that is found by walking down at random."""
    if not document:
        return
    parent, key = document, _any_key(document, rng)
    if key in HEAD and rng.random() < 0.9:
        return
    while isinstance(parent[key], (dict, list)) and parent[key] and rng.random() < 0.9:
        parent = parent[key]
        key = _any_key(parent, rng)
    _change(parent, key, rng)


def _any_key(container, rng: np.random.Generator):
    keys = list(container) if isinstance(container, dict) else range(len(container))
    return keys[int(rng.integers(len(keys)))]


def _change(parent, key, rng: np.random.Generator) -> None:
    value = parent[key]
    kind = int(rng.integers(9))
    other = _any_key(parent, rng)
    if kind == 0:
        del parent[key]
    elif kind == 1:
        parent[key], parent[other] = parent[other], value
    elif kind == 2:
        parent[key] = parent[other]
    elif kind == 3 and isinstance(parent, list):
        parent.insert(int(rng.integers(len(parent) + 1)), value)
    elif kind == 3:
        parent[f"{key}_"] = parent.pop(key)
    elif kind == 4 and isinstance(value, list) and value:
        parent[key] = value[: int(rng.integers(len(value)))]
    elif kind in (4, 5, 6) and isinstance(value, (int, float)):
        parent[key] = value + int(rng.integers(-2, 3)) if kind < 6 else -value
    else:
        parent[key] = copy.deepcopy(HOSTILE[int(rng.integers(len(HOSTILE)))])


def main() -> None:
    """Try as many files as asked for, and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--messages", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(Path(folder), arguments.seed)
        start = time.perf_counter()
        fuzzer.run(arguments.files)
    print(f"{fuzzer} ({time.perf_counter() - start:.0f} s)")
    if arguments.messages:
        for message, n in fuzzer.messages.most_common():
            print(f"{n:7d}  {message}")


if __name__ == "__main__":
    main()
