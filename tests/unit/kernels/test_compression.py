"""What the kinds keep: bytes, errors within their bounds, and quality that follows the bytes."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight import kernels
from resight.errors import RecipeError


def make_images(images: int = 300, count: int = 8, d: int = 64) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    words = random.standard_normal((50, d))
    tokens = words[random.integers(0, 50, images * count)] + 0.7 * random.standard_normal((images * count, d)) + 0.8
    return (tokens / np.linalg.norm(tokens, axis=1, keepdims=True)).astype(np.float32), np.arange(images + 1) * count


def test_bytes_per_image_are_those_of_its_tokens_and_bounds() -> None:
    tokens, offsets = make_images(30, 32, 64)
    sizes = {
        "fp32": kernels.pack(tokens, offsets, kind="fp32").bytes_per_image,
        "fp16": kernels.pack(tokens, offsets, kind="fp16").bytes_per_image,
        "int8": kernels.pack(tokens, offsets, kind="int8").bytes_per_image,
        "int8, plain": kernels.pack(tokens, offsets, kind="int8", plain=True).bytes_per_image,
        "pq 4": kernels.pack(tokens, offsets, kind="pq", m=16, rounds=1).bytes_per_image,
        "pq 8": kernels.pack(tokens, offsets, kind="pq", m=16, bits=8, sample=300, rounds=1).bytes_per_image,
    }
    offset = 8 * 31 / 30  # one number an image, and one for the end
    assert sizes["fp32"] == pytest.approx(32 * 64 * 4 + offset)
    assert sizes["fp16"] == pytest.approx(32 * 64 * 2 + 8 + offset)
    assert sizes["int8"] == pytest.approx(32 * (64 + 8) + 8 + offset)
    assert sizes["int8, plain"] == pytest.approx(32 * (64 + 4) + 8 + offset)
    assert sizes["pq 4"] == pytest.approx(32 * 16 / 2 + 8 + 2 * offset)
    assert sizes["pq 8"] == pytest.approx(32 * 16 + 8 + 2 * offset)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"kind": "fp16"}, 1e-4),
        ({"kind": "int8"}, 3e-3),
        ({"kind": "int8", "accumulate": "int32"}, 2e-3),
        ({"kind": "int8", "plain": True}, 2e-3),
        ({"kind": "pq", "m": 32, "bits": 8, "rounds": 4}, 3e-2),
        ({"kind": "pq", "m": 32}, 8e-2),
    ],
    ids=str,
)
def test_scores_are_close_and_their_bounds_hold(settings: dict[str, Any], error: float) -> None:
    tokens, offsets = make_images()
    packed = kernels.pack(tokens, offsets, **settings)
    for start in (0, 100):
        query = tokens[start : start + 10]
        wrong = np.abs(packed.scores(query) - packed.exact_scores(query))
        assert wrong.max() < error
        assert (wrong <= packed.errors(query)).all()


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({"kind": "fp32"}, 1536),
        ({"kind": "fp16"}, 768),
        ({"kind": "int8", "plain": True}, 388),
        ({"kind": "int8"}, 392),
        ({"kind": "pq", "m": 96, "bits": 8, "sample": 300, "rounds": 1}, 96),
        ({"kind": "pq", "m": 48, "bits": 8, "sample": 300, "rounds": 1}, 48),
    ],
    ids=str,
)
def test_bytes_per_token_are_those_of_the_paper(settings: dict[str, Any], size: int) -> None:
    tokens, offsets = make_images(20, 32, 384)  # CraterBench-R, table 12
    assert kernels.pack(tokens, offsets, **settings).bytes_per_token == size


def test_a_plain_code_is_one_step_and_integers_up_to_127() -> None:
    tokens = np.array([[0.5, -1.0, 0.25, 0.0], [2.0, 1.0, -0.5, 0.1]], np.float32)
    arrays = kernels.pack(tokens, [0, 1, 2], plain=True).codes.arrays()
    assert sorted(arrays) == ["centre", "errors", "lengths", "reach", "steps", "values"]
    # 127 × 0.5 = 63.5 goes to the even 64; 127 / 4 = 31.75 to 32; 127 × 0.1 / 2 = 6.35 to 6.
    assert (arrays["values"].astype(int) - 128).tolist() == [[64, -127, 32, 0], [127, 64, -32, 6]]
    assert arrays["steps"] == pytest.approx([1 / 127, 2 / 127])
    assert not arrays["centre"].any()


@pytest.mark.parametrize("d", [16, 30, 384])
def test_a_plain_code_gives_the_proven_top_and_survives_saving(d: int, tmp_path: Path) -> None:
    tokens, offsets = make_images(200, 8, d)
    packed = kernels.pack(tokens, offsets, plain=True)
    packed.save(tmp_path / "pack")
    opened = kernels.open(tmp_path / "pack", check=True)
    for start in (0, 800):
        query = tokens[start : start + 8] + 0.05
        expected = kernels.pack(tokens, offsets, kind="fp32").top(query, 10)
        for one in (packed, opened):
            rows, scores, certificate = one.top(query, 10)
            assert rows.tolist() == expected[0].tolist()
            assert scores == pytest.approx(expected[1], rel=1e-5)
            assert certificate is not None and certificate.rescored < certificate.images
        assert np.array_equal(packed.scores(query), opened.scores(query))
        assert (np.abs(packed.scores(query) - packed.exact_scores(query)) <= packed.errors(query)).all()


def test_a_plain_code_takes_no_directions() -> None:
    tokens, offsets = make_images(30)
    for settings in ({"dims": 8}, {"rotate": True}):
        with pytest.raises(RecipeError, match="plain int8"):
            kernels.pack(tokens, offsets, plain=True, **settings)


def test_taking_off_the_mean_makes_bounds_narrower() -> None:
    tokens, offsets = make_images()
    spread = tokens * np.where(np.arange(len(tokens)) % 2, 1.0, 3.0)[:, None]  # of two lengths: nothing is taken off
    near = kernels.pack(tokens, offsets).errors(tokens[:5]).mean()
    far = kernels.pack(spread.astype(np.float32), offsets).errors(tokens[:5]).mean()
    assert near < 0.8 * far / 3


def test_a_rotation_saves_vectors_whose_weight_lies_in_one_dimension() -> None:
    random = np.random.default_rng(1)
    vectors = random.standard_normal((2000, 64)).astype(np.float32)
    vectors[:, 3] += 40 * np.where(np.arange(2000) % 2, 1, -1)
    offsets = np.arange(2001)
    query = vectors[:1] * np.where(np.arange(64) == 3, 0, 1) + 0.1
    turned = kernels.pack(vectors, offsets)  # one vector per image: rotated by default
    straight = kernels.pack(vectors, offsets, rotate=False)
    exact = turned.exact_scores(query)
    assert np.abs(turned.scores(query) - exact).mean() < 0.8 * np.abs(straight.scores(query) - exact).mean()


def test_more_principal_directions_keep_more() -> None:
    tokens, offsets = make_images()
    wrong = [
        np.abs(packed.scores(tokens[:10]) - packed.exact_scores(tokens[:10])).mean()
        for packed in (kernels.pack(tokens, offsets, dims=dims) for dims in (4, 16, 64))
    ]
    assert wrong[0] > wrong[1] > wrong[2]


def test_product_codes_follow_their_seed_and_the_images_that_train_them() -> None:
    tokens, offsets = make_images()
    first, again, other, few = (
        kernels.pack(tokens, offsets, kind="pq", m=16, **settings).codes.arrays()["centroids"]
        for settings in ({"seed": 1}, {"seed": 1}, {"seed": 2}, {"seed": 1, "images": (1, 5, 7)})
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, few)
    # 24 tokens train 16 centroids: every centroid is a mean of those tokens alone.
    parts = np.concatenate([tokens[8:16], tokens[40:48], tokens[56:64]])[:, :4]
    assert few[0].min() >= parts.min() - 1e-6
    assert few[0].max() <= parts.max() + 1e-6


def test_images_longer_than_a_block_and_odd_queries_are_looked_up_right() -> None:
    random = np.random.default_rng(2)
    offsets = np.array([0, 33, 33, 97, 98, 130, 160])
    tokens = random.standard_normal((160, 30)).astype(np.float32)
    packed = kernels.pack(tokens, offsets, kind="pq", m=10)  # 10 parts fill up to 12
    centroids = packed.codes.arrays()["centroids"]
    nearest = [
        np.linalg.norm(tokens.reshape(160, 10, 1, 3)[:, part] - centroids[part], axis=2).argmin(axis=1)
        for part in range(10)
    ]
    coded = np.concatenate([centroids[part][nearest[part]] for part in range(10)], axis=1)
    query = random.standard_normal((7, 30)).astype(np.float32)
    plain = [(coded[a:b] @ query.T).max(axis=0).mean() if b > a else -np.inf for a, b in itertools.pairwise(offsets)]
    _, steps, _, rounding = packed.codes.make_tables(query)  # type: ignore[attr-defined]
    filled = np.diff(offsets) > 0
    assert np.isneginf(packed.scores(query)[1])
    assert np.abs(packed.scores(query)[filled] - np.array(plain)[filled]).max() <= rounding.mean() + 1e-4
    assert rounding.mean() < 10 * steps.mean()
