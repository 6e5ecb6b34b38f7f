"""Which parts of a network learn in a stage of training, and how batch normalisation is treated meanwhile.

    all        everything at once (CiDeR)
    backbone   first stage of CiDeR-FT: trunk and pooling alone, as a classifier; the parts between are passed by
    head       second stage: all but the trunk, which is frozen and stays in evaluation mode

A network is given with `parts`, names → modules in the order in which they run, the first the trunk and the last the
pooling, as `encode/networks/cider/network.py` has them; a network without parts has the stage `all` only.

Batch normalisation: `train` uses the statistics of what a process computes at once, which is a share of the batch where
several processes or parts share it. `synced` uses those of the batch over all processes (synced_norm.py); what
`accumulate` cuts stays cut. `frozen` uses the stored statistics and does not depend on any of this.
"""

from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.modules.batchnorm import _BatchNorm

from resight.errors import RecipeError
from resight.train.settings import Settings, Stage


def freeze(network: nn.Module, stage: Stage) -> None:
    """Sets `requires_grad` of every parameter."""
    network.requires_grad_(True)
    if stage != "all":
        trunk, *between, _ = _list_parts(network, stage)
        for part in [trunk] if stage == "head" else between:
            part.requires_grad_(False)


def view(network: nn.Module, stage: Stage) -> nn.Module:
    """The network as the stage sees it, made of the same modules."""
    if stage != "backbone":
        return network
    trunk, *_, pool = _list_parts(network, stage)
    return BackboneAlone(trunk, pool)


class BackboneAlone(nn.Module):
    """Images → embeddings [B, D] of unit length by trunk and pooling."""

    def __init__(self, trunk: nn.Module, pool: nn.Module) -> None:
        super().__init__()
        self.trunk = trunk
        self.pool = pool

    def forward(self, images: Tensor) -> Tensor:
        return normalize(self.pool(self.trunk(images)))


def set_training_mode(network: nn.Module, stage: Stage, settings: Settings) -> None:
    """What is frozen does not collect statistics."""
    network.train()
    if stage == "head":
        _list_parts(network, stage)[0].eval()
    if settings.batch_norm == "frozen":
        for module in network.modules():
            if isinstance(module, _BatchNorm):
                module.eval()


def _list_parts(network: nn.Module, stage: Stage) -> list[nn.Module]:
    parts = getattr(network, "parts", None)
    if parts is None:
        raise RecipeError(
            f"the stage {stage!r} needs a network with parts",
            expected="an encoder with backbone and head, such as cider",
            actual=type(network).__name__,
            fix='set stages = ["all"]',
        )
    return list(parts.values())
