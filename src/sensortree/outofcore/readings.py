"""Where readings are, all rows in an order that no partition decides, and chunks of them.

Rows are sorted by their readings, as those of a fit in memory are, so that they are held
out together with the same rows. The order needs a few columns, one at a time: eight bytes
for each row are in memory here, whatever the number of sensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np

from sensortree.learning.settings import Settings
from sensortree.leaves.folds import (
    assign_folds,
    first_of_runs,
    order_of_rows,
    run_numbers,
)
from sensortree.leaves.rows import TrainingRows
from sensortree.outofcore.chunk import Source, make_rows
from sensortree.program.chunks import cut
from sensortree.types import Array, Rows

# Columns that are remembered: the first few decide nearly everything.
REMEMBERED = 6


class Cluster:
    """Partitions on the workers of a client, where their readings stay."""

    def __init__(self, client: Any):
        self.client = client

    def map(
        self, function: Callable[..., Any], *arguments: Sequence[Any]
    ) -> Iterator[Any]:
        """What a function says of each partition."""
        return iter(self.client.gather(self._made(function, *arguments)))

    def _made(
        self, function: Callable[..., Any], *arguments: Sequence[Any]
    ) -> list[Any]:
        """Futures of what a function makes of each partition."""
        from dask.delayed import delayed

        task = delayed(function, pure=False)
        made = [task(*each) for each in zip(*arguments, strict=True)]
        return list(self.client.compute(made))

    def read(
        self, lengths: Rows, function: Callable[..., Array], *arguments: Sequence[Any]
    ) -> None:
        """Have readings made of each partition, of so many rows each, and kept."""
        self.parts = self._made(function, *arguments)
        self.ends = np.cumsum(lengths)

    def column(self, column: int) -> Array:
        """One column of all readings."""
        submit, one = self.client.submit, (slice(None), column)
        each = [submit(getitem, part, one) for part in self.parts]
        return np.concatenate(self.client.gather(each))

    def gathered(self, chunks: Sequence[Rows]) -> list[tuple[list[Any], Rows]]:
        """For each chunk the pieces that its rows are in, and where they stand there."""
        submit = self.client.submit
        homes = [np.searchsorted(self.ends, rows, side="right") for rows in chunks]
        begins = np.r_[0, self.ends[:-1]]
        pieces: list[list[Any]] = [[] for _ in chunks]
        for number, part in enumerate(self.parts):
            wanted = [
                (rows[home == number] - begins[number]).astype(np.int32)
                for rows, home in zip(chunks, homes, strict=True)
            ]
            split = submit(_pieces, part, wanted, pure=False)
            for k in range(len(chunks)):
                pieces[k].append(submit(getitem, split, k, pure=False))
        places: list[Rows] = []
        for home in homes:
            place: Rows = np.empty(len(home), dtype=np.intp)
            place[np.argsort(home, kind="stable")] = np.arange(len(home))
            places.append(place)
        return list(zip(pieces, places, strict=True))

    def sent(self, values: Any) -> Any:
        """A future of some values, which Dask has again if a worker is lost."""
        return self.client.submit(_same, values, pure=False)


def _pieces(readings: Array, wanted: Sequence[Rows]) -> list[Array]:
    return [readings[rows] for rows in wanted]


def _same(values: Any) -> Any:
    return values


class ThisMachine:
    """Partitions that are computed here, one at a time; readings are in a file."""

    def __init__(self, folder: Path):
        self.path = folder / "readings.npy"

    def map(
        self, function: Callable[..., Any], *arguments: Sequence[Any]
    ) -> Iterator[Any]:
        """What a function says of each partition."""
        from dask.base import compute

        for each in zip(*arguments, strict=True):
            yield function(*compute(*each, scheduler="synchronous"))

    def read(
        self, lengths: Rows, function: Callable[..., Array], *arguments: Sequence[Any]
    ) -> None:
        """Have readings made of each partition, of so many rows each, column by column."""
        ends = np.cumsum(lengths)
        table: Any = None
        for end, part in zip(ends, self.map(function, *arguments), strict=True):
            if table is None:
                shape = (part.shape[1], int(ends[-1]))
                table = np.lib.format.open_memmap(self.path, "w+", np.float64, shape)
            table[:, end - len(part) : end] = part.T
        table.flush()

    def column(self, column: int) -> Array:
        """One column of all readings."""
        return np.array(np.load(self.path, mmap_mode="r")[column])

    def gathered(self, chunks: Sequence[Rows]) -> list[tuple[list[Any], Rows]]:
        """For each chunk the pieces that its rows are in, and where they stand there."""
        return [([FilePiece(self.path, rows)], np.arange(len(rows))) for rows in chunks]

    def sent(self, values: Any) -> Any:
        """The values: nothing is sent."""
        return values


class FilePiece:
    """Some rows of a file of columns, read when they are looked at."""

    def __init__(self, path: Path, rows: Rows):
        self.path, self.rows = path, rows

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        table = np.load(self.path, mmap_mode="r")
        ascending = np.argsort(self.rows, kind="stable")
        found = np.empty((len(self.rows), len(table)))
        for k, column in enumerate(table):
            found[ascending, k] = column[self.rows[ascending]]
        return found


class Ordered:
    """Rows in the order of their readings.

    `order` is the row, as it was given, at each place; `y`, `fold` and `weight` go by
    place. All are (n_rows,).
    """

    def __init__(
        self,
        readings: Cluster | ThisMachine,
        frame: TrainingRows,
        codes: Rows,
        weight: Array,
        settings: Settings,
    ):
        self.readings, self.frame = readings, frame
        column = lru_cache(REMEMBERED)(readings.column)
        sensors, widths = frame.sensors, frame.reader.widths
        starts = np.cumsum([0, *widths])
        in_X = sorted(range(len(sensors)), key=lambda s: min(sensors.columns[s]))
        by_X = [starts[s] + c for s in in_X for c in range(widths[s])]
        n_rows = len(codes)
        own = [int(starts[-1]) + s for s in in_X if s in sensors.varying]
        columns = (column(int(c)) for c in [*by_X, *own])
        order = order_of_rows(chain(columns, [codes, weight]), n_rows)
        y, weight = codes[order], weight[order]
        read = (column(c)[order] for c in range(int(starts[-1])))
        reading = run_numbers(read, n_rows)
        fold = np.full(n_rows, -1)
        if settings.cv is not None:
            n_folds, named = int(settings.cv), frame.classes
            seed = settings.random_state
            fold = assign_folds(y, reading, n_folds, None, named, seed)
        paid = (column(c)[order] for c in own)
        cell = run_numbers(chain([reading], paid, [y]), n_rows)
        # Rows that are equal, and held out together, stand side by side.
        again = np.lexsort([weight, fold, cell])
        self.order = order[again]
        self.y, self.fold, self.weight = y[again], fold[again], weight[again]
        self.distinct = first_of_runs([cell[again], self.fold], n_rows)

    def sources(self, at_once: int, n_coef: int) -> list[Source]:
        """What makes each chunk of rows.

        Chunks are of distinct rows, as those of the program of a fit in memory are.
        """
        first = np.r_[self.distinct, len(self.order)]
        parts = cut(len(self.distinct), at_once, n_coef)
        places = [slice(first[part.start], first[part.stop]) for part in parts]
        chunks = [self.order[some] for some in places]
        code = np.min_scalar_type(max(1, len(self.frame.classes)))
        make = partial(make_rows, self.frame)
        found = []
        gathered = self.readings.gathered(chunks)
        for (pieces, place), some, rows in zip(gathered, places, chunks, strict=True):
            y, fold = self.y[some].astype(code), self.fold[some].astype(np.int16)
            labels = self.readings.sent((place, y, fold, rows, self.weight[some]))
            found.append(Source(make, (pieces, labels)))
        return found
