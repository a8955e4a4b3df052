"""Model files: one JSON document that holds a fitted policy, and no code.

::

    files     save and load: one file, replaced at once or not at all; limits, digest, JSON
    saved     `SavedModel`, which answers as the fitted model did
    model     a policy and its evidence as a document, and back
    problem   classes, sensors, losses, what training saw
    trees     the tree, its flow, decisions, detours
    scorers   classifiers, regressions and transformers; skops for those of others
    codecs    how a value stands in a document, written and read in one place
    fields    values of a document, checked as they are taken

Writing and reading of one thing stand side by side.
"""

from sensortree.persistence.files import load, save

__all__ = ["load", "save"]
