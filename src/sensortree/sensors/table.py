"""`Table`: rows and columns of an array or a frame, and what each column holds.

pandas, polars and pyarrow are reached through narwhals, which scikit-learn brings. None,
NaN, pandas' NA and NaT, and blank text stand for a missing value; here it is always NaN.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import DataError, MissingDependencyError
from sensortree.types import Array


@dataclass(frozen=True, eq=False)
class Table:
    """A two-dimensional array or a data frame, read by rows and columns.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table(np.arange(6).reshape(2, 3))
    >>> table.take(rows=[1], columns=[0, 2])
    array([[3, 5]])
    """

    data: Any
    prices: Array | None = None  # (n_rows, n_sensors), where they are no columns

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
        return tuple(series.dtype for series in _series(self.data))

    def take(self, rows: Any, columns: Sequence[int]) -> Any:
        """Give these rows (indices or a mask) of these columns, in the data's own type."""
        columns, every = list(columns), np.arange(self.shape[0])
        rows = every[rows]
        if not self.is_frame:
            if np.array_equal(rows, every):
                return self.data[:, columns]
            return self.data[np.ix_(rows, columns)]
        if nw.dependencies.is_pandas_dataframe(self.data):
            return self.data.iloc[rows, columns]  # also where names repeat
        return nw.from_native(self.data, eager_only=True)[rows, columns].to_native()

    def value(self, row: int, column: int) -> Any:
        """One value as it stands; None where a frame has none."""
        taken = self.take([row], [column])
        if not self.is_frame:
            return taken[0, 0]
        (series,) = _series(taken)
        return None if series.is_null()[0] else series[0]


def cost_column(table: Table, column: int, what: str) -> NDArray[np.float64]:
    """A column of costs, finite and at least 0, (n_rows,); `what` names it in an error."""
    try:
        taken = table.take(slice(None), [column])
        values = np.asarray(taken, dtype=np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must hold numbers ({error}).") from error
    bad = np.flatnonzero(~np.isfinite(values) | (values < 0))
    if bad.size:
        raise DataError(
            f"{what} holds {values[bad[0]]} in row {bad[0]}; it must be finite and at "
            f"least 0: fill it in, or leave the row out."
        )
    return values


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
    return frame if index is None or frame.empty else frame.set_index(index)


Kind = Literal["number", "text"]

MISSING = float("nan")
NUMERIC = "biuf"  # kinds of NumPy's types that are numbers
# Different texts up to which a column is a category, whatever they are.
MANY_LEVELS = 32
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64)


class NotNumberError(DataError):
    """A value that should have been a number; whoever knows its names says it again."""

    def __init__(self, column: int, row: int, value: Any):
        super().__init__(
            f"{value!r} in row {row}, column {column} of a sensor, is not a number."
        )
        self.column, self.row, self.value = column, row, value


def check_width(X: Any, n_columns: int) -> None:
    """Refuse a table that has not as many columns as a transformer takes."""
    if X.shape[1] != n_columns:
        raise DataError(
            f"a sensor's transformer was given {X.shape[1]} columns, expected {n_columns}."
        )


def columns_of(X: Any, expected: int | None = None) -> list[NDArray[Any]]:
    """Columns of an array or a frame, each as an array of its own type.

    A transformer takes as many columns as are `expected`, and no others.
    """
    if expected is not None:
        check_width(X, expected)
    if isinstance(X, np.ndarray):
        return [X[:, i] for i in range(X.shape[1])]
    columns = []
    for column in _series(X):
        numeric = column.dtype.is_numeric()
        native = column.to_native()
        columns.append(column.to_numpy() if numeric else np.asarray(native))
    return columns


def _series(X: Any) -> Iterable[Any]:
    """Columns of a frame as narwhals series."""
    if nw.dependencies.is_pandas_dataframe(X):  # by position, since names may repeat
        for i in range(X.shape[1]):
            yield nw.from_native(X.iloc[:, i], series_only=True)
    else:
        frame = nw.from_native(X, eager_only=True)
        for i in range(X.shape[1]):
            yield frame[:, i]


# values -----------------------------------------------------------------------------------


def is_missing(value: Any) -> bool:
    """Whether a value says that there is none."""
    if isinstance(value, str):
        return not value or value.isspace()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, Decimal)) and value != value


