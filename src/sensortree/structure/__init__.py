"""Where trees come from."""

from sensortree.structure.fixed import (
    cascade_tree,
    check_tree_fits,
    exhaustive_leaves,
    exhaustive_tree,
)

__all__ = ["cascade_tree", "check_tree_fits", "exhaustive_leaves", "exhaustive_tree"]
