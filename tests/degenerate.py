"""Degenerate surrogate problems, and an independent judge of what is claimed of them.

The judge knows the paper's linear program (prop.lp_tree), HiGHS through SciPy, and
fractions; it shares no code with the package beyond the arrays of the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from strategies import random_savings, random_tree

from sensortree.program import SurrogateProblem
from sensortree.program.risk import savings_lost


@dataclass
class Degenerate:
    """A problem, what was done to it, and directions in which its columns differ.

    `near` lists, for each node, triples (d, e, closeness): columns d and e are equal up
    to `closeness`, so that their difference is a direction that needs a change of basis.
    """

    problem: SurrogateProblem
    l1: float = 0.0
    l2: float = 0.0
    near: list[list[tuple[int, int, float]]] = field(default_factory=list)
    story: list[str] = field(default_factory=list)


def degenerate(seed: int) -> Degenerate:
    """A random problem with one to three things wrong with it."""
    rng = np.random.default_rng(seed)
    names = rng.choice(THINGS, size=int(rng.integers(1, 4)), replace=False).tolist()
    if rng.random() < 0.4:
        names = sorted({*names, "nearly equal columns"})
    n_rows = int(rng.integers(8, 40))
    n_columns = int(rng.integers(1, 4))
    if "one row" in names:
        n_rows = 1
    if "separable" in names:
        n_rows = int(rng.integers(2, 5))
    if "more columns than rows" in names:
        n_columns = n_rows + int(rng.integers(1, 4))
    tree = random_tree(rng, int(rng.integers(2, 5)))
    kept = random_savings(rng, n_rows, tree.n_leaves, tight=rng.random() < 0.5)
    features, near = [], []
    for _ in range(tree.n_nodes):
        columns = [*rng.normal(size=(n_columns, n_rows)), np.ones(n_rows)]
        pairs = []
        if "nearly equal columns" in names:
            closeness = 10.0 ** -rng.integers(4, 13)
            pairs.append((0, len(columns), closeness))
            columns.append(columns[0] + closeness * rng.normal(size=n_rows))
        if "equal columns" in names:
            columns.append(columns[0])
        if "dependent columns" in names:
            columns.append(columns[0] + 2 * columns[-1] - 3.0)
        if "constant columns" in names:
            columns += [np.full(n_rows, 7.0), np.zeros(n_rows)]
        array = np.stack(columns, axis=1)
        if "repeated rows" in names:
            array[n_rows // 2 :] = array[: n_rows - n_rows // 2]
        if "columns of all sizes" in names:
            array = array * 2.0 ** rng.integers(-20, 21, size=array.shape[1])
            pairs = []  # nothing that the judge could use any more
        features.append(array)
        near.append(pairs)
    weight = np.ones(n_rows)
    if "weights" in names:
        weight = 10.0 ** rng.uniform(-6, 3, size=n_rows)
    if "no savings" in names:
        kept[:, rng.random(tree.n_leaves) < 0.5] = 0.0
        kept[rng.random(n_rows) < 0.3] = 0.0
    size = 10.0 ** rng.integers(-12, 13) if "a scale" in names else 1.0
    lost = savings_lost(
        size * weight[:, None] * kept, tree.positive_paths, tree.negative_paths
    )
    problem = SurrogateProblem(tree.negative, tree.positive, features, *lost)
    l1 = 0.03 * size if "l1" in names else 0.0
    l2 = 10.0 ** rng.uniform(-8, -1) * size if "l2" in names else 0.0
    return Degenerate(problem, l1, l2, near, [*names, f"{n_rows} rows"])


THINGS = (
    "nearly equal columns",
    "equal columns",
    "dependent columns",
    "constant columns",
    "repeated rows",
    "columns of all sizes",
    "weights",
    "no savings",
    "a scale",
    "one row",
    "separable",
    "more columns than rows",
    "l1",
    "l2",
)


def leaf_paths(problem: SurrogateProblem) -> list[list[tuple[int, int]]]:
    """Decisions that lead to each leaf: (node, 0 for negative or 1 for positive)."""
    children = (problem.negative.tolist(), problem.positive.tolist())
    found, open_ = [], [(0, [])]
    while open_:
        node, way = open_.pop()
        for side in (0, 1):
            child, longer = children[side][node], [*way, (node, side)]
            if child < 0:
                found.append(longer)
            else:
                open_.append((child, longer))
    return found


def rival_coefficients(case: Degenerate) -> list[list[Fraction]] | None:
    """Coefficients that HiGHS finds best, exact numbers; columns in a basis of our own.

    Of two nearly equal columns the second is replaced by their difference, made as large
    as they are: what the program asks of it then has ordinary size. Without this a
    general solver, with its tolerance of 1e-7, never sees that the two differ.
    """
    problem = case.problem
    n, paths = problem.n_samples, leaf_paths(problem)
    size = max(problem.lost_if_negative.max(), problem.lost_if_positive.max()) or 1.0
    lost = (problem.lost_if_negative / size, problem.lost_if_positive / size)
    columns, units = [], []
    for features, pairs in zip(problem.features, case.near, strict=True):
        turned = features.copy()
        for d, e, closeness in pairs:
            turned[:, e] = (features[:, e] - features[:, d]) / closeness
        unit = np.abs(turned).max(axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        columns.append(turned / unit)
        units.append(unit)
    p, n_nodes = sum(c.shape[1] for c in columns), problem.n_nodes
    first = np.cumsum([0, *(c.shape[1] for c in columns)])
    # x = (θ, γ_i, hinges h[side, node, i], |θ|); side 0 is 1 - g, side 1 is 1 + g.
    hinge = p + n
    size_of = hinge + 2 * n_nodes * n
    n_variables = size_of + (p if case.l1 else 0)
    eye = sparse.eye_array(n, format="lil")
    rows, bounds = [], []
    for way in paths:  # Σ lost · hinge - γ <= 0
        row = sparse.lil_array((n, n_variables))
        row[:, p:hinge] = -eye
        for node, side in way:
            at = hinge + (side * n_nodes + node) * n
            row[:, at : at + n] = sparse.diags_array(lost[side][:, node])
        rows.append(row)
        bounds.append(np.zeros(n))
    for node in range(n_nodes):  # hinge >= 1 ∓ g
        for side, sign in ((0, -1.0), (1, 1.0)):
            row = sparse.lil_array((n, n_variables))
            row[:, first[node] : first[node + 1]] = sign * columns[node]
            at = hinge + (side * n_nodes + node) * n
            row[:, at : at + n] = -eye
            rows.append(row)
            bounds.append(np.full(n, -1.0))
    cost = np.zeros(n_variables)
    cost[p:hinge] = 1.0
    if case.l1:  # only without nearly equal columns: there θ is a coefficient itself
        for sign in (1.0, -1.0):
            row = sparse.lil_array((p, n_variables))
            row[:, :p] = sign * sparse.eye_array(p)
            row[:, size_of:] = -sparse.eye_array(p)
            rows.append(row)
            bounds.append(np.zeros(p))
        cost[size_of:] = case.l1 / size / np.concatenate(units)
    free = np.full(n_variables, -np.inf)
    free[hinge:] = 0.0
    result = linprog(
        cost,
        A_ub=sparse.vstack(rows, format="csr"),
        b_ub=np.concatenate(bounds),
        bounds=np.c_[free, np.full(n_variables, np.inf)],
        method="highs",
        options={"presolve": True},
    )
    if result.x is None:
        return None
    coef = []
    for node, pairs in enumerate(case.near):
        theta = [
            Fraction(float(w)) / Fraction(float(u))
            for w, u in zip(
                result.x[first[node] : first[node + 1]], units[node], strict=True
            )
        ]
        for d, e, closeness in pairs:
            theta[e] /= Fraction(closeness)
            theta[d] -= theta[e]
        coef.append(theta)
    return coef


def exact_value(case: Degenerate, coef: list[list[Fraction]]) -> Fraction:
    """The objective in fractions: no rounding at all."""
    problem, paths = case.problem, leaf_paths(case.problem)
    lost = (problem.lost_if_negative.tolist(), problem.lost_if_positive.tolist())
    total = Fraction(0)
    tables = [features.tolist() for features in problem.features]
    for i in range(problem.n_samples):
        hinges = []
        for table, theta in zip(tables, coef, strict=True):
            g = sum(
                (Fraction(x) * t for x, t in zip(table[i], theta, strict=True) if x),
                Fraction(0),
            )
            hinges.append((max(1 - g, Fraction(0)), max(1 + g, Fraction(0))))
        total += max(
            sum(
                (
                    Fraction(lost[side][i][node]) * hinges[node][side]
                    for node, side in way
                ),
                Fraction(0),
            )
            for way in paths
        )
    flat = [t for theta in coef for t in theta]
    total += Fraction(case.l1) * sum(map(abs, flat), Fraction(0))
    return total + Fraction(case.l2) / 2 * sum((t * t for t in flat), Fraction(0))


def largest(case: Degenerate, coef: list[list[Fraction]]) -> float:
    """Largest norm of a node's coefficients, on columns scaled to size 1."""
    sizes = []
    for features, theta in zip(case.problem.features, coef, strict=True):
        unit = np.abs(features).max(axis=0)
        scaled = [float(t) * u for t, u in zip(theta, unit.tolist(), strict=True)]
        sizes.append(float(np.linalg.norm(scaled)))
    return max(sizes)


