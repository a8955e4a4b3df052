"""A policy and its evidence as a document, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sensortree._version import __version__
from sensortree.exceptions import ModelFileError
from sensortree.persistence.about import read_about, write_about
from sensortree.persistence.baselines import read_baselines, write_baselines
from sensortree.persistence.calibration import read_calibration, write_calibration
from sensortree.persistence.comparison import read_comparison, write_comparison
from sensortree.persistence.curve import read_curve, write_curve
from sensortree.persistence.decisions import read_decisions, write_decisions
from sensortree.persistence.detours import known_in, read_detours, write_detours
from sensortree.persistence.fields import Fields, check_text, from_plain, plain
from sensortree.persistence.leaves import read_classifier, write_classifier
from sensortree.persistence.numbers import read_number_loss, write_number_loss
from sensortree.persistence.outages import read_outages, write_outages
from sensortree.persistence.problem import (
    read_classes,
    read_loss,
    read_sensors,
    write_classes,
    write_loss,
    write_sensors,
)
from sensortree.persistence.reading import read_reading, write_reading
from sensortree.persistence.referral import read_referral, write_referral
from sensortree.persistence.saved import REPORTS, SavedModel
from sensortree.persistence.seen import read_seen, write_seen
from sensortree.persistence.transformers import (
    MAX_WIDTH,
    read_transformer,
    write_transformer,
)
from sensortree.persistence.trees import read_flow, read_tree, write_flow, write_tree
from sensortree.policy.policy import Policy
from sensortree.sensors.number_loss import NumberLoss
from sensortree.sensors.reader import SensorReader
from sensortree.sensors.sensor_set import SensorSet, default_names
from sensortree.sensors.transforms import PLAIN
from sensortree.tree.tree import SensorTree

MAX_COLUMNS = 100_000
# Libraries of frames that transformers of others may have been fitted on.
FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf")


def write_model(model: Any, foreign: str | None) -> dict[str, Any]:
    """The document of a fitted estimator, a loaded model, or a policy."""
    policy = model if isinstance(model, Policy) else getattr(model, "policy_", None)
    if not isinstance(policy, Policy):
        raise ModelFileError(
            f"cannot save a {type(model).__name__}; give a fitted estimator of "
            f"sensortree, its policy_, or what sensortree.load returned."
        )
    sensors, reader = policy.sensors, policy.reader

    def classifier_of(subset: frozenset[str], scorer: Any) -> dict[str, Any]:
        what = f"the classifier of {_said(subset)}"
        return {
            "sensors": sorted(map(sensors.index, subset)),
            "classifier": write_classifier(scorer, what, foreign),
        }

    document = {
        "library_version": __version__,
        "about": write_about(policy.about),
        "problem": {
            **_write_target(policy),
            "columns": list(map(str, sensors.column_names)),
            "columns_are_named": _are_named(model, sensors),
            "sensors": write_sensors(sensors),
            "cost_weight": float(policy.cost_weight),
            "max_cost": None if policy.max_cost is None else float(policy.max_cost),
            **write_referral(policy.referral),
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
            **({} if reader.seen is None else {"seen": write_seen(reader.seen)}),
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
        **write_calibration(policy.calibration),
        "baselines": write_baselines(policy, foreign),
        "flow": write_flow(policy.flow),
        "evidence": {
            name: plain(getattr(model, f"{name}_", None), f"{name}_")
            for name in REPORTS
        },
        **_write_known(model, sensors),
    }
    if policy.detours is not None:
        document["detours"] = write_detours(
            policy.detours, sensors, foreign, classifier_of
        )
    return document


def _write_target(policy: Policy) -> dict[str, Any]:
    """Classes and what mistakes cost; or that answers are numbers, and what they lose."""
    if isinstance(policy.loss, NumberLoss):
        return write_number_loss(policy.loss)
    return {"classes": write_classes(policy.classes), **write_loss(policy.loss)}


def _write_known(model: Any, sensors: SensorSet) -> dict[str, Any]:
    """What only some models know, each in a section of its own.

    How the cells of a table were written, of a model that was learned from a file; what
    outages cost; what the fit compared; the curve that it was picked from.
    """
    known: dict[str, Any] = {}
    if (reading := getattr(model, "reading_", None)) is not None:
        known["reading"] = write_reading(reading)
    if (outages := getattr(model, "outage_report_", None)) is not None:
        known["outages"] = write_outages(outages, sensors)
    if (compared := getattr(model, "comparison_", None)) is not None:
        known["comparison"] = write_comparison(compared, sensors)
    if (curve := getattr(model, "curve_", None)) is not None:
        known["curve"] = write_curve(curve, model.chosen_)
    return known


def _are_named(model: Any, sensors: SensorSet) -> bool:
    """Whether the columns have names by which a frame can be checked."""
    if isinstance(model, Policy):
        return sensors.column_names != default_names(len(sensors.column_names))
    return getattr(model, "feature_names_in_", None) is not None


def _said(subset: frozenset[str]) -> str:
    names = ", ".join(map(repr, sorted(subset)))
    return f"the leaf that knows {names or 'nothing'}"


def read_model(
    document: dict[str, Any], trusted: Sequence[str] | None = None
) -> SavedModel:
    """The model of a document whose every part fits the others."""
    fields = Fields(document, "")
    for key in ("format", "format_version", "digest"):
        fields.take(key)
    fields.text("library_version")
    problem = fields.child("problem")
    numeric = problem.has("task")
    classes = np.empty(0) if numeric else read_classes(problem.child("classes"))
    columns = _read_columns(problem)
    named = problem.flag("columns_are_named")
    sensors = read_sensors(problem, columns)
    tree = read_tree(fields.child("tree"), sensors)
    reader = _read_reader(fields.child("reader"), sensors, trusted)
    width_of = dict(zip(sensors.names, reader.widths, strict=True))
    needed = {frozenset[str](), *known_in(tree)}

    def read_classifiers(
        fields: Fields, needed: set[frozenset[str]]
    ) -> dict[frozenset[str], Any]:
        return _read_classifiers(fields, needed, width_of, len(classes), trusted)

    classifiers = read_classifiers(fields, needed)
    policy = Policy(
        reader,
        tree,
        read_decisions(
            fields.child("decisions"),
            [sum(map(width_of.__getitem__, node.sensors)) for node in tree.nodes],
            len(classes),
            len(sensors.varying),
            trusted,
        ),
        classifiers,
        classes,
        read_flow(fields.child("flow"), tree, len(classes)),
        read_number_loss(problem) if numeric else read_loss(problem, len(classes)),
        problem.number("cost_weight", least=0.0),
        _read_max_cost(problem),
        _read_own_classifiers(fields, tree, width_of, len(classes), trusted),
        read_detours(
            fields.child("detours"),
            sensors,
            width_of,
            len(classes),
            trusted,
            needed,
            read_classifiers,
        )
        if fields.has("detours")
        else None,
        calibration=read_calibration(fields, tree.n_leaves, len(classes)),
        baselines=read_baselines(fields, classifiers, width_of, len(classes), trusted),
        about=read_about(fields),
        referral=read_referral(problem, len(classes), len(columns)),
    )
    problem.end()
    evidence = _read_evidence(fields.child("evidence"))
    reading = read_reading(fields, "reading") if fields.has("reading") else None
    if fields.has("outages"):
        evidence["outage_report"] = read_outages(fields, "outages", sensors)
    if fields.has("comparison"):
        evidence["comparison"] = read_comparison(
            fields.child("comparison"), sensors, policy.about.held_out
        )
    if fields.has("curve"):
        picked = read_curve(fields.child("curve"), policy.about.unit)
        evidence["curve"], evidence["chosen"] = picked
    fields.end()
    names = np.array(columns, object) if named else None
    return SavedModel(policy, names, evidence, reading)


def _read_columns(problem: Fields) -> tuple[str, ...]:
    """Names of the columns; those of a frame may repeat."""
    names = problem.items("columns")
    if len(names) > MAX_COLUMNS:
        raise ModelFileError(f"the file has more than {MAX_COLUMNS:,} columns.")
    where = problem.place("columns")
    return tuple(check_text(name, where) if name != "" else "" for name in names)


def _read_max_cost(problem: Fields) -> float | None:
    if problem.has("max_cost"):
        return problem.number("max_cost", least=0.0)
    problem.take("max_cost")
    return None


def _read_reader(
    fields: Fields, sensors: SensorSet, trusted: Sequence[str] | None
) -> SensorReader:
    widths = fields.integers("widths", 0, MAX_WIDTH + 1, len(sensors))
    stored = fields.child("transformers")
    transformers = {}
    for sensor, name in enumerate(sensors.names):
        n_columns = made = len(sensors.columns[sensor])
        if stored.has(name):
            transformer = read_transformer(stored.child(name), n_columns, trusted)
            transformers[name] = transformer
            # Of a transformer of others only the file knows the width.
            made = (
                transformer.width if isinstance(transformer, PLAIN) else widths[sensor]
            )
        if widths[sensor] != made:
            raise ModelFileError(
                f"{fields.place('widths')} says {widths[sensor]} for sensor {name!r}, "
                f"which gives {made} values."
            )
    stored.end()
    allow_nan, frame = fields.flag("allow_nan"), fields.take("frame")
    if frame is not None and frame not in FRAMES:
        raise ModelFileError(
            f"{fields.place('frame')} must be null or one of {', '.join(FRAMES)}."
        )
    seen = read_seen(fields, sensors) if fields.has("seen") else None
    fields.end()
    return SensorReader(sensors, transformers, tuple(widths), allow_nan, frame, seen)


def _read_classifiers(
    fields: Fields,
    needed: set[frozenset[str]],
    width_of: dict[str, int],
    n_classes: int,
    trusted: Sequence[str] | None,
) -> dict[frozenset[str], Any]:
    """One classifier for each set of sensors that needs one."""
    names, found = tuple(width_of), {}
    for entry in fields.children("classifiers"):
        subset = frozenset(names[at] for at in entry.positions("sensors", len(names)))
        if subset not in needed or subset in found:
            raise ModelFileError(
                f"{entry.where} is for sensors that no vertex of the tree knows, or that "
                f"have a classifier already."
            )
        found[subset] = read_classifier(
            entry.child("classifier"),
            sum(map(width_of.__getitem__, subset)),
            n_classes,
            trusted,
        )
        entry.end()
    if len(found) < len(needed):
        raise ModelFileError(
            f"the file has classifiers for {len(found)} of the {len(needed)} sets of "
            f"sensors that its tree knows."
        )
    return found


def _read_own_classifiers(
    fields: Fields,
    tree: SensorTree,
    width_of: dict[str, int],
    n_classes: int,
    trusted: Sequence[str] | None,
) -> dict[int, Any]:
    """Classifiers of single leaves, and of nodes as their complement."""
    found: dict[int, Any] = {}
    for entry in fields.children("own_classifiers"):
        place = entry.integer("place", -tree.n_nodes, tree.n_leaves)
        if place in found:
            raise ModelFileError(f"{entry.where} is the second of place {place}.")
        vertex = tree.leaves[place] if place >= 0 else tree.nodes[~place]
        found[place] = read_classifier(
            entry.child("classifier"),
            sum(map(width_of.__getitem__, vertex.sensors)),
            n_classes,
            trusted,
        )
        entry.end()
    return found


def _read_evidence(fields: Fields) -> dict[str, Any]:
    evidence = {}
    for name in REPORTS:
        # reports that came later are not in every file
        take = fields.optional if name == "calibration_report" else fields.take
        value = from_plain(take(name), fields.place(name))
        if name == "fallback_leaf":
            if value is not None and type(value) is not int:
                raise ModelFileError(
                    f"{fields.place(name)} must be an integer or null."
                )
        elif value is not None and not isinstance(value, dict):
            raise ModelFileError(f"{fields.place(name)} must be an object or null.")
        evidence[name] = value
    fields.end()
    return evidence
