"""What others do: every picture a code or a vector, and a threshold. Pictures in, scored pairs out.

imagededup's PHash, DHash, AHash and WHash as they come, where it is installed; and the cosine of one vector a picture,
which is what a network would give a threshold on (imagededup's own needs weights from the net).
"""

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.encode.networks.torchvision_compat import declare_missing

USUAL = 10  # bits of 64: imagededup's own threshold
FARTHEST = 20  # bits of 64: beyond, everything is like everything
LEAST = 0.9  # of the cosine
AT_ONCE = 512


@dataclass(frozen=True)
class Pairs:
    rows: NDArray[np.int64]  # [n, 2]
    scores: NDArray[np.float64]  # [n], the higher the likelier
    usual: float | None = None  # the score from which the peer itself lists a pair


def list_peers(folder: Path, ids: Sequence[str], vectors: np.ndarray) -> Iterator[tuple[str, Pairs]]:
    declare_missing()  # imagededup imports torchvision, even for hashes
    for name in ("PHash", "DHash", "AHash", "WHash"):
        try:
            methods: Any = importlib.import_module("imagededup.methods.hashing")
        except ImportError as missing:
            print(f"left out: imagededup {name} ({missing})")
            continue
        hasher = getattr(methods, name)(verbose=False)
        codes = [hasher.encode_image(image_file=str(folder / one)) for one in ids]
        bits = np.array([[int(letter, 16) for letter in code or "0" * 16] for code in codes], np.uint8)
        yield f"imagededup {name}", compare_bits(np.unpackbits(bits, axis=1).reshape(len(ids), -1, 8)[:, :, 4:])
    yield "one vector, cosine", compare_vectors(vectors)


def compare_bits(bits: NDArray[np.uint8]) -> Pairs:
    """[n, …] bits → pairs by how few differ."""
    signs = (2.0 * bits.reshape(len(bits), -1) - 1).astype(np.float32)
    bits_a_code = signs.shape[1]
    return replace(_compare(signs, bits_a_code - 2 * FARTHEST, 1.0), usual=bits_a_code - 2 * USUAL)


def compare_vectors(vectors: np.ndarray) -> Pairs:
    return _compare(np.asarray(vectors, np.float32), LEAST, 1e-4)


def _compare(rows: NDArray[np.float32], least: float, step: float) -> Pairs:
    found, scores = [], []
    for start in range(0, len(rows), AT_ONCE):
        products = rows[start : start + AT_ONCE] @ rows.T
        first, second = np.nonzero(products >= least)
        chosen = first + start < second
        found.append(np.column_stack([first + start, second])[chosen])
        scores.append(np.round(products[first, second][chosen] / step) * step)
    return Pairs(np.concatenate(found), np.concatenate(scores).astype(np.float64))
