"""The compiled kernels and their numpy reference give the same answers, also on adversarial input."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight import kernels
from resight.kernels import dispatch

KINDS: list[dict[str, Any]] = [
    {"kind": "fp32"},
    {"kind": "fp16"},
    {"kind": "int8"},
    {"kind": "int8", "accumulate": "int32", "rotate": True},
    {"kind": "int8", "dims": 5},
    {"kind": "pq", "m": 3, "rounds": 2},
    {"kind": "pq", "m": 3, "bits": 8, "rounds": 2},
    {"kind": "rq", "m": 3, "rounds": 2},
]
compiled = pytest.mark.skipif(kernels.implementation() == "numpy", reason="the compiled kernels are not built here")


def ask_both(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> tuple[Any, Any]:
    ours = call()
    with monkeypatch.context() as patch:
        patch.setenv("RESIGHT_KERNELS", "numpy")
        assert kernels.implementation() == "numpy"
        return ours, call()


def allow(packed: kernels.Packed, query: Any, tokens: Any) -> float:
    """The stated bound between both: rounding, in proportion to the vectors' lengths."""
    lengths = np.linalg.norm(query, axis=1).mean() * np.linalg.norm(tokens, axis=1).max()
    return float((packed.codes.d + len(query) + 16) * 2.0**-24 * lengths * 4)


@compiled
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 70), most=st.integers(1, 40))
def test_random_ragged_pairs(seed: int, count: int, most: int) -> None:
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, most + 1, 20)), [0]])
    offsets[-1] = offsets[-2] + 260  # enough to train 8-bit codes
    d = 3 * int(random.integers(3, 40))
    tokens = random.standard_normal((offsets[-1], d)).astype(np.float32) + random.standard_normal(d).astype(np.float32)
    query = random.standard_normal((count, d)).astype(np.float32)
    packed = kernels.pack(tokens, offsets, **KINDS[seed % len(KINDS)], keep="none")
    with pytest.MonkeyPatch.context() as patch:
        ours, reference = ask_both(patch, lambda: packed.scores(query))
    filled = np.diff(offsets) > 0
    assert np.array_equal(np.isfinite(ours), filled)
    assert np.array_equal(np.isfinite(reference), filled)
    assert np.abs(ours[filled] - reference[filled]).max() <= allow(packed, query, tokens)


@compiled
@pytest.mark.parametrize("choice", KINDS, ids=str)
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e3])
def test_short_and_long_vectors(choice: dict[str, Any], size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    scales = 10 ** random.uniform(-0.5, 0.5, (400, 1))
    tokens = (random.standard_normal((400, 48)) * size * scales).astype(np.float32)
    query = (random.standard_normal((21, 48)) / size).astype(np.float32)
    packed = kernels.pack(tokens, np.arange(0, 401, 10), **choice)
    ours, reference = ask_both(monkeypatch, lambda: packed.scores(query))
    assert np.abs(ours - reference).max() <= allow(packed, query, tokens)
    assert (np.abs(ours - packed.exact_scores(query)) <= packed.errors(query)).all()


@pytest.mark.parametrize("far", [1e-14, 1e14])
def test_one_vector_of_another_size_spoils_no_bound(far: float) -> None:
    random = np.random.default_rng(2)
    tokens = random.standard_normal((60, 32)).astype(np.float32)
    tokens[17] *= np.float32(far)
    packed = kernels.pack(tokens, np.arange(0, 61, 3), kind="int8")
    query = tokens[:5] + 0.1
    assert (np.abs(packed.scores(query) - packed.exact_scores(query)) <= packed.errors(query)).all()
    assert np.array_equal(
        packed.top(query, 4)[0], kernels.pack(tokens, np.arange(0, 61, 3), kind="fp32").top(query, 4)[0]
    )


@compiled
@pytest.mark.parametrize("d", [4, 64, 384, 2048])
@pytest.mark.parametrize("count", [1, 3, 16])
def test_sums_at_the_edge_of_16_bits(d: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # All of a vector in the dimensions of one 16-bit lane, and x beside -x: sums of +32,7xx and -32,7xx.
    row = np.where(np.arange(d) % 4 < 2, 1.0, 0.0)
    tokens = np.stack([row, -row] * 8).astype(np.float32)
    packed = kernels.pack(tokens, np.arange(17), kind="int8", accumulate="int16", rotate=False)
    query = np.repeat(row[None], count, axis=0).astype(np.float32)
    ours, reference = ask_both(monkeypatch, lambda: packed.scores(query))
    assert ours == pytest.approx(reference, rel=1e-6)
    assert (np.abs(ours - [d / 2, -d / 2] * 8) <= packed.errors(query)).all()
    integers, _, way = packed.codes.quantise_query(query)  # type: ignore[attr-defined]
    assert way != "wide"
    largest = np.abs((packed.codes.arrays()["values"].astype(int) - 128) @ integers.T.astype(int)).max()
    assert largest <= 32767 * (16 if way == "scan" else 1)
    assert d == 4 or largest > 25000


@compiled
def test_a_pack_that_could_overflow_16_bits_is_added_in_32(monkeypatch: pytest.MonkeyPatch) -> None:
    row = np.ones(512)
    tokens = np.stack([row, -row] * 4).astype(np.float32)
    packed = kernels.pack(tokens, [0, 4, 8], kind="int8", accumulate="int32", rotate=False)
    query = np.repeat(row[None], 9, axis=0).astype(np.float32)
    integers, _, way = packed.codes.quantise_query(query)  # type: ignore[attr-defined]
    assert way == "wide"
    assert 127 * int(integers.astype(int).sum(axis=1).max()) > 32767 * 16
    ours, reference = ask_both(monkeypatch, lambda: packed.scores(query))
    assert np.array_equal(ours, reference)
    assert ours == pytest.approx([512, 512], rel=1e-3)


@compiled
def test_values_that_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    half = random.standard_normal((40, 50)).astype(np.float32) * 1000
    tokens = np.concatenate([half, -half], axis=1)
    query = np.ones((6, 100), np.float32)
    for kind in ("fp32", "int8"):
        packed = kernels.pack(tokens, np.arange(0, 41, 4), kind=kind)
        ours, reference = ask_both(monkeypatch, lambda: packed.scores(query))  # noqa: B023 - called at once
        assert np.abs(ours - reference).max() <= allow(packed, query, tokens)
        assert np.abs(ours).max() <= packed.errors(query).max() + allow(packed, query, tokens)


@compiled
@pytest.mark.parametrize("choice", KINDS, ids=str)
@pytest.mark.parametrize("count", [2, 30])
def test_one_thread_and_two_give_identical_scores(
    choice: dict[str, Any], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "WORK_PER_THREAD", 1)
    random = np.random.default_rng(4)
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, 40, 101))])
    tokens = random.standard_normal((offsets[-1], 36)).astype(np.float32)
    query = random.standard_normal((count, 36)).astype(np.float32)
    packed = kernels.pack(tokens, offsets, **choice)
    one = packed.scores(query, threads=1)
    assert np.array_equal(packed.scores(query, threads=2), one)
    assert np.array_equal(packed.scores(query, threads=7), one)
    rows = random.integers(0, 101, 37)
    assert np.array_equal(packed.scores(query, rows=rows, threads=2), one[rows])


