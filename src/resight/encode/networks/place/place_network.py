"""A place network as a whole: images → one descriptor each, of unit length, and the cells that the head reads.

`make_network`: a Design → the network with random weights, always the same.
"""

from collections.abc import Mapping
from typing import Any

import torch

from resight.encode.networks.landmark.landmark_network import MapNetwork
from resight.encode.networks.place.place_design import Design, Name
from resight.encode.networks.place.place_heads import (
    BoqHead,
    DelgHead,
    MixVprHead,
    PooledHead,
    SaladHead,
    SuperGlobalHead,
)
from resight.encode.networks.place.trunks import make_trunk
from resight.encode.networks.torch_backbone import SEED

HEADS: Mapping[Name, Any] = {
    "sscd": PooledHead,
    "cosplace": PooledHead,
    "eigenplaces": PooledHead,
    "mixvpr": MixVprHead,
    "boq": BoqHead,
    "salad": SaladHead,
    "megaloc": SaladHead,
    "delg": DelgHead,
    "superglobal": SuperGlobalHead,
}


class PlaceNetwork(MapNetwork):
    def __init__(self, design: Design) -> None:
        super().__init__()
        self.design = design
        self.trunk = make_trunk(design)
        self.head = HEADS[design.model](design, self.trunk)


def make_network(design: Design) -> PlaceNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return PlaceNetwork(design).eval()
