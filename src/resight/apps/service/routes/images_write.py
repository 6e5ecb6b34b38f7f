"""How far jobs are: /api/jobs, one of them, its events, and how to cancel it.

Images that come and go: POST and PUT promise (202 and a job), DELETE removes at once.

What is answered is durable. A promise is kept by the jobs thread of any process, also after a crash.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import APIRouter, Depends, Form, Path, Query, Request
from fastapi.responses import StreamingResponse

from resight.apps.service.auth import check_may_write
from resight.apps.service.error_responses import Refusal, refuse_unknown, takes
from resight.apps.service.jobs.events import Listeners
from resight.apps.service.jobs.intake import Intake
from resight.apps.service.jobs.models import Arrival, Job
from resight.apps.service.jobs.uploads import check_ids, read_attributes, read_attributes_of_files, receive_files
from resight.apps.service.schemas import AddFields, DeleteBody, JobAnswer, JobShape, Removed, RemovedOne, UpdateFields
from resight.apps.service.state import Service
from resight.types import Skipped

MOST = 200  # jobs of a list
JobId = Annotated[str, Path(max_length=64, description="As the answer to an upload gave it.")]
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}


def router_jobs(service: Service) -> APIRouter:
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


PATIENCE = 20.0  # seconds that a delete waits for its turn: tidying a large collection takes some
RETRY = 5.0  # seconds
WRITERS, WAITING = 8, 64  # threads that write, and requests that may wait for one
FORM = "multipart/form-data"
ImageId = Annotated[str, Query(description="The image's id.", max_length=2000)]
InCollection = Annotated[str | None, Query(description="By name; without, the first.", max_length=500)]
Made = TypeVar("Made")


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["adding"], dependencies=[Depends(check_may_write)])
    threads = anyio.CapacityLimiter(WRITERS)

    async def write(work: Callable[[], Made]) -> Made:
        """In a thread, of which there are few: writers take turns anyway."""
        if threads.statistics().tasks_waiting >= WAITING:
            raise Refusal(429, "too many requests to write at once", fix="try again", retry_after=RETRY)
        return await anyio.to_thread.run_sync(work, limiter=threads)

    @routes.post("/api/images", status_code=202, response_model=JobAnswer, dependencies=[Depends(takes(FORM))])
    async def add_images(fields: Annotated[AddFields, Form(media_type=FORM)]) -> dict[str, Any]:
        """Takes on images: they are kept on disk when this answers, and added to the collection soon after.

        Files that cannot be decoded are listed in the job's `skipped`; a 400 when there is no other.
        """
        name, _ = service.find_collection(fields.collection)
        intake = service.jobs.intakes[name]
        _check_count(len(fields.images), len(fields.ids), service.settings.max_files)
        check_ids(fields.ids)
        names = [file.filename or "" for file in fields.images]
        attributes = read_attributes_of_files(fields.attributes, names)
        received = await receive_files(fields.images, attributes, service.decoders)
        arrivals = [one for one in received if isinstance(one, Arrival)]
        skipped = [one for one in received if isinstance(one, Skipped)]
        ids = [id for id, one in zip(fields.ids, received, strict=False) if isinstance(one, Arrival)]
        if not arrivals:
            raise _refuse_all(skipped)
        job = await write(lambda: intake.add(arrivals, ids, skipped))
        service.jobs.wake()
        return {"job": job.describe()}

    @routes.put("/api/image", status_code=202, response_model=JobAnswer, dependencies=[Depends(takes(FORM))])
    async def update_image(
        id: ImageId, fields: Annotated[UpdateFields, Form(media_type=FORM)], collection: InCollection = None
    ) -> dict[str, Any]:
        """Takes on another file for an image, other attributes in place of all that it has, or both."""
        name, _ = service.find_collection(collection)
        intake = service.jobs.intakes[name]
        if fields.image is None and fields.attributes is None:
            raise Refusal(422, "nothing to change", expected="image, attributes or both", fix="send one of them")
        attributes = None if fields.attributes is None else read_attributes(fields.attributes)
        received = await receive_files([fields.image] if fields.image else [], [{}], service.decoders)
        arrivals = [one for one in received if isinstance(one, Arrival)]
        if len(arrivals) < len(received):
            raise _refuse_all([one for one in received if isinstance(one, Skipped)])
        job = await write(lambda: intake.update(id, arrivals[0] if arrivals else None, attributes))
        service.jobs.wake()
        return {"job": job.describe()}

    @routes.delete("/api/image", response_model=RemovedOne)
    async def delete_image(id: ImageId, collection: InCollection = None) -> dict[str, Any]:
        """Removes an image at once, also one that waits to be added. Of files, only those that were uploaded go."""
        name, _ = service.find_collection(collection)
        removal = await write(lambda: service.jobs.intakes[name].delete([id], PATIENCE))
        if not removal.removed:
            raise refuse_unknown("image", id[:80], "check the id")
        service.jobs.wake()
        return {"removed": removal.removed}

    @routes.post("/api/images/delete", response_model=Removed, dependencies=[Depends(takes("application/json"))])
    async def delete_images(body: DeleteBody) -> dict[str, Any]:
        """Removes many images at once; ids that are not there are listed."""
        name, _ = service.find_collection(body.collection)
        removal = await write(lambda: service.jobs.intakes[name].delete(body.ids, PATIENCE))
        service.jobs.wake()
        return {"removed": removal.removed, "missing": list(removal.missing)}

    together = APIRouter()
    together.include_router(routes)
    together.include_router(router(service))
    return together


def _check_count(files: int, ids: int, most: int) -> None:
    if files > most:
        raise Refusal(
            413,
            "too many files at once",
            expected=f"at most {most}",
            actual=str(files),
            fix="send them in several requests",
        )
    if ids and ids != files:
        raise Refusal(
            422,
            "ids and files do not go together",
            expected=f"{files} ids, one a file, or none",
            actual=f"{ids} ids",
            fix="send the field ids once for every file",
        )


def _refuse_all(skipped: Sequence[Skipped]) -> Refusal:
    return Refusal(
        400,
        "none of the files can be used",
        expected="whole JPEG, PNG, WebP, TIFF, GIF, BMP, PNM or JPEG 2000 files",
        actual="; ".join(f"{one.path}: {one.reason}" for one in skipped[:20]),
        fix="open them in an image viewer; export them again if they do not show whole",
    )
