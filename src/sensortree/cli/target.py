"""The target of a data file: classes or numbers, of the rows that have an answer."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.cells.words import MISSING, cut, exact_number, one_spelling
from sensortree.cli.data_file import DataFile
from sensortree.exceptions import DataError

MAX_CLASSES = 1000
# More different values than this, few rows each, are an amount rather than classes.
FEW_CLASSES, ROWS_OF_A_CLASS = 30, 5
# More different numbers than this, whole ones or not, may be an amount: who knows says so.
FEW_NUMBERS, FEW_FRACTIONS = 12, 2


def read_target(
    data: DataFile, target: str, task: str
) -> tuple[DataFile, NDArray[Any], list[str]]:
    """The rows that have an answer; their classes or numbers; what was done.

    Parameters
    ----------
    data : DataFile
    target : str
    task : {"auto", "classification", "regression"}
    """
    if task == "classification":
        return read_labels(data, target)
    data.require(target, "the target")
    answered, notes = _answered(data, target)
    remedy = "correct it, or pass --task classification."
    if task == "regression":
        return answered, answered.numbers(target, remedy), notes
    try:
        numbers = answered.numbers(target, remedy)
    except DataError:
        return read_labels(data, target)  # words are classes
    n_rows, n_values = len(numbers), len(np.unique(numbers))
    whole = bool((numbers == np.round(numbers)).all())
    if _is_amount(n_values, n_rows):
        said = f"target {target}: {n_values} different numbers, taken for an amount."
        return answered, numbers, [*notes, said]
    if n_values > (FEW_NUMBERS if whole else FEW_FRACTIONS):
        raise DataError(
            f"{data.path}: the target {target!r} has {n_values} different numbers in "
            f"{n_rows} rows, which may be classes or an amount; pass "
            f"--task classification or --task regression."
        )
    return read_labels(data, target)


def _is_amount(n_values: int, n_rows: int) -> bool:
    """Whether values are so many, of few rows each, that they are no classes."""
    few = n_values <= FEW_CLASSES or n_values * ROWS_OF_A_CLASS <= n_rows
    return n_values > MAX_CLASSES or not few


def read_labels(
    data: DataFile, target: str
) -> tuple[DataFile, NDArray[Any], list[str]]:
    """The rows that have a class; their classes; what was done about the others.

    A class is as it is written: int if that says all, text otherwise.
    """
    data.require(target, "the target")
    data, notes = _answered(data, target)
    labels, merged = _one_spelling(data, target)
    if len(set(labels)) > 1:
        _check_spelling(data, target)
    different = np.unique(labels.astype(str))
    if all(map(_is_plain_integer, different.tolist())):
        labels = labels.astype(np.int64)
    else:
        labels = labels.astype(str)
    n_rows, n_classes = len(labels), len(different)
    if _is_amount(n_classes, n_rows):
        raise DataError(
            f"{data.path}: the target {target!r} has {n_classes} different values in "
            f"{n_rows} rows; a classifier needs a column of classes. Is it another "
            f"column? If it is an amount, make classes of it first, such as above and "
            f"below a limit."
        )
    return data, labels, [*notes, *merged]


def _answered(data: DataFile, target: str) -> tuple[DataFile, list[str]]:
    """The rows whose class is known, and a sentence about the others."""
    cells = data.columns[target]
    empty = np.array([cell == "" for cell in cells])
    words = np.array([cell in MISSING for cell in cells])
    # NA is a class like others where without it there would be nothing to tell apart.
    classes = {cell for cell, gone in zip(cells, words, strict=True) if not gone}
    left_out = words if len(classes) > 1 else empty
    if left_out.all():
        raise DataError(
            f"{data.path}: the target {target!r} is empty in all rows; it must say the "
            f"right answer."
        )
    if not left_out.any():
        return data, []
    counts = Counter(str(c) for c, out in zip(cells, left_out, strict=True) if out)
    said = " or ".join(cut(cell) if cell else "empty" for cell in sorted(counts))
    note = f"{left_out.sum()} rows are left out: their {target} is {said}."
    return data.rows(~left_out), [note]


def _one_spelling(data: DataFile, target: str) -> tuple[NDArray[Any], list[str]]:
    """Classes of the rows as text, one for those that differ in capitals and spaces."""
    texts = data.texts(target)
    best = one_spelling(texts)
    notes = [
        f"target {target}: {cut(text)} is read as {cut(chosen)}, from which it differs in "
        f"capitals or spaces only; rename one if they are two classes."
        for text, chosen in best.items()
        if text != chosen
    ]
    labels = np.empty(len(texts), dtype=object)
    labels[:] = [best[text] for text in texts]
    return labels, notes


def _is_plain_integer(text: str) -> bool:
    """Whether a number of 64 bits, written out, is this very text."""
    is_one = re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) is not None
    return is_one and -(2**63) <= int(text) < 2**63


def _check_spelling(data: DataFile, target: str) -> None:
    """Refuse a target of numbers that writes one of them in two ways."""
    texts = data.texts(target)
    seen: dict[Decimal, int] = {}
    for row, cell in enumerate(data.columns[target]):
        number = exact_number(cell)
        if number is None:
            return  # names, some of which may look like numbers
        first = seen.setdefault(number, row)
        if texts[first] != texts[row]:
            raise DataError(
                f"{data.place(row, target)}: {texts[row]!r} is the number that "
                f"{data.unit} {data.lines[first]} writes as {texts[first]!r}; write a "
                f"class in one way, or two classes with a letter before."
            )


def levels_of_target(y: NDArray[Any]) -> NDArray[Any]:
    """Classes as they are; numbers in four groups of about as many rows."""
    if y.dtype.kind != "f":
        return y
    return np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), y)
