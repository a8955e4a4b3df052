"""What the page asks for each column of a model file, and what of the file it can run."""

from __future__ import annotations

from typing import Any

from sensortree.exceptions import ModelFileError
from sensortree.sensors.seen import Seen


def questions(document: dict[str, Any]) -> list[dict[str, Any]]:
    """For each column of a model file its choices, and what training saw of it.

    `choices` is None for a number, and `open` says whether other values are taken too. What
    is missing is no choice; the page asks the runtime whether it may be missing. `low` and
    `high` are the numbers of training, `least` and `most` how far from them another may be
    before it is doubted, `always` says that it was never missing; where that is known.
    `date` is "date", "time" or "datetime-local" where the number is of a day.
    """
    problem, transformers = document["problem"], document["reader"]["transformers"]
    found = [_number() for _ in problem["columns"]]
    seen = document["reader"].get("seen") or [None] * len(problem["sensors"])
    for sensor, known in zip(problem["sensors"], seen, strict=True):
        part, columns = transformers.get(sensor["name"]), sensor["columns"]
        own = _asked(part, len(columns))
        saw = known or [{}] * len(columns)
        for column, asked, training in zip(columns, own, saw, strict=True):
            found[column] = {**asked, **_usual(training, asked["choices"] is None)}
    names = {name: at for at, name in enumerate(problem["columns"])}
    for entry in document.get("reading") or ():
        if entry["date"] and entry["column"] in names:
            question = found[names[entry["column"]]]
            question["date"] = _kind_of_date(entry["date"], question)
    return found


def _kind_of_date(form: str, question: dict[str, Any]) -> str:
    """The input of a browser for dates: with the time of day, if training had such."""
    if form == "HH:MM":
        return "time"
    ends = [question[end] for end in ("low", "high") if end in question]
    return "date" if all(float(end).is_integer() for end in ends) else "datetime-local"


def _usual(training: dict[str, Any], is_number: bool) -> dict[str, Any]:
    """What training saw of a column, where that was written down."""
    if not training:
        return {}
    usual: dict[str, Any] = {"always": training["missing"] == 0}
    if is_number and "low" in training:
        low, high = training["low"], training["high"]
        least, most = Seen(low=low, high=high).reach
        usual |= {"low": low, "high": high, "least": least, "most": most}
    return usual


def _number() -> dict[str, Any]:
    return {"choices": None, "open": False}


def _asked(part: dict[str, Any] | None, n_columns: int) -> list[dict[str, Any]]:
    """What is asked for each column that a transformer is given."""
    kind = None if part is None else part["kind"]
    if part is None or kind not in ("one_hot", "ordinal", "pipeline", "columns"):
        return [_number() for _ in range(n_columns)]
    if kind == "pipeline":
        return _first_choices(part["steps"], n_columns)
    if kind == "columns":
        found = [_number() for _ in range(n_columns)]
        for entry in part["parts"]:
            own = _asked(entry["transformer"], len(entry["columns"]))
            for at, asked in zip(entry["columns"], own, strict=True):
                found[at] = asked
        return found
    others = (
        part["ignore_unknown"]
        if kind == "one_hot"
        else part["unknown_value"] is not None
    )
    return [
        {"choices": _there(values), "open": bool(others)}
        for values in part["categories"]
    ]


def _first_choices(steps: list[dict[str, Any]], n_columns: int) -> list[dict[str, Any]]:
    """What a pipeline asks: its first step that has choices, behind those that fill in."""
    for step in steps:
        if step["kind"] not in ("passthrough", "typed", "imputer"):
            return _asked(step, n_columns)
        if step["kind"] == "imputer" and (
            len(step["kept"]) < n_columns or step["indicators"]
        ):
            break
    return [_number() for _ in range(n_columns)]


def _there(values: list[Any]) -> list[Any]:
    """Categories that are values, not their absence."""
    return [v for v in values if v is not None and not isinstance(v, dict)]


# Sections of a model file that the runtime reads, or that change no answer.
SECTIONS = frozenset(
    {
        *("library_version", "problem", "reader", "tree", "decisions", "classifiers"),
        *("own_classifiers", "flow", "evidence", "about", "baselines"),
        *("detours", "reading", "outages", "comparison", "curve", "calibration"),
    }
)


def check_runnable(document: dict[str, Any]) -> None:
    """Refuse a document that holds what only Python can run.

    JavaScript runs every kind of classifier and transformer that a file holds as numbers.
    """
    for section in document:
        if section not in SECTIONS:
            raise ModelFileError(
                f"the model has a section {section!r}, which a page cannot follow; ask it "
                f"with model.policy_.session() in Python."
            )
    if document["problem"].get("task") is not None:
        raise only_python("the model answers with numbers")


def only_python(what: str) -> ModelFileError:
    """The error of a part that JavaScript cannot run; `what` names it."""
    return ModelFileError(
        f"{what}, which only Python can run, so there can be no page of it; fit the model "
        f"with classifiers and transformers that a model file holds as plain numbers."
    )
