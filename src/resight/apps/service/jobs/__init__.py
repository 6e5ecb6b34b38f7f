"""Images that are added or updated over HTTP: kept durably first, then added in turns.

    intake.py ─▶ journal.py ─▶ 202 … queue.py ─▶ adder.py ─▶ portions.py ─▶ Collection.add
    (uploads)    (promise)           (runner.py, turns.py)

journal.py keeps what was promised, the runner keeps the promise, listening.py tells how far it is, housekeeping.py
removes what nothing refers to any more and has the collection tidied (tidier.py).
"""

from resight.apps.service.jobs.worker import JobRunner

__all__ = ["JobRunner"]
