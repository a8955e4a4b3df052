"""What becomes of examples if a sensor is not available, for the page of a report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sensortree.display.figures import share
from sensortree.display.markup import paragraph, table

if TYPE_CHECKING:
    from sensortree.display.report_page import ReportPage

LINES = 20  # sensors at most
LEARNED = "go another way, which was learned for them"
LEFT = "take the best way that is left, or stop"


def outages(page: ReportPage) -> Iterable[str]:
    """A line for each sensor that the tree buys, the one that is missed most first."""
    weight = page.report.cost_weight
    found = sorted(page.outages.outages.items(), key=lambda one: -one[1].lost)
    head = ["without", "those held up", "are", "each example loses"]
    lines = [
        [
            sensor,
            LEARNED if outage.taken else LEFT,
            share(outage.share),
            page.money(outage.lost / weight) if weight else f"{outage.lost:.3g}",
        ]
        for sensor, outage in found[:LINES]
    ]
    counted = "price and wrong answers together" if weight else "loss"
    yield table(
        f"Examples whose way needs the sensor, and what all examples then have more on "
        f"average, {counted}; measured in training, on rows held out.",
        head,
        lines,
        left=2,
    )
    if len(found) > LINES:
        yield paragraph(f"{len(found) - LINES} sensors are missed less than these.")
