"""A small transformer over the tokens of a query and of a candidate together: its class token gives their score.

    rows     [class; W x_i + P p_i + query; W x_j + P p_j + image]     x: tokens, p: their boxes (`find_boxes`)
    layers   r ← r + attention(norm(r));  r ← r + narrow(relu(widen(norm(r))))
    logit    head(norm(r)_class) + late · MaxSim

MaxSim is late interaction, (1/Kq) Σ_i max_j ⟨x_i, x_j⟩: training starts from it, and learns a correction. Weights come
from an .npz file as `resight.train.fit_pair_transformer.export` writes it, and need no torch.
After P. Suma et al., AMES: asymmetric and memory-efficient similarity estimation for instance-level retrieval, 2024.
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight.errors import InputError, MissingWeights, SpaceMismatch
from resight.files.fingerprint import fingerprint_file
from resight.search.locate_boxes import require_boxes
from resight.types import Descriptors, FloatArray

EPSILON = 1e-5  # of the norms
PARTS = ("norm1", "attention", "output", "norm2", "widen", "narrow")
Weights = dict[str, FloatArray]


@dataclass(frozen=True)
class Config:
    weights: Path | None = None  # .npz file that resight.train.fit_pair_transformer.export wrote (required)


def build(config: Config) -> "Transformer":
    if config.weights is None or not config.weights.is_file():
        raise MissingWeights(
            "the scorer 'transformer' needs weights, and none come with the package",
            expected="an .npz file that `resight.train.fit_pair_transformer.export` wrote",
            actual="none" if config.weights is None else str(config.weights),
            fix='train one on your own images, then scorer = { name = "transformer", weights = "FILE.npz" }',
        )
    return Transformer(read_weights(config.weights), fingerprint_file(config.weights, 12))


class Transformer:
    def __init__(self, weights: Weights, mark: str) -> None:
        self.fingerprint = f"transformer({mark})"
        self._weights = weights

    def score(self, query: Descriptors, image: Descriptors) -> float:
        if not len(query) or not len(image):
            return float(self._weights["head.bias"][0])
        _check_dimensions(query, self._weights)
        vectors = [np.asarray(side.vectors, np.float32) for side in (query, image)]
        likeness = float((vectors[0] @ vectors[1].T).max(axis=1).mean())
        sides = zip(vectors, (find_boxes(query), find_boxes(image)), (1, 2), strict=True)
        kinds = self._weights["kinds"]
        rows = np.concatenate([kinds[:1], *(self._embed(tokens, boxes) + kinds[kind] for tokens, boxes, kind in sides)])
        for layer in range(int(self._weights["depth"])):
            rows = self._pass(rows, f"layers.{layer}.")
        return float(self._apply(self._norm(rows[:1], "norm"), "head")[0, 0] + self._weights["late"][0] * likeness)

    def _embed(self, tokens: FloatArray, boxes: FloatArray) -> FloatArray:
        return np.asarray(self._apply(tokens, "project") + boxes @ self._weights["place.weight"].T)

    def _pass(self, rows: FloatArray, layer: str) -> FloatArray:
        rows = rows + self._attend(self._norm(rows, f"{layer}norm1"), layer)
        wide = np.maximum(self._apply(self._norm(rows, f"{layer}norm2"), f"{layer}widen"), 0)
        return np.asarray(rows + self._apply(wide, f"{layer}narrow"))

    def _attend(self, rows: FloatArray, layer: str) -> FloatArray:
        heads = int(self._weights["heads"])
        parts = self._apply(rows, f"{layer}attention").reshape(len(rows), 3, heads, -1).transpose(1, 2, 0, 3)
        queries, keys, values = parts  # [heads, n, width of a head]
        logits = queries @ keys.transpose(0, 2, 1) / np.sqrt(np.float32(queries.shape[2]))
        shares = np.exp(logits - logits.max(axis=2, keepdims=True))
        shares = shares / shares.sum(axis=2, keepdims=True)
        return self._apply((shares @ values).transpose(1, 0, 2).reshape(len(rows), -1), f"{layer}output")

    def _norm(self, rows: FloatArray, name: str) -> FloatArray:
        rest = rows - rows.mean(axis=1, keepdims=True)
        scaled = rest / np.sqrt((rest**2).mean(axis=1, keepdims=True) + EPSILON)
        return np.asarray(scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"])

    def _apply(self, rows: FloatArray, name: str) -> FloatArray:
        return np.asarray(rows @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"])


def find_boxes(rows: Descriptors) -> FloatArray:
    """[K, 4]: centre x, y, width and height of the tokens' own patches, as shares of the area that all tokens cover."""
    boxes = require_boxes(rows)
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    patches = boxes if rows.seeds is None else rows.seeds
    middles = (patches[:, :2] + patches[:, 2:]) / 2 - low
    return np.asarray(np.hstack([middles, patches[:, 2:] - patches[:, :2]]) / np.tile(np.maximum(high - low, 1e-6), 2))


def read_weights(path: Path) -> Weights:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            weights = {name: arrays[name] for name in arrays.files}
        layers = [f"layers.{layer}.{part}" for layer in range(int(weights["depth"])) for part in PARTS]
        for name in ("project", *layers, "norm", "head"):
            weights[f"{name}.weight"], weights[f"{name}.bias"]
        weights["place.weight"], weights["kinds"], weights["late"], weights["heads"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path} does not hold the weights of a pair transformer",
            expected="a file that `resight.train.fit_pair_transformer.export` wrote",
            actual=str(error),
            fix="write it again",
        ) from error
    return weights


def _check_dimensions(query: Descriptors, weights: Weights) -> None:
    learnt, given = weights["project.weight"].shape[1], query.vectors.shape[1]
    if learnt != given:
        raise SpaceMismatch(
            "the scorer was trained on other tokens",
            expected=f"tokens of {learnt} dimensions",
            actual=f"{given} dimensions",
            fix="train it on tokens of this recipe",
        )