def disproof(case: Degenerate, coef, certificate) -> str | None:
    """How an interval is wrong, in words; None if nobody can tell.

    Two exact facts decide: the objective at the returned coefficients is at most `upper`,
    and no coefficients that the certificate speaks of have an objective below `lower`.
    Both to 1e-9 of the larger of the bound and the largest saving, a thousandth of the
    tolerance: no more is promised of sums in double precision.
    """
    problem = case.problem
    unit = max(problem.lost_if_negative.max(), problem.lost_if_positive.max())
    rounding = 1e-9 * max(float(unit), certificate.upper)
    returned = [[Fraction(float(t)) for t in theta] for theta in coef]
    reached = float(exact_value(case, returned))
    if reached > certificate.upper + rounding:
        return f"upper={certificate.upper!r}, but the coefficients have {reached!r}"
    # What is printed is what is claimed: a limit that the sentence keeps to itself is none.
    limited = f"coefficients up to {certificate.reach:.0e}" in str(certificate)
    rivals = [returned]
    near = any(case.near) if case.near else False
    if not (near and case.l1):
        found = rival_coefficients(case)
        if found is not None:
            rivals.append(found)
    for rival in rivals:
        value = float(exact_value(case, rival))
        spoken_of = not limited or largest(case, rival) <= certificate.reach
        if spoken_of and value < certificate.lower - rounding:
            return f"lower={certificate.lower!r}, but {value!r} is reached"
    return None
