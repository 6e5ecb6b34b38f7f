from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.encode import whitening as whitenings
from resight.encode.whitening import Whitening, learn_lw, learn_pca
from resight.errors import InputError, RecipeError, StorageError

CROSS = np.array([[2, 0], [-2, 0], [0, 1], [0, -1]], np.float32)  # mean 0, covariance diag(2, 0.5)
PAIRED = np.array([[1, 0], [-1, 0], [0, 0.5], [0, -0.5]], np.float32)  # differences (2, 0) and (0, 1)
BOTH_PAIRS = np.array([[0, 1], [2, 3]])


def whiten_by_pairs(gallery: np.ndarray, pairs: np.ndarray, **settings: object) -> Whitening:
    return learn_lw(lambda: [gallery], gallery, pairs, np.random.default_rng(0), **settings)  # type: ignore[arg-type]


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def recall(queries: np.ndarray, gallery: np.ndarray) -> float:
    """How many queries have the gallery row of the same number first."""
    return float(((queries @ gallery.T).argmax(axis=1) == np.arange(len(queries))).mean())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"shrinkage": 0.0}, [1 / 5**0.5, 2 / 5**0.5]),  # (1, 1) by 1/√2 and 1/√0.5: one is twice the other
        ({"shrinkage": 1.0}, [0.5**0.5, 0.5**0.5]),
        ({"shrinkage": 0.5, "power": 1.0}, [0.875 / 1.84560, 1.625 / 1.84560]),  # eigenvalues 1.625 and 0.875
        ({"power": 0.0}, [0.5**0.5, 0.5**0.5]),
        ({"dimensions": 1}, [1.0]),
    ],
)
def test_pca_of_a_cross_by_hand(settings: dict, expected: list[float]):
    learnt = learn_pca(lambda: [CROSS], **settings)
    assert learnt.apply(np.array([[1, 1]], np.float32))[0].tolist() == pytest.approx(expected, abs=1e-5)


def test_pca_says_how_much_variance_is_kept():
    learnt = learn_pca(lambda: [CROSS[:2], CROSS[2:]], dimensions=1, images=3, space="here")
    facts = replace(learnt.facts, shrinkage=None)
    assert facts == whitenings.Facts("pca", 3, 4, 0, None, 0.5, 1, pytest.approx(0.8), "here")


def test_the_mean_is_taken_off_first():
    learnt = learn_pca(lambda: [CROSS + np.array([10, 20])], shrinkage=1.0)
    assert learnt.mean.tolist() == [10, 20]
    np.testing.assert_allclose(learnt.apply(np.array([[13, 24]], np.float32)), [[0.6, 0.8]], atol=1e-6)


@given(seed=st.integers(0, 1000), width=st.integers(1, 6))
def test_whitened_vectors_have_the_identity_as_covariance(seed: int, width: int):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(50, width)) @ rng.normal(size=(width, width)) + rng.normal(size=width)
    learnt = learn_pca(lambda: [rows], shrinkage=0.0)
    whitened = (rows - learnt.mean) @ learnt.projection.astype(np.float64)
    np.testing.assert_allclose(np.cov(whitened.T, bias=True).reshape(width, width), np.eye(width), atol=1e-3)


def test_pairs_by_hand():
    learnt = whiten_by_pairs(PAIRED, BOTH_PAIRS, shrinkage=0.0)
    whitened = learnt.apply(np.array([[1, 1], [1, 0]], np.float32))
    # S = diag(2, 0.5), so that (1, 1) becomes (1/√2, √2) and (1, 0) becomes (1/√2, 0): cosine 1/√5
    assert float(whitened[0] @ whitened[1]) == pytest.approx(1 / 5**0.5, abs=1e-6)
    assert (learnt.facts.kind, learnt.facts.pairs, learnt.facts.images) == ("lw", 2, 4)


def test_without_shrinkage_lw_is_the_published_one():
    """Radenović's recipe, by a Cholesky factor: cosines agree, as the two differ by a rotation only."""
    rng = np.random.default_rng(7)
    gallery = rng.normal(size=(200, 6)) @ rng.normal(size=(6, 6)) + 1
    pairs = np.arange(200).reshape(100, 2)
    gallery[pairs[:, 1]] = gallery[pairs[:, 0]] + 0.3 * rng.normal(size=(100, 6)) * np.arange(1, 7)
    centred = gallery - gallery.mean(axis=0)
    differences = gallery[pairs[:, 0]] - gallery[pairs[:, 1]]
    factor = np.linalg.inv(np.linalg.cholesky(differences.T @ differences / len(pairs)))
    values, vectors = np.linalg.eigh(factor @ centred.T @ centred @ factor.T)
    expected = unit(centred @ factor.T @ vectors[:, values.argsort()[::-1][:4]])
    found = whiten_by_pairs(gallery.astype(np.float32), pairs, shrinkage=0.0, dimensions=4).apply(
        gallery.astype(np.float32)
    )
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)


