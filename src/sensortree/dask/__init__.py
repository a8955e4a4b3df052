"""Beyond one machine: rows answered in waves, each reading bought once.

::

    rows ─► blocks ─► waves: order ─► ask ─► settle ─► walk on ─► answers
                              └───────── ledger ─────────┘

`acquire` runs on threads or on the workers of a Dask client; names are imported when they
are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sensortree.dask.bill import Answers, Bill, SensorBill, answers, bill_of
    from sensortree.dask.classifier import DaskSensorTreeClassifier
    from sensortree.dask.ledger_postgres import PostgresLedger
    from sensortree.dask.ledger_sqlite import SqliteLedger
    from sensortree.dask.lookups import Ask, Lookup
    from sensortree.dask.waves import acquire

_HOME = {
    "Answers": "bill",
    "Ask": "lookups",
    "Bill": "bill",
    "DaskSensorTreeClassifier": "classifier",
    "Lookup": "lookups",
    "PostgresLedger": "ledger_postgres",
    "SensorBill": "bill",
    "SqliteLedger": "ledger_sqlite",
    "acquire": "waves",
    "answers": "bill",
    "bill_of": "bill",
}

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
    if name not in _HOME:
        raise AttributeError(f"module 'sensortree.dask' has no attribute {name!r}")
    value = getattr(import_module(f"sensortree.dask.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
