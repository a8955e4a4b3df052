"""Calibration as plain arrays: probabilities of classifiers and leaves, corrected.

As everywhere in `classifiers`, a row's answer does not depend on the rows beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sensortree.policy.classifiers import Scorer, probabilities, row_sums
from sensortree.types import Array

# What a probability of 0 is taken for before its logarithm, as in scikit-learn.
LEAST = 1e-12
# The least probability that a leaf's calibration tells from 0.
LEAST_IN_LEAF = 1e-6


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """Platt's sigmoids, one for each output: 1 / (1 + exp(a t + b))."""

    slope: Array  # a, (n_outputs,)
    offset: Array  # b, (n_outputs,)

    def proba(self, outputs: Array, are_scores: bool) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        scores = -(self.slope * outputs + self.offset)
        small = np.exp(-np.abs(scores))
        return _together(np.where(scores >= 0, 1.0, small) / (1.0 + small))


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Rising steps joined by lines, for each output; beyond their ends they are level."""

    at: tuple[Array, ...]  # of each output some of its values, rising, (n_points,)
    proba_at: tuple[Array, ...]  # and the probabilities there

    def proba(self, outputs: Array, are_scores: bool) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        each = [
            np.interp(output, at, likely)
            for output, at, likely in zip(
                outputs.T, self.at, self.proba_at, strict=True
            )
        ]
        return _together(np.ascontiguousarray(np.transpose(each)))


@dataclass(frozen=True, eq=False)
class Temperature:
    """All logits times one number, the inverse of the temperature."""

    inverse: float

    def proba(self, outputs: Array, are_scores: bool) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        if outputs.shape[1] == 1:
            first = -outputs if are_scores else 1 - outputs
            outputs = np.concatenate([first, outputs], axis=1)
        logits = outputs if are_scores else np.log(outputs + LEAST)
        return probabilities(np.ascontiguousarray(self.inverse * logits))


# Whatever turns outputs of a scorer into probabilities of the classes.
Calibration = Sigmoid | Isotonic | Temperature


@dataclass(frozen=True, eq=False)
class LeafCalibration:
    """Corrected probabilities of a classifier, for the examples that end in one leaf.

    Probabilities p become p^slope e^bias, scaled to sum to 1. A slope below 1 means that
    the classifier is too confident about these examples.
    """

    slope: float  # the inverse of a temperature, above 0
    bias: Array  # (n_classes,)

    def __call__(self, posterior: Array) -> Array:
        """Corrected probabilities, (n_rows, n_classes)."""
        return probabilities(self.slope * log_likely(posterior) + self.bias)


def log_likely(posterior: Array) -> Array:
    """Logarithms of probabilities, each taken as `LEAST_IN_LEAF` at least."""
    return np.log(np.maximum(np.ascontiguousarray(posterior), LEAST_IN_LEAF))


def _together(each: Array) -> Array:
    """Probabilities of all classes from those of one, or of each for itself."""
    if each.shape[1] == 1:
        return np.concatenate([1.0 - each, each], axis=1)
    total = row_sums(each)[:, None]
    uniform = np.full_like(each, 1 / each.shape[1])
    return np.divide(each, total, out=uniform, where=total != 0)


@dataclass(frozen=True, eq=False)
class CalibratedScorer(Scorer):
    """A scorer whose outputs are calibrated."""

    scorer: Any
    # Whether the calibration was learned from scores, else from probabilities.
    reads_scores: bool
    calibration: Calibration

    def predict_proba(self, X: Array) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        if self.reads_scores:
            outputs = self.scorer.scores(X)
        else:
            outputs = self.scorer.predict_proba(X)
            outputs = outputs[:, 1:] if outputs.shape[1] == 2 else outputs
        return self.calibration.proba(outputs, self.reads_scores)


@dataclass(frozen=True, eq=False)
class MeanScorer(Scorer):
    """The mean of several scorers, one for each fold of a calibration."""

    scorers: tuple[Any, ...]

    def predict_proba(self, X: Array) -> Array:
        """Probability of every class, (n_rows, n_classes)."""
        total = sum(scorer.predict_proba(X) for scorer in self.scorers)
        return np.asarray(total / len(self.scorers))
