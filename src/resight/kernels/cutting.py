"""Some images of a pack → a pack of their own, with the codes that they have.

What a kind learns from all tokens (`packed.SHARED`) goes with the part, so that its scores are those of the whole, bit
for bit. A part that was packed anew would learn other codes.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.kernels.files import PER_IMAGE, PER_TOKEN, save
from resight.kernels.kinds import Codes, find_kind
from resight.kernels.packed import Packed
from resight.kernels.room import Allocate, in_folder

DIVISIBLE_KINDS = ("fp32", "fp16", "int8")  # whose arrays have one row a token or an image, or are shared
IMAGES = 8192  # copied at a time


def cut_pack(packed: Packed, images: NDArray[np.int64], folder: Path) -> None:
    """The `images` [i] of a pack, by number and in that order, to a folder that `kernels.open` maps."""
    scratch = folder.with_name(folder.name + ".scratch")
    scratch.mkdir(parents=True)
    allocate = in_folder(scratch)
    codes = cut_codes(packed.codes, images, allocate, "codes")
    reference = None if packed.reference is None else cut_codes(packed.reference, images, allocate, "reference")
    save(Packed(codes, reference), folder, scratch)
    shutil.rmtree(scratch, ignore_errors=True)


def cut_codes(codes: Codes, images: NDArray[np.int64], allocate: Allocate, name: str) -> Codes:
    assert codes.kind in DIVISIBLE_KINDS
    counts = np.diff(codes.offsets)[images]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    arrays: dict[str, NDArray[Any]] = {}
    for key, array in codes.arrays().items():
        arrays[key] = array[images] if key in PER_IMAGE else array
        if key in PER_TOKEN:
            arrays[key] = allocate(f"{name}.{key}", (int(offsets[-1]), *array.shape[1:]), array.dtype)
            for start in range(0, len(images), IMAGES):
                part = slice(start, start + IMAGES)
                rows = list_tokens(codes.offsets[images[part]], counts[part])
                arrays[key][offsets[start] : offsets[start] + len(rows)] = array[rows]
    cut: Codes = find_kind(codes.kind).restore(arrays, offsets)
    return cut


def list_tokens(begins: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """begin, begin + 1, … of each image, one after the other."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - ends + counts, counts)
