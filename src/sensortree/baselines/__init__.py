"""Methods that the sensor tree is compared with, one file each.

::

    alternating  decisions node by node, from several random starts (AM)
    myopic       buy on while the answer is not sure, whatever it costs
    static       the same sensors for every example, chosen greedily
    astc         a tree of regressions grown greedily, a budget at every node
    cstc         a tree of regressions learned jointly, with soft routing
    linear_tree  what ASTC and CSTC learn from, and the policy they become
"""

from sensortree.baselines.alternating import AlternatingTreeClassifier
from sensortree.baselines.astc import ASTCClassifier
from sensortree.baselines.cstc import CSTCClassifier
from sensortree.baselines.myopic import MyopicClassifier
from sensortree.baselines.static import StaticSubsetClassifier, StaticSubsetRegressor

__all__ = [
    "ASTCClassifier",
    "AlternatingTreeClassifier",
    "CSTCClassifier",
    "MyopicClassifier",
    "StaticSubsetClassifier",
    "StaticSubsetRegressor",
]
