"""How far jobs are: /api/jobs, one of them, its events, and how to cancel it."""

from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import StreamingResponse

from resight.apps.service.access import check_may_write
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.job import Job
from resight.apps.service.jobs.listening import Listeners
from resight.apps.service.jobs.shapes import JobShape
from resight.apps.service.refusals import refuse_unknown
from resight.apps.service.state import Service

MOST = 200  # jobs of a list
JobId = Annotated[str, Path(max_length=64, description="As the answer to an upload gave it.")]
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/jobs", tags=["adding"])
    listeners = Listeners()

    @routes.get("", response_model=list[JobShape])
    def list_jobs(collection: Annotated[str | None, Query(max_length=500)] = None) -> list[dict[str, Any]]:
        """The newest first; those of one collection, or of all."""
        names = [service.find_collection(collection)[0]] if collection else list(service.collections)
        intakes = [intake for name, intake in service.jobs.intakes.items() if name in names]
        jobs = [job for intake in intakes for job in intake.journal.list_jobs(MOST)]
        return [job.describe() for job in sorted(jobs, key=lambda job: -job.created)[:MOST]]

    @routes.get("/{job}", response_model=JobShape)
    def read_job(job: JobId) -> dict[str, Any]:
        return _find(service, job)[1].describe()

    @routes.delete("/{job}", response_model=JobShape, dependencies=[Depends(check_may_write)])
    def cancel_job(job: JobId) -> dict[str, Any]:
        """Leaves out what is not stored yet; what is stored stays. A job that is over is given as it is."""
        intake, found = _find(service, job)
        return (intake.cancel(job) or found).describe()

    @routes.get("/{job}/events", response_class=StreamingResponse, responses=STREAM)
    async def follow_job(job: JobId, request: Request) -> StreamingResponse:
        """`progress` with the job whenever it has changed; at last `done` with the job."""
        intake, found = await anyio.to_thread.run_sync(_find, service, job)
        listeners.check_room()

        async def is_over() -> bool:
            return service.stopping.is_set() or await request.is_disconnected()

        events = listeners.follow(intake.journal, found, is_over)
        return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    return routes


def _find(service: Service, job: str) -> tuple[Intake, Job]:
    for intake in service.jobs.intakes.values():
        if found := intake.journal.find(job):
            return intake, found
    raise refuse_unknown("job", job[:80], "jobs that were over long ago are forgotten")
