"""Photometric steps: change the brightness of a picture before a backbone sees it, and never where things are.

A branch names one: photometric = "flatten". The encoder applies it to the picture, or to a region cut out of it, of the
database and of queries alike. Branches with the same encoder and the same step share the backbone's passes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from resight import plugins
from resight.encode.backbones import Backbone
from resight.types import Choice, Features, Picture


class PhotometricStep(Protocol):
    fingerprint: str  # of the settings that change the pixels

    def apply(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """[H, W, 3] → the same shape; the input stays as it is. Called from several threads at once."""
        ...


def build(name: str, **settings: Any) -> PhotometricStep:
    step: PhotometricStep = plugins.load(__name__, name, settings)
    return step


class NormalisedInput:
    """A backbone that sees pictures after a photometric step; its fingerprint says so."""

    def __init__(self, backbone: Backbone, choice: Choice) -> None:
        self._backbone = backbone
        self._step = build(choice.name, **choice.settings)
        self.max_side = backbone.max_side
        self.batch = backbone.batch
        self.fingerprint = f"{self._step.fingerprint} > {backbone.fingerprint}"

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        changed = [replace(picture, pixels=self._step.apply(picture.pixels)) for picture in pictures]
        yield from self._backbone.extract(changed, scale)
