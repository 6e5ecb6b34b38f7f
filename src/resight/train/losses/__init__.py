"""Losses, one per file: embeddings [B, D] and labels [B] in, one number out.

A loss that learns one or more centres per class has `classes` and `dimensions` in its Config. A loss that compares the
images of a batch with each other sets `compares`: it gets the whole batch, even if several processes share it, and
needs several images of a class in it.
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
    """The loss `name` for embeddings of `dimensions`; only losses with centres use `classes`."""
    declared = {field.name for field in dataclasses.fields(plugins.find(__name__, name).Config)}
    given = {"classes": classes, "dimensions": dimensions}
    shape = {key: value for key, value in given.items() if key in declared}
    loss: nn.Module = plugins.load(__name__, name, {**shape, **settings})
    return loss
