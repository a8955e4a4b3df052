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
# The leverage of a row is cut here: dividing by 1 - leverage must stay stable.
MOST_LEVERAGE = 0.9

# leaves -----------------------------------------------------------------------------------

# The same of single precision.
FLOAT32_EPS = float(np.finfo(np.float32).eps)
FLOAT32_TINY = float(np.finfo(np.float32).tiny)

# Folds where the user names no number of them.
DEFAULT_FOLDS = 5

# A column varies by more than rounding leaves of a constant, as a share of its mean.
LEAST_RELATIVE_SPREAD = 1e-12
# Divided by a smaller spread, readings that are allowed may be too large to be squared.
LEAST_SPREAD = 1e-70
# Rows whose polynomial basis is made at a time, so that it fits into the cache.
BASIS_BLOCK = 4_096

# Steps that L-BFGS remembers.
DESCENT_MEMORY = 12
# Share of the promised decrease below which a step is halved, and halvings at most.
DESCENT_DECREASE, DESCENT_HALVINGS = 1e-4, 30

# Terms up to which a logistic leaf has products of columns.
LOGISTIC_TERMS = 10_000
# Coefficients up to which all second derivatives are computed.
LOGISTIC_NEWTON = 600
# Rows for each coefficient from which the penalty no longer matters.
LOGISTIC_ENOUGH = 20
# Terms up to which their Gram matrix is factored; of more, only the diagonal is used.
LOGISTIC_FACTORED = 2_500
# Rows times coefficients from which comparing is done in single precision.
LOGISTIC_MUCH = 2_000_000
# Nats that a step may still promise, for each coefficient: of what is compared where there
# is little or much to compute, and where fits with and without each fold part.
LOGISTIC_COMPARED, LOGISTIC_COMPARED_LARGE = 1e-5, 1e-4
LOGISTIC_PARTED = 1e-3
# The same in all: of what is kept where there is little or much to compute, and while the
# penalty is chosen.
LOGISTIC_KEPT, LOGISTIC_KEPT_LARGE = 1e-18, 1e-2
LOGISTIC_CLIMBED = 1e-3
# Share of the comparing tolerance for a fit that sets out from one that has seen the rows
# it must not have seen.
LOGISTIC_UNSEEN = 0.01
# Rounds before second derivatives are computed anew, and rounds at most.
LOGISTIC_ROUNDS, LOGISTIC_MAX_ROUNDS = (12, 36), 3_000
# Numbers of a basis up to which it is kept in memory: of all rows, and of a part of them.
BASIS_KEPT, BASIS_KEPT_PART = 2**27, 2**23
# Standard deviations from the mean that are too far for single precision.
LOGISTIC_FAR = 1e6
# Scores beyond which a probability is 0 or 1.
LOGISTIC_LARGEST_SCORE = 80
# Share of its diagonal that is added to a Hessian, so that it can be factored.
LOGISTIC_LIFT = 1e-12
# Powers of 3 that the inverse penalty C may be.
LOGISTIC_POWERS = range(-5, 2)
# The power that is tried first where held-out rows choose: in the middle.
LOGISTIC_POWER = -2

# Terms up to which a ridge regression has products of columns.
RIDGE_TERMS = 2_000
# Penalties that are compared: the weight of the rows over so many powers of 3, from 0 on.
RIDGE_POWERS = 15
# Terms, or rows if fewer, up to which evidence chooses the penalty; else it is this share
# of the weight of the rows.
RIDGE_EVIDENT, RIDGE_SHARE = 1_200, 1e-3
# What is left unexplained counts as no less than this share, so that it has a logarithm.
RIDGE_LEAST_LEFT = 1e-12

# Columns up to which a spread looks at readings; of more, at the regression's number.
SPREAD_COLUMNS = 60
# Multiples of its mean that a spread keeps within.
SPREAD_LEAST, SPREAD_MOST = 0.2, 5.0
# Parts of the rows that are held out for a spread where there are no folds.
SPREAD_PARTS = 3

