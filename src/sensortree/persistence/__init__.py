"""Model files: one JSON document that holds a fitted policy, and no code.

::

    files        save and load: one file, replaced at once or not at all
     └─ model    a policy and its evidence as a document, and back
         ├─ about, problem, trees, decisions, classifiers, calibration, baselines,
         │   │  transformers, detours, outages, curve: its sections
         │   └─ foreign    what only skops can write
         ├─ fields   values of a document, checked as they are taken
         └─ text     the limits of a file, its digest; JSON and nothing beyond

Writing and reading of one thing stand side by side.
"""

from sensortree.persistence.files import load, save

__all__ = ["load", "save"]
