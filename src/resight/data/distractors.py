"""Images that are searched besides a data set's own. In: a folder, which is walked, or a list of files. Out: ImageRefs.

A list holds one file a line and may be compressed (.gz). Ids begin with "distractors/", so that none is an image of the
data set itself.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from resight.data.sets.folder import walk
from resight.data.truth_files import read_lines
from resight.errors import ManifestError
from resight.types import ImageRef, Skipped


def list_distractors(
    place: Path | None, fix: str, beside: str = ""
) -> tuple[tuple[ImageRef, ...], tuple[Skipped, ...]]:
    """The images at a place, each once, and what had to be passed over; none for no place.

    Files of a list are relative to the folder `beside` next to it, where there is one, and else to its own.
    """
    if place is None:
        return (), ()
    found = list(_read_list(place, fix, beside) if place.is_file() else walk(place))
    refs = [item for item in found if isinstance(item, ImageRef)]
    _check(place, [ref.id for ref in refs], fix)
    named = tuple(ImageRef(f"distractors/{ref.id}", ref.path) for ref in refs)
    return named, tuple(item for item in found if isinstance(item, Skipped))


def _read_list(path: Path, fix: str, beside: str) -> Iterator[ImageRef]:
    folder = path.parent / beside if (path.parent / beside).is_dir() else path.parent
    return (ImageRef(line, folder / line) for _, line in read_lines(path, fix))


def _check(place: Path, ids: Sequence[str], fix: str) -> None:
    if not ids or len(set(ids)) < len(ids):
        raise ManifestError(
            f"{place}: these are no distractors",
            expected="a folder of images, or a list of their names, each once",
            actual=f"{len(ids):,} names, {len(set(ids)):,} of them different",
            fix=fix,
        )
