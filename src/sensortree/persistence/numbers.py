"""Leaves that answer with numbers, and what such answers cost, in a model file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sensortree.exceptions import ModelFileError
from sensortree.persistence.classifiers import read_boosted, write_boosted
from sensortree.persistence.fields import Fields, numbers
from sensortree.persistence.foreign import read_foreign, write_foreign
from sensortree.policy.classifiers import (
    Answering,
    BoostedScorer,
    Foreign,
    NumberScorer,
    Polynomial,
    Spread,
)
from sensortree.policy.flow import NumberAnswers
from sensortree.sensors.number_loss import NumberLoss, named_distance
from sensortree.tree.tree import SensorTree


def write_number_loss(loss: NumberLoss) -> dict[str, Any]:
    """That answers are numbers, and what they lose."""
    return {
        "task": "regression",
        "numbers": {
            "risk": loss.risk,
            "quantile": loss.quantile,
            "low": loss.low,
            "high": loss.high,
            "stake": loss.stake,
        },
    }


def read_number_loss(fields: Fields) -> NumberLoss:
    """What numbers lose; a function of the user's own is known by its name only."""
    task = fields.text("task")
    if task != "regression":
        raise ModelFileError(f"{fields.place('task')} must be 'regression', or absent.")
    own = fields.child("numbers")
    risk, quantile = own.text("risk"), None
    if own.has("quantile"):
        quantile = own.number("quantile", least=0.0)
        if not 0 < quantile < 1:
            raise ModelFileError(
                f"{own.place('quantile')} must be between 0 and 1, got {quantile:g}."
            )
    else:
        own.take("quantile")
    low, high = own.number("low"), own.number("high")
    if low > high:
        raise ModelFileError(f"{own.place('low')} is above {own.place('high')}.")
    stake = own.number("stake", least=0.0)
    own.end()
    return NumberLoss(
        risk=risk,
        quantile=quantile,
        low=low,
        high=high,
        stake=stake,
        distance=named_distance(risk, quantile),
    )


def write_number_scorer(
    scorer: NumberScorer, what: str, foreign: str | None
) -> dict[str, Any]:
    """A regression, its spread, and what makes an answer of its number."""
    answering, spread = scorer.answering, scorer.answering.spread
    return {
        "kind": "number",
        "regression": _write_regression(scorer.regression, what, foreign),
        "spread": {
            "center": numbers(spread.center),
            "scale": numbers(spread.scale),
            "coef": numbers(spread.coef),
            "intercept": float(spread.intercept),
            "least": float(spread.least),
            "most": float(spread.most),
        },
        "shift": float(answering.shift),
        "low": float(answering.low),
        "high": float(answering.high),
    }


def read_number_scorer(
    fields: Fields, width: int, trusted: Sequence[str] | None
) -> NumberScorer:
    """A regression of readings of a width, with its spread."""
    if fields.text("kind") != "number":
        raise ModelFileError(
            f"{fields.place('kind')} must be 'number' where answers are numbers."
        )
    regression = _read_regression(fields.child("regression"), width, trusted)
    own = fields.child("spread")
    n_seen = own.length("center")
    if n_seen not in (1, width + 1):
        raise ModelFileError(
            f"{own.place('center')} has {n_seen} numbers, expected 1 or {width + 1}."
        )
    spread = Spread(
        own.numbers("center", (n_seen,)),
        own.scales("scale", (n_seen,)),
        own.numbers("coef", (2 * n_seen,)),
        own.number("intercept"),
        own.number("least", least=0.0),
        own.number("most", least=0.0),
    )
    own.end()
    answering = Answering(
        spread, fields.number("shift"), fields.number("low"), fields.number("high")
    )
    fields.end()
    return NumberScorer(regression, answering)


def _write_regression(
    regression: Any, what: str, foreign: str | None
) -> dict[str, Any]:
    if type(regression) is Polynomial:
        return {
            "kind": "ridge_regression",
            "degree": int(regression.degree),
            "center": numbers(regression.center),
            "scale": numbers(regression.scale),
            "coef": numbers(regression.coef[:, 0]),
            "intercept": float(regression.intercept[0]),
        }
    if type(regression) is BoostedScorer:
        return {"kind": "boosted_regression", **write_boosted(regression)}
    return write_foreign(regression.regressor, what, foreign)


def _read_regression(
    fields: Fields, width: int, trusted: Sequence[str] | None
) -> Polynomial | BoostedScorer | Foreign:
    kind = fields.text("kind")
    made: Polynomial | BoostedScorer | Foreign
    if kind == "ridge_regression":
        degree = fields.integer("degree", 1, 3)
        n_terms = width if degree == 1 else width + width * (width + 1) // 2
        center, scale = (
            fields.numbers("center", (width,)),
            fields.scales("scale", (width,)),
        )
        coef = fields.numbers("coef", (n_terms,))[:, None]
        intercept = np.array([fields.number("intercept")])
        made = Polynomial(center, scale, degree, coef, intercept)
    elif kind == "boosted_regression":
        made = read_boosted(fields, width, 2)  # two classes have one output, too
    elif kind == "skops":
        regressor = read_foreign(fields, trusted)
        if not hasattr(regressor, "predict"):
            raise ModelFileError(f"{fields.where} is not a regressor.")
        made = Foreign(regressor)
    else:
        raise ModelFileError(
            f"{fields.place('kind')} is {kind[:80]!r}, which is no kind of regression; the "
            f"kinds are ridge_regression, boosted_regression and skops."
        )
    fields.end()
    return made


def write_number_answers(answers: NumberAnswers) -> dict[str, Any]:
    """Numbers of the training examples; of leaves without any, 0."""
    return {name: numbers(values) for name, values in vars(answers).items()}


def read_number_answers(fields: Fields, tree: SensorTree) -> NumberAnswers:
    """Numbers that fit the tree."""
    leaves, nodes = (tree.n_leaves,), (tree.n_nodes, 2)
    answers = NumberAnswers(
        fields.numbers("mean", leaves),
        fields.numbers("deviation", leaves, least=0.0),
        fields.numbers("error", leaves, least=0.0),
        fields.numbers("moved", nodes, least=0.0),
        fields.numbers("would_move", nodes, least=0.0),
    )
    fields.end()
    return answers
