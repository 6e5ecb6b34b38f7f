"""Every image below a folder (`walk`): a path in, ImageRefs and reasons for what was skipped out, in order of name.

An id is the path below the root, with forward slashes. The walk is recursive. It leaves out hidden files and folders,
folders that end in `.resight` and files that are no images: by their ending, or, if the name has none, by their first
bytes (retrieval-SfM-120k names its images so). It follows links, and walks a folder that several links lead to once, so
a loop of links ends. The root may be remote (s3://bucket/photos, resight.files.remote).
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from resight.data.decode import SIGNATURES
from resight.data.image_files import SUFFIXES
from resight.errors import InputError
from resight.files import remote
from resight.types import ImageRef, Skipped

LeaveOut = Callable[[Path], None]
START = 16  # bytes that show whether a file is an image
# Two letters alone would make images of texts that begin with BM or P1.
BMP = re.compile(rb"BM.{4}\0\0\0\0", re.DOTALL)  # size, and four reserved bytes
NETPBM = re.compile(rb"P[1-6f]\s+[-\d#]")


def walk(root: Path, leave_out: LeaveOut = lambda _: None) -> Iterator[ImageRef | Skipped]:
    """Yield every image at or below `root`, and a Skipped for each that cannot be used.

    It holds one directory listing per level, never the whole list. `leave_out` is called with every file that is not an
    image.
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


def is_image(start: bytes) -> bool:
    """Whether the first bytes of a file are those of an image that resight can decode."""
    if start[:4] == b"RIFF":
        return start[8:12] == b"WEBP"
    if start[:2] == b"BM":
        return BMP.match(start) is not None
    if start[:1] == b"P":
        return NETPBM.match(start) is not None
    return any(start.startswith(signature) for signature, _ in SIGNATURES)


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
        elif (status.st_dev, status.st_ino) not in visited and (path.suffix != ".resight" or path == root):
            visited.add((status.st_dev, status.st_ino))
            listing = _list_folder(path)
            if isinstance(listing, Skipped):
                yield listing
            else:
                pending.append(iter(listing))


def _look_at(path: Path, root: Path, status: os.stat_result | None) -> ImageRef | Skipped | None:
    """The image, or why it cannot be used; None: it is not an image."""
    if path.suffix.lower() in SUFFIXES:
        return _refer(path, root, status)
    if path.suffix or status is None or not stat.S_ISREG(status.st_mode):
        return None
    try:
        with path.open("rb") as file:
            start = file.read(START)
    except OSError as error:
        return Skipped(_show(path), f"it cannot be read: {error.strerror}")
    return _refer(path, root, status) if is_image(start) else None


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
    for url, *status in remote.list_files(remote.to_url(root), _is_left_out):
        path = Path(url)
        if path.suffix and path.suffix.lower() not in SUFFIXES:
            leave_out(path)
        elif remote.to_url(path) != url:
            yield Skipped(url, "its name has empty parts or dots for parts, which paths drop")
        elif path.suffix or _starts_as_image(path):
            yield ImageRef(path.relative_to(root).as_posix(), path, listed=(status[0], status[1]))
        else:
            leave_out(path)


def _starts_as_image(path: Path) -> bool:
    """Whether a remote file is an image, by its first bytes; one that was deleted meanwhile is not."""
    try:
        with remote.open_file(path) as file:
            return is_image(file.read(START))
    except OSError:
        return False


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name.endswith(".resight")


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
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
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
