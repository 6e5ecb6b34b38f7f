"""Backbones: pictures → Features.

A module may also have `find_weights(config)`: the path of its weights, found without reading them, or MissingExtra with
the package to install; `resight encoders` uses it to list what can run here without loading a network. It may have
`count_parts(config)`: the Costs of a network's parts, which `resight encoders NAME --measure` prints; and
`sketch(config)`: the Network on torch's meta device, without values, from which `flops.py` counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from resight import plugins
from resight.encode import named_networks
from resight.types import Choice, Features, Picture


@dataclass(frozen=True)
class About:
    """What `resight encoders` prints about a backbone; each module has one, named ABOUT."""

    family: str
    dimensions: int
    rows: str  # what a row represents
    weights: str  # their source
    licence: str
    tokens: int = 0  # rows per picture at the default size; 0: depends on the picture or the settings


class Backbone(Protocol):
    max_side: int | None  # a decoder may reduce larger pictures to it; None: it needs the full size
    fingerprint: str  # of the settings and weights that change the features
    batch: int  # pictures per call that suit it best

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        """Features of every picture, in order, in batches of one shape. Called from several threads at once.

        `scale` is the size of the network's input relative to its usual one.
        """
        ...


def unbatch(batches: Iterable[Features]) -> Iterator[Features]:
    """The Features of each image by itself, in order; the arrays are views."""
    for batch in batches:
        for row in range(len(batch.ids)):
            parts = {field.name: getattr(batch, field.name) for field in fields(batch) if field.name != "grid"}
            own: dict[str, Any] = {name: None if part is None else part[row : row + 1] for name, part in parts.items()}
            yield replace(batch, **own)


def build(name: str, **settings: Any) -> Backbone:
    """`name` is a plug-in, or a network of the catalogue (models.toml)."""
    choice = named_networks.resolve(Choice(name, settings))
    backbone: Backbone = plugins.load(__name__, choice.name, choice.settings)
    return backbone
