"""Our own solver: a primal-dual interior point that uses the tree.

The compact rows of `base.compact_form`, per node j and example,

    s1 = v_j - v_neg + a m_j - a,  s2 = v_j - v_neg,      multipliers z1, z2
    s3 = v_j - v_pos - b m_j - b,  s4 = v_j - v_pos,      multipliers z3, z4

make a Newton step with D = z / s the minimum of a quadratic in (dv, dm) per example. Read
it as a circuit. The two rows of an edge add up to

    q (dv_j - dv_child + w dm_j)² + extra dm_j²,
    q = D1 + D2, w =  a D1 / q, extra = a² D1 D2 / q     on the negative edge,
    q = D3 + D4, w = -b D3 / q, extra = b² D3 D4 / q     on the positive edge:

a conductance q with a source w dm_j. A subtree seen from its root c is one conductance
G_c with a source u_c, linear in the margins below: series and parallel connections, only
sums of positive terms. With g1, g2 the conductances of a node's two branches and
ω = g / (g1 + g2) their shares, eliminating all dv leaves

    M = diag(extra) + sum_j κ_j y_j y_jᵀ,   κ_j = g1 g2 / (g1 + g2),   y_j = o1 - o2,

where o = w dm_j + u_child is the source of a branch. Hence for k above an edge of the tree
and l below it the entry M_kl is a product of a factor of k and one of l, and all that
couples the two sides in the p x p Newton matrix S = sum_i Φ_iᵀ M_i Φ_i is one matrix
product. An edge near the middle cuts the tree in two, and so on: S is built from large
products, in single precision while the gap is large and S far from singular. All else is
elementwise on node-major (n_nodes, n_rows) arrays, a level of the tree at a time, in row
blocks that fit a cache, summed in a fixed order. Where S is close to singular, its
solutions are refined by conjugate gradients with the exact operator, which needs no
matrix. S is factored where the rows are, so a device waits for the host only where scalars
and (p,) vectors are read.

::

    interior_point  Mehrotra's method, its Newton matrix; when to start over, and stop
    chunk           all examples, by sums over chunks of them
    rows            some examples as circuits, one Newton step at a time
    shape           the tree as the solver walks it, and where it is cut
"""

from sensortree.program.solvers.base import Solver
from sensortree.program.solvers.structured.interior_point import run

SOLVERS = (Solver("structured", run, ridge=True),)
