"""`Table`: rows and columns of an array or a frame, without asking which.

pandas, polars and pyarrow are reached through narwhals, which scikit-learn brings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError, MissingDependencyError


@dataclass(frozen=True, eq=False)
class Table:
    """A two-dimensional array or a data frame, read by rows and columns.

    Parameters
    ----------
    data : ndarray of shape (n_rows, n_columns) or a data frame
    prices : ndarray of shape (n_rows, n_sensors) or None
        Prices of each row, where they are not among the columns.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table(np.arange(6).reshape(2, 3))
    >>> table.take(rows=[1], columns=[0, 2])
    array([[3, 5]])
    """

    data: Any
    prices: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if not self.holds(self.data):
            raise DataError(
                f"X must be a two-dimensional array or a data frame, got "
                f"{type(self.data).__name__}."
            )

    @staticmethod
    def holds(data: Any) -> bool:
        """Whether the data can be read as it is: a 2-D array, or a frame."""
        array = isinstance(data, np.ndarray) and data.ndim == 2
        return array or bool(nw.dependencies.is_into_dataframe(data))

    @property
    def is_frame(self) -> bool:
        """Whether the data is a pandas, polars or pyarrow frame."""
        return not isinstance(self.data, np.ndarray)

    @property
    def library(self) -> str | None:
        """Name of the frame's library: pandas, polars, pyarrow; None for an array."""
        if not self.is_frame:
            return None
        frame = nw.from_native(self.data, eager_only=True)
        return str(frame.implementation).lower()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n_rows, n_columns = self.data.shape
        return int(n_rows), int(n_columns)

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The frame's column names; None for an array."""
        if not self.is_frame:
            return None
        names = list(getattr(self.data, "column_names", self.data.columns))
        return tuple(names) if all(isinstance(name, str) for name in names) else None

    @property
    def types(self) -> tuple[Any, ...] | None:
        """The frame's column types, as narwhals names them; None for an array."""
        if not self.is_frame:
            return None
        if nw.dependencies.is_pandas_dataframe(self.data):  # names may repeat
            series = (self.data.iloc[:, i] for i in range(self.shape[1]))
            return tuple(nw.from_native(s, series_only=True).dtype for s in series)
        return tuple(nw.from_native(self.data, eager_only=True).schema.values())

    def take(self, rows: Any, columns: Sequence[int]) -> Any:
        """Give these rows (indices or a mask) of these columns, in the data's own type."""
        columns = list(columns)
        if not self.is_frame:
            rows = np.arange(self.shape[0])[rows]
            if np.array_equal(rows, np.arange(self.shape[0])):
                return self.data[:, columns]
            return self.data[np.ix_(rows, columns)]
        rows = np.arange(self.shape[0])[rows]
        if nw.dependencies.is_pandas_dataframe(self.data):
            return self.data.iloc[rows, columns]  # also where names repeat
        return nw.from_native(self.data, eager_only=True)[rows, columns].to_native()

    def value(self, row: int, column: int) -> Any:
        """One value as it stands; None where a frame has none."""
        taken = self.take([row], [column])
        if not self.is_frame:
            return taken[0, 0]
        pandas = nw.dependencies.is_pandas_dataframe(taken)
        if pandas:
            series = nw.from_native(taken.iloc[:, 0], series_only=True)
        else:
            series = nw.from_native(taken, eager_only=True)[:, 0]
        return None if series.is_null()[0] else series[0]


def typed_table(X: Any) -> Table | None:
    """X as it is, lists as an array in which text is text and numbers are numbers.

    None if it is no table: not two-dimensional, sparse, or something else.
    """
    if Table.holds(X):
        return Table(X)
    if not isinstance(X, Sequence):
        return None
    try:
        array = np.asarray(X)
        if array.dtype.kind in "US":  # numbers have become text
            array = np.array(X, dtype=object)
    except ValueError:  # of rows that are not equally long
        return None
    return Table(array) if array.ndim == 2 else None


def one_row(names: Sequence[str], values: Sequence[Any], library: Any) -> Any:
    """Give named values as a frame of one row, or as an array if there is no library."""
    if library is not None:
        data = {name: [value] for name, value in zip(names, values, strict=True)}
        return nw.from_dict(data, backend=library).to_native()
    row = np.empty((1, len(values)), dtype=object)
    row[0] = values
    if any(isinstance(value, str) for value in values):
        return row  # the text "1" is a category, not a number
    try:
        return row.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return row


def pandas_frame(lines: Sequence[Any], index: str | None = None) -> Any:
    """Give dicts as the lines of a pandas frame, one of their keys as its index."""
    try:
        import pandas
    except ImportError as error:
        raise MissingDependencyError(
            "pandas is needed for a frame and is not installed; run "
            "pip install 'sensortree[demo]', or use to_dict()."
        ) from error
    frame = pandas.DataFrame(lines)
    return frame if index is None else frame.set_index(index)
