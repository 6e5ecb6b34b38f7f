"""Every image below a folder (`walk`): a path in, ImageRefs and reasons for what was skipped out, in order of name.

An id is the path below the root, with forward slashes. The walk is recursive. It does not enter hidden folders and
folders that end in `.resight`. Every other file is yielded as an image, yielded as Skipped with the reason (a PDF, a
video, a raw photo: `formats`), or passed to `leave_out` as no image: by its ending, or, if the name has none, by its
first bytes (retrieval-SfM-120k names its images so). It follows links, and walks a folder that several links lead to
once, so a loop of links ends. The root may be remote (s3://bucket/photos, resight.files.remote).
"""

import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from resight.data.formats import START, SUFFIXES, OtherFormat, find_by_suffix, find_other, is_image
from resight.errors import InputError
from resight.files import remote
from resight.types import ImageRef, Skipped

LeaveOut = Callable[[Path], None]


def walk(root: Path, leave_out: LeaveOut = lambda _: None) -> Iterator[ImageRef | Skipped]:
    """Yield every image at or below `root`, and a Skipped for each that cannot be used.

    It holds one directory listing per level, never the whole list. `leave_out` is called with every file that is not an
    image, hidden files included.
    """
    if remote.is_remote(root):
        return _walk_remote(root, leave_out)
    status = _look_up(root)
    if status is not None and stat.S_ISREG(status.st_mode):
        return iter([ImageRef(root.name, root)])
    if status is None or not stat.S_ISDIR(status.st_mode):
        raise InputError(
            f"there is no image or folder {root}",
            expected="a folder of images, or one image",
            actual="nothing that can be opened" if status is None else "neither a file nor a folder",
            fix="check the path",
        )
    return _walk_folder(root, leave_out)


def _walk_folder(root: Path, leave_out: LeaveOut) -> Iterator[ImageRef | Skipped]:
    visited: set[tuple[int, int]] = set()
    pending: list[Iterator[Path]] = [iter([root])]  # a stack, because folders nest deeper than Python's calls may
    while pending:
        path = next(pending[-1], None)
        if path is None:
            pending.pop()
            continue
        status = _look_up(path)
        if status is None or not stat.S_ISDIR(status.st_mode):
            found = _look_at(path, root, status)
            if found is None:
                leave_out(path)
            else:
                yield found
        elif (status.st_dev, status.st_ino) not in visited and (path == root or not _is_closed(path.name)):
            visited.add((status.st_dev, status.st_ino))
            listing = _list_folder(path)
            if isinstance(listing, Skipped):
                yield listing
            else:
                pending.append(iter(listing))


def _look_at(path: Path, root: Path, status: os.stat_result | None) -> ImageRef | Skipped | None:
    """The image, or why it cannot be used; None: it is not an image."""

    def read_start() -> bytes:
        if status is None or not stat.S_ISREG(status.st_mode):
            return b""
        with path.open("rb") as file:
            return file.read(START)

    try:
        kind = _classify(path, read_start)
    except OSError as error:
        return Skipped(_show(path), f"it cannot be read: {error.strerror}")
    if isinstance(kind, OtherFormat):
        return Skipped(_show(path), kind.reason)
    return _refer(path, root, status) if kind else None


def _classify(path: Path, read_start: Callable[[], bytes]) -> bool | OtherFormat:
    """Whether a file is an image, by its ending or, if it has none, by its first bytes."""
    if path.name.startswith("."):
        return False
    if path.suffix:
        return path.suffix.lower() in SUFFIXES or find_by_suffix(path.suffix) or False
    start = read_start()
    return is_image(start) or find_other(start) or False


def _walk_remote(root: Path, leave_out: LeaveOut) -> Iterator[ImageRef | Skipped]:
    try:
        status = remote.stat(root)
        if status is not None:
            return iter([ImageRef(root.name, root, listed=status)])
        if remote.is_folder(root):
            return _list_remote(root, leave_out)
    except PermissionError as error:
        raise InputError(
            f"{remote.to_url(root)} may not be read",
            expected="permission to list and to read it",
            actual=str(error),
            fix="check the credentials and what they are allowed",
        ) from error
    raise InputError(
        f"there is no image or folder {remote.to_url(root)}",
        expected="a folder of images, or one image",
        actual="nothing of that name",
        fix="check the address; in an object store, a folder exists only while it holds a file",
    )


def _list_remote(root: Path, leave_out: LeaveOut) -> Iterator[ImageRef | Skipped]:
    for url, *status in remote.list_files(remote.to_url(root), lambda name, is_folder: is_folder and _is_closed(name)):
        path = Path(url)
        kind = _classify(path, partial(_read_remote_start, path))
        if not kind:
            leave_out(path)
        elif remote.to_url(path) != url:
            yield Skipped(url, "its name has empty parts or dots for parts, which paths drop")
        elif isinstance(kind, OtherFormat):
            yield Skipped(url, kind.reason)
        else:
            yield ImageRef(path.relative_to(root).as_posix(), path, listed=(status[0], status[1]))


def _read_remote_start(path: Path) -> bytes:
    """The first bytes of a remote file; none of one that was deleted meanwhile."""
    try:
        with remote.open_file(path) as file:
            return bytes(file.read(START))
    except OSError:
        return b""


def _is_closed(folder: str) -> bool:
    """Whether the walk does not enter a folder of this name."""
    return folder.startswith(".") or folder.endswith(".resight")


def _look_up(path: Path) -> os.stat_result | None:
    """The status of what `path` leads to, or None for a broken link or a missing permission."""
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


def _list_folder(folder: Path) -> list[Path] | Skipped:
    if not _is_utf8(folder):
        return Skipped(_show(folder), "its name is not valid UTF-8")
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        return Skipped(_show(folder), f"the folder cannot be read: {error.strerror}")


def _refer(path: Path, root: Path, status: os.stat_result | None) -> ImageRef | Skipped:
    if not _is_utf8(path):
        return Skipped(_show(path), "its name is not valid UTF-8")
    if status is None:
        return Skipped(_show(path), "a link that leads nowhere, or it may not be looked up")
    if not stat.S_ISREG(status.st_mode):
        return Skipped(_show(path), "it is not a regular file")
    return ImageRef(path.relative_to(root).as_posix(), path)


def _is_utf8(path: Path) -> bool:
    try:
        path.name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _show(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")
