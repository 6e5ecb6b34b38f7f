"""resight.encode.heads: the formula by hand, the file, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from resight.encode import heads
from resight.errors import RecipeError

FACTS = heads.Facts("space", "mlp", 3, 6, gain=0.25)


def make_head() -> heads.Head:
    arrays = {
        "mean": np.array([1, 0], np.float32),
        "skip": np.array([[3, 0], [0, 4]], np.float32),
        "hidden": np.array([[1], [0]], np.float32),
        "shift": np.array([-1], np.float32),
        "output": np.array([[0, 5]], np.float32),
    }
    return heads.make(arrays, FACTS)


def test_rows_are_centred_projected_and_brought_to_unit_length() -> None:
    linear = heads.make({"mean": np.array([1, 0], np.float32), "skip": np.diag([3, 4]).astype(np.float32)}, FACTS)
    np.testing.assert_allclose(linear.apply(np.array([[2, 1]], np.float32)), [[0.6, 0.8]])


def test_the_layer_adds_what_exceeds_its_threshold() -> None:
    # x - mean = (3, 1): skip gives (9, 4), the layer max(0, 3 - 1) · (0, 5) = (0, 10); (1, 1) is below the threshold.
    out = make_head().apply(np.array([[4, 1], [2, 1]], np.float32))
    np.testing.assert_allclose(out, [np.array([9, 14]) / np.hypot(9, 14), [0.6, 0.8]], rtol=1e-6)


def test_a_row_of_zeros_stays_one() -> None:
    assert not make_head().apply(np.zeros((1, 2), np.float32)).any()


def test_a_saved_head_is_the_same(tmp_path: Path) -> None:
    heads.save(make_head(), tmp_path / "head.safetensors")
    loaded = heads.load(tmp_path / "head.safetensors")
    assert (loaded.facts, loaded.fingerprint) == (FACTS, make_head().fingerprint)
    for name, array in heads.list_arrays(make_head()).items():
        np.testing.assert_array_equal(getattr(loaded, name), array)


def test_other_readers_of_safetensors_read_it(tmp_path: Path) -> None:
    numpy_reader = pytest.importorskip("safetensors.numpy")
    heads.save(make_head(), tmp_path / "head.safetensors")
    read = numpy_reader.load_file(tmp_path / "head.safetensors")
    np.testing.assert_array_equal(read["skip"], [[3, 0], [0, 4]])
    assert set(read) == {"mean", "skip", "hidden", "shift", "output"}


@pytest.mark.parametrize("keep", [0, 5, 60, -1])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "head.safetensors"
    heads.save(make_head(), path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(RecipeError, match="not a head"):
        heads.load(path)


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(RecipeError, match="not a head"):
        heads.make({"mean": np.zeros(2, np.float32), "skip": np.full((2, 1), np.nan, np.float32)}, FACTS)


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    arrays = {**heads.list_arrays(make_head()), "output": np.zeros((2, 2), np.float32)}
    with pytest.raises(RecipeError, match="not a head"):
        heads.make(arrays, FACTS)


def test_rows_of_other_dimensions_are_refused() -> None:
    with pytest.raises(RecipeError, match="does not fit"):
        make_head().apply(np.zeros((1, 3), np.float32))
