"""Several ways out of a vertex: a chain of two-way nodes, or a node with many children.

    python -m benchmarks.shapes                    all problems
    python -m benchmarks.shapes context --cost-weight 0.03

A tree that branches is grown once. On its leaves and features, decisions are learned in
several shapes by one rule, "soft": from the leaves up, then alternating, the ways out of a
vertex share an example by the softmax of linear scores so that its mean risk is least; the
largest score decides. The library's own rules stand beside it, for two-way nodes.
Differences, with their standard errors over rows, are to the nodes with many children.
"Line" is the context problem with a sensor that tells the number of the state: states then
lie on a line, where no threshold separates one between others from the rest.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from experiments.data import Dataset, by_column, load
from sensortree import Leaf, Node, SensorTree, SensorTreeClassifier
from sensortree.estimators.validation import read_rows
from sensortree.learning.choose import choose_recipe
from sensortree.learning.held_out import held_out_parts
from sensortree.learning.joint import Jointly, automatic_ridge
from sensortree.learning.pose import Posed, judged_subsets, leaf_risks, pose
from sensortree.learning.prepare import prepare
from sensortree.learning.settings import Settings
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.policy.classifiers import posterior
from sensortree.program.refinement import best_cut, learn_upwards
from sensortree.program.risk import RoutingProblem
from sensortree.progress import TextProgress
from sensortree.threads import one_thread
from sensortree.tree.forks import fork_at, leaves_behind
from sensortree.types import Array, Rows

COST_WEIGHTS = {"context": 0.012, "line": 0.012, "digits": 0.01}
# How often each decision is learned at most.
MAX_SWEEPS = 10
# Ridge penalty as a share of the library's: of 1, .1 and .01 the best on held-out rows of
# context at .012, whatever the shape.
RIDGE = 0.1
# Scores of the start are expected risks times this, over their mean spread.
SHARPNESS = 10.0

# Where each decision may lead: a node that decides next, or ~leaf; parents come first.
Ways = dict[int, tuple[int, ...]]
# Scores of the ways of each decision, (D_j, n_ways).
Coef = dict[int, Array]
# Learns from a problem, and from the same with the errors that were made.
Rule = Callable[[RoutingProblem, RoutingProblem, Ways], Coef]


# shapes -------------------------------------------------------------------------------


def two_ways(tree: SensorTree) -> Ways:
    """Each node decides between its two children."""
    pairs = zip(*(side.tolist() for side in tree.children), strict=True)
    return dict(enumerate(pairs))


def many_ways(tree: SensorTree) -> Ways:
    """Nodes that know the same and follow each other decide as one."""
    ways: Ways = {}
    inside: set[int] = set()
    for node in range(tree.n_nodes):
        if node not in inside:
            fork = fork_at(tree, node)
            inside.update(fork.nodes)
            ways[node] = tuple(way.end for way in fork.ways)
    return ways


def reshaped(tree: SensorTree, join: Callable[..., Leaf | Node]) -> SensorTree:
    """The same choices, the ways out of each joined anew, the first to leave first."""

    def build(end: int) -> Leaf | Node:
        if end < 0:
            return tree.leaves[~end]
        ways = sorted(fork_at(tree, end).ways, key=lambda way: len(way.signs))
        return join(tree.nodes[end].sensors, [build(way.end) for way in ways])

    return SensorTree(build(0 if tree.n_nodes else ~0))


def last_first(known: frozenset[str], ways: list[Leaf | Node]) -> Leaf | Node:
    """A chain that the last way leaves first."""
    onward = ways[0]
    for way in ways[1:]:
        onward = Node(known, onward, way)
    return onward


def in_halves(known: frozenset[str], ways: list[Leaf | Node]) -> Leaf | Node:
    """A choice between halves, and so on in each of them."""
    if len(ways) == 1:
        return ways[0]
    half = len(ways) // 2
    return Node(known, in_halves(known, ways[:half]), in_halves(known, ways[half:]))


# rules --------------------------------------------------------------------------------


def soft(problem: RoutingProblem, observed: RoutingProblem, ways: Ways) -> Coef:
    """Learn from the leaves up, from those whose best leaf is below; then alternate."""
    tree, ridge = problem.tree, RIDGE * automatic_ridge(problem)
    best = problem.leaf_risk.argmin(axis=1)
    came = {j: np.flatnonzero(np.isin(best, leaves_behind(tree, j))) for j in ways}
    coef: Coef = {}
    least = np.inf
    for _ in range(MAX_SWEEPS):
        new = swept(problem, ways, came, coef, ridge)
        leaf, came = followed(problem, ways, new)
        risk = float(reached(problem, leaf).mean())
        if risk >= least:
            break
        coef, least = new, risk
    return coef


def swept(
    problem: RoutingProblem, ways: Ways, came: dict[int, Rows], old: Coef, ridge: float
) -> Coef:
    """Learn each decision from the rows that came by, once those below are learned."""
    below = {~leaf: risk for leaf, risk in enumerate(problem.leaf_risk.T)}
    coef: Coef = {}
    for node in reversed(ways):
        risk = np.stack([below[end] for end in ways[node]], axis=1)
        phi, rows = problem.features[node], came[node]
        seen = phi[rows], risk[rows], problem.weight[rows]
        start = old[node] if old else regressed(*seen, ridge)
        coef[node] = shared(*seen, ridge, start)
        taken = (phi @ coef[node]).argmax(axis=1)
        below[node] = risk[np.arange(len(risk)), taken]
    return coef


def regressed(phi: Array, risk: Array, weight: Array, ridge: float) -> Array:
    """Scores by ridge regression: the less a way is expected to risk, the higher."""
    against = risk - risk.mean(axis=1, keepdims=True)
    weighted = phi * weight[:, None]
    gram = phi.T @ weighted + ridge * np.eye(phi.shape[1])
    spread = np.ptp(risk, axis=1).mean() if len(risk) else 0.0
    scale = SHARPNESS / spread if spread else 0.0
    return np.asarray(-scale * np.linalg.solve(gram, weighted.T @ against))


def shared(phi: Array, risk: Array, weight: Array, ridge: float, start: Array) -> Array:
    """Scores whose softmax shares each row among the ways at the least mean risk.

    Minimises  sum_i w_i sum_k softmax_k(φ_i·θ) risk_ik + (ridge/2) |θ|²  by L-BFGS.
    """

    def objective(flat: Array) -> tuple[float, Array]:
        theta = flat.reshape(start.shape)
        share = softmax(phi @ theta, axis=1)
        mean = (share * risk).sum(axis=1)
        pull = weight[:, None] * share * (risk - mean[:, None])
        value = weight @ mean + 0.5 * ridge * (flat @ flat)
        return float(value), (phi.T @ pull + ridge * theta).ravel()

    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B")
    return np.asarray(found.x.reshape(start.shape))


def upwards(problem: RoutingProblem, observed: RoutingProblem, ways: Ways) -> Coef:
    """The library's rule that needs no program."""
    return two_scores(learn_upwards(problem, automatic_ridge(problem), best_cut))


