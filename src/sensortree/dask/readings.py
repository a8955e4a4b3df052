"""`Readings`: all readings of a fit, in an order that no partition decides, and chunks.

Rows are sorted by their readings, as those of a fit in memory are, so that they are held
out together with the same rows. The order needs a few columns, one at a time: eight bytes
for each row are in memory here, whatever the number of sensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from sensortree.dask.fit_rows import make_rows
from sensortree.dask.log import Source
from sensortree.dask.partitions import OnCluster, column_of, pieces_of
from sensortree.learning.settings import Settings
from sensortree.leaves.folds import (
    Dealt,
    assign_folds,
    first_of_runs,
    order_of_rows,
    run_numbers,
)
from sensortree.leaves.rows import TrainingRows
from sensortree.program.chunks import cut
from sensortree.types import Array, Rows

# Columns that are remembered: the first few decide nearly everything.
REMEMBERED = 6


class OnWorkersReadings:
    """Readings on the workers of a cluster."""

    def __init__(self, cluster: OnCluster, parts: Sequence[Any], lengths: Rows):
        self.cluster, self.parts = cluster, list(parts)
        self.ends = np.cumsum(lengths)

    def column(self, column: int) -> Array:
        """One column of all rows."""
        task = self.cluster.client.submit
        each = [task(column_of, part, column) for part in self.parts]
        return np.concatenate(self.cluster.client.gather(each))

    def gathered(self, chunks: Sequence[Rows]) -> list[tuple[list[Any], Rows]]:
        """For each chunk the pieces that its rows are in, and where they stand there."""
        submit = self.cluster.client.submit
        homes = [np.searchsorted(self.ends, rows, side="right") for rows in chunks]
        begins = np.r_[0, self.ends[:-1]]
        pieces: list[list[Any]] = [[] for _ in chunks]
        for number, part in enumerate(self.parts):
            wanted = [
                (rows[home == number] - begins[number]).astype(np.int32)
                for rows, home in zip(chunks, homes, strict=True)
            ]
            split = submit(pieces_of, part, wanted, pure=False)
            for k in range(len(chunks)):
                pieces[k].append(submit(_item, split, k, pure=False))
        places: list[Rows] = []
        for home in homes:
            place: Rows = np.empty(len(home), dtype=np.intp)
            place[np.argsort(home, kind="stable")] = np.arange(len(home))
            places.append(place)
        return list(zip(pieces, places, strict=True))

    def sent(self, values: Any) -> Any:
        """A future of some values, which Dask has again if a worker is lost."""
        return self.cluster.client.submit(_same, values, pure=False)


def _same(values: Any) -> Any:
    return values


def _item(values: Sequence[Any], k: int) -> Any:
    return values[k]


class OnDiskReadings:
    """Readings in a file, column by column."""

    def __init__(self, folder: Path, parts: Iterator[Array], lengths: Rows):
        self.path = Path(folder) / "readings.npy"
        ends = np.cumsum(lengths)
        table: Any = None
        for end, part in zip(ends, parts, strict=True):
            if table is None:
                shape = (part.shape[1], int(ends[-1]))
                table = np.lib.format.open_memmap(self.path, "w+", np.float64, shape)
            table[:, end - len(part) : end] = part.T
        table.flush()

    def column(self, column: int) -> Array:
        """One column of all rows."""
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


AllReadings = OnWorkersReadings | OnDiskReadings


class Ordered:
    """Rows in the order of their readings.

    Attributes
    ----------
    order : ndarray of shape (n_rows,)
        The row, as it was given, at each place.
    y, fold, weight : ndarray of shape (n_rows,)
        By place.
    """

    def __init__(
        self,
        readings: AllReadings,
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
            dealt = Dealt(y, reading, classes=frame.classes)
            fold = assign_folds(dealt, int(settings.cv), settings.random_state)
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
        return [
            Source(
                make,
                (
                    pieces,
                    self.readings.sent(
                        (
                            place,
                            self.y[some].astype(code),
                            self._fold(some),
                            rows,
                            self.weight[some],
                        )
                    ),
                ),
            )
            for (pieces, place), some, rows in zip(
                self.readings.gathered(chunks), places, chunks, strict=True
            )
        ]

    def _fold(self, some: slice) -> Rows:
        return np.asarray(self.fold[some].astype(np.int16))
