"""Pictures of what was computed: `TreeDisplay`, `PathDisplay`, `TradeoffDisplay`.

A display holds plain data; only its `plot` needs matplotlib.
"""

from sensortree.display.path import PathDisplay
from sensortree.display.tradeoff import TradeoffDisplay
from sensortree.display.tree import TreeDisplay

__all__ = ["PathDisplay", "TradeoffDisplay", "TreeDisplay"]
