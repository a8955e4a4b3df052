"""Classifiers, regressions and transformers of a model file: two closed registries.

What is none of the kinds that the format knows can be written by skops, if you ask for it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sensortree.exceptions import MissingDependencyError, ModelFileError
from sensortree.persistence.codecs import (
    FLAG,
    PAIR,
    VALUE,
    Codec,
    Form,
    Sizes,
    array,
    integer,
    later,
    nullable,
    real,
    record,
    scales,
    word,
)
from sensortree.persistence.fields import Fields, number, numbers, scalar
from sensortree.policy.classifiers import (
    Answering,
    BoostedScorer,
    CalibratedScorer,
    Calibration,
    ConstantScorer,
    Foreign,
    Isotonic,
    LogisticScorer,
    MeanScorer,
    NumberScorer,
    Polynomial,
    Sigmoid,
    Spread,
    Temperature,
)
from sensortree.sensors.sensor import SensorSet
from sensortree.sensors.transforms import (
    Imputer,
    InTurn,
    Levels,
    OneHot,
    Ordinal,
    Passthrough,
    Ranger,
    SideBySide,
    Standardiser,
    Transform,
    Typed,
)

MAX_WIDTH = 1_000_000
# A path of more decisions in a boosted tree is a mistake.
MAX_BOOSTED_DEPTH = 512
LINE = 4096  # no string of a file is longer

Kinds = dict[str, tuple[type, Form]]


def write_kind(value: Any, kinds: Kinds) -> dict[str, Any] | None:
    """Write a value of a kind in a registry; None if it is of none."""
    for name, (of_type, form) in kinds.items():
        if type(value) is of_type:
            return {"kind": name, **form.write(value)}
    return None


def read_kind(
    fields: Fields, kinds: Kinds, sizes: Sizes, what: str, trusted: Sequence[str] | None
) -> Any:
    """Read an object of a kind in a registry, or one of others by skops."""
    name = fields.text("kind")
    if name == "skops":
        made = read_foreign(fields, trusted)
    elif name not in kinds:
        raise fields.wrong(
            "kind",
            f"is {name[:80]!r}, which is no kind of {what}; the kinds are "
            f"{', '.join(kinds)} and skops",
        )
    else:
        made = kinds[name][1].take(fields, sizes)
    fields.end()
    return made


def kind(
    of_type: type,
    check: Callable[[Any, Fields], None] | None = None,
    **parts: Codec | Form,
) -> tuple[type, Form]:
    """A kind of a registry: a dataclass whose attributes are keys."""
    return of_type, record(of_type, check, **parts)


# parts of others --------------------------------------------------------------------------


def write_foreign(value: Any, what: str, foreign: str | None) -> dict[str, Any]:
    """Write an object of scikit-learn or of others by skops, if you asked for that."""
    if foreign is None:
        raise ModelFileError(
            f"{what} is a {type(value).__name__}, which a model file cannot hold as plain "
            f"numbers; use a classifier or a transformer that it can, or write "
            f"save(model, path, foreign='skops') and load(path, trusted=[...])."
        )
    if foreign != "skops":
        raise ModelFileError(f"foreign must be None or 'skops', got {foreign!r}.")
    skops = _skops()
    try:
        packed = base64.b64encode(skops.dumps(value)).decode()
    except Exception as error:
        raise ModelFileError(f"skops cannot write {what}: {error}") from error
    lines = [packed[i : i + LINE] for i in range(0, len(packed), LINE)]
    return {"kind": "skops", "type": _type_name(value), "data": lines}


def read_foreign(fields: Fields, trusted: Sequence[str] | None) -> Any:
    """Read an object that skops wrote, if its types are trusted."""
    name, lines = fields.text("type"), fields.items("data")
    if trusted is None:
        raise fields.wrong(
            "",
            f"is a {name[:200]}, written by skops; if you trust the file, read it with "
            f"load(path, trusted=[...]), naming the types that "
            f"skops.io.get_untrusted_types would list, or an empty list",
        )
    if not all(isinstance(line, str) for line in lines):
        raise ModelFileError(f"{fields.where}.data must hold text only.")
    try:
        packed = base64.b64decode("".join(lines), validate=True)
    except (ValueError, binascii.Error) as error:
        raise ModelFileError(f"{fields.where}.data is not base64: {error}.") from error
    skops = _skops()
    try:
        value = skops.loads(packed, trusted=list(trusted))
    except Exception as error:
        raise ModelFileError(f"skops cannot read {fields.where}: {error}") from error
    if _type_name(value) != name:
        raise fields.wrong("", f"is not the {name[:200]} that it says")
    return value


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise MissingDependencyError(
            "skops is needed for classifiers and transformers that a model file cannot "
            "hold as numbers; install it with pip install 'sensortree[skops]'."
        ) from error
    return skops.io


# transformers -----------------------------------------------------------------------------


def write_transformer(
    transformer: Any, what: str, foreign: str | None
) -> dict[str, Any]:
    """Write a plain transform, or one of others by skops."""
    if not isinstance(transformer, Transform):
        # Only here, so that reading needs no scikit-learn.
        from sensortree.leaves.compiling import compile_transformer

        transformer = compile_transformer(transformer)
    plain = write_kind(transformer, TRANSFORMERS)
    return write_foreign(transformer, what, foreign) if plain is None else plain


def read_transformer(
    fields: Fields, n_columns: int, trusted: Sequence[str] | None
) -> Any:
    """Read a transform that takes so many columns."""
    sizes = {"columns": n_columns}
    made = read_kind(fields, TRANSFORMERS, sizes, "transformer", trusted)
    if not hasattr(made, "transform"):
        raise fields.wrong("", "is not a transformer")
    if isinstance(made, Transform) and made.width > MAX_WIDTH:
        raise fields.wrong("", f"gives more than {MAX_WIDTH:,} columns")
    return made


def _read_part(fields: Fields, n_columns: int) -> Any:
    """Read a part of another transform; none is foreign."""
    if fields.peek("kind") == "skops":
        raise fields.wrong("", "must be a plain kind of transformer")
    return read_transformer(fields, n_columns, None)


def _write_imputer(t: Imputer) -> dict[str, Any]:
    return {
        "words": t.fill.dtype == object,
        "fill": [number(value) for value in t.fill.tolist()],
        "kept": MARKS.write(t.kept),
        "indicators": t.indicators.tolist(),
    }


def _take_imputer(fields: Fields, sizes: Sizes) -> Imputer:
    n = sizes["columns"]
    if fields.flag("words"):
        fill = np.empty(n, dtype=object)
        fill[:] = _values(fields.items("fill", n), fields.place("fill"))
        if any(value is None for value in fill.tolist()):
            raise fields.wrong("fill", "holds null, which fills nothing")
    else:
        fill = fields.numbers("fill", (n,))
    kept = MARKS.read(fields, "kept", sizes)
    return Imputer(fill, kept, np.array(fields.positions("indicators", n), np.intp))


def _values(listed: list[Any], where: str) -> tuple[Any, ...]:
    return tuple(scalar(value, where) for value in listed)


def _read_categories(fields: Fields, key: str, sizes: Sizes) -> tuple[Any, ...]:
    """Categories of each column."""
    where, lists = fields.place(key), fields.items(key, sizes["columns"])
    if not all(isinstance(values, list) and values for values in lists):
        raise ModelFileError(f"{where} must hold lists that are not empty.")
    return tuple(_values(values, where) for values in lists)


def _check_one_hot(t: OneHot, fields: Fields) -> None:
    """Positions of categories must be such."""
    if (t.rare is None) != (t.unknown_is_rare is None):
        raise fields.wrong("", "needs both rare and unknown_is_rare")
    rare = [[]] * len(t.categories) if t.rare is None else t.rare
    for values, drop, few in zip(t.categories, t.dropped, rare, strict=True):
        if drop is not None and (type(drop) is not int or not 0 <= drop < len(values)):
            raise fields.wrong("dropped", "is not a category's position")
        if not all(type(at) is int and 0 <= at < len(values) for at in few):
            raise fields.wrong("rare", "holds no categories' positions")
        if len(set(few)) < len(few):
            raise fields.wrong("rare", "names a category twice")


def _read_rare(fields: Fields, key: str, sizes: Sizes) -> tuple[tuple[int, ...], ...]:
    lists = fields.items(key, sizes["columns"])
    if not all(isinstance(few, list) for few in lists):
        raise fields.wrong(key, "holds no categories' positions")
    return tuple(map(tuple, lists))


def _read_parts(fields: Fields, key: str, sizes: Sizes) -> tuple[Any, ...]:
    parts = []
    for part in fields.children(key):
        at = tuple(part.integers("columns", 0, sizes["columns"]))
        parts.append((at, _read_part(part.child("transformer"), len(at))))
        part.end()
    return tuple(parts)


def _read_steps(fields: Fields, key: str, sizes: Sizes) -> tuple[Any, ...]:
    n_columns, steps = sizes["columns"], []
    for step in fields.children(key):
        steps.append(_read_part(step, n_columns))
        n_columns = steps[-1].width
    if not steps:
        raise fields.wrong("", "has no steps")
    return tuple(steps)


MARKS = Codec(
    lambda marks: np.flatnonzero(marks).tolist(),
    lambda f, key, s: f.marks(key, s["columns"]),
)
N_COLUMNS = integer("columns", lambda sizes: sizes["columns"] + 1)
READINGS = Codec(list, lambda f, key, s: tuple(f.integers(key, 0, s["columns"])))
CATEGORIES = Codec(
    lambda columns: [[number(v) for v in values] for values in columns],
    _read_categories,
)
TRANSFORMERS: Kinds = {
    "passthrough": kind(Passthrough, n_columns=N_COLUMNS),
    "typed": (
        Typed,
        record(
            lambda n_columns, text: Typed(tuple(text.tolist())),
            n_columns=N_COLUMNS,
            text=MARKS,
        ),
    ),
    "imputer": (Imputer, Form(_write_imputer, _take_imputer)),
    "standardiser": kind(
        Standardiser, center=array("columns"), scale=scales("columns")
    ),
    "range": kind(
        Ranger, factor=array("columns"), offset=array("columns"), bounds=nullable(PAIR)
    ),
    "one_hot": kind(
        OneHot,
        _check_one_hot,
        categories=CATEGORIES,
        dropped=Codec(list, lambda f, key, s: tuple(f.items(key, s["columns"]))),
        ignore_unknown=FLAG,
        rare=later(Codec(lambda rare: list(map(list, rare)), _read_rare)),
        unknown_is_rare=later(FLAG),
    ),
    "ordinal": kind(
        Ordinal,
        categories=CATEGORIES,
        missing_value=VALUE,
        unknown_value=nullable(VALUE),
    ),
    "levels": kind(
        Levels, n_columns=N_COLUMNS, readings=READINGS, levels=array("readings")
    ),
    "columns": kind(
        SideBySide,
        n_columns=N_COLUMNS,
        parts=Codec(
            lambda parts: [
                {"columns": list(at), "transformer": write_kind(part, TRANSFORMERS)}
                for at, part in parts
            ],
            _read_parts,
        ),
    ),
    "pipeline": kind(
        InTurn,
        steps=Codec(
            lambda steps: [write_kind(step, TRANSFORMERS) for step in steps],
            _read_steps,
        ),
    ),
}


# classifiers ------------------------------------------------------------------------------


def write_classifier(scorer: Any, what: str, foreign: str | None) -> dict[str, Any]:
    """Write a plain classifier or regression, or one of others by skops."""
    if isinstance(scorer, NumberScorer):
        own = scorer.regression
        regression = write_kind(own, REGRESSIONS)
        if regression is None:
            regression = write_foreign(getattr(own, "regressor", own), what, foreign)
        return {
            "kind": "number",
            "regression": regression,
            **ANSWERING.write(scorer.answering),
        }
    plain = write_kind(scorer, CLASSIFIERS)
    return write_foreign(scorer, what, foreign) if plain is None else plain


def read_classifier(
    fields: Fields, width: int, n_classes: int, trusted: Sequence[str] | None
) -> Any:
    """Read a classifier of readings of a width; a regression if there are no classes."""
    if not n_classes:
        return _read_number_scorer(fields, width, trusted)
    n_outputs = 1 if n_classes == 2 else n_classes
    sizes = {"width": width, "classes": n_classes, "outputs": n_outputs}
    made = read_kind(fields, CLASSIFIERS, sizes, "classifier", trusted)
    if not hasattr(made, "predict"):
        raise fields.wrong("", "is not a classifier")
    return made


def _read_number_scorer(
    fields: Fields, width: int, trusted: Sequence[str] | None
) -> NumberScorer:
    """Read a regression of readings of a width, with its spread."""
    if fields.text("kind") != "number":
        raise fields.wrong("kind", "must be 'number' where answers are numbers")
    sizes, own = {"width": width, "outputs": 1}, fields.child("regression")
    regression = read_kind(own, REGRESSIONS, sizes, "regression", trusted)
    if not isinstance(regression, (Polynomial, BoostedScorer)):
        if not hasattr(regression, "predict"):
            raise own.wrong("", "is not a regressor")
        regression = Foreign(regression)
    return NumberScorer(regression, ANSWERING.whole(fields, sizes))


def _terms(sizes: Sizes) -> int:
    """Terms of a polynomial of readings."""
    width = sizes["width"]
    return width if sizes["degree"] == 1 else width + width * (width + 1) // 2


def _check_proba(scorer: ConstantScorer, fields: Fields) -> None:
    if abs(float(scorer.proba.sum()) - 1.0) > 1e-6:
        raise fields.wrong("proba", "does not sum to 1")


def _write_boosted(scorer: BoostedScorer) -> dict[str, Any]:
    """Nodes as lists; a leaf has feature -1, children 0, and its value as number.

    A feature is a reading, or behind the last reading one of the sets of levels.
    """
    leaf = scorer.left == np.arange(len(scorer.left))
    form = {
        "feature": np.where(leaf, -1, scorer.feature).tolist(),
        "left": np.where(leaf, 0, scorer.left).tolist(),
        "right": np.where(leaf, 0, scorer.right).tolist(),
        "number": numbers(np.where(leaf, scorer.value, scorer.threshold)),
        "missing_left": np.flatnonzero(scorer.missing_left).tolist(),
        "roots": scorer.roots.ravel().tolist(),
        "baseline": numbers(scorer.baseline),
    }
    if scorer.sets is not None:  # one after another
        form["sets"] = {
            "size": [len(each) for each in scorer.sets],
            "readings": [reading for each in scorer.sets for reading in each],
        }
    return form


def _take_boosted(fields: Fields, sizes: Sizes) -> BoostedScorer:
    """Take trees whose nodes are listed as `_write_boosted` does."""
    sets = _read_sets(fields, sizes["width"])
    n_features, n_outputs = sizes["width"] + len(sets or ()), sizes["outputs"]
    feature = np.array(fields.integers("feature", -1, n_features), dtype=np.int32)
    n_nodes = len(feature)
    own = np.arange(n_nodes, dtype=np.int32)
    leaf = feature == -1
    left, right = (
        np.where(leaf, own, fields.integers(side, 0, n_nodes, n_nodes)).astype(np.int32)
        for side in ("left", "right")
    )
    roots = np.array(fields.positions("roots", n_nodes), dtype=np.int32)
    if len(roots) % n_outputs:
        raise fields.wrong(
            "roots", f"has {len(roots)} trees, expected a multiple of {n_outputs}"
        )
    _check_forest(left, right, leaf, roots, fields.where)
    values = _thresholds(fields, leaf)
    return BoostedScorer(
        np.where(leaf, 0, feature).astype(np.int32),
        left,
        right,
        np.where(leaf, 0.0, values),
        np.where(leaf, values, 0.0),
        fields.marks("missing_left", n_nodes) & ~leaf,
        roots.reshape(-1, n_outputs),
        fields.numbers("baseline", (n_outputs,)),
        sets=sets,
    )


def _read_sets(fields: Fields, width: int) -> tuple[tuple[int, ...], ...] | None:
    """Sets of levels; None if there are none."""
    if not fields.has("sets"):
        return None
    own = fields.child("sets")
    size = own.integers("size", 1, width + 1)
    readings = own.integers("readings", 0, width, sum(size))
    own.end()
    ends = np.cumsum(size).tolist()
    each = zip([0, *ends], ends, strict=False)
    return tuple(tuple(readings[begin:end]) for begin, end in each) or None


def _thresholds(fields: Fields, leaf: Any) -> Any:
    """Thresholds of nodes, of which infinity sends all but NaN left; values of leaves."""
    where, given = fields.place("number"), fields.items("number", len(leaf))
    endless = [i for i, value in enumerate(given) if isinstance(value, dict)]
    if any(scalar(given[i], where) != np.inf or leaf[i] for i in endless):
        raise ModelFileError(f"{where} holds a number that is not finite.")
    finite = [0.0 if isinstance(value, dict) else value for value in given]
    values = Fields({"number": finite}, fields.where).numbers("number", leaf.shape)
    values[endless] = np.inf
    return values


def _check_forest(left: Any, right: Any, leaf: Any, roots: Any, where: str) -> None:
    """Every node has one parent, before it, but for the roots, which have none."""
    nodes = np.flatnonzero(~leaf)
    children = np.concatenate([left[nodes], right[nodes]])
    if (children <= np.concatenate([nodes, nodes])).any():
        raise ModelFileError(
            f"{where} has a tree with a cycle: a child before a parent."
        )
    parents = np.bincount(children, minlength=len(leaf))
    expected = np.ones(len(leaf), dtype=np.intp)
    expected[roots] = 0
    if not np.array_equal(parents, expected):
        raise ModelFileError(f"{where} has trees that join up, or nodes outside them.")
    level = roots
    for _ in range(MAX_BOOSTED_DEPTH):
        level = level[~leaf[level]]
        if not level.size:
            return
        level = np.concatenate([left[level], right[level]])
    if not leaf[level].all():
        raise ModelFileError(
            f"{where} has a tree with more than {MAX_BOOSTED_DEPTH} decisions on a path."
        )


CALIBRATIONS = ("sigmoid", "isotonic", "temperature")


def _write_calibrated(scorer: CalibratedScorer) -> dict[str, Any]:
    """What is calibrated, by what, and the numbers of each output."""
    match scorer.calibration:
        case Sigmoid(slope, offset):
            method, outputs = "sigmoid", np.stack([slope, offset]).T.tolist()
        case Isotonic(at, proba_at):
            pairs = zip(at, proba_at, strict=True)
            method, outputs = "isotonic", [numbers(np.stack(pair)) for pair in pairs]
        case Temperature(inverse):
            method, outputs = "temperature", [[inverse]]
        case _:
            raise AssertionError(scorer.calibration)
    return {
        "method": method,
        "reads_scores": scorer.reads_scores,
        "outputs": outputs,
        "classifier": write_classifier(scorer.scorer, "a classifier", None),
    }


def _take_calibrated(fields: Fields, sizes: Sizes) -> CalibratedScorer:
    method = word(CALIBRATIONS).read(fields, "method", sizes)
    reads_scores = fields.flag("reads_scores")
    given = fields.items("outputs", 1 if method == "temperature" else sizes["outputs"])
    outputs = [_output(each, method, fields.place("outputs")) for each in given]
    own = fields.child("classifier")
    scorer = read_classifier(own, sizes["width"], sizes["classes"], None)
    if not isinstance(scorer, (LogisticScorer, BoostedScorer)):
        raise fields.wrong("classifier", "has no scores")
    calibration: Calibration
    if method == "sigmoid":
        calibration = Sigmoid(*(np.ascontiguousarray(c) for c in np.transpose(outputs)))
    elif method == "isotonic":
        halves = [np.split(each, 2) for each in outputs]
        calibration = Isotonic(*map(tuple, zip(*halves, strict=True)))
    else:
        calibration = Temperature(float(outputs[0][0]))
    return CalibratedScorer(scorer, reads_scores, calibration)


def _output(given: Any, method: str, where: str) -> Any:
    """Numbers that calibrate one output, if they can be such."""
    length = len(given) if isinstance(given, list) else 0
    wanted = {"sigmoid": 2, "temperature": 1}.get(method, max(length, 2))
    read = Fields({"numbers": given}, where).numbers("numbers", (wanted,))
    if method == "isotonic":
        if length % 2:
            raise ModelFileError(f"{where} has points without a probability.")
        at, likely = np.split(read, 2)
        if (np.diff(at) <= 0).any() or (likely < 0).any() or (likely > 1).any():
            raise ModelFileError(f"{where} must rise, to probabilities.")
    return read


def _take_mean(fields: Fields, sizes: Sizes) -> MeanScorer:
    scorers = [
        read_classifier(each, sizes["width"], sizes["classes"], None)
        for each in fields.children("classifiers")
    ]
    if not scorers:
        raise fields.wrong("classifiers", "is empty")
    return MeanScorer(tuple(scorers))


def _read_center(fields: Fields, key: str, sizes: Sizes) -> Any:
    """What a spread sees: the number, or the readings too."""
    n_seen, most = fields.length(key), sizes["width"] + 1
    if n_seen not in (1, most):
        raise fields.wrong(key, f"has {n_seen} numbers, expected 1 or {most}")
    return fields.numbers(key, (n_seen,))


POLYNOMIAL: Mapping[str, Codec] = {
    "degree": integer(1, 3),
    "center": array("width"),
    "scale": scales("width"),
    "coef": array(_terms, "outputs"),
}
ONE = Codec(lambda v: float(v[0]), lambda f, key, _: np.array([f.number(key)]))
BOOSTED = Form(_write_boosted, _take_boosted)
CLASSIFIERS: Kinds = {
    "constant": kind(ConstantScorer, _check_proba, proba=array("classes", least=0.0)),
    "logistic": kind(LogisticScorer, None, **POLYNOMIAL, intercept=array("outputs")),
    "boosted": (BoostedScorer, BOOSTED),
    "calibrated": (CalibratedScorer, Form(_write_calibrated, _take_calibrated)),
    "mean": (
        MeanScorer,
        Form(
            lambda mean: {
                "classifiers": [
                    write_classifier(each, "a classifier", None)
                    for each in mean.scorers
                ]
            },
            _take_mean,
        ),
    ),
}
REGRESSIONS: Kinds = {
    "ridge_regression": kind(Polynomial, None, **POLYNOMIAL, intercept=ONE),
    "boosted_regression": (BoostedScorer, BOOSTED),
}
ANSWERING = record(
    Answering,
    spread=record(
        Spread,
        center=Codec(numbers, _read_center),
        scale=scales("center"),
        coef=array(lambda sizes: 2 * sizes["center"]),
        intercept=real(),
        least=real(0.0),
        most=real(0.0),
    ),
    shift=real(),
    low=real(),
    high=real(),
)


# while a model is read --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a model while its parts are read."""

    sensors: SensorSet
    widths: tuple[int, ...]  # number of values in one reading of each sensor
    n_classes: int  # 0 where answers are numbers
    trusted: Sequence[str] | None  # types that skops may make

    def width(self, subset: frozenset[str]) -> int:
        """Number of values in one reading of a subset."""
        return sum(self.widths[self.sensors.index(name)] for name in subset)

    def subset(self, entry: Fields) -> frozenset[str]:
        """The sensors that an entry is about."""
        at = entry.positions("sensors", len(self.sensors))
        return frozenset(self.sensors.names[position] for position in at)

    def classifier(self, entry: Fields, subset: frozenset[str]) -> Any:
        """The classifier of an entry, of readings of a subset."""
        form, width = entry.child("classifier"), self.width(subset)
        return read_classifier(form, width, self.n_classes, self.trusted)
