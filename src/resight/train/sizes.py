"""The width and height of every training image, from the headers of their files, for group-size sampling.

In: references. Out: sizes [n, 2], upright as EXIF says, of the box where a reference has one. They are kept in a file,
as reading a million headers takes a while. A file that cannot be opened counts as square: who loads it will tell.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from resight.places import open_place
from resight.types import ImageRef, IntArray
from resight.whole_files import write_whole

ORIENTATION, SIDEWAYS = 0x0112, (5, 6, 7, 8)
SQUARE = (1, 1)


def read_sizes(refs: Sequence[ImageRef], file: Path, progress: Callable[[int, int], None] | None = None) -> IntArray:
    """`file` holds what was found before, by id, and is written when something was added."""
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    missing = [ref for ref in refs if ref.id not in known]
    found = dict(known)
    for number, ref in enumerate(missing, 1):
        found[ref.id] = read_size(ref)
        if progress is not None:
            progress(number, len(missing))
    if missing:
        with write_whole(file) as temporary:
            temporary.write_text(json.dumps(found), encoding="utf-8")
    return np.array([found[ref.id] for ref in refs], np.int64).reshape(-1, 2)


def read_size(ref: ImageRef) -> tuple[int, int]:
    if ref.box is not None:
        x0, y0, x1, y1 = ref.box
        return max(1, round(x1 - x0)), max(1, round(y1 - y0))
    try:
        with warnings.catch_warnings(action="ignore"), open_place(ref.path) as opened, Image.open(opened) as image:
            width, height = image.size
            return (height, width) if image.getexif().get(ORIENTATION) in SIDEWAYS else (width, height)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return SQUARE
