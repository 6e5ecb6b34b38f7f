"""AMES: a transformer over the local descriptors of a query and of a candidate; its matching token gives their score.

    x        local descriptors of unit length, the query's first `query_tokens` and the candidate's first `image_tokens`
    remap    norm(W x + b); the binary variant takes sign(P x) for x, with P learnt from ITQ. Without bits, those of the
             candidate pass through float16, as they would be stored
    rows     [matching token; remapped query; remapped candidate], without positions and without a separator
    layer    r ← norm(r + within(r));  r ← norm(r + across(r));  r ← norm(r + narrow(relu(widen(r))))
             within: a row attends to rows of its own image and to the matching token; across: to rows of the other
             image and to the matching token. The matching token attends to all rows in both
    logit    a linear map of the matching token

`balance` (λ) and `gamma` (γ) of the reranker pair_transformer blend it: λ · global + (1 − λ) · σ(γ · logit). Published:
λ = 0.55, γ = 0.3 for DINOv2 in full precision, λ = 0.35, γ = 0.1 for the binary, distilled one.

Weights are a torch checkpoint of the published layout (a state dict, or one under the key "state"), read without torch.
The authors' networks take 768 dimensions (DINOv2 ViT-B/14 with registers) or 1,024 (CVNet) after their detector, which
the descriptor `ames_local` has: 600 descriptors of a query, 50 of a stored image.
P. Suma et al., AMES: asymmetric and memory-efficient similarity estimation for instance-level retrieval, ECCV 2024.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight.encode import torch_file
from resight.errors import InputError, MissingWeights, SpaceMismatch
from resight.files.fingerprint import fingerprint_file
from resight.plugins import check_range
from resight.types import Descriptors, FloatArray
from resight.vectors import l2_normalise

EPSILON = 1e-5  # of the norms
Weights = dict[str, FloatArray]
Shapes = Iterator[tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Config:
    weights: Path | None = None  # torch checkpoint of the published layout, such as dinov2_ames.pt (required)
    heads: int = 2  # heads of an attention; the checkpoint does not tell
    query_tokens: int = 600  # most local descriptors of the query to compare, the first ones
    image_tokens: int = 50  # most local descriptors of an image to compare, the first ones

    def __post_init__(self) -> None:
        check_range("heads", self.heads, 1, 1024)
        check_range("query_tokens", self.query_tokens, 1, 1_000_000)
        check_range("image_tokens", self.image_tokens, 1, 1_000_000)


def build(config: Config) -> "Ames":
    if config.weights is None or not config.weights.is_file():
        raise MissingWeights(
            "the scorer 'ames' needs weights, and none come with the package",
            expected="a checkpoint of AMES, such as dinov2_ames.pt or its distilled, binary variant",
            actual="none" if config.weights is None else str(config.weights),
            fix='download one from the page of its authors, then scorer = { name = "ames", weights = "FILE.pt" }',
        )
    mark = fingerprint_file(config.weights, 12)
    return Ames(config, _read_once(config.weights, config.heads, mark), mark)


@functools.lru_cache(maxsize=2)
def _read_once(path: Path, heads: int, mark: str) -> Weights:  # noqa: ARG001 - `mark` changes with the file
    """A grid of settings builds hundreds of scorers with the same weights."""
    return read_weights(path, heads)


class Ames:
    def __init__(self, config: Config, weights: Weights, mark: str) -> None:
        self.fingerprint = f"ames({mark}, {config.heads}, {config.query_tokens}, {config.image_tokens})"
        self._config = config
        self._weights = weights
        self._binary = BITS in weights
        self._layers = count_layers(weights)

    def score(self, query: Descriptors, image: Descriptors) -> float:
        sides = [
            self._remap(query, self._config.query_tokens),
            self._remap(image, self._config.image_tokens),
        ]
        if not self._binary:
            sides[1] = sides[1].astype(np.float16).astype(np.float32)
        rows = np.concatenate([self._weights["mtc_token"][None], *sides])
        within, across = make_masks(len(sides[0]), len(sides[1]))
        for layer in range(self._layers):
            name = f"decoder.layers.{layer}."
            rows = self._norm(rows + self._attend(rows, f"{name}self_attn", within), f"{name}norm1")
            rows = self._norm(rows + self._attend(rows, f"{name}cross_attn", across), f"{name}norm2")
            wide = np.maximum(self._apply(rows, f"{name}linear1"), 0)
            rows = self._norm(rows + self._apply(wide, f"{name}linear2"), f"{name}norm3")
        return float(self._apply(rows[:1], "classifier")[0, 0])

    def _remap(self, side: Descriptors, most: int) -> FloatArray:
        expected = self._weights[BITS].shape[0] if self._binary else self._weights["remap_local.0.weight"].shape[1]
        if side.vectors.shape[1] != expected:
            raise SpaceMismatch(
                "these weights of AMES were trained on other local descriptors",
                expected=f"{expected} dimensions",
                actual=f"{side.vectors.shape[1]} dimensions",
                fix="encode with the backbone of the weights, e.g. dinov2_vitb14_reg with the descriptor ames_local",
            )
        rows = l2_normalise(np.asarray(side.vectors[:most], np.float32))
        if self._binary:
            rows = np.sign(rows @ self._weights[BITS])
        linear, norm = ("remap_local.1", "remap_local.2") if self._binary else ("remap_local.0", "remap_local.1")
        return self._norm(self._apply(rows, linear), norm)

    def _attend(self, rows: FloatArray, name: str, allowed: NDArray[np.bool_]) -> FloatArray:
        """Attention of every row to the allowed rows [n, n]."""
        weights, heads = self._weights, self._config.heads
        joined = rows @ weights[f"{name}.in_proj_weight"].T + weights[f"{name}.in_proj_bias"]
        queries, keys, values = joined.reshape(len(rows), 3, heads, -1).transpose(1, 2, 0, 3)
        logits = queries @ keys.transpose(0, 2, 1) / np.sqrt(np.float32(queries.shape[2]))
        logits = np.where(allowed, logits, np.float32(-np.inf))
        shares = np.exp(logits - logits.max(axis=2, keepdims=True))
        shares = shares / shares.sum(axis=2, keepdims=True)
        return self._apply((shares @ values).transpose(1, 0, 2).reshape(len(rows), -1), f"{name}.out_proj")

    def _norm(self, rows: FloatArray, name: str) -> FloatArray:
        rest = rows - rows.mean(axis=1, keepdims=True)
        scaled = rest / np.sqrt((rest**2).mean(axis=1, keepdims=True) + EPSILON)
        return np.asarray(scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"], np.float32)

    def _apply(self, rows: FloatArray, name: str) -> FloatArray:
        return np.asarray(rows @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"], np.float32)


BITS = "remap_local.0.W"  # P of the binary variant [D, bits]


def make_masks(query: int, image: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows each row attends to, within its image and across; row 0 is the matching token."""
    side = np.concatenate([[0], np.full(query, 1), np.full(image, 2)])
    token = (side[:, None] == 0) | (side[None] == 0)
    same = side[:, None] == side[None]
    return token | same, token | ~same


