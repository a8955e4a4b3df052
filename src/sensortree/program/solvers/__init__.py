"""General solvers behind one registry: a new back end is a new file and one line."""

from sensortree.program.solvers import clarabel, highs, scipy
from sensortree.program.solvers.base import RawSolution, Solver

SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (*scipy.SOLVERS, *highs.SOLVERS, *clarabel.SOLVERS)
}

__all__ = ["SOLVERS", "RawSolution", "Solver"]
