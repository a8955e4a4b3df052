"""Which tree: given, exhaustive, or learned from data."""

from sensortree.structure.algorithm1 import (
    Growth,
    Search,
    forward_chain,
    forward_steps,
    greedy_subsets,
)
from sensortree.structure.built import (
    cascade_tree,
    chain_tree,
    check_tree_fits,
    exhaustive_leaves,
    exhaustive_tree,
)
from sensortree.structure.clustering import cluster_subsets
from sensortree.structure.exits import with_exits
from sensortree.structure.pruning import prune
from sensortree.structure.screening import LeastSquaresScreen

__all__ = [
    "Growth",
    "LeastSquaresScreen",
    "Search",
    "cascade_tree",
    "chain_tree",
    "check_tree_fits",
    "cluster_subsets",
    "exhaustive_leaves",
    "exhaustive_tree",
    "forward_chain",
    "forward_steps",
    "greedy_subsets",
    "prune",
    "with_exits",
]
