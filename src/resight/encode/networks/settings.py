"""The settings that every network on torch has. What is None is as the network's makers have it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resight.encode.preprocess import Fit, Interpolation, make_statistics
from resight.errors import RecipeError
from resight.plugins import check_range

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["fp32", "bf16", "fp16"]


@dataclass(frozen=True)
class Settings:
    weights: Path | None = None  # a checkpoint of one's own: .safetensors, or .pth; None: the makers', from the hub
    untrained: bool = False  # random weights instead, always the same ones: for tests and for timing
    block: int | None = (
        None  # whose tokens or feature map are taken, from 0; None: the last one's, after the final norm
    )
    projection: bool = False  # the network's own vector after its last linear layer (CLIP's space shared with texts)
    attention: bool = True  # where CLS looks in the block; needs a slower way through that one block
    size: int | None = None  # width and height of the input; fit = "keep": of a square as large
    fit: Fit = "squash"
    share: float | None = None  # of the largest centred square that fit = "crop" shows
    interpolation: Interpolation | None = None
    mean: tuple[float, ...] | None = None  # of the training images, 0 to 1: red, green, blue
    deviation: tuple[float, ...] | None = None
    device: Device = "auto"  # auto: cuda, else mps, else cpu
    precision: Precision = "fp32"
    compile: bool = False  # by torch.compile: slow to start, faster afterwards
    threads: int = 1  # for one batch on a CPU; batches are encoded side by side. Sets torch's own, for the process
    batch: int | None = None  # pictures at once; None: 1 on a CPU, 32 elsewhere

    def __post_init__(self) -> None:
        check_range("threads", self.threads, 1, 256)
        if self.share is not None:
            check_range("share", self.share, 0.05, 1)
        if self.size is not None:
            check_range("size", self.size, 8, 4096)
        if self.batch is not None:
            check_range("batch", self.batch, 1, 4096)
        if self.weights is not None and self.untrained:
            raise RecipeError(
                "weights of one's own and no weights at once",
                expected="either weights or untrained",
                actual=f"weights = {self.weights}, untrained = true",
                fix="drop one of them",
            )
        if self.mean is not None or self.deviation is not None:
            make_statistics(self.mean or (0, 0, 0), self.deviation or (1, 1, 1))  # refuses what means nothing
