"""Training images: examples in, batches out, read ahead while the network computes (`ImageBatches`).

Each batch comes as the Parts of this process. `augment` changes an image at random, with a generator that is seeded by
the epoch and the image's position in it: the result is the same for any number of threads or processes, and after a
resume. An unreadable image is replaced by the next one of its class (of any class if none is left), so that batches
keep their size; too many of them end the training.

    turn      rotate by up to so many degrees; corners are filled by mirroring
    crop      a random part with at least this share of the area and the image's own proportions within ± 25 %
    flip      left to right, half of the time
    colour    scale brightness, contrast and saturation by up to 1 ± this share
"""

import math
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from resight.boxes import crop
from resight.data.image_files import read
from resight.encode.networks.torch_backbone import Input
from resight.encode.preprocess import REACH, make_statistics, prepare
from resight.errors import BoxError, ImageError, TrainingError
from resight.files.fingerprint import fingerprint
from resight.train.distributed import Team
from resight.train.examples import Examples
from resight.train.sampling import Batch, count_steps, plan_epoch
from resight.train.step import Part
from resight.train.train_config import Settings
from resight.types import FloatArray, ImageRef, IntArray, Picture

AHEAD = 2  # batches to read while one is computed
LUMA = np.array([0.299, 0.587, 0.114], np.float32)
ALONE = Team()
Pixels = NDArray[np.uint8]
Example = tuple[FloatArray, int]  # planes [1, 3, H, W], and the number of their image


class ImageBatches:
    def __init__(
        self, examples: Examples, sizes: IntArray | None, settings: Settings, input: Input, team: Team = ALONE
    ) -> None:
        """`sizes` [n, 2] are widths and heights; None if all images are resized to squares."""
        numbers = {label: number for number, label in enumerate(examples.classes)}
        self._refs, self._settings, self._input, self._team = examples.refs, settings, input, team
        self._labels = np.array([numbers[label] for label in examples.labels], np.int64)
        self._sizes = sizes
        self._reader = ImageReader(settings, input)
        self._broken: dict[int, str] = {}
        self._lock = threading.Lock()
        self.steps = count_steps(self._labels, settings)
        listed = "\n".join(f"{ref.id}\t{label}" for ref, label in zip(examples.refs, examples.labels, strict=True))
        self.fingerprint = fingerprint(listed, 16)

    @property
    def unreadable(self) -> tuple[str, ...]:
        with self._lock:  # other threads may be adding to it
            return tuple(sorted(self._refs[image].id for image in self._broken))

    def read(self, epoch: int, first: int) -> Iterator[Sequence[Part]]:
        batches = plan_epoch(self._labels, self._sizes, self._settings, self._input.cell, epoch)
        pending: deque[list[Future[Example]]] = deque()
        with ThreadPoolExecutor(self._settings.workers) as pool:
            try:
                for number in range(first, len(batches)):
                    pending.append(self._submit(pool, batches[number], epoch, number))
                    if len(pending) > AHEAD:
                        yield self._collect(pending.popleft())
                while pending:
                    yield self._collect(pending.popleft())
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _submit(self, pool: ThreadPoolExecutor, batch: Batch, epoch: int, number: int) -> "list[Future[Example]]":
        """Start reading this process's share of every part."""
        each = len(batch.images) // self._settings.accumulate
        positions = [
            position
            for start in range(0, len(batch.images), each)
            for position in range(start, start + each)[self._team.share(each)]
        ]
        seeds = {position: (self._settings.seed, epoch, number, position) for position in positions}
        return [
            pool.submit(self._read, batch.images[position], batch.width, batch.height, seeds[position])
            for position in positions
        ]

    def _collect(self, waiting: "list[Future[Example]]") -> list[Part]:
        examples = [future.result() for future in waiting]
        each = len(examples) // self._settings.accumulate
        return [self._join(examples[start : start + each]) for start in range(0, len(examples), each)]

    def _join(self, examples: Sequence[Example]) -> Part:
        images = [image for _, image in examples]
        planes = torch.from_numpy(np.concatenate([planes for planes, _ in examples]))
        return Part(planes, torch.from_numpy(self._labels[images]), tuple(self._refs[image].id for image in images))

    def _read(self, image: int, width: int, height: int, seed: tuple[int, ...]) -> Example:
        for candidate in self._list_candidates(image):
            picture = self._open(candidate)
            if picture is not None:
                generator = np.random.default_rng(seed)
                changed = augment(picture.pixels, self._settings, generator)
                shown = Picture(picture.ref, changed, (changed.shape[1], changed.shape[0]))
                return self._reader.fit(shown, width, height), candidate
        raise TrainingError("no image can be read", expected="images", fix="check the data set: resight data check")

    def _list_candidates(self, image: int) -> Iterator[int]:
        """The image itself, the others of its class from there on, then all other images."""
        yield image
        is_own = self._labels == self._labels[image]
        for chosen in (np.flatnonzero(is_own), np.flatnonzero(~is_own)):
            yield from (int(other) for other in np.roll(chosen, -int(np.searchsorted(chosen, image))))

    def _open(self, image: int) -> Picture | None:
        if image in self._broken:
            return None
        try:
            return self._reader.open(self._refs[image])
        except (ImageError, BoxError) as error:
            self._count_unreadable(image, error.problem)
            return None

    def _count_unreadable(self, image: int, reason: str) -> None:
        with self._lock:
            self._broken[image] = reason
            allowed = int(np.ceil(self._settings.unreadable * len(self._refs)))
            if len(self._broken) > allowed:
                raise TrainingError(
                    f"{len(self._broken):,} of {len(self._refs):,} images cannot be read",
                    expected=f"{allowed:,} at most (train.unreadable = {self._settings.unreadable:g})",
                    actual=reason,
                    fix="repair them (`resight data check` lists all) or raise train.unreadable, then --resume; "
                    "to train without them, start again in another --out",
                )


