"""`OutageReport`: what becomes of examples if a sensor cannot be had."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sensortree.sensors.market import ROUNDING


@dataclass(frozen=True)
class Outage:
    """What becomes of examples if one sensor cannot be had.

    Attributes
    ----------
    share : float
        Share of the training examples that are held up.
    usual : float
        Their mean risk from where they turn, if the sensor is there after all.
    turning : float
        The same if they take the best leaf that is left, or stop.
    detour : float or None
        The same on a detour, on rows that it was not learned from; None if none was
        tried.
    """

    share: float
    usual: float
    turning: float
    detour: float | None = None

    @property
    def taken(self) -> bool:
        """Whether the detour is taken."""
        return self.detour is not None and self.detour < self.turning - ROUNDING

    @property
    def lost(self) -> float:
        """Mean risk that all examples have more, held up or not."""
        without = self.turning
        if self.detour is not None and self.taken:
            without = self.detour
        return self.share * (without - self.usual)


@dataclass(frozen=True)
class OutageReport:
    """What the outage of each sensor costs, and which detours are taken.

    Attributes
    ----------
    outages : dict of sensor to Outage
        Of all sensors that the tree buys, in declared order.
    """

    outages: dict[str, Outage]

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain numbers, strings and dicts."""
        return {
            sensor: {**asdict(outage), "taken": outage.taken, "lost": outage.lost}
            for sensor, outage in self.outages.items()
        }

    def __str__(self) -> str:
        if not self.outages:
            return "nothing is bought, so no outage matters"
        width = max(len("without"), *map(len, self.outages))
        lines = [f"{'without':{width}}  held up   usual  turning  detour"]
        for sensor, outage in self.outages.items():
            tried = "-" if outage.detour is None else f"{outage.detour:.4f}"
            lines.append(
                f"{sensor:{width}}  {outage.share:7.1%}  {outage.usual:6.4f}  "
                f"{outage.turning:7.4f}  {tried:>6}{' taken' if outage.taken else ''}"
            )
        return "\n".join(lines)
