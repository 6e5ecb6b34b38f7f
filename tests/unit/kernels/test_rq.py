"""Residual codes: the sum of centroids that they stand for, and scores by tables of one byte."""

from pathlib import Path

import numpy as np
import pytest

from resight import kernels
from resight.errors import RecipeError
from resight.kernels import rq


def make_images(images: int = 120, count: int = 8, d: int = 48) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    words = random.standard_normal((40, d))
    tokens = words[random.integers(0, 40, images * count)] + 0.7 * random.standard_normal((images * count, d))
    return (tokens / np.linalg.norm(tokens, axis=1, keepdims=True)).astype(np.float32), np.arange(images + 1) * count


def test_numbers_name_the_nearest_centroid_of_what_is_left():
    books = np.array([[[4, 0], [0, 4]], [[1, 0], [0, 1]]], np.float32)
    numbers, rest = rq.encode(np.array([[4, 1], [1, 4], [0.5, 5]], np.float32), books)
    assert numbers.tolist() == [[0, 1], [1, 0], [1, 1]]
    assert rest.tolist() == [[0, 0], [0, 0], [0.5, 0]]


def test_a_score_is_the_mean_of_the_best_sums_of_entries():
    books = np.array([[[4, 0], [0, 4]], [[1, 0], [0, 1]]], np.float32)
    numbers = np.array([[0, 1], [1, 0], [1, 1]], np.uint8)  # (4, 1), (1, 4) and (0, 5)
    codes = rq.Rq(numbers, books, np.zeros(2, np.float32), np.full(2, 5, np.float32), np.array([0, 1, 3]))
    query = np.array([[1, 0], [0, 1]], np.float32)
    assert codes.scores(query, None, None) == pytest.approx([(4 + 1) / 2, (1 + 5) / 2], abs=0.02)
    assert codes.scores(query, np.array([1]), None) == pytest.approx([3], abs=0.02)


def test_no_sum_of_entries_leaves_a_byte():
    tokens, offsets = make_images()
    codes = kernels.pack(tokens, offsets, kind="rq", m=7, rounds=2).codes
    assert isinstance(codes, rq.Rq)
    for query in (tokens[:40], -30 * tokens[:3], np.eye(48, dtype=np.float32)):
        tables, _, _, _ = codes.make_tables(query)
        assert tables.max(axis=2).astype(int).sum(axis=1).max() <= 255


def test_scores_stay_within_their_bounds_and_more_books_come_closer():
    tokens, offsets = make_images()
    wrong = []
    for books in (1, 2, 4, 8):
        packed = kernels.pack(tokens, offsets, kind="rq", m=books, rounds=4)
        off = np.abs(packed.scores(tokens[:33]) - packed.exact_scores(tokens[:33]))
        assert (off <= packed.errors(tokens[:33])).all()
        wrong.append(off.mean())
    assert wrong == sorted(wrong, reverse=True)
    assert wrong[-1] < 0.2 * wrong[0]


def test_the_exact_answer_can_be_proven_with_residual_codes():
    tokens, offsets = make_images()
    rows, _, certificate = kernels.pack(tokens, offsets, kind="rq", rounds=4).top(tokens[:8], 5)
    assert rows.tolist() == kernels.pack(tokens, offsets, kind="fp32").top(tokens[:8], 5)[0].tolist()
    assert certificate is not None


@pytest.mark.parametrize("count", [1, 31, 32, 33, 70])
def test_the_compiled_kernel_and_the_numpy_reference_agree_on_every_image(monkeypatch: pytest.MonkeyPatch, count: int):
    random = np.random.default_rng(count)
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, 9, 700))])
    none = np.zeros(700, np.float32)
    query = random.standard_normal((count, 12)).astype(np.float32)
    for books in (1, 2, 3, 4, 5, 6, 8):
        numbers = random.integers(0, 256, (int(offsets[-1]), books), dtype=np.uint8)
        centroids = random.standard_normal((books, 256, 12)).astype(np.float32)
        packed = kernels.Packed(rq.Rq(numbers, centroids, none, none, offsets), None)
        ours = packed.scores(query), packed.scores(query, rows=[5, 3, 699])
        with monkeypatch.context() as patch:
            patch.setenv("RESIGHT_KERNELS", "numpy")
            reference = packed.scores(query), packed.scores(query, rows=[5, 3, 699])
        filled = np.diff(offsets) > 0
        assert np.array_equal(np.isfinite(ours[0]), filled)
        assert ours[0][filled] == pytest.approx(reference[0][filled], abs=1e-4)
        assert ours[1] == pytest.approx(reference[1], abs=1e-4)


def test_fewer_tokens_than_a_book_has_entries_are_each_their_own_centroid():
    tokens, _ = make_images(5, 4)
    packed = kernels.pack(tokens, np.arange(6) * 4, kind="rq", m=2)
    assert packed.scores(tokens[:4]) == pytest.approx(packed.exact_scores(tokens[:4]), abs=0.02)


def test_a_pack_of_residual_codes_takes_its_bytes_and_comes_back_from_disk(tmp_path: Path):
    tokens, offsets = make_images(100, 32)
    packed = kernels.pack(tokens, offsets, kind="rq", keep="none", rounds=1)
    packed.save(tmp_path / "pack")
    assert packed.bytes_per_image == pytest.approx(32 * 3 + 8 + 8, abs=0.1)  # numbers, two bounds, an offset
    assert np.array_equal(kernels.open(tmp_path / "pack").scores(tokens[:9]), packed.scores(tokens[:9]))


def test_books_beyond_what_a_byte_can_sum_are_refused():
    with pytest.raises(RecipeError, match="m = 33"):
        rq.Config(m=33)
