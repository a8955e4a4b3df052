"""Pictures of what was computed.

A display holds plain data; only its `plot` needs matplotlib. ``to_svg``, ``to_html`` and
``to_text`` of a tree need nothing.
"""

from sensortree.display.judged import LogDisplay
from sensortree.display.path import PathDisplay
from sensortree.display.sensor_use import SensorUseDisplay
from sensortree.display.tradeoff import TradeoffDisplay
from sensortree.display.tree import TreeDisplay

__all__ = [
    "LogDisplay",
    "PathDisplay",
    "SensorUseDisplay",
    "TradeoffDisplay",
    "TreeDisplay",
]
