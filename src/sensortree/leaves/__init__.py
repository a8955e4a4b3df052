"""Training rows, and classifiers judged on rows they have not seen.

::

    rows         `TrainingRows`: what is learned from
    folds        what is held out together;  groups   rows that belong together
    arranging    rows in an order that theirs does not decide
    observations    which independent observations rows are
    continued    rows whose log ended, with readings in place of those they lack
    gaussians    how readings go with each other within a class, learned from a log
    drawn        rows that teach leaves whose sensors they did not all buy
    fewer        classifiers of fewer sensors, which one of more is pulled towards
    task         what differs between classes and numbers
    classifiers  `LeafClassifiers`: one classifier per subset, fitted when first asked for
    fitting      fit, hold out, calibrate
    logistic     the paper's leaf: logistic regression on the quadratic basis
    engine       its fits to many subsets and folds as one job
    ridge        the fits of one subset;  evidence   their penalty;  descent   the minimiser
    boosting     boosted leaves, the number of rounds from all folds
    coding       a category as one column of codes, for trees to split by
    regressors   leaves of numbers: ridge, boosted, or a regressor of others
    regression   ridge regressions of many subsets and folds;  least_squares   one of them
    spread       how far off they are expected to be
    weighting    how estimators of others take weights
    standardising    centre and scale of columns
    sklearn_private  what we use of scikit-learn that is private
    compiling    fitted scikit-learn objects as plain arrays
"""
