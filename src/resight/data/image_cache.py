"""Cache of the images that a data set renders or unpacks: image files in, files in a folder of their own out.

The folder is below the user's cache directory, or below one that a setting names, never beside the data.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight.files import cache_folder
from resight.files.atomic import write_atomic
from resight.files.fingerprint import fingerprint


def name_folder(name: str, parts: object, inputs: Iterable[Path], below: Path | None) -> Path:
    """The folder for images made from `inputs` (identified by name, size and date) with the settings `parts`."""
    stamps = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in inputs]
    digest = fingerprint(repr((parts, stamps)), 12)
    return (below or cache_folder()) / f"{name}-{digest}"


def is_intact(path: Path) -> bool:
    """Whether a PNG file exists and the checksums of all its chunks are right."""
    try:
        with Image.open(path, formats=["PNG"]) as image:
            image.verify()
    except (OSError, SyntaxError, ValueError):  # Pillow raises SyntaxError for a wrong checksum
        return False
    return True


def write_images(files: Iterable[tuple[Path, bytes]], folder: Path, setting: str) -> None:
    """Write each file into `folder` or below it; errors name the `setting` that chooses another folder."""
    for path, data in files:
        with write_atomic(
            path, f"the images cannot be written to {folder}", f"choose another with {setting}"
        ) as temporary:
            temporary.write_bytes(data)


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode pixels [H, W] or [H, W, 3] RGB as a PNG file."""
    _, data = cv2.imencode(".png", pixels if pixels.ndim == 2 else pixels[..., ::-1])
    encoded: NDArray[Any] = data
    return encoded.tobytes()
