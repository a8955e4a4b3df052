"""Pictures of what was computed.

A display holds plain data; only its `plot` needs matplotlib. ``to_svg``, ``to_html`` and
``to_text`` of a tree need nothing.
"""

from sensortree.reports.sensor_use import SensorUseDisplay
from sensortree.reports.tradeoff_display import LogDisplay, TradeoffDisplay
from sensortree.reports.tree_display import PathDisplay, TreeDisplay

__all__ = [
    "LogDisplay",
    "PathDisplay",
    "SensorUseDisplay",
    "TradeoffDisplay",
    "TreeDisplay",
]
