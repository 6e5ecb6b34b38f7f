"""A query laid over images at many scales and shifts: tokens with places in, one score per image out.

The formula is that of the reranker `layout`; numpy_reference.lay_over is its plain form, from which the compiled kernel
differs by at most 1e-5. One `PlacedImages` may be compared with several queries, such as turned copies of one. Places
often repeat, as on a grid: the Gaussians are computed once for each distinct x and y of all images.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError
from resight.kernels import dispatch, numpy_reference
from resight.kernels.numpy_reference import Overlay
from resight.kernels.validation import LARGEST, validate_matrix
from resight.types import FloatArray, IntArray
from resight.vectors import l2_normalise

LARGEST_TABLES = 16 * 2**20  # bytes of Gaussians; images with more distinct places are compared in portions
HALF = dispatch.LANES // 2
Kernel = Callable[..., Any]


@dataclass(frozen=True)
class PlacedImages:
    """Made by `place_images`. The tokens of an image that share a y are neighbours."""

    tokens: FloatArray  # [n, d]
    centres: FloatArray  # [n, 2]
    offsets: IntArray  # [N + 1]
    mean: FloatArray  # [d]
    x: FloatArray  # distinct, ascending
    y: FloatArray
    columns: NDArray[np.int32]  # [n] the number of each token's x
    rows: NDArray[np.int32]  # [n] the number of its y

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def scores(self, query: ArrayLike, centres: ArrayLike, overlay: Overlay, threads: int | None = None) -> FloatArray:
        """[N] scores of a query [Kq, d] with centres [Kq, 2]; 0 for an image without tokens."""
        asked, places = _validate(query, centres, "query")
        if asked.shape[1] != len(self.mean):
            raise _refuse("the query does not fit the images", f"{len(self.mean)} dimensions", str(asked.shape[1]))
        if not len(asked) or not len(self.tokens):
            return np.zeros(len(self), np.float32)
        asked = l2_normalise(asked - self.mean, floor=numpy_reference.SHORTEST)
        kernel = getattr(dispatch.native(), "lay_over", None)  # compiled kernels of an earlier build lack it
        if kernel is None:
            found = numpy_reference.lay_over(asked, places, self.tokens, self.centres, self.offsets, self.mean, overlay)
        else:
            found = _Placed(asked, places, overlay).run(kernel, self, threads)
        if np.isnan(found).any():
            wrong = f"others in image {int(np.isnan(found).argmax())} of {len(self)}"
            raise _refuse("the tokens of an image cannot be compared", "finite values of at most 1e15", wrong)
        return found


def place_images(tokens: ArrayLike, centres: ArrayLike, offsets: IntArray, mean: FloatArray) -> PlacedImages:
    """Tokens [n, d] with centres [n, 2] of images offsets[i]:offsets[i + 1]; `mean` [d] is subtracted from them."""
    vectors, places = _validate(tokens, centres, "images", finite=False)  # `scores` sees every value anyway
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(vectors) or (np.diff(offsets) < 0).any():
        raise _refuse("offsets do not fit the tokens", f"0 to {len(vectors)}, never decreasing", str(offsets))
    if mean.shape != vectors.shape[1:] or not np.isfinite(mean).all():
        raise _refuse("the mean does not fit the tokens", f"{vectors.shape[1]} finite values", f"shape {mean.shape}")
    (x, columns), (y, rows) = (np.unique(places[:, axis], return_inverse=True) for axis in (0, 1))
    key = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)) * len(y) + rows
    if (np.diff(key) < 0).any():
        order = np.argsort(key, kind="stable")
        vectors, places, columns, rows = vectors[order], places[order], columns[order], rows[order]
    narrow = (np.asarray(numbers, np.int32) for numbers in (columns, rows))
    bounds = np.ascontiguousarray(offsets, np.int64)
    return PlacedImages(vectors, places, bounds, np.ascontiguousarray(mean, np.float32), x, y, *narrow)


class _Placed:
    """A query as the kernel takes it."""

    def __init__(self, tokens: FloatArray, centres: FloatArray, overlay: Overlay) -> None:
        order = np.argsort(centres[:, 1], kind="stable")  # tokens of one height land outside together
        panels = dispatch.fill_panels(tokens[order])
        self.values = dispatch.align(panels.transpose(0, 2, 1))
        self.tolerance = overlay.tolerance
        padding = (0, panels.shape[0] * dispatch.LANES - len(tokens))
        landing = overlay.land(centres[order])
        inside = np.pad(np.abs(landing) <= numpy_reference.EDGE, ((0, 0), (0, 0), (0, 0), padding))
        self.landing = np.pad(landing, ((0, 0), (0, 0), (0, 0), padding))  # [2, scales, steps, lanes]
        self.inside = inside
        used = inside[1].reshape(*inside.shape[1:3], -1, HALF).any(axis=3).transpose(2, 0, 1)
        self.used = np.ascontiguousarray(used, np.uint8)  # [lanes / 8, scales, steps along y]
        counts = inside[1].astype(np.float32) @ inside[0].astype(np.float32).transpose(0, 2, 1)
        self.weights = overlay.weigh(counts, len(tokens))  # [scales, steps along y, steps along x]

    def run(self, kernel: Kernel, images: PlacedImages, threads: int | None) -> FloatArray:
        found = np.zeros(len(images), np.float32)
        each = 4 * self.landing[0].size  # bytes
        for first, last, columns, rows in _divide(images, 0, len(images), LARGEST_TABLES // each):
            found[first:last] = self._run_portion(kernel, images, (first, last), columns, rows, threads)
        return found

    def _run_portion(
        self,
        kernel: Kernel,
        images: PlacedImages,
        portion: tuple[int, int],
        columns: IntArray,
        rows: IntArray,
        threads: int | None,
    ) -> FloatArray:
        (first, last), (_, scales, steps, lanes) = portion, self.landing.shape
        tokens = slice(images.offsets[first], images.offsets[last])
        near_x, near_y = self._fade(0, images.x[columns]), self._fade(1, images.y[rows])
        column, row = _renumber(images.columns[tokens], columns), _renumber(images.rows[tokens], rows)
        vectors, bounds = images.tokens[tokens], images.offsets[first : last + 1] - images.offsets[first]
        sizes = (vectors.shape[1], scales, len(columns), len(rows), steps)
        tables = (self.values, near_x, near_y, self.used, self.weights, sizes)
        out = np.zeros(last - first, np.float32)

        def call(begin: int, end: int) -> None:
            kernel(*tables, vectors, images.mean, column, row, bounds, begin, end, out)

        heights = int(np.count_nonzero(np.diff(row))) + len(out)
        work = lanes * (len(vectors) * (sizes[0] + scales * steps) + heights * scales * steps**2)
        dispatch.run_split(call, len(out), work, threads)
        return out

    def _fade(self, axis: int, places: FloatArray) -> FloatArray:
        """[lanes / 8, scales, places, steps, 8]: 1 where a token lands on a place, less with distance, 0 outside."""
        near = numpy_reference.fade(self.landing[axis][:, None], places[:, None, None], self.tolerance)
        near *= self.inside[axis][:, None]
        return dispatch.align(near.reshape(*near.shape[:3], -1, HALF).transpose(3, 0, 1, 2, 4))


def _divide(images: PlacedImages, first: int, last: int, most: int) -> Iterator[tuple[int, int, IntArray, IntArray]]:
    """Portions first to last of the images that have tokens, with at most `most` distinct x and y if possible, and
    their numbers."""
    tokens = slice(images.offsets[first], images.offsets[last])
    if tokens.start == tokens.stop:
        return
    columns, rows = (np.flatnonzero(np.bincount(numbers[tokens])) for numbers in (images.columns, images.rows))
    if len(columns) + len(rows) <= most or last - first == 1:
        yield first, last, columns, rows
        return
    middle = (first + last) // 2
    yield from _divide(images, first, middle, most)
    yield from _divide(images, middle, last, most)


def _renumber(numbers: NDArray[np.int32], used: IntArray) -> NDArray[np.int32]:
    """Each number's position among those used."""
    positions = np.zeros(int(used[-1]) + 1, np.int32)
    positions[used] = np.arange(len(used))
    return positions[numbers]


def _validate(tokens: ArrayLike, centres: ArrayLike, what: str, finite: bool = True) -> tuple[FloatArray, FloatArray]:
    vectors = np.ascontiguousarray(validate_matrix(tokens, what), np.float32)
    places = np.asarray(centres, np.float32)
    if places.shape != (len(vectors), 2) or not np.isfinite(places).all():
        expected = f"{len(vectors)} finite pairs x, y"
        raise _refuse(f"the centres of the {what} cannot be used", expected, f"an array of shape {places.shape}")
    if finite and not (np.abs(vectors) <= LARGEST).all():
        raise _refuse(f"the tokens of the {what} cannot be compared", "finite values of at most 1e15", "others")
    return vectors, places


def _refuse(what: str, expected: str, actual: str) -> InputError:
    return InputError(
        what, expected=expected, actual=actual, fix="encode both with one encoder, and leave out damaged vectors"
    )
