"""The linear program: the problem, its solvers, and the proof that comes with an answer.

::

    risk         the paper's risk of a tree, exactly and bounded; where rows should go
    surrogate    `SurrogateProblem`: the convex bound as a function of coefficients
    solution     `solve`: scale, solve, undo the scaling, certify
    scaling      a problem of size 1, and columns that nearly repeat each other
    certificate  `Certificate`: a proof from the data, and its lower bounds
    refinement   from the optimum on, one decision at a time, on the risk itself
    chunks       `Chunks`: rows that stay where they are, read by sums alone
    proof_rows   such rows, and what a proof reads of them
    arrays       NumPy, or the library whose arrays a problem holds
    solvers/     the solvers, behind one registry, and linear programs for general ones
"""

from sensortree.program.certificate import Certificate, certify
from sensortree.program.solution import Solution, approximate, solve
from sensortree.program.solvers import SOLVERS, Progress, Solver
from sensortree.program.solvers.base import (
    LinearProgram,
    compact_form,
    path_form,
    with_l1,
)
from sensortree.program.surrogate import DualPoint, Penalty, SurrogateProblem

__all__ = [
    "SOLVERS",
    "Certificate",
    "DualPoint",
    "LinearProgram",
    "Penalty",
    "Progress",
    "Solution",
    "Solver",
    "SurrogateProblem",
    "approximate",
    "certify",
    "compact_form",
    "path_form",
    "solve",
    "with_l1",
]
