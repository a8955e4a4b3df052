"""`OnDisk`: chunks of rows in files, of which as many are in memory as there is room for.

A chunk that there is no room for is read, worked on and dropped; what a step changed of it
is written when the step is done, and in the middle of a step the log since then is done
again instead. Large arrays are in files, those of one writing in one: what was not changed
is not written again, and what a task does not look at is not read. While a chunk is worked
on, the next one is on its way from the disk.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sensortree.outofcore.chunk import LoggedChunks, Source, Told, caught_up

# Bytes from which an array is in a file, and where one may begin there.
LARGE, ALIGNED = 1 << 12, 64
# Room that a chunk needs beside its arrays while it is worked on, as a multiple of them,
# and what the process needs besides.
WORKING, BESIDES = 2.0, 1 << 28
# What holds no array.
PLAIN = frozenset({int, float, bool, str, bytes, slice, type(None)})


class StoredArray(NamedTuple):
    """Where an array is."""

    file: str
    start: int
    dtype: str
    shape: tuple[int, ...]
    by_columns: bool

    @property
    def n_bytes(self) -> int:
        """Its size."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


class StoredChunk(NamedTuple):
    """A chunk that is in files: all of it but its large arrays, and where these are."""

    version: int
    state: bytes
    places: tuple[StoredArray, ...]


# Arrays by their identity, which holds as long as they do, and where they are.
StoredArrays = dict[int, tuple[StoredArray, Any]]


class HeldChunk(NamedTuple):
    """A chunk in memory, its version, and which of its arrays are in files."""

    chunk: Any
    version: int
    known: StoredArrays


class OnDisk(LoggedChunks):
    """Chunks in files of a folder, which is empty and left as it is in the end.

    Chunks stay in memory as long as all together need less than `max_memory`, in bytes;
    one chunk at a time is needed at least.
    """

    def __init__(self, folder: Path, sources: Sequence[Source], max_memory: float):
        super().__init__()
        self.folder, self.sources = Path(folder), list(sources)
        self.folder.mkdir(exist_ok=True)
        self.max_memory = max_memory
        self.held: dict[int, HeldChunk] = {}
        self.sizes: dict[int, int] = {}
        self.written: dict[int, StoredChunk] = {}
        self._n_files = 0

    def _call(self, asked: Told | None) -> Iterator[Any]:
        return (self._one(number, asked) for number in range(len(self.sources)))

    def _one(self, number: int, asked: Told | None) -> Any:
        """What a chunk says; it is then held, or written if it has changed."""
        chunk, version, known = self._take(number)
        self._send_for((number + 1) % len(self.sources))
        answer = caught_up(chunk, self.log[version:], asked)
        self.sizes[number] = size_of(chunk)
        self.held[number] = HeldChunk(chunk, len(self.log), known)
        del chunk
        while self.held and not self._has_room():
            last = max(self.held)
            self._put_away(last, self.held.pop(last))
        return answer

    def _take(self, number: int) -> HeldChunk:
        """A chunk: from memory, from its files, or made anew."""
        if number in self.held:
            return self.held.pop(number)
        if number not in self.written:
            return HeldChunk(self.sources[number].make(), 0, {})
        version, state, _ = self.written[number]
        reader = _Reader(state)
        return HeldChunk(reader.load(), version, reader.known)

    def _send_for(self, number: int) -> None:
        """Have a chunk that is in files read ahead, where the system can do that."""
        if number in self.held or number not in self.written:
            return
        for name, places in _by_file(self.written[number].places).items():
            with open(name, "rb") as file:
                for place in places if hasattr(os, "posix_fadvise") else ():
                    os.posix_fadvise(
                        file.fileno(),
                        place.start,
                        place.n_bytes,
                        os.POSIX_FADV_WILLNEED,
                    )

    def _has_room(self) -> bool:
        """Whether what is held may stay in memory, beside the largest at work."""
        held = sum(self.sizes[k] for k in self.held)
        working = WORKING * max(self.sizes.values())
        return BESIDES + held + working <= self.max_memory

    def _put_away(self, number: int, kept: HeldChunk) -> None:
        """Write what has changed of a chunk, unless it is in the middle of a step."""
        before = self.written.get(number)
        changed = before is None or before.version != kept.version
        if not (changed and kept.chunk.settled):
            return
        buffer = BytesIO()
        name = self.folder / f"{number}-{self._n_files}"
        self._n_files += 1
        with _Writer(buffer, name, kept.known) as writer:
            writer.dump(kept.chunk)
        places = tuple(writer.used.values())
        self.written[number] = StoredChunk(kept.version, buffer.getvalue(), places)
        if before is not None:
            for old in _by_file(before.places).keys() - _by_file(places).keys():
                os.unlink(old)


def _by_file(places: Sequence[StoredArray]) -> dict[str, list[StoredArray]]:
    """Places by the file that they are in."""
    found: dict[str, list[StoredArray]] = {}
    for place in places:
        found.setdefault(place.file, []).append(place)
    return found


class _Writer(pickle.Pickler):
    """Writes large arrays to a file, but for those that are in one."""

    def __init__(self, buffer: BytesIO, name: Path, known: StoredArrays):
        super().__init__(buffer, protocol=5)
        self.name, self.known = name, dict(known)
        self.used: dict[int, StoredArray] = {}  # all arrays, by their identity
        self._file: Any = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def persistent_id(self, value: Any) -> StoredArray | None:
        """Where a large array is; None for all else."""
        if not isinstance(value, np.ndarray) or value.nbytes < LARGE:
            return None
        if value.dtype.hasobject:
            return None
        if id(value) not in self.known:
            self.known[id(value)] = self._append(value), value
        self.used[id(value)] = self.known[id(value)][0]
        return self.used[id(value)]

    def _append(self, value: Any) -> StoredArray:
        if self._file is None:
            self._file = open(self.name, "wb")  # noqa: SIM115 - closed on exit
        by_columns = value.flags.f_contiguous and not value.flags.c_contiguous
        start = -(-self._file.tell() // ALIGNED) * ALIGNED
        self._file.seek(start)
        self._file.write(np.ascontiguousarray(value.T if by_columns else value).data)
        return StoredArray(
            str(self.name), start, value.dtype.str, value.shape, bool(by_columns)
        )


class _Reader(pickle.Unpickler):
    """Reads arrays when they are looked at; they cannot be written to."""

    def __init__(self, state: bytes):
        super().__init__(BytesIO(state))
        self.known: StoredArrays = {}
        self._arrays: dict[StoredArray, Any] = {}

    def persistent_load(self, place: StoredArray) -> Any:
        """The array at a place, one for all who hold it."""
        if place not in self._arrays:
            file, start, dtype, shape, by_columns = place
            order: Any = "F" if by_columns else "C"
            array = np.asarray(np.memmap(file, dtype, "r", start, shape, order))
            self._arrays[place] = array
            self.known[id(array)] = place, array
        return self._arrays[place]


def size_of(value: Any) -> int:
    """Bytes of all arrays that something holds, those that files are read into too."""
    seen: set[int] = set()
    size, left = 0, [value]
    while left:
        each = left.pop()
        if type(each) in PLAIN or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            if isinstance(each.base, np.ndarray):
                left.append(each.base)
            else:
                size += each.nbytes
        elif isinstance(each, dict):
            left += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            left += each
        elif type(each).__module__.startswith("sensortree"):
            left.append(getattr(each, "__dict__", None))
    return size
