"""What answers at a leaf: classifiers and regressors, judged on rows they have not seen.

::

    rows         `TrainingRows`: what is learned from; which are independent; rows of a log
    folds        order, groups and folds of rows: what is held out together
    task         what differs between classes and numbers
    classifiers  `LeafClassifiers`: one classifier per subset, fitted when first asked for
    fitting      fit, hold out, calibrate
    logistic     the paper's leaf; its fits to many subsets and folds as one job
    ridge        the fits of one subset, their penalty;  descent   the minimiser
    boosting     boosted leaves, the number of rounds from all folds
    coding       a category as one column of codes, for trees to split by
    regressors   leaves of numbers: ridge, boosted, or a regressor of others
    regression   ridge regressions of many subsets and folds, and their spread
    standardising    centre and scale of columns, and their polynomial basis
    compiling    fitted scikit-learn objects as plain arrays
    sklearn_private  what we use of scikit-learn that is private
"""
