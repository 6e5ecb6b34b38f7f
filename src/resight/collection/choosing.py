"""Which images of a source are new or have changed, and what each is called.

In: the images of a source, and what the collection knows of images. Out: those that have to be encoded, with the ids
that they get, and what cannot be an image.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from resight import places
from resight.collection.known_images import KnownImages
from resight.encode.extract import gather
from resight.errors import CollectionError
from resight.types import ImageRef, Skipped

LOOKED_UP = 512  # images at a time


class Chooser:
    def __init__(
        self,
        known: KnownImages,
        pass_over: Callable[[], None],
        foresee: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        """`pass_over` is called for every image that is unchanged; `foresee`, with the ids that an image may get,
        before anything is decided about it."""
        self._known = known
        self._pass_over = pass_over
        self._foresee = foresee

    def choose(self, refs: Iterable[ImageRef | Skipped], *, given: bool) -> Iterator[ImageRef | Skipped]:
        """What is new or changed, and what cannot be an image; `given`: the caller has said the ids."""
        for some in gather(refs, LOOKED_UP):
            self._known.look_up(name for ref in some if isinstance(ref, ImageRef) for name in _list_names(ref))
            for ref in some:
                if isinstance(ref, Skipped):
                    yield ref
                    continue
                self._foresee(_list_names(ref))
                if self._is_unchanged(named := self._name(ref, given)):
                    self._pass_over()
                else:
                    yield named

    def _name(self, ref: ImageRef, given: bool) -> ImageRef:
        """The id that an image gets: a file of the same relative name in another folder does not replace the first.

        An id that the caller or a manifest has `given` stays: the file has moved, the thing is the same.
        """
        ref = _straighten(ref)
        taken, longer = self._known.get(ref.id), _list_names(ref)[-1]
        if given or taken is None or taken.path == ref.path or longer == ref.id:
            return ref
        taken = self._known.get(longer)
        if taken is not None and taken.path != ref.path:
            raise CollectionError(
                f"two files would both be called {longer!r}",
                expected="ids that are unique within the collection",
                actual=f"{taken.path} and {ref.path}",
                fix="give ids of your own in a manifest, or use one collection for each folder",
            )
        return replace(ref, id=longer)

    def _is_unchanged(self, ref: ImageRef) -> bool:
        known = self._known.get(ref.id)
        if known is None or known.path != ref.path or not known.says(ref):
            return False
        return (ref.listed or _look_up(ref.path)) == (known.bytes, known.modified_ns)


def _look_up(path: Path) -> tuple[int, int] | None:
    """Bytes and time of change; None where there is nothing, or nothing that would tell whether it has changed."""
    try:
        if places.is_remote(path):
            status = places.look_up(path)
            return status if status is not None and status.modified_ns else None
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _list_names(ref: ImageRef) -> list[str]:
    """The id that an image has, and the longer one, with its folder, that it gets where the first is taken."""
    path = _straighten(ref).path.as_posix()
    if not path.endswith("/" + ref.id):
        return [ref.id]
    return [ref.id, f"{Path(path.removesuffix(ref.id).rstrip('/')).name}/{ref.id}"]


def _straighten(ref: ImageRef) -> ImageRef:
    if places.is_remote(ref.path):
        return ref
    return replace(ref, path=Path(os.path.abspath(ref.path)))  # noqa: PTH100 - without "..", but links as they are
