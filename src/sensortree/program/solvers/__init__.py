"""Solvers behind one registry: a new back end is a new file and one line.

::

    base         `Solver`: from a problem to coefficients and a dual point; linear programs
    structured/  our own interior point, which uses the tree
    scipy        always there;  highs, clarabel  through their own packages
"""

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
