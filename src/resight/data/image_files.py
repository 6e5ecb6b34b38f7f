"""Read one image: `read` takes a file, `read_bytes` takes an upload; both return a Picture.

A file may be remote (resight.files.remote). It is read once; its bytes are hashed, then decoded from memory. Only
regular files are opened, so a named pipe or a device never blocks. Every failure is an ImageError whose `problem` names
path and reason, except that an unreachable store is an InputError, since it concerns all images.
"""

import os
import stat
from dataclasses import replace
from pathlib import Path

from resight.data.decode import MAX_PIXELS, Decoded, decode
from resight.errors import BoxError, ImageError
from resight.files import remote
from resight.files.fingerprint import fingerprint
from resight.types import ImageRef, Picture

SUFFIXES = frozenset(
    [".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".pnm", ".jp2"]
)
MAX_BYTES = 2 * 1024**3


def read(ref: ImageRef, max_side: int | None = None, max_pixels: int = MAX_PIXELS) -> Picture:
    """The image at `ref.path`, upright; `ref.box` does not crop it."""
    data, modified_ns = read_file(ref.path)
    decoded = decode(data, str(ref.path), max_side, max_pixels)
    return _assemble(ref, data, decoded, modified_ns)


def read_bytes(data: bytes, ref: ImageRef | str, max_side: int | None = None, max_pixels: int = MAX_PIXELS) -> Picture:
    """The image in `data`, such as an upload. Error messages call it by the path of `ref`, or by the name given."""
    ref = ImageRef(ref, Path(ref)) if isinstance(ref, str) else ref
    return _assemble(ref, data, decode(data, str(ref.path), max_side, max_pixels), 0)


def read_file(path: Path) -> tuple[bytes, int]:
    """All bytes of a regular file, and the time of its last change (ns)."""
    try:
        if remote.is_remote(path):
            return _read_remote(path)
        with open(path, "rb", opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _refuse(path, "it is not a regular file", "a pipe, a socket or a device")
            if status.st_size > MAX_BYTES:
                raise _refuse(path, "the file is too large", f"{status.st_size:,} bytes")
            return file.read(), status.st_mtime_ns
    except FileNotFoundError as error:
        raise _refuse(path, "there is no such file", "nothing at that path") from error
    except IsADirectoryError as error:
        raise _refuse(path, "it is a folder", "a folder") from error
    except PermissionError as error:
        raise _refuse(path, "permission denied", str(error)) from error
    except (OSError, ValueError) as error:
        raise _refuse(path, getattr(error, "strerror", None) or str(error), str(error)) from error


def reason(error: ImageError | BoxError, path: Path) -> str:
    """Why an image was refused, without its path, which every list of skipped images has anyway."""
    return error.problem.removeprefix(f"cannot read {path}: ")


def _read_remote(path: Path) -> tuple[bytes, int]:
    # Status first: a file that changes in between keeps its old time here, and so is read again next time.
    status = remote.stat(path)
    if status is None:
        raise FileNotFoundError(path)
    if status.size > MAX_BYTES:
        raise _refuse(path, "the file is too large", f"{status.size:,} bytes")
    return remote.read_bytes(path), status.modified_ns


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _assemble(ref: ImageRef, data: bytes, decoded: Decoded, modified_ns: int) -> Picture:
    known = ref.unsaid.union(ref.attributes)
    if decoded.position and not {"lat", "lon"} & known:
        lat, lon = decoded.position
        ref = replace(ref, attributes={**ref.attributes, "lat": lat, "lon": lon})
    if decoded.heading is not None and "heading" not in known:
        ref = replace(ref, attributes={**ref.attributes, "heading": decoded.heading})
    return Picture(ref, decoded.pixels, decoded.size, fingerprint(data), len(data), modified_ns)


def _refuse(path: Path, reason: str, actual: str) -> ImageError:
    return ImageError(
        f"cannot read {path}: {reason}",
        expected=f"a readable file of at most {MAX_BYTES:,} bytes",
        actual=actual,
        fix="check the path and its permissions",
    )
