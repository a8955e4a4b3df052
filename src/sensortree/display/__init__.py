"""Pictures of what was computed.

A display holds plain data; only its `plot` needs matplotlib. ``to_svg`` and ``to_html``
of a tree need nothing.
"""

from sensortree.display.path import PathDisplay
from sensortree.display.sensor_use import SensorUseDisplay
from sensortree.display.tradeoff import TradeoffDisplay
from sensortree.display.tree import TreeDisplay

__all__ = ["PathDisplay", "SensorUseDisplay", "TradeoffDisplay", "TreeDisplay"]
