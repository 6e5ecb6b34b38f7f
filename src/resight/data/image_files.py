"""Read one image: `read` takes a file, `read_bytes` takes an upload; both return a Picture.

A file may be remote (resight.files.remote). It is read once; its bytes are hashed, then decoded from memory: in this
process, or within a command in a sandbox (resight.data.sandbox). Only regular files are opened, so a named pipe or a
device never blocks. Every failure is an ImageError whose `problem` names path and reason, except that an unreachable
store is an InputError, since it concerns all images.
"""

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from resight.data import sandbox
from resight.data.decode import MAX_PIXELS, Decoded, decode
from resight.data.formats import UNSUPPORTED
from resight.errors import BoxError, ImageError
from resight.files import remote
from resight.files.fingerprint import fingerprint
from resight.types import ImageRef, Picture

if TYPE_CHECKING:
    from resight.data.sandbox.processes import Sandbox

MAX_BYTES = 2 * 1024**3


def read(
    ref: ImageRef, max_side: int | None = None, max_pixels: int = MAX_PIXELS, within: "Sandbox | None" = None
) -> Picture:
    """The image at `ref.path`, upright; `ref.box` does not crop it. It is decoded `within` a sandbox, or as bytes."""
    data, modified_ns = read_file(ref.path, within)
    decoder = within.decode if within else decode_bytes
    return assemble(ref, data, decoder(data, str(ref.path), max_side, max_pixels), modified_ns)


def read_bytes(data: bytes, name: str, max_side: int | None = None, max_pixels: int = MAX_PIXELS) -> Picture:
    """The image in `data`, such as an upload; error messages call it `name`."""
    return assemble(name, data, decode_bytes(data, name, max_side, max_pixels))


def decode_bytes(data: bytes, name: str, max_side: int | None = None, max_pixels: int = MAX_PIXELS) -> Decoded:
    """The image in `data`, decoded in the sandbox of this process where it has one."""
    shared = sandbox.find_shared()
    return (shared.decode if shared else decode)(data, name, max_side, max_pixels)


def read_file(path: Path, within: "Sandbox | None" = None) -> tuple[bytes, int]:
    """All bytes of a regular file, and the time of its last change (ns); a sandbox takes smaller files only."""
    chosen = within or sandbox.find_shared()
    limit = chosen.limits.bytes if chosen else MAX_BYTES
    try:
        if remote.is_remote(path):
            return _read_remote(path, limit)
        with open(path, "rb", opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _refuse(path, "it is not a regular file", "a pipe, a socket or a device")
            if status.st_size > limit:
                raise _refuse_size(path, status.st_size, limit)
            return file.read(), status.st_mtime_ns
    except FileNotFoundError as error:
        raise _refuse(path, "there is no such file", "nothing at that path") from error
    except IsADirectoryError as error:
        raise _refuse(path, "it is a folder", "a folder") from error
    except PermissionError as error:
        raise _refuse(path, "permission denied", str(error)) from error
    except (OSError, ValueError) as error:
        raise _refuse(path, getattr(error, "strerror", None) or str(error), str(error)) from error


def reason(error: ImageError | BoxError, path: Path | str) -> str:
    """Why an image was refused, without its path, which every list of skipped images has anyway.

    For a format that is not decoded it includes how to make images of such a file.
    """
    words = error.problem.removeprefix(f"cannot read {path}: ")
    return f"{words}; {error.fix}" if words.startswith(UNSUPPORTED) and error.fix else words


def _read_remote(path: Path, limit: int) -> tuple[bytes, int]:
    # Status first: a file that changes in between keeps its old time here, and so is read again next time.
    status = remote.stat(path)
    if status is None:
        raise FileNotFoundError(path)
    if status.size > limit:
        raise _refuse_size(path, status.size, limit)
    return remote.read_bytes(path), status.modified_ns


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def assemble(ref: ImageRef | str, data: bytes, decoded: Decoded, modified_ns: int = 0) -> Picture:
    """The picture of an image file: its attributes are those of `ref`, completed by EXIF."""
    ref = ImageRef(ref, Path(ref)) if isinstance(ref, str) else ref
    known = ref.unsaid.union(ref.attributes)
    if decoded.position and not {"lat", "lon"} & known:
        lat, lon = decoded.position
        ref = replace(ref, attributes={**ref.attributes, "lat": lat, "lon": lon})
    if decoded.heading is not None and "heading" not in known:
        ref = replace(ref, attributes={**ref.attributes, "heading": decoded.heading})
    return Picture(ref, decoded.pixels, decoded.size, fingerprint(data), len(data), modified_ns)


def _refuse_size(path: Path, size: int, limit: int) -> ImageError:
    return ImageError(
        f"cannot read {path}: the file is too large",
        expected=f"at most {limit:,} bytes",
        actual=f"{size:,} bytes",
        fix="reduce the image",
    )


def _refuse(path: Path, reason: str, actual: str) -> ImageError:
    return ImageError(
        f"cannot read {path}: {reason}",
        expected="a readable file",
        actual=actual,
        fix="check the path and its permissions",
    )
