"""The closed registry of transformers in a model file, each written and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sensortree.exceptions import ModelFileError
from sensortree.persistence.fields import Fields, number, numbers, scalar
from sensortree.persistence.foreign import read_foreign, write_foreign
from sensortree.sensors.encoders import Levels, OneHot, Ordinal
from sensortree.sensors.transforms import (
    PLAIN,
    Imputer,
    InTurn,
    Passthrough,
    Ranger,
    SideBySide,
    Standardiser,
    Typed,
)

MAX_WIDTH = 1_000_000


def write_transformer(
    transformer: Any, what: str, foreign: str | None
) -> dict[str, Any]:
    """A plain transform, or one of others by skops."""
    if not isinstance(transformer, PLAIN):
        # Only here, so that reading needs no scikit-learn.
        from sensortree.leaves.compiling import compile_transformer

        transformer = compile_transformer(transformer)
    if isinstance(transformer, PLAIN):
        return _write_plain(transformer)
    return write_foreign(transformer, what, foreign)


def read_transformer(
    fields: Fields, n_columns: int, trusted: Sequence[str] | None
) -> Any:
    """A transform that takes so many columns."""
    kind = fields.text("kind")
    if kind != "skops":
        return _read_kind(kind, fields, n_columns)
    transformer = read_foreign(fields, trusted)
    if not hasattr(transformer, "transform"):
        raise ModelFileError(f"{fields.where} is not a transformer.")
    fields.end()
    return transformer


def _write_plain(transformer: Any) -> dict[str, Any]:
    """A plain transform by its kind."""
    for kind, (of_type, write, _) in KINDS.items():
        if type(transformer) is of_type:
            return {"kind": kind, **write(transformer)}
    raise AssertionError(f"{type(transformer).__name__} has no kind")


def _read_plain(fields: Fields, n_columns: int) -> Any:
    """A part of another transform, which is never foreign."""
    kind = fields.text("kind")
    if kind == "skops":
        raise ModelFileError(f"{fields.where} must be a plain kind of transformer.")
    return _read_kind(kind, fields, n_columns)


def _read_kind(kind: str, fields: Fields, n_columns: int) -> Any:
    """A plain transform of a kind."""
    if kind not in KINDS:
        raise ModelFileError(
            f"{fields.place('kind')} is {kind[:80]!r}, which is no kind of transformer; "
            f"the kinds are {', '.join(KINDS)} and skops."
        )
    transformer = KINDS[kind][2](fields, n_columns)
    fields.end()
    if transformer.width > MAX_WIDTH:
        raise ModelFileError(f"{fields.where} gives more than {MAX_WIDTH:,} columns.")
    return transformer


def _write_passthrough(t: Passthrough) -> Any:
    return {"n_columns": t.n_columns}


def _read_passthrough(f: Fields, n: int) -> Passthrough:
    return Passthrough(f.integer("n_columns", n, n + 1))


def _write_typed(t: Typed) -> Any:
    return {"n_columns": t.n_columns, "text": np.flatnonzero(t.text).tolist()}


def _read_typed(f: Fields, n: int) -> Typed:
    f.integer("n_columns", n, n + 1)
    text = f.positions("text", n)
    return Typed(tuple(i in text for i in range(n)))


def _write_imputer(t: Imputer) -> Any:
    words = t.fill.dtype == object
    return {
        "words": bool(words),
        "fill": [number(value) for value in t.fill.tolist()],
        "kept": np.flatnonzero(t.kept).tolist(),
        "indicators": t.indicators.tolist(),
    }


def _read_imputer(f: Fields, n: int) -> Imputer:
    if f.flag("words"):
        where = f.place("fill")
        fill = np.empty(n, dtype=object)
        fill[:] = [scalar(value, where) for value in f.items("fill", n)]
        if any(value is None for value in fill.tolist()):
            raise ModelFileError(f"{where} holds null, which fills nothing.")
    else:
        fill = f.numbers("fill", (n,))
    kept = np.zeros(n, dtype=bool)
    kept[list(f.positions("kept", n))] = True
    return Imputer(fill, kept, np.array(f.positions("indicators", n), dtype=np.intp))


def _write_standardiser(t: Standardiser) -> Any:
    return {"center": numbers(t.center), "scale": numbers(t.scale)}


def _read_standardiser(f: Fields, n: int) -> Standardiser:
    return Standardiser(f.numbers("center", (n,)), f.scales("scale", (n,)))


def _write_ranger(t: Ranger) -> Any:
    return {
        "factor": numbers(t.factor),
        "offset": numbers(t.offset),
        "bounds": None if t.bounds is None else list(t.bounds),
    }


def _read_ranger(f: Fields, n: int) -> Ranger:
    factor, offset = f.numbers("factor", (n,)), f.numbers("offset", (n,))
    if not f.has("bounds"):
        f.take("bounds")
        return Ranger(factor, offset, None)
    low, high = f.numbers("bounds", (2,)).tolist()
    return Ranger(factor, offset, (low, high))


def _write_categories(categories: tuple[tuple[Any, ...], ...]) -> list[list[Any]]:
    return [[number(value) for value in values] for values in categories]


def _read_categories(f: Fields, n: int) -> tuple[tuple[Any, ...], ...]:
    where = f.place("categories")
    found = []
    for values in f.items("categories", n):
        if not isinstance(values, list) or not values:
            raise ModelFileError(f"{where} must hold lists that are not empty.")
        found.append(tuple(scalar(value, where) for value in values))
    return tuple(found)


def _write_one_hot(t: OneHot) -> Any:
    return {
        "categories": _write_categories(t.categories),
        "dropped": list(t.dropped),
        "ignore_unknown": t.ignore_unknown,
        **(
            {}
            if t.rare is None
            else {
                "rare": [list(few) for few in t.rare],
                "unknown_is_rare": bool(t.unknown_is_rare),
            }
        ),
    }


def _read_one_hot(f: Fields, n: int) -> OneHot:
    categories = _read_categories(f, n)
    dropped = f.items("dropped", n)
    for drop, values in zip(dropped, categories, strict=True):
        if drop is not None and (type(drop) is not int or not 0 <= drop < len(values)):
            raise ModelFileError(f"{f.place('dropped')} is not a category's position.")
    ignored = f.flag("ignore_unknown")
    if not f.has("rare"):
        return OneHot(categories, tuple(dropped), ignored)
    return OneHot(
        categories,
        tuple(dropped),
        ignored,
        _read_rare(f, categories),
        f.flag("unknown_is_rare"),
    )


def _read_rare(
    f: Fields, categories: tuple[tuple[Any, ...], ...]
) -> tuple[tuple[int, ...], ...]:
    """Positions of the rare categories of each column."""
    found = []
    for few, values in zip(f.items("rare", len(categories)), categories, strict=True):
        if not isinstance(few, list) or not all(
            type(at) is int and 0 <= at < len(values) for at in few
        ):
            raise ModelFileError(f"{f.place('rare')} holds no categories' positions.")
        if len(set(few)) < len(few):
            raise ModelFileError(f"{f.place('rare')} names a category twice.")
        found.append(tuple(few))
    return tuple(found)


def _write_ordinal(t: Ordinal) -> Any:
    return {
        "categories": _write_categories(t.categories),
        "missing_value": number(t.missing_value),
        "unknown_value": number(t.unknown_value),
    }


def _read_ordinal(f: Fields, n: int) -> Ordinal:
    categories = _read_categories(f, n)
    missing, unknown = (
        scalar(f.take(key), f.place(key)) for key in ("missing_value", "unknown_value")
    )
    for value in (missing, 0.0 if unknown is None else unknown):
        if type(value) not in (int, float):
            raise ModelFileError(f"{f.where} must give numbers.")
    return Ordinal(
        categories, float(missing), None if unknown is None else float(unknown)
    )


def _write_levels(t: Levels) -> Any:
    return {
        "n_columns": t.n_columns,
        "readings": list(t.readings),
        "levels": numbers(t.levels),
    }


def _read_levels(f: Fields, n: int) -> Levels:
    n_columns = f.integer("n_columns", n, n + 1)
    readings = tuple(f.integers("readings", 0, n))
    return Levels(n_columns, readings, f.numbers("levels", (len(readings),)))


def _write_side_by_side(t: SideBySide) -> Any:
    parts = [
        {"columns": list(at), "transformer": _write_plain(part)} for at, part in t.parts
    ]
    return {"n_columns": t.n_columns, "parts": parts}


def _read_side_by_side(f: Fields, n: int) -> SideBySide:
    parts = []
    for part in f.children("parts"):
        at = tuple(part.integers("columns", 0, n))
        transform = _read_plain(part.child("transformer"), len(at))
        parts.append((at, transform))
        part.end()
    return SideBySide(f.integer("n_columns", n, n + 1), tuple(parts))


def _write_in_turn(t: InTurn) -> Any:
    return {"steps": [_write_plain(step) for step in t.steps]}


def _read_in_turn(f: Fields, n: int) -> InTurn:
    steps: list[Any] = []
    for step in f.children("steps"):
        steps.append(_read_plain(step, n))
        n = steps[-1].width
    if not steps:
        raise ModelFileError(f"{f.where} has no steps.")
    return InTurn(tuple(steps))


KINDS: dict[str, tuple[type, Callable[..., Any], Callable[..., Any]]] = {
    "passthrough": (Passthrough, _write_passthrough, _read_passthrough),
    "typed": (Typed, _write_typed, _read_typed),
    "imputer": (Imputer, _write_imputer, _read_imputer),
    "standardiser": (Standardiser, _write_standardiser, _read_standardiser),
    "range": (Ranger, _write_ranger, _read_ranger),
    "one_hot": (OneHot, _write_one_hot, _read_one_hot),
    "ordinal": (Ordinal, _write_ordinal, _read_ordinal),
    "levels": (Levels, _write_levels, _read_levels),
    "columns": (SideBySide, _write_side_by_side, _read_side_by_side),
    "pipeline": (InTurn, _write_in_turn, _read_in_turn),
}