def test_the_direction_that_varies_most_among_all_comes_first():
    others = np.array([[0, 9], [0, -9], [0.1, 0], [-0.1, 0]], np.float32)
    learnt = learn_lw(lambda: [others], PAIRED, BOTH_PAIRS, np.random.default_rng(0), shrinkage=0.0, dimensions=1)
    np.testing.assert_allclose(learnt.projection[:, 0], [0, 2**0.5], atol=1e-6)
    assert learnt.facts.variance > 0.99


def test_shrunk_wholly_pairs_rank_like_the_cosine_of_centred_vectors():
    rng = np.random.default_rng(0)
    rows = unit(rng.normal(2, 1, size=(40, 12))).astype(np.float32)
    learnt = whiten_by_pairs(rows, np.array([[0, 1], [2, 3], [4, 9]]), shrinkage=1.0)
    centred = unit(rows - rows.mean(axis=0))
    whitened = learnt.apply(rows)
    np.testing.assert_allclose(whitened @ whitened.T, centred @ centred.T, atol=1e-5)


@pytest.mark.parametrize("same", [False, True])
def test_one_pair_or_equal_images_are_shrunk_wholly(same: bool):
    rows = np.random.default_rng(1).normal(size=(10, 8)).astype(np.float32)
    rows[1] = rows[0] if same else rows[1]
    assert whiten_by_pairs(rows, np.array([[0, 1]])).facts.shrinkage == 1


