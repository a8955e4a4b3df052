"""What outages cost, in a model file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sensortree.exceptions import ModelFileError
from sensortree.persistence.fields import Fields
from sensortree.policy.about import Outage, OutageReport
from sensortree.sensors.sensor_set import SensorSet


def write_outages(report: OutageReport, sensors: SensorSet) -> list[dict[str, Any]]:
    """What the outage of each sensor costs."""
    return [
        {"sensor": sensors.index(name), **asdict(outage)}
        for name, outage in report.outages.items()
    ]


def read_outages(fields: Fields, key: str, sensors: SensorSet) -> OutageReport:
    """What the outage of each sensor costs, each named once."""
    outages: dict[str, Outage] = {}
    for entry in fields.children(key):
        name = sensors.names[entry.integer("sensor", 0, len(sensors))]
        if name in outages:
            raise ModelFileError(f"{entry.where} is the second outage of {name!r}.")
        tried = entry.has("detour")
        outages[name] = Outage(
            entry.number("share", least=0.0),
            entry.number("usual"),
            entry.number("turning"),
            entry.number("detour") if tried else entry.take("detour"),
        )
        entry.end()
    return OutageReport(outages)
