"""The design of a comparison network: everything that changes its parameters or its answers.

The defaults put all five into the frame of CiDeR's tables: a ResNet101 and vectors of 2048 dimensions. The papers'
own vectors have 512 dimensions (gem, glam, dolg), 2048 (solar) and 1024 (token).
"""

from dataclasses import dataclass
from typing import Literal

from resight.plugins import check_range

KEY = "landmark"  # of the design in the header of a weights file
Name = Literal["gem", "solar", "glam", "dolg", "token"]
DROPOUT = {"token": 0.1}  # of the published code


@dataclass(frozen=True)
class Design:
    design: Name = "gem"  # network: gem (Yokoo et al.), solar, glam, dolg or token
    backbone: str = "resnet101"  # ResNet of timm, by name
    dimensions: int = 2048  # dimensions of the descriptor
    p: float = 3.0  # exponent of GeM; fixed in gem, a start for training in solar, glam and dolg
    dropout: float | None = None  # share of values dropped in training; None: 0.1 for token, 0 for the others
    width: int = 512  # glam: channels inside the spatial attentions; token: channels of a visual token
    atrous: bool = True  # dolg: dilated convolutions before its attention, as in the paper
    tokens: int = 4  # token: number of visual tokens
    heads: int = 8  # token: heads of each attention; they must divide `width`
    refinements: int = 2  # token: number of refinement blocks

    def __post_init__(self) -> None:
        check_range("dimensions", self.dimensions, 1, 65536)
        check_range("p", self.p, 1, 100)
        check_range("width", self.width, 1, 65536)
        check_range("tokens", self.tokens, 1, 4096)
        check_range("heads", self.heads, 1, 256)
        check_range("refinements", self.refinements, 0, 64)
        if self.dropout is not None:
            check_range("dropout", self.dropout, 0, 0.999)

    @property
    def drop_share(self) -> float:
        return DROPOUT.get(self.design, 0.0) if self.dropout is None else self.dropout
