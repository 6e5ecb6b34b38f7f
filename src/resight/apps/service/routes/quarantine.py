"""Accepted uploads that could not be added: /api/quarantine lists them, and below it they are retried or discarded.

The service keeps their files until a client with write access decides.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from resight.apps.service.auth import require_write_access
from resight.apps.service.error_responses import require_content_type
from resight.apps.service.request_bodies import QuarantineBody
from resight.apps.service.schemas import QuarantinedFile, QuarantineResult
from resight.apps.service.state import Service

MAX_LISTED = 1000
JSON = "application/json"


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/quarantine", tags=["adding"])
    changing = [Depends(require_write_access), Depends(require_content_type(JSON))]

    @routes.get("", response_model=list[QuarantinedFile])
    def list_quarantine(collection: Annotated[str | None, Query(max_length=500)] = None) -> list[dict[str, Any]]:
        """The newest first, at most 1,000; those of one collection, or of all."""
        intakes = service.find_intakes(collection)
        found = [one for intake in intakes for one in intake.quarantine.list_uploads(MAX_LISTED)]
        return [one.serialize() for one in sorted(found, key=lambda one: -one.since)[:MAX_LISTED]]

    @routes.post("/retry", response_model=QuarantineResult, dependencies=changing)
    def retry_uploads(body: QuarantineBody) -> dict[str, Any]:
        """Adds uploads again, as part of their own jobs."""
        intake = service.find_intake(body.collection)
        with service.audit.record("retry", intake.name) as entry:
            found = intake.quarantine.retry(body.keys)
            entry.images = len(found)
        service.jobs.wake()
        return {"changed": len(found), "missing": [key for key in body.keys if key not in found]}

    @routes.post("/discard", response_model=QuarantineResult, dependencies=changing)
    def discard_uploads(body: QuarantineBody) -> dict[str, Any]:
        """Deletes uploads for good."""
        intake = service.find_intake(body.collection)
        with service.audit.record("discard", intake.name) as entry:
            found = intake.quarantine.discard(body.keys)
            entry.images = len(found)
        intake.has_orphans.set()
        service.jobs.wake()
        return {"changed": len(found), "missing": [key for key in body.keys if key not in found]}

    return routes
