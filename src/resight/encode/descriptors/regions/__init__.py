"""Region sources: a picture → boxes that are cropped and described each by itself.

`grid` and `sliding` are functions here, although the modules of the same names are plug-ins as well: they can be had
without building anything. Whatever a source proposes goes through `resight.encode.regions.choose_regions` before
it is cropped.
"""

from typing import Any, Protocol

from resight import plugins
from resight.encode.descriptors.regions.grid import grid
from resight.encode.descriptors.regions.sliding import sliding
from resight.encode.regions import Proposals
from resight.types import Picture

__all__ = ["Proposals", "RegionSource", "build", "grid", "sliding"]


class RegionSource(Protocol):
    fingerprint: str  # settings and weights: whatever changes the boxes changes it
    finest: float  # how many times smaller than the image, along a side, the smallest usual region is

    def propose(self, picture: Picture) -> Proposals:
        """Boxes in pixels of the original (`picture.size`). Called from several threads at once."""
        ...


def build(name: str, **settings: Any) -> RegionSource:
    source: RegionSource = plugins.load(__name__, name, settings)
    return source
