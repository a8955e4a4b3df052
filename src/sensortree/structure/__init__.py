"""Which tree: given, exhaustive, or learned from data."""

from sensortree.structure.clustering import cluster_subsets
from sensortree.structure.fixed import (
    cascade_tree,
    chain_tree,
    check_tree_fits,
    exhaustive_leaves,
    exhaustive_tree,
)
from sensortree.structure.growth import Evidence, Vertex, grow_tree
from sensortree.structure.pruning import prune
from sensortree.structure.screening import LeastSquaresScreen
from sensortree.structure.subsets import (
    Growth,
    Search,
    forward_chain,
    greedy_subsets,
)

__all__ = [
    "Evidence",
    "Growth",
    "LeastSquaresScreen",
    "Search",
    "Vertex",
    "cascade_tree",
    "chain_tree",
    "check_tree_fits",
    "cluster_subsets",
    "exhaustive_leaves",
    "exhaustive_tree",
    "forward_chain",
    "greedy_subsets",
    "grow_tree",
    "prune",
]
