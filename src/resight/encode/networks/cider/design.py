"""The design of a CiDeR network, and how a weights file stores it.

A Design holds everything that changes the network's parameters or its answers, and nothing about its weights. The
defaults are those of the paper. Where the paper gives no widths (`reduction`, the groups and the reduction of the
context), they are the usual ones that come nearest to its Table A11; docs/training_network.md compares both.

The header of a trained network's .safetensors file holds its Design as JSON under the key `cider`, so that a collection
needs a copy of that file and nothing else. A file without this key holds weights of the design that the settings give.
"""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from safetensors import SafetensorError, safe_open

from resight import plugins
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
    backbone: str = "resnet101"  # a name of timm, or an id of the hub (or a folder) with library = "transformers"
    library: Library = "timm"
    block: int | None = None  # of the backbone whose feature map is taken, from 0; None: the last
    enhancement: Enhancement = "se"
    reduction: int = 8  # of the channels inside se
    context: Context = "sk"
    context_fusion: Fusion = "learned"  # sum: SKNet as it was published
    context_groups: int | None = None  # of the 3 × 3 convolutions of sk; None: one per channel
    context_reduction: int = 32  # of the channels inside sk
    localisation: Localisation = "masks"  # attention: the paper's baseline, attention-based pooling
    masks: int = 2  # T
    thresholds: tuple[float, ...] | None = None  # τ_1 … τ_T; None: evenly spaced, 1/3 and 2/3 for two
    background: float = 0.1  # β: mean of what it is drawn around while training, or its fixed value
    background_deviation: float = 0.9  # 0: β is fixed, in training and afterwards
    localisation_fusion: Fusion = "learned"
    gradient: Gradient = "straight_through"  # how the map learns from masks; none: as printed, it does not
    pooling: Pooling = "gem"
    p: float = 3.0  # of gem at the start; it is learnt
    dimensions: int | None = 2048  # of the descriptor, by a fully connected layer; None: the channels, without one

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


def write_header(design: Design) -> dict[str, str]:
    """The header of a weights file, as safetensors takes it."""
    return {KEY: json.dumps(dataclasses.asdict(design), sort_keys=True)}


def read_design(path: Path) -> Design | None:
    """The design in the header; None where there is none or the file is unreadable, which loading it will report."""
    try:
        with safe_open(path, framework="np") as opened:
            header = opened.metadata() or {}
    except (OSError, SafetensorError):
        return None
    if KEY not in header:
        return None
    design: Design = plugins.configure(Design, json.loads(header[KEY]), f"the network in {path.name}")
    return design


def choose_design(asked: Design, found: Design | None, file: str) -> Design:
    """The file's design; RecipeError where a setting asks for another value."""
    if found is None:
        return asked
    plain = Design()
    for field in dataclasses.fields(Design):
        wanted, own = getattr(asked, field.name), getattr(found, field.name)
        if wanted not in (own, getattr(plain, field.name)):
            raise RecipeError(
                f"the network in {file} was trained with another {field.name}",
                expected=f"{field.name} = {own!r}",
                actual=repr(wanted),
                fix="leave the setting out: the file knows its design",
            )
    return found
