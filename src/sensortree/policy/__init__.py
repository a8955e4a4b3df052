"""All that predicts: no scikit-learn, no solver.

::

    policy        `Policy`: sensors, tree, decisions and classifiers, ready to be asked
    walk          the step at a vertex: read, judge, decide, afford, reroute
    batch         many rows at once
    masked        many rows of which some sensors are known
    session       one example, asked for sensor by sensor
    explanation   one row's way, and why
    decisions     decision functions g_j;  classifiers   leaf classifiers f_k as arrays
    flow          where training examples went
    steps, reasons, values   what a session says, why, and what it is told
    report        what a policy spent
    interface     the questions that every fitted or loaded model answers
    digest        one digest of all that a policy is made of
"""
