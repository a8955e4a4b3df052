"""Pictures of what was computed: `TreeDisplay` and `TradeoffDisplay`.

A display holds plain data; only its `plot` needs matplotlib.
"""

from sensortree.display.tradeoff import TradeoffDisplay
from sensortree.display.tree import TreeDisplay

__all__ = ["TradeoffDisplay", "TreeDisplay"]
