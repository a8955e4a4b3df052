"""`Settings`: what a fit is asked for, whatever the method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sensortree.constants import COST_WEIGHT_OF_ERRORS, COST_WEIGHT_OF_MONEY
from sensortree.exceptions import ParameterError, SensorError
from sensortree.leaves.fitting import resolve_classifier, resolve_regressor
from sensortree.leaves.task import CLASSES, NUMBERS, Task
from sensortree.sensors.loss import (
    Loss,
    loss_of_numbers,
    loss_of_risk,
    quantile_of,
    resolve_class_weight,
    resolve_loss,
)
from sensortree.sensors.market import Market
from sensortree.structure.search import SEARCHES
from sensortree.types import Array, Rows

# Structures that are learned from data.
LEARNED = ("auto", *SEARCHES)


@dataclass(frozen=True, eq=False)
class Settings:
    """Parameters that methods have in common; a method may fix some of them.

    `SensorTreeClassifier` and `Program` say what they mean.
    """

    sensors: Any = None
    costs: Any = None
    risk: Any = "error"
    loss: Any = None
    class_weight: Any = None
    refer_cost: Any = None
    classifier: Any = "logistic2"
    calibration: str | None = None
    cv: Any = None
    random_state: Any = 0
    cost_weight: float = 0.0
    max_cost: float | None = None
    structure: Any = "cascade"
    n_leaves: int | str = "auto"
    n_exact: int | str = 3
    max_time: float | None = None
    root_sensors: Any = "auto"
    errors: str = "observed"
    decision_features: Any = "raw"
    calibrate_leaves: bool = False
    outages: bool | str = False
    n_jobs: int | None = None
    verbose: bool = False
    unit: str = ""

    # What learning must know of the target.
    task: ClassVar[Task] = CLASSES

    def leaf(self, kind: Any) -> Any:
        """What leaves of a kind are fitted with: its name, or an estimator."""
        return resolve_classifier(kind)

    @property
    def kept_leaf(self) -> Any:
        """What the leaves that are kept are fitted with, calibrated or not."""
        return resolve_classifier(self.classifier, self.calibration)

    def priced_for(self, loss: Loss) -> Self:
        """The same, once what is at stake is known, on which a price may depend."""
        return self

    def losses(self, classes: NDArray[Any], y: Rows, weight: Array) -> Loss:
        """What predictions cost; y holds positions in `classes`."""
        if self.loss is not None and not isinstance(self.loss, Real):
            return resolve_loss(self.loss, classes)
        by_class = resolve_class_weight(self.class_weight, classes, y, weight)
        if self.loss is None:
            return loss_of_risk(self.risk, by_class, classes)
        priced = resolve_loss(float(self.loss), classes)
        if by_class is None or priced.matrix is None:
            return priced
        return Loss(by_class[:, None] * priced.matrix)

    @property
    def learns_structure(self) -> bool:
        """Whether the tree is learned rather than built or given."""
        return isinstance(self.structure, str) and self.structure in LEARNED

    @property
    def decides_by_posterior(self) -> bool:
        """Whether decisions look at the posterior of a classifier at their node."""
        return isinstance(self.decision_features, str) and any(
            part.needs_posterior for part in self.task.parts[self.decision_features]
        )


@dataclass(frozen=True, eq=False)
class NumberSettings(Settings):
    """What a fit is asked for where numbers are learned.

    `quantile` is answered with ``risk="pinball"``; cost_weight="auto" is settled by
    `priced_for`.
    """

    risk: Any = "squared"
    quantile: float = 0.5

    task: ClassVar[Task] = NUMBERS

    def leaf(self, kind: Any) -> Any:
        """What leaves of a kind are fitted with: its name, or an estimator."""
        return resolve_regressor(kind, quantile_of(self.risk, self.quantile))

    @property
    def kept_leaf(self) -> Any:
        """What the leaves that are kept are fitted with."""
        return self.leaf(self.classifier)

    def priced_for(self, loss: Loss) -> Self:
        """The same with "auto": a hundredth of what one answer for all would lose.

        That is the variance, of squared errors. Where there is nothing to lose, nothing is
        worth a price.
        """
        if not isinstance(self.cost_weight, str):
            return self
        return replace(self, cost_weight=COST_WEIGHT_OF_ERRORS * (loss.stake or 1.0))

    def losses(self, classes: NDArray[Any], y: Rows, weight: Array) -> Loss:
        """What answers cost, of numbers like these."""
        return loss_of_numbers(self.risk, self.quantile, y.astype(np.float64), weight)


def cost_weight_of(given: Any, *, in_money: bool) -> Any:
    """The cost weight that was given; for "auto" 1 where mistakes are priced, else .01."""
    if isinstance(given, str) and given == "auto":
        return COST_WEIGHT_OF_MONEY if in_money else COST_WEIGHT_OF_ERRORS
    return given


def named_root(settings: Settings, market: Market) -> frozenset[str] | None:
    """Sensors that the user wants known at the root; None for "auto"."""
    if isinstance(settings.root_sensors, str):
        return None
    sensors = market.sensors
    for name in settings.root_sensors:
        if name not in sensors.names:
            raise SensorError(
                f"root_sensors names {name!r}, which is not a sensor; the sensors are "
                f"{', '.join(map(repr, sensors.names))}."
            )
    root = frozenset(settings.root_sensors)
    if not sensors.admissible(root):
        raise SensorError(
            f"root_sensors {sorted(root)} may not be known together, by the sensors' "
            f"'after' and 'one_of'; name what they need, and no two alternatives."
        )
    if not market.allows(root):
        raise ParameterError(
            f"root_sensors cost {float(np.min(market.cost(root))):g}, above "
            f"max_cost={settings.max_cost:g}; name fewer, or raise max_cost."
        )
    return root
