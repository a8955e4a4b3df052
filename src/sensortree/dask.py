"""Beyond one machine: many rows answered in waves, and trees learned out of core.

`acquire` and what goes with it buy readings for many rows, on threads or on the workers
of a Dask client; they need no Dask (`sensortree.waves`). `DaskSensorTreeClassifier` learns
from rows in a Dask cluster or in files (`sensortree.outofcore`); it is imported when it is
first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sensortree.waves.acquire import acquire
from sensortree.waves.bill import Answers, Bill, SensorBill, answers, bill_of
from sensortree.waves.databases import PostgresLedger, SqliteLedger
from sensortree.waves.oracles import Ask, Lookup

if TYPE_CHECKING:
    from sensortree.outofcore.classifier import DaskSensorTreeClassifier

__all__ = [
    "Answers",
    "Ask",
    "Bill",
    "DaskSensorTreeClassifier",
    "Lookup",
    "PostgresLedger",
    "SensorBill",
    "SqliteLedger",
    "acquire",
    "answers",
    "bill_of",
]


def __getattr__(name: str) -> Any:
    if name != "DaskSensorTreeClassifier":
        raise AttributeError(f"module 'sensortree.dask' has no attribute {name!r}")
    from sensortree.outofcore.classifier import DaskSensorTreeClassifier

    return DaskSensorTreeClassifier


def __dir__() -> list[str]:
    return __all__
