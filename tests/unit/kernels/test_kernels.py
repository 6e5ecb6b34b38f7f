"""The face of the kernels against the formula, written out in numpy: (1/Kq) Σ_i max_j ⟨q_i, x_j⟩."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from resight import kernels
from resight.errors import InputError, ResightError

RNG = np.random.default_rng(5)


def make_tokens(counts, dimensions, rng=RNG):
    rows = rng.normal(size=(int(np.sum(counts)), dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def score_by_hand(query, tokens, offsets):
    parts = (tokens[start:stop] for start, stop in itertools.pairwise(offsets))
    return np.array([(query.astype(np.float64) @ part.T).max(axis=1).mean() for part in parts])


@pytest.mark.parametrize("dimensions", [8, 33, 64, 384])
def test_every_number_of_tokens_from_1_to_300(dimensions):
    counts = np.arange(1, 301)
    tokens, offsets = make_tokens(counts, dimensions)
    packs = {kind: kernels.pack(tokens, offsets, kind=kind) for kind in ("fp32", "fp16", "int8")}
    for length in (1, 7, 32):
        query, _ = make_tokens([length], dimensions)
        truth = score_by_hand(query, tokens, offsets)
        assert packs["fp32"].scores(query) == pytest.approx(truth, abs=1e-5)
        assert packs["fp16"].scores(query) == pytest.approx(truth, abs=2e-3)
        assert (np.abs(packs["int8"].scores(query) - truth) <= packs["int8"].errors(query) + 1e-6).all()


@pytest.mark.parametrize("length", [1, 5, 32, 40])
def test_every_number_of_dimensions_from_8_to_2048(length):
    for dimensions in [*range(8, 140), *range(140, 2049, 61), 2047, 2048]:
        tokens, offsets = make_tokens([3, 1, 6], dimensions)
        query, _ = make_tokens([length], dimensions)
        truth = score_by_hand(query, tokens, offsets)
        assert kernels.pack(tokens, offsets, kind="fp32").scores(query) == pytest.approx(truth, abs=1e-5)
        packed = kernels.pack(tokens, offsets, kind="int8")
        assert (np.abs(packed.scores(query) - truth) <= packed.errors(query) + 1e-6).all()


@pytest.mark.parametrize("kind", ["fp32", "fp16", "int8", "pq"])
def test_the_proven_answer_is_that_of_the_tokens(kind):
    rng = np.random.default_rng(0)
    tokens, offsets = make_tokens(rng.integers(1, 9, 400), 48, rng)
    packed = kernels.pack(tokens, offsets, kind=kind)
    for _ in range(40):
        query, _ = make_tokens([rng.integers(1, 9)], 48, rng)
        truth = score_by_hand(query, tokens, offsets)
        rows, scores, certificate = packed.top(query, 10)
        if kind != "fp16":  # whose own tokens are rounded
            assert rows.tolist() == np.argsort(-truth, kind="stable")[:10].tolist()
        assert scores == pytest.approx(truth[rows], abs=2e-3)
        assert certificate is not None


def test_a_list_of_images_is_scored_in_its_order():
    tokens, offsets = make_tokens([4] * 50, 32)
    query, _ = make_tokens([6], 32)
    for kind in ("fp32", "fp16", "int8"):
        packed = kernels.pack(tokens, offsets, kind=kind)
        rows = np.array([7, 0, 49, 7])
        assert packed.scores(query, rows=rows) == pytest.approx(packed.scores(query)[rows], abs=1e-6)


def test_equal_scores_go_by_row():
    tokens = np.tile(np.eye(8, dtype=np.float32)[:1], (20, 1))
    packed = kernels.pack(tokens, np.arange(21), kind="int8")
    assert packed.top(tokens[:1], 5)[0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["fp32", "fp16", "int8", "pq"])
def test_a_saved_pack_gives_the_same_answers(tmp_path: Path, kind):
    tokens, offsets = make_tokens([5] * 300, 32)
    query, _ = make_tokens([4], 32)
    packed = kernels.pack(tokens, offsets, kind=kind)
    packed.save(tmp_path / "pack")
    opened = kernels.open(tmp_path / "pack")
    assert np.array_equal(opened.scores(query), packed.scores(query))
    assert np.array_equal(opened.top(query, 7)[0], packed.top(query, 7)[0])


def test_a_pack_that_was_cut_short_or_changed_is_refused(tmp_path: Path):
    tokens, offsets = make_tokens([5] * 30, 32)
    kernels.pack(tokens, offsets, kind="int8").save(tmp_path / "pack")
    files = sorted((tmp_path / "pack").iterdir())
    for path in files:
        whole = path.read_bytes()
        for damaged in (whole[: len(whole) // 2], b"", bytes([whole[0] ^ 1]) + whole[1:]):
            path.write_bytes(damaged)
            with pytest.raises(ResightError):
                kernels.open(tmp_path / "pack")
        path.write_bytes(whole)
    kernels.open(tmp_path / "pack")


@pytest.mark.parametrize("spoil", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_refused_at_the_door(spoil):
    tokens, offsets = make_tokens([2, 2], 8)
    tokens[1, 3] = spoil
    with pytest.raises(InputError):
        kernels.pack(tokens, offsets)


def test_zero_vectors_mixed_dimensions_and_wrong_offsets_are_refused():
    tokens, offsets = make_tokens([2, 2], 8)
    packed = kernels.pack(tokens, offsets)
    with pytest.raises(InputError):
        packed.scores(np.ones((2, 9), np.float32))
    with pytest.raises(InputError):
        kernels.pack(np.zeros_like(tokens), offsets)
    for wrong in ([0, 3, 2], [1, 2, 4], [0, 2, 5], []):
        with pytest.raises(InputError):
            kernels.pack(tokens, wrong)
