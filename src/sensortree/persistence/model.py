"""A policy and its evidence as a document, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sensortree._version import __version__
from sensortree.cells.words import PLAIN_FORMAT
from sensortree.exceptions import ModelFileError
from sensortree.persistence.codecs import (
    FLAG,
    PAIR,
    ROWS,
    TEXT,
    VALUE,
    WORDS,
    Codec,
    Sizes,
    array,
    integer,
    keyed,
    later,
    listed,
    nullable,
    real,
    record,
    word,
)
from sensortree.persistence.fields import Fields, check_text, from_plain, numbers, plain
from sensortree.persistence.problem import (
    ABOUT,
    READING,
    REFERRAL,
    SEEN,
    read_answers,
    read_seen,
    read_sensors,
    write_answers,
    write_sensors,
)
from sensortree.persistence.saved import REPORTS, SavedModel
from sensortree.persistence.scorers import (
    MAX_WIDTH,
    Known,
    read_transformer,
    write_classifier,
    write_transformer,
)
from sensortree.persistence.trees import (
    FLOW,
    Subset,
    known_in,
    read_classifiers,
    read_decisions,
    read_detours,
    read_flow,
    read_tree,
    write_decisions,
    write_detours,
    write_tree,
)
from sensortree.policy.about import (
    EVERYTHING,
    FIXED,
    NOTHING,
    ONE_SET,
    About,
    Baseline,
    Comparison,
    HeldOut,
    Outage,
    OutageReport,
)
from sensortree.policy.about import NOTHING as NO_CANDIDATE
from sensortree.policy.classifiers import LeafCalibration
from sensortree.policy.policy import Policy
from sensortree.reports.tradeoff import (
    RULES,
    Choice,
    TradeoffCurve,
    choice_at,
    standard_error,
)
from sensortree.sensors.loss import METRICS
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.sensor import SensorSet, default_names
from sensortree.sensors.transforms import Transform
from sensortree.tree.tree import SensorTree
from sensortree.types import Array

MAX_COLUMNS = 100_000
MAX_POINTS, MAX_FOLDS = 10_000, 1_000
# Libraries of frames that transformers of others may have been fitted on.
FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf")
# Bytes of a baseline's classifier above which it is not written: no answer depends on it.
BULKY = 2**20
FRAME = nullable(word(FRAMES))


def write_model(model: Any, foreign: str | None) -> dict[str, Any]:
    """The document of a fitted estimator, a loaded model, or a policy."""
    policy = model if isinstance(model, Policy) else getattr(model, "policy_", None)
    if not isinstance(policy, Policy):
        raise ModelFileError(
            f"cannot save a {type(model).__name__}; give a fitted estimator of "
            f"sensortree, its policy_, or what sensortree.load returned."
        )
    sensors, reader, index = policy.sensors, policy.reader, policy.sensors.index

    def classifier_of(subset: Subset, scorer: Any) -> dict[str, Any]:
        names = ", ".join(map(repr, sorted(subset))) or "nothing"
        what = f"the classifier of the leaf that knows {names}"
        return {
            "sensors": sorted(map(index, subset)),
            "classifier": write_classifier(scorer, what, foreign),
        }

    columns, names = sensors.column_names, getattr(model, "feature_names_in_", None)
    # Whether the columns have names by which a frame can be checked.
    named = (
        columns != default_names(len(columns)) if policy is model else names is not None
    )
    problem = {
        "columns": columns,
        "columns_are_named": named,
        "cost_weight": policy.cost_weight,
        "max_cost": policy.max_cost,
        "referral": policy.referral,
    }
    of_model = ("reading", "outage_report", "comparison", "curve", "chosen")
    given: list[Any] = [getattr(model, f"{name}_", None) for name in of_model]
    reading, outages, compared, curve, chosen = given
    sections = {
        "reading": reading and {k: f for k, f in reading.items() if f != PLAIN_FORMAT},
        "outages": outages and {index(n): o for n, o in outages.outages.items()},
        "comparison": compared and comparison_form(compared, index),
        "curve": curve and curve_form(curve, chosen),
    }
    seen = reader.seen and [list(map(SEEN.write, each)) for each in reader.seen]
    document: dict[str, Any] = {
        "library_version": __version__,
        "about": ABOUT.write(policy.about),
        "problem": {
            **write_answers(policy.classes, policy.loss),
            **COLUMNS.write(problem),
            "sensors": write_sensors(sensors),
            **WEIGHTS.write(problem),
        },
        "reader": {
            "widths": list(map(int, reader.widths)),
            "allow_nan": bool(reader.allow_nan),
            "frame": reader.frame,
            "transformers": {
                name: write_transformer(
                    transformer, f"the transformer of sensor {name!r}", foreign
                )
                for name, transformer in reader.transformers.items()
            },
            **({} if seen is None else {"seen": seen}),
        },
        "tree": write_tree(policy.tree, sensors),
        "decisions": write_decisions(policy.decisions, foreign),
        "classifiers": [
            classifier_of(subset, scorer)
            for subset, scorer in policy.classifiers.items()
        ],
        "own_classifiers": [
            {
                "place": int(place),
                "classifier": write_classifier(
                    scorer, f"the classifier of place {place}", foreign
                ),
            }
            for place, scorer in sorted(policy.own_classifiers.items())
        ],
        **CALIBRATED.write({"calibration": policy.calibration}),
        "baselines": write_baselines(policy, foreign),
        "flow": FLOW.write(policy.flow),
        "evidence": {
            name: plain(getattr(model, f"{name}_", None), f"{name}_")
            for name in REPORTS
        },
        **SECTIONS.write(sections),
    }
    if policy.detours is not None:
        detours = write_detours(policy.detours, sensors, foreign, classifier_of)
        document["detours"] = detours
    return document


def read_model(
    document: dict[str, Any], trusted: Sequence[str] | None = None
) -> SavedModel:
    """The model of a document whose every part fits the others."""
    fields = Fields(document, "")
    for key in ("format", "format_version", "digest"):
        fields.take(key)
    fields.text("library_version")
    problem = fields.child("problem")
    classes, loss = read_answers(problem)
    n_classes = len(classes)
    sizes = {"classes": n_classes}
    of_problem = COLUMNS.take(problem, sizes)
    columns = of_problem["columns"]
    sensors = read_sensors(problem, columns)
    of_problem |= WEIGHTS.take(problem, {**sizes, "columns": len(columns)})
    tree = read_tree(fields.child("tree"), sensors)
    reader = _read_reader(fields.child("reader"), sensors, trusted)
    known = Known(sensors, reader.widths, n_classes, trusted)
    subsets = {frozenset[str](), *known_in(tree)}
    classifiers = read_classifiers(fields, known, subsets)
    detours = None
    if fields.has("detours"):
        detours = read_detours(fields.child("detours"), known, subsets)
    sizes |= {"leaves": tree.n_leaves, "sensors": len(sensors)}
    sections = SECTIONS.take(fields, sizes)
    about = later(ABOUT).read(fields, "about", {}) or About()
    policy = Policy(
        reader,
        tree,
        read_decisions(fields.child("decisions"), tree, known),
        classifiers,
        classes,
        read_flow(fields.child("flow"), tree, n_classes),
        loss,
        of_problem["cost_weight"],
        of_problem["max_cost"],
        _read_own_classifiers(fields, tree, known),
        detours,
        **CALIBRATED.take(fields, sizes),
        baselines=read_baselines(fields, classifiers, known),
        about=about,
        referral=of_problem["referral"],
    )
    problem.end()
    evidence = _read_evidence(fields.child("evidence"))
    fields.end()
    if (outages := sections["outages"]) is not None:
        named = {sensors.names[at]: outage for at, outage in outages.items()}
        evidence["outage_report"] = OutageReport(named)
    if (compared := sections["comparison"]) is not None:
        evidence["comparison"] = comparison_of(compared, sensors, about.held_out)
    if (picked := sections["curve"]) is not None:
        evidence["curve"], evidence["chosen"] = curve_of(picked, about.unit)
    names = np.array(columns, object) if of_problem["columns_are_named"] else None
    return SavedModel(policy, names, evidence, sections["reading"])


def _read_columns(problem: Fields, key: str, sizes: Sizes) -> tuple[str, ...]:
    """Names of the columns; those of a frame may repeat."""
    names = problem.items(key)
    if len(names) > MAX_COLUMNS:
        raise ModelFileError(f"the file has more than {MAX_COLUMNS:,} columns.")
    where = problem.place(key)
    return tuple(check_text(name, where) if name != "" else "" for name in names)


COLUMNS = record(
    dict,
    columns=Codec(lambda names: list(map(str, names)), _read_columns),
    columns_are_named=FLAG,
)
WEIGHTS = record(
    dict,
    cost_weight=real(0.0),
    max_cost=nullable(real(0.0)),
    referral=later(REFERRAL),
)


def _read_reader(
    fields: Fields, sensors: SensorSet, trusted: Sequence[str] | None
) -> SensorReader:
    widths = fields.integers("widths", 0, MAX_WIDTH + 1, len(sensors))
    stored = fields.child("transformers")
    transformers = {}
    for sensor, name in enumerate(sensors.names):
        made = len(sensors.columns[sensor])
        if stored.has(name):
            transformer = read_transformer(stored.child(name), made, trusted)
            transformers[name] = transformer
            # Of a transformer of others only the file knows the width.
            plain = isinstance(transformer, Transform)
            made = transformer.width if plain else widths[sensor]
        if widths[sensor] != made:
            raise fields.wrong(
                "widths",
                f"says {widths[sensor]} for sensor {name!r}, which gives {made} values",
            )
    stored.end()
    allow_nan, frame = fields.flag("allow_nan"), FRAME.read(fields, "frame", {})
    seen = read_seen(fields, sensors) if fields.has("seen") else None
    fields.end()
    return SensorReader(sensors, transformers, tuple(widths), allow_nan, frame, seen)


def _read_own_classifiers(
    fields: Fields, tree: SensorTree, known: Known
) -> dict[int, Any]:
    """Classifiers of single leaves, and of nodes as their complement."""
    found: dict[int, Any] = {}
    for entry in fields.children("own_classifiers"):
        place = entry.integer("place", -tree.n_nodes, tree.n_leaves)
        if place in found:
            raise entry.wrong("", f"is the second of place {place}")
        vertex = tree.leaves[place] if place >= 0 else tree.nodes[~place]
        found[place] = known.classifier(entry, vertex.sensors)
        entry.end()
    return found


def _check_calibration(leaf: LeafCalibration, fields: Fields) -> None:
    if leaf.slope == 0:
        raise fields.wrong("slope", "must be above 0")


LEAF_CALIBRATION = record(
    LeafCalibration, _check_calibration, slope=real(0.0), bias=array("classes")
)
CALIBRATED = record(dict, calibration=later(listed(LEAF_CALIBRATION, "leaves")))


# evidence ---------------------------------------------------------------------------------


def write_baselines(policy: Policy, foreign: str | None) -> list[dict[str, Any]] | None:
    """What reports compare with; no classifier where the policy has it already."""
    if policy.baselines is None:
        return None
    written = []
    for baseline in policy.baselines:
        own = None
        if baseline.sensors not in policy.classifiers:
            what = f"the classifier of {baseline.name!r}"
            own = write_classifier(baseline.classifier, what, foreign)
            if len(json.dumps(own)) > BULKY:
                continue
        sensors = sorted(map(policy.sensors.index, baseline.sensors))
        written.append({"name": baseline.name, "sensors": sensors, "classifier": own})
    return written


def read_baselines(
    fields: Fields, classifiers: Mapping[Subset, Any], known: Known
) -> tuple[Baseline, ...] | None:
    """The baselines; None in a file that has none."""
    if not fields.has("baselines"):
        fields.optional("baselines")
        return None
    names, found = word((EVERYTHING, FIXED, NOTHING)), list[Baseline]()
    for entry in fields.children("baselines"):
        name, subset = names.read(entry, "name", {}), known.subset(entry)
        if any(name == other.name for other in found):
            raise entry.wrong("", f"is the second of name {name!r}")
        if entry.has("classifier"):
            classifier = known.classifier(entry, subset)
        elif subset in classifiers:
            entry.take("classifier")
            classifier = classifiers[subset]
        else:
            raise entry.wrong(
                "", "has no classifier, and no vertex of the tree knows its sensors"
            )
        entry.end()
        found.append(Baseline(name, subset, classifier))
    return tuple(found)


def _read_evidence(fields: Fields) -> dict[str, Any]:
    evidence = {}
    for name in REPORTS:
        # reports that came later are not in every file
        take = fields.optional if name == "calibration_report" else fields.take
        value = from_plain(take(name), fields.place(name))
        if name == "fallback_leaf":
            if value is not None and type(value) is not int:
                raise fields.wrong(name, "must be an integer or null")
        elif value is not None and not isinstance(value, dict):
            raise fields.wrong(name, "must be an object or null")
        evidence[name] = value
    fields.end()
    return evidence


OUTAGES = keyed(
    record(
        Outage, share=real(0.0), usual=real(), turning=real(), detour=nullable(real())
    ),
    "sensor",
    integer(0, "sensors"),
)


def _check_comparison(compared: dict[str, Any], fields: Fields) -> None:
    if compared["chosen"] not in (*compared["candidates"], NO_CANDIDATE, ONE_SET):
        raise fields.wrong(
            "chosen", f"names {compared['chosen']!r}, which is not a candidate"
        )


# Candidates in the order of trial; the score of the one taken is the model's.
COMPARISON = record(
    dict,
    _check_comparison,
    chosen=TEXT,
    candidates=keyed(
        record(dict, risk=real(), error=real(0.0), cost=real(0.0)), "name", TEXT
    ),
    informative=FLAG,
    optimism=real(0.0),
    rows=ROWS,
    removed=Codec(list, lambda f, key, s: f.positions(key, s["sensors"])),
    not_compared=keyed(record(dict, why=TEXT), "name", TEXT),
)


def comparison_form(
    compared: Comparison, index: Callable[[str], int]
) -> dict[str, Any]:
    """What a fit compared, and what it took, as the keys of its section."""
    risk, error, cost = compared.risk, compared.error, compared.cost
    return {
        **vars(compared),
        "candidates": {
            n: {"risk": risk[n], "error": error[n], "cost": cost[n]} for n in risk
        },
        "rows": compared.n_rows,
        "removed": [index(name) for name in compared.removed],
        "not_compared": {n: {"why": why} for n, why in compared.not_compared.items()},
    }


def comparison_of(
    found: dict[str, Any], sensors: SensorSet, held_out: HeldOut | None
) -> Comparison:
    """The same, of what a file says."""
    candidates = found.pop("candidates")
    for key in ("risk", "error", "cost"):
        found[key] = {name: figures[key] for name, figures in candidates.items()}
    return Comparison(
        n_rows=found.pop("rows"),
        removed=tuple(sensors.names[at] for at in found.pop("removed")),
        not_compared={n: each["why"] for n, each in found.pop("not_compared").items()},
        held_out=held_out,
        **found,
    )


def _read_weights(fields: Fields, key: str, sizes: Sizes) -> Array:
    """Cost weights in descending order."""
    n_points = fields.length(key)
    if not 1 <= n_points <= MAX_POINTS:
        raise fields.wrong(key, f"must hold 1 to {MAX_POINTS:,} numbers")
    weights = fields.numbers(key, (n_points,), least=0.0)
    if (np.diff(weights) > 0).any():
        raise fields.wrong(key, "must not ascend")
    return weights


def _metrics(names: Collection[str], part: Codec) -> Codec:
    """A dict of what was measured, where it is finite; files of before have none."""

    def read(fields: Fields, key: str, sizes: Sizes) -> dict[str, Any]:
        if not fields.has(key):
            fields.optional(key)
            return {}
        own = fields.child(key)
        found = {name: part.read(own, name, sizes) for name in names if own.has(name)}
        own.end()
        return found

    return Codec(lambda values: {k: part.write(v) for k, v in values.items()}, read)


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: v for name, v in values.items() if np.isfinite(v).all()}


ENDS = ("nothing", "everything")
CURVE = record(
    dict,
    measure=TEXT,
    folds=integer(1, MAX_FOLDS),
    cost_weight=Codec(numbers, _read_weights),
    error=array("cost_weight"),
    mean_cost=array("cost_weight", least=0.0),
    fold_error=array("cost_weight", "folds"),
    fold_cost=array("cost_weight", "folds", least=0.0),
    nothing=nullable(PAIR),
    everything=nullable(PAIR),
    metrics=_metrics(METRICS, array("cost_weight")),
    end_metrics=_metrics(ENDS, _metrics(METRICS, real())),
    chosen=record(
        dict,
        index=integer(0, "cost_weight"),
        rule=word(RULES),
        target=VALUE,
        met=FLAG,
        note=WORDS,
        # files of before have the point of the curve, not what the model is worth itself
        mean_cost=nullable(real(0.0), absent=True),
        error=nullable(real(), absent=True),
    ),
)


def curve_form(curve: TradeoffCurve, chosen: Choice) -> dict[str, Any]:
    """Points, folds and ends of a curve, and which point was picked why."""
    return {
        **vars(curve),
        "folds": curve.fold_error.shape[1],
        "metrics": _finite(curve.metrics),
        "end_metrics": {end: _finite(each) for end, each in curve.end_metrics.items()},
        "chosen": chosen,
    }


def curve_of(found: dict[str, Any], unit: str) -> tuple[TradeoffCurve, Choice]:
    """The same, of what a file says."""
    picked = found.pop("chosen")
    del found["folds"]
    curve = TradeoffCurve(
        **found,
        error_se=standard_error(found["fold_error"]),
        cost_se=standard_error(found["fold_cost"]),
        unit=unit,
    )
    place = (picked.pop(key) for key in ("index", "rule", "target", "met"))
    own = {key: value for key, value in picked.items() if value is not None}
    return curve, replace(choice_at(curve, *place), **own)


# What only some models know; files of before have no such section.
SECTIONS = record(
    dict,
    reading=later(READING),
    outages=later(OUTAGES),
    comparison=later(COMPARISON),
    curve=later(CURVE),
)
