"""What `Client` asks a service beside searches and additions: its images, jobs, quarantine, collections and health."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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


class Session:
    """The connections to one service. Threads may share it."""

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
        self._http: httpx.Client = import_httpx().Client(**self._connection.settings)

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

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._connection.url}: {self.collection or 'the first collection'}>"

    def __len__(self) -> int:
        return self._run(operations.list_page((), None, self.collection, None, limit=1))[2]

    def __bool__(self) -> bool:
        return True  # without asking the service how many images there are

    def __iter__(self) -> Iterator[str]:
        return (record.id for record in self.records())

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.find(id) is not None

    def __getitem__(self, id: str) -> ImageRecord:
        return self._run(operations.find_record(id, self.collection))

    def records(self, where: Sequence[str] = (), near: Near | None = None) -> Iterator[ImageRecord]:
        """Read what the service stores about its images, in the order of their ids.

        Args:
            where: Conditions on attributes, as for `search`.
            near: Latitude, longitude and a radius in metres.

        Returns:
            Their records. `path` is the id where the service names no paths, and `modified_ns` is 0.
        """
        after: str | None = None
        while True:
            records, after, _ = self._run(operations.list_page(where, near, self.collection, after))
            yield from records
            if after is None:
                return

    def find(self, id: str) -> ImageRecord | None:
        """Read what the service stores about one image.

        Args:
            id: The image.

        Returns:
            Its record; None if the collection does not hold it.
        """
        return self._run(operations.look_up(id, self.collection))

    def picture(self, id: str, side: int = SIDE) -> "Image.Image":
        """Fetch a stored image, re-encoded without metadata.

        Args:
            id: The image.
            side: The longer side in pixels, rounded up to a size that the service keeps.

        Returns:
            A PIL image, upright.
        """
        from PIL import Image

        return Image.fromarray(image_files.read_bytes(self._read_file(id, side), id).pixels)

    def _read_file(self, id: str, side: int) -> bytes:
        response = self._send(operations.make_picture_call(id, side, self.collection))
        if not response.is_success:
            raise make_error(response)
        return response.content

    def update(self, id: str, image: Any = None, attributes: Mapping[str, Attribute] | None = None) -> Job:
        """Replace the file of an image, all of its attributes, or both.

        Args:
            id: The image.
            image: The new file or picture; None: it stays.
            attributes: The new attributes in place of all that it has; None: they stay.

        Returns:
            The job that does so; `wait` waits for it.
        """
        return self._run(operations.update(id, image, attributes, self.collection))

    def delete(self, ids: str | Iterable[str]) -> int:
        """Remove images by id, at once. Of their files, the service deletes those that were uploaded.

        Args:
            ids: One id, or several; unknown ids are ignored.

        Returns:
            How many of them the collection held.
        """
        return self._run(operations.delete(ids, self.collection))

    def attributes(self) -> tuple[AttributeSummary, ...]:
        """List the attributes that filters can use.

        Returns:
            Their names, kinds and common values.
        """
        return self._run(operations.list_attributes(self.collection))

    def positions(self) -> Positions:
        """Read where images were taken.

        Returns:
            The positions of the images that have `lat` and `lon`, at most 20,000.
        """
        return self._run(operations.list_positions(self.collection))

    def craters(self) -> CraterPositions:
        """Read which craters the images show, and where on their globe these lie.

        Returns:
            The craters, at most 30,000, the largest first.
        """
        return self._run(operations.list_craters(self.collection))

    def collections(self) -> tuple[CollectionInfo, ...]:
        """List the collections that this key may use.

        Returns:
            Their names, sizes and recipes; the first is the default.
        """
        return self._run(operations.list_collections())

    def health(self) -> Health:
        """Ask how the service is; it answers without a key, too, but then names neither images nor collections.

        Returns:
            Its status, its version and what is wrong.
        """
        return self._run(operations.read_health())

    def jobs(self) -> tuple[Job, ...]:
        """List the jobs that add images.

        Returns:
            The newest 200, of this client's collection, or of all.
        """
        return self._run(operations.list_jobs(self.collection))

    def job(self, job: Job | str) -> Job:
        """Look how far a job is.

        Args:
            job: A job, or its id.

        Returns:
            Its present state.
        """
        return self._run(operations.find_job(job))

    def cancel(self, job: Job | str) -> Job:
        """Skip the images of a job that are not stored yet; stored ones stay.

        Args:
            job: A job, or its id.

        Returns:
            Its state afterwards.
        """
        return self._run(operations.cancel(job))

    def quarantine(self) -> tuple[QuarantinedUpload, ...]:
        """List the accepted uploads that could not be added.

        Returns:
            The newest 1,000, of this client's collection, or of all.
        """
        return self._run(operations.list_quarantine(self.collection))

    def retry(self, uploads: Iterable[QuarantinedUpload | str]) -> int:
        """Add uploads in quarantine again.

        Args:
            uploads: Uploads, or their keys.

        Returns:
            How many there were.
        """
        return self._run(operations.decide_quarantined("retry", uploads, self.collection))

    def discard(self, uploads: Iterable[QuarantinedUpload | str]) -> int:
        """Delete uploads in quarantine for good.

        Args:
            uploads: Uploads, or their keys.

        Returns:
            How many there were.
        """
        return self._run(operations.decide_quarantined("discard", uploads, self.collection))

    def _run(self, steps: Steps[Result]) -> Result:
        is_over, now = advance(steps)
        while not is_over:
            found, error = None, None
            try:
                if isinstance(now, Pause):
                    time.sleep(now.seconds)
                else:
                    found = read_json(self._send(now), now)
            except ResightError as raised:
                error = raised
            is_over, now = advance(steps, found, error)
        result: Result = now
        return result

    def _send(self, call: Call, stream: bool = False) -> "httpx.Response":
        """The response, after as many attempts as it takes."""
        pauses = self._connection.pauses()
        while True:
            wait = next(pauses, None)
            try:
                request = self._http.build_request(call.method, call.path, **call.arguments())
                response = self._http.send(request, stream=stream)
                wait = self._connection.find_pause(response, wait)
                if wait is None:
                    return response
                response.close()
            except import_httpx().TransportError as error:
                wait = self._connection.find_pause_after(call, error, wait)
                if wait is None:
                    raise self._connection.to_error(error) from error
            time.sleep(wait)

    @contextmanager
    def _stream(self, call: Call) -> Iterator["httpx.Response"]:
        """A response that is read as it arrives."""
        response = self._send(call, stream=True)
        try:
            if not response.is_success:
                response.read()
                raise make_error(response)
            yield response
        finally:
            response.close()
