"""How fast: the solver, the searches for a structure, asking, and a trade-off curve.

Each is a command, run from the root of the repository: python -m benchmarks.solver
"""
