"""Buying for many rows in waves: each reading is bought once, whatever happens.

::

    rows ─► blocks ─► waves: order ─► ask ─► settle ─► walk on ─► answers
                              └───────── ledger ─────────┘

    acquire     `acquire`: cuts rows into parts, for threads or the workers of a client
    block       one block of rows, wave by wave, until all have stopped
    rows        the rows of a block: what is known of them, where they stand
    oracles     `Lookup`: how a paid oracle is asked, and how often if it fails
    ledger      `Ledger`: what was ordered, what came of it, what was answered
    databases   `SqliteLedger` and `PostgresLedger`
    bill        `Bill` and `Answers`: what a ledger says

What users import from here they import from `sensortree.dask`.
"""
