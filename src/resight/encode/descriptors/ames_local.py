"""Local descriptors for AMES: the patches that its detector weights highest, many of a query and few of a stored image.

In: patches of a dense backbone. Out: vectors [n, D] of unit length, the highest weight first, the weights, and the box
of each patch. The detector of the authors is two 1 × 1 convolutions:

    y = batch norm(W1 x + b1)          the descriptor is y, scaled to unit length
    weight = softplus(w2 relu(y) + b2)

Its file is a torch checkpoint (a state dict, or one under the key "state"), read without torch. Without a file, the
patches stay as they are, and their length is their weight, as in the authors' own code. They took 600 descriptors of a
query and 50 of a stored image, from one scale of the whole image at its own resolution; here the patches are those of
the encoder's input size: 256 of a ViT-B/14 at 224 pixels, 1,369 at 518.
P. Suma et al., AMES: asymmetric and memory-efficient similarity estimation for instance-level retrieval, ECCV 2024.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.encode import torch_file
from resight.encode.descriptors.tokens import box_patches, require_grid
from resight.errors import InputError, MissingFile, RecipeError
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import Descriptors, Features, FloatArray, Role
from resight.vectors import l2_normalise

EPSILON = 1e-5  # of the batch norm
NORM = ("bn.weight", "bn.bias", "bn.running_mean", "bn.running_var")


@dataclass(frozen=True)
class Config:
    detector: Path | None = None  # torch checkpoint of the detector; None: patches as they are, weighted by length
    query: int = 600  # most local descriptors of a query
    database: int = 50  # most local descriptors of a stored image

    def __post_init__(self) -> None:
        check_range("query", self.query, 1, 1_000_000)
        check_range("database", self.database, 1, 1_000_000)


def build(config: Config) -> "AmesLocal":
    if config.detector is not None and not config.detector.is_file():
        raise MissingFile(
            "there is no detector of AMES",
            expected="a checkpoint with conv1, bn and conv2",
            actual=str(config.detector),
            fix="download it from the page of its authors, or leave detector out",
        )
    return AmesLocal(config, None if config.detector is None else Detector.read(config.detector))


class AmesLocal:
    def __init__(self, config: Config, detector: "Detector | None") -> None:
        mark = "length" if config.detector is None else fingerprint_file(config.detector, 12)
        self.fingerprint = f"ames_local({mark}, {config.query}, {config.database})"
        self._config = config
        self._detector = detector

    def describe(self, features: Features, role: Role) -> Descriptors:
        require_grid(features, "ames_local")
        most = self._config.query if role == "query" else self._config.database
        boxes = box_patches(features)
        vectors, weights, chosen = [], [], []
        for patches in features.patches:
            rows = np.asarray(patches, np.float32)
            strength = np.linalg.norm(rows, axis=1)
            if self._detector is not None:
                rows, strength = self._detector.apply(rows)
            best = np.argsort(-strength, kind="stable")[:most]
            vectors.append(l2_normalise(rows[best]))
            weights.append(strength[best].astype(np.float32))
            chosen.append(best)
        return Descriptors(
            ids=features.ids,
            vectors=np.concatenate(vectors),
            owners=np.repeat(np.arange(len(chosen), dtype=np.int32), [len(best) for best in chosen]),
            boxes=np.concatenate([own[best] for own, best in zip(boxes, chosen, strict=True)]),
            weights=np.concatenate(weights),
        )


@dataclass(frozen=True)
class Detector:
    first: FloatArray  # [D, D], with the batch norm folded in
    first_bias: FloatArray  # [D]
    second: FloatArray  # [D]
    second_bias: float

    def apply(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Patches [n, D] → descriptors [n, D] and weights [n]."""
        if rows.shape[1] != self.first.shape[1]:
            raise RecipeError(
                "the detector of AMES belongs to another backbone",
                expected=f"patches of {self.first.shape[1]} dimensions",
                actual=f"{rows.shape[1]} dimensions",
                fix="choose the encoder of the detector, e.g. dinov2_vitb14_reg",
            )
        found = rows @ self.first.T + self.first_bias
        weights = np.logaddexp(0, np.maximum(found, 0) @ self.second + self.second_bias)
        return np.asarray(found, np.float32), np.asarray(weights, np.float32)

    @classmethod
    def read(cls, path: Path) -> "Detector":
        held = torch_file.load(path, inside="state")
        try:
            weights = {name: np.asarray(value, np.float64) for name, value in held.items()}
            dimensions = len(weights["conv1.bias"])
            scale, shift, mean, variance = (weights[name].reshape(dimensions) for name in NORM)
            gain = scale / np.sqrt(variance + EPSILON)
            first = weights["conv1.weight"].reshape(dimensions, dimensions) * gain[:, None]
            bias = (weights["conv1.bias"] - mean) * gain + shift
            second = weights["conv2.weight"].reshape(dimensions)
            (last,) = weights["conv2.bias"].tolist()
        except (KeyError, ValueError) as error:
            raise InputError(
                f"{path.name} does not hold the detector of AMES",
                expected="conv1, bn and conv2, of one number of dimensions",
                actual=str(error),
                fix="give the file of its authors",
            ) from error
        return cls(first.astype(np.float32), bias.astype(np.float32), second.astype(np.float32), float(last))
