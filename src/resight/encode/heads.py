"""A head: a small learnt layer over the rows of a frozen encoder, one vector per image or many tokens.

    y = L2( (x - mean) skip  +  max(0, (x - mean) hidden + shift) output )          the second term is optional

A row of zeros stays one, similar to nothing. A file is in the safetensors format: the arrays, all of float32, and facts
(JSON, in the header) on the rows it fits, its training and the gain. This module reads and writes it without torch.
`resight train --folder` makes one.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import RecipeError
from resight.files.atomic import write_atomic
from resight.files.documents import load_json
from resight.types import FloatArray
from resight.vectors import l2_normalise

LONGEST_HEADER = 1_000_000  # bytes
FIX = "make one with `resight train --folder PHOTOS --out FOLDER`"


@dataclass(frozen=True)
class Facts:
    """The rows that a head fits, and its training."""

    space: str  # of the rows that go in
    kind: str  # the plug-in of resight.train.heads
    things: int  # instances that it was trained on; files on disk have this name
    images: int
    seconds: float = 0.0  # of training, without encoding the images
    gain: float | None = None  # in mean AP, over the frozen encoder, on instances outside the training set
    low: float | None = None  # the ends of the gain's 95 % interval
    high: float | None = None


@dataclass(frozen=True)
class Head:
    mean: FloatArray  # [D]
    skip: FloatArray  # [D, d]
    facts: Facts
    fingerprint: str
    hidden: FloatArray | None = None  # [D, h]; this and the next two are set together, or None
    shift: FloatArray | None = None  # [h]
    output: FloatArray | None = None  # [h, d]

    def apply(self, vectors: NDArray[np.floating]) -> FloatArray:
        """Rows [n, D] → [n, d] of unit length."""
        if vectors.shape[1] != len(self.mean):
            raise RecipeError(
                "the head does not fit the descriptor",
                expected=f"vectors of {len(self.mean)} dimensions, as in training",
                actual=f"{vectors.shape[1]} dimensions",
                fix="use it with the recipe that made it, or train one for this encoder and descriptor",
            )
        rows = np.asarray(vectors, np.float32) - self.mean
        turned = rows @ self.skip
        if self.hidden is not None and self.shift is not None and self.output is not None:
            turned += np.maximum(rows @ self.hidden + self.shift, 0) @ self.output
        return l2_normalise(np.where(vectors.any(axis=1, keepdims=True), turned, 0))


def make(arrays: Mapping[str, FloatArray], facts: Facts) -> Head:
    """A head from arrays by the names of its fields."""
    shapes = {name: array.shape for name, array in arrays.items()}
    mean, skip = shapes.get("mean", ()), shapes.get("skip", ())
    fits = len(mean) == 1 and len(skip) == 2 and skip[0] == mean[0] and skip[1] > 0
    if fits and set(shapes) != {"mean", "skip"}:
        hidden, shift, output = (shapes.get(name, ()) for name in ("hidden", "shift", "output"))
        fits = len(shapes) == 5 and shift == hidden[1:] and hidden[:1] == mean and output == (*shift, skip[1])
    if not fits or not all(np.isfinite(array).all() for array in arrays.values()):
        raise RecipeError(
            "not a head",
            expected="finite arrays mean [D] and skip [D, d]; and hidden [D, h], shift [h] and output [h, d], or none",
            actual=", ".join(f"{name} {list(shape)}" for name, shape in shapes.items()) or "no arrays",
            fix=FIX,
        )
    kept = {name: np.ascontiguousarray(arrays[name], np.float32) for name in sorted(arrays)}
    content = hashlib.sha256()
    for name, array in kept.items():
        content.update(f"{name}{array.shape}".encode() + array.tobytes())
    return Head(facts=facts, fingerprint=content.hexdigest()[:12], **kept)


def save(head: Head, path: Path) -> None:
    arrays = list_arrays(head)
    header: dict[str, object] = {"__metadata__": {"resight_head": json.dumps(asdict(head.facts))}}
    end = 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the format requires aligned arrays
    with write_atomic(path) as temporary:
        temporary.write_bytes(
            b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in arrays.values())])
        )


def load(path: Path) -> Head:
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        if length > min(LONGEST_HEADER, len(data)):
            raise ValueError("it does not begin like a safetensors file")
        header = load_json(data[8 : 8 + length])
        facts = Facts(**load_json(header.pop("__metadata__")["resight_head"]))
        arrays = {name: _read_array(data, 8 + length, entry) for name, entry in header.items()}
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise RecipeError(
            f"{path} is not a head",
            expected="a safetensors file with a head's arrays and facts",
            actual=str(error) or type(error).__name__,
            fix=FIX,
        ) from error
    return make(arrays, facts)


def list_arrays(head: Head) -> dict[str, FloatArray]:
    """The arrays that it has, by name."""
    named = {name: getattr(head, name) for name in ("mean", "skip", "hidden", "shift", "output")}
    return {name: array for name, array in named.items() if array is not None}


def _read_array(data: bytes, start: int, entry: Mapping[str, Any]) -> FloatArray:
    low, high = entry["data_offsets"]
    shape = tuple(entry["shape"])
    if entry["dtype"] != "F32" or not 0 <= low <= high <= len(data) - start or high - low != 4 * math.prod(shape):
        raise ValueError("an array is not F32, or is truncated")
    return np.frombuffer(data, "<f4", (high - low) // 4, start + low).reshape(shape).astype(np.float32)
