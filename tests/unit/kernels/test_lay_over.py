"""A query laid over images: by hand, and the compiled kernel against its numpy reference, also on adversarial input."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.errors import InputError
from resight.kernels import dispatch
from resight.kernels import lay_over as module
from resight.kernels.lay_over import PlacedImages, place_images
from resight.kernels.numpy_reference import Overlay
from resight.types import FloatArray

BOUND = 1e-5
USUAL = Overlay((0.5, 0.8, 1.0, 1.6), tuple(np.linspace(-0.375, 0.375, 7).tolist()), 0.15, 0.2)
compiled = pytest.mark.skipif(dispatch.load_native() is None, reason="the compiled kernels are not built")
either = pytest.mark.parametrize("way", ["0", "numpy"], ids=["compiled where it can be", "numpy"])


def score(query: Any, places: Any, tokens: Any, centres: Any, overlay: Overlay) -> float:
    """Of one image, without a mean."""
    images = place_images(np.float32(tokens), np.float32(centres), np.array([0, len(tokens)]), np.zeros(len(tokens[0])))
    return float(images.scores(np.float32(query), np.float32(places), overlay)[0])


def ask_both(images: PlacedImages, query: FloatArray, places: FloatArray, overlay: Overlay) -> tuple[Any, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RESIGHT_KERNELS", "0")
        ours = images.scores(query, places, overlay)
        patch.setenv("RESIGHT_KERNELS", "numpy")
        return ours, images.scores(query, places, overlay)


def plain(query: Any, places: Any, tokens: Any, centres: Any, overlay: Overlay) -> float:
    """The docstring of the reranker once more, for one image without a mean: loops in float64."""
    best = 0.0
    likeness = np.maximum(query.astype(np.float64) @ tokens.astype(np.float64).T, 0)
    for scale in overlay.scales:
        for right in overlay.shifts:
            for down in overlay.shifts:
                total, inside = 0.0, 0
                for i, (x, y) in enumerate(scale * places.astype(np.float64) + [right, down]):
                    if abs(x) <= 0.5 and abs(y) <= 0.5:
                        inside += 1
                        squares = ((centres.astype(np.float64) - [x, y]) ** 2).sum(axis=1)
                        total += (likeness[i] * np.exp(-squares / (2 * overlay.tolerance**2))).max()
                if inside >= overlay.least * len(query):
                    best = max(best, total / (inside + len(query) / 16))
    return best


@either
def test_the_formula_by_hand(way: str, monkeypatch: pytest.MonkeyPatch):
    # Two tokens of the query at -0.25 and 0.25 along x; the image has both, the second 0.1 further to the right. It is
    # like the query's by 0.6.
    monkeypatch.setenv("RESIGHT_KERNELS", way)
    overlay = Overlay((1.0,), (0.0,), 0.1, 0.2)
    tokens = [[1, 0, 0], [0, 0.6, 0.8]]
    found = score([[1, 0, 0], [0, 1, 0]], [[-0.25, 0], [0.25, 0]], tokens, [[-0.25, 0], [0.35, 0]], overlay)
    assert found == pytest.approx((1 + 0.6 * math.exp(-0.5)) / (2 + 2 / 16), rel=1e-5)


@either
def test_tokens_that_land_outside_do_not_count(way: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RESIGHT_KERNELS", way)
    axes, places = np.eye(2), [[-0.4, -0.3], [0.4, -0.3]]
    assert score(axes, places, axes, places, Overlay((2.0,), (0.0,), 0.3, 0.2)) == 0  # ± 0.8: both outside
    # Shifted by 0.6 to the right and down, one lands at (0.2, 0.3), 0.6 from its partner both ways; the other outside.
    alone = math.exp(-(0.6**2 + 0.6**2) / 2 / 0.3**2) / (1 + 2 / 16)
    assert score(axes, places, axes, places, Overlay((1.0,), (0.6,), 0.3, 0.2)) == pytest.approx(alone, rel=1e-4)
    assert score(axes, places, axes, places, Overlay((1.0,), (0.6,), 0.3, 0.6)) == 0  # fewer than 60 % are inside


@either
def test_a_mean_is_subtracted_from_both_sides(way: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RESIGHT_KERNELS", way)
    middle = np.zeros((1, 2), np.float32)
    mean = np.array([5, 1], np.float32)
    images = place_images(
        np.array([[5, 3], [5, 1], [7, 1]], np.float32), np.zeros((3, 2)), np.array([0, 1, 2, 3]), mean
    )
    found = images.scores(np.array([[5, 9]], np.float32), middle, Overlay((1.0,), (0.0,), 0.1, 0.2))
    assert found == pytest.approx([16 / 17, 0, 0], abs=1e-6)  # along it, the mean itself, across it


@compiled
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 40), steps=st.integers(1, 18), cells=st.integers(0, 9))
def test_random_ragged_images(seed: int, count: int, steps: int, cells: int) -> None:
    random = np.random.default_rng(seed)
    d = int(random.integers(1, 40))
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, 30, 6) * random.integers(0, 2, 6)), [0]])
    offsets[-1] = offsets[-2] + 1  # the last image has one token

    def place(tokens: int) -> FloatArray:
        """Anywhere, some of them outside, or on a grid."""
        if cells == 0:
            return random.normal(0, 0.3, (tokens, 2)).astype(np.float32)
        return ((random.integers(0, cells, (tokens, 2)) + 0.5) / cells - 0.5).astype(np.float32)

    tokens, query = (random.standard_normal((n, d)).astype(np.float32) for n in (offsets[-1], count))
    scales = tuple(random.uniform(0.2, 3, random.integers(1, 4)).tolist())
    shifts = tuple(random.uniform(-0.6, 0.6, steps).tolist())
    overlay = Overlay(scales, shifts, float(random.choice([1e-3, 0.1, 3])), 0.2)
    mean = random.standard_normal(d).astype(np.float32) * int(random.integers(0, 2))
    images, places = place_images(tokens, place(len(tokens)), offsets, mean), place(count)
    ours, reference = ask_both(images, query, places, overlay)
    assert np.abs(ours - reference).max() <= BOUND
    assert (ours[np.diff(offsets) == 0] == 0).all()
    with pytest.MonkeyPatch.context() as patch:  # portions of an image or two, and two threads
        patch.setattr(module, "LARGEST_TABLES", 20_000)
        patch.setattr(dispatch, "WORK_PER_THREAD", 1)
        assert np.array_equal(images.scores(query, places, overlay, threads=2), ours)


@either
@pytest.mark.parametrize("count", [1, 7, 8, 9, 33])
def test_both_ways_are_those_of_a_plain_loop(way: str, count: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RESIGHT_KERNELS", way)
    random = np.random.default_rng(count)
    query, tokens = (random.standard_normal((n, 5)).astype(np.float32) for n in (count, 12))
    query, tokens = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (query, tokens))
    places, centres = (random.uniform(-0.5, 0.5, (n, 2)).astype(np.float32) for n in (count, 12))
    expected = plain(query, places, tokens, centres, USUAL)
    assert expected > 0.1
    assert score(query, places, tokens, centres, USUAL) == pytest.approx(expected, abs=BOUND)


@compiled
@pytest.mark.parametrize("size", [1e-18, 1e-9, 1.0, 1e9, 1e14])
def test_tokens_of_any_length(size: float):
    random = np.random.default_rng(1)
    tokens = (random.standard_normal((20, 9)) * size).astype(np.float32)
    images = place_images(tokens, random.uniform(-0.5, 0.5, (20, 2)), np.array([0, 20]), np.zeros(9, np.float32))
    ours, reference = ask_both(images, tokens[:5], images.centres[:5], USUAL)
    assert np.isfinite(ours).all()
    assert np.abs(ours - reference).max() <= BOUND


@compiled
def test_many_tokens_and_places_far_away():
    random = np.random.default_rng(2)
    tokens, query = (random.standard_normal((n, 16)).astype(np.float32) for n in (3000, 300))
    centres = random.uniform(-0.5, 0.5, (3000, 2)).astype(np.float32)
    centres[::7] *= np.float32(1e12)
    images = place_images(tokens, centres, np.array([0, 2900, 2900, 3000]), np.zeros(16, np.float32))
    places = random.uniform(-0.5, 0.5, (300, 2)).astype(np.float32)
    places[5] = 1e18
    ours, reference = ask_both(images, query, places, Overlay((1.0,), (0.0, 0.1), 0.05, 0.2))
    assert np.abs(ours - reference).max() <= BOUND
    assert ours[0] > ours[2] > ours[1] == 0


@either
def test_nothing_to_compare(way: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RESIGHT_KERNELS", way)
    none, mean = np.zeros((0, 4), np.float32), np.zeros(4, np.float32)
    nowhere = np.zeros((0, 2), np.float32)
    images = place_images(np.ones((2, 4), np.float32), np.zeros((2, 2)), np.array([0, 2]), mean)
    assert images.scores(none, nowhere, USUAL).tolist() == [0]
    empty = place_images(none, nowhere, np.array([0, 0, 0]), mean)
    assert empty.scores(np.ones((1, 4), np.float32), np.zeros((1, 2)), USUAL).tolist() == [0, 0]
    assert place_images(none, nowhere, np.array([0]), mean).scores(none, nowhere, USUAL).shape == (0,)


@either
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e25])
def test_values_that_cannot_be_compared_are_refused(way: str, value: float, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RESIGHT_KERNELS", way)
    sound, mean = np.ones((9, 11), np.float32), np.zeros(11, np.float32)
    for column in (0, 10):  # in a whole register, and in what is left over
        damaged = sound.copy()
        damaged[4, column] = value
        images = place_images(damaged, np.zeros((9, 2)), np.array([0, 3, 6, 9]), mean)
        with pytest.raises(InputError, match="image 1 of 3"):
            images.scores(sound, np.zeros((9, 2)), USUAL)
        with pytest.raises(InputError, match="tokens of the query"):
            place_images(sound, np.zeros((9, 2)), np.array([0, 9]), mean).scores(damaged, np.zeros((9, 2)), USUAL)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"centres": np.zeros((4, 2))}, "centres"),
        ({"centres": np.full((5, 2), np.nan)}, "centres"),
        ({"offsets": np.array([0, 4])}, "offsets"),
        ({"offsets": np.array([0, 4, 2, 5])}, "offsets"),
        ({"mean": np.zeros(2)}, "mean"),
        ({"mean": np.full(3, np.nan)}, "mean"),
        ({"tokens": np.zeros((5, 3), np.int64)}, "images"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change: dict[str, Any], match: str):
    sound = {"tokens": np.ones((5, 3), np.float32), "centres": np.zeros((5, 2)), "offsets": np.array([0, 5])}
    with pytest.raises(InputError, match=match):
        place_images(**{**sound, "mean": np.zeros(3), **change})
    images = place_images(**sound, mean=np.zeros(3))
    with pytest.raises(InputError, match="does not fit"):
        images.scores(np.ones((1, 4), np.float32), np.zeros((1, 2)), USUAL)


@compiled
def test_the_compiled_kernel_refuses_buffers_that_do_not_fit():
    native = dispatch.load_native()
    assert native is not None
    floats = {"values": 3 * 16, "near_x": 2 * 2 * 5 * 7 * 8, "near_y": 2 * 2 * 4 * 7 * 8, "weights": 2 * 7 * 7}
    sound: dict[str, Any] = {name: np.zeros(size, np.float32) for name, size in floats.items()}
    sound |= {"inside": np.zeros(2 * 2 * 7, np.uint8), "sizes": (3, 2, 5, 4, 7)}
    sound |= {"tokens": np.ones((6, 3), np.float32), "mean": np.zeros(3, np.float32)}
    sound |= {"columns": np.full(6, 4, np.int32), "rows": np.full(6, 3, np.int32), "offsets": np.array([0, 2, 6])}
    sound |= {"begin": 0, "end": 2, "out": np.full(2, 7, np.float32)}
    order = ("values", "near_x", "near_y", "inside", "weights", "sizes", "tokens", "mean", "columns", "rows", "offsets",
             "begin", "end", "out")  # fmt: skip

    def call(**change: Any) -> None:
        native.lay_over(*({**sound, **change}[name] for name in order))

    for name in ("values", "near_x", "near_y", "weights", "inside", "tokens", "mean", "columns", "rows"):
        sound[name].flags.writeable = False  # memory maps are read-only
        for wrong in (
            sound[name].ravel()[:-1],
            np.zeros(0, sound[name].dtype),
            np.concatenate([sound[name].ravel()] * 2),
        ):
            with pytest.raises(ValueError, match="fit together"):
                call(**{name: wrong})
    call()
    assert sound["out"].tolist() == [0, 0]
    for sizes in (
        (3, 2, 5, 4, 0),
        (3, 2, 5, 4, -7),
        (0, 2, 5, 4, 7),
        (3, 2**40, 5, 4, 7),
        (2**62, 2, 5, 4, 7),
        (3, 4, 5, 2, 7),
    ):
        with pytest.raises(ValueError, match="fit together"):
            call(sizes=sizes)
    for change in (
        {"columns": np.full(6, 5, np.int32)},
        {"rows": np.full(6, -1, np.int32)},
        {"offsets": np.array([0, 2, 7])},
        {"offsets": np.array([0, 7, 6])},
        {"begin": -1},
        {"end": 3},
        {"out": np.zeros(1, np.float32)},
    ):
        with pytest.raises(ValueError, match=r"fit together|outside the tokens"):
            call(**change)
    sound["out"].flags.writeable = False
    with pytest.raises((TypeError, BufferError, ValueError)):
        call()
