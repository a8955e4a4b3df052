"""`OnDisk`: chunks of rows in files, of which as many are in memory as there is room for.

A chunk that there is no room for is read, worked on and dropped; what a step changed of it
is written when the step is done, and in the middle of a step the log since then is done
again instead. Arrays have a file each: those that were not changed are not written again,
and those that a task does not look at are not read.
"""

from __future__ import annotations

import mmap
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sensortree.dask.log import Logged, Source, Told, caught_up

# Bytes from which an array has a file of its own.
LARGE = 1 << 12
# Room that a chunk needs beside its arrays while it is worked on, as a multiple of them,
# and what the process needs besides.
WORKING, BESIDES = 2.0, 1 << 28


class OnDisk(Logged):
    """Chunks in files of a folder.

    Parameters
    ----------
    folder : path
        Must be empty; it is left as it is when the work is done.
    sources : list of Source
        What makes each chunk, one at a time.
    max_memory : int
        Bytes. Chunks stay in memory as long as all together need less; one chunk at a
        time is needed at least.
    """

    def __init__(self, folder: Path, sources: Sequence[Source], max_memory: float):
        super().__init__()
        self.folder, self.sources = Path(folder), list(sources)
        self.folder.mkdir(exist_ok=True)
        self.max_memory = max_memory
        self.held: dict[int, Any] = {}
        self.sizes: dict[int, int] = {}
        self.version: list[int | None] = [None] * len(self.sources)  # of the file
        self.held_version: dict[int, int] = {}
        self._n_files = 0

    def _call(self, asked: Told | None) -> list[Any]:
        return [self._one(number, asked) for number in range(len(self.sources))]

    def _one(self, number: int, asked: Told | None) -> Any:
        """What a chunk says; it is then held, or written if it has changed."""
        chunk, version = self._take(number)
        said = caught_up(chunk, self.log.since(version))
        if asked is not None:
            said = asked.done_to(chunk)
        changed = self.version[number] != self.log.version
        self.sizes[number] = size_of(chunk)
        if self._has_room(number):
            self.held[number] = chunk
            self.held_version[number] = self.log.version
        elif changed and chunk.settled:
            self._write(number, chunk)
        return said

    def _take(self, number: int) -> tuple[Any, int]:
        """A chunk and its version: from memory, from its file, or made anew."""
        if number in self.held:
            return self.held.pop(number), self.held_version[number]
        version = self.version[number]
        if version is None:
            source = self.sources[number]
            return source.make(*source.arguments), 0
        with open(self._file(number), "rb") as file:
            return _Reader(file).load(), version

    def _has_room(self, number: int) -> bool:
        """Whether a chunk may stay in memory, beside the largest that is worked on."""
        sizes = self.sizes
        held = sum(sizes[k] for k in self.held) + sizes[number]
        working = WORKING * max(sizes.values())
        return BESIDES + held + working <= self.max_memory

    def _file(self, number: int) -> Path:
        return self.folder / f"chunk-{number}.pickle"

    def _write(self, number: int, chunk: Any) -> None:
        """Write what has changed of a chunk, and remove what it no longer needs."""
        new = self._file(number).with_suffix(".new")
        with open(new, "wb") as file:
            writer = _Writer(file, self.folder / f"{number}-{self._n_files}")
            writer.dump(chunk)
        self._n_files += 1
        new.replace(self._file(number))
        self.version[number] = self.log.version
        for path in self.folder.glob(f"{number}-*.npy"):
            if str(path) not in writer.used:
                path.unlink()


class _Writer(pickle.Pickler):
    """Writes large arrays to files of their own, and names those that are in one."""

    def __init__(self, file: Any, stem: Path):
        super().__init__(file, protocol=5)
        self.stem, self.used = stem, set[str]()
        self._names: dict[int, tuple[str, Any]] = {}

    def persistent_id(self, value: Any) -> str | None:
        """Name of the file of a large array; None for all else."""
        if not isinstance(value, np.ndarray) or value.nbytes < LARGE:
            return None
        if value.dtype.hasobject:
            return None
        if id(value) not in self._names:
            self._names[id(value)] = self._name(value), value
        name = self._names[id(value)][0]
        self.used.add(name)
        return name

    def _name(self, value: Any) -> str:
        # A slice of what is in a file is no whole file.
        if isinstance(value, np.memmap) and isinstance(value.base, mmap.mmap):
            return str(value.filename)
        name = f"{self.stem}-{len(self._names)}.npy"
        np.save(name, value)
        return name


class _Reader(pickle.Unpickler):
    """Reads arrays when they are looked at; they cannot be written to."""

    def persistent_load(self, name: str) -> Any:
        """The array in a file."""
        return np.load(name, mmap_mode="r")


def size_of(value: Any, seen: set[int] | None = None) -> int:
    """Bytes of all arrays that something holds in memory."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.memmap):
        return 0
    if isinstance(value, np.ndarray):
        return value.nbytes if value.base is None else size_of(value.base, seen)
    if isinstance(value, dict):
        return sum(size_of(each, seen) for each in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return sum(size_of(each, seen) for each in value)
    ours = type(value).__module__.startswith("sensortree")
    return size_of(vars(value), seen) if ours and hasattr(value, "__dict__") else 0
