"""Validation on held-out classes after every epoch: a network in, the mean average precision of retrieval out.

Images enter the network as in training, but without augmentation; unreadable ones are left out and listed. The caller
passes `evaluate.judge`, which training must not import.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import nn

from resight.encode.networks.torch_backbone import Input
from resight.errors import BoxError, ImageError, InputError
from resight.train.cached_features import CachedFeatures
from resight.train.examples import Examples
from resight.train.head_evaluation import Judge, choose_queries
from resight.train.head_evaluation import measure as measure_queries
from resight.train.loading import ImageReader
from resight.train.sampling import choose_size, find_groups
from resight.train.train_config import Settings
from resight.types import FloatArray, IntArray

BATCH = 16  # images
QUERIES = 500  # at most, balanced over classes
SHOWN = 5  # ids in a message


class Validation:
    def __init__(
        self, examples: Examples, sizes: IntArray | None, settings: Settings, input: Input, judge: Judge
    ) -> None:
        self._examples, self._settings, self._judge, self._cell = examples, settings, judge, input.cell
        self._groups = find_groups(sizes, settings) if sizes is not None else np.zeros(len(examples.refs), np.int64)
        self._reader = ImageReader(settings, input)
        self.unreadable: tuple[str, ...] = ()  # ids, of the last validation

    def __call__(self, network: nn.Module) -> float:
        """Mean average precision; NaN if the network's output is not finite."""
        rows: list[FloatArray] = []
        labels: list[str] = []
        broken: list[str] = []
        for images in _list_batches(self._groups):
            width, height = choose_size(int(self._groups[images[0]]), self._settings, self._cell)
            planes = []
            for image in images:
                ref = self._examples.refs[image]
                try:
                    planes.append(self._reader.fit(self._reader.open(ref), width, height))
                except (ImageError, BoxError):
                    broken.append(ref.id)
                    continue
                labels.append(self._examples.labels[image])
            if planes:
                rows.append(_embed(network, np.concatenate(planes), self._settings.device))
        self.unreadable = tuple(sorted(broken))
        if max(Counter(labels).values(), default=0) < 2:
            raise self._refuse()
        vectors = np.concatenate(rows)
        return measure(vectors, labels, self._judge) if np.isfinite(vectors).all() else math.nan

    def _refuse(self) -> InputError:
        return InputError(
            "there is nothing to validate on",
            expected="two images of a held-out class that can be read",
            actual=f"{len(self.unreadable):,} of {len(self._examples.refs):,} held-out images cannot be read, "
            f"such as {', '.join(self.unreadable[:SHOWN])}",
            fix="repair them and continue with --resume; to train without them, or with train.held_out=0, start again "
            "in another --out",
        )


def measure(rows: FloatArray, labels: Sequence[str], judge: Judge) -> float:
    """Mean average precision of each image as a query among all others; `rows` [n, D] have unit length."""
    ids = tuple(str(number) for number in range(len(labels)))
    images = CachedFeatures(ids, np.unique(labels, return_inverse=True)[1], rows, np.arange(len(labels) + 1))
    queries = choose_queries(images, QUERIES, np.random.default_rng(0))
    return float(measure_queries(images, None, queries, judge)["ap"].mean())


def _list_batches(groups: IntArray) -> Iterator[IntArray]:
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        for start in range(0, len(members), BATCH):
            yield members[start : start + BATCH]


@torch.inference_mode()
def _embed(network: nn.Module, planes: FloatArray, device: str) -> FloatArray:
    found = network(torch.from_numpy(planes).to(device))
    return np.asarray(nn.functional.normalize(found.float()).cpu().numpy(), np.float32)
