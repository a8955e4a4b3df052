"""How estimators of others take sample weights."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from sensortree.exceptions import ParameterError
from sensortree.types import Array


def weight_parameters(classifier: Any, sample_weight: Array | None) -> dict[str, Any]:
    """Say how a classifier, or the steps of a pipeline, take sample weights."""
    if sample_weight is None:
        return {}
    if isinstance(classifier, Pipeline):
        takers = [
            name
            for name, step in classifier.steps
            if step != "passthrough" and has_fit_parameter(step, "sample_weight")
        ]
        if classifier.steps[-1][0] in takers:
            return {f"{name}__sample_weight": sample_weight for name in takers}
    elif has_fit_parameter(classifier, "sample_weight"):
        return {"sample_weight": sample_weight}
    raise ParameterError(
        f"{classifier!r} cannot be fitted with sample weights; use a classifier that can, "
        f"or fit without weights."
    )