def jointly(problem: RoutingProblem, observed: RoutingProblem, ways: Ways) -> Coef:
    """The library's program, then its refinement."""
    return two_scores(LIBRARY.measure(problem, observed).coef)


def two_scores(coef: list[Array]) -> Coef:
    """Decision functions as scores: 0 for the negative child, g_j for the positive."""
    return {j: np.stack([0 * theta, theta], axis=1) for j, theta in enumerate(coef)}


def followed(
    problem: RoutingProblem, ways: Ways, coef: Coef
) -> tuple[Rows, dict[int, Rows]]:
    """The leaf that each row reaches, and the rows that come by each decision."""
    at = np.full(len(problem.weight), 0 if ways else ~0)
    came: dict[int, Rows] = {}
    for node, ends in ways.items():
        came[node] = np.flatnonzero(at == node)
        scores = problem.features[node][came[node]] @ coef[node]
        at[came[node]] = np.array(ends)[scores.argmax(axis=1)]
    return ~at, came


def reached(problem: RoutingProblem, leaf: Rows) -> Array:
    """Risk of each row at its leaf, times weight over mean weight."""
    risk = problem.leaf_risk[np.arange(len(leaf)), leaf]
    return np.asarray(problem.weight / problem.weight.mean() * risk)


# measuring ----------------------------------------------------------------------------

LIBRARY = Jointly("tight", "structured", 1e-6, "auto", 0.0, True, False, 1)
# Trees of two-way nodes with the same choices.
SHAPES: dict[str, Callable[[SensorTree], SensorTree]] = {
    "chain, as built": lambda tree: tree,
    "chain, last first": partial(reshaped, join=last_first),
    "halves": partial(reshaped, join=in_halves),
}
RULES: dict[str, Rule] = {
    "soft": soft,
    "from the leaves up": upwards,
    "program, refined": jointly,
}


def problem_of(name: str) -> Dataset:
    """Rows and sensors of a problem."""
    if name == "line":
        return on_a_line(load("context"))
    return by_column(load(name)) if name == "digits" else load(name)


def on_a_line(data: Dataset) -> Dataset:
    """The context problem where the sensor "context" tells the number of the state."""
    sensors = dict(data.sensors or {})
    states = sensors.pop("context")
    told = data.X[:, states].argmax(axis=1)
    rest = {name: [c - len(states) + 1 for c in own] for name, own in sensors.items()}
    return replace(
        data,
        X=np.column_stack([told, np.delete(data.X, states, axis=1)]),
        sensors={"context": [0], **rest},
    )