def count_layers(weights: Weights) -> int:
    return len({name.split(".")[2] for name in weights if name.startswith("decoder.layers.")})


def read_weights(path: Path, heads: int) -> Weights:
    """The state dict of a checkpoint, in the published layout and no other."""
    held = torch_file.load(path, inside="state")
    weights: Weights = {name: np.asarray(value, np.float32) for name, value in held.items()}
    try:
        expected = dict(list_shapes(weights))
    except (KeyError, IndexError, ValueError) as error:
        raise _refuse(path, "the layers of AMES", f"nothing called {error}") from error
    for name, shape in expected.items():
        if name not in weights or weights[name].shape != shape:
            actual = f"{name} {list(weights[name].shape)}" if name in weights else f"nothing called {name}"
            raise _refuse(path, f"{name} {list(shape)}", actual)
    others = sorted(weights.keys() - expected.keys())
    if others:
        raise _refuse(path, "the published layout, with norms after each block", f"also {others[0]}")
    if len(weights["mtc_token"]) % heads:
        raise _refuse(path, f"a width that {heads} heads divide", f"{len(weights['mtc_token'])}")
    return weights


def list_shapes(weights: Weights) -> Shapes:
    """Every name of the published layout and its shape; the sizes are those that the weights imply."""
    (width,) = weights["mtc_token"].shape
    inner = weights["decoder.layers.0.linear1.weight"].shape[0]
    yield "mtc_token", (width,)
    if BITS in weights:
        dimensions, bits = weights[BITS].shape
        yield BITS, (dimensions, bits)
        yield from _list_linear("remap_local.1", bits, width)
    else:
        yield from _list_linear("remap_local.0", weights["remap_local.0.weight"].shape[1], width)
    yield from _list_norm("remap_local.2" if BITS in weights else "remap_local.1", width)
    for layer in range(count_layers(weights)):
        name = f"decoder.layers.{layer}."
        for block in ("self_attn", "cross_attn"):
            yield f"{name}{block}.in_proj_weight", (3 * width, width)
            yield f"{name}{block}.in_proj_bias", (3 * width,)
            yield from _list_linear(f"{name}{block}.out_proj", width, width)
        yield from _list_linear(f"{name}linear1", width, inner)
        yield from _list_linear(f"{name}linear2", inner, width)
        for norm in ("norm1", "norm2", "norm3"):
            yield from _list_norm(f"{name}{norm}", width)
    yield from _list_linear("classifier", width, 1)


def _list_linear(name: str, inputs: int, outputs: int) -> Shapes:
    yield f"{name}.weight", (outputs, inputs)
    yield f"{name}.bias", (outputs,)


def _list_norm(name: str, width: int) -> Shapes:
    yield f"{name}.weight", (width,)
    yield f"{name}.bias", (width,)


def _refuse(path: Path, expected: str, actual: str) -> InputError:
    return InputError(
        f"{path.name} does not hold the weights of AMES",
        expected=expected,
        actual=actual,
        fix="give a checkpoint of its authors, or one with the same names and shapes",
    )
