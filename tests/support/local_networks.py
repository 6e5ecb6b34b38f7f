"""Networks of local features with random weights, and their forward passes written out in torch."""

from pathlib import Path
from typing import Any

import numpy as np

SUPERPOINT = {
    **{f"conv{block}{part}": 3 for block in "1234" for part in "ab"},
    "convPa": 3,
    "convPb": 1,
    "convDa": 3,
    "convDb": 1,
}
WIDTHS = (1, 64, 64, 64, 64, 128, 128, 128, 128)  # of the input and the eight convolutions of the trunk


def write_superpoint(path: Path) -> Path:
    """A state dict in the authors' layout."""
    import torch

    torch.save(draw_superpoint(), path)
    return path


def draw_superpoint() -> dict[str, Any]:
    import torch

    generator = torch.Generator().manual_seed(0)
    heads = {"convPa": (128, 256), "convPb": (256, 65), "convDa": (128, 256), "convDb": (256, 256)}
    weights = {}
    for number, (name, side) in enumerate(SUPERPOINT.items()):
        before, after = heads.get(name) or WIDTHS[number : number + 2]
        spread = (2 / (before * side**2)) ** 0.5
        weights[f"{name}.weight"] = torch.randn(after, before, side, side, generator=generator) * spread
        weights[f"{name}.bias"] = torch.randn(after, generator=generator) * 0.1
    return weights


def run_superpoint(weights: dict[str, Any], image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A grey image [h, w], 0 to 1 → corner probabilities [h, w] and unit descriptors [256, h / 8, w / 8]."""
    import torch
    from torch.nn import functional

    def convolve(flow: Any, name: str) -> Any:
        kernel = weights[f"{name}.weight"]
        return functional.conv2d(flow, kernel, weights[f"{name}.bias"], padding=kernel.shape[2] // 2)

    flow = torch.from_numpy(image)[None, None]
    for block in "1234":
        flow = convolve(convolve(flow, f"conv{block}a").relu(), f"conv{block}b").relu()
        if block != "4":
            flow = functional.max_pool2d(flow, 2)
    logits = convolve(convolve(flow, "convPa").relu(), "convPb")
    corners = functional.pixel_shuffle(logits.softmax(dim=1)[:, :-1], 8)
    cells = functional.normalize(convolve(convolve(flow, "convDa").relu(), "convDb"), dim=1)
    return corners[0, 0].numpy(), cells[0].numpy()
