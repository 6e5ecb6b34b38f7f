"""A network and images so small that training them takes a second."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from resight.encode.networks.torch_backbone import Input
from resight.train.examples import Examples
from resight.train.train_config import Settings
from resight.types import ImageRef

INPUT = Input(size=16, mean=(0.5, 0.5, 0.5), deviation=(0.25, 0.25, 0.25), interpolation="area", cell=4)
QUICK = Settings(
    epochs=2, batch=8, rate=0.05, warmup=1, sampling="fixed", size=16, held_out=0, crop=0.6, flip=True, colour=0.2
)


class TinyNetwork(nn.Module):
    """Convolution, dropout (which draws from torch's random state) and pooling; with parts, as CiDeR has them."""

    def __init__(self, norm: bool = False, dropout: float = 0.2) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            normalise = nn.BatchNorm2d(8) if norm else nn.Identity()
            self.trunk = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), normalise, nn.ReLU())
            self.middle = nn.Sequential(nn.Conv2d(8, 8, 1), nn.Dropout(dropout))
            self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 12))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(self.pool(self.middle(self.trunk(images))))

    @property
    def parts(self) -> dict[str, nn.Module]:
        return {"trunk": self.trunk, "middle": self.middle, "pool": self.pool}


def write_classes(folder: Path, classes: int, each: int, shape: tuple[int, int] = (24, 24)) -> Path:
    """A folder a class; its images are one pattern, each in another light and with other noise."""
    rng = np.random.default_rng(0)
    for label in range(classes):
        pattern = np.kron(rng.uniform(0, 255, (4, 4, 3)), np.ones((shape[0] // 4, shape[1] // 4, 1)))
        (folder / f"c{label}").mkdir(parents=True)
        for number in range(each):
            pixels = pattern * rng.uniform(0.7, 1) + rng.normal(0, 8, pattern.shape)
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"c{label}" / f"{number}.png")
    return folder


def list_examples(folder: Path) -> Examples:
    refs = tuple(ImageRef(path.relative_to(folder).as_posix(), path) for path in sorted(folder.rglob("*.png")))
    return Examples(refs, tuple(ref.path.parent.name for ref in refs))
