"""The closed registry of leaf classifiers in a model file, each written and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sensortree.exceptions import ModelFileError
from sensortree.persistence.fields import Fields, numbers, scalar
from sensortree.persistence.foreign import read_foreign, write_foreign
from sensortree.policy.calibration import (
    CalibratedScorer,
    Calibration,
    Isotonic,
    MeanScorer,
    Sigmoid,
    Temperature,
)
from sensortree.policy.classifiers import BoostedScorer, ConstantScorer, LogisticScorer

# A path of more decisions in a boosted tree is a mistake.
MAX_BOOSTED_DEPTH = 512
CALIBRATIONS = ("sigmoid", "isotonic", "temperature")


def write_classifier(scorer: Any, what: str, foreign: str | None) -> dict[str, Any]:
    """A plain classifier, or one of others by skops."""
    for kind, (of_type, write, _) in KINDS.items():
        if type(scorer) is of_type:
            return {"kind": kind, **write(scorer)}
    return write_foreign(scorer, what, foreign)


def read_classifier(
    fields: Fields, width: int, n_classes: int, trusted: Sequence[str] | None
) -> Any:
    """A classifier of readings of a width."""
    kind = fields.text("kind")
    if kind == "skops":
        scorer = read_foreign(fields, trusted)
        if not hasattr(scorer, "predict"):
            raise ModelFileError(f"{fields.where} is not a classifier.")
    elif kind not in KINDS:
        raise ModelFileError(
            f"{fields.place('kind')} is {kind[:80]!r}, which is no kind of classifier; "
            f"the kinds are {', '.join(KINDS)} and skops."
        )
    else:
        scorer = KINDS[kind][2](fields, width, n_classes)
    fields.end()
    return scorer


def _outputs(n_classes: int) -> int:
    """One score for two classes, else one per class."""
    return 1 if n_classes == 2 else n_classes


def _write_constant(scorer: ConstantScorer) -> dict[str, Any]:
    return {"proba": numbers(scorer.proba)}


def _read_constant(fields: Fields, width: int, n_classes: int) -> ConstantScorer:
    proba = fields.numbers("proba", (n_classes,), least=0.0)
    if abs(float(proba.sum()) - 1.0) > 1e-6:
        raise ModelFileError(f"{fields.place('proba')} does not sum to 1.")
    return ConstantScorer(proba)


def _write_logistic(scorer: LogisticScorer) -> dict[str, Any]:
    return {
        "degree": int(scorer.degree),
        "center": numbers(scorer.center),
        "scale": numbers(scorer.scale),
        "coef": numbers(scorer.coef),
        "intercept": numbers(scorer.intercept),
    }


def _read_logistic(fields: Fields, width: int, n_classes: int) -> LogisticScorer:
    degree = fields.integer("degree", 1, 3)
    n_terms = width if degree == 1 else width + width * (width + 1) // 2
    n_outputs = _outputs(n_classes)
    return LogisticScorer(
        fields.numbers("center", (width,)),
        fields.scales("scale", (width,)),
        degree,
        fields.numbers("coef", (n_terms, n_outputs)),
        fields.numbers("intercept", (n_outputs,)),
    )


def write_boosted(scorer: BoostedScorer) -> dict[str, Any]:
    """Nodes as lists; a leaf has feature -1, children 0, and its value as number.

    A feature is a reading, or behind the last reading one of the sets of levels.
    """
    leaf = scorer.left == np.arange(len(scorer.left))
    where = np.where(leaf, scorer.value, scorer.threshold)
    return {
        "feature": np.where(leaf, -1, scorer.feature).tolist(),
        "left": np.where(leaf, 0, scorer.left).tolist(),
        "right": np.where(leaf, 0, scorer.right).tolist(),
        "number": numbers(where),
        "missing_left": np.flatnonzero(scorer.missing_left).tolist(),
        "roots": scorer.roots.ravel().tolist(),
        "baseline": numbers(scorer.baseline),
        **({} if scorer.sets is None else {"sets": _write_sets(scorer.sets)}),
    }


def read_boosted(fields: Fields, width: int, n_classes: int) -> BoostedScorer:
    """Trees whose nodes are listed as `write_boosted` does."""
    sets = _read_sets(fields, width)
    n_features = width + len(sets or ())
    feature = np.array(fields.integers("feature", -1, n_features), dtype=np.int32)
    n_nodes, n_outputs = len(feature), _outputs(n_classes)
    own = np.arange(n_nodes, dtype=np.int32)
    leaf = feature == -1
    left, right = (
        np.array(fields.integers(side, 0, n_nodes, n_nodes), dtype=np.int32)
        for side in ("left", "right")
    )
    roots = np.array(fields.positions("roots", n_nodes), dtype=np.int32)
    if len(roots) % n_outputs:
        raise ModelFileError(
            f"{fields.place('roots')} has {len(roots)} trees, expected a multiple of "
            f"{n_outputs}."
        )
    left, right = np.where(leaf, own, left), np.where(leaf, own, right)
    _check_forest(left, right, leaf, roots, fields.where)
    values = _thresholds(fields, leaf)
    missing_left = np.zeros(n_nodes, dtype=bool)
    missing_left[list(fields.positions("missing_left", n_nodes))] = True
    return BoostedScorer(
        np.where(leaf, 0, feature).astype(np.int32),
        left.astype(np.int32),
        right.astype(np.int32),
        np.where(leaf, 0.0, values),
        np.where(leaf, values, 0.0),
        missing_left & ~leaf,
        roots.reshape(-1, n_outputs),
        fields.numbers("baseline", (n_outputs,)),
        sets=sets,
    )


def _write_sets(sets: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
    """Sets of levels, one after another."""
    return {
        "size": [len(each) for each in sets],
        "readings": [reading for each in sets for reading in each],
    }


def _read_sets(fields: Fields, width: int) -> tuple[tuple[int, ...], ...] | None:
    """Sets of levels; None if there are none."""
    if not fields.has("sets"):
        return None
    listed = fields.child("sets")
    size = listed.integers("size", 1, width + 1)
    readings = listed.integers("readings", 0, width, sum(size))
    listed.end()
    ends = np.cumsum(size).tolist()
    each = zip([0, *ends], ends, strict=False)
    return tuple(tuple(readings[begin:end]) for begin, end in each) or None


def _thresholds(fields: Fields, leaf: Any) -> Any:
    """Thresholds of nodes, of which infinity sends all but NaN left; values of leaves."""
    where, listed = fields.place("number"), fields.items("number", len(leaf))
    endless = [i for i, value in enumerate(listed) if isinstance(value, dict)]
    if any(scalar(listed[i], where) != np.inf or leaf[i] for i in endless):
        raise ModelFileError(f"{where} holds a number that is not finite.")
    finite = [0.0 if isinstance(value, dict) else value for value in listed]
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


def _write_calibrated(scorer: CalibratedScorer) -> dict[str, Any]:
    """What is calibrated, by what, and the numbers of each output."""
    calibration = scorer.calibration
    match calibration:
        case Sigmoid():
            method = "sigmoid"
            outputs = np.stack([calibration.slope, calibration.offset]).T.tolist()
        case Isotonic():
            method = "isotonic"
            pairs = zip(calibration.at, calibration.proba_at, strict=True)
            outputs = [numbers(np.stack(pair)) for pair in pairs]
        case Temperature():
            method, outputs = "temperature", [[calibration.inverse]]
        case _:
            raise AssertionError(calibration)
    return {
        "method": method,
        "reads_scores": scorer.reads_scores,
        "outputs": outputs,
        "classifier": write_classifier(scorer.scorer, "a classifier", None),
    }


def _read_calibrated(fields: Fields, width: int, n_classes: int) -> CalibratedScorer:
    method, reads_scores = fields.text("method"), fields.flag("reads_scores")
    if method not in CALIBRATIONS:
        raise ModelFileError(
            f"{fields.place('method')} must be one of {', '.join(CALIBRATIONS)}."
        )
    n_outputs = 1 if method == "temperature" else _outputs(n_classes)
    given = fields.items("outputs", n_outputs)
    outputs = [_output(each, method, fields.place("outputs")) for each in given]
    scorer = read_classifier(fields.child("classifier"), width, n_classes, None)
    if not isinstance(scorer, (LogisticScorer, BoostedScorer)):
        raise ModelFileError(f"{fields.place('classifier')} has no scores.")
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
    """Numbers that calibrate one output, such as they can be."""
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


def _write_mean(scorer: MeanScorer) -> dict[str, Any]:
    parts = [write_classifier(each, "a classifier", None) for each in scorer.scorers]
    return {"classifiers": parts}


def _read_mean(fields: Fields, width: int, n_classes: int) -> MeanScorer:
    scorers = [
        read_classifier(each, width, n_classes, None)
        for each in fields.children("classifiers")
    ]
    if not scorers:
        raise ModelFileError(f"{fields.place('classifiers')} is empty.")
    return MeanScorer(tuple(scorers))


KINDS: dict[str, tuple[type, Callable[..., Any], Callable[..., Any]]] = {
    "constant": (ConstantScorer, _write_constant, _read_constant),
    "logistic": (LogisticScorer, _write_logistic, _read_logistic),
    "boosted": (BoostedScorer, write_boosted, read_boosted),
    "calibrated": (CalibratedScorer, _write_calibrated, _read_calibrated),
    "mean": (MeanScorer, _write_mean, _read_mean),
}
