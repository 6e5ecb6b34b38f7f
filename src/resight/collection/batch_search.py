"""Many searches at once: images in, Answers out in the same order, in bounded memory.

Some threads read and decode while others encode, search and verify; pictures that the encoder takes together go through
it together. Each thread uses one core: the libraries below get no threads of their own meanwhile.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from resight.collection.answer import Answer
from resight.collection.encode import Encoding, keep_picture
from resight.collection.view import View
from resight.encode.extract import SharedLimit, gather, one_blas_thread, run_ahead
from resight.errors import InputError, ResightError
from resight.search.request import SearchRequest, StoredImage
from resight.types import Picture, Query

Given = Picture | StoredImage | Query | ResightError
_opencv = SharedLimit()


def search_batch(
    view: View,
    encoding: Encoding,
    images: Iterable[Any],
    request: SearchRequest,
    errors: str = "raise",
    progress: Callable[[int, int], None] | None = None,
    total: int = 0,
) -> "Iterator[Answer | ResightError]":
    """`view.ask` for every image, each in place of the request's own.

    An image that cannot be read ends the batch with its error, which counts the images from 1; with `errors` "return"
    the error stands in the place of its answer.
    """
    if errors not in ("raise", "return"):
        raise InputError("errors has no such value", expected='"raise" or "return"', actual=repr(errors))

    def read(image: Any) -> Given:
        try:
            found: Any = view.find_image(image)
            if isinstance(found, Query):
                replace(request, image=found)  # refuses a box
                return found
            return found if isinstance(found, StoredImage) else encoding.read_query(found, request.box)
        except ResightError as error:
            return error

    def answer(given: Sequence[Given]) -> list[Answer | ResightError]:
        return [_ask(view, request, one) for one in _encode_together(encoding, given, request)]

    return _run(images, read, answer, encoding, errors, progress, total)


def _run(
    images: Iterable[Any],
    read: Callable[[Any], Given],
    answer: Callable[[Sequence[Given]], "list[Answer | ResightError]"],
    encoding: Encoding,
    errors: str,
    progress: Callable[[int, int], None] | None,
    total: int,
) -> "Iterator[Answer | ResightError]":
    workers, together = os.cpu_count() or 1, encoding.encoder.batch
    done = 0
    with (
        ThreadPoolExecutor(workers, thread_name_prefix="read") as readers,
        ThreadPoolExecutor(workers, thread_name_prefix="search") as searchers,
        one_blas_thread(readers),
        _opencv.hold(_limit_opencv),
    ):
        pictures = run_ahead(images, read, readers, workers + together)
        for answers in run_ahead(gather(pictures, together), answer, searchers, 2 * workers):
            for one in answers:
                done += 1
                if isinstance(one, ResightError) and errors == "raise":
                    raise one.at_image(done)
                if progress:
                    progress(done, total)
                yield one


def _encode_together(encoding: Encoding, given: Sequence[Given], request: SearchRequest) -> list[Given]:
    """The pictures encoded; one by one where one of them cannot be, so that the others are not lost."""
    pictures = [one for one in given if isinstance(one, Picture)]
    try:
        encoded = encoding.encode_queries(pictures, request.box) if pictures else ()
        queries: Iterator[Given] = map(keep_picture, encoded, pictures)
    except ResightError as error:
        if len(pictures) == 1:
            queries = iter([error])
        else:
            queries = (_encode_together(encoding, [picture], request)[0] for picture in pictures)
    return [next(queries) if isinstance(one, Picture) else one for one in given]


def _ask(view: View, request: SearchRequest, given: Given) -> "Answer | ResightError":
    if isinstance(given, ResightError):
        return given
    try:
        is_query = isinstance(given, Query)
        return view.ask(replace(request, image=given, box=None if is_query else request.box))
    except ResightError as error:
        return error


def _limit_opencv() -> Callable[[], None]:
    """One thread per call of OpenCV, where it is loaded."""
    cv2 = sys.modules.get("cv2")
    if cv2 is None:
        return lambda: None
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    return lambda: cv2.setNumThreads(before)