def draw_views(rng: np.random.Generator, things: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Two views of things that differ evenly in all dimensions, and whose views differ mostly in an eighth of them."""
    centres = 0.5 + rng.normal(size=(things, width))
    noise = np.where(np.arange(width) < width // 8, 4.0, 0.3)
    first, second = (unit(centres + rng.normal(size=centres.shape) * noise) for _ in range(2))
    return first.astype(np.float32), second.astype(np.float32)


def learn_from_views(first: np.ndarray, second: np.ndarray, pairs: int) -> Whitening:
    numbers = np.arange(len(first))
    return whiten_by_pairs(np.concatenate([first, second]), np.stack([numbers, numbers + len(first)], axis=1)[:pairs])


def test_pairs_teach_what_differs_between_views_of_the_same_thing():
    rng = np.random.default_rng(2)
    learnt = learn_from_views(*draw_views(rng, 200, 32), pairs=200)
    queries, gallery = draw_views(rng, 300, 32)
    assert recall(queries, gallery) < 0.55
    assert recall(learnt.apply(queries), learnt.apply(gallery)) > 0.9
    assert learnt.facts.found_before is not None and learnt.facts.found_after is not None
    assert learnt.facts.found_after > learnt.facts.found_before + 0.2


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("pairs", [1, 3, 10])
def test_few_pairs_do_no_harm(seed: int, pairs: int):
    """In 64 dimensions, with views that differ evenly in all of them, so that there is nothing to learn."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(300, 64))
    first, second = (unit(centres + rng.normal(size=centres.shape) * 1.2).astype(np.float32) for _ in range(2))
    learnt = learn_from_views(first[:100], second[:100], pairs)
    plain, whitened = recall(first[100:], second[100:]), recall(learnt.apply(first[100:]), learnt.apply(second[100:]))
    assert 0.5 < plain < 0.99
    assert whitened > plain - 0.04


def test_where_whitening_is_refused_cosines_stay_as_they_are(monkeypatch: pytest.MonkeyPatch):
    from resight.encode.shrinkage import Verdict

    monkeypatch.setattr(whitenings, "choose_shrinkage", lambda *_: Verdict(None, 0.9, 0.9))
    rows = unit(np.random.default_rng(3).normal(1, 1, size=(20, 6))).astype(np.float32)
    learnt = whiten_by_pairs(rows, np.array([[0, 1]]))
    whitened = learnt.apply(rows)
    np.testing.assert_allclose(whitened @ whitened.T, rows @ rows.T, atol=1e-5)
    assert learnt.facts.shrinkage is None
    shorter = whiten_by_pairs(CROSS + 9, np.array([[0, 1]]), dimensions=1)
    # What all vectors have in common is not taken off, so that a cut keeps it.
    np.testing.assert_allclose(np.abs(shorter.projection[:, 0]), 0.5**0.5, atol=0.01)


def test_a_row_of_zeros_stays_one_and_the_mean_gives_no_nan():
    learnt = learn_pca(lambda: [CROSS + 1])
    assert learnt.apply(np.array([[0, 0], [1, 1]], np.float32)).tolist() == [[0, 0], [0, 0]]
    assert learnt.apply(np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_vectors_of_another_width_are_refused_with_both_widths():
    with pytest.raises(RecipeError) as caught:
        learn_pca(lambda: [CROSS]).apply(np.zeros((1, 3), np.float32))
    assert "2 dimensions" in caught.value.expected and "3 dimensions" in caught.value.actual


@pytest.mark.parametrize(
    ("rows", "settings", "problem"),
    [
        (CROSS[:1], {}, "too few"),
        (CROSS, {"dimensions": 3}, "3 dimensions"),
        (CROSS, {"dimensions": 0}, "0 dimensions"),
        (CROSS, {"power": 1.5}, "out of range"),
        (CROSS, {"shrinkage": -0.1}, "out of range"),
        (np.ones((5, 2)), {}, "the same"),
        (CROSS + np.nan, {}, "finite"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(rows: np.ndarray, settings: dict, problem: str):
    with pytest.raises(InputError, match=problem):
        learn_pca(lambda: [rows], **settings)


def test_no_rows_and_no_pairs_are_refused():
    with pytest.raises(InputError, match="too few"):
        learn_pca(list)
    with pytest.raises(InputError, match="no pairs"):
        whiten_by_pairs(PAIRED, np.zeros((0, 2), np.int64))


def test_what_was_saved_is_loaded_with_the_same_answer(tmp_path: Path):
    rows = np.random.default_rng(4).normal(size=(30, 5)).astype(np.float32)
    learnt = whiten_by_pairs(rows, np.array([[row, row + 1] for row in range(0, 24, 2)]), dimensions=3, space="a > b")
    whitenings.save(learnt, tmp_path / "w.npz")
    loaded = whitenings.load(tmp_path / "w.npz")
    assert np.array_equal(loaded.apply(rows), learnt.apply(rows))
    assert (loaded.facts, loaded.fingerprint) == (learnt.facts, learnt.fingerprint)
    assert [path.name for path in tmp_path.iterdir()] == ["w.npz"]


def test_learning_twice_gives_the_same_fingerprint_and_other_images_another():
    assert learn_pca(lambda: [CROSS]).fingerprint == learn_pca(lambda: [CROSS]).fingerprint
    assert learn_pca(lambda: [CROSS]).fingerprint != learn_pca(lambda: [CROSS * [1, 2]]).fingerprint


@pytest.mark.parametrize("damage", [lambda data: data[:0], lambda data: data[:-40], lambda data: data[:30] + data[60:]])
def test_a_damaged_file_is_no_whitening(tmp_path: Path, damage):
    path = tmp_path / "w.npz"
    whitenings.save(learn_pca(lambda: [CROSS]), path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RecipeError, match="not a whitening"):
        whitenings.load(path)


@pytest.mark.parametrize(
    "content",
    [
        {"centres": np.zeros((2, 2))},
        {"mean": np.zeros(2), "projection": np.eye(2)},
        {"mean": np.zeros(2), "projection": np.eye(2), "facts": np.array("{}")},
        {"mean": np.zeros(2), "projection": np.eye(2), "facts": np.array("[1]")},
        {"mean": np.zeros(3), "projection": np.eye(2), "facts": None},
        {"mean": np.zeros(2), "projection": np.full((2, 2), np.nan), "facts": None},
        {"mean": np.zeros(2), "projection": np.zeros((2, 0)), "facts": None},
        {"mean": np.array(["a"]), "projection": np.eye(1), "facts": None},
    ],
)
def test_a_foreign_file_is_no_whitening(tmp_path: Path, content: dict):
    whitenings.save(learn_pca(lambda: [CROSS]), tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as good:
        filled = {name: good["facts"] if value is None else value for name, value in content.items()}
    np.savez(tmp_path / "bad.npz", **filled)
    with pytest.raises(RecipeError, match="not a whitening"):
        whitenings.load(tmp_path / "bad.npz")


def test_a_text_and_a_missing_file_are_no_whitenings(tmp_path: Path):
    (tmp_path / "text.npz").write_text("mean")
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name in ("text.npz", "missing.npz", "array.npy"):
        with pytest.raises(RecipeError, match=name):
            whitenings.load(tmp_path / name)


def test_a_place_that_cannot_be_written_to_is_an_error_of_storage(tmp_path: Path):
    (tmp_path / "taken").touch()
    with pytest.raises(StorageError):
        whitenings.save(learn_pca(lambda: [CROSS]), tmp_path / "taken" / "w.npz")
