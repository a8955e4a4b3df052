"""Solvers behind one registry: a new back end is a new file and one line."""

from sensortree.program.solvers import clarabel, highs, scipy, structured
from sensortree.program.solvers.base import (
    Candidate,
    Options,
    Progress,
    RawSolution,
    Solver,
)

SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        *structured.SOLVERS,
        *scipy.SOLVERS,
        *highs.SOLVERS,
        *clarabel.SOLVERS,
    )
}

__all__ = ["SOLVERS", "Candidate", "Options", "Progress", "RawSolution", "Solver"]
