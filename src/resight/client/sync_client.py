"""`resight.Client`: a collection that a service holds, with the methods and the values of `Collection`."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any, Literal, overload

from resight.client import bulk_add, json_values, operations
from resight.client.json_values import SearchForm, ServiceAnswer
from resight.client.operations import PARALLEL, POLL, SIDE
from resight.client.service_values import Job
from resight.client.sync_session import Session
from resight.client.transport import EventParser, import_httpx
from resight.collection.add import AddReport
from resight.collection.hits import Hits, list_alone
from resight.data import image_files
from resight.data.image_inputs import ImageInput, is_batch
from resight.errors import ResightError, ServiceBusy
from resight.progress import Progress, follow
from resight.search.filters import Near
from resight.search.request import StoredImage
from resight.types import Box, Evidence, Hit, Picture, Query

Errors = Literal["raise", "return"]


class Client(Session):
    """A collection that `resight serve` serves, with the methods of `Collection`.

    It takes the same arguments, returns the same values and raises ResightErrors with the service's own words; a key
    that is missing or wrong is an AccessDenied, and a service that does not answer a ServiceError. Connections are
    reused, threads may share a client, and `close()` or `with` closes it. It needs the extra `client`.

    `len()` counts the images, iterating gives their ids, `id in photos` looks one up, and `photos[id]` is its record.

    Args:
        url: The address of the service.
        key: An access key; None: the service wants none.
        collection: A collection by name; None: the first that is served.
        timeout: Seconds to wait for an answer.
        retries: How often to ask again where the service refuses for now (429, 503; it names the seconds to wait), or
            the connection breaks.

    Examples:
        >>> import resight
        >>> photos = resight.Client("http://127.0.0.1:8080")
        >>> len(photos), "eiffel-2.png" in photos, photos["eiffel-2.png"].size
        (10, True, (480, 360))
        >>> for hit in photos.search("query.jpg", k=1):
        ...     print(hit.id, hit.probability > 0.98)
        eiffel-2.png True
        >>> answer = photos.ask("query.jpg", k=3)
        >>> answer.verdict, answer[0].located_by
        ('1 of 3 answers is very likely the same', 'homography')
        >>> answer.explain(answer[0]).match.inliers > 100
        True
        >>> photos.add({"tower": "query.jpg"}).added
        1
        >>> photos.delete("tower")
        1
        >>> photos.close()
    """

    @overload
    def search(
        self,
        image: list[Any] | tuple[Any, ...],
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> list[Hits]: ...

    @overload
    def search(
        self,
        image: Iterator[Any],
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> Iterator[Hits]: ...

    @overload
    def search(
        self,
        image: ImageInput | StoredImage | Query,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
    ) -> Hits: ...

    def search(
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
        """Find the images that show the same object as the query.

        A text is an address if it begins with http://, https://, s3:// or another scheme; otherwise the path of a file
        here, and where there is no such file, the id of an image of the service.

        Args:
            image: An image in any form that `Collection.search` takes. Files and bytes are sent as they are, pixels as
                PNG. A list, tuple, iterator or 4-dimensional array is a batch: several are searched for at once.
            k: The number of hits; fewer if fewer images meet the filters.
            box: The part of the query to look for: x0, y0, x1, y1 in pixels of the upright original.
            where: Conditions on attributes, such as "label=gate" or "year>=1900"; a hit meets all of them.
            near: Latitude, longitude and a radius in metres.
            errors: For a batch: "raise" ends it at an image that cannot be read; "return" puts the error in the place
                of its result.
            progress: For a batch: True shows a bar in a notebook, False none; or a function, called with the number of
                images done and in all (0: not known).

        Returns:
            The hits, best first. For a batch a list of such lists; for an iterator an iterator over them.

        Raises:
            InputError: The query cannot be decoded, or a field is wrong.
            ServiceError: The service does not answer, refuses the key, or is busy.

        Examples:
            >>> import resight
            >>> with resight.Client("http://127.0.0.1:8080") as photos:
            ...     [hits[0].id for hits in photos.search(["query.jpg", "castle.png"], k=1)]  # a file, and a stored id
            ['eiffel-2.png', 'castle.png']
        """
        found = self.ask(image, k, box=box, where=where, near=near, errors=errors, progress=progress)
        if isinstance(found, ServiceAnswer):
            return Hits(found.hits)
        return [list_alone(one) for one in found] if isinstance(found, list) else map(list_alone, found)

    @overload
    def ask(
        self,
        image: list[Any] | tuple[Any, ...],
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> list[ServiceAnswer]: ...

    @overload
    def ask(
        self,
        image: Iterator[Any],
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
        errors: Errors = "raise",
        progress: Progress | bool = True,
    ) -> Iterator[ServiceAnswer]: ...

    @overload
    def ask(
        self,
        image: ImageInput | StoredImage | Query,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
    ) -> ServiceAnswer: ...

    def ask(
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
        """Search, and return the ranking and the evidence too. Takes the same arguments as `search`.

        Returns:
            The answer; its `explain` asks the service why an image was found. For a batch as many answers.
        """

        def ask_one(one: Any) -> ServiceAnswer:
            form = operations.make_form(one, k, box, where, near, self.collection)
            return self._run(operations.ask(form, self._explain, self._read_stored))

        if not is_batch(image):
            return ask_one(image)
        total = len(image) if hasattr(image, "__len__") else 0
        found = self._ask_all(ask_one, image, errors, progress, total)
        return list(found) if hasattr(image, "__len__") else found

    def _ask_all(
        self, ask_one: Any, images: Iterable[Any], errors: Errors, progress: Progress | bool, total: int
    ) -> Iterator[ServiceAnswer | ResightError]:
        numbers = count(1)
        with follow(progress, "searching") as shown, ThreadPoolExecutor(PARALLEL) as threads:
            waiting: deque[Any] = deque()

            def finish() -> ServiceAnswer | ResightError:
                number, found = next(numbers), waiting.popleft()
                try:
                    answer: ServiceAnswer | ResightError = found.result()
                except ResightError as error:
                    if errors == "raise":
                        for other in waiting:
                            other.cancel()
                        raise error.at_image(number) from error
                    answer = error
                if shown:
                    shown(number, total)
                return answer

            for image in images:
                waiting.append(threads.submit(ask_one, image))
                if len(waiting) == 2 * PARALLEL:
                    yield finish()
            while waiting:
                yield finish()

    def ask_in_stages(
        self,
        image: Any,
        k: int = 10,
        *,
        box: Box | None = None,
        where: Sequence[str] = (),
        near: Near | None = None,
    ) -> Iterator[ServiceAnswer]:
        """Search for one image, and see the shortlist early. Takes the same arguments as `search`.

        Returns:
            First the shortlist, as soon as it is found, and then the answer of `ask`.
        """
        form = operations.make_form(image, k, box, where, near, self.collection)
        with self._stream(operations.make_search("/api/search/stages", form)) as response:
            for line in response.iter_lines():
                if (found := operations.read_stage(line, form, self._explain, self._read_stored)) is not None:
                    yield found

    def explain(self, answer: ServiceAnswer, hit: Hit) -> Evidence:
        """Show why an image was found, like `answer.explain(hit)`.

        Args:
            answer: An answer of this service.
            hit: One of its hits.

        Returns:
            The verified match, the best pairs of tokens, and heat maps of both images.
        """
        found = self._explain(operations.find_form(answer), hit, answer.query.id)
        return replace(found, drawer=answer.drawer)

    def _explain(self, form: SearchForm, hit: Hit, query_id: str) -> Evidence:
        return self._run(operations.explain(form, hit, query_id))

    def _read_stored(self, id: str) -> Picture:
        return image_files.read_bytes(self._read_file(id, SIDE), id)

    def add(self, *sources: Any, progress: Progress | bool | None = True) -> AddReport:
        """Send images to the service, and wait until it has added them. Those of known ids are replaced.

        Args:
            *sources: Folders, image files, manifests, lists of paths or of ImageRefs, as `Collection.add` takes them;
                and images in memory: {"id": image}. Ids are unique within one call.
            progress: True shows a bar in a notebook, False none; or a function, called with the number of images done
                and in all.

        Returns:
            Counts of added, updated and unchanged images and of other files, and the files that were skipped.

        Raises:
            InputError: There are no images, or a source is none of these.
            AccessDenied: The key may not write, or the service is read-only.
            ServiceError: A job was cancelled or has failed. What was added stays: add them again.

        Examples:
            >>> import resight
            >>> with resight.Client("http://127.0.0.1:8080") as photos:
            ...     report = photos.add("photos/", progress=lambda done, total: None)
            >>> report.added + report.updated + report.unchanged, len(report.skipped)
            (10, 0)
        """
        listed = bulk_add.list_sources(sources)
        with follow(progress, "adding") as shown:
            return self._run(bulk_add.add(listed, self.collection, shown))

    def submit(self, *sources: Any) -> tuple[Job, ...]:
        """Send images to the service without waiting until it has added them.

        Args:
            *sources: As for `add`.

        Returns:
            The jobs, one per request; accepted images survive a crash of the service.
        """
        return self._run(bulk_add.submit(bulk_add.list_sources(sources), self.collection))

    def follow(self, job: Job | str) -> Iterator[Job]:
        """Watch a job through the service's stream of events.

        Args:
            job: A job, or its id.

        Returns:
            The job at once, after each change, and when it is over. A stream that breaks is opened again.
        """
        failures = self._connection.pauses()
        while True:
            try:
                for latest in self._read_events(job):
                    yield latest
                    failures = self._connection.pauses()
                    if latest.is_over:
                        return
            except ServiceBusy:  # all of its streams are taken
                yield (latest := self.job(job))
                if latest.is_over:
                    return
                time.sleep(POLL)
                continue
            if (pause := next(failures, None)) is None:
                raise self._connection.lose_stream()
            time.sleep(pause)

    def _read_events(self, job: Job | str) -> Iterator[Job]:
        """Until the stream ends, or breaks."""
        parser = EventParser()
        try:
            with self._stream(operations.make_events_call(job)) as response:
                for line in response.iter_lines():
                    if (event := parser.feed(line)) is not None:
                        yield json_values.read_job(event[1])
        except import_httpx().TransportError:
            return

    def wait(self, job: Job | str, progress: Progress | bool | None = True) -> Job:
        """Wait until a job is over.

        Args:
            job: A job, or its id.
            progress: As for `add`.

        Returns:
            The job: done, failed or cancelled.

        Examples:
            >>> import resight
            >>> with resight.Client("http://127.0.0.1:8080") as photos:
            ...     [job] = photos.submit({"tower": "query.jpg"})
            ...     photos.wait(job).state, photos.delete("tower")
            ('done', 1)
        """
        with follow(progress, "adding") as shown:
            for latest in self.follow(job):
                if shown:
                    shown(latest.done, latest.total)
        return latest
