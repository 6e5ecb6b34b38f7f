"""Images that a data set makes or unpacks: where they are kept, and how they are written.

They lie in a folder of their own below the user's cache directory (or below one that is named), never beside the data.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.files import cache_folder
from resight.files.atomic import write_atomic


def name_folder(name: str, parts: object, inputs: Iterable[Path], below: Path | None) -> Path:
    """The folder for images made from `inputs` (by their name, size and date) in the way that `parts` describes."""
    stamps = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in inputs]
    digest = hashlib.sha256(repr((parts, stamps)).encode()).hexdigest()[:12]
    return (below or cache_folder()) / f"{name}-{digest}"


def is_whole(path: Path) -> bool:
    """Whether a PNG file is there and the checksums of all its parts are right."""
    try:
        with Image.open(path, formats=["PNG"]) as image:
            image.verify()
    except (OSError, SyntaxError, ValueError):  # a broken checksum is a SyntaxError to Pillow
        return False
    return True


def write(files: Iterable[tuple[Path, bytes]], folder: Path, setting: str) -> None:
    """Each file, in `folder` or below it; `setting` chooses another folder."""
    for path, data in files:
        with write_atomic(
            path, f"the images cannot be written to {folder}", f"choose another with {setting}"
        ) as temporary:
            temporary.write_bytes(data)


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of pixels [H, W] or [H, W, 3] RGB."""
    _, data = cv2.imencode(".png", pixels if pixels.ndim == 2 else pixels[..., ::-1])
    encoded: NDArray[Any] = data
    return encoded.tobytes()
