"""Retrieval among images of classes that are not trained on, after every epoch.

In: held-out examples, and what judges a ranking (`evaluate.judge`; the caller gives it, as evaluation lies beside
training and not below it). Out: a function from the network to the mean average precision. Images are put into the
network as in training, unchanged; those that cannot be read are left out.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import nn

from resight.encode.networks.torch_backbone import Input
from resight.errors import BoxError, ImageError
from resight.train.examples import Examples
from resight.train.found_again import Judge, choose_queries
from resight.train.found_again import measure as measure_found
from resight.train.frozen_rows import FrozenRows
from resight.train.loading import ImageReader
from resight.train.sampling import choose_size, find_groups
from resight.train.settings import Settings
from resight.types import FloatArray, IntArray

AT_ONCE = 16  # images
QUERIES = 500  # at most, of all classes alike


def make_validation(
    examples: Examples, sizes: IntArray | None, settings: Settings, input: Input, judge: Judge
) -> Callable[[nn.Module], float]:
    groups = find_groups(sizes, settings) if sizes is not None else np.zeros(len(examples.refs), np.int64)
    reader = ImageReader(settings, input)

    def validate(network: nn.Module) -> float:
        rows: list[FloatArray] = []
        labels: list[str] = []
        for images in _list_batches(groups):
            width, height = choose_size(int(groups[images[0]]), settings, input.cell)
            planes = []
            for image in images:
                try:
                    planes.append(reader.fit(reader.open(examples.refs[image]), width, height))
                except (ImageError, BoxError):
                    continue
                labels.append(examples.labels[image])
            if planes:
                rows.append(_embed(network, np.concatenate(planes), settings.device))
        return measure(np.concatenate(rows), labels, judge)

    return validate


def measure(rows: FloatArray, labels: Sequence[str], judge: Judge) -> float:
    """Mean average precision of images, each asked for among all others; `rows` [n, D] are of unit length."""
    ids = tuple(str(number) for number in range(len(labels)))
    images = FrozenRows(ids, np.unique(labels, return_inverse=True)[1], rows, np.arange(len(labels) + 1))
    queries = choose_queries(images, QUERIES, np.random.default_rng(0))
    return float(measure_found(images, None, queries, judge)["ap"].mean())


def _list_batches(groups: IntArray) -> Iterator[IntArray]:
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        for start in range(0, len(members), AT_ONCE):
            yield members[start : start + AT_ONCE]


@torch.inference_mode()
def _embed(network: nn.Module, planes: FloatArray, device: str) -> FloatArray:
    found = network(torch.from_numpy(planes).to(device))
    return np.asarray(nn.functional.normalize(found.float()).cpu().numpy(), np.float32)
