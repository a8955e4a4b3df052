"""Every number that was chosen or tuned, in one place, and why it is what it is.

What has one right value, such as a factor of a formula, stands where it is used.
"""

from __future__ import annotations

import numpy as np

# Machine precision, and the least positive number: divisors are at least one of them.
EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)

# Paired standard errors that are a clear lead.
CLEARLY = 1.0

# structure --------------------------------------------------------------------------------

# Rows that a search looks at: more hardly change the tree, and take longer.
SEARCH_ROWS = 12_000
# Leaves that each search may have if the data decide; fewer where a leaf learns slowly.
SEARCH_LEAVES = {
    "chain": 16,
    "backward": 16,
    "greedy": 16,
    "branched": 96,
    "planned": 32,
}
SEARCH_LEAVES_SLOW = 24
# Leaves of an exhaustive tree: more cannot be learned in reasonable time.
EXHAUSTIVE_LEAVES = 400

# A chain ends when so many sensors in a row have saved no error.
CHAIN_PATIENCE = 3
# Standard errors by which a block of sensors must save error: blocks are tried repeatedly.
BLOCK_ERRORS = 2.0
# Backward elimination drops one sensor at a time when so many are left, before that one
# in so many at once, which is quicker.
ELIMINATED_SINGLY, ELIMINATED_PART = 10, 3

# Columns up to which a screen's basis has all products of two; of more, only squares.
SCREEN_PRODUCTS = 60
# Ridge penalty of screens, as a share of the rows: just enough to solve any system.
SCREEN_RIDGE = 1e-3
# Rows times squared terms above which screens compute in single precision, to be quick.
SCREEN_SINGLE_PRECISION = 2e9
# Scores that a screen computes at once, to bound its memory.
SCREEN_SCORES_AT_ONCE = 2**23
# The leverage of a row is cut here: dividing by 1 - leverage must stay stable.
MOST_LEVERAGE = 0.9

# The masked booster: small and quick, since it only ranks sensors.
MASKED_LEARNING_RATE, MASKED_L2 = 0.2, 3.0
MASKED_ROUNDS, MASKED_TREE_LEAVES = 60, 15
# Copies of a row with other sensors blanked out, and rows in all: both bound the time.
MASKED_COPIES, MASKED_ROWS = 4, 24_000
# Numbers that trees keep to answer again; bounds the memory.
MASKED_KEPT = 2**26

# Distinct rows that branching learns from.
BRANCH_ROWS = 6_000
# Weight of rows that one purchase must be for: fewer cannot be told from chance.
BRANCH_MIN_ROWS = 25
# Standard errors by which one more purchase must add to those of a vertex.
BRANCH_ERRORS = 4.0
# Purchases at one vertex.
BRANCH_PURCHASES = 12
# Ridge penalty of predicted gains, as a share of the rows.
BRANCH_RIDGE = 1e-2
# Purchases that are examined at a vertex: those that gain most alone, and those beside
# which others gain most; and how many are examined after each, and after those in turn.
BRANCH_GAINING, BRANCH_TELLING, BRANCH_SECONDS, BRANCH_THIRDS = 24, 8, 10, 3
# Rows that suffice to choose these; below the second number nothing is examined after a
# purchase, since its gain could not be seen.
BRANCH_GLANCE_ROWS, BRANCH_AHEAD_ROWS = 1_000, 150
# Where nothing pays, so many purchases are followed one further, from so many rows on.
BRANCH_BEAM, BRANCH_BEAM_ROWS = 8, 500

# Distinct readings up to which each is a cell: a scale of answers has fewer, and a table
# of pairs stays small.
CELL_LEVELS = 8
# Rows that a cell of two sensors should hold, and cells that numbers are cut into.
CELL_ROWS, FEWEST_CELLS, MOST_CELLS = 10, 2, 4
# A gap is wide if it is so many times the widest within a cell: rounded numbers leave gaps
# of two or three units by chance; and each cell between gaps has this share of weight.
CELL_WIDE_GAP, CELL_SHARE = 3.0, 0.05
# Rounds in which clusters of readings settle, nearly.
CELL_CLUSTER_ROUNDS = 10

# Sensors up to which a plan looks at all pairs at every vertex.
PLAN_SENSORS = 64
# Entries of pair tables that third purchases may fill in all, and at once; both bound work.
PLAN_WORK, PLAN_AT_ONCE = 4_000_000, 2_000_000
# Rows of a cell that plans for itself: so many, and one in so many of all.
PLAN_MIN_ROWS, PLAN_ONE_IN = 8.0, 200
# Share of what is at stake within which two values count as equal.
PLAN_ROUNDING = 1e-9
# Rows of the whole that each half of a cell is mixed with.
STOPPING_PRIOR = 2.0
# Standard deviations beyond which the normal density is 0.
STOPPING_SURE = 40.0

