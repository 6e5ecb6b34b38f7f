"""Heads, one per file: small torch modules over the rows of a frozen encoder; resight.encode.heads applies them.

Rows [..., D] in, rows [..., d] of unit length out. Every head starts as a projection onto the principal directions of
the rows, so that before training its results (nearly) equal those of the frozen encoder.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from resight import plugins
from resight.types import FloatArray


class Head(nn.Module):
    """The part common to all heads: the mean of the rows, which stays fixed, and the projection."""

    mean: Tensor

    def __init__(self, mean: FloatArray, directions: FloatArray) -> None:
        """Mean [D] and principal directions [D, d]."""
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(np.array(mean, np.float32)))
        self.skip = nn.Parameter(torch.from_numpy(np.array(directions, np.float32)))

    def forward(self, rows: Tensor) -> Tensor:
        return nn.functional.normalize(self.project(rows - self.mean), dim=-1)

    def project(self, rows: Tensor) -> Tensor:
        return rows @ self.skip

    def export(self) -> dict[str, FloatArray]:
        """Its arrays, by the names that resight.encode.heads uses."""
        return {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}


def build(name: str, rows: FloatArray, seed: int, **settings: Any) -> Head:
    """The head `name` for rows like these [n, D]; `seed` is for its random initial weights."""
    module = plugins.find(__name__, name)
    config = plugins.configure(module.Config, settings, f"head {name!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head: Head = module.build(config, *find_directions(rows, config.dimensions))
    return head


def find_directions(rows: FloatArray, dimensions: int) -> tuple[FloatArray, FloatArray]:
    """The mean [D] of the rows and their first principal directions [D, at most `dimensions`], largest first."""
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean
    vectors = np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
    return np.asarray(mean, np.float32), np.asarray(vectors[:, :dimensions], np.float32)