# Ridge on the second derivatives of a leaf value of boosted trees.
BOOSTED_L2 = 3.0
# Rows from which trees may be large, and folds are held out in so many groups.
BOOSTED_MANY_ROWS, BOOSTED_FOLD_GROUPS = 6_000, 3
# Bins of all columns together at most, and of one column at least.
BOOSTED_BINS, BOOSTED_FEWEST_BINS = 2**15, 16
# Bins of a column, and so levels of a category, that scikit-learn takes at most.
BOOSTED_MOST_BINS = 255
# Levels from which a category is one column of codes: splits by fewer find the same.
CODED_FEWEST_LEVELS = 5
# Rounds that are boosted at a time at first, and rounds at most.
BOOSTED_CHUNK, BOOSTED_MAX_ROUNDS = 10, 200
# Nats a row: a chunk must save a share of the log-loss, or of this if that is less.
BOOSTED_LITTLE = 1e-2
# Learning rate of more than two classes at least: short steps would take too long.
BOOSTED_LEAST_RATE = 0.2
# Rows up to which all folds choose the number of rounds; of more, two do.
BOOSTED_FEW_ROWS = 2_000
# Rounds where no row is held out to choose them by: they suit most tables.
BOOSTED_UNJUDGED = 50

# How often a batch of fits is handed to a cluster that loses workers.
CLUSTER_ATTEMPTS = 3
# Trees and leaves of a tree at most in a screen's copy of an ensemble, and the rows that
# the copy is fitted on.
SCREEN_TREES, SCREEN_LEAVES, SCREEN_ROWS_LIGHT = 30, 31, 6_000
# Rows that a screen fits other classifiers on, which have no smaller copy.
SCREEN_ROWS = 2_000
# Probability that a screen gives to a class at least.
SCREEN_LEAST_LIKELY = 1e-3

# Standard errors by which sensors must tell more than those that are free: by log-loss,
# and by Brier score, since a classifier may be too sure.
TELLS_CLEARLY, TELLS_VERY_CLEARLY = 1.0, 2.0
# Groups of equal weight that numbers are put in where classes would be counted.
NUMBER_LEVELS = 8
# Rounds of trees that say which sensors are needed; fewer for each of many classes, but
# some.
ELIMINATOR_ROUNDS, ELIMINATOR_FEWEST_ROUNDS = 30, 4

# Rows at the mean of all that a mean, or a covariance, of few rows is shrunk by.
PRIOR_ROWS = 30
# Sets of known sensors of a log that are told apart; rows of rarer ones count as less.
LOG_PATTERNS = 48
# Penalties (C) with which a classifier of a log is pulled towards one of fewer sensors,
# and how many times as many rows must have bought those.
LOG_PULLS, LOG_PULL_ROWS = (1.0, 1 / 9, 1 / 81, 1 / 729, 1 / 6561), 1.1
# By how much a row of a log may count for each sensor that it did not buy.
LOG_SHARES = (0.0, 0.5)
# Share of the variance that is added to a covariance, so that it can be inverted.
GAUSSIAN_RIDGE = 1e-3
# Rounds of expectation and maximisation.
GAUSSIAN_ROUNDS = 12
# Classes times patterns times columns cubed at most; of more, nothing is learned.
GAUSSIAN_WORK = 2e8
# Times that a row of a log is drawn at most, and rows that are drawn in all.
DRAWN_TIMES, DRAWN_ROWS = 10, 12_000

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

# Rows a class from which boosted leaves are compared: a round grows a tree for each class,
# and with fewer rows of the class its leaves cannot tell much apart.
BOOSTED_CLASS_ROWS = 50
# Weight of rows, in whole folds, that tell whether boosted leaves may be better, and which
# penalty is.
JUDGED_ROWS = 1_200
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
