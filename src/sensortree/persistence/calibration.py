"""Calibrations of the leaves of a model file."""

from __future__ import annotations

from typing import Any

from sensortree.exceptions import ModelFileError
from sensortree.persistence.fields import Fields, numbers
from sensortree.policy.calibration import LeafCalibration


def write_calibration(
    calibration: tuple[LeafCalibration, ...] | None,
) -> dict[str, Any]:
    """A slope and biases for each leaf; nothing where leaves are left as they are."""
    if calibration is None:
        return {}
    each = [
        {"slope": float(leaf.slope), "bias": numbers(leaf.bias)} for leaf in calibration
    ]
    return {"calibration": each}


def read_calibration(
    fields: Fields, n_leaves: int, n_classes: int
) -> tuple[LeafCalibration, ...] | None:
    """A calibration for each leaf; None where files have none."""
    if not fields.has("calibration"):
        fields.optional("calibration")
        return None
    read = []
    for entry in fields.children("calibration", n_leaves):
        slope = entry.number("slope", least=0.0)
        if slope == 0:
            raise ModelFileError(f"{entry.place('slope')} must be above 0.")
        read.append(LeafCalibration(slope, entry.numbers("bias", (n_classes,))))
        entry.end()
    return tuple(read)
