"""The same as sync_session.py for `AsyncClient`.

Reading image files and decoding JSON happen in threads: the event loop never waits for them.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from resight.client import operations
from resight.client.operations import SIDE, Pause, Steps, advance
from resight.client.service_values import CollectionInfo, Health, Job, QuarantinedUpload
from resight.client.transport import RETRIES, TIMEOUT, Call, Connection, import_httpx, make_error, read_json
from resight.collection.attributes import AttributeSummary
from resight.collection.crater_positions import CraterPositions
from resight.data import image_files
from resight.errors import ResightError
from resight.geodesy import Positions
from resight.search.filters import Near
from resight.store import ImageRecord
from resight.types import Attribute

if TYPE_CHECKING:
    import httpx
    from PIL import Image

Result = TypeVar("Result")


class AsyncSession:
    """The connections to one service, for one event loop of asyncio."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        collection: str | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
    ) -> None:
        self.collection = collection
        self._connection = Connection(url, key, timeout, retries)
        self._http: httpx.AsyncClient = import_httpx().AsyncClient(**self._connection.settings)

    def use(self, collection: str) -> Self:
        """Choose another collection of the same service.

        Args:
            collection: Its name, as `collections` lists it.

        Returns:
            A client that shares the connections of this one; closing either closes both.
        """
        other = object.__new__(type(self))
        other.collection, other._connection, other._http = collection, self._connection, self._http
        return other

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._connection.url}: {self.collection or 'the first collection'}>"

    async def count(self) -> int:
        """Count the images.

        Returns:
            Their number.
        """
        return (await self._run(operations.list_page((), None, self.collection, None, limit=1)))[2]

    async def records(self, where: Sequence[str] = (), near: Near | None = None) -> AsyncIterator[ImageRecord]:
        """Read what the service stores about its images. Takes the same arguments as `records` of Client.

        Returns:
            Their records, one by one: `async for record in photos.records()`.
        """
        after: str | None = None
        while True:
            records, after, _ = await self._run(operations.list_page(where, near, self.collection, after))
            for record in records:
                yield record
            if after is None:
                return

    async def find(self, id: str) -> ImageRecord | None:
        """Read what the service stores about one image. Takes the same arguments as `find` of Client.

        Returns:
            Its record; None if the collection does not hold it.
        """
        return await self._run(operations.look_up(id, self.collection))

    async def picture(self, id: str, side: int = SIDE) -> "Image.Image":
        """Fetch a stored image. Takes the same arguments as `picture` of Client.

        Returns:
            A PIL image, upright.
        """
        from PIL import Image

        data = await self._read_file(id, side)
        return Image.fromarray((await asyncio.to_thread(image_files.read_bytes, data, id)).pixels)

    async def _read_file(self, id: str, side: int) -> bytes:
        response = await self._send(operations.make_picture_call(id, side, self.collection))
        if not response.is_success:
            raise make_error(response)
        return response.content

    async def update(self, id: str, image: Any = None, attributes: Mapping[str, Attribute] | None = None) -> Job:
        """Replace the file or the attributes of an image. Takes the same arguments as `update` of Client.

        Returns:
            The job that does so; `wait` waits for it.
        """
        return await self._run(operations.update(id, image, attributes, self.collection))

    async def delete(self, ids: str | Iterable[str]) -> int:
        """Remove images by id, at once. Takes the same arguments as `delete` of Client.

        Returns:
            How many of them the collection held.
        """
        return await self._run(operations.delete(ids, self.collection))

    async def attributes(self) -> tuple[AttributeSummary, ...]:
        """List the attributes that filters can use.

        Returns:
            Their names, kinds and common values.
        """
        return await self._run(operations.list_attributes(self.collection))

    async def positions(self) -> Positions:
        """Read where images were taken.

        Returns:
            The positions of the images that have `lat` and `lon`, at most 20,000.
        """
        return await self._run(operations.list_positions(self.collection))

    async def craters(self) -> CraterPositions:
        """Read which craters the images show, and where on their globe these lie.

        Returns:
            The craters, at most 30,000, the largest first.
        """
        return await self._run(operations.list_craters(self.collection))

    async def collections(self) -> tuple[CollectionInfo, ...]:
        """List the collections that this key may use.

        Returns:
            Their names, sizes and recipes; the first is the default.
        """
        return await self._run(operations.list_collections())

    async def health(self) -> Health:
        """Ask how the service is; it answers without a key, too, but then names neither images nor collections.

        Returns:
            Its status, its version and what is wrong.
        """
        return await self._run(operations.read_health())

    async def jobs(self) -> tuple[Job, ...]:
        """List the jobs that add images.

        Returns:
            The newest 200, of this client's collection, or of all.
        """
        return await self._run(operations.list_jobs(self.collection))

    async def job(self, job: Job | str) -> Job:
        """Look how far a job is. Takes the same arguments as `job` of Client.

        Returns:
            Its present state.
        """
        return await self._run(operations.find_job(job))

    async def cancel(self, job: Job | str) -> Job:
        """Skip the images of a job that are not stored yet. Takes the same arguments as `cancel` of Client.

        Returns:
            Its state afterwards.
        """
        return await self._run(operations.cancel(job))

    async def quarantine(self) -> tuple[QuarantinedUpload, ...]:
        """List the accepted uploads that could not be added.

        Returns:
            The newest 1,000, of this client's collection, or of all.
        """
        return await self._run(operations.list_quarantine(self.collection))

    async def retry(self, uploads: Iterable[QuarantinedUpload | str]) -> int:
        """Add uploads in quarantine again. Takes the same arguments as `retry` of Client.

        Returns:
            How many there were.
        """
        return await self._run(operations.decide_quarantined("retry", uploads, self.collection))

    async def discard(self, uploads: Iterable[QuarantinedUpload | str]) -> int:
        """Delete uploads in quarantine for good. Takes the same arguments as `discard` of Client.

        Returns:
            How many there were.
        """
        return await self._run(operations.decide_quarantined("discard", uploads, self.collection))

    async def _run(self, steps: Steps[Result]) -> Result:
        is_over, now = await asyncio.to_thread(advance, steps)
        while not is_over:
            found, error = None, None
            try:
                if isinstance(now, Pause):
                    await asyncio.sleep(now.seconds)
                else:
                    found = read_json(await self._send(now), now)
            except ResightError as raised:
                error = raised
            is_over, now = await asyncio.to_thread(advance, steps, found, error)
        result: Result = now
        return result

    async def _send(self, call: Call, stream: bool = False) -> "httpx.Response":
        """The response, after as many attempts as it takes."""
        pauses = self._connection.pauses()
        while True:
            wait = next(pauses, None)
            try:
                request = self._http.build_request(call.method, call.path, **call.arguments())
                response = await self._http.send(request, stream=stream)
                wait = self._connection.find_pause(response, wait)
                if wait is None:
                    return response
                await response.aclose()
            except import_httpx().TransportError as error:
                wait = self._connection.find_pause_after(call, error, wait)
                if wait is None:
                    raise self._connection.to_error(error) from error
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def _stream(self, call: Call) -> AsyncIterator["httpx.Response"]:
        """A response that is read as it arrives."""
        response = await self._send(call, stream=True)
        try:
            if not response.is_success:
                await response.aread()
                raise make_error(response)
            yield response
        finally:
            await response.aclose()
