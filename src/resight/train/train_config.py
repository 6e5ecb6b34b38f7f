"""The `[train]` table of a recipe → frozen Settings. The defaults are CiDeR's (Song et al., CVPR 2024, appendix A).

[train]
name = "network"
epochs = 100
loss = { name = "arcface", margin = 0.3 }
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resight import plugins
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Choice, Recipe

NAME = "network"
NETWORK, RECIPE, REPORT = "network.safetensors", "recipe.toml", "report.json"  # files of a finished training
BEFORE_TRAINING = ("pretrained", "backbone_weights", "untrained", "weights")  # encoder settings about first weights
ARCFACE = Choice("arcface", {"margin": 0.3})
Stage = Literal["all", "backbone", "head"]


@dataclass(frozen=True)
class Settings:
    loss: Choice = ARCFACE
    stages: tuple[Stage, ...] = ("all",)  # CiDeR-FT: backbone, then head; see optim.py
    epochs: int = 50  # of each stage
    batch: int = 128  # images per step of the optimiser, over all processes
    accumulate: int = 1  # parts of a batch, if it does not fit in memory
    seed: int = 0

    optimizer: Literal["sgd", "adamw"] = "sgd"
    rate: float = 1e-3
    loss_rate: float = 1.0  # times `rate`, for the loss's class centres
    momentum: float = 0.9
    decay: float = 1e-5
    warmup: float = 3  # epochs
    clip: float | None = None  # largest gradient norm
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    batch_norm: Literal["frozen", "train", "synced"] = "train"  # see optim.py
    ema: float = 0.0  # decay of the moving average of the weights; 0: none

    sampling: Literal["group", "fixed"] = "group"  # groups by aspect ratio, each with its own size; or one square
    size: int = 224  # side of the square; width × height of a group is about size²
    ratio_step: float = 0.25  # of log2(width / height), between groups
    balance: Literal["images", "classes"] = "images"  # an epoch shows these equally often
    together: int = 1  # images of a class in the same batch; 2 or more for losses that compare images
    single: Literal["refuse", "leave_out", "keep"] = "refuse"  # classes with one image

    crop: float = 1.0  # least share of the area that a random crop keeps
    flip: bool = False  # left to right, half of the time
    colour: float = 0.0  # largest change of brightness, contrast and saturation, as a share
    turn: float = 0.0  # largest rotation, degrees

    held_out: float = 0.05  # share of the classes for validation only; 0: no validation
    held_out_images: int = 5000  # at most, in whole classes
    patience: int = 0  # epochs without a better validation before it stops; 0: never

    save_every: int = 0  # steps between checkpoints within an epoch; 0: only at the end of epochs
    unreadable: float = 0.01  # share of unreadable images beyond which training stops
    workers: int = 2  # threads that read images
    threads: int = 1  # of torch on a CPU, per process
    device: str = "cpu"

    audit: Path | None = None  # folder of `resight audit`, whose classes must not be trained on
    overlap: Literal["refuse", "leave_out", "allow"] = "refuse"  # how to treat overlapping classes

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            check_range(name, getattr(self, name), least)
        for name in ("momentum", "ema"):
            check_range(name, getattr(self, name), 0, 1 - 1e-9)
        for name in ("crop", "colour", "unreadable", "held_out"):
            check_range(name, getattr(self, name), 0, 1)
        if self.batch % (self.accumulate * self.together):
            raise RecipeError(
                "batch, accumulate and together do not match",
                expected="a batch that can be cut into `accumulate` parts of whole groups of `together` images",
                actual=f"batch = {self.batch}, accumulate = {self.accumulate}, together = {self.together}",
                fix="e.g. batch = 128, accumulate = 4, together = 4",
            )


LEAST = {
    "epochs": 1,
    "batch": 1,
    "accumulate": 1,
    "rate": 0,
    "loss_rate": 0,
    "decay": 0,
    "warmup": 0,
    "size": 1,
    "ratio_step": 0.01,
    "together": 1,
    "turn": 0,
    "held_out_images": 1,
    "patience": 0,
    "save_every": 0,
    "workers": 1,
    "threads": 1,
}


def read_settings(recipe: Recipe) -> Settings:
    choice = recipe.train
    if choice is None or choice.name != NAME:
        raise RecipeError(
            f"the recipe {recipe.name!r} has no training settings",
            expected=f'a table [train] with name = "{NAME}"',
            actual="none" if choice is None else f"name = {choice.name!r}",
            fix="use a recipe that has one, such as cider/sfm120k; docs/guides/training.md lists the settings",
        )
    settings: Settings = plugins.configure(Settings, choice.settings, "train")
    return settings