def as_numbers(column: NDArray[Any], number: int = 0) -> Array:
    """A column as float64, (n_rows,); truth is 0 or 1, text that is a number is one.

    In an error the column goes by its `number`.
    """
    if column.dtype.kind in NUMERIC:
        return column.astype(np.float64)
    values = column.tolist() if column.dtype.kind in "OUST" else list(column)
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            numbers[row] = MISSING if is_missing(value) else float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise NotNumberError(number, row, value) from error
    return numbers


def as_text(column: NDArray[Any]) -> NDArray[Any]:
    """A column of categories as objects, (n_rows,): text and plain numbers, or NaN."""
    values = column.astype(object).tolist()
    odd = {
        v: _level(v) for v in _distinct(values) if type(v) is not str or not v.strip()
    }
    if odd:
        values = [odd.get(value, value) for value in values]
    text = np.empty(len(values), dtype=object)
    text[:] = values
    return text


def _level(value: Any) -> Any:
    """A value as a category that a file can hold."""
    if is_missing(value):
        return MISSING
    if isinstance(value, np.generic):
        return value.item()
    return float(value) if isinstance(value, Decimal) else value


def _distinct(values: list[Any], what: str = "a column") -> set[Any]:
    """Different values of a column."""
    try:
        return set(values)
    except TypeError as error:
        odd = next(v for v in values if type(v).__hash__ is None)
        raise DataError(_is_neither(what, f"a {type(odd).__name__}")) from error


# kinds ------------------------------------------------------------------------------------


def kind_of(column: NDArray[Any], dtype: Any, what: str) -> Kind:
    """Whether a column is numbers or text; an error that says what to do if neither.

    `dtype` is narwhals' type, as a frame declares it; None for an array, which declares
    nothing of its text. `what` names the column in an error.
    """
    declared = _declared(column, dtype, what)
    if declared is not None:
        return declared
    values = {v for v in _distinct(column.tolist(), what) if not is_missing(v)}
    if any(isinstance(value, DATES) for value in values):
        raise DataError(_is_date(what))
    if not all(isinstance(value, (Real, Decimal, str)) for value in values):
        odd = next(v for v in values if not isinstance(v, (Real, Decimal, str)))
        raise DataError(_is_neither(what, f"a {type(odd).__name__}"))
    words = [v for v in values if isinstance(v, str) and not _is_number(v)]
    n_numbers = len(values) - len(words)
    if not words and (dtype is None or not any(isinstance(v, str) for v in values)):
        return "number"
    if n_numbers <= max(MANY_LEVELS, len(words)):
        return "text"
    which = f"all its {len(values)} different values are numbers"
    if words:
        which = (
            f"{n_numbers} of its {len(values)} different values are numbers; "
            f"{min(words)!r} is not"
        )
    raise DataError(
        f"{what} holds text, but {which}. Make it numbers, "
        f"pandas.to_numeric(X[...], errors='coerce'), or, if they are names, a category: "
        f"X[...].astype('category')."
    )


def _declared(column: NDArray[Any], dtype: Any, what: str) -> Kind | None:
    """The kind that a column's type says it is; None if only its values can say."""
    kind = column.dtype.kind
    if kind in "Mm" or (dtype is not None and dtype.is_temporal()):
        raise DataError(_is_date(what))
    if kind in NUMERIC or (dtype is not None and dtype.is_numeric()):
        return "number"
    if dtype in (nw.Categorical, nw.Enum):
        return "text"
    if dtype == nw.Boolean:
        return "number"
    if kind not in "OUST" or (dtype is not None and dtype.is_nested()):
        raise DataError(_is_neither(what, column.dtype if dtype is None else dtype))
    return None


def check_levels(column: NDArray[Any], what: str) -> None:
    """Refuse text that is different in most rows: a name, a number, a remark."""
    values = [value for value in column.tolist() if not is_missing(value)]
    n_levels = len(set(values))
    if n_levels > max(MANY_LEVELS, len(values) / 2):
        raise DataError(
            f"{what} holds {n_levels} different texts in {len(values)} rows; there is "
            f"nothing to learn from what hardly ever comes again. Leave it out, or keep "
            f"the part of it that matters."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_neither(what: str, held: object) -> str:
    return (
        f"{what} holds {held}; a column holds numbers or text. Leave it out, or give its "
        f"sensor a transformer."
    )


def _is_date(what: str) -> str:
    return (
        f"{what} holds dates; turn it into a number that means something, such as the days "
        f"since an event: (X['date'] - X['birth']).dt.days in pandas, or leave it out."
    )
