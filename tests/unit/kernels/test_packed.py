"""The best k: ties by row, proofs against brute force, cascades and how often they are right."""

from typing import Any

import numpy as np
import pytest

from resight import kernels
from resight.errors import InputError
from resight.kernels.exact_topk import best_rows


def make(random: np.random.Generator, images: int, d: int, most: int) -> tuple[Any, Any]:
    """Ragged images around a few centres, so that scores lie close together."""
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, most + 1, images))])
    centres = random.standard_normal((4, d)) + random.standard_normal(d)
    tokens = centres[random.integers(0, 4, offsets[-1])] + 0.3 * random.standard_normal((offsets[-1], d))
    return tokens.astype(np.float32), offsets


def brute_force(tokens: Any, offsets: Any, query: Any, k: int) -> Any:
    scores = kernels.pack(tokens, offsets, kind="fp32").scores(query)
    order = np.lexsort((np.arange(len(scores)), -scores))
    return [int(row) for row in order if scores[row] > -np.inf][:k]


@pytest.mark.parametrize("part", range(5))
def test_a_certified_answer_is_that_of_brute_force_in_500_random_cases(part: int) -> None:
    proven_short = 0
    for case in range(100):
        random = np.random.default_rng(1000 * part + case)
        tokens, offsets = make(
            random, int(random.integers(1, 120)), int(random.integers(4, 80)), int(random.integers(1, 12))
        )
        if len(tokens) == 0:
            continue
        query = tokens[random.integers(0, len(tokens), int(random.integers(1, 30)))]
        query = (query + 0.2 * random.standard_normal(query.shape)).astype(np.float32)
        settings: dict[str, Any] = [
            {"kind": "int8"},
            {"kind": "int8", "rotate": True, "accumulate": "int32"},
            {"kind": "int8", "dims": max(1, tokens.shape[1] - 2)},
            {"kind": "fp16"},
            {"kind": "pq", "m": tokens.shape[1], "rounds": 2} if len(tokens) >= 16 else {"kind": "int8"},
        ][case % 5]
        packed = kernels.pack(tokens, offsets, **settings)
        k = int(random.integers(1, 8))
        rows, scores, certificate = packed.top(query, k)
        assert rows.tolist() == brute_force(tokens, offsets, query, k), (part, case)
        exact = packed.exact_scores(query)
        assert scores == pytest.approx(exact[rows], rel=1e-6)  # numpy may round another way in a shorter list
        filled = exact > -np.inf
        assert (np.abs(packed.scores(query)[filled] - exact[filled]) <= packed.errors(query)[filled]).all()
        assert certificate is not None
        assert certificate.images == np.count_nonzero(np.diff(offsets))
        assert len(rows) <= certificate.rescored <= certificate.images
        assert certificate.margin > 0
        if certificate.rescored < certificate.images:
            proven_short += 1
            assert certificate.threshold == scores[-1]
    assert proven_short > 10  # else nothing was pruned, and nothing proven


def test_a_certificate_states_its_evidence() -> None:
    tokens = np.eye(50, dtype=np.float32)
    packed = kernels.pack(np.repeat(tokens, 2, axis=0), np.arange(0, 101, 2))
    rows, scores, certificate = packed.top(tokens[7:8], 1)
    assert rows.tolist() == [7]
    assert scores == pytest.approx([1.0])
    assert certificate is not None
    assert certificate.images == 50
    assert certificate.rescored < 50
    assert certificate.threshold == pytest.approx(1.0)
    assert 0.9 < certificate.margin < 1.0  # the others score 0, and their bound is narrow
    assert certificate.reason.startswith(f"{certificate.rescored} of 50 images were scored in fp32. The ")
    assert "cannot reach 1" in certificate.reason


def test_equal_scores_are_ordered_by_row() -> None:
    tokens = np.ones((300, 16), np.float32)
    tokens[[40, 41, 200]] *= 2
    for kind, settings in (("fp32", {}), ("fp16", {}), ("int8", {}), ("pq", {"m": 4, "bits": 8})):
        packed = kernels.pack(tokens, np.arange(301), kind=kind, **settings)  # type: ignore[arg-type]
        for count in (1, 9):
            rows, scores, _ = packed.top(np.ones((count, 16), np.float32), 6)
            assert rows.tolist() == [40, 41, 200, 0, 1, 2]
            assert scores == pytest.approx([32, 32, 32, 16, 16, 16])


def test_k_of_none_one_and_more_than_there_are() -> None:
    tokens, offsets = make(np.random.default_rng(0), 12, 10, 3)
    filled = int(np.count_nonzero(np.diff(offsets)))
    for exact in (True, False):
        packed = kernels.pack(tokens, offsets)
        assert len(packed.top(tokens[:3], 0, exact=exact)[0]) == 0
        assert len(packed.top(tokens[:3], 1, exact=exact)[0]) == 1
        assert len(packed.top(tokens[:3], 99, exact=exact)[0]) == filled


def test_an_answer_without_proof_has_no_certificate() -> None:
    tokens, offsets = make(np.random.default_rng(1), 30, 10, 3)
    packed = kernels.pack(tokens, offsets)
    rows, scores, certificate = packed.top(tokens[:3], 5, exact=False)
    assert certificate is None
    assert np.array_equal(scores, packed.scores(tokens[:3])[rows])


