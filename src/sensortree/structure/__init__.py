"""Which tree: given, exhaustive, or learned from data.

::

    trees       trees that are built or given; pruned, without some sensors, with exits
    search      the searches by name, their rows, and their report
    algorithm1  greedy subsets and chains
    branching   growth that looks one purchase ahead;  planning  up to three, on cells
    cells       readings as a few values, and what stopping in a cell loses
    losses      what any subset of sensors would lose and cost; screens by least squares
    masking     the screen of boosted leaves: one booster for all subsets
"""

from sensortree.structure.algorithm1 import greedy_subsets
from sensortree.structure.trees import cluster_subsets

__all__ = ["cluster_subsets", "greedy_subsets"]
