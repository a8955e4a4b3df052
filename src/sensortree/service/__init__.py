"""Models that are asked over HTTP: a page, an API and a ledger that loses nothing.

::

    app           the whole as one application: errors in one shape, pages, `serve`
     ├─ routes      what comes in, who may ask, what goes out; metrics
     ├─ gate        around every request: its number, token, size, rate, log line
     │   └─ tokens    who asks, for which tenant, with which scopes
     ├─ schemas     what requests, answers and refusals (RFC 9457) look like
     ├─ sessions    examples under way: created, told, corrected, deleted
     │   └─ models    the models, by name and version, and what becomes of them in use
     │       └─ drift_test   alarms that may be looked at any time
     └─ database    one file, one writer: what is acknowledged is on the disk
         └─ ledger    what happened, in a chain of hashes

FastAPI, uvicorn and prometheus_client are imported in this room and nowhere else.
"""
