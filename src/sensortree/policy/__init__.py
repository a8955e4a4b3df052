"""Everything that asks: a policy, rows walked through it, and sessions of one example.

It needs neither scikit-learn nor a solver, and knows nothing of the reports above it::

    policy        `Policy`: sensors, tree, decisions and classifiers, ready to be asked; its
                  digest: one of all that its answers depend on
    walk          the step at a place: read, judge, decide, afford, reroute
    batch         `Walk`: many rows at once, with all sensors or only some of them;
                  `MaskedPolicy`: what each acquires next, given what is known of it
    session       `Session`: one example, examined sensor by sensor; `retrace` repeats one
    oracles       functions that a session calls for values, to its end or an error
    state         `State`: a session as plain values; written, signed and read
    session_input  values, limits, prices and keys that a session is given, checked
    steps         `Step` and `Decision`: what a session answers
    reasons       `Reason`: why a step was taken, in numbers and in plain words
    decisions     decision functions g_j, and which column each of their features is about
    classifiers   leaf classifiers f_k as arrays, for classes and for numbers; corrections
                  of the probabilities of classifiers and leaves
    flow          where training examples went; detours around a missing sensor
    about         what a model keeps beside its answers: unit, target, scores, baselines

`Walk` and `Session` go through the tree by the functions of `walk` and no others.
"""