# learning ---------------------------------------------------------------------------------

# Cost weight by default: an error counts 1, or is itself in money.
COST_WEIGHT_OF_ERRORS, COST_WEIGHT_OF_MONEY = 0.01, 1.0
# Ridge penalty of decisions, as a multiple of the mean spread of an example's leaf risks.
DECISION_RIDGE = 30.0

# Paired standard errors of a purchase over buying nothing: chance goes so far one time in
# twenty.
SURELY = 1.645
# Resampled matrices, and sums of rows that they are drawn from: enough for an optimism to
# within a few hundredths of a standard error.
OPTIMISM_SAMPLES, OPTIMISM_SUMS = 400, 1_000
# Rows and columns up to which trees are found again without each fold that they are judged
# on: more rows hardly know which tree it was; more columns make screens slow.
OWN_TREES_ROWS, OWN_TREES_COLUMNS = 1_000, 100
# Leaves of an exhaustive tree that is compared: few rows do not fill more.
COMPARED_EXHAUSTIVE_LEAVES = 16
# Leaves that a growing search is asked for first.
GROWN_FIRST_LEAVES = 8
# Folds that are held out where an estimate is enough.
GLANCED_FOLDS = 2
# Rows that decisions and calibrations are learned from where they are only compared.
COMPARED_ROWS = 4_000
# Two cost weights are close up to this ratio; between them nothing is compared anew.
CLOSE_COST_WEIGHTS = 10.0

# Relative gap of the linear program: where decisions are only compared, and where they
# start a refinement; and the rows of the program of such a start.
COMPARED_GAP, START_GAP = 1e-4, 1e-2
START_ROWS = 4_000

# Rows from which boosted leaves are compared: fewer do not fill their trees.
BOOSTED_MIN_ROWS = 100
# Weight of rows, in whole folds, that tell whether boosted leaves may be better.
BOOSTED_JUDGED = 1_200
# Work of boosted leaves: rounds and subsets to expect, readings that take as long as one
# more leaf of a tree, and the readings that a fit may look at.
BOOSTED_ROUNDS, BOOSTED_SUBSETS, BOOSTED_LEAF = 40, 16, 4_000
BOOSTED_WORK = 2e9
# Terms of all rows and classes that one quadratic leaf may take.
QUADRATIC_WORK = 5e8
# Rows of each class from which huge trees are tried; columns that sizes are compared on.
HUGE_ROWS, SIZED_COLUMNS = 5_000, 32

# Readings of a node up to which decisions that see the posterior see them too.
DECISION_READINGS = 150
# Levels from which decisions see them one by one: of two, the reading itself says all.
DECISION_LEVELS = 3
# Share of the rows from which a level has a term of its own: at unit spread, that of a
# rarer one would lift its few rows by more than four.
DECISION_LEVEL_SHARE = 0.05
# Rows that tell whether a reading has many levels, before all are looked at.
DECISION_GLANCE_ROWS = 256
# A posterior whose spread, for even odds, is below this hardly varies: it is not stretched.
DECISION_SPREAD = 0.05

# Strength of the penalties on slopes and biases of calibrated leaves.
CALIBRATION_ON_SLOPE, CALIBRATION_ON_BIAS = 10.0, 4.0
# The least slope: a classifier worse than nothing would ask for one below 0.
CALIBRATION_FLATTEST = 0.05
# Newton's method ends when a step changes so little, as the next would change the square
# of that; or after so many steps.
CALIBRATION_NEAR, CALIBRATION_STEPS = 1e-6, 50

# Examples that must be blocked before a detour is learned for them.
DETOUR_MIN_ROWS = 25
# Leaves of a detour that is searched for, and of a tree whose rest is tried.
DETOUR_LEAVES, DETOUR_REST_LEAVES = 8, 16
# Blocked rows from which two folds say which tree to try.
DETOUR_GLANCED_ROWS = 250
# With outages="auto": sensors that have detours; work on new classifiers, as a share of
# that on the policy's own, or this much where it is quickly done; and their coefficients,
# as a multiple of the policy's own, or this many for each row.
DETOUR_SENSORS, DETOUR_WORK_SHARE, DETOUR_WORK_QUICK = 5, 0.35, 5e6
DETOUR_SIZE, DETOUR_SIZE_SMALL = 4, 20_000

# baselines --------------------------------------------------------------------------------

# Range of the logarithm of the factor that turns scores into log-odds.
SHARPNESS = (-3.0, 4.0)
# CSTC: coefficients below this are 0, and stay 0; steps of conjugate gradients at a node.
CSTC_CLAMP, CSTC_CONJUGATE_STEPS = 1e-4, 20
