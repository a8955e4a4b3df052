"""Training rows, and classifiers judged on rows they have not seen.

::

    rows         `TrainingRows`: what is learned from;  folds
    classifiers  `LeafClassifiers`: one classifier per subset, fitted when first asked for
    fitting      fit, hold out, calibrate
    logistic     the paper's leaf: logistic regression on the quadratic basis
    compiling    fitted scikit-learn objects as plain arrays
"""
