"""Region sources: a picture → boxes, which the encoder crops and describes one by one.

`grid` and `sliding` are also functions here, beside the plug-ins of the same names, for use without a plug-in. All
proposals go through `resight.encode.regions.choose_regions` before the encoder crops them.
"""

from typing import Any, Protocol

from resight import plugins
from resight.encode.descriptors.regions.grid import grid
from resight.encode.descriptors.regions.sliding import sliding
from resight.encode.regions import Proposals
from resight.types import Picture

__all__ = ["Proposals", "RegionSource", "build", "grid", "sliding"]


class RegionSource(Protocol):
    fingerprint: str  # of the settings and weights that change the boxes
    finest: float  # sides of the image per side of the smallest usual region

    def propose(self, picture: Picture) -> Proposals:
        """Boxes in pixels of the original (`picture.size`). Called from several threads at once."""
        ...


def build(name: str, **settings: Any) -> RegionSource:
    source: RegionSource = plugins.load(__name__, name, settings)
    return source
