"""What methods that leave less to choose fix: settings, and a cascade in a given order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sensortree.exceptions import ParameterError
from sensortree.sensors.market import Market
from sensortree.structure import cascade_tree
from sensortree.tree.paths import check_tree_is_allowed
from sensortree.tree.tree import SensorTree


class FixedSettings:
    """Settings of `SensorTreeClassifier` that are no parameters of a simpler method."""

    structure: Any = "cascade"
    n_leaves: int = 16
    n_exact: int | str = 3
    max_time: float | None = None
    root_sensors: Any = "auto"
    calibration: str | None = None
    errors: str = "observed"
    decision_features: Any = "raw"
    improve: int = 0
    n_jobs: int | None = None
    verbose: bool = False


class OrderedCascade(FixedSettings):
    """A chain that buys the cheapest sensor first, or in the order that the user gives."""

    order: Sequence[str] | None

    def _build_structure(self, market: Market) -> SensorTree:
        if self.order is None:
            # A mixin: the estimator beside it has the method.
            tree: SensorTree = super()._build_structure(market)  # type: ignore[misc]
            return tree
        _check_order(self.order, market.sensors.names)
        named = self._named_root(market)  # type: ignore[attr-defined] # the estimator's
        tree = cascade_tree(list(self.order), named)
        check_tree_is_allowed(tree, market)
        return tree


def _check_order(order: Sequence[str], names: Sequence[str]) -> None:
    """Raise `ParameterError` unless the order lists each sensor once."""
    for name in order:
        if name not in names:
            raise ParameterError(
                f"order names {name!r}, which is not a sensor; the sensors are "
                f"{', '.join(map(repr, names))}."
            )
    forgotten = [name for name in names if name not in order]
    if forgotten:
        raise ParameterError(
            f"order forgets sensor {forgotten[0]!r}; list every sensor, the first to buy "
            f"first."
        )