@dataclass(frozen=True, eq=False)
class Grown:
    """A tree that branches, its classifiers out of fold, and the same on test rows."""

    tree: SensorTree
    leaves: LeafClassifiers
    tested: LeafClassifiers
    settings: Settings


def grow(data: Dataset, cost_weight: float) -> Grown:
    """Grow a tree on the training rows, and judge the test rows with its classifiers."""
    model = SensorTreeClassifier(
        data.sensors,
        costs=data.costs,
        cost_weight=cost_weight,
        structure="branched",
        classifier="logistic2",
    )
    settings = model._settings()
    X, y, X_test, y_test = data.rows()
    rows = read_rows(model, settings, X, y, None, None)
    prepared = prepare(rows, settings, TextProgress(verbose=False))
    tree = choose_recipe(prepared, settings, LIBRARY.compare).tree
    test_rows = read_rows(model, settings, X_test, y_test, None, None)
    leaves = prepared.leaves
    likely = {
        subset: posterior(classifier, test_rows.features(subset), len(rows.classes))
        for subset, classifier in leaves.fit(judged_subsets(tree)).items()
    }
    tested = replace(leaves, data=test_rows, posteriors=likely)
    return Grown(tree, leaves, tested, settings)


def on_test_rows(
    posed: Posed, tested: LeafClassifiers, settings: Settings
) -> RoutingProblem:
    """The routing problem of the test rows, with the errors that are made."""
    problem, data = posed.problem, tested.data
    nodes = problem.tree.nodes
    features = tuple(
        basis(data.features(s), tested.posteriors[s], data.varying_prices())
        for basis, s in zip(posed.features, (n.sensors for n in nodes), strict=True)
    )
    _, risk = leaf_risks(problem.tree, tested, settings, None)
    return replace(problem, features=features, leaf_risk=risk, weight=data.weight)


@dataclass(frozen=True, eq=False)
class Measured:
    """Risks of one shape and rule, row by row."""

    training: Array
    held_out: Array
    test: Array
    n_coef: int
    seconds: float


def measure(grown: Grown, tree: SensorTree, ways: Ways, rule: Rule) -> Measured:
    """Learn from all rows for the test, and without each fold for what is held out."""
    posed = pose(tree, grown.leaves, grown.settings)
    problem, observed = posed.problem, posed.observed

    def risks(judged: RoutingProblem, coef: Coef) -> Array:
        return reached(judged, followed(judged, ways, coef)[0])

    started = time.process_time()
    coef = rule(problem, observed, ways)
    seconds = time.process_time() - started
    held_out = [
        risks(
            observed.take(test), rule(problem.take(train), observed.take(train), ways)
        )
        for train, test in held_out_parts(grown.leaves)
    ]
    return Measured(
        risks(observed, coef),
        np.concatenate(held_out),
        risks(on_test_rows(posed, grown.tested, grown.settings), coef),
        sum(theta.shape[0] * (theta.shape[1] - 1) for theta in coef.values()),
        seconds,
    )


def lines(name: str, cost_weight: float) -> Iterator[str]:
    """Lines of a table, one for each rule and shape."""
    grown = grow(problem_of(name), cost_weight)
    tree = grown.tree
    forks = many_ways(tree)
    several = sum(len(ends) > 2 for ends in forks.values())
    start = f"| {name} | {cost_weight:g} | {tree.n_leaves} | {several} | "
    many = measure(grown, tree, forks, soft)
    yield start + line("many children", "soft", many, many)
    for rule, shape in product(RULES, SHAPES):
        shaped = SHAPES[shape](tree)
        measured = measure(grown, shaped, two_ways(shaped), RULES[rule])
        yield start + line(shape, rule, measured, many)


def line(shape: str, rule: str, measured: Measured, many: Measured) -> str:
    """Risks of a shape, coefficients and seconds."""
    return (
        f"{shape} | {rule} | {measured.training.mean():.4f} | "
        f"{beside(measured.held_out, many.held_out)} | "
        f"{beside(measured.test, many.test)} | "
        f"{measured.n_coef} | {measured.seconds:.1f} |"
    )


def beside(risk: Array, other: Array) -> str:
    """A mean risk, and what it is above another's, with the standard error of that."""
    above = risk - other
    error = above.std() / np.sqrt(len(above))
    return f"{risk.mean():.4f} | {above.mean():+.4f} ± {error:.4f}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", choices=[*COST_WEIGHTS, []])
    parser.add_argument("--cost-weight", type=float)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = (
        "problem | cost weight | leaves | vertices with more than two ways | shape | "
    )
    heads += "rule | training risk | held-out risk | above many children | test risk | "
    heads += "above many children | coefficients | s"
    print(f"| {heads} |")
    print("|---" * 13 + "|")
    with one_thread():
        for name in arguments.problems or COST_WEIGHTS:
            weight = arguments.cost_weight or COST_WEIGHTS[name]
            for row in lines(name, weight):
                print(row, flush=True)


if __name__ == "__main__":
    main()
