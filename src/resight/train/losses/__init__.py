"""Losses, one a file: embeddings [B, D] and labels [B] in, one number out.

A loss that learns one or more centres a class has `classes` and `dimensions` in its Config. One that compares the
images of a batch with each other has `compares` set: it is given the whole batch, also where several processes share
it, and needs several images of a class in it.
"""

import dataclasses
from typing import Any, Protocol

from torch import Tensor, nn

from resight import plugins


class Loss(Protocol):
    compares: bool

    def __call__(self, embeddings: Tensor, labels: Tensor) -> Tensor: ...

    def parameters(self) -> Any: ...


def build(name: str, classes: int, dimensions: int, **settings: Any) -> nn.Module:
    """The loss `name` for embeddings of so many dimensions; `classes` counts for losses that learn centres."""
    declared = {field.name for field in dataclasses.fields(plugins.find(__name__, name).Config)}
    given = {"classes": classes, "dimensions": dimensions}
    shape = {key: value for key, value in given.items() if key in declared}
    loss: nn.Module = plugins.load(__name__, name, {**shape, **settings})
    return loss