def test_small_work_is_not_split_and_large_work_is() -> None:
    calls: list[tuple[int, int]] = []
    dispatch.run_split(lambda begin, end: calls.append((begin, end)), 10, dispatch.WORK_PER_THREAD, 2)
    assert calls == [(0, 10)]
    calls.clear()
    dispatch.run_split(lambda begin, end: calls.append((begin, end)), 10, 2 * dispatch.WORK_PER_THREAD, 2)
    assert sorted(calls) == [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6), (6, 7), (7, 8), (8, 10)]


def test_an_error_in_a_thread_comes_out() -> None:
    def fail(begin: int, end: int) -> None:
        raise ValueError(f"{begin} to {end}")

    with pytest.raises(ValueError, match="0 to"):
        dispatch.run_split(fail, 10, 10 * dispatch.WORK_PER_THREAD, 2)


def test_numpy_serves_when_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIGHT_KERNELS", "numpy")
    assert dispatch.native() is None
    tokens = np.random.default_rng(5).standard_normal((30, 16)).astype(np.float32)
    rows, scores, certificate = kernels.pack(tokens, np.arange(0, 31, 3)).top(tokens[:3], 2)
    plain = (tokens @ tokens[:3].T).reshape(10, 3, 3).max(axis=1).mean(axis=1)
    assert rows.tolist() == np.argsort(-plain)[:2].tolist()
    assert scores == pytest.approx(np.sort(plain)[::-1][:2])
    assert certificate is not None


@compiled
@pytest.mark.parametrize("count", [1, 3])
def test_a_scan_over_many_segments_gives_each_image_its_own_best(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    random = np.random.default_rng(count)
    sizes = np.concatenate([np.ones(33_000, int), [0, 0, 17_000, 2], random.integers(0, 4, 2000), [0]])
    offsets = np.concatenate([[0], np.cumsum(sizes)])  # segments of single tokens, of one long image, and of a mixture
    tokens = random.standard_normal((offsets[-1], 12)).astype(np.float32)
    query = random.standard_normal((count, 12)).astype(np.float32)
    packed = kernels.pack(tokens, offsets, kind="int8", keep="none")
    rows = random.permutation(len(sizes))[:20_000]
    for listed in (None, rows):
        ours, reference = ask_both(monkeypatch, lambda listed=listed: packed.scores(query, rows=listed))
        filled = (sizes if listed is None else sizes[listed]) > 0
        assert np.array_equal(np.isfinite(ours), filled)
        assert np.abs(ours[filled] - reference[filled]).max() <= allow(packed, query, tokens)
