"""Applies a trained head (encode/heads.py) to every row: a file made by `resight train --folder`.

In: float vectors [n, D], one row per image or many. Out: [n, d] float32 of unit length; ids, owners and boxes stay.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from resight.encode import heads
from resight.encode.transforms.whiten import require_floats
from resight.types import Descriptors, Role


@dataclass(frozen=True)
class Config:
    file: Path  # file of the trained head, made by `resight train --folder`


def build(config: Config) -> "HeadTransform":
    return HeadTransform(heads.load(config.file))


class HeadTransform:
    def __init__(self, head: heads.Head) -> None:
        self.fingerprint = f"head({head.fingerprint})"
        self.space = head.facts.space
        self._head = head

    def apply(self, descriptors: Descriptors, role: Role) -> Descriptors:  # noqa: ARG002 - both sides alike
        require_floats(descriptors)
        return replace(descriptors, vectors=self._head.apply(descriptors.vectors))
