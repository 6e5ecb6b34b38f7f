"""Images that a data set makes or unpacks: where they are kept, and how they are written.

They lie in a folder of their own below the user's cache directory (or below one that is named), never beside the data.
A file is written under another name and then renamed, so that a name that ends well is a whole file.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.errors import StorageError


def name_folder(name: str, parts: object, inputs: Iterable[Path], below: Path | None) -> Path:
    """The folder for images made from `inputs` (by their name, size and date) in the way that `parts` describes."""
    stamps = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in inputs]
    digest = hashlib.sha256(repr((parts, stamps)).encode()).hexdigest()[:12]
    return (below or find_cache()) / f"{name}-{digest}"


def find_cache() -> Path:
    """The user's cache directory, as the XDG base directory specification has it."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "resight"


def is_whole(path: Path) -> bool:
    """Whether a PNG file is there and the checksums of all its parts are right."""
    try:
        with Image.open(path, formats=["PNG"]) as image:
            image.verify()
    except (OSError, SyntaxError, ValueError):  # a broken checksum is a SyntaxError to Pillow
        return False
    return True


def write(files: Iterable[tuple[Path, bytes]], folder: Path, setting: str) -> None:
    """Each file, in `folder` or below it; `setting` is the one by which another folder is chosen."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, data in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            temporary.write_bytes(data)
            temporary.replace(path)
    except OSError as error:
        raise StorageError(
            f"the images cannot be written to {folder}",
            expected="a folder that can be written to, with room for them (a crop of 256 pixels takes about 50 kB)",
            actual=str(error),
            fix=f"choose another with {setting}, or make room",
        ) from error


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of pixels [H, W] or [H, W, 3] RGB."""
    _, data = cv2.imencode(".png", pixels if pixels.ndim == 2 else pixels[..., ::-1])
    encoded: NDArray[Any] = data
    return encoded.tobytes()
