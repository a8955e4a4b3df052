"""The baselines of a model file: what reports compare a policy with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sensortree.exceptions import ModelFileError
from sensortree.persistence.fields import Fields
from sensortree.persistence.leaves import read_classifier, write_classifier
from sensortree.policy.about import EVERYTHING, FIXED, NOTHING, Baseline
from sensortree.policy.policy import Policy

# Bytes of a classifier above which it is not worth its room: no answer depends on it.
BULKY = 2**20
NAMES = (EVERYTHING, FIXED, NOTHING)


def write_baselines(policy: Policy, foreign: str | None) -> list[dict[str, Any]] | None:
    """Sensors and classifier of each; no classifier where the policy has it already."""
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
    fields: Fields,
    classifiers: Mapping[frozenset[str], Any],
    width_of: Mapping[str, int],
    n_classes: int,
    trusted: Sequence[str] | None,
) -> tuple[Baseline, ...] | None:
    """The baselines; None in a file that has none."""
    if not fields.has("baselines"):
        fields.optional("baselines")
        return None
    names = tuple(width_of)
    found: list[Baseline] = []
    for entry in fields.children("baselines"):
        name = entry.text("name")
        if name not in NAMES or any(name == other.name for other in found):
            raise ModelFileError(
                f"{entry.place('name')} is {name[:80]!r}; it must be one of "
                f"{', '.join(NAMES)}, each once."
            )
        at = entry.positions("sensors", len(names))
        subset = frozenset(names[position] for position in at)
        if entry.has("classifier"):
            width = sum(map(width_of.__getitem__, subset))
            form = entry.child("classifier")
            classifier = read_classifier(form, width, n_classes, trusted)
        elif subset in classifiers:
            entry.take("classifier")
            classifier = classifiers[subset]
        else:
            raise ModelFileError(
                f"{entry.where} has no classifier, and no vertex of the tree knows its "
                f"sensors."
            )
        entry.end()
        found.append(Baseline(name, subset, classifier))
    return tuple(found)
