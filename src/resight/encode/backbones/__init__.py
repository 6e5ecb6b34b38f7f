"""Backbones: pictures → Features.

A module may also have `find_weights(config)`: the path of its weights, found without reading them, or MissingExtra,
whose fix names what to install. It lets `resight encoders` tell what can run here without loading a network. And
`count_parts(config)`: the Costs of a network's parts, which `resight encoders NAME --measure` prints.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from resight import plugins
from resight.encode import models
from resight.types import Choice, Features, Picture


@dataclass(frozen=True)
class About:
    """What `resight encoders` tells of a backbone; each module has one, named ABOUT."""

    family: str
    dimensions: int
    rows: str  # what a row stands for
    weights: str  # where they come from
    licence: str
    tokens: int = 0  # rows of a picture at the default size; 0: that depends on the picture or the settings


class Backbone(Protocol):
    max_side: int | None  # pictures larger than this may be decoded reduced; None: full size is wanted
    fingerprint: str  # settings and weights: whatever changes the features changes it
    batch: int  # how many pictures at once serve it best

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        """Features of every picture, in order, in batches of one shape. Called from several threads at once.

        `scale` is the size of the network's input against its usual one.
        """
        ...


def build(name: str, **settings: Any) -> Backbone:
    """`name` is a plug-in, or a network of the catalogue (models.toml)."""
    choice = models.resolve(Choice(name, settings))
    backbone: Backbone = plugins.load(__name__, choice.name, choice.settings)
    return backbone
