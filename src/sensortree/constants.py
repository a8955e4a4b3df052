"""Numbers that were tuned or chosen, each with the reason for it."""

from __future__ import annotations

import numpy as np

# leaves ------------------------------------------------------------------------------

# Machine precision: the smallest step from 1, and the smallest normal number.
FLOAT_EPS = float(np.finfo(np.float64).eps)
FLOAT_TINY = float(np.finfo(np.float64).tiny)
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

# Terms up to which a ridge regression has products of columns.
RIDGE_TERMS = 2_000
# Penalties that are compared: the weight of the rows over so many powers of 3, from 0 on.
RIDGE_POWERS = 15
# Terms, or rows if fewer, up to which evidence chooses the penalty; else it is this share
# of the weight of the rows.
RIDGE_EVIDENT, RIDGE_SHARE = 1_200, 1e-3
# What is left unexplained counts as no less than this share, so that it has a logarithm.
RIDGE_LEAST_LEFT = 1e-12
# Leverage beyond which a residual is enlarged no further.
MOST_LEVERAGE = 0.9

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
