"""Supervised contrastive loss: each image against all others of the batch, with those of its class as positives.

    mean over images of −1/|P| Σ_{p in P} log(exp(s_p) / Σ_{a ≠ i} exp(s_a)),   s = cosine / temperature

Khosla et al., NeurIPS 2020 (the form with the sum outside the logarithm). Images without a second of their class in the
batch are left out; 0 where all are.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from resight.plugins import check_range


@dataclass(frozen=True)
class Config:
    temperature: float = 0.1  # divides the cosines before the softmax; lower stresses the hardest images

    def __post_init__(self) -> None:
        check_range("temperature", self.temperature, 1e-6)


def build(config: Config) -> "SupCon":
    return SupCon(config)


class SupCon(nn.Module):
    compares = True

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        rows = normalize(embeddings)
        itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
        scores = (rows @ rows.T / self.config.temperature).masked_fill(itself, -torch.inf)
        shares = scores - scores.logsumexp(dim=1, keepdim=True)
        same = (labels[:, None] == labels[None]) & ~itself
        counts = same.sum(dim=1)
        losses = -shares.masked_fill(~same, 0).sum(dim=1)[counts > 0] / counts[counts > 0]
        return losses.sum() / max(len(losses), 1) + 0 * rows.sum()  # a gradient of zeros where no pair is left
