"""`resight.AsyncClient`: `Client` for asyncio."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

from resight.client import bulk_add, json_values, operations
from resight.client.async_session import AsyncSession
from resight.client.json_values import ServiceAnswer
from resight.client.operations import PARALLEL, POLL
from resight.client.service_values import Job
from resight.client.transport import EventParser, import_httpx
from resight.collection.add import AddReport
from resight.collection.hits import Hits, list_alone
from resight.data.image_inputs import ImageInput, is_batch
from resight.errors import ResightError, ServiceBusy
from resight.progress import Progress, follow
from resight.search.filters import Near
from resight.search.request import StoredImage
from resight.types import Box, Evidence, Hit, Query

Errors = Literal["raise", "return"]


class AsyncClient(AsyncSession):
    """A `Client` for asyncio: the same methods, awaited; one event loop per client.

    `await photos.count()` counts the images, `async for record in photos.records()` lists them, and
    `await photos.find(id)` looks one up. The answers are those of `Client`, but neither explain nor draw themselves,
    which would block: `await photos.explain(answer, hit)` asks for the evidence.

    Args:
        url: The address of the service.
        key: An access key; None: the service wants none.
        collection: A collection by name; None: the first that is served.
        timeout: Seconds to wait for an answer.
        retries: How often to ask again, as for `Client`.

    Examples:
        >>> import asyncio
        >>> import resight
        >>> async def find(query):
        ...     async with resight.AsyncClient("http://127.0.0.1:8080") as photos:
        ...         answer = await photos.ask(query, k=3)
        ...         evidence = await photos.explain(answer, answer[0])
        ...         return answer.verdict, evidence.match.inliers > 100
        >>> asyncio.run(find("query.jpg"))
        ('1 of 3 answers is very likely the same', True)
    """

    @overload
    async def search(
        self,
        image: list[Any] | tuple[Any, ...] | Iterator[Any],
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> list[Hits]: ...

    @overload
    async def search(
        self,
        image: ImageInput | StoredImage | Query,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
    ) -> Hits: ...

    async def search(
        self,
        image: Any,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> Any:
        """Find the images that show the same object. Takes the same arguments as `search` of Client.

        Returns:
            The hits, best first; for a batch of any kind a list of such lists.
        """
        found = await self.ask(image, k, box=box, where=where, near=near, errors=errors, progress=progress)
        return Hits(found.hits) if isinstance(found, ServiceAnswer) else [list_alone(one) for one in found]

    @overload
    async def ask(
        self,
        image: list[Any] | tuple[Any, ...] | Iterator[Any],
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> list[ServiceAnswer]: ...

    @overload
    async def ask(
        self,
        image: ImageInput | StoredImage | Query,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
    ) -> ServiceAnswer: ...

    async def ask(
        self,
        image: Any,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> Any:
        """Search, and return the ranking and the evidence too. Takes the same arguments as `search` of Client.

        Returns:
            The answer; for a batch a list of answers.
        """

        async def ask_one(one: Any) -> ServiceAnswer:
            form = await asyncio.to_thread(operations.make_form, one, k, box, where, near, self.collection)
            return await self._run(operations.ask(form))

        if not is_batch(image):
            return await ask_one(image)
        total = len(image) if hasattr(image, "__len__") else 0
        return await self._ask_all(ask_one, image, errors, progress, total)

    async def _ask_all(
        self, ask_one: Any, images: Iterable[Any], errors: Errors, progress: Progress | bool, total: int
    ) -> list[ServiceAnswer | ResightError]:
        free, done = asyncio.Semaphore(PARALLEL), 0

        async def ask(number: int, image: Any) -> ServiceAnswer | ResightError:
            nonlocal done
            try:
                answer: ServiceAnswer | ResightError = await ask_one(image)
            except ResightError as error:
                if errors == "raise":
                    raise error.at_image(number) from error
                answer = error
            finally:
                free.release()
            done += 1
            if shown:
                shown(done, total)
            return answer

        with follow(progress, "searching") as shown:
            tasks: list[asyncio.Task[ServiceAnswer | ResightError]] = []
            try:
                async with asyncio.TaskGroup() as group:
                    for number, image in enumerate(images, start=1):
                        await free.acquire()
                        tasks.append(group.create_task(ask(number, image)))
            except ExceptionGroup as errors_found:
                raise errors_found.exceptions[0] from None
        return [task.result() for task in tasks]

    async def ask_in_stages(
        self,
        image: Any,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
    ) -> AsyncIterator[ServiceAnswer]:
        """Search for one image, and see the shortlist early. Takes the same arguments as `ask_in_stages` of Client.

        Returns:
            First the shortlist, as soon as it is found, and then the answer of `ask`.
        """
        form = await asyncio.to_thread(operations.make_form, image, k, box, where, near, self.collection)
        async with self._stream(operations.make_search("/api/search/stages", form)) as response:
            async for line in response.aiter_lines():
                if (found := operations.read_stage(line, form)) is not None:
                    yield found

    async def explain(self, answer: ServiceAnswer, hit: Hit) -> Evidence:
        """Show why an image was found. Takes the same arguments as `explain` of Client.

        Returns:
            The verified match, the best pairs of tokens, and heat maps of both images.
        """
        form = operations.find_form(answer)
        return replace(await self._run(operations.explain(form, hit, answer.query.id)), drawer=answer.drawer)

    async def add(self, *sources: Any, progress: Progress | bool | None = True) -> AddReport:
        """Send images, and wait until the service has added them. Takes the same arguments as `add` of Client.

        Returns:
            Counts of added, updated and unchanged images and of other files, and the files that were skipped.
        """
        listed = await asyncio.to_thread(bulk_add.list_sources, sources)
        with follow(progress, "adding") as shown:
            return await self._run(bulk_add.add(listed, self.collection, shown))

    async def submit(self, *sources: Any) -> tuple[Job, ...]:
        """Send images without waiting until they are added. Takes the same arguments as `submit` of Client.

        Returns:
            The jobs, one per request.
        """
        listed = await asyncio.to_thread(bulk_add.list_sources, sources)
        return await self._run(bulk_add.submit(listed, self.collection))

    async def follow(self, job: Job | str) -> AsyncIterator[Job]:
        """Watch a job through the service's stream of events. Takes the same arguments as `follow` of Client.

        Returns:
            The job at once, after each change, and when it is over: `async for job in photos.follow(job)`.
        """
        failures = self._connection.pauses()
        while True:
            try:
                async for latest in self._read_events(job):
                    yield latest
                    failures = self._connection.pauses()
                    if latest.is_over:
                        return
            except ServiceBusy:  # all of its streams are taken
                yield (latest := await self.job(job))
                if latest.is_over:
                    return
                await asyncio.sleep(POLL)
                continue
            if (pause := next(failures, None)) is None:
                raise self._connection.lose_stream()
            await asyncio.sleep(pause)

    async def _read_events(self, job: Job | str) -> AsyncIterator[Job]:
        """Until the stream ends, or breaks."""
        parser = EventParser()
        try:
            async with self._stream(operations.make_events_call(job)) as response:
                async for line in response.aiter_lines():
                    if (event := parser.feed(line)) is not None:
                        yield json_values.read_job(event[1])
        except import_httpx().TransportError:
            return

    async def wait(self, job: Job | str, progress: Progress | bool | None = True) -> Job:
        """Wait until a job is over. Takes the same arguments as `wait` of Client.

        Returns:
            The job: done, failed or cancelled.
        """
        with follow(progress, "adding") as shown:
            async for latest in self.follow(job):
                if shown:
                    shown(latest.done, latest.total)
        return latest
