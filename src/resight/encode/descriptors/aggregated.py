"""Instance-token aggregation: K tokens that represent all tokens of an image (CraterBench-R).

K tokens are the seeds; every other token is assigned to seeds by cosine, and each seed is merged with its members. All
tokens are scaled to unit length first, so that all count equally.

    seeds        fps: the first is the token with the most CLS attention (without attention: the one nearest the
                 mean), each next one the token farthest, in cosine, from all before it; attention: the K tokens
                 with the most CLS attention
    assignment   hard_top1: to the nearest seed; soft_top2, soft_top4: shared by the 2 or 4 nearest, in shares
                 softmax(cosine / temperature); group_dense: shared by all seeds in the same way
    merge        seed_plus_mean: L2(seed + weighted mean of the members); mean: L2 of the weighted mean of both,
                 the seed's weight being 1. A seed without members stays itself.
    pool         none: the K tokens, for late interaction; mean, max: one vector per image, L2 of the mean or of the
                 maximum per dimension of the K tokens, to be compared by cosine

Out: vectors [n, D] of unit length. The box of a token encloses its seed's patch and all patches of which no other seed
has a larger share; the seed's own patch is stored beside it, since members may lie far apart. K above N gives all N
tokens. Ties go to the first token or seed. An image whose tokens are nearly equal (mean cosine above `blank`) shows
nothing recognisable: it gets no tokens and matches nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from resight.encode.descriptors.tokens import box_patches, refuse_without, require_grid, require_positive
from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Descriptors, Features, FloatArray, IntArray, Role
from resight.vectors import l2_normalise

Seeds = Literal["fps", "attention"]
Assignment = Literal["hard_top1", "soft_top2", "soft_top4", "group_dense"]
Merge = Literal["seed_plus_mean", "mean"]
Pool = Literal["none", "mean", "max"]
SHARED_BY = {"hard_top1": 1, "soft_top2": 2, "soft_top4": 4}


@dataclass(frozen=True)
class Config:
    k: int = 32  # tokens per image; an image with fewer keeps all
    seeds: Seeds = "fps"  # how seeds are chosen: fps (farthest point sampling) or attention (most CLS attention)
    assignment: Assignment = "hard_top1"  # how tokens join seeds: nearest, 2 or 4 nearest, or all (group_dense)
    merge: Merge = "seed_plus_mean"  # how a seed and its members merge: seed plus the members' mean, or mean of all
    temperature: float = 0.1  # softmax temperature of soft and dense assignment; lower favours the nearest seed
    blank: float = 1.0  # an image whose tokens have a higher mean cosine gets none; depends on the encoder; 1: off
    pool: Pool = "none"  # keep the merged tokens, or pool them to one vector by their mean or max


def build(config: Config) -> "Aggregated":
    check_range("blank", config.blank, -1, 1)
    _check(config.k, config.seeds, config.assignment, config.merge, config.temperature)
    return Aggregated(config)


class Aggregated:
    def __init__(self, config: Config) -> None:
        self.fingerprint = (
            f"aggregated(k={config.k}, seeds={config.seeds}, assignment={config.assignment}, "
            f"merge={config.merge}, temperature={config.temperature}, blank={config.blank}"
            + ("" if config.pool == "none" else f", pool={config.pool}")
            + ")"
        )
        self._config = config

    def describe(self, features: Features, role: Role) -> Descriptors:  # noqa: ARG002 - both sides alike
        require_grid(features, "aggregated")
        settings = self._config
        vectors, boxes, seeds = [], [], []
        for image, patch_boxes in enumerate(box_patches(features)):
            attention = None if features.attention is None else features.attention[image]
            merged, members = aggregate(
                features.patches[image],
                attention,
                settings.k,
                settings.seeds,
                settings.assignment,
                settings.merge,
                settings.temperature,
            )
            kept = slice(0 if mean_cosine(features.patches[image]) > settings.blank else None)
            if settings.pool != "none":
                vectors.append(pool_tokens(merged, settings.pool)[kept])
                continue
            vectors.append(merged[kept])
            boxes.append(enclose(members, patch_boxes)[kept])
            seeds.append(patch_boxes[members.seeds][kept])
        return Descriptors(
            ids=features.ids,
            vectors=np.concatenate(vectors),
            owners=np.repeat(np.arange(len(vectors), dtype=np.int32), [len(rows) for rows in vectors]),
            boxes=np.concatenate(boxes) if boxes else None,
            seeds=np.concatenate(seeds) if seeds else None,
        )


def pool_tokens(tokens: FloatArray, pool: Pool) -> FloatArray:
    """Merged tokens [k, D] → [1, D] of unit length."""
    return l2_normalise(tokens.max(axis=0, keepdims=True) if pool == "max" else tokens.mean(axis=0, keepdims=True))


def mean_cosine(tokens: FloatArray) -> float:
    """The mean cosine of all pairs of tokens [N, D], each with itself included."""
    return min(float(np.square(l2_normalise(tokens).mean(axis=0)).sum()), 1.0)


@dataclass(frozen=True)
class Members:
    """The members of each seed: `members[i]` are the tokens assigned to seed i, without the seed itself."""

    seeds: IntArray  # [k] row numbers of the seeds
    shares: FloatArray  # [k, N] share of each token per seed; columns sum to 1, those of seeds to 0

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, seed: int) -> IntArray:
        return np.flatnonzero(self.shares[seed])

    def __iter__(self) -> Iterator[IntArray]:
        return (self[seed] for seed in range(len(self)))

    @property
    def weights(self) -> list[FloatArray]:
        """The shares of the members of each seed, in the order of `members[i]`."""
        return [self.shares[seed, rows] for seed, rows in enumerate(self)]


def aggregate(
    tokens: FloatArray,
    attention: FloatArray | None,
    k: int = 32,
    seeds: Seeds = "fps",
    assignment: Assignment = "hard_top1",
    merge: Merge = "seed_plus_mean",
    temperature: float = 0.1,
) -> tuple[FloatArray, Members]:
    """Tokens [N, D] (and attention [N]) → vectors [min(k, N), D] of unit length, in the order of the seeds."""
    _check(k, seeds, assignment, merge, temperature)
    units = l2_normalise(tokens)
    cosines = units @ units.T
    if seeds == "fps":
        chosen = _sample_farthest(cosines, _first(units, attention), min(k, len(units)))
    elif attention is None:
        raise refuse_without("attention", "CLS attention", ("fps",))
    else:
        chosen = np.argsort(-attention, kind="stable")[:k].astype(np.int64)
    shares = _share(cosines[chosen], SHARED_BY.get(assignment, len(chosen)), temperature)
    shares[:, chosen] = 0
    sums, totals = shares @ units, shares.sum(axis=1, keepdims=True)
    if merge == "seed_plus_mean":
        merged = units[chosen] + sums / np.where(totals > 0, totals, 1)
    else:
        merged = units[chosen] + sums  # normalisation makes dividing by the sum of weights unnecessary
    return l2_normalise(merged), Members(chosen, shares)


def enclose(members: Members, patches: FloatArray) -> FloatArray:
    """The boxes [k, 4] of the tokens, from those of all patches [N, 4]."""
    owners = members.shares.argmax(axis=0)
    owners[members.seeds] = np.arange(len(members))
    boxes = patches[members.seeds].copy()
    np.minimum.at(boxes[:, :2], owners, patches[:, :2])
    np.maximum.at(boxes[:, 2:], owners, patches[:, 2:])
    return boxes


def _first(units: FloatArray, attention: FloatArray | None) -> int:
    return int(np.argmax(units @ units.mean(axis=0) if attention is None else attention))


def _sample_farthest(cosines: FloatArray, first: int, count: int) -> IntArray:
    """Farthest-point sampling: each next token is the one least similar to its nearest seed."""
    chosen = np.empty(count, np.int64)
    nearest = np.full(len(cosines), -np.inf, np.float32)
    token = first
    for position in range(count):
        chosen[position] = token
        np.maximum(nearest, cosines[token], out=nearest)
        nearest[token] = np.inf
        token = int(nearest.argmin())
    return chosen


def _share(cosines: FloatArray, count: int, temperature: float) -> FloatArray:
    """Cosines of seeds and tokens [k, N] → shares [k, N] of each token among its `count` nearest seeds."""
    if count == 1:
        shares = np.zeros_like(cosines)
        shares[cosines.argmax(axis=0), np.arange(cosines.shape[1])] = 1
        return shares
    kept = np.argsort(-cosines, axis=0, kind="stable")[:count]
    best = np.take_along_axis(cosines, kept, axis=0)
    powers = np.exp((best - best[:1]) / np.float32(temperature))
    shares = np.zeros_like(cosines)
    np.put_along_axis(shares, kept, powers / powers.sum(axis=0), axis=0)
    return shares


def _check(k: int, seeds: str, assignment: str, merge: str, temperature: float) -> None:
    require_positive(k)
    for name, value, valid in (
        ("seeds", seeds, Seeds),
        ("assignment", assignment, Assignment),
        ("merge", merge, Merge),
    ):
        if value not in get_args(valid):
            raise RecipeError(
                f"there is no {name} called {value!r}",
                expected=f"one of {', '.join(get_args(valid))}",
                actual=repr(value),
                fix="check the spelling",
            )
    if not temperature > 0:
        raise RecipeError(
            "temperature is not above 0", expected="a number above 0", actual=str(temperature), fix="e.g. 0.1"
        )
