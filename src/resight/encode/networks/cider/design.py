"""The design of a CiDeR network.

A Design holds everything that changes the network's parameters or its answers, and nothing about its weights. The
defaults are those of the paper. Where the paper gives no widths (`reduction`, the groups and the reduction of the
context), they are the usual ones that come nearest to its Table A11; docs/concepts/cider-network.md compares both.

The header of a trained network's .safetensors file holds its Design under the key `cider` (design_header.py).
"""

from dataclasses import dataclass
from typing import Literal

from resight.errors import RecipeError
from resight.plugins import check_range

KEY = "cider"
Library = Literal["timm", "transformers"]
Enhancement = Literal["none", "se", "eca", "nonlocal", "gather_excite"]
Context = Literal["none", "sk", "aspp"]
Localisation = Literal["none", "masks", "attention"]
Fusion = Literal["learned", "sum"]
Gradient = Literal["straight_through", "none"]
Pooling = Literal["gem", "mean", "max"]


@dataclass(frozen=True)
class Design:
    backbone: str = "resnet101"  # name in timm, or with library = "transformers" an id on the hub or a folder
    library: Library = "timm"  # library that the backbone comes from
    block: int | None = None  # block of the backbone whose feature map to use, from 0; None: the last
    enhancement: Enhancement = "se"  # block that re-weights the backbone's feature map; se: squeeze-and-excitation
    reduction: int = 8  # se: divides the number of channels inside the block
    context: Context = "sk"  # block that adds the surroundings of each cell: sk (SKNet) or aspp
    context_fusion: Fusion = "learned"  # sk: learned combination as in the paper, or sum as in SKNet
    context_groups: int | None = None  # sk: groups of the 3 × 3 convolutions; None: one per channel
    context_reduction: int = 32  # sk: divides the number of channels inside the block; at least 32 stay
    localisation: Localisation = "masks"  # masks (CiDeR), attention (the paper's baseline, attention pooling) or none
    masks: int = 2  # number of masks, T in the paper
    thresholds: tuple[float, ...] | None = None  # attention threshold of each mask, τ, 0 to 1; None: evenly spaced
    background: float = 0.1  # weight of cells outside a mask, β: mean of its draw in training, or its fixed value
    background_deviation: float = 0.9  # deviation of the draw of β in training; 0: no draw, β is fixed
    localisation_fusion: Fusion = "learned"  # how masked maps are combined: learned weights or a sum
    gradient: Gradient = "straight_through"  # how attention learns through the masks; none: as printed, not at all
    pooling: Pooling = "gem"  # how the localised map becomes one vector
    p: float = 3.0  # gem: exponent at the start; training changes it
    dimensions: int | None = 2048  # dimensions of the descriptor, by a linear layer; None: one per channel, no layer

    def __post_init__(self) -> None:
        check_range("reduction", self.reduction, 1)
        check_range("context_reduction", self.context_reduction, 1)
        check_range("masks", self.masks, 1, 64)
        check_range("background", self.background, -1, 1)
        check_range("background_deviation", self.background_deviation, 0, 10)
        check_range("p", self.p, 1, 100)
        if self.context_groups is not None:
            check_range("context_groups", self.context_groups, 1)
        if self.dimensions is not None:
            check_range("dimensions", self.dimensions, 1, 65536)
        if self.thresholds is not None:
            check_thresholds(self.thresholds, self.masks)

    @property
    def spaced_thresholds(self) -> tuple[float, ...]:
        """The given thresholds, or as many as there are masks, evenly spaced inside 0..1."""
        return self.thresholds or tuple((number + 1) / (self.masks + 1) for number in range(self.masks))


def check_thresholds(thresholds: tuple[float, ...], masks: int) -> None:
    if len(thresholds) != masks or not all(0 <= value <= 1 for value in thresholds):
        raise RecipeError(
            "thresholds and masks do not fit",
            expected=f"{masks} thresholds from 0 to 1, one per mask",
            actual=str(list(thresholds)),
            fix="set masks to the number of thresholds, or leave thresholds out: they are then evenly spaced",
        )
