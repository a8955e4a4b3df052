"""Models that are asked over HTTP: a page, an API and a ledger that loses nothing.

::

    run           `serve`: binds a port, refuses what is not safe, ends in order
     └─ app       the whole as one application, with pages and operations
         ├─ model_routes, session_routes   what comes in, who may ask, what goes out
         ├─ service   models, database and counts, for all routes
         ├─ gate      around every request: its number, token, size, rate, log line
         │   ├─ tokens    who asks, for which tenant, with which scopes
         │   ├─ limits    how much, how often
         │   └─ metrics   counts and times, as Prometheus reads them
         ├─ problems  every error in one shape (RFC 9457)
         ├─ schemas   what requests and answers look like
         ├─ pages     what a browser is shown
         ├─ sessions  examples under way: created, told, corrected, deleted
         │   ├─ shelf     the models, by name and version
         │   └─ watch     what becomes of a model in use, beside its training
         │       └─ betting   alarms that may be looked at any time
         └─ database  one file, one writer: what is acknowledged is on the disk
             └─ ledger    what happened, in a chain of hashes

FastAPI and uvicorn are imported in this room and nowhere else.
"""
