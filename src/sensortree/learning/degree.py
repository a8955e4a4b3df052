"""Whether products of readings tell more than readings, where a tree would need it.

Leaves of a tree know few sensors, and only some rows reach each: what suits all rows with
many sensors need not suit them. So a small tree is grown by the screen, and at each of its
leaves the rows that stop there say what they lose with products of readings, and without:
by classifiers of both kinds where rows are few, else by the screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sensortree.learning.settings import Settings, named_root
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.fitting import engine_of
from sensortree.leaves.rows import TrainingRows
from sensortree.progress import TextProgress
from sensortree.structure.algorithm1 import Subset
from sensortree.structure.branching import Vertex, grow_branches
from sensortree.structure.looking import Here
from sensortree.structure.screening import PRODUCTS
from sensortree.structure.search import open_search
from sensortree.structure.shop import Shop
from sensortree.types import Array, Rows

# Rows that the tree is grown on, and leaves that it has, at most.
ROWS, LEAVES = 2_000, 8
# Share of the largest loss that a purchase of mean price costs at most, so that some are
# made whatever the cost weight.
LITTLE = 0.01
# Standard errors by which products must lower the loss, by classifiers or by the screen.
CLEARLY, VERY_CLEARLY = 1.0, 2.0


def lead_of_products(
    rows: TrainingRows, settings: Settings
) -> tuple[float, float] | None:
    """Standard errors by which products lower the loss; None if they are too many.

    And by how many they must: a screen's word counts less than that of classifiers.

    Parameters
    ----------
    rows : TrainingRows
    settings : Settings
    """
    if sum(block.shape[1] for block in rows.blocks) > PRODUCTS:
        return None
    n_rows = min(len(rows.y), ROWS)
    some = rows.take(np.linspace(0, len(rows.y) - 1, n_rows).astype(np.intp))
    quadratic = settings.leaf(rows.task.kinds[1])
    leaves = LeafClassifiers(some, quadratic, settings.n_jobs)
    search = open_search(leaves, LEAVES, None, settings.max_cost, TextProgress(False))
    market = search.subsets.market
    price = float(np.mean(market.discounted()))
    weight = settings.cost_weight
    if price > 0:
        weight = min(weight, LITTLE * some.loss.stake / price)
    shop = search.shop(weight)
    named = named_root(settings, market)
    start = search.subsets.numbered(market.free() if named is None else named)
    root, _ = grow_branches(shop, LEAVES, start)
    few = len(rows.y) <= ROWS and bool((rows.fold >= 0).any())
    named_subset = search.subsets.named
    found = (
        judged_leads(shop, root, some, named_subset, settings)
        if few
        else leads(shop, root)
    )
    lead = shop.weight * found
    error = float(np.linalg.norm(lead - lead.mean()))
    asked = CLEARLY if few else VERY_CLEARLY
    return (float(lead.sum()) / error if error else 0.0), asked


def leads(shop: Shop, root: Vertex) -> Array:
    """Brier score that products spare each row where it stops, (n_rows,), by the screen."""
    found = np.zeros(len(shop.weight))
    for subset, rows in stops(root):
        look = Here(shop, rows).look(subset)
        found[rows] = look.losses_without_products() - look.losses
    return found


def judged_leads(
    shop: Shop,
    root: Vertex,
    rows: TrainingRows,
    named: Callable[[Subset], frozenset[str]],
    settings: Settings,
) -> Array:
    """Loss that products spare each row where it stops, (n_rows,), by leaves of both kinds.

    Least squares does not see a class that lies between two others; logistic regression
    does, and where rows are few it can be asked.
    """
    found = np.zeros(len(shop.weight))
    first, _ = rows.distinct()
    weight = rows.weight if rows.weighted else None
    known = rows.y, rows.n_outputs, weight, rows.fold
    kinds = [settings.leaf(kind) for kind in rows.task.kinds[:2]]
    engines = [engine_of(kind, *known) for kind in kinds]
    for subset, stopping in stops(root):
        at = first[stopping]
        X = rows.features(named(subset))
        said = [engine.judge(X)[0][at] for engine in engines if engine is not None]
        linear, quadratic = (
            rows.task.compared(each, rows.y[at], rows.loss) for each in said
        )
        found[stopping] = linear - quadratic
    return found


def stops(root: Vertex) -> Iterator[tuple[Subset, Rows]]:
    """What is known where rows stop, and who they are."""
    ahead = [root]
    while ahead:
        vertex = ahead.pop()
        ahead += vertex.children
        onward = [child.rows for child in vertex.children]
        rows = np.setdiff1d(vertex.rows, np.concatenate([np.empty(0, int), *onward]))
        if len(rows) and vertex.subset:
            yield vertex.subset, rows
