"""What of a model file the JavaScript runtime can run; the rest is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sensortree.exceptions import ModelFileError

# Sections of a model file that the runtime reads, or that change no answer.
SECTIONS = frozenset(
    {
        *("library_version", "problem", "reader", "tree", "decisions", "classifiers"),
        *("own_classifiers", "flow", "evidence", "about", "baselines"),
        *("detours", "reading", "outages", "comparison", "curve", "calibration"),
    }
)
CLASSIFIERS = frozenset({"constant", "logistic", "boosted", "calibrated", "mean"})
TRANSFORMERS = frozenset(
    {
        *("passthrough", "imputer", "standardiser", "range", "one_hot", "ordinal"),
        *("columns", "pipeline", "typed", "levels"),
    }
)


def check_runnable(document: dict[str, Any]) -> None:
    """Refuse a document that holds what only Python can run."""
    for section in document:
        if section not in SECTIONS:
            raise ModelFileError(
                f"the model has a section {section!r}, which a page cannot follow; ask it "
                f"with model.policy_.session() in Python."
            )
    if document["problem"].get("task") is not None:
        raise only_python("the model answers with numbers")
    for what, part, kinds in _parts(document):
        if part["kind"] not in kinds:
            raise only_python(f"{what} is of the kind {part['kind']!r}")


def only_python(what: str) -> ModelFileError:
    """The error of a part that JavaScript cannot run; `what` names it."""
    return ModelFileError(
        f"{what}, which only Python can run, so there can be no page of it; fit the model "
        f"with classifiers and transformers that a model file holds as plain numbers."
    )


def _parts(
    document: dict[str, Any],
) -> Iterator[tuple[str, dict[str, Any], frozenset[str]]]:
    """Every classifier and transformer, what it is, and the kinds that it may be of."""
    names = [sensor["name"] for sensor in document["problem"]["sensors"]]
    for entry in document["classifiers"]:
        known = ", ".join(repr(names[at]) for at in entry["sensors"]) or "nothing"
        what = f"the classifier of the leaf that knows {known}"
        yield what, entry["classifier"], CLASSIFIERS
    for entry in document["own_classifiers"]:
        what = f"the classifier of place {entry['place']}"
        yield what, entry["classifier"], CLASSIFIERS
    for name, part in document["reader"]["transformers"].items():
        yield from _nested(f"the transformer of sensor {name!r}", part)
    for features in document["decisions"]["features"]:
        for part in features["parts"]:
            if isinstance(part, dict):
                yield from _nested("the transformer given as decision_features", part)


def _nested(
    what: str, part: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any], frozenset[str]]]:
    """A transformer and those that it is made of."""
    yield what, part, TRANSFORMERS
    inner = [entry["transformer"] for entry in part.get("parts", ())]
    for each in (*inner, *part.get("steps", ())):
        yield from _nested(what, each)
