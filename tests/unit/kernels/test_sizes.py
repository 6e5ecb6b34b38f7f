"""Every size: the scores of all kinds are those of a plain loop in float64, whatever K, Kq and d leave over a lane."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from resight import kernels
from resight.kernels import dispatch


def average_best(query: Any, tokens: Any, offsets: Any) -> Any:
    """MaxSim, written down once more: float64, one image after the other."""
    products = np.einsum("td,qd->tq", tokens[: offsets[-1]], query, dtype=np.float64)
    return np.array([products[a:b].max(axis=0).mean() for a, b in itertools.pairwise(offsets)])


def decode(codes: Any) -> tuple[Any, Any]:
    """What int8 codes stand for: tokens [n, dims], and what a token's dot product has added to it."""
    return (codes.values.astype(np.float64) - 128) * codes.steps[:, None].astype(np.float64), codes.shifts


def score_int8(codes: Any, query: Any) -> Any:
    tokens, shifts = decode(codes)
    tokens, shifts = tokens[: codes.offsets[-1]], shifts[: codes.offsets[-1]]
    integers, steps, _ = codes.quantise_query(codes.project(query))
    products = np.einsum("td,qd->tq", tokens, integers * steps[:, None].astype(np.float64)) + shifts[:, None]
    best = [products[a:b].max(axis=0).mean() for a, b in itertools.pairwise(codes.offsets)]
    return np.array(best) + (query.astype(np.float64) @ codes.centre).mean()


@pytest.mark.parametrize("d", [8, 37, 128, 384])
def test_every_number_of_tokens_from_1_to_300(d: int) -> None:
    random = np.random.default_rng(d)
    tokens = random.standard_normal((604, d)).astype(np.float32)
    whole = np.array([0, 604])
    packs = {kind: kernels.pack(tokens, whole, kind=kind).codes for kind in ("fp32", "fp16", "int8")}
    for count in range(1, 301):
        offsets = np.array([0, count, count + 1, 2 * count + 1])
        query = random.standard_normal((count if count % 7 == 0 else count % 19 + 1, d)).astype(np.float32)
        size = 4 * 2.0**-24 * (d + len(query)) * d
        for kind, codes in packs.items():
            cut = replace(codes, offsets=offsets)  # type: ignore[type-var]
            found = cut.scores(query, None, 1)
            plain = score_int8(cut, query) if kind == "int8" else average_best(query, codes.arrays()["tokens"], offsets)
            assert np.abs(found - plain).max() <= size, (kind, count)


@pytest.mark.parametrize("count", [1, 5, 16, 33])
def test_every_number_of_dimensions_from_8_to_2048(count: int) -> None:
    random = np.random.default_rng(count)
    pool = random.standard_normal(9 * 2048).astype(np.float32)
    asked = random.standard_normal(count * 2048).astype(np.float32)
    offsets = np.array([0, 7, 8, 9])
    for d in range(8, 2049):
        tokens, query = pool[: 9 * d].reshape(9, d), asked[: count * d].reshape(count, d)
        size = 4 * 2.0**-24 * (d + count) * d
        found = dispatch.maxsim_float(query, tokens, offsets, None, 1)
        assert np.abs(found - average_best(query, tokens, offsets)).max() <= size, d
        if d % 4 == count % 4:
            halves = tokens.astype(np.float16)
            found = dispatch.maxsim_float(query, halves, offsets, None, 1)
            assert np.abs(found - average_best(query, halves, offsets)).max() <= size, d


@pytest.mark.parametrize("way", ["narrow", "wide", "scan"])
@pytest.mark.parametrize("count", [1, 4, 16, 33])
def test_every_number_of_dimensions_that_bytes_fill(way: Any, count: int) -> None:
    random = np.random.default_rng(count)
    pool = random.integers(108, 149, 20 * 2048).astype(np.uint8)
    asked = random.integers(-12, 13, count * 2048).astype(np.int8)
    steps, shifts = random.random(20).astype(np.float32), random.standard_normal(20).astype(np.float32)
    asked_steps = random.random(count).astype(np.float32)
    offsets = np.array([0, 7, 8, 20])
    for d in range(8, 2049, 4):
        tokens, query = pool[: 20 * d].reshape(20, d), asked[: count * d].reshape(count, d)
        found = dispatch.maxsim_int8(query, asked_steps, tokens, steps, shifts, offsets, None, 1, way)
        sums = (tokens.astype(np.int64) - 128) @ query.T.astype(np.int64)
        values = sums * (steps[:, None] * asked_steps) + shifts[:, None]
        plain = [values[a:b].max(axis=0).mean() for a, b in itertools.pairwise(offsets)]
        assert found == pytest.approx(np.array(plain), rel=1e-5, abs=1e-3), d


@pytest.mark.parametrize(
    "settings",
    [{"kind": "fp32"}, {"kind": "fp16"}, {"kind": "int8"}, {"kind": "pq", "m": 10}, {"kind": "pq", "m": 10, "bits": 8}],
    ids=str,
)
def test_a_list_of_rows_gives_the_scores_of_the_whole_in_its_order(settings: dict[str, Any]) -> None:
    random = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, 20, 50))])
    tokens = random.standard_normal((offsets[-1], 40)).astype(np.float32)
    rows = np.array([7, 7, 49, 0, 31])
    packed = kernels.pack(tokens, offsets, **settings)
    for count in (1, 20):
        query = random.standard_normal((count, 40)).astype(np.float32)
        found, whole = packed.scores(query, rows=rows), packed.scores(query)
        assert found == pytest.approx(whole[rows], rel=1e-5)
        # Bit by bit, so that a proof and a full search agree. numpy may round another way in a shorter list.
        assert kernels.implementation() == "numpy" or np.array_equal(found, whole[rows])


def test_an_image_without_tokens_scores_minus_infinity_and_is_never_among_the_best() -> None:
    tokens = -np.eye(40, dtype=np.float32)
    offsets = [0, 0, 1, 1, 40]
    for kind in ("fp32", "fp16", "int8", "pq"):
        packed = kernels.pack(tokens, offsets, kind=kind, **({"m": 10} if kind == "pq" else {}))  # type: ignore[arg-type]
        for count in (1, 20):
            query = np.eye(40, dtype=np.float32)[:count]
            assert np.isneginf(packed.scores(query)[[0, 2]]).all()
            assert np.isfinite(packed.scores(query)[[1, 3]]).all()
            for exact in (True, False):
                assert sorted(packed.top(query, 10, exact=exact)[0]) == [1, 3]


def test_a_worked_example() -> None:
    # Query tokens (1, 0) and (0, 2); image 0 offers 3 and 8, image 1 offers -1 and 2: means 5.5 and 0.5.
    tokens = np.array([[3, 1], [2, 4], [-1, 1]], np.float32)
    query = np.array([[1, 0], [0, 2]], np.float32)
    for kind, error in (("fp32", 0), ("fp16", 0), ("int8", 0.1)):
        found = kernels.pack(tokens, [0, 2, 3], kind=kind).scores(query)
        assert found == pytest.approx([5.5, 0.5], abs=error)


def test_a_pack_without_images_or_tokens_answers_with_nothing() -> None:
    none = np.zeros((0, 12), np.float32)
    query = np.ones((3, 12), np.float32)
    for kind in ("fp32", "fp16", "int8"):
        assert kernels.pack(none, [0], kind=kind).scores(query).shape == (0,)
        rows, scores, certificate = kernels.pack(none, [0, 0, 0], kind=kind).top(query, 5)
        assert len(rows) == len(scores) == 0
        assert certificate is not None
        assert certificate.images == 0