def test_a_pack_that_kept_nothing_cannot_prove() -> None:
    tokens, offsets = make(np.random.default_rng(1), 30, 10, 3)
    packed = kernels.pack(tokens, offsets, keep="none")
    assert len(packed.top(tokens[:3], 5, exact=False)[0]) == 5
    with pytest.raises(InputError, match="keep='fp32'"):
        packed.top(tokens[:3], 5)


def test_a_pack_that_kept_halves_proves_their_answer() -> None:
    tokens, offsets = make(np.random.default_rng(2), 200, 24, 6)
    packed = kernels.pack(tokens, offsets, keep="fp16")
    halves = tokens.astype(np.float16).astype(np.float32)
    assert packed.top(tokens[:8], 5)[0].tolist() == brute_force(halves, offsets, tokens[:8], 5)
    filled = np.diff(offsets) > 0
    wrong = np.abs(packed.scores(tokens[:8])[filled] - packed.exact_scores(tokens[:8])[filled])
    assert (wrong <= packed.errors(tokens[:8])[filled]).all()


@pytest.mark.parametrize("size", [10, 5_000, 200_000])
def test_best_rows_are_those_of_a_full_sort(size: int) -> None:
    random = np.random.default_rng(size)
    for scores in (
        random.standard_normal(size),
        np.round(random.standard_normal(size), 1),  # many ties
        np.sort(random.standard_normal(size)),
        np.where(random.random(size) < 0.99, -np.inf, 1.0),
        np.where(np.arange(size) % 16 == 0, 5.0, np.arange(size) / size),  # the sample sees nothing but the best
    ):
        values = scores.astype(np.float32)
        order = np.lexsort((np.arange(size), -values))
        order = order[values[order] > -np.inf]
        for k in (1, 7, 1000):
            assert np.array_equal(best_rows(values, k), order[:k])


def test_a_cascade_that_keeps_everything_is_exact_and_one_that_keeps_little_is_measured() -> None:
    random = np.random.default_rng(3)
    tokens, offsets = make(random, 400, 32, 5)
    whole, small = kernels.pack(tokens, offsets), kernels.pack(tokens, offsets, dims=4)
    queries = [tokens[random.integers(0, len(tokens), 6)] for _ in range(20)]
    assert kernels.exactness_rate(kernels.cascade([(small, 400), (whole, 400)]), queries, 10) == 1.0
    rate = kernels.exactness_rate(kernels.cascade([(small, 12)]), queries, 10)
    same = [
        kernels.cascade([(small, 12)]).top(query, 10)[0].tolist() == brute_force(tokens, offsets, query, 10)
        for query in queries
    ]
    assert rate == pytest.approx(np.mean(same))
    assert rate < 1.0
    assert kernels.exactness_rate(kernels.pack(tokens, offsets, kind="fp32"), queries, 10) == 1.0
    assert kernels.exactness_rate(small, queries, 10) < 1.0


def test_a_cascade_gives_exact_scores_and_at_least_k() -> None:
    tokens, offsets = make(np.random.default_rng(4), 100, 16, 4)
    packed = kernels.pack(tokens, offsets)
    rows, scores, certificate = kernels.cascade([(packed, 2)]).top(tokens[:4], 8)
    assert len(rows) == 8
    assert certificate is None
    assert scores == pytest.approx(packed.exact_scores(tokens[:4])[rows], rel=1e-5)


def test_cascades_of_different_images_or_of_nothing_are_refused() -> None:
    tokens, offsets = make(np.random.default_rng(5), 20, 16, 4)
    packed = kernels.pack(tokens, offsets)
    with pytest.raises(InputError, match="different images"):
        kernels.cascade([(packed, 5), (kernels.pack(tokens, [0, len(tokens)]), 5)])
    with pytest.raises(InputError, match="at least one pack"):
        kernels.cascade([])
    with pytest.raises(InputError, match="keeps no image"):
        kernels.cascade([(packed, 0)])
    with pytest.raises(InputError, match="no query"):
        kernels.exactness_rate(packed, [], 5)


def test_where_no_tokens_are_kept_the_codes_of_the_last_pass_decide() -> None:
    tokens, offsets = make(np.random.default_rng(7), 60, 16, 4)
    bare = kernels.pack(tokens, offsets, keep="none")
    rows, scores, certificate = kernels.cascade([(bare, 60)]).top(tokens[:4], 5)
    expected, values, _ = bare.top(tokens[:4], 5, exact=False)
    assert (rows.tolist(), scores.tolist(), certificate) == (expected.tolist(), values.tolist(), None)


def test_a_cascade_among_some_images_finds_only_those() -> None:
    tokens, offsets = make(np.random.default_rng(6), 100, 16, 4)
    packed = kernels.pack(tokens, offsets)
    among = [70, 3, 41, 3]
    rows, scores, _ = kernels.cascade([(packed, 100)]).top(tokens[:4], 8, among=among)
    truth = packed.exact_scores(tokens[:4])
    assert rows.tolist() == sorted({3, 41, 70}, key=lambda row: -truth[row])
    assert scores == pytest.approx(truth[rows], rel=1e-5)
