"""The linear program: the problem, its solvers, and the proof that comes with an answer."""

from sensortree.program.certificate import Certificate, certify
from sensortree.program.linear_program import (
    LinearProgram,
    compact_form,
    path_form,
    with_l1,
)
from sensortree.program.solution import Solution, approximate, solve
from sensortree.program.solvers import SOLVERS, Progress, Solver
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
