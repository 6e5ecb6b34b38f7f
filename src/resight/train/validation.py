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
from resight.train.found_again import Judge
from resight.train.loading import ImageReader
from resight.train.sampling import choose_size, find_groups
from resight.train.settings import Settings
from resight.types import FloatArray, IntArray, Judgement

AT_ONCE = 16  # images
QUERIES = 500  # at most, evenly spread over the images


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
    ids = [str(number) for number in range(len(labels))]
    members: dict[str, dict[str, int]] = {}
    for id, label in zip(ids, labels, strict=True):
        members.setdefault(label, {})[id] = 1
    able = [number for number, label in enumerate(labels) if len(members[label]) > 1]
    found = []
    for query in able[:: -(-len(able) // QUERIES)]:
        order = np.argsort(-(rows @ rows[query]), kind="stable")
        grades = {id: grade for id, grade in members[labels[query]].items() if id != ids[query]}
        ranked = [ids[number] for number in order if number != query]
        found.append(judge(ranked, Judgement(grades), ["ap"])["ap"])
    return float(np.mean(found))


def _list_batches(groups: IntArray) -> Iterator[IntArray]:
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        for start in range(0, len(members), AT_ONCE):
            yield members[start : start + AT_ONCE]


@torch.inference_mode()
def _embed(network: nn.Module, planes: FloatArray, device: str) -> FloatArray:
    found = network(torch.from_numpy(planes).to(device))
    return np.asarray(nn.functional.normalize(found.float()).cpu().numpy(), np.float32)
