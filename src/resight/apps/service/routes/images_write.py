"""Adding, changing and deleting images, and the jobs that do so.

POST and PUT accept (202 and a job), DELETE removes at once. Every answer is durable: the job worker of any process
carries out an accepted job, also after a crash.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import APIRouter, Depends, Form, Path, Query, Request
from fastapi.responses import StreamingResponse

from resight.apps.service.auth import require_write_access
from resight.apps.service.error_responses import ApiError, not_found, require_content_type
from resight.apps.service.jobs.events import EventStreams
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.models import Job, ReceivedFile
from resight.apps.service.jobs.uploads import check_ids, read_attributes, read_attributes_of_files, receive_files
from resight.apps.service.request_bodies import AddFields, DeleteBody, UpdateFields
from resight.apps.service.schemas import JobAnswer, JobInfo, Removed, RemovedOne
from resight.apps.service.state import Service
from resight.data.formats import DECODED
from resight.types import Skipped

PATIENCE = 20.0  # seconds that a delete waits for the write lock: compacting a large collection holds it for some
RETRY = 5.0  # seconds
WRITERS, WAITING = 8, 64  # threads that write, and requests that may wait for one
MAX_JOBS = 200  # per list
FORM = "multipart/form-data"
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}
ImageId = Annotated[str, Query(description="The image's id.", max_length=2000)]
InCollection = Annotated[str | None, Query(description="A collection by name; by default the first.", max_length=500)]
JobId = Annotated[str, Path(max_length=64, description="From the answer to an upload.")]
Result = TypeVar("Result")


def router(service: Service) -> APIRouter:
    both = APIRouter()
    both.include_router(_make_write_routes(service))
    both.include_router(_make_job_routes(service))
    return both


def _make_write_routes(service: Service) -> APIRouter:
    routes = APIRouter(tags=["adding"], dependencies=[Depends(require_write_access)])
    threads = anyio.CapacityLimiter(WRITERS)

    async def write(work: Callable[[], Result]) -> Result:
        """Run in one of a few threads: writers wait for each other anyway."""
        if threads.statistics().tasks_waiting >= WAITING:
            raise ApiError(429, "too many write requests at once", fix="try again", retry_after=RETRY)
        return await anyio.to_thread.run_sync(work, limiter=threads)

    @routes.post(
        "/api/images", status_code=202, response_model=JobAnswer, dependencies=[Depends(require_content_type(FORM))]
    )
    async def add_images(fields: Annotated[AddFields, Form(media_type=FORM)]) -> dict[str, Any]:
        """Accepts images: they are stored on disk when this answers, and added to the collection soon after.

        The job's `skipped` lists the files that cannot be decoded; a 400 when there are no others.
        """
        intake = service.find_intake(fields.collection)
        _check_count(len(fields.images), len(fields.ids), service.settings.max_files)
        check_ids(fields.ids)
        names = [file.filename or "" for file in fields.images]
        attributes = read_attributes_of_files(fields.attributes, names)
        received = await receive_files(fields.images, attributes, service.decode_pool)
        files = [one for one in received if isinstance(one, ReceivedFile)]
        skipped = [one for one in received if isinstance(one, Skipped)]
        ids = [id for id, one in zip(fields.ids, received, strict=False) if isinstance(one, ReceivedFile)]
        if not files:
            raise _reject_all(skipped)
        with service.audit.record("add", intake.name, len(files)):
            job = await write(lambda: intake.add(files, ids, skipped))
        service.jobs.wake()
        return {"job": job.serialize()}

    @routes.put(
        "/api/image", status_code=202, response_model=JobAnswer, dependencies=[Depends(require_content_type(FORM))]
    )
    async def update_image(
        id: ImageId, fields: Annotated[UpdateFields, Form(media_type=FORM)], collection: InCollection = None
    ) -> dict[str, Any]:
        """Accepts a new file for an image, new attributes in place of all that it has, or both."""
        intake = service.find_intake(collection)
        if fields.image is None and fields.attributes is None:
            raise ApiError(422, "nothing to change", expected="image, attributes or both", fix="send one of them")
        attributes = None if fields.attributes is None else read_attributes(fields.attributes)
        received = await receive_files([fields.image] if fields.image else [], [{}], service.decode_pool)
        files = [one for one in received if isinstance(one, ReceivedFile)]
        if len(files) < len(received):
            raise _reject_all([one for one in received if isinstance(one, Skipped)])
        with service.audit.record("update", intake.name):
            job = await write(lambda: intake.update(id, files[0] if files else None, attributes))
        service.jobs.wake()
        return {"job": job.serialize()}

    @routes.delete("/api/image", response_model=RemovedOne)
    async def delete_image(id: ImageId, collection: InCollection = None) -> dict[str, Any]:
        """Removes an image at once, stored or waiting. Of the files, only uploads are deleted."""
        intake = service.find_intake(collection)
        with service.audit.record("delete", intake.name) as entry:
            removal = await write(lambda: intake.delete([id], PATIENCE))
            entry.images = removal.removed
        if not removal.removed:
            raise not_found("image", id[:80], "check the id")
        service.jobs.wake()
        return {"removed": removal.removed}

    @routes.post(
        "/api/images/delete",
        response_model=Removed,
        dependencies=[Depends(require_content_type("application/json"))],
    )
    async def delete_images(body: DeleteBody) -> dict[str, Any]:
        """Removes many images at once; lists the ids that do not exist."""
        intake = service.find_intake(body.collection)
        with service.audit.record("delete", intake.name, len(body.ids)) as entry:
            removal = await write(lambda: intake.delete(body.ids, PATIENCE))
            entry.images = removal.removed
        service.jobs.wake()
        return {"removed": removal.removed, "missing": list(removal.missing)}

    return routes


def _make_job_routes(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/jobs", tags=["adding"])
    streams = EventStreams()

    @routes.get("", response_model=list[JobInfo])
    def list_jobs(collection: Annotated[str | None, Query(max_length=500)] = None) -> list[dict[str, Any]]:
        """The newest first; those of one collection, or of all."""
        jobs = [job for intake in service.find_intakes(collection) for job in intake.store.list_jobs(MAX_JOBS)]
        return [job.serialize() for job in sorted(jobs, key=lambda job: -job.created)[:MAX_JOBS]]

    @routes.get("/{job}", response_model=JobInfo)
    def read_job(job: JobId) -> dict[str, Any]:
        return _find_job(service, job)[1].serialize()

    @routes.delete("/{job}", response_model=JobInfo, dependencies=[Depends(require_write_access)])
    def cancel_job(job: JobId) -> dict[str, Any]:
        """Skips the images that are not stored yet; stored ones stay. A finished job is returned unchanged."""
        intake, found = _find_job(service, job)
        with service.audit.record("cancel", intake.name, found.total - found.done):
            return (intake.cancel(job) or found).serialize()

    @routes.get("/{job}/events", response_class=StreamingResponse, responses=STREAM)
    async def follow_job(job: JobId, request: Request) -> StreamingResponse:
        """Progress as server-sent events: `progress` at once and after each change, `done` at the end.

        The data of both is the job. Without news, a comment follows every ten seconds. The stream also ends when the
        service stops: open it again then. A process has 64 streams; further ones get 429, and can poll the job.
        """
        intake, found = await anyio.to_thread.run_sync(_find_job, service, job)
        streams.check_limit()

        async def is_over() -> bool:
            return service.stopping.is_set() or await request.is_disconnected()

        events = streams.follow(intake.store, found, is_over)
        return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    return routes


def _find_job(service: Service, job: str) -> tuple[Intake, Job]:
    for intake in service.find_intakes(None):
        if found := intake.store.find(job):
            return intake, found
    raise not_found("job", job[:80], "the service forgets jobs some time after they end")


def _check_count(files: int, ids: int, limit: int) -> None:
    if files > limit:
        raise ApiError(
            413,
            "too many files at once",
            expected=f"at most {limit}",
            actual=str(files),
            fix="send them in several requests",
        )
    if ids and ids != files:
        raise ApiError(
            422,
            "the numbers of ids and files differ",
            expected=f"{files} ids, one per file, or none",
            actual=f"{ids} ids",
            fix="send the field ids once per file",
        )


def _reject_all(skipped: Sequence[Skipped]) -> ApiError:
    return ApiError(
        400,
        "none of the files can be used",
        expected=f"complete files in one of the formats {', '.join(DECODED)}",
        actual="; ".join(f"{one.path}: {one.reason}" for one in skipped[:20]),
        fix="open them in an image viewer; export them again if they look incomplete",
    )
