"""All that predicts: no scikit-learn, no solver.

::

    policy        `Policy`: sensors, tree, decisions and classifiers, ready to be asked
    walk          the step at a place: read, judge, decide, afford, reroute
    batch         `Walk`: many rows at once, of which all sensors or some may be read
    masked        `MaskedPolicy`: what rows acquire next, by what is known of them
    session       `Session`: one example, asked for sensor by sensor
    oracles       whom it asks, and what if they fail
    state         `State`: a session as plain values; written, signed and read
    explanation   `Explanation`: one row's way, recorded by its walk, and why
    branches      `PassedFork`: the ways that it took, and those that it did not take
    decisions     decision functions g_j;  classifiers   leaf classifiers f_k as arrays
    calibration   leaf classifiers, and leaves, whose probabilities were put right
    detours       trees that are followed where a sensor cannot be had
    flow          where training examples went
    steps, reasons, values   what a session answers, why, and what is given to it
    meanings      which column a decision feature is about;  sentences  all in plain words
    baselines     what it is compared with
    tally         answers and bills, added up;  report  what a policy spent
    compared      the same beside its baselines;  limited  with less to spend
    outages       what becomes of examples if a sensor cannot be had
    comparison    `Comparison`: what a fit compared on held-out rows, and what it took
    rules         who takes a way, in one condition;  page  all for the page of a report
    measures      shares, ranks and means with intervals;  report_text  all as text
    tradeoff      `TradeoffCurve`: error against cost;  choice  a point of it
    about         what a model is about: unit, target, date, held-out score
    interface     the questions that every fitted or loaded model answers
    digest        one digest of all that a policy's answers depend on

`Walk` and `Session` go through the tree, by the functions of `walk` and no others.
"""