class ImageReader:
    """A reference → its picture → the network's input."""

    def __init__(self, settings: Settings, input: Input) -> None:
        self._max_side, self._interpolation = REACH * settings.size, input.interpolation
        self._statistics = make_statistics(input.mean, input.deviation)

    def open(self, ref: ImageRef) -> Picture:
        """Read an image, cropped to the reference's box if there is one."""
        picture = read(ref, max_side=self._max_side)
        return picture if ref.box is None else crop(picture, ref.box)

    def fit(self, picture: Picture, width: int, height: int) -> FloatArray:
        """The network's input [1, 3, height, width]."""
        return prepare(picture, width, height, "squash", self._statistics, self._interpolation)[0]


def augment(pixels: Pixels, settings: Settings, generator: np.random.Generator) -> Pixels:
    if settings.turn > 0:
        pixels = turn(pixels, generator.uniform(-settings.turn, settings.turn))
    if settings.crop < 1:
        pixels = random_crop(pixels, settings.crop, generator)
    if settings.flip and generator.random() < 0.5:
        pixels = np.ascontiguousarray(pixels[:, ::-1])
    if settings.colour > 0:
        pixels = recolour(pixels, *(1 + settings.colour * generator.uniform(-1, 1, 3)))
    return pixels


def turn(pixels: Pixels, degrees: float) -> Pixels:
    rows, columns = pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D(((columns - 1) / 2, (rows - 1) / 2), degrees, 1.0)
    turned = cv2.warpAffine(pixels, matrix, (columns, rows), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    return np.asarray(turned, np.uint8)


def random_crop(pixels: Pixels, least: float, generator: np.random.Generator) -> Pixels:
    rows, columns = pixels.shape[:2]
    side = math.sqrt(generator.uniform(least, 1))
    stretch = math.sqrt(generator.uniform(0.8, 1.25))
    wide = min(columns, max(1, round(columns * side * stretch)))
    high = min(rows, max(1, round(rows * side / stretch)))
    x, y = generator.integers(columns - wide + 1), generator.integers(rows - high + 1)
    return pixels[y : y + high, x : x + wide]


def recolour(pixels: Pixels, brightness: float, contrast: float, saturation: float) -> Pixels:
    values = pixels.astype(np.float32) * brightness
    grey = values @ LUMA
    values = (values - grey.mean()) * contrast + grey.mean()
    grey = (values @ LUMA)[..., None]
    return np.asarray(np.clip(grey + (values - grey) * saturation + 0.5, 0, 255), np.uint8)
